//! What one turn's memories and tables hold, summed against its limits.
//!
//! Every engine asks this before anything grows, so that a guest is denied the
//! same byte on each of them, and told the same when it breaks on it.
//!
//! # Invariants
//! - A sum counts what was granted and not given back; it never passes its limit.
//!
//! # Not here
//! Growing itself, and the room that a board has (an engine).

use crate::engine::{Ended, Trap, TurnLimits};

/// Counts what all memories and all tables of one turn hold.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of linear memories.
    pub memory: Account,
    /// Elements of tables.
    pub table: Account,
}

impl Bounds {
    /// Nothing used yet, under these limits.
    #[must_use]
    pub const fn new(limits: TurnLimits) -> Self {
        Self {
            memory: Account::new(limits.memory_bytes),
            table: Account::new(limits.table_elements),
        }
    }

    /// How a turn ended, seen with what the guest was denied: guests rarely
    /// survive a denied allocation, and break in these ways on it.
    #[must_use]
    pub const fn explain(&self, ended: Ended) -> Ended {
        match ended {
            Ended::Trap(Trap::Unreachable | Trap::MemoryBounds | Trap::Abi) | Ended::Engine
                if self.memory.denied || self.table.denied =>
            {
                Ended::MemoryLimit
            }
            ended => ended,
        }
    }
}

/// One sum with a limit.
#[derive(Clone, Debug)]
pub struct Account {
    limit: usize,
    used: usize,
    /// The last amount granted, given back if the growth then fails.
    last: usize,
    denied: bool,
}

impl Account {
    const fn new(limit: usize) -> Self {
        Self { limit, used: 0, last: 0, denied: false }
    }

    /// Whether something may grow from `current` to `desired`.
    pub fn grow(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> bool {
        let more = desired.saturating_sub(current);
        let used = self.used.saturating_add(more);
        if used > self.limit || maximum.is_some_and(|maximum| desired > maximum) {
            self.denied = true;
            return false;
        }
        self.used = used;
        self.last = more;
        true
    }

    /// Takes back what was granted last: there was no room for it.
    pub fn failed(&mut self) {
        self.used = self.used.saturating_sub(core::mem::take(&mut self.last));
        self.denied = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_counts_until_it_fails() {
        let mut account = Account::new(10);
        assert!(account.grow(0, 6, None));
        assert!(account.grow(0, 4, Some(4)));
        assert!(!account.denied);
        assert!(!account.grow(4, 5, None));
        account.failed();
        assert!(account.grow(0, 4, None));
        assert!(!account.grow(4, 5, None));
        assert!(!account.grow(3, 4, Some(3)));
        assert!(account.denied);
    }

    #[test]
    fn a_guest_that_broke_after_a_denial_broke_on_it() {
        let mut bounds = Bounds::new(TurnLimits { memory_bytes: 1, ..TurnLimits::default() });
        let broke = Ended::Trap(Trap::Unreachable);
        assert_eq!(bounds.explain(broke), broke);
        assert!(!bounds.memory.grow(0, 2, None));
        assert_eq!(bounds.explain(broke), Ended::MemoryLimit);
        for other in [Ended::Deadline, Ended::Cancelled, Ended::Trap(Trap::Arithmetic)] {
            assert_eq!(bounds.explain(other), other);
        }
    }
}
