//! What a change on the disk leaves in the index of labels.
//!
//! A label is in the index before its change is made, and stands for both what was
//! there and what will be, until the new thing was looked at by its open handle. A
//! change that fails takes it out again.
//!
//! # Invariants
//! - I15: at no moment does a path read with less than what stands there has.
//!
//! # Not here
//! What the labels come to (`rest::Index`).

use alloc::{borrow::ToOwned, string::String};
use std::os::fd::{AsFd, OwnedFd};

use super::{
    Disk,
    open::{Found, Parent, look, stat},
    replace::Change,
};
use crate::{
    Fault,
    platform::Kind,
    rest::{Entry, How, Moving, Names, Owner, Print, Rest, Seen, Stamp},
};

/// The label of a write that is being made.
pub(super) struct Labelling<'d> {
    disk: &'d Disk,
    path: &'d str,
    /// What was kept for the path before.
    entry: Option<Entry>,
    /// Whether the write is made.
    made: bool,
    /// What the bytes carried that stood there.
    before: Rest,
}

/// The labels of a move that is being made.
pub(super) struct Relabelling<'d> {
    disk: &'d Disk,
    paths: (String, String),
    rest: Rest,
    moving: Option<Moving>,
}

impl Disk {
    pub(super) fn labelling<'d>(
        &'d self,
        change: &Change<'d>,
        before: Option<&Found>,
        how: How,
    ) -> Labelling<'d> {
        let before = before.map(Found::seen);
        let mut index = self.rest();
        let rest = before.map_or(Rest::SYSTEM, |seen| index.content(change.path, &seen));
        let planned = index.plan(change.path, before.as_ref(), how, &change.journal.stamp);
        let entry = index.enter(change.path, planned);
        drop(index);
        Labelling { disk: self, path: change.path, entry, made: false, before: rest }
    }

    pub(super) fn moving(
        &self,
        (from, to): (&str, &str),
        found: &Found,
        stamp: &Stamp,
        carried: &Names,
    ) -> Relabelling<'_> {
        let moving = self.rest().moving((from, to), &found.seen(), stamp, carried);
        let paths = (from.to_owned(), to.to_owned());
        Relabelling { disk: self, paths, rest: stamp.rest.clone(), moving: Some(moving) }
    }

    /// Enters the directories that were made on the way to a path.
    pub(super) fn label_made(&self, made: &[String], parent: &Parent<'_>, stamp: &Stamp) {
        let mut index = self.rest();
        for path in made {
            index.made(path, stamp);
        }
        // Where somebody else made one of them, none is known to be ours.
        if made.len() == parent.made.dirs().len() {
            for (path, (dir, name)) in made.iter().zip(parent.made.dirs()) {
                if let Ok(Some(found)) = look(dir.as_fd(), name) {
                    index.settle(path, &found.seen());
                }
            }
        }
    }

    /// Refuses what has to be the creator's own and is not.
    pub(super) fn owned(&self, path: &str, found: &Found, stamp: &Stamp) -> Result<(), Fault> {
        match stamp.owner {
            Owner::Anyone => Ok(()),
            Owner::Creator if self.rest().owns(path, &found.seen(), stamp.creator) => Ok(()),
            Owner::Creator => Err(Fault::Changed),
        }
    }
}

impl Labelling<'_> {
    /// The write is made: what stands there is the new file, if nobody has changed
    /// it since it was written.
    pub(super) fn settle(&mut self, file: &OwnedFd, written: &Found) {
        self.made = true;
        if let Ok(now) = stat(file.as_fd())
            && written.unchanged(&now)
        {
            self.disk.rest().settle(self.path, &now.seen());
        }
    }

    pub(super) fn before(&self) -> Rest {
        self.before.clone()
    }
}

impl Drop for Labelling<'_> {
    fn drop(&mut self) {
        if !self.made {
            self.disk.rest().restore(self.path, self.entry.take());
        }
    }
}

impl Relabelling<'_> {
    /// The move is made: what stands there is what was seen before, if nobody has
    /// changed it since.
    pub(super) fn moved(mut self, before: &Found, now: &Found) {
        self.moving = None;
        let mut seen = now.seen();
        if before.kind == Kind::File && !before.unchanged(now) {
            seen.print.changed = None;
        }
        let (from, to) = &self.paths;
        self.disk.rest().moved((from, to), &seen, &self.rest);
    }
}

impl Drop for Relabelling<'_> {
    fn drop(&mut self) {
        if let Some(moving) = self.moving.take() {
            self.disk.rest().unmoved(moving);
        }
    }
}

impl Found {
    /// What a label at rest is held against.
    pub(super) fn seen(&self) -> Seen {
        let (stat, identity) = (&self.stat, (self.identity.device, self.identity.inode));
        let print = match self.kind {
            Kind::Directory => Print::directory(identity),
            Kind::File | Kind::Link | Kind::Other => Print {
                identity,
                size: self.size(),
                modified: (stat.st_mtime, stat.st_mtime_nsec),
                changed: Some((stat.st_ctime, stat.st_ctime_nsec)),
            },
        };
        Seen { kind: self.kind, print, links: stat.st_nlink }
    }
}
