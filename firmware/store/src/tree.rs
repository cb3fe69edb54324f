//! A file system of keys: nodes, the names that lead to them, and content.
//!
//! A node has a number that it keeps for good, whatever it is called. Its stamp
//! changes with its content, so that what was written is known again.
//!
//! # Invariants
//! - Every step reads what stands, and collects what is to change; nothing is
//!   changed here.
//!
//! # Not here
//! What a verb does with it (`files`).

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use synapse_primitives::Fault;
use synapse_primitives::Standing;
use synapse_primitives::mounts::split_last;
use synapse_primitives::platform::{Kind, WALK_ENTRIES, WALK_LEVELS};
use synapse_primitives::rest::Stamp;
use synapse_primitives::state::Tally;

use crate::keys::{self, BYTES, Fields, LABEL, LINK, NODE};
use crate::labels::Label;
use crate::store::{Change, Failed, Store};

/// The directory that holds the mounts, each under its whole guest root.
pub(crate) const MOUNTS: u64 = 0;

/// Bytes of content under one key: with its key it fills four pages of a
/// database, and a machine of little memory never needs much in one piece.
pub(crate) const PART: usize = 16_000;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) modified_ms: u64,
    pub(crate) stamp: u64,
}

impl Node {
    pub(crate) fn value(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(25);
        value.push(u8::from(self.kind == Kind::Directory));
        for number in [self.size, self.modified_ms, self.stamp] {
            value.extend_from_slice(&number.to_le_bytes());
        }
        value
    }

    pub(crate) fn parse(number: u64, value: &[u8]) -> Option<Self> {
        let mut fields = Fields(value);
        let kind = if fields.u8()? == 1 { Kind::Directory } else { Kind::File };
        let (size, modified_ms, stamp) = (fields.u64()?, fields.u64()?, fields.u64()?);
        Some(Self { number, kind, size, modified_ms, stamp })
    }
}

/// A view of what stands, and the changes to it that were collected so far.
#[derive(Debug)]
pub(crate) struct Tree<'t> {
    store: &'t dyn Store,
    pub(crate) changes: Vec<Change<'t>>,
    /// What got its name among the changes, by the keys of the links.
    made: BTreeMap<Vec<u8>, u64>,
    next: u64,
    now_ms: u64,
}

impl<'t> Tree<'t> {
    pub(crate) fn new(store: &'t dyn Store, next: u64, now_ms: u64) -> Self {
        Self { store, changes: Vec::new(), made: BTreeMap::new(), next, now_ms }
    }

