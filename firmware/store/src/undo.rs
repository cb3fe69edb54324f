//! The journal of a run, and putting back what its entries say.
//!
//! An entry names nodes, not copies: what was displaced is still there, without
//! a name. Putting back gives it its name again, unless somebody else has changed
//! what stands there since; that stays, and the old comes beside it.
//!
//! # Invariants
//! - An entry is undone by the same set of changes that says so.
//! - Nothing is thrown away: what an undo takes out of a folder stays in the entry.
//!
//! # Not here
//! Asking whether to (the shell).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::ControlFlow;

use synapse_primitives::Fault;
use synapse_primitives::mounts::{Place, split_last};
use synapse_primitives::platform::Kind;

use crate::files::parent_path;
use crate::keys::{self, Fields, JOURNAL};
use crate::shelf::{ENTRY, Shelf};
use crate::store::Change;
use crate::tree::{Node, Spot, Tree, failed};

/// What was done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A file was made.
    Create,
    /// A file was put in the place of another, or edited.
    Replace,
    /// Something was added at the end of a file.
    Append,
    /// It was moved.
    Move,
    /// It was removed.
    Delete,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Create, Self::Replace, Self::Append, Self::Move, Self::Delete];
}

/// One change that a run made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The decision record.
    pub record: u64,
    /// What was done.
    pub operation: Operation,
    /// The guest path it was done to.
    pub path: String,
    /// Where a move led.
    pub to: Option<String>,
    /// Directories that were made for it.
    pub(crate) made: u8,
    /// What stood there.
    pub(crate) before: Option<Node>,
    /// The node that it led to, and its stamp.
    pub(crate) after: (u64, u64),
    /// The node that nothing but this entry leads to.
    pub(crate) detached: Option<u64>,
    pub(crate) undone: bool,
}

/// What came of undoing an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It is as it was before.
    Restored,
    /// What stands there was changed since; what was there before is here.
    Beside(String),
    /// What stands there was changed since, and stays.
    Left,
}

impl Shelf {
    /// What a run changed and what is not undone, the last change first.
    ///
    /// # Errors
    /// `Io`.
    pub fn journal(&self, run: u64) -> Result<Vec<(u32, Entry)>, Fault> {
        let mut entries = Vec::new();
        let mut sound = true;
        self.store()
            .scan(&keys::of(JOURNAL, run), &[], &mut |key, value| {
                match (keys::place(key), Entry::parse(value)) {
                    (Some(_), Some(entry)) if entry.undone => {}
                    (Some(place), Some(entry)) => entries.push((place, entry)),
                    _ => sound = false,
                }
                ControlFlow::Continue(())
            })
            .map_err(failed)?;
        entries.reverse();
        if sound { Ok(entries) } else { Err(Fault::Io) }
    }

    /// Undoes one entry; those after it come first.
    ///
    /// # Errors
    /// What keeps it from being undone; nothing is changed then.
    pub fn undo(&self, run: u64, place: u32, entry: &Entry, now_ms: u64) -> Result<Undone, Fault> {
        let Place::Inside(mount, rest) = self.place(&entry.path)? else {
            return Err(Fault::NotFound);
        };
        let mut state = self.lock();
        let root = state.root(mount)?;
        let mut undo = Undo {
            tree: Tree::new(self.store(), state.next(), now_ms),
            root,
            rest,
            entry,
            detached: entry.detached,
            files: 0,
        };
        let undone = match entry.operation {
            Operation::Create => undo.create(),
            Operation::Replace | Operation::Delete => undo.displaced(),
            Operation::Append => undo.append(),
            Operation::Move => undo.shift(),
        }?;
        let Undo { mut tree, detached, files, .. } = undo;
        let entry = Entry { detached, undone: true, ..entry.clone() };
        let key = keys::at(JOURNAL, run, place);
        tree.changes.push(Change::Put(key, Cow::Owned(entry.value())));
        self.commit(&mut state, tree)?;
        state.files = state.files.saturating_sub(files);
        Ok(undone)
    }
}

struct Undo<'u, 't> {
    tree: Tree<'t>,
    root: u64,
    rest: &'u str,
    entry: &'u Entry,
    detached: Option<u64>,
    /// Bytes that are free again.
    files: u64,
}

impl Undo<'_, '_> {
    /// What was made is taken away, if it is as it was made.
    fn create(&mut self) -> Result<Undone, Fault> {
        let Some((parent, node)) = self.standing(self.rest)? else { return Ok(Undone::Left) };
        if (node.number, node.stamp) != self.entry.after {
            return Ok(Undone::Left);
        }
        self.tree.unlink(parent, split_last(self.rest).1);
        self.detached = Some(node.number);
        self.unmake(self.rest)?;
        Ok(Undone::Restored)
    }

    /// What was displaced gets its name back, or comes beside it.
    fn displaced(&mut self) -> Result<Undone, Fault> {
        let before = self.entry.before.ok_or(Fault::Io)?.number;
        let standing = self.standing(self.rest)?;
        let as_written = standing.is_some_and(|(_, node)| {
            self.entry.operation == Operation::Replace
                && (node.number, node.stamp) == self.entry.after
        });
        self.detached = as_written.then_some(self.entry.after.0);
        if standing.is_none() || as_written {
            let spot = self.tree.make_parents(self.root, self.rest)?;
            self.tree.link(spot.parent, spot.name, before);
            return Ok(Undone::Restored);
        }
        let spot = self.tree.make_parents(self.root, self.rest)?;
        let name = self.beside(spot)?;
        self.tree.link(spot.parent, &name, before);
        let folder = self.entry.path.strip_suffix(spot.name).unwrap_or_default();
        Ok(Undone::Beside(format!("{folder}{name}")))
    }

