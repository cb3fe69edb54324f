//! The contract between guests and the kernel, as constants and types.
//!
//! Both sides of the door compile this crate: the guest to write sentences, the
//! kernel to parse them. It holds what the two must agree on and a decision rests
//! on, and nothing else, so that a change here is a change of the contract.
//!
//! # Invariants
//! - I12: the registry is a build-time constant: 26 primitives, 5 of them
//!   destructive, ids in order. The compiler checks all three.
//!
//! # Reading order
//! [`registry`] (what can be asked), [`limits`] (how much), [`code`] (how a
//! request is refused), [`mark`] (how far its asker has read).
//!
//! # Trust
//! Part of what decides. No dependencies, no allocation, no input that it
//! parses without a bound.
//!
//! # Not here
//! What comes back, faults too (`synapse-reply`). Parsing and deciding
//! (`synapse-boundary`), executing (`synapse-primitives`).
#![no_std]

mod numbered;

pub mod code;
pub mod limits;
pub mod mark;
pub mod registry;

/// Version of the sentence grammar, the registry and the codes.
pub const VERSION: u8 = 1;
