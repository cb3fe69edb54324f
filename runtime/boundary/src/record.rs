//! Recording: a verdict is opened by the record of it, and by nothing else.
//!
//! Committing is the only way to open a [`Verdict`] and the only way to make an
//! [`Authorized`], so that no permission and no refusal exists without its
//! record.
//!
//! # Invariants
//! - I2: an [`Authorized`] is made in one place, from a verdict that all four
//!   gates passed, after its record was taken.
//! - I3: one decision record an attempt; if it is not taken, nothing is opened.
//!
//! # Not here
//! What a record looks like, and where it is kept (`synapse-kernel`).

use alloc::vec::Vec;
use core::net::IpAddr;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Harm, Primitive, Type};

use crate::answer::{Said, State};
use crate::gates::{Facts, Finding, InScope, Question, Stopped, Verdict};
use crate::label::{Integrity, Label, Secrecy};
use crate::path::NormalPath;
use crate::scope::{Place, Rights};
use crate::secret::blanks;
use crate::sentence::{Call, Sentence};
use crate::target::{TARGETS, Target, Targets, method};
use crate::url::Url;
use crate::warrant::Warrants;

/// What keeps the records of a run.
pub trait Recorder {
    /// Takes one record, `now` in milliseconds since 1970: its number.
    ///
    /// # Errors
    /// It was not taken, and none will be after it.
    fn record(
        &mut self,
        entry: &Entry<'_>,
        facts: &impl Facts,
        now: u64,
    ) -> Result<u64, SinkFailed>;

    /// Takes the record of a question's answer, and where it was heard.
    ///
    /// # Errors
    /// As of [`Recorder::record`].
    fn answered(
        &mut self,
        question: &Question<'_>,
        heard: (Said, &str),
        now: u64,
    ) -> Result<u64, SinkFailed>;
}

/// The record was not taken: nothing may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkFailed;

/// What the record of one decision has to tell.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The task's number.
    pub task: u64,
    /// What the task submitted.
    pub raw: &'a [u8],
    /// The primitive that it names; `None` where it is no sentence.
    pub primitive: Option<Primitive>,
    /// The call that it is; `None` for a warrant too.
    pub call: Option<&'a Call<'a>>,
    /// The call's targets that are normal, in order.
    pub targets: [Option<&'a Target<'a>>; TARGETS],
    /// What was answered; `None` for a permission.
    pub refusal: Option<Refusal>,
    /// What it was justified by.
    pub justification: Label,
    /// The record that it rests on.
    pub cause: Option<u64>,
}

/// Has the one record of a decision taken, then opens it.
///
/// # Errors
/// There is no record: the verdict is gone and nothing may be done.
pub fn commit<'s>(
    mut verdict: Verdict<'s>,
    log: &mut impl Recorder,
    warrants: &mut Warrants,
    facts: &impl Facts,
    now: u64,
) -> Result<Opened<'s>, SinkFailed> {
    let Verdict { raw, task, justification, cause, .. } = verdict;
    if warrants.is_spent(&verdict) {
        verdict.judged = Finding::Refused(Refusal::Spent);
    }
    let targets = core::array::from_fn(|place| verdict.targets.at(place));
    let (primitive, call, refusal) = (verdict.primitive(), verdict.call(), verdict.refusal());
    let entry = Entry { task, raw, primitive, call, targets, refusal, justification, cause };
    let record = log.record(&entry, facts, now)?;
    let Verdict { sentence, targets, judged, .. } = verdict;
    Ok(match (judged, sentence) {
        (_, Err(refusal)) => Opened::Refused(Refused { refusal, label: Label::SYSTEM, record }),
        (Finding::Passed(passed), Ok(Sentence { call, .. })) => {
            warrants.spend(cause);
            let mut moved = Warrants::NONE;
            if let Ok(Some([gone, left])) = warrants.part(&call) {
                (moved, *warrants) = (gone, left);
            }
            Opened::Permitted(Authorized {
                call,
                targets,
                passed,
                record,
                justification,
                cause,
                moved,
            })
        }
        (Finding::Minted(mint), _) => {
            warrants.add(*mint, record);
            Opened::Minted(record)
        }
        (Finding::Refused(refusal) | Finding::Stopped(Stopped { refusal, .. }), Ok(sentence)) => {
            let label = told(&sentence, refusal, justification);
            Opened::Refused(Refused { refusal, label, record })
        }
    })
}

/// What learning a refusal does to the mark.
fn told(sentence: &Sentence<'_>, refusal: Refusal, justification: Label) -> Label {
    let Sentence { call, uses } = sentence;
    // What the table says is the kernel's own; the rest may have depended on a value
    // that the call names.
    let depends = call.held().next().is_some() && refusal.number() / 100 != 2;
    let is_path = call.arguments().next().is_some_and(|(row, _)| row.ty == Type::Path);
    match (uses, refusal) {
        (None, _) if depends => justification,
        // Whether a line names a path depends on what files there are.
        (Some(_), Refusal::NotCited | Refusal::Spent) if is_path => {
            Label { secrecy: Secrecy::FILES, ..Label::SYSTEM }
        }
        _ => Label::SYSTEM,
    }
}

