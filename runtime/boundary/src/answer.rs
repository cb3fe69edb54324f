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
//!
//! # Not here
//! How often a turn may ask (the kernel). Who shows a question and hears the
//! answer (a board). Comparing the state with
//! the world (`synapse-primitives`).

use synapse_abi::code::Refusal;

use crate::gates::{Facts, Finding, Question, Request, Verdict};
use crate::record::{Recorder, SinkFailed};

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

impl<'s> Question<'s> {
    /// The refusal, where nobody said yes.
    #[must_use]
    pub fn declined(mut self) -> Verdict<'s> {
        self.refused.judged = Finding::Refused(Refusal::Declined);
        self.refused
    }
}

/// The witness that the human answered, and how. Nobody makes one, and nobody has
/// it twice:
///
/// ```compile_fail,E0451
/// use synapse_boundary::{Answer, Said};
/// fn forge(no: Answer<'_>) -> Answer<'_> { Answer { said: Said::Yes, ..no } }
/// ```
/// ```compile_fail,E0599
/// fn twice(answer: synapse_boundary::Answer<'_>) { let _ = (answer.clone(), answer); }
/// ```
/// ```
/// fn once(answer: synapse_boundary::Answer<'_>) { let _ = (answer.record(), answer); }
/// ```
#[derive(Debug)]
pub struct Answer<'s> {
    task: u64,
    raw: &'s [u8],
    state: Option<State>,
    said: Said,
    record: u64,
}

impl Answer<'_> {
    /// The number of its record.
    pub const fn record(&self) -> u64 {
        self.record
    }
}

/// Has the record of an answer taken. `state` is that of the call's first path
/// when the question was shown; with what was said goes the console's name.
///
/// # Errors
/// There is no record: the question is gone and nothing may be done.
pub fn answer<'s>(
    question: Question<'s>,
    heard: (Said, &str),
    state: Option<State>,
    log: &mut impl Recorder,
    now: u64,
) -> Result<Answer<'s>, SinkFailed> {
    let record = log.answered(&question, heard, now)?;
    let Verdict { task, raw, .. } = question.refused;
    Ok(Answer { task, raw, state, said: heard.0, record })
}

/// Decides a sentence anew, after its answer. This is always final: a no, and an
/// answer to anything else, decline what still needs a yes.
pub fn decide_answered<'s>(
    request: Request<'_, 's>,
    facts: &impl Facts,
    raw: &'s [u8],
    answer: Answer<'_>,
) -> Verdict<'s> {
    let fits = answer.task == request.task && answer.raw == raw;
    let yes = Some(&answer).filter(|answer| fits && answer.said == Said::Yes);
    let mut verdict = Verdict::new(&request, raw);
    verdict.judge(&request, facts, yes);
    verdict.cause = verdict.cause.or(Some(answer.record));
    match &mut verdict.judged {
        Finding::Passed(passed) => passed.expects = answer.state,
        judged @ Finding::Stopped(_) => *judged = Finding::Refused(Refusal::Declined),
        Finding::Refused(_) | Finding::Minted(_) => {}
    }
    verdict
}
