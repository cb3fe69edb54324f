//! Who may take how much of the memory
//!
//! What others ask for is bounded here, so that an agent that wants too much is
//! told so, and the image never meets the end of its heap.
//!
//! # Not here
//! The bounds that hold on every board (`abi::limits`, the grant).

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
}

/// What an agent of ordinary size is at ease with: a stack, and some data.
const COMFORT: usize = 3 << 20;
const AGENTS: usize = 8;
