//! Lines that a hand types at a terminal
//!
//! # Not here
//! What a line means (`console`, `human`).

use core::time::Duration;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::termios::{QueueSelector, tcflush};

/// Why there is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread<E> {
    /// Nobody types any longer.
    Closed,
    /// The reader was told to stop, for this reason.
    Stopped(E),
}

/// One line without its end, as the terminal hands it over. `stop` is asked
/// about every 100 ms.
pub(crate) fn line<E>(
    input: BorrowedFd<'_>,
    mut stop: impl FnMut() -> Option<E>,
) -> Result<Vec<u8>, Unread<E>> {
    let mut line = Vec::new();
    loop {
        while !ready(input, STEP).ok_or(Unread::Closed)? {
            if let Some(why) = stop() {
                return Err(Unread::Stopped(why));
            }
        }
        let mut piece = [0; 4096];
        let got = match read(input, &mut piece) {
            Ok(got) => got,
            Err(Errno::INTR) => continue,
            Err(_) => 0,
        };
        line.extend_from_slice(piece.get(..got).unwrap_or_default());
        if let Some(answer) = line.strip_suffix(b"\n") {
            return Ok(answer.to_vec());
        }
        if got == 0 || line.len() > LONGEST {
            return Err(Unread::Closed);
        }
    }
}

/// Throws away what was typed and not read yet; `None` where it is no terminal.
pub(crate) fn forget(input: BorrowedFd<'_>) -> Option<()> {
    tcflush(input, QueueSelector::IFlush).ok()
}

/// Whether more came with a line than a hand types: a paste.
pub(crate) fn is_pasted(input: BorrowedFd<'_>) -> bool {
    ready(input, PASTE).unwrap_or(true)
}

/// Whether input is there, now or after a wait; `None` where it cannot be.
fn ready(input: BorrowedFd<'_>, wait: Duration) -> Option<bool> {
    let mut input = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut input, Some(&Timespec::try_from(wait).ok()?)) {
        Ok(found) => Some(found > 0),
        Err(Errno::INTR) => Some(false),
        Err(_) => None,
    }
}

/// How often a wait looks whether it is to end.
pub(crate) const STEP: Duration = Duration::from_millis(100);
/// A hand does not type a second line in this time; a paste has it ready.
const PASTE: Duration = Duration::from_millis(30);
const LONGEST: usize = 64 << 10;
