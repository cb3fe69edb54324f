//! The shelf: one store, the rooms in it, and what waits for the next commit.
//!
//! # Invariants
//! - I3: records that wait are in the very next set of changes, whatever it is.
//! - Files and logs never take more than their rooms.
//! - A store that failed once is not asked again: nothing more is permitted.
//!
//! # Not here
//! The verbs (`files`), logs (`runs`), putting back (`undo`).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

use spin::{Mutex, MutexGuard};
use synapse_primitives::Fault;
use synapse_primitives::mounts::{MountError, Place, Table, below};
use synapse_primitives::platform::Kind;

use crate::keys::{self, LAST, NEXT, NODE, RUN, VERSION};
use crate::packages;
use crate::runs::Meta;
use crate::store::{Change, Failed, Store};
use crate::tree::{MOUNTS, Node, Tree, count};
use crate::undo::Entry;

/// Bytes that the store may take, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rooms {
    /// Files, in the journal what they displaced, and installed packages.
    pub files: u64,
    /// Logs of all runs together.
    pub logs: u64,
    /// A file that is taken into memory whole.
    pub whole: u64,
}

/// What a node costs besides its bytes.
pub(crate) const ENTRY: u64 = 512;
/// The version of what stands in a store.
const FORMAT: u8 = 1;

/// Files, journal and logs.
#[derive(Debug)]
pub struct Shelf {
    store: Box<dyn Store>,
    rooms: Rooms,
    table: Table,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    next: u64,
    /// Bytes that files take, and logs.
    pub(crate) files: u64,
    pub(crate) logs: u64,
    /// The nodes of the mounts, in the table's order.
    pub(crate) roots: Vec<u64>,
    pub(crate) runs: BTreeMap<u64, Meta>,
    /// The last number that a run had.
    pub(crate) last: u64,
    /// Frames of logs that wait, by run.
    pub(crate) waiting: BTreeMap<u64, Vec<u8>>,
    failed: bool,
}

/// Why a store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// It was written by another version of this program.
    Version(u8),
    /// It failed, or what it holds is damaged.
    Failed,
    /// A mount is not one.
    Mount(MountError),
    /// A file that came along cannot be put in its place.
    File(String, Fault),
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "what is on the disk has version {version}, and this image knows {FORMAT}; start \
                 it with the image that wrote it, or give an empty disk"
            ),
            Self::Failed => f.write_str(
                "the disk failed, or what it holds is damaged; start again, or with a copy of it",
            ),
            Self::Mount(why) => why.fmt(f),
            Self::File(path, Fault::NoSpace) => write!(
                f,
                "{path}: no space for the files that came along; give the machine a larger disk, \
                 or more memory where it has none"
            ),
            Self::File(path, fault) => write!(f, "{path}: {}", fault.name()),
        }
    }
}

impl core::error::Error for Opening {}

impl From<Failed> for Opening {
    fn from(_: Failed) -> Self {
        Self::Failed
    }
}

impl Shelf {
    /// Opens what a store holds. Mounts that it does not have yet are made, each
    /// with those of `files` that belong to it; a mount that it has keeps what it has.
    ///
    /// # Errors
    /// [`Opening`].
    pub fn open(
        store: Box<dyn Store>,
        rooms: Rooms,
        mounts: &[String],
        files: &[(String, &[u8])],
        now_ms: u64,
    ) -> Result<Self, Opening> {
        if let Some(version) = store.get(&[VERSION])?
            && version != [FORMAT]
        {
            return Err(Opening::Version(version.first().copied().unwrap_or(0)));
        }
        let mut state = State::read(&*store)?;
        let (mut names, old) = standing(&*store)?;
        let known = old.len();
        state.roots = old;
        names.extend(
            mounts.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>(),
        );
        let table = Table::new(names.clone()).map_err(Opening::Mount)?;
        let shelf = Self { store, rooms, table, state: Mutex::new(state) };
        for name in names.iter().skip(known) {
            shelf.mount(name, files, now_ms)?;
        }
        Ok(shelf)
    }

    /// Makes a mount and the files in it, all at once.
    fn mount(&self, name: &str, files: &[(String, &[u8])], now_ms: u64) -> Result<(), Opening> {
        let mut state = self.lock();
        let mut tree = self.tree(&state, now_ms);
        tree.changes.push(Change::Put(Vec::from([VERSION]), Cow::Owned(Vec::from([FORMAT]))));
        // Node 0 is where mounts stand.
        let root = tree.number();
        tree.put(&Node {
            number: root,
            kind: Kind::Directory,
            size: 0,
            modified_ms: now_ms,
            stamp: root,
        });
        tree.link(MOUNTS, name, root);
        let mut taken = 0_u64;
        for (path, content) in files {
            let Some(rest) = below(name, path).filter(|rest| !rest.is_empty()) else { continue };
            let mut place = || {
                self.table.place(path)?;
                let spot = tree.make_parents(root, rest)?;
                let file = tree.add_file(content);
                tree.link_new(spot, file.number)?;
                let cost = count(content.len()).saturating_add(ENTRY);
                taken = taken.saturating_add(cost);
                if state.files.saturating_add(taken) > self.rooms.files {
                    return Err(Fault::NoSpace);
                }
                Ok(())
            };
            place().map_err(|fault| Opening::File(path.clone(), fault))?;
        }
        state.roots.push(root);
        state.files = state.files.saturating_add(taken);
        self.commit(&mut state, tree).map_err(|_| Opening::Failed)
    }

