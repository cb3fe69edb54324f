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

use synapse_abi::code::{Fault, Refusal};
use synapse_abi::registry::{self, Egress, Harm, Primitive, Role, Type};

use crate::capability::Table;
use crate::headers::headers;
use crate::label::{Integrity, Label, Mark, Secrecy};
use crate::parse::parse;
use crate::path::NormalPath;
use crate::protected::is_protected;
use crate::scope::{Effect, Scope, Terms};
use crate::sentence::{Argument, Asked, Call, Sentence};
use crate::target::{TARGETS, Target, Targets, entry, place, targets, terms};

/// What a task brings to a decision.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The task's number, for the record.
    pub task: u64,
    /// What its memory has seen.
    pub mark: &'a Mark,
    /// What it may call, and the handles that it holds.
    pub table: &'a Table,
    /// What its grant covers.
    pub scope: &'a Scope,
    /// Calls it may still make.
    pub calls_left: u64,
}

/// What the kernel's own stores say. The world itself is not touched.
pub trait Facts {
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
}

impl<'s> Verdict<'s> {
    /// The call that was asked for, if it was one.
    #[must_use]
    pub const fn call(&self) -> Option<&Call<'s>> {
        match &self.finding {
            Finding::Passed(call, _) | Finding::Refused(Sentence::Call(call), _) => Some(call),
            Finding::Refused(Sentence::Warrant(_), _) | Finding::Unreadable(_) => None,
        }
    }

    /// The primitive that it names; `None` where it was no sentence.
    #[must_use]
    pub fn primitive(&self) -> Option<Primitive> {
        match &self.finding {
            Finding::Passed(call, _) => Some(call.primitive()),
            Finding::Refused(sentence, _) => Some(sentence.primitive()),
            Finding::Unreadable(_) => None,
        }
    }

    /// The refusal; `None` for a permission.
    pub(crate) const fn refusal(&self) -> Option<Refusal> {
        match &self.finding {
            Finding::Unreadable(refusal) | Finding::Refused(_, refusal) => Some(*refusal),
            Finding::Passed(..) => None,
        }
    }
}

/// A call that gates 1, 2 and 4 pass and gate 3 has no reason for. It holds the
/// refusal that stands unless a human says yes; no permission can be made of it.
///
/// ```compile_fail,E0308
/// # use synapse_boundary::{Decided, Facts, Log, Sink, gates::Question};
/// fn permit<S: Sink>(log: &mut Log<S>, facts: &impl Facts, question: Question<'_>) {
///     let _ = log.commit(question, facts, 0);
/// }
/// ```
/// ```
/// # use synapse_boundary::{Decided, Facts, Log, Sink, gates::Question};
/// fn permit<S: Sink>(log: &mut Log<S>, facts: &impl Facts, question: Question<'_>) {
///     let _ = log.commit(Decided::Ask(question).unasked(), facts, 0);
/// }
/// ```
#[derive(Debug)]
pub struct Question<'s> {
    refused: Verdict<'s>,
    refusal: Refusal,
}

impl<'s> Question<'s> {
    /// The call that was asked for.
    #[must_use]
    pub const fn call(&self) -> Option<&Call<'s>> {
        self.refused.call()
    }

    /// Why it was stopped.
    #[must_use]
    pub const fn refusal(&self) -> Refusal {
        self.refusal
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
pub fn decide<'s>(request: Request<'s>, facts: &impl Facts, raw: &'s [u8]) -> Decided<'s> {
    let task = request.task;
    let sentence = match parse(raw) {
        Ok(sentence) => sentence,
        Err(refusal) => {
            let (justification, finding) = (request.mark.label(), Finding::Unreadable(refusal));
            return Decided::Final(Verdict { raw, task, justification, finding });
        }
    };
    let justification = justification(sentence.asked(), &request, facts);
    let verdict = |finding| Verdict { raw, task, justification, finding };
    let Sentence::Call(call) = sentence else {
        let refusal = covered(sentence.asked(), &request, facts).err();
        let refusal = refusal.unwrap_or_else(|| unminted(request.mark));
        return Decided::Final(verdict(Finding::Refused(sentence, refusal)));
    };
    let passed = capability(Parsed(&call), &request, facts)
        .map(|granted| label(granted, &justification, &request, facts))
        .and_then(|justified| scope(justified, &request, facts));
    match passed {
        Ok(Passed::Covered(passed)) => Decided::Final(verdict(Finding::Passed(call, passed))),
        Ok(Passed::Pending(refusal)) => {
            let refused = verdict(Finding::Refused(Sentence::Call(call), refusal));
            Decided::Ask(Question { refused, refusal })
        }
        Err(refusal) => Decided::Final(verdict(Finding::Refused(Sentence::Call(call), refusal))),
    }
}

/// What each gate says of a sentence by itself: for explanations, and to predict
/// what a weaker monitor would do. Nothing can be executed on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Findings {
    /// What would justify the call.
    pub justification: Label,
    /// Gates 1 to 4; past a sentence that does not parse, nothing.
    pub gates: [Option<Result<(), Refusal>>; 4],
}

