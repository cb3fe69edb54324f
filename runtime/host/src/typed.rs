//! Lines that a human types, each for a turn
//!
//! # Invariants
//! - I6: only a line that was typed after it was asked for starts a turn: nothing
//!   that waited already, and nothing of a paste.
//!
//! # Not here
//! What a turn is shown of it (`synapse_kernel::session`).

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;

use crate::input::{forget, is_pasted, line};
use crate::render::Terminal;

/// Whether somebody can type here, and see what for.
#[must_use]
pub fn is_possible(terminal: Terminal) -> bool {
    terminal.is_seen() && io::stdin().is_terminal()
}

/// The next line; nothing where the input has ended or the run was.
pub fn next(terminal: Terminal, cancel: &AtomicBool) -> Option<String> {
    let stdin = io::stdin();
    let input = stdin.as_fd();
    loop {
        if cancel.load(Ordering::Relaxed) {
            return None;
        }
        forget(input)?;
        terminal.say("\nyour next line, or Ctrl-D: ").ok()?;
        let typed = line(input, || cancel.load(Ordering::Relaxed).then_some(())).ok()?;
        if is_pasted(input) {
            terminal
                .say("more than one line came at once, so that nothing was begun; type one line\n")
                .ok()?;
            continue;
        }
        match String::from_utf8(typed) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => return Some(line),
            Err(_) => terminal.say("that is not UTF-8, so that nothing was begun\n").ok()?,
        }
    }
}
