//! Lines that the human types
//!
//! # Invariants
//! - A line comes from a device that no guest can write to: what guests show
//!   goes out, and nothing of it comes back in.
//!
//! # Not here
//! What a line asks for (`shell`).

use alloc::string::String;
use core::time::Duration;

use crate::keyboard::Keyboard;
use crate::{clock, serial};

/// Bytes of a line; what is longer is not taken.
const LINE: usize = 1000;
/// A hand does not begin a second line in this time; a paste has it ready.
const PASTE: Duration = Duration::from_millis(30);
/// Others are not kept waiting for a paste without end.
const LONGEST: Duration = Duration::from_secs(2);

/// Shows that a line may be typed.
pub(crate) fn prompt() {
    serial::show("synapse> ");
}

/// What a key did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The line is complete.
    Line(String),
    /// Ctrl-C: what runs is to end.
    Interrupt,
}

/// The line being typed.
#[derive(Debug, Default)]
pub(crate) struct Console {
    line: String,
    keyboard: Keyboard,
}

impl Console {
    /// Forgets what was typed so far, also what has not been looked at.
    pub(crate) fn forget(&mut self) {
        self.line.clear();
        while self.byte().is_some() {}
    }

    /// Whether more comes than a hand could have typed since: a paste. It is thrown
    /// away to its end, because a rest of it would be taken for the next line.
    pub(crate) fn has_more(&mut self) -> bool {
        let (mut more, now) = (false, clock::passed());
        let (mut until, last) = (now.saturating_add(PASTE), now.saturating_add(LONGEST));
        while clock::passed() < until.min(last) {
            if let Some(byte) = self.byte() {
                // Some terminals end a line with two characters.
                more |= byte != b'\n';
                until = clock::passed().saturating_add(PASTE);
            }
        }
        more
    }

    fn byte(&mut self) -> Option<u8> {
        serial::receive().or_else(|| self.keyboard.poll())
    }

    /// Takes what was typed since the last look.
    pub(crate) fn poll(&mut self) -> Option<Typed> {
        while let Some(byte) = self.byte() {
            match byte {
                b'\r' | b'\n' => {
                    serial::show("\n");
                    return Some(Typed::Line(core::mem::take(&mut self.line)));
                }
                INTERRUPT => {
                    self.line.clear();
                    serial::show("^C\n");
                    return Some(Typed::Interrupt);
                }
                BACKSPACE | DELETE if self.line.pop().is_some() => serial::show("\u{8} \u{8}"),
                b' '..=b'~' if self.line.len() < LINE => {
                    let character = char::from(byte);
                    self.line.push(character);
                    serial::show(character.encode_utf8(&mut [0; 4]));
                }
                // Other bytes have no meaning here; a human sees them missing.
                _ => {}
            }
        }
        None
    }
}

const INTERRUPT: u8 = 3;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;