/// Examines one sentence without deciding it.
pub fn examine(request: Request<'_>, facts: &impl Facts, raw: &[u8]) -> Findings {
    let sentence = match parse(raw) {
        Ok(sentence) => sentence,
        Err(refusal) => {
            let gates = [Some(Err(refusal)), None, None, None];
            return Findings { justification: request.mark.label(), gates };
        }
    };
    let justification = justification(sentence.asked(), &request, facts);
    let granted = covered(sentence.asked(), &request, facts);
    let (label, scope) = match &sentence {
        Sentence::Call(call) => {
            let targets = targets(call, facts);
            let stopped = stopped(call, &targets, &justification, &request, facts);
            let label = stopped.map_or(Ok(()), Err);
            (label, Some(located(call, &targets, request.scope, facts).map(|_| ())))
        }
        Sentence::Warrant(_) => (Err(unminted(request.mark)), None),
    };
    Findings { justification, gates: [Some(Ok(())), Some(granted), Some(label), scope] }
}

/// A call of the grammar.
struct Parsed<'a, 's>(&'a Call<'s>);

/// A call that the task's table covers, with its targets.
struct Granted<'a, 's> {
    call: &'a Call<'s>,
    targets: Targets<'s>,
}

/// A call of which gate 3 knows whether it has a reason.
struct Justified<'a, 's> {
    call: &'a Call<'s>,
    targets: Targets<'s>,
    cover: Cover,
}

/// Whether gate 3 has a reason to let a call pass.
enum Cover {
    Covered,
    Pending(Refusal),
}

/// A call that passed gates 1, 2 and 4, and whether gate 3 too.
enum Passed<'s> {
    Covered(InScope<'s>),
    Pending(Refusal),
}

/// A call that passed all four gates.
#[derive(Debug)]
pub(crate) struct InScope<'s> {
    pub(crate) targets: [Option<Target<'s>>; TARGETS],
    pub(crate) scope: &'s Scope,
    pub(crate) terms: Terms,
    pub(crate) room: u64,
}

/// Gate 2: the table grants the primitive, the budget has a call left, the
/// handles and values are the task's own.
fn capability<'a, 's>(
    parsed: Parsed<'a, 's>,
    request: &Request<'_>,
    facts: &impl Facts,
) -> Result<Granted<'a, 's>, Refusal> {
    let call = parsed.0;
    covered(&call.asked, request, facts)?;
    Ok(Granted { call, targets: targets(call, facts) })
}

fn covered(asked: &Asked<'_>, request: &Request<'_>, facts: &impl Facts) -> Result<(), Refusal> {
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
fn justification(asked: &Asked<'_>, request: &Request<'_>, facts: &impl Facts) -> Label {
    let values = asked.held().filter_map(|number| facts.held(number));
    values.fold(request.mark.label(), |label, value| label.join(value.label))
}

/// Gate 3: an irreversible call needs a trusted reason, and what leaves the
/// machine a destination that is cleared for it.
fn label<'a, 's>(
    granted: Granted<'a, 's>,
    justification: &Label,
    request: &Request<'_>,
    facts: &impl Facts,
) -> Justified<'a, 's> {
    let Granted { call, targets } = granted;
    let cover = match stopped(call, &targets, justification, request, facts) {
        None => Cover::Covered,
        Some(refusal) => Cover::Pending(refusal),
    };
    Justified { call, targets, cover }
}

/// Why no warrant is minted: not after reading, and not by this version. The
/// held value that a selector reads from is not what asks for the warrant.
fn unminted(mark: &Mark) -> Refusal {
    match mark.label().integrity {
        Integrity::Ingested => Refusal::Tainted,
        Integrity::System | Integrity::User => Refusal::Unsupported,
    }
}

/// Why a call with this justification may not go ahead by itself.
fn stopped(
    call: &Call<'_>,
    targets: &Targets<'_>,
    justification: &Label,
    request: &Request<'_>,
    facts: &impl Facts,
) -> Option<Refusal> {
    let harmful = match justification.integrity {
        Integrity::System | Integrity::User => None,
        Integrity::Ingested => harmful(call, targets, request.scope, facts),
    };
    let cleared = clearance(call, targets, request);
    let leaks = cleared.is_some_and(|cleared| !justification.secrecy.is_within(cleared));
    harmful.or(leaks.then_some(Refusal::NotCleared))
}

/// What a justification from outside is not enough for.
fn harmful(
    call: &Call<'_>,
    targets: &Targets<'_>,
    scope: &Scope,
    facts: &impl Facts,
) -> Option<Refusal> {
    let harm = call.primitive().row().harm;
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
        Harm::Destructive if own && call.primitive() == Primitive::FsDelete => None,
        Harm::Destructive => Some(Refusal::Destructive),
        Harm::Journaled if displaces(call) && !own && facts.journal_room() == 0 => {
            Some(Refusal::Irreversible)
        }
        Harm::None if store() => Some(Refusal::Destructive),
        Harm::Journaled | Harm::None => None,
    }
}

