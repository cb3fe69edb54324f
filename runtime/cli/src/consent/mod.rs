//! The consent screen: everything is shown, then one answer
//!
//! # Not here
//! What is shown, and what an answer means (`synapse_host::package`).

mod full;
mod plain;

use rustix::termios::tcgetwinsize;
use std::env;
use std::io::{self, IsTerminal as _};
use synapse_host::package::{self, Consent};

/// Shows the question and reads the answers; nothing is a no. `alone` says what to do
/// where there is no terminal.
pub(crate) fn ask(
    question: &mut Consent,
    plain: bool,
    name: &str,
    alone: &str,
) -> Result<Option<()>, String> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(format!("`{name}` is not installed: {alone}"));
    }
    let size = match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        }
        Ok(_) | Err(_) => (80, 24),
    };
    let dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if plain || dumb || size.0 < full::COLUMNS || size.1 < full::ROWS {
        let agreed = package::ask(question, size, &mut plain::Plain)?;
        Ok(agreed.then_some(()))
    } else {
        full::ask(question)
    }
}
