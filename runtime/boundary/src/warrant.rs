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
//! - Uses that move to a child are gone where they were.
//! - A warrant covers neither a protected name nor what goes where more than the
//!   prompt and files would have to be cleared.
//!
//! # Not here
//! Where a line names a target (`cite`). What needs a warrant (`gates`).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Primitive, Role};

use crate::cite::{Wanted, cite};
use crate::gates::{Case, Facts, Finding, Reply, Request, Verdict};
use crate::label::{Integrity, Secrecy};
use crate::link::vouched;
use crate::parse::{elements, members, parse, strings, values};
use crate::path::NormalPath;
use crate::scope::{Pattern, Tool};
use crate::select::{Taken, conditions, field, resolve};
use crate::sentence::{Argument, Call, Piece, Text, named, string, text};
use crate::target::{TARGETS, Target, Targets};
use crate::url::Url;
use crate::words::words;

/// Compartments that a warrant lets out, since what it names was typed.
pub(crate) const LET_OUT: Secrecy = Secrecy::PROMPT.join(Secrecy::FILES);

/// How a selector begins.
const SELECTS: &str = "{\"$select\":";

/// The warrants of a task: those that live in its turn, and what funded those of
/// its session. A task without lines of the human mints none.
#[derive(Debug, Default)]
pub struct Warrants {
    /// Each by the number of its record.
    live: BTreeMap<u64, Mint>,
    /// Each with the uses that a retry may mint again.
    funded: BTreeMap<Citation, u8>,
}

/// What the gates let be minted; it is a warrant once its record is taken.
#[derive(Clone, Debug)]
pub(crate) struct Mint {
    /// The sentence that asked for it.
    raw: String,
    primitive: Primitive,
    /// What it covers; nothing where a selector says.
    targets: Targets<'static>,
    /// That of the first, if it is the only one that it covers.
    key: Option<u64>,
    uses: u8,
    citation: Citation,
}

/// The place in the session's lines that funds a warrant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Citation {
    line: usize,
    /// Where its bytes begin and end.
    span: [usize; 2],
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
    pub const NONE: Self = Self { live: BTreeMap::new(), funded: BTreeMap::new() };

    /// Ends a turn, and every warrant with it.
    pub fn end_turn(&mut self, end: TurnEnd) {
        for (citation, again) in &mut self.funded {
            let unspent = self.live.values().filter(|mint| mint.citation == *citation);
            let unspent = unspent.fold(0_u8, |sum, mint| sum.saturating_add(mint.uses));
            *again = if end == TurnEnd::Retried { unspent } else { 0 };
        }
        self.live.clear();
    }

    /// Whether a citation has so many uses to give.
    fn funds(&self, citation: &Citation, uses: u8) -> bool {
        self.funded.get(citation).is_none_or(|again| *again >= uses)
    }

    /// What a call moves to a child, and what is left then; `None` of any other call.
    pub(crate) fn part(&self, call: &Call<'_>) -> Result<Option<[Self; 2]>, Refusal> {
        if call.primitive != Primitive::AgentSpawn {
            return Ok(None);
        }
        let mut left = Self { live: self.live.clone(), funded: self.funded.clone() };
        let mut moved = Self::NONE;
        for named in values(call.span(2), "warrants").flat_map(elements) {
            let named = string(named).unwrap_or_default();
            let uses = parse(named.as_bytes()).ok().and_then(|asked| asked.uses);
            let uses = uses.ok_or(Refusal::Spent)?;
            // A child has other values under the same numbers.
            if named.contains(SELECTS) {
                return Err(Refusal::Unsupported);
            }
            // All but its uses, which stand last.
            let (wanted, _) = named.rsplit_once(',').ok_or(Refusal::Spent)?;
            let same = |(_, mint): &(&u64, &mut Mint)| {
                mint.uses >= uses && mint.raw.rsplit_once(',').is_some_and(|(own, _)| own == wanted)
            };
            let (record, mint) = left.live.iter_mut().find(same).ok_or(Refusal::Spent)?;
            mint.uses = mint.uses.saturating_sub(uses);
            let part = || Mint { uses: 0, ..mint.clone() };
            let part = moved.live.entry(*record).or_insert_with(part);
            part.uses = part.uses.saturating_add(uses);
        }
        Ok(Some([moved, left]))
    }

    /// Whether another decision was quicker to have what this one found.
    pub(crate) fn is_spent(&self, verdict: &Verdict<'_>) -> bool {
        let used = verdict.cause.and_then(|record| self.live.get(&record));
        let fails = |call| self.part(call).is_err();
        match &verdict.judged {
            Finding::Passed(_) => {
                used.is_some_and(|it| it.uses == 0) || verdict.call().is_some_and(fails)
            }
            Finding::Minted(mint) => !self.funds(&mint.citation, mint.uses),
            Finding::Refused(_) | Finding::Stopped(_) => false,
        }
    }

    /// Makes a warrant of what its record allows.
    pub(crate) fn add(&mut self, mint: Mint, record: u64) {
        let again = self.funded.entry(mint.citation.clone()).or_default();
        *again = again.saturating_sub(mint.uses);
        self.live.insert(record, mint);
    }

    /// Takes one use of the warrant with this record, if there is one.
    pub(crate) fn spend(&mut self, record: Option<u64>) {
        if let Some(mint) = record.and_then(|record| self.live.get_mut(&record)) {
            mint.uses = mint.uses.saturating_sub(1);
        }
    }

    /// The record of a live warrant for this very call.
    pub(crate) fn naming<F: Facts>(&self, case: &Case<'_, '_, F>) -> Option<u64> {
        let key = key(case.targets.at(0));
        let may = |mint: &Mint| mint.uses > 0 && mint.key.is_none_or(|own| Some(own) == key);
        let names = |(_, mint): &(&u64, &Mint)| may(mint) && mint.names(case);
        self.live.iter().find(names).map(|(record, _)| *record)
    }
}