/// Whether a journaled call can displace bytes. Making a name, adding to an
/// end and moving to a free name are undone by their record alone.
fn displaces(call: &Call<'_>) -> bool {
    let replaces = matches!(call.argument(2), Argument::Choice(REPLACE));
    let primitive = call.primitive();
    primitive == Primitive::FsEdit || (primitive == Primitive::FsWrite && replaces)
}

/// The second choice of `fs_write`'s mode.
const REPLACE: usize = 1;

/// What the other end of an egress call is cleared for; `None` where nothing
/// leaves the machine, and where no entry covers the call, which gate 4 refuses.
fn clearance(call: &Call<'_>, targets: &Targets<'_>, request: &Request<'_>) -> Option<Secrecy> {
    match (call.primitive().row().egress, call.argument(0)) {
        (Egress::ByPeer, Argument::Handle(number)) => {
            request.table.get(number, registry::Kind::Any)?.peer
        }
        (Egress::Never | Egress::ByPeer, _) => None,
        (Egress::Always, _) => terms(call, targets, request.scope).map(|terms| terms.clear),
    }
}

/// Gate 4: every target lies inside the scope.
fn scope<'s>(
    justified: Justified<'_, 's>,
    request: &Request<'s>,
    facts: &impl Facts,
) -> Result<Passed<'s>, Refusal> {
    let Justified { call, targets, cover } = justified;
    let located = located(call, &targets, request.scope, facts);
    match (cover, located) {
        (Cover::Covered, Ok(terms)) => Ok(Passed::Covered(InScope {
            terms,
            targets: targets.map(|target| target.and_then(Result::ok)),
            scope: request.scope,
            room: facts.journal_room(),
        })),
        (Cover::Pending(refusal), Ok(_)) => Ok(Passed::Pending(refusal)),
        (Cover::Covered, Err(refusal)) | (Cover::Pending(refusal), Err(_)) => Err(refusal),
    }
}

/// What the entries that cover the targets say, where each is covered.
fn located(
    call: &Call<'_>,
    targets: &Targets<'_>,
    scope: &Scope,
    facts: &impl Facts,
) -> Result<Terms, Refusal> {
    // No grant names a model or a package yet, and no entry means no.
    if matches!(call.primitive(), Primitive::ModelGenerate | Primitive::AgentSpawn) {
        return Err(Refusal::OutOfScope);
    }
    let arguments = call.primitive().row().arguments.iter();
    let named = arguments.filter(|argument| argument.role == Role::Target);
    let mut terms = Terms::default();
    for (argument, target) in named.zip(targets.iter().flatten()) {
        match target.as_ref().map_err(|defect| *defect)? {
            Target::Path(path) => scope.check(path, argument.needs)?,
            // Compared together with the port that follows.
            Target::Host(_) => {}
            Target::Url(_) => {
                terms = scope.check_net(&place(call, targets)?)?;
                headers(call.span(1), facts)?;
            }
            Target::Port(_) => terms = scope.check_net(&place(call, targets)?)?,
            Target::Name(_) => {
                let tool = entry(targets, scope).ok_or(Refusal::OutOfScope)?;
                let commits = call.primitive() == Primitive::ToolCommit;
                if commits != (tool.effect == Effect::Commit) {
                    return Err(Refusal::OutOfScope);
                }
                tool.check(call.span(1), facts)?;
                terms = tool.terms;
            }
        }
    }
    Ok(terms)
}
