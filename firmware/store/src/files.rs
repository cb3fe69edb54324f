//! The verbs of a platform, on a tree of the store.
//!
//! They answer as the platform of plain values does (`synapse_primitives::memory`);
//! a test plays the same calls to both. What a call displaces stays where it is:
//! only the name goes, and the journal holds the node.
//!
//! # Invariants
//! - I16: a call's changes and its journal entry are one set of changes.
//!
//! # Not here
//! Clock and screen (the board). Putting back (`undo`).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use synapse_primitives::Fault;
use synapse_primitives::mounts::{Place, below, split_last};
use synapse_primitives::platform::{Entry, Journal, Kind, Listing, Mode, Written, edited};

use crate::shelf::{ENTRY, Shelf, State};
use crate::tree::{Node, Tree, count, usize_of};
use crate::undo::{self, Operation};

/// Who changes something, and when.
#[derive(Clone, Copy, Debug)]
pub struct By {
    /// The run.
    pub run: u64,
    /// Its record, and the bytes that it may still displace.
    pub journal: Journal,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl Shelf {
    /// As [`synapse_primitives::Platform::read`].
    ///
    /// # Errors
    /// As there, and `NoSpace` where the memory has no room for it.
    pub fn read(&self, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, Fault> {
        let Place::Inside(mount, rest) = self.place(path)? else {
            return Err(Fault::NotAFile);
        };
        let state = self.lock();
        let tree = self.tree(&state, 0);
        let file = tree.find(state.root(mount)?, rest)?;
        if file.kind != Kind::File {
            return Err(Fault::NotAFile);
        }
        tree.content(&file, offset, length)
    }

    /// As [`synapse_primitives::Platform::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        let limit = usize_of(limit);
        let state = self.lock();
        let tree = self.tree(&state, 0);
        let node = match self.place(path)? {
            Place::Above => {
                let names = self.names_above(path).into_iter().filter(|name| &**name > after);
                return Ok(page(names.map(way).collect(), limit));
            }
            Place::Root(mount) => tree.node(state.root(mount)?)?,
            Place::Inside(mount, rest) => {
                let node = tree.find(state.root(mount)?, rest)?;
                if node.kind != Kind::Directory {
                    let own = entry(split_last(rest).1, &node);
                    let own = Some(own).into_iter().filter(|own| &*own.name > after);
                    return Ok(page(own.collect(), limit));
                }
                node
            }
        };
        let mut found = Vec::new();
        tree.names(node.number, after, &mut |name, child| {
            found.push((name.to_string(), child));
            if found.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let entries = found.iter().map(|(name, child)| Ok(entry(name, &tree.node(*child)?)));
        Ok(page(entries.collect::<Result<_, Fault>>()?, limit))
    }

    /// As [`synapse_primitives::Platform::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, path: &str, content: &[u8], mode: Mode, by: By) -> Result<Written, Fault> {
        let (mount, rest) = match (self.place(path)?, mode) {
            (Place::Inside(mount, rest), _) => (mount, rest),
            (Place::Root(_) | Place::Above, Mode::Create) => return Err(Fault::Exists),
            (Place::Root(_) | Place::Above, Mode::Replace | Mode::Append) => {
                return Err(Fault::NotAFile);
            }
        };
        let mut state = self.lock();
        let mut tree = Tree::new(self.store(), state.next(), by.now_ms);
        let spot = tree.make_parents(state.root(mount)?, rest)?;
        let length = count(content.len());
        let (change, cost) = match (tree.child(spot.parent, spot.name)?, mode) {
            (Some(_), Mode::Create) => return Err(Fault::Exists),
            (Some(Node { kind: Kind::Directory, .. }), _) => return Err(Fault::NotAFile),
            (None, _) => {
                let nodes = ENTRY.saturating_mul(u64::from(spot.made).saturating_add(1));
                let file = tree.add_file(content);
                tree.link(spot.parent, spot.name, file.number);
                (undo::Entry { made: spot.made, ..wrote(Operation::Create, None, file) }, nodes)
            }
            (Some(old), Mode::Append) => {
                let file = tree.append(old, content)?;
                (wrote(Operation::Append, Some(old), file), 0)
            }
            (Some(old), Mode::Replace) => {
                if old.size > by.journal.room {
                    return Err(Fault::JournalFull);
                }
                let file = tree.add_file(content);
                tree.link(spot.parent, spot.name, file.number);
                (wrote(Operation::Replace, Some(old), file), ENTRY)
            }
        };
        let created = change.operation == Operation::Create;
        let displaced = change.displaced();
        let size = match (change.operation, &change.before) {
            (Operation::Append, Some(old)) => old.size.saturating_add(length),
            _ => length,
        };
        self.changed(&mut state, tree, by, path, change, length.saturating_add(cost))?;
        Ok(Written { created, displaced, length: size })
    }

    /// As [`synapse_primitives::Platform::edit`].
    ///
    /// # Errors
    /// As there.
    pub fn edit(&self, path: &str, old: &[u8], new: &[u8], by: By) -> Result<Written, Fault> {
        let Place::Inside(mount, rest) = self.place(path)? else {
            return Err(Fault::NotAFile);
        };
        let mut state = self.lock();
        let (parents, name) = split_last(rest);
        let tree = self.tree(&state, 0);
        let parent = tree.find(state.root(mount)?, parent_path(parents))?;
        if parent.kind != Kind::Directory {
            return Err(Fault::NotADirectory);
        }
        let file = tree.child(parent.number, name)?.ok_or(Fault::NotFound)?;
        if file.kind != Kind::File {
            return Err(Fault::NotAFile);
        }
        if file.size > self.rooms().whole {
            return Err(Fault::TooLarge);
        }
        let whole = edited(&tree.content(&file, 0, file.size)?, old, new)?;
        if file.size > by.journal.room {
            return Err(Fault::JournalFull);
        }
        let mut tree = Tree::new(self.store(), state.next(), by.now_ms);
        let node = tree.add_file(&whole);
        tree.link(parent.number, name, node.number);
        let change = wrote(Operation::Replace, Some(file), node);
        let length = count(whole.len());
        self.changed(&mut state, tree, by, path, change, length.saturating_add(ENTRY))?;
        Ok(Written { created: false, displaced: file.size, length })
    }

    /// As [`synapse_primitives::Platform::rename`].
    ///
    /// # Errors
    /// As there.
    pub fn rename(
        &self,
        from: &str,
        to: &str,
        by: By,
        admits: &dyn Fn(&str, &str) -> bool,
    ) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.place(from)? else {
            return Err(Fault::Immovable);
        };
        let Place::Inside(to_mount, to_rest) = self.place(to)? else {
            return Err(Fault::Exists);
        };
        if mount != to_mount {
            return Err(Fault::CrossDevice);
        }
        let mut state = self.lock();
        let mut tree = Tree::new(self.store(), state.next(), by.now_ms);
        let root = state.root(mount)?;
        let node = tree.find(root, rest)?;
        if below(rest, to_rest).is_some_and(|inner| !inner.is_empty()) {
            return match node.kind {
                Kind::Directory => Err(Fault::Immovable),
                _ => Err(Fault::NotADirectory),
            };
        }
        match tree.find(root, to_rest) {
            Ok(_) => return Err(Fault::Exists),
            Err(Fault::NotFound) => {}
            Err(fault) => return Err(fault),
        }
        tree.walk(&node, &mut |inner| {
            let path = |start: &str| [start, inner].concat();
            admits(&path(from), &path(to))
        })?;
        let (parents, name) = split_last(rest);
        let parent = tree.find(root, parent_path(parents))?;
        let spot = tree.make_parents(root, to_rest)?;
        tree.unlink(parent.number, name);
        tree.link(spot.parent, spot.name, node.number);
        let change = undo::Entry {
            to: Some(to.to_string()),
            made: spot.made,
            ..wrote(Operation::Move, None, node)
        };
        self.changed(&mut state, tree, by, from, change, count(to.len()))
    }

    /// As [`synapse_primitives::Platform::remove`].
    ///
    /// # Errors
    /// As there.
    pub fn remove(&self, path: &str, by: By, admits: &dyn Fn(&str) -> bool) -> Result<u64, Fault> {
        let Place::Inside(mount, rest) = self.place(path)? else {
            return Err(Fault::Immovable);
        };
        let mut state = self.lock();
        let mut tree = Tree::new(self.store(), state.next(), by.now_ms);
        let root = state.root(mount)?;
        let node = tree.find(root, rest)?;
        let extent = tree.walk(&node, &mut |inner| admits(&[path, inner].concat()))?;
        if extent.bytes > by.journal.room {
            return Err(Fault::JournalFull);
        }
        let (parents, name) = split_last(rest);
        let parent = tree.find(root, parent_path(parents))?;
        tree.unlink(parent.number, name);
        let change = wrote(Operation::Delete, Some(node), node);
        self.changed(&mut state, tree, by, path, change, 0)?;
        Ok(extent.bytes)
    }

    /// Makes a call's changes, if there is room for them.
    fn changed<'t>(
        &'t self,
        state: &mut State,
        tree: Tree<'t>,
        by: By,
        path: &str,
        change: undo::Entry,
        cost: u64,
    ) -> Result<(), Fault> {
        let entry = ENTRY.saturating_add(count(path.len()));
        let files = state.files.saturating_add(cost).saturating_add(entry);
        if files > self.rooms().files {
            return Err(Fault::NoSpace);
        }
        let entry = undo::Entry { record: by.journal.record, path: path.to_string(), ..change };
        self.enter(state, tree, by.run, &entry)?;
        state.files = files;
        Ok(())
    }
}

