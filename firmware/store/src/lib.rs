//! Files, journal, logs and packages of the bare machine, in one crash-safe store.
//!
//! A [`Shelf`] keeps what a machine must not lose. It speaks to a [`Store`], which
//! is either memory or a database on a disk, and asks it for one thing: that
//! changes given together are made together, or not at all. Records of decisions
//! that have come since go into the next set of changes, so an effect is never
//! there without its decision.
//!
//! # Invariants
//! - I3: what a record permits is on the disk with it or after it, never before.
//! - I16: what a change displaces is kept by the same set of changes.
//! - A write is whole or absent, after a power cut too.
//!
//! # Reading order
//! [`store`] (the port), `keys` (what stands where), `tree` (a file system of
//! keys), `labels` (what it carries), `files` (the verbs), `runs` (logs), [`undo`], `packages` (what is installed), `database` and [`device`]
//! (the disk).
//!
//! # Not here
//! Drivers of disks (the firmware). What a path may be (gate 4).

#![no_std]

extern crate alloc;

mod database;
pub mod device;
mod files;
mod keys;
mod labels;
mod packages;
mod runs;
mod shelf;
pub mod store;
mod tree;
pub mod undo;

pub use database::{Database, Unusable};
pub use files::By;
pub use packages::Kept;
pub use runs::{Past, Tape};
pub use shelf::{Opening, Rooms, Shelf};
pub use store::{Store, Volatile};
