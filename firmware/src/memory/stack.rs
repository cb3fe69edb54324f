//! Which calls a stack shows, for whoever wants to know how the image ended there.
//!
//! Compiled code keeps no chain of its frames; but what a call leaves on the
//! stack is an address of code, and the bytes before it are a call. What was
//! left by calls that have returned may be among them.
//!
//! # Not here
//! Names of these places: `cargo xtask firmware --named` links an image that has them.

use core::arch::asm;
use core::fmt;

use super::paging;

/// The calls that lead to where a stack ends, the last one first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls(u64);

impl Calls {
    /// Those of a stack whose last word is here.
    pub(crate) const fn of(stack: u64) -> Self {
        Self(stack)
    }

    /// Those of the caller.
    pub(crate) fn here() -> Self {
        let stack: u64;
        // SAFETY: it reads a register.
        unsafe { asm!("mov {}, rsp", out(reg) stack, options(nomem, nostack)) };
        Self(stack)
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.0.max(paging::guard().end) & !7;
        let words = (start..paging::image().end).step_by(8).map(word);
        words
            .filter(|place| follows_call(*place))
            .take(MOST)
            .try_for_each(|at| write!(f, " {at:#x}"))
    }
}

/// As many as fit on a few lines.
const MOST: usize = 32;

fn word(at: u64) -> u64 {
    (0..8).rev().fold(0, |word, index| word << 8 | u64::from(byte(at + index)))
}

/// Whether a call stands before this place of the code: of a place that it
/// names, or of one that is in a register or in memory.
fn follows_call(place: u64) -> bool {
    let code = paging::code();
    let opcode = |back: u64| byte(place - back);
    code.contains(&place)
        && code.contains(&(place - 7))
        && (opcode(5) == 0xe8
            || [2, 3, 6, 7].iter().any(|at| opcode(*at) == 0xff && opcode(at - 1) >> 3 & 7 == 2))
}

/// A byte of the image.
fn byte(at: u64) -> u8 {
    let Ok(at) = usize::try_from(at) else { return 0 };
    let place = core::ptr::with_exposed_provenance::<u8>(at);
    // SAFETY: the callers ask for what is mapped: code, and the stack above its guard.
    unsafe { place.read_volatile() }
}
