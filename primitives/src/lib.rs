//! The platform side of the primitives: what a board lets a call touch.
//!
//! A call that passed the door ends in one method of [`Platform`]. The trait
//! is the whole width of the hole between a guest and the world, so it is kept
//! narrow: file verbs, one clock, one console, one request. Two boards' worth of it live
//! here, the host's `disk` and the tests' [`memory`], and every behaviour
//! they share is asserted against both by one table.
//!
//! # Reading order
//! [`platform`] (the verbs), [`execute()`] (one match over the 26), [`memory`] (the
//! semantics in their shortest form), `disk` (the same on a real file system),
//! `journal` (what was changed, and how to know it again), [`rest`] (labels at rest).
//!
//! # Trust
//! Callers hand in paths in normal form that four gates admitted. Nothing here
//! decides whether a call may happen; what is enforced here is that the effect
//! is exactly the one decided on: no link followed, nothing replaced unseen,
//! nothing of Synapse's own touched.
//!
//! # Not here
//! Policy (the boundary), the mark (the kernel), what a reply looks like (abi).

#![no_std]

extern crate alloc;
#[cfg(all(feature = "cap-std", target_os = "linux"))]
extern crate std;

#[cfg(all(feature = "cap-std", not(target_os = "linux")))]
compile_error!("the disk needs openat2: build feature `cap-std` for Linux only");

#[cfg(all(feature = "cap-std", target_os = "linux"))]
pub mod disk;
pub mod execute;
mod fetch;
pub mod hands;
mod hex;
#[cfg(all(feature = "cap-std", target_os = "linux"))]
pub mod journal;
mod labelled;
pub mod memory;
pub mod mounts;
pub mod platform;
pub mod rest;
pub mod search;
pub mod state;
pub mod store;
mod tool;
pub mod tree;

pub use execute::{Caller, Done, Executed, execute};
pub use fetch::{host_of, most};
pub use hands::Hands;
pub use hex::{hex, unhex};
pub use labelled::Labelled;
pub use platform::Platform;
pub use state::Standing;
pub use synapse_reply::Fault;
