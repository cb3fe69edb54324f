//! Asking the human: what stands between a question and its decision
//!
//! A board that has a human offers [`Confirm`]; a task without one refuses what
//! only they could allow. While the question stands, the world may move: its
//! target's state goes along with the answer, and the call is decided anew.
//!
//! # Invariants
//! - I3: a wait that is given up commits the refusal.
//! - I8: what was asked about in this turn is not asked again.
//! - What a yes could not do is not asked about: without room in the journal
//!   nothing is displaced, whoever says so.
//!
//! # Not here
//! The question's words (`asking`), what an answer is worth (the boundary), the
//! terminal (boards).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::pin::Pin;

use sha2::{Digest, Sha256};
use synapse_abi::code::Refusal;
use synapse_boundary::gates::Question;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::target::Target;
use synapse_boundary::{
    Decided, Facts, Integrity, Label, Origin, Request, Said, Secrecy, Verdict, Warrants, answer,
    commit, decide_answered,
};
use synapse_primitives::{Platform, Standing};

use crate::asking::Asking;
use crate::record::Sink;
use crate::task::SharedLog;

/// A human, as a board reaches them.
pub trait Confirm: Send + Sync {
    /// Shows a question and hears the answer. Questions are put one at a time.
    fn ask<'a>(&'a self, asking: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>>;
}

/// An answer, and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// What was said.
    pub said: Said,
    /// The console, in at most a few words, for the record.
    pub console: String,
}

/// Questions that one turn may put to the human.
const QUESTIONS: usize = 5;
/// Answers that are neither yes nor no before the task is ended.
const UNRECOGNISED: u32 = 3;

/// What a task knows of its human, and of this turn's questions.
#[derive(Default)]
pub(crate) struct Asker {
    pub(crate) human: Option<Arc<dyn Confirm>>,
    /// What was asked about in this turn.
    asked: Vec<[u8; 32]>,
    unrecognised: u32,
}

/// What a question needs of its task.
pub(crate) struct Scene<'a, 's, P, S, F> {
    pub(crate) platform: &'a P,
    pub(crate) log: &'a SharedLog<S>,
    pub(crate) facts: &'a F,
    /// Sets the clock by which the call is decided anew.
    pub(crate) tick: &'a (dyn Fn() + Sync),
    pub(crate) request: Request<'a, 's>,
    pub(crate) sentence: &'s [u8],
}

impl Asker {
    /// Whether the human gave up on answering.
    pub(crate) const fn is_over(&self) -> bool {
        self.unrecognised >= UNRECOGNISED
    }

    /// In another turn it may be asked about again. Whoever gave up stays away.
    pub(crate) fn next_turn(&mut self) {
        self.asked.clear();
    }

    /// Puts a question to the human, if they may be asked, and decides the call
    /// anew. What is learned by that has a label of its own.
    ///
    /// # Errors
    /// The log took no answer: nothing may be done.
    pub(crate) async fn ask<'s, P, S, F>(
        &mut self,
        question: Question<'s>,
        scene: &Scene<'_, 's, P, S, F>,
    ) -> Result<(Verdict<'s>, Label), SinkFailed>
    where
        P: Platform,
        S: Sink,
        F: Facts + Sync,
    {
        let Some(human) = self.human.as_deref().filter(|_| can_help(&question)) else {
            return Ok((Decided::Ask(question).unasked(), Label::SYSTEM));
        };
        let digest = Sha256::digest(scene.sentence).into();
        if self.asked.len() >= QUESTIONS || self.asked.contains(&digest) {
            return Ok((question.declined(), Label::SYSTEM));
        }
        self.asked.push(digest);
        let Scene { platform, log, facts, tick, request, sentence } = *scene;
        let mut waiting = Waiting { question: Some(question), scene };
        let Some(question) = &waiting.question else { return Err(SinkFailed) };
        let found = match path(question) {
            Some(path) => Some(platform.state(path).await),
            None => None,
        };
        let state = found.map(|found| found.unwrap_or_else(Standing::unseen).state);
        let heard = match Asking::of(question, facts, found) {
            Some(asking) => Some(human.ask(asking).await),
            None => None,
        };
        let Some(question) = waiting.question.take() else { return Err(SinkFailed) };
        let Some(Heard { said, console }) = heard else {
            return Ok((question.declined(), Label::SYSTEM));
        };
        self.unrecognised += u32::from(said == Said::Unrecognised);
        let heard = (said, console.as_str());
        let now = platform.now_ms();
        let answer = answer(question, heard, state, &mut *log.lock(), now)?;
        let origin = Origin::record(answer.record());
        let human = Label::new(Integrity::User, Secrecy::PROMPT, origin);
        tick();
        Ok((decide_answered(request, facts, sentence, answer), human))
    }
}

/// Whether a yes makes the call possible.
fn can_help(question: &Question<'_>) -> bool {
    question.refusals().all(|refusal| refusal != Refusal::Irreversible)
}

/// The first path that a call would act on.
fn path<'q>(question: &'q Question<'_>) -> Option<&'q str> {
    match question.target(0)? {
        Target::Path(path) => Some(path.as_str()),
        Target::Url(_) | Target::Host(_) | Target::Port(_) | Target::Name(_) => None,
    }
}

/// A question that is waited for. Where nobody waits any longer, it is refused.
struct Waiting<'w, 's, P: Platform, S: Sink, F: Facts> {
    question: Option<Question<'s>>,
    scene: &'w Scene<'w, 's, P, S, F>,
}

impl<P: Platform, S: Sink, F: Facts> Drop for Waiting<'_, '_, P, S, F> {
    fn drop(&mut self) {
        if let Some(question) = self.question.take() {
            let Scene { platform, log, facts, .. } = *self.scene;
            // A log that takes nothing has said so to whoever asked it before.
            // It spends nothing.
            let (log, none) = (&mut *log.lock(), &mut Warrants::default());
            let _ = commit(question.declined(), log, none, facts, platform.now_ms());
        }
    }
}
