//! One page of a directory, in an order no file system chose.
//!
//! A directory is read from end to end and its names are kept for the next page,
//! for as long as its times say that it is the same, so that the time for all
//! pages does not grow with the square of its size.
//!
//! # Invariants
//! - The order is that of the names' bytes, as they are shown.
//! - A name that is not UTF-8 is shown as what it is, not left out.
//! - Unfinished writes and Synapse's own entries are not shown.
//!
//! # Not here
//! What stands under a name (`open`).

use alloc::{borrow::ToOwned, boxed::Box, string::String, sync::Arc, vec::Vec};
use core::fmt::Write as _;
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::PoisonError,
};

use rustix::fs::{Dir, FileType, OFlags};

use super::{
    Disk, Held, Identity,
    open::{Found, Missing, Parent, beneath, fault, look, readable, stat},
};
use crate::{
    Fault,
    execute::join,
    memory::{page, way},
    mounts::Place,
    platform::{Kind, Listing, Named, is_own},
    rest::Rest,
};

impl Disk {
    pub(super) fn listing(&self, path: &str, after: &str, limit: usize) -> Result<Listing, Fault> {
        match self.table.place(path)? {
            Place::Above => {
                let names = self.table.names_below(path).into_iter();
                Ok(page(names.filter(|name| *name > after).map(way), limit, Rest::SYSTEM))
            }
            Place::Root(mount) => {
                self.list_dir(readable(self.held(mount)?.dir.as_fd())?, path, after, limit)
            }
            Place::Inside(mount, rest) => {
                self.list_inside((self.held(mount)?, path, rest), after, limit)
            }
        }
    }

    fn list_inside(
        &self,
        (held, path, rest): (&Held, &str, &str),
        after: &str,
        limit: usize,
    ) -> Result<Listing, Fault> {
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let found = self.look(parent.dir.as_fd(), parent.name)?.ok_or(Fault::NotFound)?;
        match found.kind {
            Kind::File => {
                let own = Some(parent.name).filter(|name| *name > after);
                let rest = self.rest().shown(path, &found.seen());
                let own = own.map(|name| found.entry(name.to_owned(), rest.clone()));
                Ok(page(own.into_iter(), limit, rest))
            }
            Kind::Directory => self.list_dir(self.listable(&parent)?, path, after, limit),
            Kind::Link => Err(Fault::Link),
            Kind::Other => Err(Fault::Special),
        }
    }

    /// Opens the directory at the end of a path, to read what is in it.
    fn listable(&self, parent: &Parent<'_>) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let dir = beneath(parent.dir.as_fd(), parent.name, flags)?;
        self.free(stat(dir.as_fd())?.identity)?;
        Ok(dir)
    }

    /// The directories of a directory, and what else of it is wanted. Only of these it
    /// is looked at what they are: a directory says of its own what is no directory.
    pub(super) fn wanted(
        &self,
        (held, rest): (&Held, Option<&str>),
        wanted: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Named, Fault> {
        let dir = match rest {
            Some(rest) => self.listable(&self.parent(held, rest, Missing::Refuse)?)?,
            None => readable(held.dir.as_fd())?,
        };
        let handle = readable(dir.as_fd())?;
        let mut named = Named::default();
        for entry in Dir::new(dir).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") || is_own(bytes) {
                continue;
            }
            named.seen = named.seen.saturating_add(1);
            let may_be_directory =
                matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
            let is_wanted = match str::from_utf8(bytes) {
                Ok(name) => wanted(name),
                Err(_) => wanted(&shown(bytes)),
            };
            if !may_be_directory && !is_wanted {
                continue;
            }
            let Some(found) = look(handle.as_fd(), bytes)? else { continue };
            let asked = found.kind == Kind::Directory || is_wanted;
            if asked && self.free(found.identity).is_ok() {
                named.names.push((shown(bytes), found.kind));
            }
        }
        named.names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(named)
    }

    fn list_dir(
        &self,
        dir: OwnedFd,
        path: &str,
        after: &str,
        limit: usize,
    ) -> Result<Listing, Fault> {
        let handle = readable(dir.as_fd())?;
        let names = self.names(dir)?;
        let seen = stat(handle.as_fd())?.seen();
        let mut following = names.iter().skip(names.partition_point(|name| &*name.shown <= after));
        let rest = self.rest().content(path, &seen);
        let mut listing = Listing { entries: Vec::new(), more: false, rest };
        for name in following.by_ref() {
            if listing.entries.len() == limit {
                listing.more = true;
                break;
            }
            // Gone since the directory was read, or Synapse's own: not there, for a guest.
            let Some(found) = look(handle.as_fd(), &*name.bytes)? else { continue };
            if self.free(found.identity).is_ok() {
                let rest = self.rest().shown(&join(path, &name.shown), &found.seen());
                listing.entries.push(found.entry(name.shown.clone(), rest));
            }
        }
        Ok(listing)
    }

    /// The sorted names of a directory, read anew unless it is the one that was
    /// read last and has not changed since.
    fn names(&self, dir: OwnedFd) -> Result<Arc<[Name]>, Fault> {
        let before = stat(dir.as_fd())?;
        let version = Version::of(&before);
        let mut last = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = last.as_ref().filter(|listed| listed.version == version) {
            return Ok(Arc::clone(&listed.names));
        }
        let handle = readable(dir.as_fd())?;
        let mut names = Vec::new();
        for entry in Dir::new(dir).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let bytes = entry.file_name().to_bytes();
            if !matches!(bytes, b"." | b"..") && !is_own(bytes) {
                names.push(Name { shown: shown(bytes), bytes: bytes.into() });
            }
        }
        names.sort_unstable();
        let names: Arc<[Name]> = names.into();
        // A change within the clock's step leaves the time as it was: what changed
        // just now is not trusted to stay. Nor is what changed while it was read.
        let settled = before.settled() && Version::of(&stat(handle.as_fd())?) == version;
        *last = settled.then(|| Listed { version, names: Arc::clone(&names) });
        Ok(names)
    }
}

/// The directory that was read last.
#[derive(Debug)]
pub(super) struct Listed {
    version: Version,
    names: Arc<[Name]>,
}

/// A directory in one state: any change of its names changes its times.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    identity: Identity,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Version {
    fn of(found: &Found) -> Self {
        let stat = &found.stat;
        Self {
            identity: found.identity,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// A name as it is and as it is shown, in the order of the latter.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    shown: String,
    bytes: Box<[u8]>,
}

/// A name as text. A backslash stands in no path that a sentence can spell, so
/// what is escaped here names nothing else.
fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}
