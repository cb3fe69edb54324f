//! Answering a run's question from another terminal
//!
//! The same rules as at the run's own: the question is shown to its end, and
//! only a `yes` that is typed after that is one.
//!
//! # Not here
//! Which runs ask (`locks`, `control`). Hearing (`human`).

use core::time::Duration;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Instant;

use synapse_boundary::Said;

use crate::control::{self, Request, Word};
use crate::human::hear;
use crate::render::{self, Terminal};

/// What came of a run's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It was answered so.
    Answered(Word),
    /// It was given up, or answered at another terminal.
    Gone,
    /// The run asks nothing.
    Nothing,
    /// Nobody answered here; it stands.
    Unanswered,
}

/// Shows the question of the run in this directory and hands on what is typed.
///
/// # Errors
/// The run does not answer, or took no answer.
pub fn answer(run_dir: &Path, terminal: Terminal) -> io::Result<Came> {
    let columns = u16::try_from(terminal.columns()).unwrap_or(u16::MAX);
    let Some(question) = control::question(run_dir, columns)? else { return Ok(Came::Nothing) };
    let agent = control::ask(run_dir, Request::Status)?.agent;
    let heading = format!("{} asks for a yes:\n", render::line(&agent, 80));
    let (mut looked, mut gone) = (Instant::now(), false);
    let mut stop = || {
        if looked.elapsed() > PERIOD {
            looked = Instant::now();
            // A run that has ended answers nothing.
            let status = control::ask(run_dir, Request::Status).ok();
            gone = status.and_then(|status| status.question) != Some(question.number);
        }
        gone.then_some(Said::Cancelled)
    };
    let stdin = io::stdin();
    if !stdin.is_terminal() || !terminal.is_seen() {
        return Ok(Came::Unanswered);
    }
    let word = match hear(terminal, stdin.as_fd(), &(heading + &question.text), &mut stop) {
        Said::Yes => Word::Yes,
        Said::No => Word::No,
        Said::Unrecognised => Word::Other,
        Said::Cancelled | Said::TimedOut => return Ok(Came::Gone),
        Said::Nobody => return Ok(Came::Unanswered),
    };
    control::reply(run_dir, question.number, word)?;
    Ok(Came::Answered(word))
}

/// How often it is asked whether the question stands still.
const PERIOD: Duration = Duration::from_secs(1);
