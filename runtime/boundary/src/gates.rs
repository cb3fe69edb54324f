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
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{self, Egress, Harm, Primitive, Role, Type};

use crate::answer::{Answer, State};
use crate::capability::Table;
use crate::cite::Names;
use crate::headers::headers;
use crate::label::{Integrity, Label, Mark, Secrecy};
use crate::parse::parse;
use crate::path::NormalPath;
use crate::protected::is_protected;
use crate::scope::{Effect, Method, Place, Scope, Terms, Tool};
use crate::secret::blanks;
use crate::sentence::{Argument, Call, Sentence};
use crate::target::{Target, Targets, method};
use crate::url::{Host, Url};
use crate::warrant::{LET_OUT, Mint, Warrants, check_links, mint};

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
    /// Whether the grant that is asked for a child is inside the task's own.
    ///
    /// # Errors
    /// It is not: `OutOfScope`, `OverLimit`. Here nobody has children.
    fn attenuates(&self, _: &str) -> Result<(), Refusal> {
        Err(Refusal::OutOfScope)
    }
    /// Whether the board has a secret of this name for this place. Here there is none.
    fn serves(&self, _: &str, _: &Url<'_>) -> bool {
        false
    }

    /// The day of this decision in UTC, counted from 1970-01-01. Without one no date
    /// is inside a limit.
    fn today(&self) -> Option<i64> {
        None
    }
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
    /// The number of the fault that it holds instead.
    pub fault: Option<u16>,
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
            Self::Final(verdict) | Self::Ask(Question { refused: verdict }) => verdict,
        }
    }
}

/// A decision, closed until it is recorded.
///
/// ```compile_fail,E0616
/// fn open(verdict: synapse_boundary::Verdict<'_>) { let _ = verdict.judged; }
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
    /// What was asked for, or why that is no sentence.
    pub(crate) sentence: Result<Sentence<'s>, Refusal>,
    /// Gate 4 passed those of a permission.
    pub(crate) targets: Targets<'s>,
    /// What the gates found.
    pub(crate) judged: Finding<'s>,
}

/// What a verdict says.
#[derive(Debug)]
pub(crate) enum Finding<'s> {
    /// A gate refused it.
    Refused(Refusal),
    /// Gate 3 alone did, and a human may say yes.
    Stopped(Stopped),
    /// A call that passed all four gates.
    Passed(InScope<'s>),
    /// A warrant that did.
    Minted(Box<Mint>),
}

impl<'s> Verdict<'s> {
    /// One that refuses until the gates have spoken. It is filled in where it stands:
    /// who moves what was just written waits for it.
    #[inline]
    pub(crate) fn new(request: &Request<'_, 's>, raw: &'s [u8]) -> Self {
        Self {
            raw,
            task: request.task,
            justification: request.mark.label(),
            cause: None,
            sentence: parse(raw),
            targets: Targets::NONE,
            judged: Finding::Refused(Refusal::Malformed),
        }
    }

    /// What the gates are to look at, if it is a sentence. What justifies that is the
    /// join of the task's mark and the label of every held value that it names.
    fn case<'a, F: Facts>(
        &'a mut self,
        request: &'a Request<'a, 's>,
        facts: &'a F,
    ) -> Option<Case<'a, 's, F>> {
        if let Err(refusal) = self.sentence {
            self.judged = Finding::Refused(refusal);
        }
        let Sentence { call, uses } = self.sentence.as_ref().ok()?;
        for value in call.held().filter_map(|number| facts.held(number)) {
            self.justification = self.justification.join(value.label);
        }
        self.targets.fill(call, facts);
        let entry = match self.targets.at(0) {
            Some(Target::Name(name)) => request.scope.entry(name),
            _ => None,
        };
        let Self { targets, justification, .. } = self;
        Some(Case { call, uses: *uses, targets, entry, justification, request, facts })
    }

    /// Has all four gates speak, with the human's yes to this very sentence for a reason.
    pub(crate) fn judge(
        &mut self,
        request: &Request<'_, 's>,
        facts: &impl Facts,
        yes: Option<&Answer<'_>>,
    ) {
        let Some(case) = self.case(request, facts) else { return };
        let found = capability(Parsed(&case)).and_then(|granted| label(granted, yes)).map(scope);
        (self.cause, self.judged) = found.unwrap_or_else(|it| (None, Finding::Refused(it)));
    }

    /// The call that was asked for, if it was one.
    pub fn call(&self) -> Option<&Call<'s>> {
        let sentence = self.sentence.as_ref().ok()?;
        sentence.uses.is_none().then_some(&sentence.call)
    }

    /// What was answered; `None` for a permission.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match &self.judged {
            Finding::Refused(refusal) | Finding::Stopped(Stopped { refusal, .. }) => Some(*refusal),
            Finding::Passed(_) | Finding::Minted(_) => None,
        }
    }

    /// The primitive that it names; `None` where it was no sentence.
    pub fn primitive(&self) -> Option<Primitive> {
        Some(self.sentence.as_ref().ok()?.call.primitive)
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
}

