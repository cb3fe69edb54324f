//! A store on a disk: redb, with one table, behind a page that says so.
//!
//! The first page of the disk belongs to this file: whose disk it is, and how
//! long the database is, which redb would ask a file system. The database comes
//! after it.
//!
//! # Invariants
//! - A disk that holds something else is not touched.
//! - Commits have two phases: what an agent writes is on the disk before the
//!   page that makes it count, so that no choice of bytes can pass for a commit.
//!
//! # Not here
//! The order of bytes on a page (redb).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Bound;
use core::sync::atomic::{AtomicU64, Ordering};

use redb::{
    BackendError, ReadOnlyTable, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
};

use crate::device::{Device, SECTOR};
use crate::keys::Fields;
use crate::store::{Change, Failed, Seer, Store};
use crate::tree::{count, usize_of};

/// A store on a disk.
pub struct Database(redb::Database);

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

/// Why a disk cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It holds something else.
    Foreign,
    /// It is too small.
    Small,
    /// It failed, or what it holds is damaged.
    Failed,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str(
                "the disk holds something that is not this machine's; give it an empty one",
            ),
            Self::Small => {
                write!(f, "the disk is too small; give it one of {} KiB or more", SMALLEST >> 10)
            }
            Self::Failed => f.write_str(
                "the disk failed, or what it holds is damaged; start again, or with a copy of it",
            ),
        }
    }
}

impl core::error::Error for Unusable {}

impl Database {
    /// Opens what a disk holds, or makes it on an empty one; `memory` bytes keep
    /// what was read.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn open(device: Box<dyn Device>, memory: usize) -> Result<Self, Unusable> {
        let backend = Backend::open(device)?;
        let database = redb::Builder::new()
            .set_cache_size(memory)
            .create_with_backend(backend)
            .map_err(|_| Unusable::Failed)?;
        let database = Self(database);
        // A table that is not there cannot be read.
        database.apply(&[]).map_err(|_| Unusable::Failed)?;
        Ok(database)
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>, Failed> {
        self.0.begin_read().map_err(failed)?.open_table(TABLE).map_err(failed)
    }
}

impl Store for Database {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failed> {
        let table = self.table()?;
        let value = table.get(key).map_err(failed)?;
        Ok(value.map(|value| value.value().to_vec()))
    }

