//! What outlives the runs of one user: the labels of files, in one redb file.
//!
//! One store for all folders, keyed by their paths, and not one for each: a run may
//! have a folder inside of another one's, and must find what that one wrote. Who may
//! work in a folder is said by `locks`; so the store is open only while a run begins
//! and while it ends, and two at a time wait for each other.
//!
//! # Invariants
//! - What is committed survives a crash; a store of another version is refused.
//!
//! # Not here
//! What is kept, and how it is recovered (`synapse_primitives::rest::kept`).

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use synapse_boundary::Integrity;
use synapse_primitives::disk::Identity;
use synapse_primitives::journal::{self, Folder, INDEX, Journal};
use synapse_primitives::platform::Kind;
use synapse_primitives::rest::kept::{self, Begun};
use synapse_primitives::rest::{Index, Print, Rest, Seen};
use synapse_primitives::store::{self, Change, Store, StoreError};

/// The store's file in the state folder.
pub const FILE: &str = "store.redb";

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("synapse");

/// The store, while nobody else has it open.
pub struct Redb {
    database: Database,
    /// Unlocked after the database is closed.
    _turn: File,
}

impl core::fmt::Debug for Redb {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Redb").finish_non_exhaustive()
    }
}

impl Redb {
    /// Opens the store of a state folder, and makes it where there is none.
    ///
    /// # Errors
    /// `Version`, or the host's reason.
    pub fn open(state: &Path) -> Result<Self, StoreError> {
        DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(host)?;
        let open = |name: &str| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            options.open(state.join(name))
        };
        let turn = open("store.lock").map_err(host)?;
        turn.lock().map_err(host)?;
        let file = open(FILE).map_err(host)?;
        let database = Database::builder().create_with_backend(FileBackend::new(file));
        let database = database.map_err(|why| match why {
            DatabaseError::UpgradeRequired(_) => StoreError::Version,
            why => host(why),
        })?;
        let mut opened = Self { database, _turn: turn };
        store::check(&mut opened)?;
        Ok(opened)
    }

    fn read(
        &self,
        from: &str,
        mut each: impl FnMut(&str, &[u8]) -> bool,
    ) -> Result<(), redb::Error> {
        let table = match self.database.begin_read()?.open_table(TABLE) {
            // Nothing was ever written.
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(()),
            table => table?,
        };
        for pair in table.range(from..)? {
            let (key, value) = pair?;
            if !each(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, changes: &[Change]) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in changes {
                match value {
                    Some(value) => drop(table.insert(key.as_str(), value.as_slice())?),
                    None => drop(table.remove(key.as_str())?),
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

impl Store for Redb {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let mut found = None;
        let only = |at: &str, value: &[u8]| {
            if at == key {
                found = Some(value.to_vec());
            }
            false
        };
        self.read(key, only).map_err(host)?;
        Ok(found)
    }

    fn range(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let mut found = Vec::new();
        let all = |key: &str, value: &[u8]| {
            let inside = key.starts_with(prefix);
            if inside {
                found.push((key.to_owned(), value.to_vec()));
            }
            inside
        };
        self.read(prefix, all).map_err(host)?;
        Ok(found)
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.write(changes).map_err(host)
    }
}

/// The labels of a run's folders, from its beginning to its end.
#[derive(Debug)]
pub struct Labels {
    state: PathBuf,
    run: String,
    folders: Vec<Folder>,
    writable: Vec<Folder>,
}

impl Labels {
    /// Begins a run that holds these folders, and may change some of them.
    ///
    /// # Errors
    /// The store cannot be used; nothing has begun.
    pub fn begin(
        state: &Path,
        run: &str,
        folders: Vec<Folder>,
        writable: Vec<Folder>,
    ) -> Result<(Self, Index), StoreError> {
        let begun = Begun { run, folders: &folders, writable: &writable };
        let index = kept::begin(&mut Redb::open(state)?, &begun, |run| journal(state, run))?;
        let (state, run) = (state.to_owned(), run.to_owned());
        Ok((Self { state, run, folders, writable }, index))
    }

    /// Keeps what the run changed.
    ///
    /// # Errors
    /// The store cannot be used. What the run changed is then found in its journal,
    /// by the next run in one of its folders.
    pub fn end(&self, index: &Index) -> Result<(), StoreError> {
        if self.writable.is_empty() {
            return Ok(());
        }
        kept::end(&mut Redb::open(&self.state)?, &self.run, &self.folders, index, now())
    }
}

/// What the file or folder at a path carries, its bytes and its name, as the runs
/// that ended left it. The path is whole and without links.
///
/// # Errors
/// The store or the file cannot be looked at.
pub fn carries(state: &Path, path: &Path) -> Result<(Rest, Rest), StoreError> {
    let seen = seen(&fs::symlink_metadata(path).map_err(host)?);
    let (folder, guest) = around(path)?;
    let index = if state.join(FILE).exists() {
        kept::look(&Redb::open(state)?, &[folder])?
    } else {
        Index::default()
    };
    Ok((index.content(&guest, &seen), index.name(&guest, &seen)))
}

/// The label of a file in a folder where no run goes on, with what one did that did not
/// end. The path is whole and without links.
///
/// # Errors
/// The store or the folder cannot be looked at.
pub(crate) fn settled(state: &Path, path: &Path, seen: &Seen) -> Result<Rest, StoreError> {
    let (folder, guest) = around(path)?;
    Ok(alone(state, &mut Redb::open(state)?, &[folder])?.content(&guest, seen))
}

/// Keeps the word of a human who vouches for a file, or does no longer, in a folder
/// where no run goes on.
///
/// # Errors
/// The store or the folder cannot be used.
pub(crate) fn vouch(
    state: &Path,
    path: &Path,
    seen: &Seen,
    integrity: Integrity,
) -> Result<(), StoreError> {
    let (folder, guest) = around(path)?;
    let (folders, mut store) = ([folder], Redb::open(state)?);
    let mut index = alone(state, &mut store, &folders)?;
    index.vouch(&guest, seen, integrity);
    kept::end(&mut store, NO_RUN, &folders, &index, now())
}

fn alone(state: &Path, store: &mut Redb, folders: &[Folder]) -> Result<Index, StoreError> {
    let begun = Begun { run: NO_RUN, folders, writable: &[] };
    kept::begin(store, &begun, |run| journal(state, run))
}

/// No run has this name.
const NO_RUN: &str = "";

/// The folder of a path, and the path under the name that the folder has here.
fn around(path: &Path) -> Result<(Folder, String), StoreError> {
    let around = path.parent().unwrap_or(path);
    let found = fs::symlink_metadata(around).map_err(host)?;
    let identity = Identity { device: found.dev(), inode: found.ino() };
    let host = around.to_string_lossy().into_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = Folder { guest: "/folder".to_owned(), host, identity };
    Ok((folder, format!("/folder/{name}")))
}

/// What the host says of a file or folder.
pub(crate) fn seen(found: &Metadata) -> Seen {
    let identity = (found.dev(), found.ino());
    let unsigned = |number: i64| u64::try_from(number).unwrap_or_default();
    if found.is_dir() {
        Seen { kind: Kind::Directory, print: Print::directory(identity), links: 1 }
    } else {
        let print = Print {
            identity,
            size: found.len(),
            modified: (found.mtime(), unsigned(found.mtime_nsec())),
            changed: Some((found.ctime(), unsigned(found.ctime_nsec()))),
        };
        Seen { kind: Kind::File, print, links: found.nlink() }
    }
}

/// Keeps what a run did that did not end, before its journal goes.
///
/// # Errors
/// The store cannot be used.
pub fn settle(state: &Path, run: &str) -> Result<(), StoreError> {
    if !state.join(FILE).exists() {
        return Ok(());
    }
    kept::settle(&mut Redb::open(state)?, run, journal(state, run).as_ref())
}

/// Says of a path of the host, and of all below it, that it may hold anything.
///
/// # Errors
/// The store cannot be used.
pub fn lose(state: &Path, host: &str) -> Result<(), StoreError> {
    kept::lose(&mut Redb::open(state)?, host)
}

/// Forgets the labels of what was taken away before a time; how many.
///
/// # Errors
/// The store cannot be used.
pub fn prune(state: &Path, before: SystemTime) -> Result<usize, StoreError> {
    if !state.join(FILE).exists() {
        return Ok(0);
    }
    let before = before.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    kept::prune(&mut Redb::open(state)?, before)
}

/// The journal of a run, if it can be read.
fn journal(state: &Path, run: &str) -> Option<Journal> {
    let index = state.join("runs").join(run).join("journal").join(INDEX);
    journal::read(&fs::read(index).ok()?).ok()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn host(why: impl Into<redb::Error>) -> StoreError {
    StoreError::Host(Box::new(why.into()))
}