impl<'s> Question<'s> {
    /// The call that was asked for.
    pub fn call(&self) -> Option<&Call<'s>> {
        self.refused.call()
    }

    /// The number of the task that asks.
    pub const fn task(&self) -> u64 {
        self.refused.task
    }

    /// Its target at this place, as gate 4 passed it.
    pub fn target(&self, place: usize) -> Option<&Target<'s>> {
        self.refused.targets.at(place)
    }

    /// Every reason for which it was stopped; the first is its refusal.
    pub fn refusals(&self) -> impl Iterator<Item = Refusal> {
        let judged = &self.refused.judged;
        let leaks = matches!(judged, Finding::Stopped(stopped) if stopped.leak != Secrecy::NONE);
        let first = self.refused.refusal();
        let second = leaks.then_some(Refusal::NotCleared).filter(|second| first != Some(*second));
        first.into_iter().chain(second)
    }

    /// What it was justified by.
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
    let mut verdict = Verdict::new(&request, raw);
    verdict.judge(&request, facts, None);
    if matches!(verdict.judged, Finding::Stopped(_)) {
        return Decided::Ask(Question { refused: verdict });
    }
    Decided::Final(verdict)
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
    let mut verdict = Verdict::new(&request, raw);
    let (mut gates, mut warrant) =
        ([verdict.sentence.as_ref().err().map(|it| Err(*it)), None, None, None], None);
    if let Some(case) = verdict.case(&request, facts) {
        let label = case.cover().and_then(|cover| match cover {
            Cover::Covered(warrant) => Ok(warrant),
            Cover::Minted(_) => Ok(None),
            Cover::Pending(Stopped { refusal, .. }) => Err(refusal),
        });
        warrant = label.ok().flatten();
        let located = case.located(&mut Terms::default());
        gates = [Ok(()), case.granted(), label.map(drop), located].map(Some);
    }
    Findings { justification: verdict.justification, gates, warrant }
}

/// A sentence before the gates: what it asks for, who asks, and what the kernel knows.
pub(crate) struct Case<'a, 's, F> {
    pub(crate) call: &'a Call<'s>,
    /// How often, where it asks for a warrant.
    pub(crate) uses: Option<u8>,
    pub(crate) targets: &'a Targets<'s>,
    /// The entry of the verb that it names.
    pub(crate) entry: Option<&'s Tool>,
    justification: &'a Label,
    pub(crate) request: &'a Request<'a, 's>,
    pub(crate) facts: &'a F,
}

/// A sentence of the grammar.
struct Parsed<C>(C);

/// A sentence that the task's table covers.
struct Granted<C>(C);

/// A sentence of which gate 3 knows what it rests on.
struct Justified<C>(C, Cover);

/// What gate 3 lets a sentence pass by.
enum Cover {
    /// Nothing is against the call, or this warrant is for it.
    Covered(Option<u64>),
    /// The human named what the warrant is to cover.
    Minted(Box<Mint>),
    /// Nothing yet: a human may say yes.
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
pub struct InScope<'s> {
    /// The scope that it is inside of.
    pub scope: &'s Scope,
    /// What the entries that cover its target say.
    pub terms: Terms,
    /// Bytes that the journal could take.
    pub room: u64,
    /// What must stand at the target still, for a call that was confirmed.
    pub(crate) expects: Option<State>,
}

/// Gate 2: the table grants the primitive, the budget has a call left, the
/// handles and values are the task's own.
fn capability<'c, 'a, 's, F: Facts>(
    Parsed(case): Parsed<&'c Case<'a, 's, F>>,
) -> Result<Granted<&'c Case<'a, 's, F>>, Refusal> {
    case.granted().map(|()| Granted(case))
}

