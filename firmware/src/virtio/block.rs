//! A virtio disk, one request at a time
//!
//! # Invariants
//! - A write is on the disk when a flush after it has ended well.
//!
//! # Not here
//! What stands on it (`synapse_store`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use spin::Mutex;
use synapse_store::device::{self, SECTOR};
use synapse_store::store::Failed;

use super::queue::Part;
use super::{Absent, Device, Kind};
use crate::drill::Cut;

/// A disk.
#[derive(Debug)]
pub(crate) struct Disk {
    bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    device: Device,
    /// What is asked for, and what came of it.
    request: &'static [AtomicU64; 3],
    /// The sectors of a request.
    sectors: &'static [AtomicU64],
    cut: Cut,
}

/// Why there is no disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoDisk {
    /// None is attached.
    Missing,
    /// It is there, and cannot be spoken to.
    Unusable,
    /// It cannot be written.
    ReadOnly,
}

impl Disk {
    /// The machine's first disk.
    pub(crate) fn find(cut: Cut) -> Result<Self, NoDisk> {
        let device = Device::find(Kind::Block, READ_ONLY | FLUSH).map_err(|why| match why {
            Absent::Missing => NoDisk::Missing,
            Absent::Unusable => NoDisk::Unusable,
        })?;
        if device.features & READ_ONLY != 0 {
            return Err(NoDisk::ReadOnly);
        }
        let sectors =
            u64::from(device.transport.about(0)) | u64::from(device.transport.about(4)) << 32;
        let memory: Vec<AtomicU64> = (0..AT_ONCE / 8).map(|_| AtomicU64::new(0)).collect();
        let request = Box::leak(Box::default());
        let state = Mutex::new(State { device, request, sectors: memory.leak(), cut });
        Ok(Self { bytes: sectors.saturating_mul(SECTOR as u64), state })
    }

    /// Whether these sectors are the disk's.
    fn check(&self, offset: u64, length: usize) -> Result<(), Failed> {
        let end = offset.checked_add(length as u64).ok_or(Failed)?;
        let whole = end.is_multiple_of(SECTOR as u64) && offset.is_multiple_of(SECTOR as u64);
        if whole && end <= self.bytes { Ok(()) } else { Err(Failed) }
    }
}

impl device::Device for Disk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Failed> {
        self.check(offset, into.len())?;
        let state = self.state.lock();
        for (part, at) in into.chunks_mut(AT_ONCE).zip((offset..).step_by(AT_ONCE)) {
            state.request(READ, at, part.len())?;
            let (words, _) = part.as_chunks_mut::<8>();
            for (word, shared) in words.iter_mut().zip(state.sectors) {
                *word = shared.load(Ordering::Relaxed).to_le_bytes();
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        self.check(offset, bytes.len())?;
        let mut state = self.state.lock();
        for (part, at) in bytes.chunks(AT_ONCE).zip((offset..).step_by(AT_ONCE)) {
            let (words, _) = part.as_chunks::<8>();
            for (word, shared) in words.iter().zip(state.sectors) {
                shared.store(u64::from_le_bytes(*word), Ordering::Relaxed);
            }
            if state.cut.is_now() {
                // The power is cut in the middle of it.
                let half = part.len() / 2 / SECTOR * SECTOR;
                if half > 0 {
                    state.request(WRITE, at, half)?;
                }
                Cut::happen();
            }
            state.request(WRITE, at, part.len())?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Failed> {
        let state = self.state.lock();
        // A disk without the feature has everything when a write has ended.
        if state.device.features & FLUSH == 0 { Ok(()) } else { state.request(SYNC, 0, 0) }
    }
}

impl State {
    fn request(&self, what: u64, at: u64, length: usize) -> Result<(), Failed> {
        let [kind, sector, status] = self.request;
        kind.store(what, Ordering::Relaxed);
        sector.store(at / SECTOR as u64, Ordering::Relaxed);
        status.store(UNSAID, Ordering::Relaxed);
        let length = u32::try_from(length).map_err(|_| Failed)?;
        let head = Part::new(&self.request[..], 16, false);
        let sectors = Part::new(self.sectors, length, what == READ);
        let tail = Part { address: head.address + 16, length: 1, is_written: true };
        let all = [head, sectors, tail];
        let asked =
            if length == 0 { self.device.ask(&[head, tail]) } else { self.device.ask(&all) };
        asked.ok_or(Failed)?;
        if status.load(Ordering::Relaxed) & 0xff == DONE { Ok(()) } else { Err(Failed) }
    }
}

/// Bytes of a request.
const AT_ONCE: usize = 64 << 10;
const READ: u64 = 0;
const WRITE: u64 = 1;
const SYNC: u64 = 4;
const DONE: u64 = 0;
/// What no disk says.
const UNSAID: u64 = 0xff;
const READ_ONLY: u32 = 1 << 5;
const FLUSH: u32 = 1 << 9;
