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

use alloc::borrow::Cow;

use synapse_abi::code::{Fault, Refusal};
use synapse_abi::registry::{Harm, Primitive, Role, Type};

use crate::label::{Integrity, Label, Mark};
use crate::parse::parse;
use crate::path::NormalPath;
use crate::protected::is_protected;
use crate::record::primitive_of;
use crate::scope::{Rights, Scope};
use crate::sentence::{Argument, Call, Sentence};

/// Targets that one call can have.
const TARGETS: usize = 2;

/// What a task brings to a decision.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The task's number, for the record.
    pub task: u64,
    /// What its memory has seen.
    pub mark: &'a Mark,
    /// The primitives its table grants: bit number = id.
    pub granted: u32,
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
    /// The fault that it holds instead.
    pub fault: Option<Fault>,
}

/// A decision, closed until it is recorded.
///
/// ```compile_fail
/// fn open(verdict: synapse_boundary::Verdict<'_>) { let _ = verdict.finding; }
/// ```
/// ```
/// fn open(verdict: synapse_boundary::Verdict<'_>) { let _ = verdict; }
/// ```
#[derive(Debug)]
pub struct Verdict<'s> {
    pub(crate) raw: &'s [u8],
    pub(crate) sentence: Option<Sentence<'s>>,
    pub(crate) task: u64,
    pub(crate) justification: Label,
    pub(crate) finding: Result<InScope<'s>, Refusal>,
}

impl<'s> Verdict<'s> {
    /// What was asked for; `None` where it was no sentence.
    #[must_use]
    pub const fn sentence(&self) -> Option<&Sentence<'s>> {
        self.sentence.as_ref()
    }
}

/// Decides one sentence. Pure: the same arguments give the same answer.
pub fn decide<'s>(request: Request<'s>, facts: &impl Facts, sentence: &'s [u8]) -> Verdict<'s> {
    let mut verdict = Verdict {
        raw: sentence,
        sentence: None,
        task: request.task,
        justification: request.mark.label(),
        finding: Err(Refusal::Malformed),
    };
    verdict.finding = match grammar(sentence) {
        Err(refusal) => Err(refusal),
        Ok(parsed) => {
            verdict.sentence = Some(parsed.0.clone());
            capability(parsed, &request, facts).and_then(|granted| {
                let justified = label(granted, &request, facts);
                verdict.justification = justified.justification;
                scope(justified, &request, facts)
            })
        }
    };
    verdict.finding = verdict.finding.and_then(InScope::covered);
    verdict
}

struct Parsed<'s>(Sentence<'s>);

struct Granted<'s>(Call<'s>);

struct Justified<'s> {
    call: Call<'s>,
    justification: Label,
    cover: Cover,
}

/// Whether gate 3 has a reason to let a call pass.
enum Cover {
    Covered,
    Pending(Refusal),
}

/// A call that passed all four gates, or all but gate 3.
#[derive(Debug)]
pub(crate) struct InScope<'s> {
    pub(crate) call: Call<'s>,
    pub(crate) targets: [Option<NormalPath<'s>>; TARGETS],
    pub(crate) scope: &'s Scope,
    pub(crate) room: u64,
    pending: Option<Refusal>,
}

impl InScope<'_> {
    fn covered(self) -> Result<Self, Refusal> {
        match self.pending {
            None => Ok(self),
            Some(refusal) => Err(refusal),
        }
    }
}

/// Gate 1.
fn grammar(sentence: &[u8]) -> Result<Parsed<'_>, Refusal> {
    parse(sentence).map(Parsed)
}

/// Gate 2: the table grants the primitive, the handles and values are the
/// task's own, and the budget has a call left.
fn capability<'s>(
    parsed: Parsed<'s>,
    request: &Request<'s>,
    facts: &impl Facts,
) -> Result<Granted<'s>, Refusal> {
    let primitive = primitive_of(&parsed.0);
    let bit = 1u32.checked_shl(u32::from(primitive.id())).unwrap_or(0);
    if request.granted & bit == 0 {
        return Err(Refusal::NotGranted);
    }
    if request.calls_left == 0 {
        return Err(Refusal::Budget);
    }
    let call = match parsed.0 {
        Sentence::Call(call) => call,
        Sentence::Warrant(_) => return Err(Refusal::Unsupported),
    };
    let handle = call.arguments().any(|(_, value)| matches!(value, Argument::Handle(_)));
    if handle || call.held().any(|number| facts.held(number).is_none()) {
        return Err(Refusal::NoSuchHandle);
    }
    Ok(Granted(call))
}

/// Gate 3: an irreversible call needs a trusted reason.
fn label<'s>(granted: Granted<'s>, request: &Request<'s>, facts: &impl Facts) -> Justified<'s> {
    let call = granted.0;
    let values = call.held().filter_map(|number| facts.held(number));
    let justification = values.fold(request.mark.label(), |label, value| label.join(value.label));
    let cover = match justification.integrity {
        Integrity::System | Integrity::User => Cover::Covered,
        Integrity::Ingested => untrusted(&call, facts),
    };
    Justified { call, justification, cover }
}

