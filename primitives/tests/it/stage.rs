//! The two platforms as a test sees them.

use core::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll, Waker},
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use cap_std::{ambient_authority, fs::Dir};
use serde_json::Value;
use synapse_boundary::Integrity;
use synapse_primitives::{
    Fault, Platform,
    disk::{Disk, Identity, Mount, Screen},
    mounts::Access,
    platform::{Asker, Entry, Journal, Kind, Listing, Mode, Written},
    rest::{Creator, Names, Owner, Rest, Stamp},
    search::{Eyes, Sight, search},
};
use tempfile::TempDir;

/// Drives a future that never waits.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a platform of this crate never waits"),
    }
}

/// A disk in a scratch folder: `/data`, read-only `/docs`, a journal.
pub(crate) struct Stage {
    pub(crate) disk: Disk,
    pub(crate) shown: Arc<Mutex<Vec<u8>>>,
    scratch: TempDir,
}

#[derive(Debug, Default)]
pub(crate) struct Shown(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Screen for Shown {
    fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    /// Answers with the question.
    fn ask(&self, question: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Ok(question.to_vec())
    }
}

pub(crate) fn dir(path: &Path) -> Dir {
    Dir::open_ambient_dir(path, ambient_authority()).unwrap()
}

pub(crate) fn mount(root: &str, path: &Path, access: Access) -> Mount {
    Mount { root: root.to_owned(), host: path.to_str().unwrap().to_owned(), dir: dir(path), access }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(|_| Vec::new())
    }

    /// In memory where the host has a place for that: many changes, each synced.
    pub(crate) fn quick() -> Self {
        let memory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        Self::in_scratch(memory, |_| Vec::new())
    }

    /// Sets the folder up first; what `prepare` names is Synapse's own.
    pub(crate) fn with(prepare: impl FnOnce(&Path) -> Vec<PathBuf>) -> Self {
        Self::in_scratch(TempDir::new().unwrap(), prepare)
    }

    fn in_scratch(scratch: TempDir, prepare: impl FnOnce(&Path) -> Vec<PathBuf>) -> Self {
        for name in ["data", "docs", "journal"] {
            std::fs::create_dir(scratch.path().join(name)).unwrap();
        }
        let own: Vec<Identity> = prepare(&scratch.path().join("data"))
            .into_iter()
            .map(|path| Identity::of(std::fs::File::open(path).unwrap()).unwrap())
            .collect();
        let shown = Arc::default();
        let mounts = vec![
            mount("/data", &scratch.path().join("data"), Access::ReadWrite),
            mount("/docs", &scratch.path().join("docs"), Access::ReadOnly),
        ];
        let journal = Some(dir(&scratch.path().join("journal")));
        let screen = Box::new(Shown(Arc::clone(&shown)));
        let disk = Disk::new(mounts, &own, journal, screen).unwrap();
        Self { disk, shown, scratch }
    }

    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn data(&self, inner: &str) -> PathBuf {
        self.scratch.path().join("data").join(inner)
    }

    pub(crate) fn outer(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The names the host sees in a folder, unfinished writes included.
    pub(crate) fn on_host(&self, folder: &str) -> Vec<String> {
        names_in(&self.outer(folder))
    }
}

pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A record of its own, and room enough.
pub(crate) fn usual() -> Journal {
    static RECORD: AtomicU64 = AtomicU64::new(1000);
    journal(RECORD.fetch_add(1, Ordering::Relaxed), 1 << 20)
}

/// A change that a human asked for, in a task that has read nothing.
pub(crate) fn journal(record: u64, room: u64) -> Journal {
    Journal { record, part: 0, room, expects: None, stamp: stamp(1, Integrity::User, &[]) }
}

/// What a task leaves that has read this.
pub(crate) fn stamp(task: u64, integrity: Integrity, names: &[&'static str]) -> Stamp {
    let mut rest = Rest { integrity, names: Names::NONE };
    for name in names {
        rest.names.add(name);
    }
    let creator = Creator { run: [7; 32], task };
    Stamp { rest, creator, carried: Names::NONE, owner: Owner::Anyone }
}

/// The calls with their usual arguments.
pub(crate) trait Calls: Platform {
    fn all(&self, path: &str) -> Result<Vec<u8>, Fault> {
        now(self.read(path, 0, 1 << 20)).map(|shown| shown.bytes)
    }

    fn put(&self, path: &str, content: &[u8], mode: Mode) -> Result<Written, Fault> {
        let Journal { record, room, .. } = usual();
        self.put_as(path, content, mode, record, room)
    }

    fn put_as(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        record: u64,
        room: u64,
    ) -> Result<Written, Fault> {
        now(self.write(path, content, mode, journal(record, room)))
    }

    fn edits(&self, path: &str, old: &str, new: &str) -> Result<Written, Fault> {
        now(self.edit(path, old.as_bytes(), new.as_bytes(), usual()))
    }

    /// A page of a search that may see everything.
    fn finds(&self, root: &str, text: &str, from: u64) -> Result<Value, Fault>
    where
        Self: Sized,
    {
        self.finds_as(root, text, from, &|_| Sight::Read)
    }

    fn finds_as(&self, root: &str, text: &str, from: u64, eyes: Eyes<'_>) -> Result<Value, Fault>
    where
        Self: Sized,
    {
        let found = now(search(self, root, text.as_bytes(), from, eyes))?;
        Ok(serde_json::from_str(&found.json).unwrap())
    }

    fn shift(&self, from: &str, to: &str) -> Result<(), Fault> {
        now(self.rename(from, to, usual(), &|_, _| Some(Names::NONE)))
    }

    fn take(&self, path: &str) -> Result<(), Fault> {
        now(self.remove(path, usual(), &|_| true)).map(|_| ())
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Fault> {
        let listing = now(self.list(path, "", u64::MAX))?;
        Ok(listing.entries.into_iter().map(|entry| entry.name).collect())
    }

    /// A page without its times and labels.
    fn page(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        let mut listing = now(self.list(path, after, limit))?;
        for entry in &mut listing.entries {
            entry.modified_ms = 0;
            entry.rest = Rest::SYSTEM;
        }
        Ok(listing)
    }
}

impl<P: Platform> Calls for P {}

pub(crate) fn entry(name: &str, kind: Kind, size: u64) -> Entry {
    Entry { name: name.to_owned(), kind, size, modified_ms: 0, rest: Rest::SYSTEM }
}

pub(crate) fn hits(page: &Value) -> Vec<Value> {
    page.get("hits").and_then(Value::as_array).cloned().unwrap()
}
