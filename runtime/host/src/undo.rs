//! Undoing a run: its journal, its folders, and what is not in its power.
//!
//! Reads what the run left, opens the same folders by the names that they had,
//! and undoes the journal's entries from the last to the first. What the journal
//! does not hold, such as what left the machine, is named and stays.
//!
//! # Invariants
//! - A folder is opened only if it is the one that the run changed.
//! - I15: what an undo puts under another name than its old one counts as anything.
//! - A run that is still going on is not undone, and no run twice at a time; nobody
//!   else works in its folders meanwhile.
//!
//! # Not here
//! What undoing an entry is (`synapse_primitives::disk`). Asking a person, and
//! telling (the command line).

use core::error::Error;
use core::fmt;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::Value;
use synapse_abi::registry::{Egress, Harm, Primitive};
use synapse_kernel::record::{Kind, tag};
use synapse_kernel::verify::Reader;
use synapse_primitives::disk::{Disk, Identity, Mount, Resolve, Undone};
use synapse_primitives::journal::{self, Entry, INDEX, Journal, Operation};
use synapse_primitives::mounts::Access;
use synapse_primitives::store::StoreError;
use synapse_reply::Fault;

use crate::locks::{self, Folder, Held, Purpose};
use crate::log;
use crate::render;
use crate::store::{self, Labels};

/// What is to be undone of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Everything that is not undone yet.
    All,
    /// The change of one decision record.
    Record(u64),
}

/// One entry of the journal, and what undoing it comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The decision record.
    pub record: u64,
    /// What was done.
    pub operation: Operation,
    /// The guest path it was done to.
    pub path: String,
    /// Where a move led.
    pub to: Option<String>,
    /// What comes, or came, of undoing it.
    pub comes: Comes,
}

/// What undoing an entry comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comes {
    /// As the disk found it.
    To(Undone),
    /// It is known once the step of this record, which comes first, is taken.
    After(u64),
    /// Its folder is not there any more, or is another one.
    NoFolder,
    /// The disk forbids it; nothing was changed.
    Fault(Fault),
}

/// A call that was permitted and that no journal undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    /// Its decision record.
    pub record: u64,
    /// What was called.
    pub primitive: Primitive,
    /// Whether the log says what came of it.
    pub outcome: Outcome,
}

/// What a log says of a call's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed.
    Done,
    /// Nothing is recorded: it may have been done or not.
    Unknown,
}

/// Why a run cannot be undone.
#[derive(Debug)]
pub struct UndoError(String);

impl fmt::Display for UndoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for UndoError {}

/// A run that is over.
pub struct Past {
    disk: Disk,
    journal: Journal,
    /// The guest roots of the folders that were opened.
    opened: Vec<String>,
    lasting: Vec<Lasting>,
    state: PathBuf,
    /// Nobody else undoes while this is held, or works in the folders.
    _log: File,
    _held: Held,
}

