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

use synapse_primitives::mounts::{Place, below, split_last};
use synapse_primitives::platform::{
    Admits, Entry, Journal, Kind, Listing, Mode, Shown, Written, edited,
};
use synapse_primitives::rest::{Creator, Owner, Rest};
use synapse_primitives::{Fault, Standing};

use crate::labels::Label;
use crate::shelf::{ENTRY, Shelf, State};
use crate::tree::{Node, Tree, count, usize_of};
use crate::undo::{self, Operation};

/// Who changes something, and when.
#[derive(Clone, Debug)]
pub struct By {
    /// The run.
    pub run: u64,
    /// Its record, the bytes that it may still displace, and what it leaves behind.
    pub journal: Journal,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

impl Shelf {
    /// As [`synapse_primitives::Platform::read`].
    ///
    /// # Errors
    /// As there, and `NoSpace` where the memory has no room for it.
    pub fn read(&self, path: &str, offset: u64, length: u64) -> Result<Shown, Fault> {
        let Place::Inside(mount, rest) = self.place(path)? else {
            return Err(Fault::NotAFile);
        };
        let state = self.lock();
        let tree = self.tree(&state, 0);
        let root = state.root(mount)?;
        let file = tree.find(root, rest)?;
        if file.kind != Kind::File {
            return Err(Fault::NotAFile);
        }
        let bytes = tree.content(&file, offset, length)?;
        Ok(Shown { bytes, rest: tree.content_label(root, rest, &file)? })
    }

    /// As [`synapse_primitives::Platform::state`].
    ///
    /// # Errors
    /// As there.
    pub fn state(&self, path: &str) -> Result<Standing, Fault> {
        let Place::Inside(mount, rest) = self.place(path)? else {
            return Err(Fault::Immovable);
        };
        let state = self.lock();
        let tree = self.tree(&state, 0);
        match tree.find(state.root(mount)?, rest) {
            Ok(node) => tree.standing(&node),
            Err(Fault::NotFound) => Ok(Standing::absent()),
            Err(fault) => Err(fault),
        }
    }

    /// As [`synapse_primitives::Platform::is_own`].
    #[must_use]
    pub fn is_own(&self, path: &str, creator: Creator) -> bool {
        let Ok(Place::Inside(mount, rest)) = self.place(path) else { return false };
        let state = self.lock();
        let tree = self.tree(&state, 0);
        let own = || {
            let node = tree.find(state.root(mount)?, rest)?;
            let extent = tree.walk(&node, &mut |_| true)?;
            owned(&tree, &extent.nodes, creator)
        };
        own() == Ok(true)
    }

    /// As [`synapse_primitives::Platform::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        let limit = usize_of(limit);
        let state = self.lock();
        let tree = self.tree(&state, 0);
        let (node, root, rest) = match self.place(path)? {
            Place::Above => {
                let names = self.names_above(path).into_iter().filter(|name| &**name > after);
                return Ok(page(names.map(way).collect(), limit, Rest::SYSTEM));
            }
            Place::Root(mount) => (tree.node(state.root(mount)?)?, state.root(mount)?, ""),
            Place::Inside(mount, rest) => {
                let root = state.root(mount)?;
                (tree.find(root, rest)?, root, rest)
            }
        };
        let content = tree.content_label(root, rest, &node)?;
        let along = tree.along(root, rest)?;
        let entry = |name: &str, node: &Node| {
            let label = tree.label(node.number)?;
            let mut own = label.below.clone();
            own.join(&along);
            let mut shown = label.shown();
            shown.names.join(&own);
            Ok(entry(name, node, shown))
        };
        if node.kind != Kind::Directory {
            let name = split_last(rest).1;
            let own = (name > after).then(|| entry(name, &node)).transpose()?;
            return Ok(page(own.into_iter().collect(), limit, content));
        }
        let mut found = Vec::new();
        tree.names(node.number, after, &mut |name, child| {
            found.push((name.to_string(), child));
            if found.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let entries = found.iter().map(|(name, child)| entry(name, &tree.node(*child)?));
        Ok(page(entries.collect::<Result<_, Fault>>()?, limit, content))
    }

    /// As [`synapse_primitives::Platform::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, path: &str, content: &[u8], mode: Mode, by: By) -> Result<Written, Fault> {
        let (mount, rest) = match (self.place(path)?, mode) {
            (Place::Inside(mount, rest), _) => (mount, rest),
            (Place::Root(_) | Place::Above, Mode::Create | Mode::CreateProgram) => {
                return Err(Fault::Exists);
            }
            (Place::Root(_) | Place::Above, Mode::Replace | Mode::Append) => {
                return Err(Fault::NotAFile);
            }
        };
        let mut state = self.lock();
        let mut tree = Tree::new(self.store(), state.next(), by.now_ms);
        let root = state.root(mount)?;
        let spot = tree.make_parents(root, rest)?;
        let (length, stamp) = (count(content.len()), &by.journal.stamp);
        let standing = tree.child(spot.parent, spot.name)?;
        let before = match &standing {
            Some(old) => tree.content_label(root, rest, old)?,
            None => Rest::SYSTEM,
        };
        let (change, cost) = match (standing, mode) {
            (Some(_), Mode::Create | Mode::CreateProgram) => return Err(Fault::Exists),
            (Some(Node { kind: Kind::Directory, .. }), _) => return Err(Fault::NotAFile),
            (None, _) => {
                by.journal.meets(Standing::absent)?;
                let nodes = ENTRY.saturating_mul(u64::from(spot.made).saturating_add(1));
                let file = tree.add_file(content);
                tree.link(spot.parent, spot.name, file.number);
                tree.label_made(stamp);
                tree.set_label(file.number, &Label::made(stamp));
                (undo::Entry { made: spot.made, ..wrote(Operation::Create, None, file) }, nodes)
            }
            (Some(old), Mode::Append) => {
                meets(&tree, &old, &by)?;
                let file = tree.append(old, content)?;
                let label = tree.label(old.number)?.mixed(stamp);
                tree.set_label(file.number, &label);
                (wrote(Operation::Append, Some(old), file), 0)
            }
            (Some(old), Mode::Replace) => {
                meets(&tree, &old, &by)?;
                if old.size > by.journal.room {
                    return Err(Fault::JournalFull);
                }
                let file = tree.add_file(content);
                tree.link(spot.parent, spot.name, file.number);
                let label = tree.label(old.number)?.replaced(stamp);
                tree.set_label(file.number, &label);
                (wrote(Operation::Replace, Some(old), file), ENTRY)
            }
        };
        let created = change.operation == Operation::Create;
        let displaced = change.displaced();
        let size = match (change.operation, &change.before) {
            (Operation::Append, Some(old)) => old.size.saturating_add(length),
            _ => length,
        };
        self.changed(&mut state, tree, &by, path, change, length.saturating_add(cost))?;
        Ok(Written { created, displaced, length: size, before })
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
        let root = state.root(mount)?;
        let parent = tree.find(root, parent_path(parents))?;
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
        meets(&tree, &file, &by)?;
        if file.size > by.journal.room {
            return Err(Fault::JournalFull);
        }
        let mut tree = Tree::new(self.store(), state.next(), by.now_ms);
        let before = tree.content_label(root, rest, &file)?;
        let node = tree.add_file(&whole);
        tree.link(parent.number, name, node.number);
        let label = tree.label(file.number)?.mixed(&by.journal.stamp);
        tree.set_label(node.number, &label);
        let change = wrote(Operation::Replace, Some(file), node);
        let length = count(whole.len());
        self.changed(&mut state, tree, &by, path, change, length.saturating_add(ENTRY))?;
        Ok(Written { created: false, displaced: file.size, length, before })
    }