    fn scan(&self, prefix: &[u8], after: &[u8], see: &mut Seer<'_>) -> Result<(), Failed> {
        let from = (Bound::Excluded(after.max(prefix)), Bound::<&[u8]>::Unbounded);
        for entry in self.table()?.range(from).map_err(failed)? {
            let (key, value) = entry.map_err(failed)?;
            if !key.value().starts_with(prefix) || see(key.value(), value.value()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn apply(&self, changes: &[Change<'_>]) -> Result<(), Failed> {
        let mut transaction = self.0.begin_write().map_err(failed)?;
        transaction.set_two_phase_commit(true);
        {
            let mut table = transaction.open_table(TABLE).map_err(failed)?;
            for change in changes {
                match change {
                    Change::Put(key, value) => {
                        table.insert(&**key, &**value).map_err(failed)?;
                    }
                    Change::Remove(key) => {
                        table.remove(&**key).map_err(failed)?;
                    }
                }
            }
        }
        transaction.commit().map_err(failed)
    }
}

fn failed<E>(_: E) -> Failed {
    Failed
}

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("synapse");

/// The database's part of a disk.
#[derive(Debug)]
struct Backend {
    device: Box<dyn Device>,
    length: AtomicU64,
    /// How long it ever was: what lies beyond is as the disk came, all zero.
    longest: AtomicU64,
}

impl Backend {
    fn open(device: Box<dyn Device>) -> Result<Self, Unusable> {
        if device.bytes() < SMALLEST {
            return Err(Unusable::Small);
        }
        let mut first = [0; SECTOR];
        device.read(0, &mut first).map_err(|_| Unusable::Failed)?;
        let backend = Self { device, length: AtomicU64::new(0), longest: AtomicU64::new(0) };
        if first == [0; SECTOR] {
            return Ok(backend);
        }
        let (magic, rest) = first.split_at(MAGIC.len());
        let mut fields = Fields(rest);
        let (Some(length), Some(longest), true) = (fields.u64(), fields.u64(), magic == MAGIC)
        else {
            return Err(Unusable::Foreign);
        };
        let mut start = [0; SECTOR];
        backend.device.read(START, &mut start).map_err(|_| Unusable::Failed)?;
        // The power was cut while it was made, which redb ends by naming it: it is empty still.
        let named = start.first_chunk::<NAME>().is_some_and(|name| *name != [0; NAME]);
        let length = if named { length } else { 0 };
        backend.length.store(length, Ordering::Relaxed);
        backend.longest.store(longest, Ordering::Relaxed);
        Ok(backend)
    }

    /// The whole sectors that a range lies in, and where it begins in them.
    fn sectors(&self, offset: u64, length: usize) -> Result<(u64, Vec<u8>, usize), Failed> {
        let at = START.checked_add(offset).ok_or(Failed)?;
        let within = usize_of(at % count(SECTOR));
        let whole = within.checked_add(length).ok_or(Failed)?.next_multiple_of(SECTOR);
        let start = at.saturating_sub(count(within));
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(whole).map_err(failed)?;
        bytes.resize(whole, 0);
        self.device.read(start, &mut bytes)?;
        Ok((start, bytes, within))
    }

    fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        let at = START.checked_add(offset).ok_or(Failed)?;
        if at.is_multiple_of(count(SECTOR)) && bytes.len().is_multiple_of(SECTOR) {
            return self.device.write(at, bytes);
        }
        let (start, mut sectors, within) = self.sectors(offset, bytes.len())?;
        let place = sectors.iter_mut().skip(within);
        place.zip(bytes).for_each(|(old, new)| *old = *new);
        self.device.write(start, &sectors)
    }

    fn take(&self, offset: u64, out: &mut [u8]) -> Result<(), Failed> {
        let at = START.checked_add(offset).ok_or(Failed)?;
        if at.is_multiple_of(count(SECTOR)) && out.len().is_multiple_of(SECTOR) {
            return self.device.read(at, out);
        }
        let (_, sectors, within) = self.sectors(offset, out.len())?;
        out.iter_mut().zip(sectors.iter().skip(within)).for_each(|(to, from)| *to = *from);
        Ok(())
    }

    fn grow(&self, length: u64) -> Result<(), Failed> {
        let longest = self.longest.load(Ordering::Relaxed);
        // What was cut off once may stand there still.
        let mut at = self.length.load(Ordering::Relaxed);
        while at < length.min(longest) {
            let end = at.saturating_add(count(ZEROS.len())).min(length.min(longest));
            let zeros = ZEROS.get(..usize_of(end.saturating_sub(at))).unwrap_or(&ZEROS);
            self.put(at, zeros)?;
            at = end;
        }
        let longest = longest.max(length);
        let mut first = Vec::from(MAGIC);
        first.extend_from_slice(&length.to_le_bytes());
        first.extend_from_slice(&longest.to_le_bytes());
        first.resize(SECTOR, 0);
        self.device.write(0, &first)?;
        self.length.store(length, Ordering::Relaxed);
        self.longest.store(longest, Ordering::Relaxed);
        Ok(())
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> Result<u64, BackendError> {
        Ok(self.length.load(Ordering::Relaxed))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), BackendError> {
        self.take(offset, out).map_err(told)
    }

    /// Any length: redb doubles it long before it uses the half of it, and a
    /// write past the end of the disk fails.
    fn set_len(&self, length: u64) -> Result<(), BackendError> {
        self.grow(length).map_err(told)
    }

    fn sync_data(&self) -> Result<(), BackendError> {
        self.device.flush().map_err(told)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), BackendError> {
        self.put(offset, bytes).map_err(told)
    }
}

fn told(_: Failed) -> BackendError {
    BackendError::Other("the disk failed".into())
}

const MAGIC: [u8; 16] = *b"synapse disk  1\n";
/// Bytes by which redb knows its own.
const NAME: usize = 9;
/// Where the database begins.
const START: u64 = 4096;
/// Bytes of the smallest disk.
const SMALLEST: u64 = 1 << 20;
static ZEROS: [u8; SECTOR] = [0; SECTOR];
