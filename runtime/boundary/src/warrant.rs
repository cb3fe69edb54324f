//! Warrants: leave to act that the human's own line gave before the reading began.
//!
//! An agent asks for it while nothing from outside is in its memory, for targets that
//! were typed. What it reads afterwards can neither add an effect nor change one.
//!
//! # Invariants
//! - I13: a warrant is minted untainted, for targets that a line of the human names,
//!   and is spent at most as often as it says.
//! - A citation funds one warrant of a session; what a turn that broke untainted left
//!   of it, its retry may mint again, and nobody later.
//! - A warrant covers neither a protected name nor what goes where more than the
//!   prompt and files would have to be cleared.
//!
//! # Not here
//! Where a line names a target (`cite`). What needs a warrant (`gates`).

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Egress, Primitive, Role, Type};

use crate::cite::{Wanted, cite, cite_from, verb_word};
use crate::gates::{Facts, Finding, Request, Stopped};
use crate::label::{Integrity, Secrecy};
use crate::link::vouched;
use crate::parse::{elements, members, strings};
use crate::scope::{Pattern, Scope, Tool};
use crate::select::{Taken, literals, resolve};
use crate::sentence::{Argument, Asked, Held, Piece, Sentence, Text, reference};
use crate::target::{TARGETS, Target, Targets, entry};
use crate::url::{Host, Url};

/// Compartments that a warrant lets out, since what it names was typed.
const LET_OUT: Secrecy = Secrecy::PROMPT.join(Secrecy::FILES);

/// The warrants of a task: those that live in its turn, and what funded those of
/// its session. A task without lines of the human mints none.
#[derive(Debug, Default)]
pub struct Warrants {
    /// Each with the number of its record.
    live: Vec<(u64, Mint)>,
    /// Each with the uses that a retry may mint again.
    funded: Vec<(Citation, u8)>,
}

/// What the gates let be minted; it is a warrant once its record is taken.
#[derive(Debug)]
pub(crate) struct Mint {
    primitive: Primitive,
    targets: [Option<Fixed>; TARGETS],
    /// The Json that a connector's verb is fixed by.
    arguments: String,
    uses: u8,
    citation: Citation,
}

/// A target as a warrant fixes it.
#[derive(Debug)]
enum Fixed {
    Exactly(Target<'static>),
    Under(Pattern),
    Selected(String),
}

/// The place in the session's lines that funds a warrant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Citation {
    line: usize,
    span: Range<usize>,
    verb: String,
}

/// How a turn came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// It is over, or it broke after something from outside was read.
    Final,
    /// It broke with an untainted mark, and may be tried again.
    Retried,
}

impl Warrants {
    /// Those of a task that has none.
    pub const NONE: Self = Self { live: Vec::new(), funded: Vec::new() };

    /// Ends a turn, and every warrant with it.
    pub fn end_turn(&mut self, end: TurnEnd) {
        for (citation, again) in &mut self.funded {
            let unspent = self.live.iter().filter(|(_, mint)| mint.citation == *citation);
            let unspent = unspent.fold(0_u8, |sum, (_, mint)| sum.saturating_add(mint.uses));
            *again = if end == TurnEnd::Retried { unspent } else { 0 };
        }
        self.live.clear();
    }

    /// Whether a citation has so many uses to give.
    fn funds(&self, citation: &Citation, uses: u8) -> bool {
        let mut known = self.funded.iter().filter(|(known, _)| known == citation);
        known.next().is_none_or(|(_, again)| *again >= uses)
    }

