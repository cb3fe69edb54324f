//! Names in the input of a turn.
//!
//! The input is canonical JSON; its schema stands in `docs/abi.md`. The kernel
//! writes it and the guest's SDK reads it, both with these names.
//!
//! # Not here
//! The transcript and what of it goes in the clear (`synapse-kernel`).

/// Version of the schema: the value of `v`.
pub const VERSION: u64 = 1;

// Who wrote a message: the values of `from`.

/// The human: a console line, the task on the command line, a prompt file.
pub const HUMAN: &str = "human";
/// The package's approved texts.
pub const PACKAGE: &str = "package";
/// The agent, in an earlier turn.
pub const AGENT: &str = "agent";
/// The parent, in the task of a child.
pub const PARENT: &str = "parent";
/// A primitive's reply, held.
pub const WORLD: &str = "world";
