//! A task's own table: which primitives it may call, which handles it holds.
//!
//! A handle is a number that this table gave once. There is nothing to guess: what
//! is not in the caller's own table does not exist, and the number of a closed
//! handle never resolves again.
//!
//! # Invariants
//! - I10: a handle resolves only in the table that opened it, only as the kind it
//!   has, only until it is closed.
//!
//! # Not here
//! What a handle stands for (the kernel); held values ([`Facts`](crate::Facts)).

use alloc::collections::BTreeMap;

use synapse_abi::limits::UINT_MAX;
use synapse_abi::registry::{Kind, Primitive};

use crate::label::Secrecy;

/// Handles that may be open at once.
const OPEN: usize = 1 << 20;

/// The primitives and handles of one task.
#[derive(Debug, Default)]
pub struct Table {
    granted: u32,
    open: BTreeMap<u64, End>,
    /// The number given last.
    last: u64,
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
    pub const fn new(granted: u32) -> Self {
        Self { granted, open: BTreeMap::new(), last: 0 }
    }

    /// Whether it grants the primitive.
    #[must_use]
    pub fn grants(&self, primitive: Primitive) -> bool {
        1u32.checked_shl(u32::from(primitive.id())).is_some_and(|bit| self.granted & bit != 0)
    }

    /// Opens a handle: its number. `None` when the table is full, or when there
    /// are no more numbers that a sentence can say.
    pub fn open(&mut self, end: End) -> Option<u64> {
        let fits = self.open.len() < OPEN && self.last < UINT_MAX;
        self.last = self.last.checked_add(1).filter(|_| fits)?;
        self.open.insert(self.last, end);
        Some(self.last)
    }

    /// The open handle with this number, if it is of the wanted kind.
    pub fn get(&self, number: u64, wanted: Kind) -> Option<End> {
        self.open.get(&number).copied().filter(|end| wanted == Kind::Any || wanted == end.kind)
    }

    /// Closes a handle. Its number never resolves again.
    pub fn close(&mut self, number: u64) -> Option<End> {
        self.open.remove(&number)
    }
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
        for guess in (0..64).chain([a + 1, b + 1, u64::MAX]).filter(|n| *n != a && *n != b) {
            assert_eq!(table.get(guess, Kind::Any), None, "{guess}");
        }
        assert_eq!(table.close(a), Some(AGENT));
        assert_eq!((table.close(a), table.get(a, Kind::Any)), (None, None));
        let again = table.open(CHANNEL).unwrap();
        assert!(again != a && again != b, "no number is given twice");
        assert_eq!(table.get(a, Kind::Any), None);
        assert_eq!(Table::new(0).get(b, Kind::Any), None, "another task's table");
    }

    #[test]
    fn numbers_fit_a_uint_and_end_before_one_would_be_given_again() {
        let mut table = Table::new(0);
        assert_eq!(table.open(AGENT), Some(1));
        table.last = UINT_MAX - 1;
        let last = table.open(AGENT).unwrap();
        assert!(last < 10_u64.pow(15));
        assert_eq!((table.open(AGENT), table.close(last)), (None, Some(AGENT)));
        assert_eq!((table.open(AGENT), table.get(last, Kind::Any)), (None, None));
        let mut full = Table::new(0);
        assert!((0..OPEN).all(|_| full.open(AGENT).is_some()));
        assert_eq!(full.open(AGENT), None);
        full.close(1).unwrap();
        assert!(full.open(AGENT).is_some());
    }
}
