//! Who may take how much of the memory
//!
//! What others ask for is bounded here, so that an agent that wants too much is
//! told so, and the image never meets the end of its heap.
//!
//! # Not here
//! The bounds that hold on every board (`abi::limits`, the grant).

use synapse_store::Rooms;

/// Bytes for each purpose, out of what was free when the image started. What is
/// not given out, a sixth, is for work in progress: a sentence, a reply, copies
/// of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Files, and in the journal what they displaced.
    pub(crate) files: usize,
    /// Logs of all runs together.
    pub(crate) logs: usize,
    /// One agent's code, loaded.
    pub(crate) code: usize,
    /// Agents that may run at once.
    pub(crate) agents: usize,
    /// The memories of one agent.
    pub(crate) memory: usize,
    /// The held values of one agent.
    pub(crate) held: usize,
}

impl Budget {
    /// Divides so many free bytes.
    pub(crate) fn of(free: usize) -> Self {
        let memories = free / 4;
        let agents = (memories / COMFORT).clamp(1, AGENTS);
        Self {
            files: free / 6,
            logs: free / 12,
            code: free / 4 / agents,
            agents,
            memory: memories / agents,
            held: free / 12 / agents,
        }
    }

    /// Memory for pages of a store on a disk, which needs no other memory for files.
    pub(crate) const fn pages(&self) -> usize {
        self.files / 2
    }

    /// What a store may take on a disk of so many bytes: a quarter. Pages are half
    /// full at worst, and a change stands beside what it replaces until it counts.
    pub(crate) fn rooms_on(&self, bytes: u64) -> Rooms {
        Rooms { files: bytes / 6, logs: bytes / 12, ..self.rooms() }
    }

    /// What a store in memory may take.
    pub(crate) fn rooms(&self) -> Rooms {
        let bytes = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        Rooms { files: bytes(self.files), logs: bytes(self.logs), whole: bytes(self.files / 2) }
    }
}

/// What an agent of ordinary size is at ease with: a stack, and some data.
const COMFORT: usize = 3 << 20;
const AGENTS: usize = 8;