/// Gate 3: an irreversible call needs a trusted reason, and what leaves the machine
/// a destination that is cleared for it; or a warrant, or a human's yes.
fn label<'c, 'a, 's, F: Facts>(
    Granted(case): Granted<&'c Case<'a, 's, F>>,
    yes: Option<&Answer<'_>>,
) -> Result<Justified<&'c Case<'a, 's, F>>, Refusal> {
    let cover = case.cover()?;
    let is_sworn = yes.is_some() && matches!(cover, Cover::Pending(_));
    Ok(Justified(case, if is_sworn { Cover::Covered(None) } else { cover }))
}

/// Gate 4: every target lies inside the scope. With what was found goes the warrant
/// that a permission rests on.
fn scope<'s, F: Facts>(
    Justified(case, cover): Justified<&Case<'_, 's, F>>,
) -> (Option<u64>, Finding<'s>) {
    let (scope, room) = (case.request.scope, case.facts.journal_room());
    let mut passed = InScope { scope, terms: Terms::default(), room, expects: None };
    match (cover, case.located(&mut passed.terms)) {
        (Cover::Covered(warrant), Ok(())) => (warrant, Finding::Passed(passed)),
        (Cover::Minted(mint), Ok(())) => (None, Finding::Minted(mint)),
        (Cover::Pending(stopped), Ok(())) => (None, Finding::Stopped(stopped)),
        (Cover::Pending(Stopped { refusal, .. }), Err(_)) | (_, Err(refusal)) => {
            (None, Finding::Refused(refusal))
        }
    }
}

impl<F: Facts> Case<'_, '_, F> {
    fn granted(&self) -> Result<(), Refusal> {
        let Request { table, calls_left, .. } = self.request;
        if !table.grants(self.call.primitive) {
            return Err(Refusal::NotGranted);
        }
        if *calls_left == 0 {
            return Err(Refusal::Budget);
        }
        let open = |(row, value): (&registry::Argument, _)| match (row.ty, value) {
            (Type::Handle(kind), Argument::Handle(number)) => table.get(number, kind).is_some(),
            _ => true,
        };
        let held = self.call.held().all(|number| self.facts.held(number).is_some());
        if held && self.call.arguments().all(open) { Ok(()) } else { Err(Refusal::NoSuchHandle) }
    }

    fn cover(&self) -> Result<Cover, Refusal> {
        if let Some(uses) = self.uses {
            return mint(self, uses).map(Box::new).map(Cover::Minted);
        }
        self.request.warrants.part(self.call)?;
        let named = self.request.warrants.naming(self);
        let is_trusted = self.justification.integrity != Integrity::Ingested;
        let harm = if is_trusted && named.is_none() { None } else { self.harm() };
        let leak = self
            .clearance()
            .map_or(Secrecy::NONE, |cleared| self.justification.secrecy.without(cleared));
        let leaks = (leak != Secrecy::NONE).then_some(Refusal::NotCleared);
        let leaves = self.call.primitive.row().egress != Egress::Never;
        let Some(refusal) = harm.filter(|_| !is_trusted).or(leaks) else {
            // What may be done once is done, though it needed no warrant yet.
            return Ok(Cover::Covered(named.filter(|_| leaves || harm.is_some())));
        };
        let kept = leak.without(LET_OUT).without(self.request.scope.let_out);
        if named.is_none() || refusal == Refusal::Protected || kept != Secrecy::NONE {
            return Ok(Cover::Pending(Stopped { refusal, leak }));
        }
        if leaves {
            check_links(self)?;
        }
        Ok(Cover::Covered(named))
    }

    /// What a justification from outside is not enough for.
    fn harm(&self) -> Option<Refusal> {
        let (primitive, harm) = (self.call.primitive, self.call.primitive.row().harm);
        let mut targets = self.targets.0.iter().flatten();
        let mut paths = targets.clone().flatten().filter_map(Target::path);
        if harm != Harm::None && paths.any(is_protected) {
            return Some(Refusal::Protected);
        }
        let is_own = |path| self.facts.is_own_creation(path);
        // A target with a defect names nothing that the task could have made.
        let mut own = || targets.all(|it| matches!(it, Ok(Target::Path(path)) if is_own(path)));
        // Making a name, adding to an end and moving to a free name are undone by
        // their record alone.
        let replaces = matches!(self.call.argument(2), Argument::Choice(REPLACE));
        let displaces =
            primitive == Primitive::FsEdit || (primitive == Primitive::FsWrite && replaces);
        let harms = match harm {
            Harm::Destructive => primitive != Primitive::FsDelete || !own(),
            Harm::Journaled => displaces && self.facts.journal_room() == 0 && !own(),
            Harm::None => {
                let stores = self.entry.is_some_and(|tool| tool.effect == Effect::Store);
                let mut terms = Terms::default();
                stores || (self.terms(&mut terms).is_ok() && terms.acts > 0)
            }
        };
        let journaled = harm == Harm::Journaled;
        harms.then_some(if journaled { Refusal::Irreversible } else { Refusal::Destructive })
    }

