//! Secrets: what a person lets requests carry that no agent may ever see
//!
//! An agent writes `{secret:NAME}`. The gates decide about these letters; the value
//! takes their place at the board's edge, after all gates, and what comes back is
//! masked before anything has it.
//!
//! # Reading order
//! [`secret`], [`vault`], [`keyring`], then [`given`] and [`mask`].
//!
//! # Trust
//! Whoever calls this opens sockets and processes, and hands no value to anything else.
//! Values lie in memory that is overwritten when they are dropped, and print as nothing.
//!
//! # Invariants
//! - I17: a value leaves this crate by [`Value::expose`] and the texts that it is filled
//!   into only.
//!
//! # Not here
//! Where `{secret:NAME}` counts, and which entry lets it go (the boundary).

pub mod given;
pub mod keyring;
pub mod mask;
pub mod secret;
pub mod vault;

pub use given::Given;
pub use mask::Mask;
pub use secret::{Destination, Secret, Value};
pub use vault::Vault;
