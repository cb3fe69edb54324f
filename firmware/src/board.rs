//! The platform of this board: files in memory, the clock, the serial line.
//!
//! # Invariants
//! - Files never take more than their part of the memory: a write that would
//!   is `NoSpace`, before anything is touched.
//!
//! # Not here
//! What a path means (`synapse_primitives::memory`).

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use synapse_kernel::render;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::{Access, MountError};
use synapse_primitives::platform::{Admits, Asker, Journal, Listing, Mode, Shown, Written};
use synapse_primitives::rest::Creator;
use synapse_primitives::{Fault, Platform, Standing};

use crate::{clock, serial};

/// Files, clock and screen.
#[derive(Debug)]
pub(crate) struct Board {
    files: Memory,
    /// Bytes that files may still take. What is removed gives nothing back: the
    /// journal may hold it.
    room: AtomicU64,
}

impl Board {
    /// A board without files, with room for so many bytes of them.
    pub(crate) fn new(mounts: &[&str], room: u64) -> Result<Self, MountError> {
        let mounts: Vec<_> = mounts.iter().map(|root| (*root, Access::ReadWrite)).collect();
        let files = Memory::new(&mounts)?;
        files.set_now(clock::now_ms());
        Ok(Self { files, room: AtomicU64::new(room) })
    }

    /// Puts a file of the bundle in its place.
    pub(crate) fn place(&self, path: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.charge(bytes.len())?;
        self.files.place(path, bytes)
    }

    fn charge(&self, bytes: usize) -> Result<(), Fault> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(ENTRY);
        let take = |room: u64| room.checked_sub(bytes);
        self.room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .map(|_| ())
            .map_err(|_| Fault::NoSpace)
    }
}

impl Platform for Board {
    async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Shown, Fault> {
        self.files.read(path, offset, length).await
    }

    async fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        self.files.list(path, after, limit).await
    }

    async fn state(&self, path: &str) -> Result<Standing, Fault> {
        self.files.state(path).await
    }

    async fn write(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.charge(content.len())?;
        self.files.set_now(clock::now_ms());
        self.files.write(path, content, mode, journal).await
    }

    async fn edit(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        // The edited file is a new one, beside the old one in the journal.
        let listing = self.files.list(path, "", 1).await?;
        let size = listing.entries.first().map_or(0, |entry| entry.size);
        self.charge(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(new.len()))?;
        self.files.set_now(clock::now_ms());
        self.files.edit(path, old, new, journal).await
    }

    async fn rename(
        &self,
        from: &str,
        to: &str,
        journal: Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        self.charge(to.len())?;
        self.files.rename(from, to, journal, admits).await
    }

    async fn remove(
        &self,
        path: &str,
        journal: Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        self.files.remove(path, journal, admits).await
    }

    /// The line belongs to the shell while an agent runs: nobody can be asked.
    async fn ask(&self, _: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Err(Fault::Closed)
    }

    async fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        serial::show(&render::wrapped(bytes, COLUMNS));
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    fn is_own(&self, path: &str, creator: Creator) -> bool {
        self.files.is_own(path, creator)
    }

    fn mounts(&self) -> Vec<(String, String)> {
        self.files.mounts()
    }
}

/// What a file costs besides its bytes: its name, and its place in a directory.
const ENTRY: u64 = 512;
/// What is sent over the line is shown on a screen that is not known.
const COLUMNS: usize = 80;
