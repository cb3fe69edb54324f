//! The four gates: grammar, capability, label, scope.
//!
//! Each gate consumes the private type that the one before it made, so that a
//! skipped or reordered gate does not compile. Gate 3 looks at two facts, what
//! the call can destroy and where its reasons came from, and never at a text:
//! what is not read cannot persuade.
//!
//! # Invariants
//! - I1: gates run in order, none skipped.
//! - I7: the justification is computed here, from the task's mark and the held
//!   values that the call names; no argument supplies it.
//! - I16: what the journal cannot hold is destructive.
//! - I18: the decision depends on its arguments alone.
//!
//! # Not here
//! Recording the decision (`record`). Whether the page was lying (nobody).

use alloc::boxed::Box;
use alloc::string::String;

use synapse_abi::code::{Fault, Refusal};
use synapse_abi::registry::{self, Egress, Harm, Primitive, Role, Type};

use crate::answer::{Answer, State};
use crate::capability::Table;
use crate::cite::Names;
use crate::headers::headers;
use crate::label::{Integrity, Label, Mark, Secrecy};
use crate::parse::parse;
use crate::path::NormalPath;
use crate::protected::is_protected;
use crate::scope::{Effect, Scope, Terms};
use crate::sentence::{Argument, Asked, Call, Sentence, Warrant};
use crate::target::{TARGETS, Target, Targets, entry, place, targets, terms};
use crate::warrant::{Mint, Warrants, mint};

/// What a task brings to a decision.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a, 's> {
    /// The task's number, for the record.
    pub task: u64,
    /// What its memory has seen.
    pub mark: &'a Mark,
    /// What it may call, and the handles that it holds.
    pub table: &'a Table,
    /// What its grant covers.
    pub scope: &'s Scope,
    /// Calls it may still make.
    pub calls_left: u64,
    /// What it may do by the human's own lines.
    pub warrants: &'a Warrants,
    /// The lines that the human typed in this session, and no others, in order.
    pub lines: &'a [String],
}

/// What the kernel's own stores say. The world itself is not touched.
pub trait Facts: Names {
    /// The held value of this task with this number.
    fn held(&self, number: u64) -> Option<Held<'_>>;
    /// Bytes that the journal can still take.
    fn journal_room(&self) -> u64;
    /// Whether this task made the name and every byte since.
    fn is_own_creation(&self, path: &NormalPath<'_>) -> bool;
}

/// A held value, as a decision sees it.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// Its label.
    pub label: Label,
    /// Its bytes; none where a fault is held.
    pub bytes: &'a [u8],
    /// The SHA-256 of its bytes, for the record.
    pub digest: [u8; 32],
    /// The fault that it holds instead.
    pub fault: Option<Fault>,
    /// What it is the direct reply of, if it is one.
    pub reply_of: Option<Reply<'a>>,
}

/// Where a held value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The primitive that replied.
    pub primitive: Primitive,
    /// What was asked for.
    pub target: &'a Target<'a>,
    /// Whether a listing begins with the first entry and ends with the last.
    pub is_whole: bool,
}

/// What `decide` came to.
#[derive(Debug)]
pub enum Decided<'s> {
    /// The answer, closed until it is recorded.
    Final(Verdict<'s>),
    /// All that is missing is a human's yes.
    Ask(Question<'s>),
}

impl<'s> Decided<'s> {
    /// The answer where no human can be asked: a question is refused.
    #[must_use]
    pub fn unasked(self) -> Verdict<'s> {
        match self {
            Self::Final(verdict) | Self::Ask(Question { refused: verdict, .. }) => verdict,
        }
    }
}

/// A decision, closed until it is recorded.
///
/// ```compile_fail,E0616
/// fn open(verdict: synapse_boundary::Verdict<'_>) { let _ = verdict.finding; }
/// ```
/// ```
/// fn open(verdict: synapse_boundary::Verdict<'_>) { let _ = verdict.primitive(); }
/// ```
#[derive(Debug)]
pub struct Verdict<'s> {
    pub(crate) raw: &'s [u8],
    pub(crate) task: u64,
    pub(crate) justification: Label,
    /// The record that it rests on.
    pub(crate) cause: Option<u64>,
    pub(crate) finding: Finding<'s>,
}

