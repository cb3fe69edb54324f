//! What is installed: a lock file and the package's own for each, and publishers' keys.
//!
//! # Invariants
//! - What is installed is the old or the new, whole: both files and the key are one set of
//!   changes.
//!
//! # Not here
//! What the files say (`synapse_kernel::package`).

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use synapse_primitives::Fault;

use crate::keys::{self, LOCK, PACKAGE, PUBLISHER};
use crate::shelf::Shelf;
use crate::store::{Change, Failed, Store};
use crate::tree::count;

/// An installed package, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its lock file.
    pub lock: Vec<u8>,
    /// Its own file.
    pub file: Vec<u8>,
}

impl Shelf {
    /// The names of what is installed.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn packages(&self) -> Result<Vec<String>, Failed> {
        self.named(LOCK)
    }

    /// What is kept of an installed package.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn package(&self, name: &str) -> Result<Option<Kept>, Failed> {
        let store = self.store();
        let Some(lock) = store.get(&keys::name(LOCK, name))? else { return Ok(None) };
        let file = store.get(&keys::name(PACKAGE, name))?.unwrap_or_default();
        Ok(Some(Kept { lock, file }))
    }

    /// Keeps a package in the place of what was installed under its name, and the key that
    /// its publisher has from now on, if any.
    ///
    /// # Errors
    /// There is no room for it, or the store failed: what was installed is.
    pub fn install(
        &self,
        name: &str,
        kept: Kept,
        (publisher, key): (&str, Option<&str>),
    ) -> Result<(), Fault> {
        let pinned = keys::name(PUBLISHER, publisher);
        let pin = match key {
            Some(key) => Change::Put(pinned, Cow::Owned(key.as_bytes().to_vec())),
            None => Change::Remove(pinned),
        };
        let bytes = count(kept.file.len());
        let lock = Change::Put(keys::name(LOCK, name), Cow::Owned(kept.lock));
        let file = Change::Put(keys::name(PACKAGE, name), Cow::Owned(kept.file));
        self.change(name, bytes, Vec::from([lock, file, pin]))
    }

    /// Writes an installed package's lock file anew.
    ///
    /// # Errors
    /// The store failed: it is as it was.
    pub fn relock(&self, name: &str, lock: &[u8]) -> Result<(), Fault> {
        let mut state = self.lock();
        let mut tree = self.tree(&state, 0);
        tree.changes.push(Change::Put(keys::name(LOCK, name), Cow::Owned(lock.to_vec())));
        self.commit(&mut state, tree)
    }

    /// Removes a package, and says whether it was installed. Its publisher's key stays.
    ///
    /// # Errors
    /// The store failed: it is installed still.
    pub fn uninstall(&self, name: &str) -> Result<bool, Fault> {
        if self.package(name).map_err(|_| Fault::Io)?.is_none() {
            return Ok(false);
        }
        let both = [LOCK, PACKAGE].map(|what| Change::Remove(keys::name(what, name)));
        self.change(name, 0, Vec::from(both)).map(|()| true)
    }

    /// The publishers whose keys are known.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn publishers(&self) -> Result<Vec<String>, Failed> {
        self.named(PUBLISHER)
    }

    /// A publisher's key, as it was kept.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn publisher(&self, name: &str) -> Result<Option<String>, Failed> {
        let key = self.store().get(&keys::name(PUBLISHER, name))?;
        key.map(|key| String::from_utf8(key).map_err(|_| Failed)).transpose()
    }

    /// Makes these changes, after which a package's file has so many bytes.
    fn change(&self, name: &str, bytes: u64, changes: Vec<Change<'static>>) -> Result<(), Fault> {
        let mut state = self.lock();
        let before = self.store().get(&keys::name(PACKAGE, name)).map_err(|_| Fault::Io)?;
        let before = before.map_or(0, |file| count(file.len()));
        let files = state.files.saturating_sub(before).saturating_add(bytes);
        if bytes > before && files > self.rooms().files {
            return Err(Fault::NoSpace);
        }
        let mut tree = self.tree(&state, 0);
        tree.changes.extend(changes);
        self.commit(&mut state, tree)?;
        state.files = files;
        Ok(())
    }

    fn named(&self, what: u8) -> Result<Vec<String>, Failed> {
        let (mut names, mut sound) = (Vec::new(), true);
        self.store().scan(&[what], &[], &mut |key, _| {
            match key.get(1..).and_then(|name| str::from_utf8(name).ok()) {
                Some(name) => names.push(name.to_string()),
                None => sound = false,
            }
            ControlFlow::Continue(())
        })?;
        if sound { Ok(names) } else { Err(Failed) }
    }
}

/// Bytes that installed packages take.
pub(crate) fn taken(store: &dyn Store) -> Result<u64, Failed> {
    let mut taken = 0_u64;
    store.scan(&[PACKAGE], &[], &mut |_, file| {
        taken = taken.saturating_add(count(file.len()));
        ControlFlow::Continue(())
    })?;
    Ok(taken)
}