    /// What the other end of an egress call is cleared for; `None` where nothing
    /// leaves the machine, and where no entry covers the call, which gate 4 refuses.
    fn clearance(&self) -> Option<Secrecy> {
        match (self.call.primitive.row().egress, self.call.argument(0)) {
            (Egress::ByPeer, Argument::Handle(number)) => {
                self.request.table.get(number, registry::Kind::Any)?.peer
            }
            (Egress::Never | Egress::ByPeer, _) => None,
            (Egress::Always, _) => {
                let mut terms = Terms::default();
                self.terms(&mut terms).ok().map(|()| terms.clear)
            }
        }
    }

    /// Whether each of the targets is covered, and under which terms.
    fn located(&self, terms: &mut Terms) -> Result<(), Refusal> {
        let Self { call, uses, targets, request, facts, .. } = self;
        // No grant names a model yet, and no entry means no.
        if call.primitive == Primitive::ModelGenerate {
            return Err(Refusal::OutOfScope);
        }
        // A child is bounded by its grant, whatever its package is.
        if call.primitive == Primitive::AgentSpawn {
            facts.attenuates(call.span(2))?;
        }
        let rows = call.primitive.row().arguments.iter().filter(|row| row.role == Role::Target);
        // What a selector comes to is located when its warrant is used.
        for (row, target) in rows.zip(&targets.0) {
            match target {
                Some(Err(defect)) => return Err(*defect),
                Some(Ok(Target::Path(path))) => request.scope.check(path, row.needs)?,
                _ => {}
            }
        }
        self.terms(terms)?;
        let commits = call.primitive == Primitive::ToolCommit;
        match (self.entry, targets.at(0)) {
            (Some(tool), _) if commits != (tool.effect == Effect::Commit) => {
                Err(Refusal::OutOfScope)
            }
            // What a warrant leaves open is inside its limits when it is used.
            _ if uses.is_some() => Ok(()),
            (Some(tool), _) => tool.check(call.span(1), *facts),
            (None, Some(Target::Url(_))) => headers(call.span(1), *facts).map(drop),
            (None, _) => Ok(()),
        }
    }

    /// Fills in what the entries say that cover its place on the network, or its verb;
    /// of paths they say nothing.
    fn terms(&self, terms: &mut Terms) -> Result<(), Refusal> {
        let (scope, primitive) = (self.request.scope, self.call.primitive);
        *terms = match &self.targets.0 {
            [None | Some(Ok(Target::Path(_))), _] => return Ok(()),
            [Some(Err(defect)), _] => return Err(*defect),
            [Some(Ok(Target::Url(url))), _] => {
                let url = Url::parse(url)?;
                let place = Place::of(&url, method(primitive));
                let bare = scope.check_net(&place)?;
                let secrets: Vec<_> = blanks(self.call)?.iter().map(|blank| blank.name).collect();
                let carried = || scope.check_net(&Place { secrets: &secrets, ..place }).ok();
                let served = secrets.iter().all(|name| self.facts.serves(name, &url));
                let terms = if secrets.is_empty() { Some(bare) } else { carried() };
                terms.filter(|_| served).ok_or(Refusal::Secret)?
            }
            [Some(Ok(Target::Host(host))), Some(Ok(Target::Port(port)))] => {
                let (host, method) = (Host::parse(host)?, Method::Listen);
                let port = u16::try_from(*port).map_err(|_| Refusal::Malformed)?;
                scope.check_net(&Place { host, port, method, path: None, secrets: &[] })?
            }
            _ if primitive == Primitive::AgentSpawn => return Ok(()),
            _ => self.entry.ok_or(Refusal::OutOfScope)?.terms,
        };
        Ok(())
    }
}

/// The second choice of `fs_write`'s mode.
const REPLACE: usize = 1;
