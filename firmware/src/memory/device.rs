//! Registers of devices that stand among the addresses of memory
//!
//! # Invariants
//! - Only the last half GiB below 4 GiB is looked at, and no memory of it is in
//!   use for anything else.
//!
//! # Not here
//! What the registers mean (`virtio`).

use core::ops::Range;

use super::{DEVICES, TOP};

/// A device's registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    base: usize,
    length: usize,
}

impl Window {
    /// The registers in this range, unless it lies elsewhere.
    pub(crate) fn new(range: Range<u64>) -> Option<Self> {
        let inside = DEVICES <= range.start && range.start <= range.end && range.end <= TOP;
        let base = usize::try_from(range.start).ok().filter(|_| inside)?;
        Some(Self { base, length: usize::try_from(range.end - range.start).ok()? })
    }

    /// Reads a register.
    pub(crate) fn read<T: Register>(&self, offset: usize) -> T {
        let Some(place) = self.place::<T>(offset) else { return T::default() };
        // SAFETY: the place is mapped, aligned, a device's, and nothing else
        // refers to it; any bytes are a number.
        unsafe { place.read_volatile() }
    }

    /// Writes a register.
    pub(crate) fn write<T: Register>(&self, offset: usize, value: T) {
        if let Some(place) = self.place::<T>(offset) {
            // SAFETY: as above.
            unsafe { place.write_volatile(value) };
        }
    }

    /// Where a register is, if it is one of these.
    fn place<T>(&self, offset: usize) -> Option<*mut T> {
        let end = offset.checked_add(size_of::<T>())?;
        let at = self.base.checked_add(offset)?;
        let sound = end <= self.length && at.is_multiple_of(size_of::<T>());
        sound.then(|| core::ptr::with_exposed_provenance_mut(at))
    }
}

/// The sizes that registers have.
pub(crate) trait Register: Copy + Default {}

impl Register for u8 {}
impl Register for u16 {}
impl Register for u32 {}