    /// Makes what waits safe.
    ///
    /// # Errors
    /// [`Failed`].
    pub fn settle(&self) -> Result<(), Failed> {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.runs.values().all(|meta| !meta.changed) {
            return Ok(());
        }
        let tree = self.tree(&state, 0);
        self.commit(&mut state, tree).map_err(|_| Failed)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What it may take.
    #[must_use]
    pub const fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn place<'p>(&self, path: &'p str) -> Result<Place<'p>, Fault> {
        self.table.place(path)
    }

    /// The guest root of each mount, which is its name here too.
    #[must_use]
    pub fn mounts(&self) -> Vec<(String, String)> {
        self.table.roots().map(|root| (root.to_string(), root.to_string())).collect()
    }

    pub(crate) fn names_above(&self, path: &str) -> Vec<String> {
        self.table.names_below(path).into_iter().map(ToString::to_string).collect()
    }

    pub(crate) fn tree(&self, state: &State, now_ms: u64) -> Tree<'_> {
        Tree::new(&*self.store, state.next, now_ms)
    }

    /// Makes a tree's changes, with an entry for the journal of a run.
    pub(crate) fn enter<'t>(
        &'t self,
        state: &mut State,
        mut tree: Tree<'t>,
        run: u64,
        entry: &Entry,
    ) -> Result<(), Fault> {
        let meta = state.runs.get_mut(&run).ok_or(Fault::Io)?;
        let key = keys::at(keys::JOURNAL, run, meta.entries);
        tree.changes.push(Change::Put(key, Cow::Owned(entry.value())));
        meta.entries = meta.entries.saturating_add(1);
        meta.changed = true;
        self.commit(state, tree)
    }

    /// Makes a tree's changes, with everything that waits.
    pub(crate) fn commit<'t>(&'t self, state: &mut State, tree: Tree<'t>) -> Result<(), Fault> {
        if state.failed {
            return Err(Fault::Io);
        }
        let next = tree.next();
        let mut changes = tree.changes;
        if next != state.next {
            let value = Cow::Owned(next.to_le_bytes().to_vec());
            changes.push(Change::Put(Vec::from([NEXT]), value));
        }
        let waiting = core::mem::take(&mut state.waiting);
        for (run, frames) in waiting {
            if let Some(meta) = state.runs.get_mut(&run) {
                changes
                    .push(Change::Put(keys::at(keys::TAPE, run, meta.parts), Cow::Owned(frames)));
                meta.parts = meta.parts.saturating_add(1);
                meta.changed = true;
            }
        }
        for (run, meta) in state.runs.iter_mut().filter(|(_, meta)| meta.changed) {
            changes.push(Change::Put(keys::of(RUN, *run), Cow::Owned(meta.value())));
            meta.changed = false;
        }
        let made = self.store.apply(&changes);
        state.failed = made.is_err();
        made.map_err(|_| Fault::Io)?;
        state.next = next;
        Ok(())
    }
}

impl State {
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    fn read(store: &dyn Store) -> Result<Self, Failed> {
        let mut state = Self { next: 1, ..Self::default() };
        if let Some(next) = store.get(&[NEXT])? {
            state.next = keys::Fields(&next).u64().ok_or(Failed)?;
        }
        if let Some(last) = store.get(&[LAST])? {
            state.last = keys::Fields(&last).u64().ok_or(Failed)?;
        }
        let mut sound = true;
        store.scan(&[NODE], &[], &mut |key, value| {
            let node = keys::split(key).and_then(|(number, _)| Node::parse(number, value));
            sound &= node.is_some();
            let size = node.map_or(0, |node| node.size.saturating_add(ENTRY));
            state.files = state.files.saturating_add(size);
            ControlFlow::Continue(())
        })?;
        store.scan(&[RUN], &[], &mut |key, value| {
            match (keys::split(key), Meta::parse(value)) {
                (Some((run, _)), Some(meta)) => {
                    state.logs = state.logs.saturating_add(meta.bytes);
                    state.files = state.files.saturating_add(meta.journal());
                    state.runs.insert(run, meta);
                    state.last = state.last.max(run);
                }
                _ => sound = false,
            }
            ControlFlow::Continue(())
        })?;
        state.files = state.files.saturating_add(packages::taken(store)?);
        if sound { Ok(state) } else { Err(Failed) }
    }
}

/// The mounts that a store has: their guest roots, and their nodes.
fn standing(store: &dyn Store) -> Result<(Vec<String>, Vec<u64>), Failed> {
    let (mut names, mut nodes) = (Vec::new(), Vec::new());
    let tree = Tree::new(store, 0, 0);
    tree.names(MOUNTS, "", &mut |name, node| {
        names.push(name.to_string());
        nodes.push(node);
        ControlFlow::Continue(())
    })
    .map_err(|_| Failed)?;
    Ok((names, nodes))
}