/// A verdict after its record.
#[expect(clippy::large_enum_variant, reason = "made and used up on the stack within one crossing")]
#[derive(Debug)]
pub enum Opened<'s> {
    /// May be executed, once.
    Permitted(Authorized<'s>),
    /// A warrant of this record may be used from now on.
    Minted(u64),
    /// A gate said no.
    Refused(Refused),
}

/// A recorded refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which refusal.
    pub refusal: Refusal,
    /// What learning it does to the mark: a refusal that depended on a held
    /// value carries that value's label.
    pub label: Label,
    /// The record's number.
    pub record: u64,
}

/// The witness that a call passed all gates and is recorded. Nobody makes one:
///
/// ```compile_fail,E0451
/// use synapse_boundary::Authorized;
/// fn forge(call: Authorized<'_>, record: u64) -> Authorized<'_> { Authorized { record, ..call } }
/// ```
/// ```
/// use synapse_boundary::Authorized;
/// fn forge(call: Authorized<'_>, record: u64) -> Authorized<'_> { call }
/// ```
///
/// Nor two of one:
///
/// ```compile_fail,E0599
/// fn twice(call: synapse_boundary::Authorized<'_>) { let _ = (call.clone(), call); }
/// ```
/// ```
/// fn twice(call: synapse_boundary::Authorized<'_>) { let _ = (call.record(), call); }
/// ```
#[derive(Debug)]
pub struct Authorized<'s> {
    call: Call<'s>,
    targets: Targets<'s>,
    passed: InScope<'s>,
    record: u64,
    justification: Label,
    cause: Option<u64>,
    moved: Warrants,
}

impl<'s> Authorized<'s> {
    /// The call.
    pub fn call(&self) -> &Call<'s> {
        &self.call
    }

    /// The number of its decision record.
    pub const fn record(&self) -> u64 {
        self.record
    }

    /// What it was justified by.
    pub const fn justification(&self) -> Label {
        self.justification
    }

    /// Its first or second target.
    pub fn target(&self, index: usize) -> Option<&Target<'s>> {
        self.targets.at(index)
    }

    /// Its first or second target, if that is a path.
    pub fn path(&self, index: usize) -> Option<&NormalPath<'s>> {
        self.target(index)?.path()
    }

    /// Its target, if that is a URL.
    pub fn url(&self) -> Option<Url<'_>> {
        let Target::Url(url) = self.target(0)? else { return None };
        Url::parse(url).ok()
    }

    /// Whether its URL's host may be connected to at this address, which then has
    /// these compartments. What gate 3 let pass because the host is cleared for it,
    /// the address must be cleared for too.
    #[must_use]
    pub fn reaches(&self, address: IpAddr) -> Option<Secrecy> {
        let blanks = blanks(&self.call).ok()?;
        let secrets: Vec<_> = blanks.iter().map(|blank| blank.name).collect();
        let url = self.url()?;
        let place = Place { secrets: &secrets, ..Place::of(&url, method(self.call.primitive())) };
        let terms = self.passed.scope.check_resolved(address, &place).ok()?;
        let relied = self.justification.secrecy.meet(self.passed.terms.clear);
        relied.is_within(terms.clear).then_some(terms.own)
    }

    /// What it was decided by.
    pub const fn passed(&self) -> &InScope<'s> {
        &self.passed
    }

    /// The warrant or the answer that it rests on, where it needed one.
    pub const fn cause(&self) -> Option<u64> {
        self.cause
    }

    /// The uses of warrants that it moves to a child, which its task has no more.
    #[must_use]
    pub fn take_moved(&mut self) -> Warrants {
        core::mem::take(&mut self.moved)
    }

    /// What must stand at its first path still, for a call that was confirmed.
    pub const fn expects(&self) -> Option<State> {
        self.passed.expects
    }

    /// Whether a path found below a target is covered too: a move or a removal
    /// of a directory is one of all that is in it.
    #[must_use]
    pub fn covers(&self, path: &str, rights: Rights) -> bool {
        NormalPath::parse(path.into()).is_ok_and(|path| {
            let tainted = self.justification.integrity == Integrity::Ingested;
            let harmful = self.call.primitive().row().harm != Harm::None;
            // Who confirmed a removal saw the tree that it takes.
            let sworn =
                self.passed.expects.is_some() && self.call.primitive() == Primitive::FsDelete;
            let protected = tainted && harmful && !sworn && crate::protected::is_protected(&path);
            self.passed.scope.check(&path, rights).is_ok() && !protected
        })
    }
}
