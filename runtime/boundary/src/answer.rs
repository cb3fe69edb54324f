//! The human's answer to a question: recorded, and good for one call
//!
//! A question stands for the call that it was asked about and for nothing else.
//! Its answer becomes a record first and a witness then, and the call is decided
//! anew with the witness in hand: whatever changed while the human thought is
//! seen by all four gates.
//!
//! # Invariants
//! - I8: an [`Answer`] fits the one sentence of the one task that was asked
//!   about, carries the state of its target to the effect, and is spent by use.
//! - A sentence is asked about once a turn, and at most so many a turn.
//!
//! # Not here
//! Who shows a question and hears the answer (a board). Comparing the state with
//! the world (`synapse-primitives`).

use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use synapse_abi::code::Refusal;
use synapse_abi::limits::QUESTIONS;

use crate::gates::{Decided, Facts, Finding, Question, Request, Verdict, decide_with};
use crate::label::{Integrity, Label, Origin, Secrecy};
use crate::record::{Durability, Event, Kind, Log, Sink, SinkFailed, tag};

synapse_abi::numbered! {
    /// What a question came to. All but a yes are a no.
    pub enum Said: u8 {
        /// Yes, to this call.
        Yes = 1,
        /// No.
        No = 2,
        /// Something that is neither.
        Unrecognised = 3,
        /// Nobody is there to be asked, or the input ended.
        Nobody = 4,
        /// Nothing in time.
        TimedOut = 5,
        /// Nothing before the run was ended.
        Cancelled = 6,
    }
}

/// What stands at a target, as a digest that a board makes and compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State(pub [u8; 32]);

/// The questions of one turn, by the digests of their sentences.
#[derive(Debug, Default)]
pub struct Questions(Vec<[u8; 32]>);

impl Questions {
    /// Whether a question may be put to the human: not what was asked before in
    /// this turn, nor one too many.
    #[must_use]
    pub fn admit(&mut self, question: &Question<'_>) -> bool {
        let digest = digest(question.refused.raw);
        let new = self.0.len() < QUESTIONS && !self.0.contains(&digest);
        self.0.extend(new.then_some(digest));
        new
    }
}

impl<'s> Question<'s> {
    /// The refusal, where nobody said yes.
    #[must_use]
    pub fn declined(self) -> Verdict<'s> {
        let mut verdict = self.refused;
        if let Finding::Refused(_, refusal) = &mut verdict.finding {
            *refusal = Refusal::Declined;
        }
        verdict
    }
}

/// The witness that the human answered, and how. Nobody makes one, and nobody has
/// it twice:
///
/// ```compile_fail,E0451
/// use synapse_boundary::{Answer, Said};
/// fn forge(no: Answer) -> Answer { Answer { said: Said::Yes, ..no } }
/// ```
/// ```compile_fail,E0599
/// fn twice(answer: synapse_boundary::Answer) { let _ = (answer.clone(), answer); }
/// ```
/// ```
/// fn once(answer: synapse_boundary::Answer) { let _ = (answer.record(), answer); }
/// ```
#[derive(Debug)]
pub struct Answer {
    task: u64,
    digest: [u8; 32],
    state: Option<State>,
    said: Said,
    record: u64,
}

impl Answer {
    /// The number of its record.
    #[must_use]
    pub const fn record(&self) -> u64 {
        self.record
    }
}

impl<S: Sink> Log<S> {
    /// Writes the record of an answer. `state` is that of the call's first path
    /// when the question was shown, `console` names where it was heard.
    ///
    /// # Errors
    /// The sink failed: the question is gone and nothing may be done.
    pub fn answer(
        &mut self,
        question: Question<'_>,
        (said, console): (Said, &str),
        state: Option<State>,
        now: u64,
    ) -> Result<Answer, SinkFailed> {
        let refused = question.refused;
        let digest = digest(refused.raw);
        let mut tail = digest.to_vec();
        tail.push(said.number());
        tail.extend_from_slice(console.as_bytes());
        let event = Event {
            kind: Kind::Answer,
            task: refused.task,
            primitive: refused.primitive(),
            code: 0,
            label: Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE),
            cause: None,
            tail: Some((tag::ANSWER, &tail)),
            durability: Durability::Written,
        };
        let record = self.note(&event, now)?;
        Ok(Answer { task: refused.task, digest, state, said, record })
    }
}

/// Decides a sentence anew, after its answer. This is always final: a no, and an
/// answer to anything else, decline what still needs a yes.
pub fn decide_answered<'s>(
    request: Request<'s>,
    facts: &impl Facts,
    raw: &'s [u8],
    answer: Answer,
) -> Verdict<'s> {
    let fits = answer.task == request.task && answer.digest == digest(raw);
    let yes = Some(&answer).filter(|answer| fits && answer.said == Said::Yes);
    let mut verdict = match decide_with(request, facts, raw, yes) {
        Decided::Final(verdict) => verdict,
        Decided::Ask(question) => question.declined(),
    };
    verdict.cause = Some(answer.record);
    if let Finding::Passed(_, passed) = &mut verdict.finding {
        passed.expects = answer.state;
    }
    verdict
}

fn digest(sentence: &[u8]) -> [u8; 32] {
    Sha256::digest(sentence).into()
}