/// Equal for equal targets: what is looked at of many warrants to find one.
fn key(target: Option<&Target<'_>>) -> Option<u64> {
    let text = target?.text()?.as_bytes();
    Some(words(text).fold(0, |key, word| key.rotate_left(9) ^ word))
}

impl Mint {
    fn names<F: Facts>(&self, case: &Case<'_, '_, F>) -> bool {
        let Case { call, targets, facts, .. } = case;
        let same = |place| match (self.targets.at(place), targets.at(place)) {
            (Some(Target::Path(fixed)), Some(Target::Path(path))) => {
                let pattern = || Pattern::parse(fixed.as_str());
                fixed == path || pattern().is_ok_and(|it| it.covers(path))
            }
            // In its place stands a selector, or nothing.
            (None, Some(target)) => target.text().is_some_and(|text| {
                picked(self.span(place), *facts) == Some(Taken::Text(text.into()))
            }),
            (fixed, target) => fixed == target,
        };
        let agrees = |tool| agree(self.span(1), call.span(1), tool, *facts);
        self.primitive == call.primitive
            && targets.0.iter().flatten().all(Result::is_ok)
            && (0..TARGETS).all(same)
            && case.entry.is_none_or(agrees)
    }

    /// The JSON value of the argument at this place.
    fn span(&self, place: usize) -> &str {
        parse(self.raw.as_bytes()).map_or("", |sentence| sentence.call.span(place))
    }
}

/// The bytes that a selector is over, and what they are the reply of.
fn selected<'f>(selector: &str, facts: &'f impl Facts) -> Option<(&'f [u8], Reply<'f>)> {
    let held = facts.held(named(selector).next()?)?;
    Some((held.bytes, held.reply_of?))
}

/// What a selector comes to now.
fn picked<'f>(selector: &str, facts: &'f impl Facts) -> Option<Taken<'f>> {
    let (bytes, reply) = selected(selector, facts)?;
    let directory = reply.target.path().map(NormalPath::as_str);
    resolve(selector, bytes, directory).filter(|_| reply.is_whole)
}

