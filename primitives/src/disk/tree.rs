//! Moving and removing, a directory as its whole subtree.
//!
//! A tree is read first and every entry of it admitted; only then is it touched,
//! and of a removal nothing but what was read: what somebody adds meanwhile was
//! never admitted, so it stays and the answer is `Changed`.
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
use core::str;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{AtFlags, Dir, RenameFlags, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    Disk, Identity,
    open::{Missing, fault, look, look_within, readable, stat, sync, within},
};
use crate::{
    Fault,
    mounts::{Place, below},
    platform::{Kind, WALK_ENTRIES, WALK_LEVELS, is_part},
};

/// One entry of a tree that was read and admitted.
#[derive(Debug)]
struct Node {
    name: String,
    identity: Identity,
    /// What a directory holds.
    inside: Option<Vec<Node>>,
}

impl Disk {
    pub(super) fn shift(
        &self,
        from: &str,
        to: &str,
        admits: &(dyn Fn(&str, &str) -> bool + Sync),
    ) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.table.place(from)? else {
            return Err(Fault::Subtree);
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
                Kind::Directory => Fault::Unsupported,
                Kind::File | Kind::Link | Kind::Other => Fault::NotADirectory,
            });
        }
        let mut target = self.parent(held, to_rest, Missing::Make)?;
        if let Some(taken) = self.look(target.dir.as_fd(), target.name)? {
            return Err(taken.in_the_way());
        }
        if found.kind == Kind::Directory {
            let ask = |inner: &str| admits(&format!("{from}{inner}"), &format!("{to}{inner}"));
            let _tree = self.tree(source.dir.as_fd(), source.name, found.identity, &ask)?;
        }
        let left = readable(source.dir.as_fd())?;
        let entered = readable(target.dir.as_fd())?;
        let (out_of, into) = ((&source.dir, source.name), (&target.dir, target.name));
        let free = RenameFlags::NOREPLACE;
        renameat_with(out_of.0, out_of.1, into.0, into.1, free).map_err(fault)?;
        let moved = look(target.dir.as_fd(), target.name)?;
        if moved.is_none_or(|moved| moved.identity != found.identity) {
            // Something else took the name after it was admitted: it goes back.
            renameat_with(into.0, into.1, out_of.0, out_of.1, free).map_err(fault)?;
            return Err(Fault::Changed);
        }
        target.made.keep();
        // The new name first: a crash between the two may show both, but never neither.
        sync(entered.as_fd())?;
        sync(left.as_fd())
    }

    pub(super) fn take(
        &self,
        path: &str,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::Subtree);
        };
        let held = self.writable(mount)?;
        let _turn = held.turn();
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let dir = parent.dir.as_fd();
        let found = look_within(dir, parent.name)?.ok_or(Fault::NotFound)?;
        self.free(found.identity)?;
        let inside = if found.kind == Kind::Directory {
            let ask = |inner: &str| admits(&format!("{path}{inner}"));
            Some(self.tree(dir, parent.name, found.identity, &ask)?)
        } else {
            None
        };
        let left = readable(dir)?;
        let node = Node { name: parent.name.to_owned(), identity: found.identity, inside };
        clear(dir, &node)?;
        sync(left.as_fd())
    }

    /// Reads the tree under a name and has every descendant admitted.
    fn tree(
        &self,
        dir: BorrowedFd<'_>,
        name: &str,
        identity: Identity,
        admits: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Node>, Fault> {
        let mut walk = Walk { disk: self, admits, inner: String::new(), seen: 0 };
        walk.enter(dir, name, identity, 0)
    }
}

struct Walk<'w> {
    disk: &'w Disk,
    admits: &'w dyn Fn(&str) -> bool,
    /// The path below the tree's root, with a leading `/`.
    inner: String,
    seen: usize,
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
            // An unfinished write has no name of its own: it goes with its directory.
            let unfinished = found.kind == Kind::File && is_part(name.as_bytes());
            if !unfinished && !(self.admits)(&self.inner) {
                return Err(Fault::Subtree);
            }
            let inside = if found.kind == Kind::Directory {
                let level = level.saturating_add(1);
                Some(self.enter(here.as_fd(), &name, found.identity, level)?)
            } else {
                None
            };
            self.inner.truncate(length);
            nodes.push(Node { name, identity: found.identity, inside });
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

/// Removes what was read, and nothing else.
fn clear(dir: BorrowedFd<'_>, node: &Node) -> Result<(), Fault> {
    let flags = match &node.inside {
        Some(inside) => {
            let here = same(dir, &node.name, node.identity)?;
            for node in inside {
                clear(here.as_fd(), node)?;
            }
            AtFlags::REMOVEDIR
        }
        None => match look(dir, &node.name)? {
            Some(found) if found.identity == node.identity => AtFlags::empty(),
            Some(_) => return Err(Fault::Changed),
            None => return Ok(()),
        },
    };
    match unlinkat(dir, node.name.as_str(), flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Fault::Changed),
        Err(errno) => Err(fault(errno)),
    }
}

/// Opens a directory of a tree, if it is still the one that was admitted.
fn same(dir: BorrowedFd<'_>, name: &str, identity: Identity) -> Result<OwnedFd, Fault> {
    let here = within(dir, name)?;
    if stat(here.as_fd())?.identity == identity { Ok(here) } else { Err(Fault::Changed) }
}
