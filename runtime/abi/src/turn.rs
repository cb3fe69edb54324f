//! Names in the input of a turn.
//!
//! The input is canonical JSON; its schema stands in `docs/abi.md`. The kernel
//! writes it and the guest's SDK reads it, both with these names.
//!
//! # Not here
//! The transcript and what of it goes in the clear (`synapse-kernel`).

/// Version of the schema: the value of `v`.
pub const VERSION: u64 = 1;

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The human: a console line, the task on the command line, a prompt file.
    Human,
    /// The package's approved texts.
    Package,
    /// The agent, in an earlier turn.
    Agent,
    /// The parent, in the task of a child.
    Parent,
    /// A primitive's reply, held.
    World,
}

impl Author {
    /// Its name in the input.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Package => "package",
            Self::Agent => "agent",
            Self::Parent => "parent",
            Self::World => "world",
        }
    }
}
