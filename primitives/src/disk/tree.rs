//! Moving and removing, a directory as its whole subtree.
//!
//! A tree is read first and every entry of it admitted; only then is it touched. A
//! removed tree goes into the journal whole, by one rename, and is read again where
//! nobody else reaches it: if something joined it meanwhile that was never admitted,
//! all of it goes back and the answer is `Changed`.
//!
//! # Invariants
//! - One descendant that is not admitted, not text, reserved or mounted there
//!   from elsewhere, and nothing is moved or removed.
//! - A link is an entry; where it points is never asked.
//! - A move never replaces.
//!
//! # Not here
//! Which descendants are admitted (gate 4 answers through the caller).

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use core::{cell::RefCell, str};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Dir, RenameFlags, renameat_with};

use super::{
    Disk, Identity,
    keep::{full, kept_name, state},
    open::{Found, Missing, fault, look, look_within, stat, within},
    replace::{Change, settled},
};
use crate::{
    Fault,
    journal::{Entry, Operation, State},
    mounts::{Place, below},
    platform::{Admits, Journal, Kind, WALK_ENTRIES, WALK_LEVELS, is_own, is_part},
    rest::Owner,
    state::{Standing, Tally},
};

/// One entry of a tree that was read and admitted.
#[derive(Debug, PartialEq, Eq)]
struct Node {
    name: String,
    state: State,
    /// What a directory holds.
    inside: Option<Vec<Node>>,
}

impl Disk {
    pub(super) fn shift(
        &self,
        from: &str,
        to: &str,
        journal: &Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.table.place(from)? else {
            return Err(Fault::Immovable);
        };
        let Place::Inside(to_mount, to_rest) = self.table.place(to)? else {
            return Err(Fault::Exists);
        };
        let held = self.writable(mount)?;
        self.writable(to_mount)?;
        if mount != to_mount {
            return Err(Fault::CrossDevice);
        }
        let _turn = held.turn();
        let source = self.parent(held, rest, Missing::Refuse)?;
        let found = self.look(source.dir.as_fd(), source.name)?.ok_or(Fault::NotFound)?;
        match found.kind {
            Kind::File | Kind::Directory => {}
            Kind::Link => return Err(Fault::Link),
            Kind::Other => return Err(Fault::Special),
        }
        if below(rest, to_rest).is_some_and(|inner| !inner.is_empty()) {
            return Err(match found.kind {
                Kind::Directory => Fault::Immovable,
                Kind::File | Kind::Link | Kind::Other => Fault::NotADirectory,
            });
        }
        let change = Change { held, path: from, journal };
        let mut target = self.made_parent(&change, to, to_rest)?;
        if let Some(taken) = self.look(target.dir.as_fd(), target.name)? {
            return Err(taken.in_the_way());
        }
        let carried = RefCell::new(journal.stamp.carried.clone());
        let ask = |inner: &str, _: &Found| {
            let admitted = admits(&format!("{from}{inner}"), &format!("{to}{inner}"));
            carried.borrow_mut().join(&admitted.ok_or(Fault::Subtree)?);
            Ok(())
        };
        let whole = self.whole(source.dir.as_fd(), source.name, &found, &ask)?;
        journal.meets(|| whole.standing(&found))?;
        let carried = carried.into_inner();
        let mut stamp = journal.stamp.rest.clone();
        stamp.names.join(&carried);
        let moving = self.moving((from, to), &found, &journal.stamp, &carried);
        self.enter(&Entry {
            to: Some(to.to_owned()),
            before: Some(state(&found, None)),
            stamp: Some(stamp),
            ..change.entry(Operation::Move)
        })?;
        let (out_of, into) = ((&source.dir, source.name), (&target.dir, target.name));
        let free = RenameFlags::NOREPLACE;
        renameat_with(out_of.0, out_of.1, into.0, into.1, free).map_err(fault)?;
        let moved = look(target.dir.as_fd(), target.name)?;
        let Some(moved) = moved.filter(|moved| moved.identity == found.identity) else {
            // Something else took the name after it was admitted: it goes back.
            renameat_with(into.0, into.1, out_of.0, out_of.1, free).map_err(fault)?;
            return Err(Fault::Changed);
        };
        moving.moved(&found, &moved);
        target.made.keep();
        // The new name first: a crash between the two may show both, but never neither.
        settled(target.dir.as_fd(), source.dir.as_fd())
    }

