//! A disk whose power can be cut: what was not flushed may be lost, sector by sector.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use synapse_store::device::{Device, SECTOR};
use synapse_store::store::Failed;

/// A handle of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Mutex<Sectors>>);

#[derive(Debug)]
struct Sectors {
    safe: Vec<u8>,
    /// Written since the last flush.
    loose: BTreeMap<usize, [u8; SECTOR]>,
    /// Writes and flushes until the power is cut.
    left: u64,
}

impl Disk {
    pub(crate) fn new(bytes: usize) -> Self {
        let sectors = Sectors { safe: vec![0; bytes], loose: BTreeMap::new(), left: u64::MAX };
        Self(Arc::new(Mutex::new(sectors)))
    }

    pub(crate) fn cut_after(&self, writes: u64) {
        self.0.lock().unwrap().left = writes;
    }

    /// Writes and flushes that were made.
    pub(crate) fn made(&self) -> u64 {
        u64::MAX - self.0.lock().unwrap().left
    }

    /// Power comes back: of what was not flushed, `survives` says what is there.
    pub(crate) fn revive(&self, mut survives: impl FnMut() -> bool) {
        let mut sectors = self.0.lock().unwrap();
        for (sector, bytes) in core::mem::take(&mut sectors.loose) {
            if survives() {
                sectors.safe[sector * SECTOR..][..SECTOR].copy_from_slice(&bytes);
            }
        }
        sectors.left = u64::MAX;
    }

    pub(crate) fn spoil(&self) {
        self.0.lock().unwrap().safe[3] = b'x';
    }
}

impl Sectors {
    fn step(&mut self) -> Result<(), Failed> {
        self.left = self.left.checked_sub(1).ok_or(Failed)?;
        if self.left == 0 { Err(Failed) } else { Ok(()) }
    }
}

impl Device for Disk {
    fn bytes(&self) -> u64 {
        u64::try_from(self.0.lock().unwrap().safe.len()).unwrap()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Failed> {
        let sectors = self.0.lock().unwrap();
        let first = usize::try_from(offset).unwrap() / SECTOR;
        for (sector, part) in (first..).zip(into.chunks_exact_mut(SECTOR)) {
            let safe = sectors.safe.get(sector * SECTOR..(sector + 1) * SECTOR).ok_or(Failed)?;
            part.copy_from_slice(sectors.loose.get(&sector).map_or(safe, |bytes| bytes));
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        let mut sectors = self.0.lock().unwrap();
        let end = usize::try_from(offset).unwrap() + bytes.len();
        if end > sectors.safe.len() {
            return Err(Failed);
        }
        let first = usize::try_from(offset).unwrap() / SECTOR;
        // A write that the power cut fell into may have been made in part.
        let made = sectors.step();
        for (sector, part) in (first..).zip(bytes.chunks_exact(SECTOR)) {
            sectors.loose.insert(sector, part.try_into().unwrap());
        }
        made
    }

    fn flush(&self) -> Result<(), Failed> {
        let mut sectors = self.0.lock().unwrap();
        sectors.step()?;
        for (sector, bytes) in core::mem::take(&mut sectors.loose) {
            sectors.safe[sector * SECTOR..][..SECTOR].copy_from_slice(&bytes);
        }
        Ok(())
    }
}
