//! Bounds on what comes back
//!
//! # Not here
//! Bounds on what is asked (`synapse-abi`).

/// Bytes of a reply's payload. What is longer comes held or in pieces.
pub const REPLY: usize = 1 << 20;
/// Bytes of a guest's answer at the end of its turn.
pub const ANSWER: usize = 1 << 20;
/// Bytes of what comes from the network under `hold`; else [`REPLY`] holds.
pub const FETCH: usize = 4 << 20;
/// Entries of one `fs_list` reply.
pub const LIST: u64 = 1000;
/// Hits of one `fs_search` reply.
pub const SEARCH: u64 = 1000;