/// What a justification from outside is enough for.
fn untrusted(call: &Call<'_>, facts: &impl Facts) -> Cover {
    let mut own = true;
    for target in targets(call, facts) {
        // A path with a defect names nothing that the task could have made.
        let Ok(path) = target else {
            own = false;
            continue;
        };
        if call.primitive().row().harm != Harm::None && is_protected(&path) {
            return Cover::Pending(Refusal::Protected);
        }
        own = own && facts.is_own_creation(&path);
    }
    match (call.primitive().row().harm, call.primitive()) {
        (Harm::Destructive, Primitive::FsDelete) if own => Cover::Covered,
        (Harm::Destructive, _) => Cover::Pending(Refusal::Destructive),
        (Harm::Journaled, _) if displaces(call) && !own && facts.journal_room() == 0 => {
            Cover::Pending(Refusal::Irreversible)
        }
        (Harm::Journaled | Harm::None, _) => Cover::Covered,
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

/// Gate 4: every target lies inside the scope.
fn scope<'s>(
    justified: Justified<'s>,
    request: &Request<'s>,
    facts: &impl Facts,
) -> Result<InScope<'s>, Refusal> {
    let call = justified.call;
    let pending = match justified.cover {
        Cover::Covered => None,
        Cover::Pending(refusal) => Some(refusal),
    };
    let found = locate(&call, request.scope, facts);
    match (pending, found) {
        (_, Ok(targets)) => {
            let room = facts.journal_room();
            Ok(InScope { call, targets, scope: request.scope, room, pending })
        }
        (None, Err(refusal)) | (Some(refusal), Err(_)) => Err(refusal),
    }
}

fn locate<'s>(
    call: &Call<'s>,
    scope: &Scope,
    facts: &impl Facts,
) -> Result<[Option<NormalPath<'s>>; TARGETS], Refusal> {
    let mut found = [const { None }; TARGETS];
    if !has_scope(call) {
        return Err(Refusal::OutOfScope);
    }
    let slots = found.iter_mut().zip(needed(call.primitive()));
    for ((slot, rights), target) in slots.zip(targets(call, facts)) {
        let path = target?;
        scope.check(&path, rights)?;
        *slot = Some(path);
    }
    Ok(found)
}

/// Whether this version's grants can cover the call's targets: paths, and
/// calls that have no target. A model, a package, a host or a tool has no
/// entry, and no entry means no.
fn has_scope(call: &Call<'_>) -> bool {
    call.primitive() != Primitive::ModelGenerate
        && call
            .arguments()
            .all(|(argument, _)| argument.role != Role::Target || argument.ty == Type::Path)
}

/// The rights that a primitive needs, target by target.
fn needed(primitive: Primitive) -> [Rights; TARGETS] {
    let (first, second) = match primitive {
        Primitive::FsRead | Primitive::FsSearch => (Rights::READ, Rights::NONE),
        Primitive::FsList => (Rights::LIST, Rights::NONE),
        Primitive::FsWrite | Primitive::FsEdit => (Rights::WRITE, Rights::NONE),
        Primitive::FsMove => (Rights::DELETE, Rights::WRITE),
        Primitive::FsDelete => (Rights::DELETE, Rights::NONE),
        Primitive::ConsoleWrite
        | Primitive::ConsoleAsk
        | Primitive::ClockRead
        | Primitive::ValueRead
        | Primitive::ValuePick
        | Primitive::ModelGenerate
        | Primitive::AgentSpawn
        | Primitive::AgentWait
        | Primitive::ChannelCreate
        | Primitive::ChannelWrite
        | Primitive::ChannelRead
        | Primitive::ChannelClose
        | Primitive::ChannelGrant
        | Primitive::NetListen
        | Primitive::NetAccept
        | Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit => (Rights::NONE, Rights::NONE),
    };
    [first, second]
}

/// The paths that a call names, normal or with their defect. A held path is
/// resolved here; bytes that are no text name nothing.
fn targets<'s>(
    call: &Call<'s>,
    facts: &impl Facts,
) -> impl Iterator<Item = Result<NormalPath<'s>, Refusal>> {
    call.arguments().filter(|(argument, _)| argument.ty == Type::Path).map(|(_, value)| match value
    {
        Argument::Text(text) => NormalPath::parse(text.decode()),
        Argument::Held(number) => {
            let held = facts.held(number).ok_or(Refusal::NoSuchHandle)?;
            let text = core::str::from_utf8(held.bytes).map_err(|_| Refusal::BadName)?;
            NormalPath::parse(Cow::Owned(text.into()))
        }
        Argument::Absent
        | Argument::Uint(_)
        | Argument::Choice(_)
        | Argument::Handle(_)
        | Argument::Json(_)
        | Argument::Selector(_)
        | Argument::Content(_)
        | Argument::Prompt(_) => Err(Refusal::Malformed),
    })
}
