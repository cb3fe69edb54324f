//! A human at a terminal, asked for a yes
//!
//! The question is shown page by page. Half a second after its end everything
//! typed so far is thrown away, and the next line is the answer: `yes`, or a no.
//!
//! # Invariants
//! - Only `yes`, typed at a terminal after the question was whole on it, is a yes.
//! - A wait ends: by an answer here or elsewhere, by time, with the run.
//!
//! # Not here
//! What a question says (`synapse_kernel::asking`), and what an answer is worth
//! (`synapse_boundary::answer`).

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::termios::ttyname;
use synapse_boundary::Said;
use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::{Confirm, Heard};
use tokio::task;

use crate::desk::{Desk, LEAST};
use crate::input::{STEP, Unread, forget, is_pasted, line};
use crate::render::{self, Terminal};

/// Whoever may say yes to what a run's agent asks for.
#[derive(Clone, Debug)]
pub struct Human {
    /// Where questions are shown.
    pub terminal: Terminal,
    /// What the person called the agent.
    pub agent: String,
    /// Set to end the run, and a question with it.
    pub cancel: Arc<AtomicBool>,
    /// How long a question waits.
    pub patience: Duration,
    /// Where other consoles find the question.
    pub desk: Arc<Desk>,
    /// Held while a question stands.
    pub turn: Arc<Mutex<()>>,
}

impl Confirm for Human {
    fn ask<'a>(&'a self, asking: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>> {
        let human = self.clone();
        Box::pin(async move {
            // A thread that waits for a hand must not hold up the others.
            let left = Left(Arc::default());
            let over = Arc::clone(&left.0);
            let heard = task::spawn_blocking(move || {
                let stdin = io::stdin();
                let seen = human.terminal.is_seen() && stdin.is_terminal();
                human.wait(asking, seen.then(|| stdin.as_fd()), &over)
            });
            heard.await.unwrap_or_else(|_| nobody())
        })
    }
}

/// Says that nobody waits any longer.
struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Human {
    /// Puts one question, at a terminal if there is one, and waits.
    #[must_use]
    pub fn wait(&self, asking: Asking, input: Option<BorrowedFd<'_>>, over: &AtomicBool) -> Heard {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let asking = Arc::new(asking);
        let standing = self.desk.put(Arc::clone(&asking), self.patience);
        let mut stop = || {
            if self.cancel.load(Ordering::Relaxed) || over.load(Ordering::Relaxed) {
                Some(Said::Cancelled)
            } else if Instant::now() >= standing.until {
                Some(Said::TimedOut)
            } else {
                self.desk.heard().map(|heard| heard.said)
            }
        };
        let said = if let Some(input) = input {
            let heading = format!("\n{} asks for a yes:\n", render::line(&self.agent, 80));
            let text = heading + &asking.text(self.terminal.columns());
            hear(self.terminal, input, &text, &mut stop)
        } else {
            loop {
                if let Some(said) = stop() {
                    break said;
                }
                thread::sleep(STEP);
            }
        };
        let elsewhere = self.desk.clear();
        if input.is_some() {
            let _ = self.terminal.say(told(said, elsewhere.is_some()));
        }
        elsewhere.unwrap_or_else(|| Heard { said, console: console(input) })
    }
}

/// Shows a question and hears what is said to it, unless it is stopped.
pub(crate) fn hear(
    terminal: Terminal,
    input: BorrowedFd<'_>,
    text: &str,
    stop: &mut dyn FnMut() -> Option<Said>,
) -> Said {
    heard(terminal, input, text, stop).unwrap_or_else(|why| match why {
        Unread::Closed => Said::Nobody,
        Unread::Stopped(said) => said,
    })
}

fn heard(
    terminal: Terminal,
    input: BorrowedFd<'_>,
    text: &str,
    stop: &mut dyn FnMut() -> Option<Said>,
) -> Result<Said, Unread<Said>> {
    let say = |text: &str| terminal.say(text).map_err(|_| Unread::Closed);
    // A page leaves the line that asks for the next one.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let pages = lines.chunks(terminal.rows().saturating_sub(2).max(FEWEST));
    let count = pages.len();
    for (page, number) in pages.zip(1..) {
        say(&page.concat())?;
        if number == count {
            break;
        }
        forget(input).ok_or(Unread::Closed)?;
        say(&format!("page {number} of {count}; Enter shows the next, anything else is a no: "))?;
        if !line(input, &mut *stop)?.is_empty() {
            return Ok(Said::No);
        }
    }
    let shown = Instant::now();
    while shown.elapsed() < LEAST {
        thread::sleep(STEP);
        if let Some(said) = stop() {
            return Err(Unread::Stopped(said));
        }
    }
    // What was typed before the question was read does not answer it.
    forget(input).ok_or(Unread::Closed)?;
    say("yes and Enter allows this, once; anything else is a no: ")?;
    let typed = line(input, stop)?;
    Ok(match &typed[..] {
        _ if is_pasted(input) => Said::Unrecognised,
        b"yes" => Said::Yes,
        b"" | b"n" | b"no" => Said::No,
        _ => Said::Unrecognised,
    })
}

fn told(said: Said, elsewhere: bool) -> &'static str {
    match (said, elsewhere) {
        (Said::Yes, true) => "\nallowed once, from another terminal\n",
        (_, true) => "\nnot allowed, from another terminal\n",
        (Said::Yes, false) => "allowed once\n",
        (Said::No, false) => "not allowed\n",
        (Said::Unrecognised, false) => {
            "not allowed: that is neither yes nor no, and the third such answer ends the run\n"
        }
        (Said::Nobody, false) => "\nnot allowed: the input ended\n",
        (Said::TimedOut, false) => "\nnot allowed: no answer came in time\n",
        (Said::Cancelled, false) => "\nnot allowed: the run was ended\n",
    }
}

/// Where an answer was heard, for the record.
fn console(input: Option<BorrowedFd<'_>>) -> String {
    let name = input.and_then(|input| ttyname(input, Vec::new()).ok());
    name.map_or_else(|| "no terminal".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn nobody() -> Heard {
    Heard { said: Said::Nobody, console: console(None) }
}

/// Lines of a page on the lowest screen.
const FEWEST: usize = 3;
