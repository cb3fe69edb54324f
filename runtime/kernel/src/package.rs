//! Packages: what an agent comes in, and what a person agreed that it may do.
//!
//! A package is one file that says what it asks for and why. Installing it asks a person
//! once; from then on its agent has what was agreed to, bound to the digest of all its
//! bytes, and less where its caller gives less. Both boards read, judge and ask by this
//! code, so that the same package and the same answers come to the same approval.
//!
//! # Invariants
//! - I9: what an installed package may do is in its lock file, which only a person's
//!   consent writes, and only a revocation narrows.
//!
//! # Reading order
//! `manifest` (what it asks for; what that allows is `grant`'s to say), `layout`, `oci`,
//! `tar` and `signature` (its one file), `trust` (whose it is), `consent`, `screen`,
//! `words` and `dialogue` (what a person is shown and says), `installed` (what is kept).
//!
//! # Not here
//! Where packages and lock files are kept, and where they come from (boards). Deciding
//! calls (`synapse-boundary`).

mod consent;
mod dialogue;
mod digest;
mod error;
mod installed;
mod layout;
mod look_alike;
mod manifest;
mod oci;
mod screen;
mod signature;
pub mod tar;
mod trust;
mod words;

pub use consent::{Consent, Item};
pub use dialogue::{Terminal, ask};
pub use digest::Digest;
pub use error::PackageError;
pub use installed::{Installed, approval_of, file_of};
pub use layout::{PACKAGE_MAX, Package, Parts, SIGNATURE, parts};
pub use manifest::{Capability, Manifest, Need, Version, is_name, is_publisher};
pub use oci::{Descriptor, IMAGE, INDEX};
pub use signature::{Key, Signature, signed};
pub use trust::{Pin, Vouched, follows, look_alikes, vouched};
pub use words::Danger;

#[cfg(test)]
mod tests;