    /// What was added is cut off, if nothing came after it.
    fn append(&mut self) -> Result<Undone, Fault> {
        let before = self.entry.before.ok_or(Fault::Io)?;
        match self.standing(self.rest)? {
            Some((_, node)) if (node.number, node.stamp) == self.entry.after => {
                self.tree.cut(&node, before)?;
                self.files = node.size.saturating_sub(before.size);
                Ok(Undone::Restored)
            }
            _ => Ok(Undone::Left),
        }
    }

    /// What was moved goes back, if it is there and its old name is free.
    fn shift(&mut self) -> Result<Undone, Fault> {
        let to = self.entry.to.as_deref().ok_or(Fault::Io)?;
        let mount = self.entry.path.len().saturating_sub(self.rest.len());
        let to = to.get(mount..).ok_or(Fault::Io)?;
        match (self.standing(to)?, self.standing(self.rest)?) {
            (Some((parent, node)), None) if node.number == self.entry.after.0 => {
                let spot = self.tree.make_parents(self.root, self.rest)?;
                self.tree.unlink(parent, split_last(to).1);
                self.tree.link(spot.parent, spot.name, node.number);
                self.unmake(to)?;
                Ok(Undone::Restored)
            }
            _ => Ok(Undone::Left),
        }
    }

    /// The directory that holds a path, and what stands there.
    fn standing(&self, rest: &str) -> Result<Option<(u64, Node)>, Fault> {
        let (parents, name) = split_last(rest);
        let parent = match self.tree.find(self.root, parent_path(parents)) {
            Ok(parent) if parent.kind == Kind::Directory => parent.number,
            Ok(_) | Err(Fault::NotFound | Fault::NotADirectory) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        Ok(self.tree.child(parent, name)?.map(|node| (parent, node)))
    }

    /// Removes the directories that were made for a path, from the innermost on,
    /// as long as nothing else is in them.
    fn unmake(&mut self, rest: &str) -> Result<(), Fault> {
        let mut inner = rest;
        for _ in 0..self.entry.made {
            let (Some(folder), name) = split_last(inner) else { return Ok(()) };
            let node = self.tree.find(self.root, folder)?;
            let mut others = false;
            self.tree.names(node.number, "", &mut |other, _| {
                others |= other != name;
                if others { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if others {
                return Ok(());
            }
            let (parents, name) = split_last(folder);
            let parent = self.tree.find(self.root, parent_path(parents))?;
            self.tree.unlink(parent.number, name);
            self.tree.drop_node(node.number);
            self.files = self.files.saturating_add(ENTRY);
            inner = folder;
        }
        Ok(())
    }

    /// A free name that says what stands under it.
    fn beside(&self, spot: Spot<'_>) -> Result<String, Fault> {
        let (stem, end) = match spot.name.rsplit_once('.') {
            Some((stem, end)) if !stem.is_empty() => (stem, format!(".{end}")),
            _ => (spot.name, String::new()),
        };
        for number in 1..=NAMES {
            let again = if number == 1 { String::new() } else { format!(", {number}") };
            let name = format!("{stem} (before record {}{again}){end}", self.entry.record);
            if self.tree.child(spot.parent, &name)?.is_none() {
                return Ok(name);
            }
        }
        Err(Fault::Exists)
    }
}

impl Entry {
    /// Bytes that it displaced.
    pub(crate) fn displaced(&self) -> u64 {
        match self.operation {
            Operation::Replace => self.before.map_or(0, |node| node.size),
            Operation::Create | Operation::Append | Operation::Move | Operation::Delete => 0,
        }
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let place = Operation::ALL.iter().position(|known| *known == self.operation);
        let operation = place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX);
        let mut value = Vec::from([operation, u8::from(self.undone), self.made]);
        let detached = self.detached.unwrap_or(0);
        for number in [self.record, self.after.0, self.after.1, detached] {
            value.extend_from_slice(&number.to_le_bytes());
        }
        keys::write(&mut value, self.path.as_bytes());
        keys::write(&mut value, self.to.as_deref().unwrap_or_default().as_bytes());
        if let Some(node) = &self.before {
            value.extend_from_slice(&node.number.to_le_bytes());
            value.extend_from_slice(&node.value());
        }
        value
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut fields = Fields(value);
        let operation = *Operation::ALL.get(usize::from(fields.u8()?))?;
        let (undone, made) = (fields.u8()? == 1, fields.u8()?);
        let (record, after) = (fields.u64()?, (fields.u64()?, fields.u64()?));
        let detached = Some(fields.u64()?).filter(|node| *node > 0);
        let (path, to) = (fields.text()?.to_string(), fields.text()?.to_string());
        let before = match fields.u64() {
            Some(number) => Some(Node::parse(number, fields.0)?),
            None => None,
        };
        let to = Some(to).filter(|to| !to.is_empty());
        Some(Self { record, operation, path, to, made, before, after, detached, undone })
    }
}

/// Names that are tried for what comes beside.
const NAMES: u32 = 100;
