//! Runs: what they are called, and every byte of their logs.
//!
//! # Invariants
//! - I3: a log takes frames until the room of logs is used up; then it takes none.
//!
//! # Not here
//! What a frame says (`kernel::record`), whether a log is whole (`kernel::verify`).

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use synapse_kernel::record::{Durability, Sink, SinkFailed};
use synapse_primitives::Fault;

use crate::keys::{self, Fields, JOURNAL, LAST, RUN, TAPE};
use crate::shelf::{ENTRY, Shelf};
use crate::store::Change;
use crate::tree::{count, failed, usize_of};
use crate::undo::Entry;

/// One run, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Its number, from 1.
    pub number: u64,
    /// The agent's name.
    pub name: String,
    /// Whether it came to its end; else it goes on, or the machine was switched off.
    pub ended: bool,
}

/// What is kept of a run besides its log and journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    name: String,
    pub(crate) ended: bool,
    /// Bytes of its log, and the parts that it stands in.
    pub(crate) bytes: u64,
    pub(crate) parts: u32,
    /// Entries of its journal.
    pub(crate) entries: u32,
    /// Whether the store knows less.
    pub(crate) changed: bool,
}

impl Meta {
    /// Bytes that its journal takes of the room of files.
    pub(crate) fn journal(&self) -> u64 {
        ENTRY.saturating_mul(self.entries.into())
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let mut value = Vec::from([u8::from(self.ended)]);
        for number in [self.bytes, self.parts.into(), self.entries.into()] {
            value.extend_from_slice(&number.to_le_bytes());
        }
        keys::write(&mut value, self.name.as_bytes());
        value
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut fields = Fields(value);
        let ended = fields.u8()? == 1;
        let bytes = fields.u64()?;
        let (parts, entries) = (fields.u64()?, fields.u64()?);
        let name = fields.text()?.to_string();
        let (parts, entries) = (u32::try_from(parts).ok()?, u32::try_from(entries).ok()?);
        Some(Self { name, ended, bytes, parts, entries, changed: false })
    }
}

impl Shelf {
    /// A new run of this agent: its number, which no other run of the store had.
    pub fn begin(&self, name: &str) -> u64 {
        let mut state = self.lock();
        let number = state.last.saturating_add(1);
        state.last = number;
        let meta = Meta { name: name.to_string(), changed: true, ..Meta::default() };
        state.runs.insert(number, meta);
        number
    }

    /// Where the log of a run goes.
    #[must_use]
    pub fn tape(self: &Arc<Self>, run: u64) -> Tape {
        Tape { shelf: Arc::clone(self), run }
    }

    /// Notes that a run came to its end, and makes all of it safe.
    ///
    /// # Errors
    /// `Io`.
    pub fn end(&self, run: u64) -> Result<(), Fault> {
        let mut state = self.lock();
        if let Some(meta) = state.runs.get_mut(&run) {
            (meta.ended, meta.changed) = (true, true);
        }
        let tree = self.tree(&state, 0);
        self.commit(&mut state, tree)
    }

    /// All runs, the first first.
    #[must_use]
    pub fn runs(&self) -> Vec<Past> {
        let state = self.lock();
        let past = |(number, meta): (&u64, &Meta)| Past {
            number: *number,
            name: meta.name.clone(),
            ended: meta.ended,
        };
        state.runs.iter().map(past).collect()
    }

    /// Every byte of a run's log so far.
    ///
    /// # Errors
    /// `NotFound`, `NoSpace` where the memory has no room for it, `Io`.
    pub fn log(&self, run: u64) -> Result<Vec<u8>, Fault> {
        let state = self.lock();
        let meta = state.runs.get(&run).ok_or(Fault::NotFound)?;
        let mut log = Vec::new();
        log.try_reserve_exact(usize_of(meta.bytes)).map_err(|_| Fault::NoSpace)?;
        for part in 0..meta.parts {
            let part = self.store().get(&keys::at(TAPE, run, part)).map_err(failed)?;
            log.extend_from_slice(&part.ok_or(Fault::Io)?);
        }
        log.extend_from_slice(state.waiting.get(&run).map_or(&[], Vec::as_slice));
        Ok(log)
    }

    /// Drops the logs of runs that have no part in the present, with their journals
    /// and what those hold; how many there were.
    ///
    /// # Errors
    /// `Io`.
    pub fn forget(&self, past: impl Fn(&Past) -> bool) -> Result<usize, Fault> {
        let mut forgotten = 0;
        for run in self.runs().iter().filter(|run| past(run)) {
            let mut state = self.lock();
            let Some(meta) = state.runs.get(&run.number).cloned() else { continue };
            let mut tree = self.tree(&state, 0);
            let (mut freed, mut held) = (meta.journal(), Vec::new());
            self.store()
                .scan(&keys::of(JOURNAL, run.number), &[], &mut |key, value| {
                    tree.changes.push(Change::Remove(key.to_vec()));
                    held.extend(Entry::parse(value).and_then(|entry| entry.detached));
                    ControlFlow::Continue(())
                })
                .map_err(failed)?;
            for node in held {
                let extent = tree.discard(node)?;
                let entries = ENTRY.saturating_mul(count(extent.nodes.len()));
                freed = freed.saturating_add(extent.bytes).saturating_add(entries);
            }
            for part in 0..meta.parts {
                tree.changes.push(Change::Remove(keys::at(TAPE, run.number, part)));
            }
            tree.changes.push(Change::Remove(keys::of(RUN, run.number)));
            let last = Cow::Owned(state.last.to_le_bytes().to_vec());
            tree.changes.push(Change::Put(Vec::from([LAST]), last));
            state.runs.remove(&run.number);
            state.waiting.remove(&run.number);
            self.commit(&mut state, tree)?;
            state.files = state.files.saturating_sub(freed);
            state.logs = state.logs.saturating_sub(meta.bytes);
            forgotten += 1;
        }
        Ok(forgotten)
    }

    fn append(&self, run: u64, frame: &[u8], durability: Durability) -> Result<(), SinkFailed> {
        let mut state = self.lock();
        let logs = state.logs.saturating_add(count(frame.len()));
        if logs > self.rooms().logs {
            return Err(SinkFailed);
        }
        let waiting = state.waiting.entry(run).or_default();
        waiting.try_reserve(frame.len()).map_err(|_| SinkFailed)?;
        waiting.extend_from_slice(frame);
        let full = waiting.len() >= WAITING;
        let meta = state.runs.get_mut(&run).ok_or(SinkFailed)?;
        meta.bytes = meta.bytes.saturating_add(count(frame.len()));
        meta.changed = true;
        state.logs = logs;
        match durability {
            Durability::Soon if !full => Ok(()),
            Durability::Soon | Durability::Written | Durability::Synced => {
                let tree = self.tree(&state, 0);
                self.commit(&mut state, tree).map_err(|_| SinkFailed)
            }
        }
    }
}

/// The log of one run.
#[derive(Debug)]
pub struct Tape {
    shelf: Arc<Shelf>,
    run: u64,
}

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], durability: Durability) -> Result<(), SinkFailed> {
        self.shelf.append(self.run, frame, durability)
    }
}

/// Bytes of one run that wait at most.
const WAITING: usize = 15 << 10;
