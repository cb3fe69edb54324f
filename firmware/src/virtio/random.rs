//! A virtio device that gives random bytes
//!
//! # Not here
//! The processor's own (`cpu`), and what becomes of both (`entropy`).

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use spin::Mutex;

use super::queue::Part;
use super::{Device, Kind};

/// A source of randomness.
#[derive(Debug)]
pub(crate) struct Random(Mutex<(Device, &'static [AtomicU64; 4])>);

impl Random {
    /// The machine's, if it has one.
    pub(crate) fn find() -> Option<Self> {
        let device = Device::find(Kind::Random, 0).ok()?;
        Some(Self(Mutex::new((device, Box::leak(Box::default())))))
    }

    /// 32 random bytes; none if the device has failed.
    pub(crate) fn bytes(&self) -> Option<[u8; 32]> {
        let source = self.0.lock();
        let (device, memory) = &*source;
        let mut bytes = [0; 32];
        let mut have = 0;
        // It may give fewer than it is asked for.
        while have < bytes.len() {
            let given = device.ask(&[Part::new(&memory[..], 32, true)])?;
            let given = usize::try_from(given).ok().filter(|given| (1..=32).contains(given))?;
            let words = memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
            for (to, from) in bytes.iter_mut().skip(have).zip(words.take(given)) {
                *to = from;
            }
            have += given;
        }
        Some(bytes)
    }
}
