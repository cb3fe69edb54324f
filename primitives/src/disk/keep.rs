//! Where displaced things are kept, and the index that says so.
//!
//! A thing is displaced by a rename, so that it stays what it was, to its last
//! attribute, and costs no copy. A rename stays on one file system: where the
//! folder is on the run's own, things go beside the index, else into a hidden
//! directory at the folder's root.
//!
//! # Invariants
//! - An entry is on the disk before its change begins.
//! - A kept thing has the number of its record and of that record's change for a name,
//!   and no change has two.
//!
//! # Not here
//! What is displaced, and when (`replace`, `tree`). The format (`journal`).

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::sync::atomic::{AtomicU64, Ordering};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process,
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{
        AtFlags, Mode as Bits, OFlags, StatxFlags, fdatasync, ftruncate, mkdirat, statx, unlinkat,
    },
    io::retry_on_intr,
};
use sha2::{Digest, Sha256};

use super::{
    Held,
    open::{Found, Missing, beneath, exclusive, fault, readable, stat, sync},
    replace::{length, put_all},
};
use crate::{
    Fault,
    journal::{self, Entry, Folder, Header, INDEX, Journal, State},
    platform::KEPT_PREFIX,
};

/// The journal of one run.
#[derive(Debug)]
pub(super) struct Keep {
    dir: OwnedFd,
    /// What the hidden directory is called where there has to be one.
    drawer: String,
    index: Mutex<Index>,
}

#[derive(Debug)]
struct Index {
    file: OwnedFd,
    length: u64,
}

/// A directory for displaced things, reached from one folder by a rename.
#[derive(Debug)]
pub(super) struct Drawer {
    pub(super) dir: OwnedFd,
    /// Its name at the folder's root, if it stands there.
    inside: Option<String>,
}

impl Keep {
    /// Begins the journal of a run in an empty directory.
    pub(super) fn begin(dir: OwnedFd, folders: Vec<Folder>) -> Result<Self, Fault> {
        let file = exclusive(dir.as_fd(), INDEX, PRIVATE)?;
        let header = Header { drawer: unique(KEPT_PREFIX), folders };
        let line = header.line();
        let index = Mutex::new(Index { file, length: 0 });
        let keep = Self { dir, drawer: header.drawer, index };
        keep.append(&line)?;
        sync(keep.dir.as_fd())?;
        Ok(keep)
    }

    /// The journal of a run that is over, to mark in it what is undone.
    pub(super) fn over(dir: OwnedFd, journal: &Journal) -> Result<Self, Fault> {
        let file = beneath(dir.as_fd(), INDEX, OFlags::RDWR)?;
        let index = Mutex::new(Index { file, length: journal.length });
        Ok(Self { dir, drawer: journal.header.drawer.clone(), index })
    }

    /// Marks an entry as undone, durably.
    pub(super) fn mark(&self, place: usize) -> Result<(), Fault> {
        self.append(&journal::undone(place))
    }

    /// Writes an entry, durably.
    ///
    /// # Errors
    /// `JournalFull` where there is no room for it.
    pub(super) fn enter(&self, entry: &Entry) -> Result<(), Fault> {
        self.append(&entry.line()).map_err(full)
    }

    fn append(&self, line: &str) -> Result<(), Fault> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let written = put_all(&index.file, line.as_bytes(), index.length)
            .and_then(|()| retry_on_intr(|| fdatasync(&index.file)).map_err(fault));
        match written {
            Ok(()) => index.length = index.length.saturating_add(length(line.as_bytes())),
            // Half a line would spoil the next one.
            Err(_) => drop(ftruncate(&index.file, index.length)),
        }
        written
    }

    /// Where what a folder loses is kept.
    ///
    /// # Errors
    /// `NotFound` where it is not there and not to be made.
    pub(super) fn drawer(&self, held: &Held, missing: Missing) -> Result<Drawer, Fault> {
        if mount_of(held.dir.as_fd())? == mount_of(self.dir.as_fd())? {
            return Ok(Drawer { dir: readable(self.dir.as_fd())?, inside: None });
        }
        let open = || {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let dir = beneath(held.dir.as_fd(), &self.drawer, flags)?;
            Ok(Drawer { dir, inside: Some(self.drawer.clone()) })
        };
        match open() {
            Err(Fault::NotFound) if missing == Missing::Make => {
                let bits = Bits::from_raw_mode(0o700);
                mkdirat(&held.dir, self.drawer.as_str(), bits).map_err(fault)?;
                sync(readable(held.dir.as_fd())?.as_fd())?;
                open()
            }
            opened => opened,
        }
    }

    /// Finds the directory of a kept thing again, and its name there.
    pub(super) fn find<'k>(&self, held: &Held, kept: &'k str) -> Result<(OwnedFd, &'k str), Fault> {
        match kept.strip_prefix('/').and_then(|inner| inner.split_once('/')) {
            Some((drawer, name)) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                Ok((beneath(held.dir.as_fd(), drawer, flags)?, name))
            }
            None => Ok((readable(self.dir.as_fd())?, kept)),
        }
    }
}

impl Drawer {
    /// What an entry calls the thing that its record displaced.
    pub(super) fn kept(&self, record: u64, part: u64) -> String {
        let kept = kept_name(record, part);
        match &self.inside {
            Some(name) => format!("/{name}/{kept}"),
            None => kept,
        }
    }

    /// Takes the directory away again if nothing is kept in it.
    pub(super) fn leave(&self, held: &Held) {
        if let Some(name) = &self.inside {
            let _kept = unlinkat(&held.dir, name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

/// What a record's change has its displaced thing called.
pub(super) fn kept_name(record: u64, part: u64) -> String {
    if part == 0 { record.to_string() } else { format!("{record}.{part}") }
}

/// What stands under a name, as the journal says it.
pub(super) fn state(found: &Found, content: Option<&[u8]>) -> State {
    State {
        kind: found.kind,
        identity: found.identity,
        size: found.size(),
        modified: (found.stat.st_mtime, found.stat.st_mtime_nsec),
        sha256: content.map(|content| Sha256::digest(content).into()),
    }
}

/// A journal without room, where the fault is the journal's.
pub(super) fn full(fault: Fault) -> Fault {
    match fault {
        Fault::NoSpace | Fault::TooLarge | Fault::CrossDevice => Fault::JournalFull,
        // A change has one entry: a second is the journal's fault, not the file's.
        Fault::Exists => Fault::Io,
        fault => fault,
    }
}

/// Nobody else reads a file before it has the permissions of the one it replaces.
pub(super) const PRIVATE: Bits = Bits::from_raw_mode(0o600);

/// Two directories with one answer can be renamed between.
fn mount_of(dir: BorrowedFd<'_>) -> Result<(u64, u64), Fault> {
    let device = stat(dir)?.identity.device;
    let found = statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).map_err(fault)?;
    Ok((device, found.stx_mnt_id))
}

/// A name that no other run and no other call makes.
pub(super) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (id, nanos) = (process::id(), since.as_nanos());
    format!("{prefix}{id:08x}-{nanos:016x}-{count:x}")
}
