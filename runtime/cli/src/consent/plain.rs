//! The terminal of the consent screen in plain text
//!
//! Nothing that was typed before a page was shown is an answer to it.
//!
//! # Not here
//! What is shown, and what an answer means (`synapse_kernel::package`).

use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, BufRead as _, Write as _};
use synapse_host::package::Terminal;

/// Standard input and output, which are a terminal.
pub(super) struct Plain;

impl Terminal for Plain {
    fn show(&mut self, text: &str) -> Result<(), String> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|why| format!("the terminal shows nothing: {why}\ntry another one"))
    }

    fn answer(&mut self, prompt: &str) -> Result<Option<String>, String> {
        tcflush(io::stdin(), QueueSelector::IFlush)
            .map_err(|why| format!("the terminal does not answer: {why}\ntry another one"))?;
        self.show(prompt)?;
        let mut line = String::new();
        let got = io::stdin().lock().read_line(&mut line);
        // What is no text is no answer.
        Ok(got.ok().filter(|got| *got > 0).map(|_| line))
    }
}