    /// As [`synapse_primitives::Platform::rename`].
    ///
    /// # Errors
    /// As there.
    pub fn rename(&self, from: &str, to: &str, by: By, admits: &Admits<'_>) -> Result<(), Fault> {
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
        let stamp = &by.journal.stamp;
        let mut carried = stamp.carried.clone();
        tree.walk(&node, &mut |inner| {
            let path = |start: &str| [start, inner].concat();
            let admitted = admits(&path(from), &path(to));
            admitted.as_ref().inspect(|names| carried.join(names)).is_some()
        })?;
        meets(&tree, &node, &by)?;
        carried.join(&tree.along(root, rest)?);
        let mut label = tree.label(node.number)?;
        label.name = stamp.rest.clone();
        label.below.join(&carried);
        tree.set_label(node.number, &label);
        let (parents, name) = split_last(rest);
        let parent = tree.find(root, parent_path(parents))?;
        let spot = tree.make_parents(root, to_rest)?;
        tree.unlink(parent.number, name);
        tree.left(parent.number, stamp)?;
        tree.link(spot.parent, spot.name, node.number);
        tree.label_made(stamp);
        let change = undo::Entry {
            to: Some(to.to_string()),
            made: spot.made,
            ..wrote(Operation::Move, None, node)
        };
        self.changed(&mut state, tree, &by, from, change, count(to.len()))
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
        let stamp = &by.journal.stamp;
        if stamp.owner == Owner::Creator && !owned(&tree, &extent.nodes, stamp.creator)? {
            return Err(Fault::Changed);
        }
        meets(&tree, &node, &by)?;
        if extent.bytes > by.journal.room {
            return Err(Fault::JournalFull);
        }
        let (parents, name) = split_last(rest);
        let parent = tree.find(root, parent_path(parents))?;
        tree.unlink(parent.number, name);
        tree.left(parent.number, stamp)?;
        let change = wrote(Operation::Delete, Some(node), node);
        self.changed(&mut state, tree, &by, path, change, 0)?;
        Ok(extent.bytes)
    }

    /// Makes a call's changes, if there is room for them.
    fn changed<'t>(
        &'t self,
        state: &mut State,
        tree: Tree<'t>,
        by: &By,
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

/// Compares what stands with what the change was confirmed for.
fn meets(tree: &Tree<'_>, node: &Node, by: &By) -> Result<(), Fault> {
    if by.journal.expects.is_none() {
        return Ok(());
    }
    let standing = tree.standing(node)?;
    by.journal.meets(|| standing)
}

/// Whether one task made all of these, and every byte of them.
fn owned(tree: &Tree<'_>, nodes: &[u64], creator: Creator) -> Result<bool, Fault> {
    for node in nodes {
        if tree.label(*node)?.creator != Some(creator) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn entry(name: &str, node: &Node, rest: Rest) -> Entry {
    let size = if node.kind == Kind::Directory { 0 } else { node.size };
    Entry { name: name.to_string(), kind: node.kind, size, modified_ms: node.modified_ms, rest }
}

/// The entry of a directory that only leads to mounts.
fn way(name: String) -> Entry {
    Entry { name, kind: Kind::Directory, size: 0, modified_ms: 0, rest: Rest::SYSTEM }
}

/// The first `limit` entries, and whether others follow.
fn page(mut entries: Vec<Entry>, limit: usize, rest: Rest) -> Listing {
    let more = entries.len() > limit;
    entries.truncate(limit);
    Listing { entries, more, rest }
}
