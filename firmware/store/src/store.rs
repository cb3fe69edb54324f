//! A crash-safe store of keys and values: a port of the board.
//!
//! # Invariants
//! - Changes given together are made together: after a power cut either all of
//!   them are there or none is.
//!
//! # Not here
//! What the keys mean (`keys`).

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Bound, ControlFlow};

use spin::Mutex;

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The key has this value, whatever it had before.
    Put(Vec<u8>, Cow<'a, [u8]>),
    /// The key is not there.
    Remove(Vec<u8>),
}

/// The store failed; what it holds is what it held after the last change it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// Who is shown entries in the order of their keys, until it has seen enough.
pub type Seer<'s> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 's;

/// Keys and values.
pub trait Store: fmt::Debug + Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// [`Failed`].
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failed>;

    /// Shows the entries whose keys begin with `prefix` and come after `after`.
    ///
    /// # Errors
    /// [`Failed`].
    fn scan(&self, prefix: &[u8], after: &[u8], see: &mut Seer<'_>) -> Result<(), Failed>;

    /// Makes all changes, in their order, or none; they are safe when it returns.
    ///
    /// # Errors
    /// [`Failed`].
    fn apply(&self, changes: &[Change<'_>]) -> Result<(), Failed>;
}

/// A store in memory, for a machine without a disk. What is safe there is safe
/// until it is switched off.
#[derive(Debug, Default)]
pub struct Volatile(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Store for Volatile {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failed> {
        Ok(self.0.lock().get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], after: &[u8], see: &mut Seer<'_>) -> Result<(), Failed> {
        let map = self.0.lock();
        let after = (Bound::Excluded(after.max(prefix)), Bound::Unbounded);
        for (key, value) in map.range::<[u8], _>(after) {
            if !key.starts_with(prefix) || see(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &[Change<'_>]) -> Result<(), Failed> {
        let mut map = self.0.lock();
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    map.insert(key.clone(), value.to_vec());
                }
                Change::Remove(key) => {
                    map.remove(key);
                }
            }
        }
        Ok(())
    }
}
