//! Memory of the machine: addresses become references here, and nowhere else.
//!
//! Addresses are physical ones everywhere: the page tables map the first 4 GiB
//! to themselves, and what lies above is left alone.
//!
//! # Invariants
//! - What a loader left is read through [`Loaded`], which is used up before the
//!   heap takes the rest: no byte is both.
//!
//! # Not here
//! What a loader's tables say (`handover`). What registers of devices mean (`virtio`).

#[cfg(feature = "image")]
mod builtins;
pub(crate) mod device;
pub(crate) mod heap;
pub(crate) mod paging;
pub(crate) mod stack;

use core::ops::Range;
use core::slice;

/// What is addressed at all.
pub(crate) const TOP: u64 = 4 << 30;

/// From here on stand the registers of devices; memory that lies there is left alone.
pub(crate) const DEVICES: u64 = TOP - (512 << 20);

/// The machine's memory, while nobody wrote to it but the loader.
#[derive(Debug)]
pub(crate) struct Loaded(());

impl Loaded {
    /// The one value of a boot.
    ///
    /// # Safety
    /// Called once, before anything but the image itself is in use.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }

    /// These bytes; what is not addressed, or is the image's own, is empty.
    #[expect(clippy::unused_self, reason = "that it exists is what makes reading sound")]
    pub(crate) fn bytes(&self, range: Range<u64>) -> &[u8] {
        let image = paging::image();
        let apart = range.end <= image.start || image.end <= range.start;
        let sound = range.start != 0 && range.start <= range.end && range.end <= TOP && apart;
        let (Ok(start), Ok(length)) =
            (usize::try_from(range.start), usize::try_from(range.end.wrapping_sub(range.start)))
        else {
            return &[];
        };
        if !sound {
            return &[];
        }
        // SAFETY: the range is mapped, is not the null page's start and is not
        // the image, so that nobody writes to it while this value lives.
        unsafe { slice::from_raw_parts(core::ptr::with_exposed_provenance(start), length) }
    }

    /// Ends the loader's time: `free` becomes the heap, `kept` stays as it is.
    ///
    /// Nothing is kept of a range that lies inside of what becomes free.
    pub(crate) fn settle<const N: usize>(
        self,
        free: Range<u64>,
        kept: [Range<u64>; N],
    ) -> [&'static [u8]; N] {
        let parts = kept.map(|range| {
            let apart = range.end <= free.start || free.end <= range.start;
            let bytes = if apart { self.bytes(range) } else { &[] };
            // SAFETY: from here on `free` alone is written to, and it is apart.
            unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
        });
        heap::claim(free);
        parts
    }
}