impl fmt::Debug for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Past").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Past {
    /// Opens a run's directory.
    ///
    /// # Errors
    /// It holds no log or no journal of this version, its run goes on, or another
    /// one works in its folders.
    pub fn open(run_dir: &Path) -> Result<Self, UndoError> {
        let path = run_dir.join(log::FILE);
        let log = File::open(&path).map_err(|why| cannot("open the log", &path, &why))?;
        log.try_lock().map_err(|why| match why {
            TryLockError::WouldBlock => UndoError(format!(
                "{}: the run is still going on, or is being undone; wait until it has ended",
                show(run_dir)
            )),
            TryLockError::Error(why) => cannot("lock the log", &path, &why),
        })?;
        let records = fs::read(&path).map_err(|why| cannot("read the log", &path, &why))?;
        let folder = run_dir.join("journal");
        let index = folder.join(INDEX);
        let bytes = fs::read(&index).map_err(|why| cannot("read the journal", &index, &why))?;
        let journal = journal::read(&bytes).map_err(|why| {
            UndoError(format!(
                "the journal `{}` cannot be read: {why}; \
                 use the version of this program that wrote it",
                show(&index)
            ))
        })?;
        let mounts = opened(&journal);
        let opened = mounts.iter().map(|mount| mount.root.clone()).collect();
        let state = log::state_dir().map_err(|why| cannot("find the locks", run_dir, &why))?;
        let held = hold(&state, run_dir, &mounts)?;
        let dir = Dir::open_ambient_dir(&folder, ambient_authority())
            .map_err(|why| cannot("open the journal", &folder, &why))?;
        let disk = Disk::reopen(mounts, dir, &journal).map_err(|why| UndoError(why.to_string()))?;
        let lasting = lasting(&records);
        recall(&disk, &state)?;
        Ok(Self { disk, journal, opened, lasting, state, _log: log, _held: held })
    }

    /// What was done that stays done, in order.
    #[must_use]
    pub fn lasting(&self) -> &[Lasting] {
        &self.lasting
    }

    /// What undoing would come to, last change first. Nothing is changed.
    #[must_use]
    pub fn look(&self, which: Which) -> Vec<Step> {
        let mut planned: Vec<(u64, String)> = Vec::new();
        let mut steps = Vec::new();
        for (place, entry) in self.left(which) {
            let paths = || [Some(&entry.path), entry.to.as_ref()].into_iter().flatten();
            let before = planned.iter().find(|(_, path)| paths().any(|own| overlap(own, path)));
            let comes = match before {
                Some((record, _)) => Comes::After(*record),
                None => self.resolve(place, entry, Resolve::Look),
            };
            planned.extend(paths().map(|path| (entry.record, path.clone())));
            steps.push(step(entry, comes));
        }
        steps
    }

    /// Undoes, last change first, and tells of each step once it is taken.
    pub fn undo(&self, which: Which, mut tell: impl FnMut(&Step)) {
        for (place, entry) in self.left(which) {
            tell(&step(entry, self.resolve(place, entry, Resolve::Undo)));
        }
    }

    fn left(&self, which: Which) -> impl Iterator<Item = (usize, &Entry)> {
        self.journal.entries.iter().enumerate().rev().filter(move |(place, entry)| {
            let wanted = match which {
                Which::All => true,
                Which::Record(record) => entry.record == record,
            };
            wanted && !self.journal.undone.contains(place)
        })
    }

    fn resolve(&self, place: usize, entry: &Entry, resolve: Resolve) -> Comes {
        if !self.opened.iter().any(|root| overlap(root, &entry.path)) {
            return Comes::NoFolder;
        }
        // What is put beside a name is known by no label.
        if resolve == Resolve::Undo
            && let Ok(Undone::Beside(path)) = self.disk.undo(place, entry, Resolve::Look)
            && self.lose(&path).is_err()
        {
            return Comes::Fault(Fault::Io);
        }
        self.disk.undo(place, entry, resolve).map_or_else(Comes::Fault, Comes::To)
    }

    fn lose(&self, path: &str) -> Result<(), StoreError> {
        let host = self.journal.header.folders.iter().find_map(|folder| {
            let inner = path.strip_prefix(&folder.guest).filter(|inner| inner.starts_with('/'))?;
            Some(format!("{}{inner}", folder.host.trim_end_matches('/')))
        });
        host.map_or(Ok(()), |host| store::lose(&self.state, &host))
    }
}

fn step(entry: &Entry, comes: Comes) -> Step {
    Step {
        record: entry.record,
        operation: entry.operation,
        path: entry.path.clone(),
        to: entry.to.clone(),
        comes,
    }
}

/// Whether one path is the other or lies below it.
fn overlap(one: &str, other: &str) -> bool {
    let within = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    within(one, other) || within(other, one)
}

/// The run's folders that are where they were, and are still the same.
fn opened(journal: &Journal) -> Vec<Mount> {
    let folders = journal.header.folders.iter();
    let opened = folders.filter_map(|folder| {
        let dir = Dir::open_ambient_dir(&folder.host, ambient_authority()).ok()?;
        let same = Identity::of(&dir).ok()? == folder.identity;
        let (root, host) = (folder.guest.clone(), folder.host.clone());
        same.then_some(Mount { root, host, dir, access: Access::ReadWrite })
    });
    opened.collect()
}

