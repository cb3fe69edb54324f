//! The directories that led to the last path, kept open for the next one.
//!
//! Most calls go where the one before went. What is kept is no answer: each name
//! is looked up again in the directory before it, and a handle is used only where
//! the name still leads to the very directory that it holds.
//!
//! # Invariants
//! - What a kept handle is used for, the same path would have reached by opening it.
//! - A kept directory was not Synapse's own, and what is never changes.
//!
//! # Not here
//! Opening one that is not kept (`open`).

use alloc::{borrow::ToOwned, string::String, sync::Arc, vec::Vec};
use std::os::fd::{BorrowedFd, OwnedFd};

use super::{Identity, open::look};
use crate::platform::Kind;

/// Directories below the root of a mount, each in the one before.
#[derive(Debug, Default)]
pub(super) struct Way(Vec<Step>);

#[derive(Debug)]
struct Step {
    name: String,
    dir: Arc<OwnedFd>,
    identity: Identity,
}

impl Way {
    /// The directory so many names below the root, if the name still leads to it.
    pub(super) fn still(
        &self,
        at: usize,
        above: BorrowedFd<'_>,
        name: &str,
    ) -> Option<Arc<OwnedFd>> {
        let kept = self.0.get(at).filter(|kept| kept.name == name)?;
        let found = look(above, name).ok().flatten()?;
        let same = found.kind == Kind::Directory && found.identity == kept.identity;
        same.then(|| Arc::clone(&kept.dir))
    }

    /// Goes on, so many names below the root, by another directory.
    pub(super) fn turn(
        &mut self,
        at: usize,
        name: &str,
        dir: OwnedFd,
        identity: Identity,
    ) -> Arc<OwnedFd> {
        self.0.truncate(at);
        let dir = Arc::new(dir);
        self.0.push(Step { name: name.to_owned(), dir: Arc::clone(&dir), identity });
        dir
    }
}