/// What a verdict says.
#[derive(Debug)]
pub(crate) enum Finding<'s> {
    /// No sentence.
    Unreadable(Refusal),
    /// A sentence that a gate refused.
    Refused(Sentence<'s>, Refusal),
    /// A call that passed all four gates.
    Passed(Call<'s>, InScope<'s>),
    /// A warrant that did.
    Minted(Warrant<'s>, Box<Mint>),
}

impl<'s> Verdict<'s> {
    /// The call that was asked for, if it was one.
    #[must_use]
    pub const fn call(&self) -> Option<&Call<'s>> {
        match &self.finding {
            Finding::Passed(call, _) | Finding::Refused(Sentence::Call(call), _) => Some(call),
            Finding::Refused(Sentence::Warrant(_), _)
            | Finding::Minted(..)
            | Finding::Unreadable(_) => None,
        }
    }

    /// The primitive that it names; `None` where it was no sentence.
    #[must_use]
    pub fn primitive(&self) -> Option<Primitive> {
        match &self.finding {
            Finding::Passed(call, _) => Some(call.primitive()),
            Finding::Refused(sentence, _) => Some(sentence.primitive()),
            Finding::Minted(warrant, _) => Some(warrant.asked.primitive),
            Finding::Unreadable(_) => None,
        }
    }

    /// The refusal; `None` for a permission.
    pub(crate) const fn refusal(&self) -> Option<Refusal> {
        match &self.finding {
            Finding::Unreadable(refusal) | Finding::Refused(_, refusal) => Some(*refusal),
            Finding::Passed(..) | Finding::Minted(..) => None,
        }
    }
}

/// A call that gates 1, 2 and 4 pass and gate 3 has no reason for. It holds the
/// refusal that stands unless a human says yes; no permission can be made of it.
///
/// ```compile_fail,E0308
/// # use synapse_boundary::{Facts, Recorder, Warrants, commit, gates::Question};
/// fn permit(
///     (log, warrants): (&mut impl Recorder, &mut Warrants),
///     facts: &impl Facts,
///     question: Question<'_>,
/// ) {
///     let _ = commit(question, log, warrants, facts, 0);
/// }
/// ```
/// ```
/// # use synapse_boundary::{Decided, Facts, Recorder, Warrants, commit, gates::Question};
/// fn permit(
///     (log, warrants): (&mut impl Recorder, &mut Warrants),
///     facts: &impl Facts,
///     question: Question<'_>,
/// ) {
///     let _ = commit(Decided::Ask(question).unasked(), log, warrants, facts, 0);
/// }
/// ```
#[derive(Debug)]
pub struct Question<'s> {
    pub(crate) refused: Verdict<'s>,
    stopped: Stopped,
    targets: [Option<Target<'s>>; TARGETS],
}

impl<'s> Question<'s> {
    /// The call that was asked for.
    #[must_use]
    pub const fn call(&self) -> Option<&Call<'s>> {
        self.refused.call()
    }

    /// The number of the task that asks.
    #[must_use]
    pub const fn task(&self) -> u64 {
        self.refused.task
    }

    /// Its target at this place, as gate 4 passed it.
    #[must_use]
    pub fn target(&self, place: usize) -> Option<&Target<'s>> {
        self.targets.get(place)?.as_ref()
    }

    /// Every reason for which it was stopped; the first is its refusal.
    pub fn refusals(&self) -> impl Iterator<Item = Refusal> {
        let Stopped { refusal, leak } = self.stopped;
        let leaks = leak != Secrecy::NONE && refusal != Refusal::NotCleared;
        [Some(refusal), leaks.then_some(Refusal::NotCleared)].into_iter().flatten()
    }

    /// What it was justified by.
    #[must_use]
    pub const fn justification(&self) -> Label {
        self.refused.justification
    }
}

/// Decides one sentence. Pure: the same arguments give the same answer. It is the
/// only way into the gates; what one hands to the next has no name outside.
///
/// ```compile_fail,E0603
/// use synapse_boundary::gates::Justified;
/// ```
/// ```
/// use synapse_boundary::gates::Verdict;
/// ```
pub fn decide<'s>(request: Request<'_, 's>, facts: &impl Facts, raw: &'s [u8]) -> Decided<'s> {
    decide_with(request, facts, raw, None)
}