    /// What was decided, or that another decision was quicker to have it.
    pub(crate) fn still<'s>(&self, finding: Finding<'s>, cause: Option<u64>) -> Finding<'s> {
        let spent = |(record, mint): &(u64, Mint)| Some(*record) == cause && mint.uses == 0;
        match finding {
            Finding::Passed(call, _) if self.live.iter().any(spent) => {
                Finding::Refused(Sentence::Call(call), Refusal::Spent)
            }
            Finding::Minted(warrant, mint) if !self.funds(&mint.citation, mint.uses) => {
                Finding::Refused(Sentence::Warrant(warrant), Refusal::Spent)
            }
            Finding::Passed(..)
            | Finding::Minted(..)
            | Finding::Refused(..)
            | Finding::Unreadable(_) => finding,
        }
    }

    /// Makes a warrant of what its record allows.
    pub(crate) fn add(&mut self, mint: Mint, record: u64) {
        match self.funded.iter_mut().find(|(known, _)| *known == mint.citation) {
            Some((_, again)) => *again = again.saturating_sub(mint.uses),
            None => self.funded.push((mint.citation.clone(), 0)),
        }
        self.live.push((record, mint));
    }

    /// Takes one use of the warrant with this record, if there is one.
    pub(crate) fn spend(&mut self, record: Option<u64>) {
        for (_, mint) in self.live.iter_mut().filter(|(live, _)| Some(*live) == record) {
            mint.uses = mint.uses.saturating_sub(1);
        }
    }

    /// The record of a warrant that covers a call which gate 3 has stopped.
    pub(crate) fn covering(
        &self,
        asked: &Asked<'_>,
        targets: &Targets<'_>,
        stopped: &Stopped,
        request: &Request<'_, '_>,
        facts: &impl Facts,
    ) -> Result<Option<u64>, Refusal> {
        if stopped.refusal == Refusal::Protected || stopped.leak.without(LET_OUT) != Secrecy::NONE {
            return Ok(None);
        }
        let covers = |(_, mint): &&(u64, Mint)| mint.covers(asked, targets, request.scope, facts);
        let Some((record, _)) = self.live.iter().find(covers) else { return Ok(None) };
        if asked.primitive.row().egress != Egress::Never {
            check_links(asked, targets, request, facts)?;
        }
        Ok(Some(*record))
    }
}

impl Mint {
    fn covers(
        &self,
        asked: &Asked<'_>,
        targets: &Targets<'_>,
        scope: &Scope,
        facts: &impl Facts,
    ) -> bool {
        let same = |(fixed, target): (&Option<Fixed>, _)| match (fixed, target) {
            (None, &None) => true,
            (Some(fixed), Some(Ok(target))) => fixed.covers(target, facts),
            (None, Some(_)) | (Some(_), None | Some(Err(_))) => false,
        };
        self.uses > 0
            && self.primitive == asked.primitive
            && self.targets.iter().zip(targets).all(same)
            && entry(targets, scope)
                .is_none_or(|tool| agree(&self.arguments, asked.span(1), tool, facts))
    }
}

impl Fixed {
    fn covers(&self, target: &Target<'_>, facts: &impl Facts) -> bool {
        match (self, target) {
            (Self::Exactly(fixed), target) => fixed == target,
            (Self::Under(pattern), Target::Path(path)) => pattern.covers(path),
            (Self::Selected(selector), Target::Path(path)) => {
                let held = Held::within(selector).next().and_then(|number| facts.held(number));
                let reply = held.and_then(|held| Some((held.bytes, held.reply_of?)));
                reply.is_some_and(|(bytes, reply)| {
                    let Target::Path(directory) = reply.target else { return false };
                    let picked = resolve(selector, bytes, Some(directory.as_str()));
                    reply.is_whole && picked == Some(Taken::Text(path.as_str().into()))
                })
            }
            (Self::Under(_) | Self::Selected(_), _) => false,
        }
    }
}

/// Whether the arguments of a verb are those that a warrant fixed, and others only
/// where the verb's entry limits them.
fn agree(fixed: &str, given: &str, tool: &Tool, facts: &impl Facts) -> bool {
    let find = |json, name: Text<'_>| members(json).find(|(key, _)| key.decode() == name.decode());
    let sound = |(name, value): (Text<'_>, &str)| match find(fixed, name) {
        Some((_, wanted)) => is_same(wanted, value, facts),
        None => tool.limits.iter().any(|(limited, _)| *name.decode() == **limited),
    };
    members(given).all(sound) && members(fixed).all(|(name, _)| find(given, name).is_some())
}

