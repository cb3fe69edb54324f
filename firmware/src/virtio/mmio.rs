//! Virtio devices of a machine without PCI: each at one of a few known places
//!
//! # Not here
//! Places that a machine would tell of (ACPI): QEMU's microvm has these.

use alloc::boxed::Box;

use super::{Absent, Kind, Transport};
use crate::memory::device::Window;

const FIRST: u64 = 0xfeb0_0000;
const STEP: u64 = 512;
const PLACES: u64 = 24;

/// The first device of this kind, if it is not of the time before the standard.
pub(super) fn find(kind: Kind) -> Result<Box<dyn Transport>, Absent> {
    let places = (0..PLACES).map(|place| FIRST + place * STEP);
    let mut windows = places.filter_map(|place| Window::new(place..place + STEP));
    let found = windows.find(|window| {
        window.read::<u32>(MAGIC) == u32::from_le_bytes(*b"virt")
            && window.read::<u32>(DEVICE) == kind as u32
    });
    let window = found.ok_or(Absent::Missing)?;
    let speaks = window.read::<u32>(VERSION) == 2;
    if speaks { Ok(Box::new(Mmio(window))) } else { Err(Absent::Unusable) }
}

#[derive(Debug)]
struct Mmio(Window);

impl Transport for Mmio {
    fn offers(&self, word: u32) -> u32 {
        self.0.write(OFFERS_WORD, word);
        self.0.read(OFFERS)
    }

    fn take(&self, word: u32, features: u32) {
        self.0.write(TAKE_WORD, word);
        self.0.write(TAKE, features);
    }

    fn status(&self) -> u8 {
        self.0.read::<u32>(STATUS).to_le_bytes()[0]
    }

    fn set_status(&self, status: u8) {
        self.0.write(STATUS, u32::from(status));
    }

    fn lay(&self, size: u16, at: [u64; 3]) -> bool {
        self.0.write(QUEUE, 0_u32);
        if self.0.read::<u32>(QUEUE_MOST) < size.into() {
            return false;
        }
        self.0.write(QUEUE_SIZE, u32::from(size));
        for (address, register) in at.into_iter().zip(QUEUE_PARTS) {
            let (low, high) = super::halves(address);
            self.0.write(register, low);
            self.0.write(register + 4, high);
        }
        self.0.write(QUEUE_READY, 1_u32);
        true
    }

    fn notify(&self) {
        self.0.write(NOTIFY, 0_u32);
    }

    fn about(&self, offset: usize) -> u32 {
        self.0.read(ABOUT + offset)
    }
}

const MAGIC: usize = 0x00;
const VERSION: usize = 0x04;
const DEVICE: usize = 0x08;
const OFFERS: usize = 0x10;
const OFFERS_WORD: usize = 0x14;
const TAKE: usize = 0x20;
const TAKE_WORD: usize = 0x24;
const QUEUE: usize = 0x30;
const QUEUE_MOST: usize = 0x34;
const QUEUE_SIZE: usize = 0x38;
const QUEUE_READY: usize = 0x44;
const NOTIFY: usize = 0x50;
const STATUS: usize = 0x70;
const QUEUE_PARTS: [usize; 3] = [0x80, 0x90, 0xa0];
const ABOUT: usize = 0x100;
