//! Virtio devices: what they have in common, wherever they stand.
//!
//! A device is found on PCI or, where there is none, among the places that a
//! small machine has for devices. It has one queue here and one request at a
//! time, which is waited for.
//!
//! # Invariants
//! - Nothing that a device answers is believed: lengths and numbers are those
//!   that were asked for, and a device that does not answer in time has failed.
//! - What a device reads or writes is memory that only atomics touch.
//!
//! # Not here
//! Interrupts: there are none.

pub(crate) mod block;
mod mmio;
mod pci;
mod queue;
pub(crate) mod random;

use alloc::boxed::Box;
use core::fmt::Debug;

use queue::Queue;

/// Kinds of devices, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Block = 2,
    Random = 4,
}

/// Why a device is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// There is none.
    Missing,
    /// It is there, and cannot be spoken to.
    Unusable,
}

/// How a device is spoken to.
trait Transport: Debug + Send + Sync {
    /// 32 of the features that it offers.
    fn offers(&self, word: u32) -> u32;
    /// Takes 32 of its features.
    fn take(&self, word: u32, features: u32);
    fn status(&self) -> u8;
    fn set_status(&self, status: u8);
    /// Shows its first queue where it is: descriptors, what is available, what is
    /// used. `false` if it cannot be of that size.
    fn lay(&self, size: u16, at: [u64; 3]) -> bool;
    /// Says that something is available.
    fn notify(&self);
    /// 32 bits of what it says of itself.
    fn about(&self, offset: usize) -> u32;
}

/// A device that is ready.
#[derive(Debug)]
struct Device {
    transport: Box<dyn Transport>,
    queue: Queue,
    /// The lower features that it has and that were taken.
    features: u32,
}

impl Device {
    /// The first device of this kind, with those of `features` that it has.
    fn find(kind: Kind, features: u32) -> Result<Self, Absent> {
        let transport = if pci::is_there() { pci::find(kind) } else { mmio::find(kind) }?;
        transport.set_status(0);
        transport.set_status(KNOWN);
        transport.set_status(KNOWN | DRIVEN);
        let features = transport.offers(0) & features;
        transport.take(0, features);
        // That it keeps to the standard, and not to what came before it.
        transport.take(1, transport.offers(1) & MODERN);
        transport.set_status(KNOWN | DRIVEN | AGREED);
        if transport.status() & AGREED == 0 || transport.offers(1) & MODERN == 0 {
            return Err(Absent::Unusable);
        }
        let queue = Queue::new();
        if !transport.lay(queue::SIZE, queue.addresses()) {
            return Err(Absent::Unusable);
        }
        transport.set_status(KNOWN | DRIVEN | AGREED | READY);
        Ok(Self { transport, queue, features })
    }

    /// Asks for one thing and waits; how many bytes the device says it wrote.
    fn ask(&self, parts: &[queue::Part]) -> Option<u32> {
        self.queue.put(parts);
        self.transport.notify();
        self.queue.wait()
    }
}

/// The lower and the upper half of an address.
fn halves(address: u64) -> (u32, u32) {
    let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
    (half(address), half(address >> 32))
}

const KNOWN: u8 = 1;
const DRIVEN: u8 = 2;
const READY: u8 = 4;
const AGREED: u8 = 8;
/// Feature 32.
const MODERN: u32 = 1;