/// Whether a Json value of a call is the one that a warrant fixed: the same, or a
/// held value of the same text.
fn is_same(wanted: &str, value: &str, facts: &impl Facts) -> bool {
    let held = reference(value).and_then(|number| facts.held(number));
    let text = strings(wanted).next().filter(|_| wanted.starts_with('"'));
    match (held, text) {
        (Some(held), Some(text)) => held.bytes == text.decode().as_bytes(),
        (_, _) => wanted == value,
    }
}

/// Gate 3 for a warrant: what it may be minted as.
pub(crate) fn mint(
    asked: &Asked<'_>,
    uses: u8,
    targets: &Targets<'_>,
    request: &Request<'_, '_>,
    facts: &impl Facts,
) -> Result<Mint, Refusal> {
    if request.mark.label().integrity == Integrity::Ingested {
        return Err(Refusal::Tainted);
    }
    let primitive = asked.primitive;
    let row = primitive.row();
    let verb = match targets {
        [Some(Ok(Target::Name(name))), _] => name,
        _ => row.name,
    };
    let mut search = Search { request, facts, says: primitive.says(), verb, uses, found: None };
    let named = asked.arguments().filter(|(row, _)| row.role == Role::Target);
    let mut fixed = [const { None }; TARGETS];
    for (slot, ((row, value), target)) in fixed.iter_mut().zip(named.zip(targets)) {
        *slot = Some(match (value, target) {
            (Argument::Selector(selector), _) => search.selector(row.ty, selector)?,
            (_, Some(Ok(target))) => search.target(target)?,
            (_, Some(Err(defect))) => return Err(*defect),
            (_, None) => return Err(Refusal::Malformed),
        });
    }
    let mut arguments = String::new();
    if let Argument::Json(json) = asked.argument(1) {
        // No manifest says of which verb's records a selector may take one.
        if Held::within(json).next().is_some() {
            return Err(Refusal::Unsupported);
        }
        let limits = entry(targets, request.scope).map_or(&[][..], |tool| &tool.limits);
        for (name, value) in members(json) {
            let mut limits = limits.iter().filter(|(limited, _)| *name.decode() == **limited);
            if !limits.any(|(_, limit)| limit.admits(value, facts)) {
                // No manifest says what else the verb acts upon.
                let missing = |refusal| {
                    if refusal == Refusal::NotCited { Refusal::Unsupported } else { refusal }
                };
                search.value(value, &name.decode(), None).map_err(missing)?;
            }
        }
        arguments.push_str(json);
    }
    let citation = search.found.ok_or(Refusal::Unsupported)?;
    Ok(Mint { primitive, targets: fixed, arguments, uses, citation })
}

/// A search of the human's lines for all that one warrant fixes.
struct Search<'a, F> {
    request: &'a Request<'a, 'a>,
    facts: &'a F,
    /// The words for what it would do, and the one name of it.
    says: &'a [&'a str],
    verb: &'a str,
    uses: u8,
    /// Where what was looked for first stands: what funds the warrant.
    found: Option<Citation>,
}

