//! The language of the door as an automaton, one byte at a time
//!
//! After any bytes a sentence is *live* (more bytes can complete it), *complete*
//! or *dead*. The tables are generated from `grammar.pest` when this crate is
//! built: whoever writes sentences can ask before each byte, and never writes one
//! that gate 1 would call malformed.
//!
//! # Invariants
//! - A state is live or complete; there is no state for what is dead.
//! - Bytes that are no beginning of UTF-8 are dead at the first that is wrong.
//! - A grammar that an automaton would read otherwise than pest does not build.
//!
//! # Not here
//! Lengths and counts (`abi::limits`), canonical URLs and the parse itself: the
//! door's own, in `boundary`. This crate decides nothing.

#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

/// Where a sentence stands after some bytes: live or complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State(u16);

/// Before the first byte.
pub const START: State = State(FIRST);

/// How many states there are; each has a place below this, see [`State::place`].
pub const STATES: usize = ROWS.len().saturating_sub(1);

impl State {
    /// The state's place among all, `0..STATES`, for tables beside this one.
    #[must_use]
    pub const fn place(self) -> u16 {
        self.0
    }

    /// The state after one more byte; `None` when no sentence begins so.
    #[must_use]
    pub fn next(self, byte: u8) -> Option<Self> {
        let row = self.row()?;
        let (low, _, next) = row.get(row.partition_point(|(_, high, _)| *high < byte))?;
        (*low <= byte).then_some(Self(*next))
    }

    /// The bytes that keep the sentence alive: ranges `(low, high, next)`, ends
    /// included, by rising bytes.
    pub fn bytes(self) -> impl Iterator<Item = (u8, u8, Self)> {
        self.row().unwrap_or_default().iter().map(|(low, high, next)| (*low, *high, Self(*next)))
    }

    /// Whether the bytes so far are a whole sentence.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        self.0 >= COMPLETE
    }

    fn row(self) -> Option<&'static [(u8, u8, u16)]> {
        let place = usize::from(self.0);
        let from = usize::try_from(*ROWS.get(place)?).ok()?;
        let to = usize::try_from(*ROWS.get(place.checked_add(1)?)?).ok()?;
        RANGES.get(from..to)
    }
}

// FIRST, COMPLETE: states. ROWS: where each state's ranges begin in RANGES, and the end.
include!(concat!(env!("OUT_DIR"), "/tables.rs"));