    pub(super) fn take(
        &self,
        path: &str,
        journal: &Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::Immovable);
        };
        let held = self.writable(mount)?;
        let _turn = held.turn();
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let dir = parent.dir.as_fd();
        let found = look_within(dir, parent.name)?.ok_or(Fault::NotFound)?;
        self.free(found.identity)?;
        let owned = |inner: &str, found: &Found| {
            self.owned(&format!("{path}{inner}"), found, &journal.stamp)
        };
        let ask = |inner: &str, found: &Found| {
            owned(inner, found)?;
            if admits(&format!("{path}{inner}")) { Ok(()) } else { Err(Fault::Subtree) }
        };
        owned("", &found)?;
        let taken = self.whole(dir, parent.name, &found, &ask)?;
        journal.meets(|| taken.standing(&found))?;
        let keep = self.keep.as_ref().ok_or(Fault::JournalFull)?;
        if taken.bytes > journal.room {
            return Err(Fault::JournalFull);
        }
        let drawer = keep.drawer(held, Missing::Make).map_err(full)?;
        let change = Change { held, path, journal };
        let displaced = || {
            keep.enter(&Entry {
                before: Some(state(&found, None)),
                kept: Some(drawer.kept(journal.record, journal.part)),
                ..change.entry(Operation::Delete)
            })?;
            let (kept, free) = (kept_name(journal.record, journal.part), RenameFlags::NOREPLACE);
            let moved = renameat_with(dir, parent.name, &drawer.dir, kept.as_str(), free);
            moved.map_err(|errno| full(fault(errno)))?;
            let now = look_within(drawer.dir.as_fd(), &kept)?.ok_or(Fault::Changed)?;
            let alike = match journal.stamp.owner {
                Owner::Anyone => now.identity == found.identity,
                Owner::Creator => found.kind == Kind::Directory || found.unchanged(&now),
            };
            let same =
                alike && self.whole(drawer.dir.as_fd(), &kept, &now, &owned).as_ref() == Ok(&taken);
            if !same {
                renameat_with(&drawer.dir, kept.as_str(), dir, parent.name, free).map_err(fault)?;
                return Err(Fault::Changed);
            }
            settled(drawer.dir.as_fd(), dir)
        };
        let displaced = displaced();
        if displaced.is_err() {
            drawer.leave(held);
        }
        displaced?;
        self.rest().removed(path, &journal.stamp.rest);
        Ok(taken.bytes)
    }

    /// What stands under a path, for a question about it.
    pub(super) fn standing(&self, path: &str) -> Result<Standing, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::Immovable);
        };
        let parent = match self.parent(self.held(mount)?, rest, Missing::Refuse) {
            Err(Fault::NotFound) => return Ok(Standing::absent()),
            parent => parent?,
        };
        let dir = parent.dir.as_fd();
        let Some(found) = self.look(dir, parent.name)? else { return Ok(Standing::absent()) };
        Ok(self.whole(dir, parent.name, &found, &|_, _| Ok(()))?.standing(&found))
    }

    /// What stands under a name: one entry, or a tree with all its descendants.
    fn whole(
        &self,
        dir: BorrowedFd<'_>,
        name: &str,
        found: &Found,
        admits: Ask<'_>,
    ) -> Result<Whole, Fault> {
        match found.kind {
            Kind::Directory => self.tree(dir, name, found.identity, admits),
            Kind::File => Ok(Whole { bytes: found.size(), inside: Vec::new() }),
            Kind::Link | Kind::Other => Ok(Whole { bytes: 0, inside: Vec::new() }),
        }
    }

    /// Reads the tree under a name and has every descendant admitted.
    fn tree(
        &self,
        dir: BorrowedFd<'_>,
        name: &str,
        identity: Identity,
        admits: Ask<'_>,
    ) -> Result<Whole, Fault> {
        let mut walk = Walk { disk: self, admits, inner: String::new(), seen: 0, bytes: 0 };
        let inside = walk.enter(dir, name, identity, 0)?;
        Ok(Whole { bytes: walk.bytes, inside })
    }
}