impl<F: Facts> Search<'_, F> {
    /// What fixes a literal target.
    fn target(&mut self, target: &Target<'_>) -> Result<Fixed, Refusal> {
        let wanted = match target {
            Target::Path(path)
                if path.as_str().ends_with("/*") || path.as_str().ends_with("/**") =>
            {
                let pattern = Pattern::parse(path.as_str()).map_err(|_| Refusal::BadName)?;
                self.cited(Wanted::Pattern(path.as_str()), Some(self.says))?;
                return Ok(Fixed::Under(pattern));
            }
            Target::Path(path) => Wanted::Path(path),
            Target::Url(url) => Wanted::Url(url),
            Target::Host(host) => Wanted::Host(host),
            Target::Port(port) => Wanted::Port(*port),
            // What a connector's verb is fixed by are its arguments.
            Target::Name(_) => return Ok(Fixed::Exactly(target.owned())),
        };
        self.cited(wanted, None)?;
        Ok(Fixed::Exactly(target.owned()))
    }

    /// What fixes a target that is to be chosen from a listing.
    fn selector(&mut self, ty: Type, selector: &str) -> Result<Fixed, Refusal> {
        let held = Held::within(selector).next().and_then(|number| self.facts.held(number));
        let listing = held.and_then(|held| held.reply_of).map(|reply| reply.primitive);
        // No manifest says whose records any other reply holds.
        if ty != Type::Path || listing != Some(Primitive::FsList) {
            return Err(Refusal::Unsupported);
        }
        for (name, literal) in literals(selector) {
            self.value(literal, &name, Some(self.says))?;
        }
        if self.found.is_none() {
            self.cited(Wanted::Word(self.says), None)?;
        }
        Ok(Fixed::Selected(selector.into()))
    }

    /// Looks for a Json value of an argument or a field of this name.
    fn value(&mut self, value: &str, name: &str, says: Option<&[&str]>) -> Result<(), Refusal> {
        match value.as_bytes() {
            [b'"', ..] => {
                let text = strings(value).next().map(Text::decode).unwrap_or_default();
                self.cited(Wanted::Text(&text, name), says)
            }
            [b'[', ..] => elements(value).try_for_each(|value| self.value(value, name, says)),
            _ => self.cited(Wanted::Number(value, name), says),
        }
    }

    /// Looks for a place, the newest line first, and beside it for one of the words
    /// that it `says`.
    fn cited(&mut self, wanted: Wanted<'_>, says: Option<&[&str]>) -> Result<(), Refusal> {
        let mut refusal = Refusal::NotCited;
        for (line, text) in self.request.lines.iter().enumerate().rev() {
            let mut from = 0;
            while let Some(span) = cite_from(text, from, wanted, self.facts) {
                from = span.end;
                let mut rest = [text.get(..span.start), text.get(span.end..)].into_iter().flatten();
                let said = |says| rest.any(|rest| verb_word(rest, says, self.facts).is_some());
                let citation = Citation { line, span, verb: self.verb.into() };
                if !says.is_none_or(said) {
                    continue;
                }
                if self.found.is_some() {
                    return Ok(());
                }
                if self.request.warrants.funds(&citation, self.uses) {
                    self.found = Some(citation);
                    return Ok(());
                }
                refusal = Refusal::Spent;
            }
        }
        Err(refusal)
    }
}

/// Whether no text that a warranted call sends leads where the human did not.
fn check_links(
    asked: &Asked<'_>,
    targets: &Targets<'_>,
    request: &Request<'_, '_>,
    facts: &impl Facts,
) -> Result<(), Refusal> {
    let lines = request.lines;
    let host = if let [Some(Ok(Target::Url(url))), _] = targets
        && let Host::Name(name) = Url::parse(url)?.host()
    {
        Some(name.as_str())
    } else {
        None
    };
    let text = |number| {
        let held = facts.held(number).ok_or(Refusal::NoSuchHandle)?;
        str::from_utf8(held.bytes).map_err(|_| Refusal::Link)
    };
    // What the human named may say what it likes, where it stands alone.
    let whole = |number| {
        let source = facts.held(number).and_then(|held| held.reply_of);
        let wanted = source.and_then(|reply| match (reply.primitive, reply.target) {
            (Primitive::FsRead, Target::Path(path)) => Some(Wanted::Path(path)),
            (Primitive::NetHttpGet, Target::Url(url)) => Some(Wanted::Url(url)),
            _ => None,
        });
        let is_named = |wanted| lines.iter().any(|line| cite(line, wanted, facts).is_some());
        if wanted.is_some_and(is_named) {
            return Ok(());
        }
        vouched(text(number)?, host, lines)
    };
    for (_, value) in asked.arguments() {
        if let Argument::Json(json) = value {
            strings(json).try_for_each(|text| vouched(&text.decode(), host, lines))?;
            Held::within(json).try_for_each(whole)?;
        }
        let Argument::Content(content) = value else { continue };
        let mut pieces = content.pieces();
        if let (Some(Piece::Held(number)), None) = (pieces.next(), pieces.next()) {
            whole(number)?;
            continue;
        }
        let mut all = String::new();
        for piece in content.pieces() {
            let piece = match piece {
                Piece::Text(text) => text.decode(),
                Piece::Held(number) => text(number)?.into(),
            };
            all.try_reserve(piece.len()).map_err(|_| Refusal::Link)?;
            all.push_str(&piece);
        }
        vouched(&all, host, lines)?;
    }
    Ok(())
}
