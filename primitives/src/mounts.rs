//! Where a guest path leads: into a mount, above the mounts, or nowhere.
//!
//! A guest sees one tree. Its only real parts are the mounts; the directories
//! above them exist to be listed. Both platforms answer from this one table, so
//! that they cannot disagree about it.
//!
//! # Invariants
//! - No mount lies inside another: a path has one owner.
//! - A path that is not normal leads nowhere.
//!
//! # Not here
//! What a mount holds (the platforms), which of it is granted (gate 4).

use alloc::{collections::BTreeSet, string::String, vec::Vec};
use core::fmt;

use crate::{Fault, platform::nameable};

/// Whether a mount may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Every change answers [`Fault::ReadOnly`].
    ReadOnly,
    /// Changes are made, as far as the host permits.
    ReadWrite,
}

/// Why a set of mounts cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountError {
    /// The root is not a normal guest path below `/`.
    NotNormal {
        /// The root as given.
        root: String,
    },
    /// One root is, or lies inside, another.
    Nested {
        /// The outer root.
        outer: String,
        /// The inner root.
        inner: String,
    },
}

impl fmt::Display for MountError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNormal { root } => write!(
                out,
                "cannot mount at {root:?}: a mount needs a normal path below `/`; \
                 choose one such as `/data`"
            ),
            Self::Nested { outer, inner } => write!(
                out,
                "cannot mount {inner:?} with {outer:?}: a path must have one owner, and these \
                 overlap; mount them side by side"
            ),
        }
    }
}

impl core::error::Error for MountError {}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'p> {
    /// The root of the mount with this number.
    Root(usize),
    /// An entry of a mount, by its path below the mount's root.
    Inside(usize, &'p str),
    /// A directory that only leads to mounts.
    Above,
}

/// The mounts of one task, by guest root.
#[derive(Debug)]
pub struct Table {
    roots: Vec<String>,
}

impl Table {
    /// A table of these guest roots.
    ///
    /// # Errors
    /// [`MountError`] for a root that is not normal or overlaps another.
    pub fn new(roots: Vec<String>) -> Result<Self, MountError> {
        for (at, root) in roots.iter().enumerate() {
            if !is_normal(root) || nameable(root).is_err() || root == "/" {
                return Err(MountError::NotNormal { root: root.clone() });
            }
            for (other_at, outer) in roots.iter().enumerate() {
                if at != other_at && below(outer, root).is_some() {
                    return Err(MountError::Nested { outer: outer.clone(), inner: root.clone() });
                }
            }
        }
        Ok(Self { roots })
    }

    /// The guest roots.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(String::as_str)
    }

    /// Finds the owner of a path.
    ///
    /// # Errors
    /// `NotFound` where no mount is, `Reserved` and `TooLarge` for names that
    /// cannot be an agent's.
    pub fn place<'p>(&self, path: &'p str) -> Result<Place<'p>, Fault> {
        if !is_normal(path) {
            return Err(Fault::NotFound);
        }
        for (mount, root) in self.roots.iter().enumerate() {
            match below(root, path) {
                Some("") => return Ok(Place::Root(mount)),
                Some(rest) => {
                    nameable(rest)?;
                    return Ok(Place::Inside(mount, rest));
                }
                None => {}
            }
        }
        if path == "/" || self.roots.iter().any(|root| below(path, root).is_some()) {
            return Ok(Place::Above);
        }
        Err(Fault::NotFound)
    }

    /// The names one level below a path above the mounts.
    #[must_use]
    pub fn names_below<'t>(&'t self, path: &str) -> BTreeSet<&'t str> {
        let path = if path == "/" { "" } else { path };
        self.roots
            .iter()
            .filter_map(|root| below(path, root))
            .filter_map(|rest| rest.split('/').next())
            .collect()
    }
}

/// Splits off the last name of a path inside a mount.
#[must_use]
pub fn split_last(rest: &str) -> (Option<&str>, &str) {
    match rest.rsplit_once('/') {
        Some((parents, name)) => (Some(parents), name),
        None => (None, rest),
    }
}

/// What remains of `path` below `root`; empty for the root itself.
#[must_use]
pub fn below<'p>(root: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(root)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn is_normal(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    rest.is_empty()
        || (!rest.contains('\0') && rest.split('/').all(|name| !matches!(name, "" | "." | "..")))
}

#[cfg(test)]
mod tests {
    use alloc::{borrow::ToOwned, vec};

    use super::*;

    #[test]
    fn a_path_has_one_owner() -> Result<(), MountError> {
        let table = Table::new(vec!["/data".to_owned(), "/home/memory".to_owned()])?;
        assert_eq!(table.place("/data"), Ok(Place::Root(0)));
        assert_eq!(table.place("/data/a/b"), Ok(Place::Inside(0, "a/b")));
        assert_eq!(table.place("/database"), Err(Fault::NotFound));
        assert_eq!(table.place("/home"), Ok(Place::Above));
        assert_eq!(table.place("/"), Ok(Place::Above));
        assert_eq!(table.place("/data/../etc"), Err(Fault::NotFound));
        assert_eq!(table.place("data"), Err(Fault::NotFound));
        assert_eq!(table.place("/data/.synapse-part-1"), Err(Fault::Reserved));
        assert_eq!(table.names_below("/").into_iter().collect::<Vec<_>>(), ["data", "home"]);
        assert_eq!(table.names_below("/home").into_iter().collect::<Vec<_>>(), ["memory"]);
        Ok(())
    }

    #[test]
    fn overlapping_and_crooked_roots_are_refused() {
        for root in ["", "/", "data", "/data/", "/a//b", "/a/../b"] {
            let refused = Table::new(vec![root.to_owned()]).err();
            assert_eq!(refused, Some(MountError::NotNormal { root: root.to_owned() }));
        }
        for pair in [["/a", "/a/b"], ["/a", "/a"]] {
            let refused = Table::new(pair.map(ToOwned::to_owned).to_vec()).err();
            let [outer, inner] = pair.map(ToOwned::to_owned);
            assert_eq!(refused, Some(MountError::Nested { outer, inner }));
        }
    }
}
