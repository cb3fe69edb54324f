//! Packages on this machine: where they come from, and where the installed ones are.
//!
//! What a package is, what a person is asked about it and what comes of that is the
//! kernel's (`synapse_kernel::package`), the same on both boards. Here are files, folders,
//! downloads and keys.
//!
//! # Reading order
//! `source` and `fetch` (where a package comes from), `sign` (its publisher's key), `store`
//! (what is installed).
//!
//! # Not here
//! The dialogue with the person (the command line). Deciding calls (`synapse-boundary`).

mod fetch;
mod sign;
mod source;
mod store;

use std::io;

pub use fetch::{Image, Progress, Source, open, push};
pub use sign::Secret;
pub use source::write_new;
pub use store::Store;
pub use synapse_kernel::grant::{Authority, Budget};
pub use synapse_kernel::package::{
    Capability, Consent, Danger, Digest, Installed, Item, Key, Manifest, Need, Package,
    PackageError, Pin, Signature, Terminal, Version, Vouched, ask, follows, is_name,
};

/// What the host answered, as what is wrong with a package.
fn failed_with(what: &str, why: &io::Error) -> PackageError {
    let todo = "check the path, its permissions and the room on the disk";
    PackageError::new(what, &why.to_string(), todo)
}

#[cfg(test)]
mod tests;
