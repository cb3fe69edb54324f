//! What stands under a path, told to a human and held to after their yes.
//!
//! A confirmation is for what stood there when it was asked for. A board sums
//! that up in one digest, of a directory over all that is in it, and a change
//! that was confirmed compares it with what it finds in its hands.
//!
//! # Invariants
//! - I8: what differs in name, kind, size, time or identity has another state.
//!
//! # Not here
//! When a state is taken (the kernel) and where it is compared (the platforms).

use sha2::{Digest, Sha256};
use synapse_boundary::State;

use crate::{Fault, platform::Kind};

/// What stands under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// All of it in one digest.
    pub state: State,
    /// What it is; `None` where nothing has the name.
    pub kind: Option<Kind>,
    /// Entries below it, at any depth.
    pub entries: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Standing {
    /// What a name is that nothing has.
    #[must_use]
    pub fn absent() -> Self {
        Tally::default().finish(None)
    }

    /// What cannot be looked at, for this reason. Once it can be, it has changed.
    #[must_use]
    pub fn unseen(fault: Fault) -> Self {
        let mut tally = Tally::default();
        tally.hash.update(fault.number().to_le_bytes());
        tally.finish(None)
    }
}

/// Sums up entries in the order of a walk.
#[derive(Debug, Default)]
pub struct Tally {
    hash: Sha256,
    entries: u64,
    bytes: u64,
}

impl Tally {
    /// An entry; `what` tells it from another of its name, kind and size.
    pub fn add(&mut self, name: &str, kind: Kind, size: u64, what: &[&[u8]]) {
        let kind = match kind {
            Kind::File => 1,
            Kind::Directory => 2,
            Kind::Link => 3,
            Kind::Other => 4,
        };
        self.hash.update([kind]);
        for part in [name.as_bytes()].iter().chain(what) {
            let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
            self.hash.update(length.to_le_bytes());
            self.hash.update(part);
        }
        self.hash.update(size.to_le_bytes());
        self.entries = self.entries.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
    }

    /// The end of a directory.
    pub fn leave(&mut self) {
        self.hash.update([0]);
    }

    /// The sum; of the entries, the first is what the others are below.
    #[must_use]
    pub fn finish(self, kind: Option<Kind>) -> Standing {
        let state = State(self.hash.finalize().into());
        Standing { state, kind, entries: self.entries.saturating_sub(1), bytes: self.bytes }
    }
}