/// As [`decide`], with the human's yes to this very sentence for a reason.
pub(crate) fn decide_with<'s>(
    request: Request<'_, 's>,
    facts: &impl Facts,
    raw: &'s [u8],
    yes: Option<&Answer<'_>>,
) -> Decided<'s> {
    let task = request.task;
    let sentence = match parse(raw) {
        Ok(sentence) => sentence,
        Err(refusal) => {
            let (justification, finding) = (request.mark.label(), Finding::Unreadable(refusal));
            return Decided::Final(Verdict { raw, task, justification, cause: None, finding });
        }
    };
    let justification = justification(sentence.asked(), &request, facts);
    let verdict = |cause, finding| Verdict { raw, task, justification, cause, finding };
    let call = match sentence {
        Sentence::Call(call) => call,
        Sentence::Warrant(warrant) => {
            let minted = capability(Parsed(&warrant.asked), &request, facts)
                .and_then(|granted| minted(granted, warrant.uses, &request, facts))
                .map(|justified| scope(justified, &request, facts))
                .and_then(|(mint, passed)| passed.map(|_| mint));
            return Decided::Final(match minted {
                Ok(mint) => verdict(None, Finding::Minted(warrant, Box::new(mint))),
                Err(refusal) => {
                    verdict(None, Finding::Refused(Sentence::Warrant(warrant), refusal))
                }
            });
        }
    };
    let passed = capability(Parsed(&call.asked), &request, facts)
        .and_then(|granted| label(granted, &justification, &request, facts, yes))
        .map(|justified| scope(justified, &request, facts));
    let refusal = match passed {
        Ok((Cover::Covered(warrant), Ok(passed))) => {
            return Decided::Final(verdict(warrant, Finding::Passed(call, passed)));
        }
        Ok((Cover::Pending(stopped), Ok(InScope { targets, .. }))) => {
            let finding = Finding::Refused(Sentence::Call(call), stopped.refusal);
            let refused = verdict(None, finding);
            return Decided::Ask(Question { refused, stopped, targets });
        }
        Ok((Cover::Pending(stopped), Err(_))) => stopped.refusal,
        Ok((Cover::Covered(_), Err(refusal))) | Err(refusal) => refusal,
    };
    Decided::Final(verdict(None, Finding::Refused(Sentence::Call(call), refusal)))
}

/// What each gate says of a sentence by itself: for explanations, and to predict
/// what a weaker monitor would do. Nothing can be executed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Findings {
    /// What would justify the call.
    pub justification: Label,
    /// Gates 1 to 4; past a sentence that does not parse, nothing.
    pub gates: [Option<Result<(), Refusal>>; 4],
    /// The record of the warrant that gate 3 lets the call pass by.
    pub warrant: Option<u64>,
}

/// Examines one sentence without deciding it.
pub fn examine(request: Request<'_, '_>, facts: &impl Facts, raw: &[u8]) -> Findings {
    let sentence = match parse(raw) {
        Ok(sentence) => sentence,
        Err(refusal) => {
            let gates = [Some(Err(refusal)), None, None, None];
            return Findings { justification: request.mark.label(), gates, warrant: None };
        }
    };
    let asked = sentence.asked();
    let justification = justification(asked, &request, facts);
    let granted = covered(asked, &request, facts);
    let targets = targets(asked, facts);
    let (label, arguments) = match &sentence {
        Sentence::Call(_) => {
            let label = match cover(asked, &targets, &justification, &request, facts) {
                Ok(Cover::Covered(warrant)) => Ok(warrant),
                Ok(Cover::Pending(Stopped { refusal, .. })) | Err(refusal) => Err(refusal),
            };
            (label, Some(asked.span(1)))
        }
        Sentence::Warrant(warrant) => {
            (mint(asked, warrant.uses, &targets, &request, facts).map(|_| None), None)
        }
    };
    let warrant = label.ok().flatten();
    let label = label.map(|_| ());
    let scope = located(asked, arguments, &targets, request.scope, facts).map(|_| ());
    Findings {
        justification,
        gates: [Some(Ok(())), Some(granted), Some(label), Some(scope)],
        warrant,
    }
}

/// A sentence of the grammar.
struct Parsed<'a, 's>(&'a Asked<'s>);

/// A sentence that the task's table covers, with its targets.
struct Granted<'a, 's> {
    asked: &'a Asked<'s>,
    targets: Targets<'s>,
}

/// A sentence of which gate 3 knows what it rests on.
struct Justified<'a, 's, C> {
    asked: &'a Asked<'s>,
    targets: Targets<'s>,
    /// The arguments or headers of a call, which are inside limits.
    arguments: Option<&'s str>,
    cover: C,
}

/// Whether gate 3 has a reason to let a call pass.
enum Cover {
    /// It has, and this is the warrant where one is needed.
    Covered(Option<u64>),
    Pending(Stopped),
}