    /// The number that is free after the changes.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) const fn store(&self) -> &dyn Store {
        self.store
    }

    /// A number that nothing else has.
    pub(crate) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }

    pub(crate) fn node(&self, number: u64) -> Result<Node, Fault> {
        let value = self.store.get(&keys::of(NODE, number)).map_err(failed)?;
        // A link to nothing is damage, which no verb makes.
        value.and_then(|value| Node::parse(number, &value)).ok_or(Fault::Io)
    }

    /// The node that a name of a directory leads to.
    pub(crate) fn child(&self, parent: u64, name: &str) -> Result<Option<Node>, Fault> {
        let value = self.store.get(&keys::link(parent, name)).map_err(failed)?;
        value.map(|value| self.node(number(&value)?)).transpose()
    }

    /// The node at a path below a directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub(crate) fn find(&self, root: u64, rest: &str) -> Result<Node, Fault> {
        let mut node = self.node(root)?;
        for name in rest.split('/').filter(|name| !name.is_empty()) {
            if node.kind != Kind::Directory {
                return Err(Fault::NotADirectory);
            }
            node = self.child(node.number, name)?.ok_or(Fault::NotFound)?;
        }
        Ok(node)
    }

    /// The directory above a path, with missing ones made, and how many were.
    pub(crate) fn make_parents<'p>(&mut self, root: u64, rest: &'p str) -> Result<Spot<'p>, Fault> {
        let (parents, name) = split_last(rest);
        let mut spot = Spot { parent: root, name, made: 0 };
        for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
            let key = keys::link(spot.parent, parent);
            if let Some(made) = self.made.get(&key) {
                spot.parent = *made;
                continue;
            }
            spot.parent = match self.child(spot.parent, parent)? {
                Some(Node { kind: Kind::Directory, number, .. }) => number,
                Some(_) => return Err(Fault::NotADirectory),
                None => {
                    spot.made = spot.made.saturating_add(1);
                    let number = self.add(Kind::Directory, 0).number;
                    self.link(spot.parent, parent, number);
                    self.made.insert(key, number);
                    number
                }
            };
        }
        Ok(spot)
    }

    /// Labels the directories that were made on the way.
    pub(crate) fn label_made(&mut self, stamp: &Stamp) {
        for node in self.made.values().copied().collect::<Vec<_>>() {
            self.set_label(node, &Label::made(stamp));
        }
    }

    /// A new node without a name.
    pub(crate) fn add(&mut self, kind: Kind, size: u64) -> Node {
        let number = self.number();
        let node = Node { number, kind, size, modified_ms: self.now_ms, stamp: number };
        self.put(&node);
        node
    }

    /// A new file with this content.
    pub(crate) fn add_file(&mut self, content: &'t [u8]) -> Node {
        let node = self.add(Kind::File, count(content.len()));
        self.fill(node.number, 0, content);
        node
    }

    /// What follows the content of a file: the file as it then is.
    pub(crate) fn append(&mut self, file: Node, content: &'t [u8]) -> Result<Node, Fault> {
        let size = file.size.checked_add(count(content.len())).ok_or(Fault::TooLarge)?;
        let stamp = self.number();
        let node = Node { size, stamp, modified_ms: self.now_ms, ..file };
        self.put(&node);
        let (place, within) = (index(file.size), usize_of(file.size) % PART);
        let (first, rest) = content.split_at_checked(PART - within).unwrap_or((content, &[]));
        if within == 0 {
            self.fill(file.number, place, content);
        } else {
            let mut part = self.part(file.number, place)?;
            part.extend_from_slice(first);
            self.changes.push(Change::Put(keys::at(BYTES, file.number, place), Cow::Owned(part)));
            self.fill(file.number, place.saturating_add(1), rest);
        }
        Ok(node)
    }

    /// Cuts a file back to what it was before something was appended.
    pub(crate) fn cut(&mut self, file: &Node, before: Node) -> Result<(), Fault> {
        let (last, within) = (index(before.size), usize_of(before.size) % PART);
        for place in last..=index(file.size) {
            let key = keys::at(BYTES, file.number, place);
            let change = if place == last && within > 0 {
                let mut part = self.part(file.number, place)?;
                part.truncate(within);
                Change::Put(key, Cow::Owned(part))
            } else {
                Change::Remove(key)
            };
            self.changes.push(change);
        }
        self.put(&before);
        Ok(())
    }

    fn fill(&mut self, node: u64, from: u32, content: &'t [u8]) {
        for (place, part) in (from..).zip(content.chunks(PART)) {
            self.changes.push(Change::Put(keys::at(BYTES, node, place), Cow::Borrowed(part)));
        }
    }

    fn part(&self, node: u64, place: u32) -> Result<Vec<u8>, Fault> {
        self.store.get(&keys::at(BYTES, node, place)).map_err(failed)?.ok_or(Fault::Io)
    }

    /// At most `length` bytes of a file from `offset`.
    pub(crate) fn content(&self, file: &Node, offset: u64, length: u64) -> Result<Vec<u8>, Fault> {
        let end = offset.saturating_add(length).min(file.size);
        let mut bytes = Vec::new();
        let wanted = usize_of(end.saturating_sub(offset));
        bytes.try_reserve_exact(wanted).map_err(|_| Fault::NoSpace)?;
        let mut at = offset;
        while at < end {
            let part = self.part(file.number, index(at))?;
            let from = usize_of(at) % PART;
            let to = from.saturating_add(usize_of(end.saturating_sub(at))).min(part.len());
            let piece = part.get(from..to).filter(|piece| !piece.is_empty()).ok_or(Fault::Io)?;
            bytes.extend_from_slice(piece);
            at = at.saturating_add(count(piece.len()));
        }
        Ok(bytes)
    }

    pub(crate) fn put(&mut self, node: &Node) {
        let key = keys::of(NODE, node.number);
        self.changes.push(Change::Put(key, Cow::Owned(node.value())));
    }

    pub(crate) fn link(&mut self, parent: u64, name: &str, node: u64) {
        let value = Cow::Owned(node.to_le_bytes().to_vec());
        self.changes.push(Change::Put(keys::link(parent, name), value));
    }

    /// Gives a new node a name that neither the store nor the changes have.
    pub(crate) fn link_new(&mut self, spot: Spot<'_>, node: u64) -> Result<(), Fault> {
        let key = keys::link(spot.parent, spot.name);
        let known = self.store.get(&key).map_err(failed)?.is_some();
        if known || self.made.insert(key, node).is_some() {
            return Err(Fault::Exists);
        }
        self.link(spot.parent, spot.name, node);
        Ok(())
    }

    pub(crate) fn unlink(&mut self, parent: u64, name: &str) {
        self.changes.push(Change::Remove(keys::link(parent, name)));
    }

    /// Names of a directory that come after `after`, with their nodes, until
    /// `see` has seen enough.
    pub(crate) fn names(
        &self,
        directory: u64,
        after: &str,
        see: &mut dyn FnMut(&str, u64) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let mut sound = true;
        let prefix = keys::of(LINK, directory);
        self.store
            .scan(&prefix, &keys::link(directory, after), &mut |key, value| {
                let name = keys::split(key).and_then(|(_, name)| str::from_utf8(name).ok());
                if let (Some(name), Ok(node)) = (name, number(value)) {
                    return see(name, node);
                }
                sound = false;
                ControlFlow::Break(())
            })
            .map_err(failed)?;
        if sound { Ok(()) } else { Err(Fault::Io) }
    }

    /// Asks about every descendant, by its path below `node`, in byte order; the
    /// bytes of all files, and how many nodes there are.
    pub(crate) fn walk(
        &self,
        node: &Node,
        admits: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Extent, Fault> {
        let mut extent = Extent::default();
        self.walk_in(node, &mut String::new(), 0, &mut extent, admits)?;
        Ok(extent)
    }

    fn walk_in(
        &self,
        node: &Node,
        inner: &mut String,
        level: usize,
        extent: &mut Extent,
        admits: &mut dyn FnMut(&str) -> bool,
    ) -> Result<(), Fault> {
        extent.nodes.push(node.number);
        if node.kind != Kind::Directory {
            extent.bytes = extent.bytes.saturating_add(node.size);
            return Ok(());
        }
        if level == WALK_LEVELS {
            return Err(Fault::TooMany);
        }
        for (name, child) in self.children(node.number)? {
            if extent.nodes.len() > WALK_ENTRIES {
                return Err(Fault::TooMany);
            }
            let length = inner.len();
            inner.push('/');
            inner.push_str(&name);
            if !admits(inner) {
                return Err(Fault::Subtree);
            }
            self.walk_in(&self.node(child)?, inner, level.saturating_add(1), extent, admits)?;
            inner.truncate(length);
        }
        Ok(())
    }

    /// What stands here, with all below it, in one state.
    pub(crate) fn standing(&self, node: &Node) -> Result<Standing, Fault> {
        let mut tally = Tally::default();
        let mut left = WALK_ENTRIES;
        self.sum("", node, 0, &mut left, &mut tally)?;
        Ok(tally.finish(Some(node.kind)))
    }

    fn sum(
        &self,
        name: &str,
        node: &Node,
        level: usize,
        left: &mut usize,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        // Its stamp changes with its bytes, and no other node has its number.
        let which = [node.number.to_le_bytes(), node.stamp.to_le_bytes()];
        if node.kind != Kind::Directory {
            tally.add(name, node.kind, node.size, &[&which[0], &which[1]]);
            return Ok(());
        }
        if level == WALK_LEVELS {
            return Err(Fault::TooMany);
        }
        tally.add(name, node.kind, 0, &[&which[0]]);
        for (name, child) in self.children(node.number)? {
            *left = left.checked_sub(1).ok_or(Fault::TooMany)?;
            self.sum(&name, &self.node(child)?, level.saturating_add(1), left, tally)?;
        }
        tally.leave();
        Ok(())
    }

    fn children(&self, directory: u64) -> Result<Vec<(String, u64)>, Fault> {
        let mut children = Vec::new();
        self.names(directory, "", &mut |name, child| {
            children.push((name.to_string(), child));
            ControlFlow::Continue(())
        })?;
        Ok(children)
    }

    pub(crate) fn drop_node(&mut self, number: u64) {
        self.changes.push(Change::Remove(keys::of(NODE, number)));
        self.changes.push(Change::Remove(keys::of(LABEL, number)));
    }

    /// Removes a node that no name leads to, with all below it.
    pub(crate) fn discard(&mut self, number: u64) -> Result<Extent, Fault> {
        let extent = self.walk(&self.node(number)?, &mut |_| true)?;
        for number in &extent.nodes {
            let node = self.node(*number)?;
            for place in 0..parts(node.size) {
                self.changes.push(Change::Remove(keys::at(BYTES, *number, place)));
            }
            for (name, _) in self.children(*number)? {
                self.unlink(*number, &name);
            }
            self.drop_node(*number);
        }
        Ok(extent)
    }
}

/// A name in a directory, and how many directories were made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot<'p> {
    pub(crate) parent: u64,
    pub(crate) name: &'p str,
    pub(crate) made: u8,
}

/// What a subtree holds.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    pub(crate) bytes: u64,
    pub(crate) nodes: Vec<u64>,
}

pub(crate) fn failed(_: Failed) -> Fault {
    Fault::Io
}

fn number(value: &[u8]) -> Result<u64, Fault> {
    Fields(value).u64().ok_or(Fault::Io)
}

/// How many parts a content of this size has.
fn parts(size: u64) -> u32 {
    u32::try_from(size.div_ceil(count(PART))).unwrap_or(u32::MAX)
}

/// The part that holds the byte at this offset.
fn index(offset: u64) -> u32 {
    u32::try_from(offset / count(PART)).unwrap_or(u32::MAX)
}

pub(crate) fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

pub(crate) fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
