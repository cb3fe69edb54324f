//! Virtio devices on PCI: found by their numbers, spoken to in their registers
//!
//! Only the first bus is looked at, where QEMU puts what it is asked for.
//!
//! # Not here
//! Giving devices their addresses: the machine's own firmware has done it.

use alloc::boxed::Box;

use super::{Absent, Kind, Transport};
use crate::memory::device::Window;
use crate::port;

/// Whether the machine has PCI.
pub(super) fn is_there() -> bool {
    Function { slot: 0 }.read(0) != u32::MAX
}

/// The first device of this kind, if its registers are within reach and it is not
/// of the time before the standard.
pub(super) fn find(kind: Kind) -> Result<Box<dyn Transport>, Absent> {
    // As they are numbered by the standard, and by what came before it.
    let modern = 0x1040 + kind as u32;
    let old = match kind {
        Kind::Block => 0x1001,
        Kind::Random => 0x1005,
    };
    let mut functions = (0..32).map(|slot| Function { slot });
    let found = functions.find(|function| {
        let (maker, number) = (function.read(0) & 0xffff, function.read(0) >> 16);
        maker == 0x1af4 && (number == modern || number == old)
    });
    let device = found.ok_or(Absent::Missing)?.open().ok_or(Absent::Unusable)?;
    Ok(Box::new(device))
}

/// A device's first function.
#[derive(Clone, Copy, Debug)]
struct Function {
    slot: u32,
}

impl Function {
    fn select(self, offset: u32) {
        port::write_u32(ADDRESS, 1 << 31 | self.slot << 11 | offset & 0xfc);
    }

    fn read(self, offset: u32) -> u32 {
        self.select(offset);
        port::read_u32(DATA)
    }

    fn byte(self, offset: u32) -> u8 {
        self.read(offset).to_le_bytes().get(offset as usize % 4).copied().unwrap_or_default()
    }

    /// Lets it read and write memory, and finds its registers.
    fn open(self) -> Option<Pci> {
        let command = self.read(4);
        self.select(4);
        port::write_u32(DATA, command | MEMORY | MASTER);
        let (mut common, mut notify, mut about) = (None, None, None);
        let mut at = u32::from(self.byte(0x34));
        // As many as there is room for, in case they lead in a circle.
        for _ in 0..48 {
            if at < 0x40 {
                break;
            }
            if self.byte(at) == OWN {
                let window = || self.window(at);
                match self.byte(at + 3) {
                    1 => common = common.or_else(window),
                    2 => notify = notify.or_else(|| Some((window()?, self.read(at + 16)))),
                    4 => about = about.or_else(window),
                    _ => {}
                }
            }
            at = self.byte(at + 1).into();
        }
        let (common, (notify, step), about) = (common?, notify?, about?);
        common.write(QUEUE, 0_u16);
        let place = step as usize * usize::from(common.read::<u16>(QUEUE_NOTIFY));
        Some(Pci { common, notify, place, about })
    }

    /// The registers that a capability names.
    fn window(self, at: u32) -> Option<Window> {
        let bar = 0x10 + 4 * u32::from(self.byte(at + 4) % 6);
        let low = self.read(bar);
        let high = if low >> 1 & 3 == 2 { self.read(bar + 4) } else { 0 };
        let base = u64::from(low & !0xf) | u64::from(high) << 32;
        let start = base.checked_add(self.read(at + 8).into())?;
        Window::new(start..start.checked_add(self.read(at + 12).into())?)
    }
}

#[derive(Debug)]
struct Pci {
    common: Window,
    notify: Window,
    /// Where the first queue is told of.
    place: usize,
    about: Window,
}

impl Transport for Pci {
    fn offers(&self, word: u32) -> u32 {
        self.common.write(OFFERS_WORD, word);
        self.common.read(OFFERS)
    }

    fn take(&self, word: u32, features: u32) {
        self.common.write(TAKE_WORD, word);
        self.common.write(TAKE, features);
    }

    fn status(&self) -> u8 {
        self.common.read(STATUS)
    }

    fn set_status(&self, status: u8) {
        self.common.write(STATUS, status);
    }

    fn lay(&self, size: u16, at: [u64; 3]) -> bool {
        self.common.write(QUEUE, 0_u16);
        if self.common.read::<u16>(QUEUE_SIZE) < size {
            return false;
        }
        self.common.write(QUEUE_SIZE, size);
        for (address, register) in at.into_iter().zip(QUEUE_PARTS) {
            let (low, high) = super::halves(address);
            self.common.write(register, low);
            self.common.write(register + 4, high);
        }
        self.common.write(QUEUE_READY, 1_u16);
        true
    }

    fn notify(&self) {
        self.notify.write(self.place, 0_u16);
    }

    fn about(&self, offset: usize) -> u32 {
        self.about.read(offset)
    }
}

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
/// Answers at addresses of memory, and uses memory itself.
const MEMORY: u32 = 1 << 1;
const MASTER: u32 = 1 << 2;
/// The kind of a capability that its maker defines.
const OWN: u8 = 9;

const OFFERS_WORD: usize = 0x00;
const OFFERS: usize = 0x04;
const TAKE_WORD: usize = 0x08;
const TAKE: usize = 0x0c;
const STATUS: usize = 0x14;
const QUEUE: usize = 0x16;
const QUEUE_SIZE: usize = 0x18;
const QUEUE_READY: usize = 0x1c;
const QUEUE_NOTIFY: usize = 0x1e;
const QUEUE_PARTS: [usize; 3] = [0x20, 0x28, 0x30];