/// What gate 3 has against a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped {
    /// The first refusal: for harm, or else for the leak.
    pub(crate) refusal: Refusal,
    /// What the destination is not cleared for.
    pub(crate) leak: Secrecy,
}

/// A sentence that passed all four gates.
#[derive(Debug)]
pub(crate) struct InScope<'s> {
    pub(crate) targets: [Option<Target<'s>>; TARGETS],
    pub(crate) scope: &'s Scope,
    pub(crate) terms: Terms,
    pub(crate) room: u64,
    /// What must stand at the target still, for a call that was confirmed.
    pub(crate) expects: Option<State>,
}

/// Gate 2: the table grants the primitive, the budget has a call left, the
/// handles and values are the task's own.
fn capability<'a, 's>(
    parsed: Parsed<'a, 's>,
    request: &Request<'_, '_>,
    facts: &impl Facts,
) -> Result<Granted<'a, 's>, Refusal> {
    let asked = parsed.0;
    covered(asked, request, facts)?;
    Ok(Granted { asked, targets: targets(asked, facts) })
}

fn covered(
    asked: &Asked<'_>,
    request: &Request<'_, '_>,
    facts: &impl Facts,
) -> Result<(), Refusal> {
    if !request.table.grants(asked.primitive) {
        return Err(Refusal::NotGranted);
    }
    if request.calls_left == 0 {
        return Err(Refusal::Budget);
    }
    let open = |(argument, value): (&registry::Argument, Argument<'_>)| match (argument.ty, value) {
        (Type::Handle(kind), Argument::Handle(number)) => request.table.get(number, kind).is_some(),
        _ => true,
    };
    let held = asked.held().all(|number| facts.held(number).is_some());
    if held && asked.arguments().all(open) { Ok(()) } else { Err(Refusal::NoSuchHandle) }
}

/// The join of the task's mark and the label of every held value that the
/// sentence names.
fn justification(asked: &Asked<'_>, request: &Request<'_, '_>, facts: &impl Facts) -> Label {
    let values = asked.held().filter_map(|number| facts.held(number));
    values.fold(request.mark.label(), |label, value| label.join(value.label))
}

/// Gate 3: an irreversible call needs a trusted reason, and what leaves the
/// machine a destination that is cleared for it; or a warrant.
fn label<'a, 's>(
    granted: Granted<'a, 's>,
    justification: &Label,
    request: &Request<'_, '_>,
    facts: &impl Facts,
    yes: Option<&Answer<'_>>,
) -> Result<Justified<'a, 's, Cover>, Refusal> {
    let Granted { asked, targets } = granted;
    let cover = match (cover(asked, &targets, justification, request, facts)?, yes) {
        (Cover::Pending(_), Some(_)) => Cover::Covered(None),
        (cover, _) => cover,
    };
    Ok(Justified { asked, targets, arguments: Some(asked.span(1)), cover })
}

/// Gate 3 for a warrant: the human named what it is to cover, before anything was read.
fn minted<'a, 's>(
    granted: Granted<'a, 's>,
    uses: u8,
    request: &Request<'_, '_>,
    facts: &impl Facts,
) -> Result<Justified<'a, 's, Mint>, Refusal> {
    let Granted { asked, targets } = granted;
    let cover = mint(asked, uses, &targets, request, facts)?;
    Ok(Justified { asked, targets, arguments: None, cover })
}

/// What a call with this justification rests on.
fn cover(
    asked: &Asked<'_>,
    targets: &Targets<'_>,
    justification: &Label,
    request: &Request<'_, '_>,
    facts: &impl Facts,
) -> Result<Cover, Refusal> {
    let harm = match justification.integrity {
        Integrity::System | Integrity::User => None,
        Integrity::Ingested => harmful(asked, targets, request.scope, facts),
    };
    let cleared = clearance(asked, targets, request);
    let leak = cleared.map_or(Secrecy::NONE, |cleared| justification.secrecy.without(cleared));
    let leaks = (leak != Secrecy::NONE).then_some(Refusal::NotCleared);
    let Some(refusal) = harm.or(leaks) else { return Ok(Cover::Covered(None)) };
    let stopped = Stopped { refusal, leak };
    let warrant = request.warrants.covering(asked, targets, &stopped, request, facts)?;
    Ok(warrant.map_or(Cover::Pending(stopped), |record| Cover::Covered(Some(record))))
}

