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
//! `manifest` (what it asks for), `authority`, `entry`
//! and `bounds` (what that allows), `layout`, `oci`,
//! `tar` and `sign` (its one file), `source` and `fetch` (where it comes from), `consent`, `screen` and
//! `words` (what a person is shown), `store` and `trust` (what is installed).
//!
//! # Not here
//! The dialogue with the person (the command line). Deciding calls (`synapse-boundary`).

mod authority;
mod bounds;
mod consent;
mod digest;
mod entry;
mod error;
mod fetch;
mod layout;
mod look_alike;
mod manifest;
mod oci;
mod screen;
mod sign;
mod source;
mod store;
mod tar;
mod trust;
mod words;

pub use authority::{Authority, Budget};
pub use bounds::{Limit, Ports};
pub use consent::{Consent, Item};
pub use digest::Digest;
pub use entry::{Entry, Host, Place, Tool};
pub use error::PackageError;
pub use fetch::{Image, Progress, Source, open};
pub use layout::Package;
pub use manifest::{Capability, Manifest, Need, Version, is_name};
pub use sign::{Key, Secret, Signature};
pub use source::write_new;
pub use store::{Installed, Store};
pub use trust::{Pin, Vouched};
pub use words::Danger;

use source::read_owned;

#[cfg(test)]
mod tests;