/// Asked of each descendant, by its path below the tree's root.
type Ask<'a> = &'a dyn Fn(&str, &Found) -> Result<(), Fault>;

/// What a removal takes.
#[derive(Debug, PartialEq, Eq)]
struct Whole {
    /// Of its files.
    bytes: u64,
    inside: Vec<Node>,
}

impl Whole {
    fn standing(&self, found: &Found) -> Standing {
        let mut tally = Tally::default();
        tally_entry(&mut tally, "", &state(found, None), &self.inside);
        tally.finish(Some(found.kind))
    }
}

fn tally_entry(tally: &mut Tally, name: &str, state: &State, inside: &[Node]) {
    let Identity { device, inode } = state.identity;
    let (seconds, nanos) = state.modified;
    let parts = [device.to_le_bytes(), inode.to_le_bytes(), seconds.to_le_bytes()];
    let [device, inode, seconds] = &parts;
    let size = if state.kind == Kind::File { state.size } else { 0 };
    tally.add(name, state.kind, size, &[device, inode, seconds, &nanos.to_le_bytes()]);
    for node in inside {
        tally_entry(tally, &node.name, &node.state, node.inside.as_deref().unwrap_or_default());
    }
    if state.kind == Kind::Directory {
        tally.leave();
    }
}

/// What a single file is, for a change that has it open.
pub(super) fn standing(found: &Found) -> Standing {
    Whole { bytes: 0, inside: Vec::new() }.standing(found)
}

struct Walk<'w> {
    disk: &'w Disk,
    admits: Ask<'w>,
    /// The path below the tree's root, with a leading `/`.
    inner: String,
    seen: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn enter(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &str,
        identity: Identity,
        level: usize,
    ) -> Result<Vec<Node>, Fault> {
        // A level holds two handles; the bound keeps a deep tree from taking them all.
        if level == WALK_LEVELS {
            return Err(Fault::TooMany);
        }
        let here = same(dir, name, identity)?;
        let mut nodes = Vec::new();
        for name in self.names(here.as_fd())? {
            let Some(found) = look_within(here.as_fd(), &name)? else { continue };
            self.disk.free(found.identity)?;
            let length = self.inner.len();
            self.inner.push('/');
            self.inner.push_str(&name);
            if found.kind == Kind::File {
                self.bytes = self.bytes.saturating_add(found.size());
            } else if is_own(name.as_bytes()) {
                return Err(Fault::Reserved);
            }
            // An unfinished write has no name of its own: it goes with its directory.
            let unfinished = found.kind == Kind::File && is_part(name.as_bytes());
            if !unfinished {
                (self.admits)(&self.inner, &found)?;
            }
            let inside = if found.kind == Kind::Directory {
                let level = level.saturating_add(1);
                Some(self.enter(here.as_fd(), &name, found.identity, level)?)
            } else {
                None
            };
            self.inner.truncate(length);
            nodes.push(Node { name, state: state(&found, None), inside });
        }
        Ok(nodes)
    }

    fn names(&mut self, dir: BorrowedFd<'_>) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        for entry in Dir::read_from(dir).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            self.seen = self.seen.saturating_add(1);
            if self.seen > WALK_ENTRIES {
                return Err(Fault::TooMany);
            }
            names.push(str::from_utf8(name).map_err(|_| Fault::NameNotText)?.to_owned());
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Opens a directory of a tree, if it is still the one that was admitted.
fn same(dir: BorrowedFd<'_>, name: &str, identity: Identity) -> Result<OwnedFd, Fault> {
    let here = within(dir, name)?;
    if stat(here.as_fd())?.identity == identity { Ok(here) } else { Err(Fault::Changed) }
}