/// Whether the arguments of a verb are those that a warrant fixed, or held values of
/// the same text, and others only where the verb's entry leaves them open.
fn agree(fixed: &str, given: &str, tool: &Tool, facts: &impl Facts) -> bool {
    let sound = |(name, value): (Text<'_>, &str)| match values(fixed, &name.decode()).next() {
        Some(wanted) => comes_to(wanted, value, facts),
        None => tool.verb.arguments.get(&*name.decode()).is_some_and(String::is_empty),
    };
    let stands = |(name, _): (Text<'_>, _)| values(given, &name.decode()).next().is_some();
    members(given).all(sound) && members(fixed).all(stands)
}

/// Whether a value is what a warrant fixed, each selector of a list being one of its values.
fn comes_to(wanted: &str, value: &str, facts: &impl Facts) -> bool {
    if wanted.starts_with('[') && wanted.contains(SELECTS) {
        let mut pairs = elements(wanted).zip(elements(value));
        return elements(wanted).count() == elements(value).count()
            && pairs.all(|(wanted, value)| comes_to(wanted, value, facts));
    }
    let picked = string(wanted).map(Taken::Text).or_else(|| picked(wanted, facts));
    // No call can say a selector, so that one which comes to nothing fits none.
    let fixed = picked.unwrap_or(Taken::Json(wanted));
    fixed == text(value, facts).map_or(Taken::Json(value), Taken::Text)
}

/// Gate 3 for a warrant: what it may be minted as.
pub(crate) fn mint<F: Facts>(case: &Case<'_, '_, F>, uses: u8) -> Result<Mint, Refusal> {
    if case.request.mark.label().integrity == Integrity::Ingested {
        return Err(Refusal::Tainted);
    }
    let says = case.entry.map_or(&[][..], |tool| &tool.verb.says).iter().map(|word| &**word);
    let call = case.call;
    let says: Vec<&str> = says.chain(call.primitive.row().says.iter().copied()).collect();
    let mut search = Search { case, uses, says: &says, found: None };
    let named = call.arguments().filter(|(row, _)| row.role == Role::Target);
    for ((row, value), target) in named.zip(&case.targets.0) {
        match (value, target) {
            (Argument::Selector(selector), _) => search.selector(row.name, selector)?,
            (_, Some(Ok(target))) => search.target(target)?,
            (_, Some(Err(defect))) => return Err(*defect),
            (_, None) => return Err(Refusal::Malformed),
        }
    }
    if let Argument::Json(json) = call.argument(1) {
        let tool = case.entry.ok_or(Refusal::OutOfScope)?;
        let roles = &tool.verb.arguments;
        let aimless = roles.values().all(String::is_empty);
        for (name, value) in members(json) {
            let name = name.decode();
            let role = roles.get(&*name);
            let says = (aimless || role.is_some_and(String::is_empty)).then_some(&says[..]);
            search.value(value, &name, role.map(|ty| &**ty), says)?;
        }
        // A verb without arguments is named by its word.
        if search.found.is_none() && roles.is_empty() {
            search.cited(Wanted::Word(&says), None)?;
        }
    }
    let citation = search.found.ok_or(Refusal::Unsupported)?;
    let Call { raw, primitive, .. } = *call;
    let owned = |place| Some(Ok(case.targets.at(place)?.owned()));
    let targets = Targets(core::array::from_fn(owned));
    let first = targets.at(0).filter(|target| !target.text().is_some_and(|it| it.ends_with('*')));
    Ok(Mint { raw: raw.into(), primitive, key: key(first), targets, uses, citation })
}

/// A search of the human's lines for all that one warrant fixes.
struct Search<'c, 'a, 's, F> {
    case: &'c Case<'a, 's, F>,
    uses: u8,
    /// The words for what it would do.
    says: &'c [&'c str],
    /// Where what was looked for first stands: what funds the warrant.
    found: Option<Citation>,
}

