//! Packages: what an agent comes in, and what a person agreed that it may do.
//!
//! A package is one file that says what it asks for and why. Installing it asks a person
//! once; from then on its agent has what was agreed to, bound to the digest of all its
//! bytes, and less where its caller gives less.
//!
//! # Invariants
//! - I9: what an installed package may do is in its lock file, which only a person's
//!   consent writes, and only a revocation narrows.
//!
//! # Reading order
//! `manifest` (what it asks for), `authority` and `entry` (what that allows), `layout`, `tar`
//! and `sign` (its one file), `source` (where it comes from), `consent` and `words` (what a
//! person is shown), `store` (what is installed).
//!
//! # Not here
//! The dialogue with the person (the command line). Deciding calls (`synapse-boundary`).

mod authority;
mod consent;
mod digest;
mod entry;
mod error;
mod layout;
mod look_alike;
mod manifest;
mod sign;
mod source;
mod store;
mod tar;
mod words;

pub use authority::{Authority, Budget};
pub use consent::{Consent, Item, Vouched};
pub use digest::Digest;
pub use entry::{Entry, Host, Limit, Place, Ports, Tool};
pub use error::PackageError;
pub use layout::Package;
pub use manifest::{Capability, Manifest, Need, Version, is_name};
pub use sign::{Key, Secret, Signature};
pub use source::{open, write_new};
pub use store::{Installed, Pin, Store};
pub use words::Danger;

use source::read_owned;

#[cfg(test)]
mod tests;
