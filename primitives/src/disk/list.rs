//! One page of a directory, in an order no file system chose.
//!
//! A directory is read once from end to end; only the names that can stand on
//! the page are held, in a heap as large as the page, so that neither time nor
//! memory grows with the square of its size.
//!
//! # Invariants
//! - The order is that of the names' bytes.
//! - Unfinished writes and Synapse's own entries are not shown.
//!
//! # Not here
//! What stands under a name (`open`).

use alloc::{borrow::ToOwned, collections::BinaryHeap, string::String, vec::Vec};
use core::str;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Dir, OFlags};

use super::{
    Disk, Held,
    open::{Missing, beneath, fault, look, readable, stat},
};
use crate::{
    Fault,
    memory::{page, way},
    mounts::Place,
    platform::{Kind, Listing, is_part},
};

impl Disk {
    pub(super) fn listing(&self, path: &str, after: &str, limit: usize) -> Result<Listing, Fault> {
        match self.table.place(path)? {
            Place::Above => {
                let names = self.table.names_below(path).into_iter();
                Ok(page(names.filter(|name| *name > after).map(way), limit))
            }
            Place::Root(mount) => {
                self.list_dir(readable(self.held(mount)?.dir.as_fd())?, after, limit)
            }
            Place::Inside(mount, rest) => self.list_inside(self.held(mount)?, rest, after, limit),
        }
    }

    fn list_inside(
        &self,
        held: &Held,
        rest: &str,
        after: &str,
        limit: usize,
    ) -> Result<Listing, Fault> {
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let found = self.look(parent.dir.as_fd(), parent.name)?.ok_or(Fault::NotFound)?;
        match found.kind {
            Kind::File => {
                let own = Some(parent.name).filter(|name| *name > after);
                Ok(page(own.map(|name| found.entry(name.to_owned())).into_iter(), limit))
            }
            Kind::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let dir = beneath(parent.dir.as_fd(), parent.name, flags)?;
                self.free(stat(dir.as_fd())?.identity)?;
                self.list_dir(dir, after, limit)
            }
            Kind::Link => Err(Fault::Link),
            Kind::Other => Err(Fault::Special),
        }
    }

    fn list_dir(&self, dir: OwnedFd, after: &str, limit: usize) -> Result<Listing, Fault> {
        let mut listing = Listing::default();
        // One more than the page shows whether others follow; Synapse's own may be among
        // the names and leave the page again.
        let most = limit.saturating_add(1).saturating_add(self.reserved.len());
        let mut names: BinaryHeap<String> = BinaryHeap::new();
        let mut left_out = false;
        let handle = readable(dir.as_fd())?;
        for entry in Dir::new(dir).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || is_part(name) {
                continue;
            }
            let Ok(name) = str::from_utf8(name) else {
                listing.unnamed = listing.unnamed.saturating_add(1);
                continue;
            };
            if name <= after {
                continue;
            }
            if names.len() < most {
                names.push(name.to_owned());
            } else {
                left_out = true;
                if let Some(mut last) = names.peek_mut()
                    && name < last.as_str()
                {
                    name.clone_into(&mut last);
                }
            }
        }
        let mut shown = Vec::new();
        for name in names.into_sorted_vec() {
            // Gone since the directory was read, or Synapse's own: not there, for a guest.
            let Some(found) = look(handle.as_fd(), &name)? else { continue };
            if self.free(found.identity).is_err() {
                continue;
            }
            shown.push(found.entry(name));
        }
        let unnamed = listing.unnamed;
        listing = page(shown.into_iter(), limit);
        listing.unnamed = unnamed;
        listing.more |= left_out;
        Ok(listing)
    }
}
