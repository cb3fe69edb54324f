//! The heap: the largest piece of memory that nothing else is in
//!
//! # Not here
//! Who may take how much of it (`budget`): what is bounded there never meets
//! the end of the heap, and what is not is a bug that ends the image.

use core::ops::Range;

use talc::TalcLock;
use talc::source::Manual;

#[cfg_attr(feature = "image", global_allocator)]
static HEAP: TalcLock<spin::Mutex<()>, Manual> = TalcLock::new(Manual);

/// Gives a range to the heap.
pub(super) fn claim(range: Range<u64>) {
    let (Ok(start), Ok(length)) =
        (usize::try_from(range.start), usize::try_from(range.end.saturating_sub(range.start)))
    else {
        return;
    };
    let base = core::ptr::with_exposed_provenance_mut(start);
    // SAFETY: `Loaded::settle` was used up for this range, which is mapped
    // memory and holds nothing else.
    unsafe { HEAP.lock().claim(base, length) };
}

/// Bytes that are free, in pieces of any size.
pub(crate) fn free() -> usize {
    HEAP.lock().counters().available_bytes
}