/// Keeps the labels of runs that did not end, before the files change again.
fn recall(disk: &Disk, state: &Path) -> Result<(), UndoError> {
    let folders = disk.folders().map_err(|fault| {
        UndoError(format!("the run's folders cannot be looked at (fault {})", fault.number()))
    })?;
    Labels::begin(state, ".undo", folders.0, Vec::new()).map(|_| ()).map_err(|why| {
        UndoError(format!(
            "{}: what the folders' files carry cannot be known: {why}; use the version that \
             wrote it, or move it away",
            show(&state.join(store::FILE))
        ))
    })
}

/// Takes the folders for the time of the undo.
fn hold(state: &Path, run_dir: &Path, mounts: &[Mount]) -> Result<Held, UndoError> {
    let folder = |mount: &Mount| {
        let path = Path::new(&mount.host);
        Folder::find(path, false).map_err(|why| cannot("open the folder", path, &why))
    };
    let folders = mounts.iter().map(folder).collect::<Result<_, _>>()?;
    // A run may be named by a path that ends in `..` or a slash.
    let run_dir = fs::canonicalize(run_dir).map_err(|why| cannot("find", run_dir, &why))?;
    let run = run_dir.file_name().unwrap_or_default().to_string_lossy();
    locks::take(state, &run, Purpose::Undo, folders).map_err(|why| UndoError(why.to_string()))
}

/// The permitted calls that no journal holds, with what the log says of them. A
/// log that was cut off says less, and only of what stands before the cut.
fn lasting(log: &[u8]) -> Vec<Lasting> {
    let (mut lasting, mut done, mut failed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut journaled = BTreeSet::new();
    for record in Reader::new(log).map_while(Result::ok) {
        match (record.kind, record.primitive, record.cause) {
            (Kind::TaskStart, ..) => {
                let start = record.field(tag::TEXT).and_then(parsed);
                journaled.extend(start.iter().flat_map(tools));
            }
            (Kind::Decision, Some(primitive), _) if record.gate == 0 && lasts(primitive) => {
                let call = record.field(tag::SENTENCE).and_then(parsed);
                let tool = call.as_ref().and_then(|call| call.pointer("/arguments/tool"));
                if tool.and_then(Value::as_str).is_none_or(|tool| !journaled.contains(tool)) {
                    lasting.push((record.sequence, primitive));
                }
            }
            (Kind::Outcome, _, Some(decision)) if record.code == 0 => {
                done.insert(decision);
            }
            (Kind::Outcome, _, Some(decision)) => {
                failed.insert(decision);
            }
            _ => {}
        }
    }
    let left = lasting.into_iter().filter(|(record, _)| !failed.contains(record));
    left.map(|(record, primitive)| {
        let outcome = if done.contains(&record) { Outcome::Done } else { Outcome::Unknown };
        Lasting { record, primitive, outcome }
    })
    .collect()
}

fn parsed(text: &[u8]) -> Option<Value> {
    serde_json::from_slice(text).ok()
}

/// The tools of a task's grant whose effects the journal holds.
fn tools(start: &Value) -> Vec<String> {
    let tools = start.pointer("/grant/tools").and_then(Value::as_array).into_iter().flatten();
    let journaled = tools.filter(|tool| tool.get("journaled") == Some(&Value::Bool(true)));
    journaled.filter_map(|tool| Some(tool.get("tool")?.as_str()?.to_owned())).collect()
}

/// Whether a call has an effect that the journal does not hold.
fn lasts(primitive: Primitive) -> bool {
    let row = primitive.row();
    let destroys = match row.harm {
        Harm::None | Harm::Journaled => false,
        Harm::Destructive => primitive != Primitive::FsDelete,
    };
    destroys || row.egress != Egress::Never
}

fn cannot(what: &str, path: &Path, why: &io::Error) -> UndoError {
    UndoError(format!("cannot {what}: {}: {why}; name the directory of a run", show(path)))
}

fn show(path: &Path) -> String {
    render::line(path.as_os_str().as_encoded_bytes(), 200)
}
