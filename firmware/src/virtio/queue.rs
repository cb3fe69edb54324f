//! A queue of one request, in memory that a device shares
//!
//! # Not here
//! What is asked for (`block`, `random`).

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use core::time::Duration;

use crate::{clock, cpu};

/// Parts of a request.
pub(super) const SIZE: u16 = 4;
/// How long a device may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Memory that a device reads, or writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) address: u64,
    pub(super) length: u32,
    /// Whether the device writes it.
    pub(super) is_written: bool,
}

impl Part {
    /// The first bytes of shared memory, at most all of it.
    pub(super) fn new(memory: &'static [AtomicU64], length: u32, is_written: bool) -> Self {
        let all = u32::try_from(size_of_val(memory)).unwrap_or(u32::MAX);
        Self { address: address(memory.as_ptr()), length: length.min(all), is_written }
    }
}

/// As the standard lays it out; each part is aligned as it asks.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Shared {
    descriptors: [[AtomicU64; 2]; SIZE as usize],
    available: Available,
    used: Used,
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Available {
    flags: AtomicU16,
    index: AtomicU16,
    ring: [AtomicU16; SIZE as usize],
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Used {
    flags: AtomicU16,
    index: AtomicU16,
    ring: [[AtomicU32; 2]; SIZE as usize],
}

#[derive(Debug)]
pub(super) struct Queue(&'static Shared);

impl Queue {
    /// An empty queue; its memory stays the device's for good.
    pub(super) fn new() -> Self {
        let shared: &'static Shared = Box::leak(Box::default());
        // No interrupts.
        shared.available.flags.store(1, Ordering::Relaxed);
        Self(shared)
    }

    pub(super) fn addresses(&self) -> [u64; 3] {
        [
            address(&raw const self.0.descriptors),
            address(&raw const self.0.available),
            address(&raw const self.0.used),
        ]
    }

    /// Makes a request available.
    pub(super) fn put(&self, parts: &[Part]) {
        let places = self.0.descriptors.iter().zip(parts).zip(1_u64..);
        for (([at, rest], part), next) in places {
            let more = u64::from(next < parts.len() as u64);
            let flags = more | u64::from(part.is_written) << 1;
            at.store(part.address, Ordering::Relaxed);
            let low = u64::from(part.length) | flags << 32 | next << 48;
            rest.store(low, Ordering::Relaxed);
        }
        let index = self.0.available.index.load(Ordering::Relaxed);
        if let Some(slot) = self.0.available.ring.get(usize::from(index % SIZE)) {
            slot.store(0, Ordering::Relaxed);
        }
        // The device may look at any time: what it finds must stand before.
        fence(Ordering::SeqCst);
        self.0.available.index.store(index.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Waits until the device has used all that is available.
    pub(super) fn wait(&self) -> Option<u32> {
        let index = self.0.available.index.load(Ordering::Relaxed);
        let until = clock::passed().saturating_add(PATIENCE);
        while self.0.used.index.load(Ordering::Relaxed) != index {
            if clock::passed() > until {
                return None;
            }
            cpu::pause();
        }
        fence(Ordering::SeqCst);
        let [_, length] = self.0.used.ring.get(usize::from(index.wrapping_sub(1) % SIZE))?;
        Some(length.load(Ordering::Relaxed))
    }
}

/// The machine's address of a place: the same one.
fn address<T>(place: *const T) -> u64 {
    place.expose_provenance() as u64
}
