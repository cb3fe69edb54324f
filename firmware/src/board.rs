//! The platform of this board: files on the shelf, the clock, the serial line.
//!
//! Each run has a seat at it, so that a change is known to be its own, and a
//! question to be its agent's.
//!
//! # Not here
//! What a path means, and how much files may take (`synapse_store`). Who
//! answers (`desk`).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::pin::Pin;
use core::sync::atomic::AtomicBool;

use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::{Confirm, Heard};
use synapse_kernel::render;
use synapse_primitives::platform::{Admits, Asker, Journal, Listing, Mode, Shown, Written};
use synapse_primitives::rest::Creator;
use synapse_primitives::{Fault, Platform, Standing};
use synapse_store::{By, Shelf};

use crate::desk::Desk;
use crate::{clock, serial};

/// One run's part of the board.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Where files are.
    pub(crate) shelf: Arc<Shelf>,
    /// Where questions are put.
    pub(crate) desk: Arc<Desk>,
    /// The run's number.
    pub(crate) run: u64,
    /// What the agent is called.
    pub(crate) agent: String,
    /// Set when the run is to end.
    pub(crate) cancel: Arc<AtomicBool>,
}

impl Seat {
    fn by(&self, journal: Journal) -> By {
        By { run: self.run, journal, now_ms: clock::now_ms() }
    }
}

impl Platform for Seat {
    async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Shown, Fault> {
        self.shelf.read(path, offset, length)
    }

    async fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        self.shelf.list(path, after, limit)
    }

    async fn state(&self, path: &str) -> Result<Standing, Fault> {
        self.shelf.state(path)
    }

    async fn write(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.shelf.write(path, content, mode, self.by(journal))
    }

    async fn edit(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.shelf.edit(path, old, new, self.by(journal))
    }

    async fn rename(
        &self,
        from: &str,
        to: &str,
        journal: Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        self.shelf.rename(from, to, self.by(journal), admits)
    }

    async fn remove(
        &self,
        path: &str,
        journal: Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        self.shelf.remove(path, self.by(journal), admits)
    }

    async fn ask(&self, question: &[u8], asker: Asker) -> Result<Vec<u8>, Fault> {
        self.desk.ask(&self.agent, question, asker, &self.cancel).await
    }

    async fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        serial::show(&render::wrapped(bytes, COLUMNS));
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        clock::now_ms()
    }

    fn is_own(&self, path: &str, creator: Creator) -> bool {
        self.shelf.is_own(path, creator)
    }

    fn mounts(&self) -> Vec<(String, String)> {
        self.shelf.mounts()
    }
}

impl Confirm for Seat {
    fn ask<'a>(&'a self, asking: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>> {
        Box::pin(self.desk.confirm(&self.agent, asking, &self.cancel))
    }
}

/// What is sent over the line is shown on a screen that is not known.
pub(crate) const COLUMNS: usize = 80;
