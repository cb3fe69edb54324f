//! The heap: the largest piece of memory that nothing else is in.
//!
//! Only what others can make large asks fallibly, so a large request is denied
//! where it would leave too little for the small ones, which do not ask.
//!
//! # Not here
//! Who may take how much of it (`budget`): what is bounded there never meets
//! the end of the heap, and what is not is a bug that ends the image.

use core::alloc::{GlobalAlloc, Layout};
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use talc::TalcLock;
use talc::source::Manual;

/// Bytes of a request that is large: more than a sentence with its reply.
const LARGE: usize = 5 << 19;
/// Bytes that large requests leave.
const RESERVE: usize = 2 << 20;

#[cfg_attr(feature = "image", global_allocator)]
static HEAP: Heap = Heap(TalcLock::new(Manual));

/// Bytes of the last request that was denied.
static DENIED: AtomicUsize = AtomicUsize::new(0);

struct Heap(TalcLock<spin::Mutex<()>, Manual>);

/// Whether so many bytes more may be given away.
fn has_room(bytes: usize) -> bool {
    bytes < LARGE || free() >= bytes.saturating_add(RESERVE)
}

/// Gives nothing, and keeps in mind how much that was.
fn deny(bytes: usize) -> *mut u8 {
    DENIED.store(bytes, Ordering::Relaxed);
    core::ptr::null_mut()
}

/// Bytes of the last request that was denied, if any was.
pub(crate) fn denied() -> usize {
    DENIED.load(Ordering::Relaxed)
}

// SAFETY: what is not denied is what the allocator below gives.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !has_room(layout.size()) {
            return deny(layout.size());
        }
        // SAFETY: the caller's promise is the same.
        let block = unsafe { self.0.alloc(layout) };
        if block.is_null() { deny(layout.size()) } else { block }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // It may have to be copied: then both are there for a while.
        if size > layout.size() && !has_room(size) {
            return deny(size);
        }
        // SAFETY: the caller's promise is the same.
        let block = unsafe { self.0.realloc(block, layout, size) };
        if block.is_null() { deny(size) } else { block }
    }
}

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
    unsafe { HEAP.0.lock().claim(base, length) };
}

/// Bytes that are free, in pieces of any size.
pub(crate) fn free() -> usize {
    HEAP.0.lock().counters().available_bytes
}
