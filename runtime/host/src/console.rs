//! The console of a run: what an agent says, and what it asks.
//!
//! A question is shown behind the column that no guest can print, under a line
//! that this program writes: which agent asks, and whether it has read anything
//! that others wrote. One line typed after the question is the answer.
//!
//! # Invariants
//! - Only a terminal answers: a pipe or a file is not a human.
//! - What was typed before the question, and a paste of several lines, is no
//!   answer to it.
//!
//! # Not here
//! Which label the answer has (`synapse_primitives::execute`). Confirmations,
//! which have rules of their own (`human`).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use synapse_kernel::words;
use synapse_primitives::Fault;
use synapse_primitives::disk::Screen;
use synapse_primitives::platform::Asker;

use crate::input::{Unread, forget, is_pasted, line};
use crate::render::Terminal;

/// How long a question waits for its answer, of either kind.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// A terminal, and who speaks on it.
#[derive(Debug)]
pub struct Console {
    /// Where it shows.
    pub terminal: Terminal,
    /// What the person called the agent.
    pub agent: String,
    /// Set to end the run, and a question with it.
    pub cancel: Arc<AtomicBool>,
    /// How long a question waits.
    pub patience: Duration,
}

impl Screen for Console {
    fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        self.terminal.show(bytes)
    }

    fn ask(&self, question: &[u8], asker: Asker) -> Result<Vec<u8>, Fault> {
        if !self.terminal.is_seen() {
            return Err(Fault::Closed);
        }
        self.ask_on(io::stdin().as_fd(), question, asker)
    }
}

impl Console {
    /// Asks, and reads the answer from this terminal.
    ///
    /// # Errors
    /// `Closed` where it is no terminal or its input ends, `TimedOut`,
    /// `Cancelled`, `NotText`.
    pub fn ask_on(
        &self,
        input: BorrowedFd<'_>,
        question: &[u8],
        asker: Asker,
    ) -> Result<Vec<u8>, Fault> {
        if !input.is_terminal() {
            return Err(Fault::Closed);
        }
        let until = Instant::now() + self.patience;
        self.terminal.say(&self.heading(asker))?;
        self.terminal.show(question)?;
        loop {
            // What was typed before the question was seen does not answer it.
            forget(input).ok_or(Fault::Closed)?;
            self.terminal.say("your answer, in one line: ")?;
            let line = line(input, || {
                if self.cancel.load(Ordering::Relaxed) {
                    return Some(Fault::Cancelled);
                }
                (Instant::now() >= until).then_some(Fault::TimedOut)
            });
            let line = match line {
                Ok(line) => line,
                Err(Unread::Closed) => return Err(Fault::Closed),
                Err(Unread::Stopped(why)) => {
                    if why == Fault::TimedOut {
                        self.terminal.say("\nno answer came in time\n")?;
                    }
                    return Err(why);
                }
            };
            if is_pasted(input) {
                self.terminal.say("more than one line is no answer; type one line\n")?;
                continue;
            }
            return if str::from_utf8(&line).is_ok() { Ok(line) } else { Err(Fault::NotText) };
        }
    }

    /// The line above a question: who asks, and what it has read.
    #[must_use]
    pub fn heading(&self, asker: Asker) -> String {
        format!("{}\n", words::asks(&self.agent, asker))
    }
}