/// What a justification from outside is not enough for.
fn harmful(
    asked: &Asked<'_>,
    targets: &Targets<'_>,
    scope: &Scope,
    facts: &impl Facts,
) -> Option<Refusal> {
    let harm = asked.primitive.row().harm;
    // A target with a defect names nothing that the task could have made.
    let mut own = true;
    for target in targets.iter().flatten() {
        let Ok(Target::Path(path)) = target else {
            own = false;
            continue;
        };
        if harm != Harm::None && is_protected(path) {
            return Some(Refusal::Protected);
        }
        own = own && facts.is_own_creation(path);
    }
    let store = || entry(targets, scope).is_some_and(|tool| tool.effect == Effect::Store);
    match harm {
        Harm::Destructive if own && asked.primitive == Primitive::FsDelete => None,
        Harm::Destructive => Some(Refusal::Destructive),
        Harm::Journaled if displaces(asked) && !own && facts.journal_room() == 0 => {
            Some(Refusal::Irreversible)
        }
        Harm::None if store() => Some(Refusal::Destructive),
        Harm::Journaled | Harm::None => None,
    }
}

/// Whether a journaled call can displace bytes. Making a name, adding to an
/// end and moving to a free name are undone by their record alone.
fn displaces(asked: &Asked<'_>) -> bool {
    let replaces = matches!(asked.argument(2), Argument::Choice(REPLACE));
    let primitive = asked.primitive;
    primitive == Primitive::FsEdit || (primitive == Primitive::FsWrite && replaces)
}

/// The second choice of `fs_write`'s mode.
const REPLACE: usize = 1;

/// What the other end of an egress call is cleared for; `None` where nothing
/// leaves the machine, and where no entry covers the call, which gate 4 refuses.
fn clearance(
    asked: &Asked<'_>,
    targets: &Targets<'_>,
    request: &Request<'_, '_>,
) -> Option<Secrecy> {
    match (asked.primitive.row().egress, asked.argument(0)) {
        (Egress::ByPeer, Argument::Handle(number)) => {
            request.table.get(number, registry::Kind::Any)?.peer
        }
        (Egress::Never | Egress::ByPeer, _) => None,
        (Egress::Always, _) => {
            terms(asked.primitive, targets, request.scope).map(|terms| terms.clear)
        }
    }
}

/// Gate 4: every target lies inside the scope.
fn scope<'s, C>(
    justified: Justified<'_, 's, C>,
    request: &Request<'_, 's>,
    facts: &impl Facts,
) -> (C, Result<InScope<'s>, Refusal>) {
    let Justified { asked, targets, arguments, cover } = justified;
    let located = located(asked, arguments, &targets, request.scope, facts);
    let passed = located.map(|terms| InScope {
        terms,
        targets: targets.map(|target| target.and_then(Result::ok)),
        scope: request.scope,
        room: facts.journal_room(),
        expects: None,
    });
    (cover, passed)
}

/// What the entries that cover the targets say, where each is covered.
fn located(
    asked: &Asked<'_>,
    arguments: Option<&str>,
    targets: &Targets<'_>,
    scope: &Scope,
    facts: &impl Facts,
) -> Result<Terms, Refusal> {
    // No grant names a model or a package yet, and no entry means no.
    if matches!(asked.primitive, Primitive::ModelGenerate | Primitive::AgentSpawn) {
        return Err(Refusal::OutOfScope);
    }
    let rows = asked.primitive.row().arguments.iter();
    let named = rows.filter(|argument| argument.role == Role::Target);
    let mut terms = Terms::default();
    for (argument, target) in named.zip(targets) {
        // What a selector comes to is located when its warrant is used.
        let Some(target) = target else { continue };
        match target.as_ref().map_err(|defect| *defect)? {
            Target::Path(path) => scope.check(path, argument.needs)?,
            // Compared together with the port that follows.
            Target::Host(_) => {}
            Target::Port(_) => terms = scope.check_net(&place(asked.primitive, targets)?)?,
            Target::Url(_) => {
                terms = scope.check_net(&place(asked.primitive, targets)?)?;
                arguments.map_or(Ok(()), |json| headers(json, facts).map(drop))?;
            }
            Target::Name(_) => {
                let tool = entry(targets, scope).ok_or(Refusal::OutOfScope)?;
                let commits = asked.primitive == Primitive::ToolCommit;
                if commits != (tool.effect == Effect::Commit) {
                    return Err(Refusal::OutOfScope);
                }
                arguments.map_or(Ok(()), |arguments| tool.check(arguments, facts))?;
                terms = tool.terms;
            }
        }
    }
    Ok(terms)
}