impl State {
    pub(crate) fn root(&self, mount: usize) -> Result<u64, Fault> {
        self.roots.get(mount).copied().ok_or(Fault::NotFound)
    }
}

/// An entry of the journal, before it is known who wrote what where.
fn wrote(operation: Operation, before: Option<Node>, after: Node) -> undo::Entry {
    let detached = match operation {
        Operation::Replace | Operation::Delete => before.map(|node| node.number),
        Operation::Create | Operation::Append | Operation::Move => None,
    };
    undo::Entry {
        record: 0,
        operation,
        path: String::new(),
        to: None,
        made: 0,
        before,
        after: (after.number, after.stamp),
        detached,
        undone: false,
    }
}

pub(crate) fn parent_path(parents: Option<&str>) -> &str {
    parents.unwrap_or_default()
}

fn entry(name: &str, node: &Node) -> Entry {
    let size = if node.kind == Kind::Directory { 0 } else { node.size };
    Entry { name: name.to_string(), kind: node.kind, size, modified_ms: node.modified_ms }
}

/// The entry of a directory that only leads to mounts.
fn way(name: String) -> Entry {
    Entry { name, kind: Kind::Directory, size: 0, modified_ms: 0 }
}

/// The first `limit` entries, and whether others follow.
fn page(mut entries: Vec<Entry>, limit: usize) -> Listing {
    let more = entries.len() > limit;
    entries.truncate(limit);
    Listing { entries, more }
}
