//! A task's own table: which primitives it may call, which handles it holds.
//!
//! A handle is a place in this table and the generation of what stands there.
//! There is no number to guess: what is not in the caller's own table does not
//! exist, and the number of a closed handle never resolves again.
//!
//! # Invariants
//! - I10: a handle resolves only in the table that opened it, only as the kind it
//!   has, only until it is closed.
//!
//! # Not here
//! What a handle stands for (the kernel); held values ([`Facts`](crate::Facts)).

use alloc::vec::Vec;

use synapse_abi::registry::{Kind, Primitive};

use crate::label::Secrecy;

/// Bits of a handle's number that say its place; the generation stands above.
const PLACE: u32 = 20;
/// Generations of one place. With [`PLACE`] a number has at most 15 digits.
const GENERATIONS: u64 = 1 << 29;

/// The primitives and handles of one task.
#[derive(Debug, Default)]
pub struct Table {
    granted: u32,
    places: Vec<Place>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Place {
    generation: u64,
    end: Option<End>,
}

/// What a handle says of what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which kind; never a value's, never [`Kind::Any`].
    pub kind: Kind,
    /// What the other end is cleared for, if it is off the machine.
    pub peer: Option<Secrecy>,
}

impl Table {
    /// A table that grants these primitives, bit number = id, and holds nothing.
    #[must_use]
    pub const fn new(granted: u32) -> Self {
        Self { granted, places: Vec::new(), free: Vec::new() }
    }

    /// Whether it grants the primitive.
    #[must_use]
    pub fn grants(&self, primitive: Primitive) -> bool {
        1u32.checked_shl(u32::from(primitive.id())).is_some_and(|bit| self.granted & bit != 0)
    }

    /// Opens a handle: its number. `None` when the table is full.
    pub fn open(&mut self, end: End) -> Option<u64> {
        let place = match self.free.pop() {
            Some(place) => place,
            None if self.places.len() < 1 << PLACE => {
                self.places.push(Place { generation: 0, end: None });
                self.places.len().checked_sub(1)?
            }
            None => return None,
        };
        let slot = self.places.get_mut(place)?;
        slot.generation = slot.generation.checked_add(1)?;
        slot.end = Some(end);
        Some(slot.generation.checked_shl(PLACE)? | u64::try_from(place).ok()?)
    }

    /// The open handle with this number, if it is of the wanted kind.
    #[must_use]
    pub fn get(&self, number: u64, wanted: Kind) -> Option<End> {
        let slot = self.places.get(place(number)?)?;
        let end = slot.end.filter(|_| number >> PLACE == slot.generation)?;
        (wanted == Kind::Any || wanted == end.kind).then_some(end)
    }

    /// Closes a handle. Its number never resolves again.
    pub fn close(&mut self, number: u64) -> Option<End> {
        self.get(number, Kind::Any)?;
        let place = place(number)?;
        let slot = self.places.get_mut(place)?;
        if slot.generation < GENERATIONS {
            self.free.push(place);
        }
        slot.end.take()
    }
}

fn place(number: u64) -> Option<usize> {
    usize::try_from(number & !(u64::MAX << PLACE)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: End = End { kind: Kind::Agent, peer: None };
    const CHANNEL: End = End { kind: Kind::Channel, peer: Some(Secrecy::PROMPT) };

    #[test]
    fn i10_a_handle_resolves_as_its_kind_until_it_is_closed() {
        let mut table = Table::new(1 << Primitive::FsRead.id());
        assert!(table.grants(Primitive::FsRead) && !table.grants(Primitive::FsWrite));
        let (a, b) = (table.open(AGENT).unwrap(), table.open(CHANNEL).unwrap());
        assert_eq!(table.get(a, Kind::Agent), Some(AGENT));
        assert_eq!(table.get(b, Kind::Any), Some(CHANNEL));
        assert_eq!(table.get(a, Kind::Channel), None);
        assert_eq!(table.get(b, Kind::Listener), None);
        for guess in (0..64).chain([a + 1, b + 1, a ^ 1 << PLACE, u64::MAX]).filter(|n| *n != b) {
            assert_eq!(table.get(guess, Kind::Any), None, "{guess}");
        }
        assert_eq!(table.close(a), Some(AGENT));
        assert_eq!((table.close(a), table.get(a, Kind::Any)), (None, None));
        let again = table.open(CHANNEL).unwrap();
        assert_ne!(again, a, "the place is used again, the number is not");
        assert_eq!(table.get(a, Kind::Any), None);
        assert_eq!(Table::new(0).get(again, Kind::Any), None, "another task's table");
    }

    #[test]
    fn numbers_fit_a_uint_and_a_worn_out_place_is_not_used_again() {
        let mut table = Table::new(0);
        let first = table.open(AGENT).unwrap();
        table.places[0].generation = GENERATIONS - 1;
        table.places[0].end = None;
        table.free.push(0);
        let last = table.open(AGENT).unwrap();
        assert!(first < last && last < 10_u64.pow(15));
        table.close(last).unwrap();
        let next = table.open(AGENT).unwrap();
        assert_eq!(place(next), Some(1));
    }
}
