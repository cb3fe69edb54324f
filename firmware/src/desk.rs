//! Questions of agents, one at a time, and the human's answers to them
//!
//! An agent waits here until a line was typed for it. Who asks, and what it has
//! read, stands above each question, in the image's own words; the question
//! itself stands behind the column that no guest can print.
//!
//! # Invariants
//! - What was typed before a question was shown is no answer to it.
//! - A question ends: by an answer, by the end of its run, or by time.
//!
//! # Not here
//! Reading lines (`console`). Which label an answer has (`primitives`).

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use spin::Mutex;
use synapse_kernel::{render, words};
use synapse_primitives::Fault;
use synapse_primitives::platform::Asker;

use crate::board::COLUMNS;
use crate::{clock, println, serial};

/// Where questions wait for the human.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// The first one is what the human sees.
    waiting: Mutex<VecDeque<Question>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Question {
    number: u64,
    text: String,
    /// When it is given up; nothing, while it is not shown.
    until: Option<Duration>,
    answer: Option<String>,
}

/// A question whose asker waits; one that waits no more has no question.
struct Standing<'d> {
    desk: &'d Desk,
    number: u64,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.desk.waiting.lock().retain(|question| question.number != self.number);
    }
}

impl Desk {
    /// Puts a question, and waits for its answer.
    pub(crate) async fn ask(
        &self,
        agent: &str,
        question: &[u8],
        asker: Asker,
        cancel: &AtomicBool,
    ) -> Result<Vec<u8>, Fault> {
        let mut text = words::asks(agent, asker);
        text.push('\n');
        text.push_str(&render::wrapped(question, COLUMNS));
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let question = Question { number, text, until: None, answer: None };
        self.waiting.lock().push_back(question);
        let _standing = Standing { desk: self, number };
        poll_fn(|_| self.look(number, cancel).map_or(Poll::Pending, Poll::Ready)).await
    }

    /// What a question has come to, if it has.
    fn look(&self, number: u64, cancel: &AtomicBool) -> Option<Result<Vec<u8>, Fault>> {
        if cancel.load(Ordering::Relaxed) {
            return Some(Err(Fault::Cancelled));
        }
        let mut waiting = self.waiting.lock();
        let first = waiting.front_mut().filter(|first| first.number == number)?;
        if let Some(answer) = first.answer.take() {
            return Some(Ok(answer.into_bytes()));
        }
        let late = first.until.is_some_and(|until| clock::passed() >= until);
        late.then(|| {
            println!("\nno answer came in time");
            Err(Fault::TimedOut)
        })
    }

    /// Shows the question whose turn it is, once `clear` has dropped what was typed
    /// before.
    pub(crate) fn show(&self, clear: impl FnOnce()) {
        let mut waiting = self.waiting.lock();
        if let Some(first) = waiting.front_mut().filter(|first| first.until.is_none()) {
            clear();
            first.until = Some(clock::passed().saturating_add(PATIENCE));
            serial::show("\n");
            serial::show(&first.text);
            serial::show(PROMPT);
        }
    }

    /// Whether the next line answers a question.
    pub(crate) fn is_asking(&self) -> bool {
        self.waiting
            .lock()
            .front()
            .is_some_and(|first| first.until.is_some() && first.answer.is_none())
    }

    /// Answers it, with the one line that was typed.
    pub(crate) fn answer(&self, line: &str) {
        if let Some(first) = self.waiting.lock().front_mut() {
            first.answer = Some(line.to_string());
        }
    }

    /// Says why a paste is no answer, and asks again.
    pub(crate) fn ask_again() {
        println!("more than one line is no answer; type one line");
        serial::show(PROMPT);
    }
}

const PROMPT: &str = "your answer, in one line: ";
/// How long a question waits for its answer.
const PATIENCE: Duration = Duration::from_mins(5);
