//! What must outlive a run: a crash-safe map of keys to values, a port of the board.
//!
//! # Invariants
//! - A commit is there whole or not at all, after a crash too.
//! - A store of another version is refused, never guessed at.
//!
//! # Not here
//! What is kept in it (`rest::kept`).

use alloc::{borrow::ToOwned, boxed::Box, collections::BTreeMap, string::String, vec::Vec};
use core::fmt;

/// The version of what is kept.
pub const VERSION: &[u8] = b"1";

/// The key of the version.
const VERSION_KEY: &str = "synapse-store";

/// A key, and its new value; none removes it.
pub type Change = (String, Option<Vec<u8>>);

/// A map that survives crashes.
pub trait Store: Send {
    /// The value of a key.
    ///
    /// # Errors
    /// [`StoreError::Host`].
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Every key that begins so, in the order of bytes, with its value.
    ///
    /// # Errors
    /// [`StoreError::Host`].
    fn range(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError>;

    /// Makes all these changes at once. They are on the disk when it returns.
    ///
    /// # Errors
    /// [`StoreError::Host`]; none is made then.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError>;
}

/// Why a store cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// Another version wrote it.
    Version,
    /// The value of this key is not as it was written.
    Damaged(String),
    /// The board's own reason.
    Host(Box<dyn core::error::Error + Send + Sync>),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("another version of Synapse wrote it"),
            Self::Damaged(key) => write!(f, "what it holds under {key:?} is not as it was written"),
            Self::Host(why) => why.fmt(f),
        }
    }
}

impl core::error::Error for StoreError {}

/// Checks the version of a store, and writes it into an empty one.
///
/// # Errors
/// `Version`, or the store's own.
pub fn check(store: &mut impl Store) -> Result<(), StoreError> {
    match store.get(VERSION_KEY)? {
        Some(version) if version == VERSION => Ok(()),
        Some(_) => Err(StoreError::Version),
        None => store.commit(&[(VERSION_KEY.to_owned(), Some(VERSION.to_vec()))]),
    }
}

/// A store that ends with its process: of a board without a disk, and of tests.
#[derive(Debug, Default)]
pub struct Volatile(BTreeMap<String, Vec<u8>>);

impl Store for Volatile {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.get(key).cloned())
    }

    fn range(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let from = self.0.range(prefix.to_owned()..);
        let found = from.take_while(|(key, _)| key.starts_with(prefix));
        Ok(found.map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        for (key, value) in changes {
            match value {
                Some(value) => drop(self.0.insert(key.clone(), value.clone())),
                None => drop(self.0.remove(key)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{StoreError, VERSION_KEY, Volatile, check};
    use crate::store::Store as _;
    use alloc::{borrow::ToOwned as _, vec};

    #[test]
    fn an_unknown_version_is_refused() {
        let mut store = Volatile::default();
        check(&mut store).unwrap();
        check(&mut store).unwrap();
        store.commit(&[(VERSION_KEY.to_owned(), Some(vec![b'2']))]).unwrap();
        assert!(matches!(check(&mut store), Err(StoreError::Version)));
    }
}