impl<F: Facts> Search<'_, '_, '_, F> {
    /// Looks for a literal target.
    fn target(&mut self, target: &Target<'_>) -> Result<(), Refusal> {
        let wanted = match target {
            Target::Path(path)
                if path.as_str().ends_with("/*") || path.as_str().ends_with("/**") =>
            {
                let pattern = Pattern::parse(path.as_str())?;
                let stars = path.as_str().strip_prefix(pattern.path().as_str());
                let wanted = Wanted::Path(pattern.path(), stars.unwrap_or_default());
                return self.cited(wanted, Some(self.says));
            }
            Target::Path(path) => Wanted::Path(path, ""),
            Target::Url(url) => Wanted::Url(url),
            Target::Host(host) => Wanted::Host(host),
            Target::Port(port) => Wanted::Port(*port),
            // What a connector's verb is fixed by are its arguments.
            Target::Name(_) => return Ok(()),
        };
        self.cited(wanted, None)
    }

    /// Looks for what a target of this type is to be chosen by from a reply.
    fn selector(&mut self, wanted: &str, selector: &str) -> Result<(), Refusal> {
        let Case { facts, request, .. } = self.case;
        let taken = field(selector, "take").and_then(string).unwrap_or_default();
        let (_, reply) = selected(selector, *facts).ok_or(Refusal::Unsupported)?;
        let tool = reply.target.text().and_then(|name| request.scope.entry(name));
        let field = tool.and_then(|tool| tool.verb.fields.get(&*taken));
        let is_path = matches!(wanted, "path" | "from" | "to");
        if !field.map_or(is_path && reply.primitive == Primitive::FsList, |ty| ty == wanted) {
            return Err(Refusal::Unsupported);
        }
        for (name, _, literal) in conditions(selector) {
            self.value(literal, &name, None, Some(self.says))?;
        }
        let has_literal = conditions(selector).next().is_some();
        if has_literal { Ok(()) } else { self.cited(Wanted::Word(self.says), None) }
    }

    /// Looks for a Json value of a field of this name, or of an argument of this name and type.
    fn value(
        &mut self,
        value: &str,
        name: &str,
        ty: Option<&str>,
        says: Option<&[&str]>,
    ) -> Result<(), Refusal> {
        match (string(value), ty) {
            (Some(text), _) => self.cited(Wanted::Text(&text, name), says),
            (None, Some(ty)) if value.starts_with(SELECTS) => self.selector(ty, value),
            (None, _) if value.starts_with('[') => {
                elements(value).try_for_each(|value| self.value(value, name, ty, says))
            }
            (None, _) => self.cited(Wanted::Number(value, name), says),
        }
    }

    /// Looks for a place, the newest line first, and beside it for one of the words
    /// that it `says`.
    fn cited(&mut self, wanted: Wanted<'_>, says: Option<&[&str]>) -> Result<(), Refusal> {
        let Case { call, targets, request, facts, .. } = self.case;
        let verb = match targets.at(0) {
            Some(Target::Name(name)) => name,
            _ => call.primitive.row().name,
        };
        let mut refusal = Refusal::NotCited;
        for (line, text) in request.lines.iter().enumerate().rev() {
            let mut from = 0;
            while let Some(span) = cite(text, from, wanted, *facts) {
                from = span.end;
                let mut rest = [text.get(..span.start), text.get(span.end..)].into_iter().flatten();
                let said =
                    |says| rest.any(|rest| cite(rest, 0, Wanted::Word(says), *facts).is_some());
                let citation = Citation { line, span: [span.start, span.end], verb: verb.into() };
                if !says.is_none_or(said) {
                    continue;
                }
                if self.found.is_some() {
                    return Ok(());
                }
                if request.warrants.funds(&citation, self.uses) {
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
pub(crate) fn check_links<F: Facts>(case: &Case<'_, '_, F>) -> Result<(), Refusal> {
    let Case { call, targets, facts, request: Request { lines, .. }, .. } = case;
    let host = match targets.at(0) {
        Some(Target::Url(url)) => Some(Url::parse(url)?.host()),
        _ => None,
    };
    let text = |number| {
        let held = facts.held(number).ok_or(Refusal::NoSuchHandle)?;
        str::from_utf8(held.bytes).map_err(|_| Refusal::Link)
    };
    // What the human named may say what it likes, where it stands alone.
    let whole = |number| {
        let source = facts.held(number).and_then(|held| held.reply_of);
        let wanted = source.and_then(|reply| match (reply.primitive, reply.target) {
            (Primitive::FsRead, Target::Path(path)) => Some(Wanted::Path(path, "")),
            (Primitive::NetHttpGet, Target::Url(url)) => Some(Wanted::Url(url)),
            _ => None,
        });
        let is_named = |wanted| lines.iter().any(|line| cite(line, 0, wanted, *facts).is_some());
        if wanted.is_some_and(is_named) { Ok(()) } else { vouched(text(number)?, host, lines) }
    };
    for (_, value) in call.arguments() {
        if let Argument::Json(json) = value {
            strings(json).try_for_each(|text| vouched(&text.decode(), host, lines))?;
            named(json).try_for_each(whole)?;
        }
        let Argument::Content(content) = value else { continue };
        let pieces: Vec<Piece<'_>> = content.pieces().collect();
        if let [Piece::Held(number)] = pieces[..] {
            whole(number)?;
            continue;
        }
        let mut all = String::new();
        for piece in pieces {
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
