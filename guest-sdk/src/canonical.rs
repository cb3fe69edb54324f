//! The canonical ABI of `wit/synapse.wit`, written by hand
//!
//! Two functions over `list<u8>` and `result<list<u8>, u32>` need one struct
//! and one allocator entry; a binding generator would bring a second import's
//! worth of machinery for that. Everything `unsafe` in this crate is here.
//!
//! A `result<list<u8>, u32>` is passed through memory: a byte that tells `ok`
//! (0) from `err` (1), then at offset 4 either pointer and length or the
//! number. A list given to the guest was allocated by `cabi_realloc` and is
//! the guest's from then on; a list given by the guest is freed in
//! `cabi_post_turn`, when the host has read it.
//!
//! # Not here
//! Making the component (`synapse build`). What the bytes mean (`synapse-abi`).
#![cfg_attr(
    any(target_arch = "wasm32", test),
    expect(unsafe_code, reason = "the canonical ABI passes raw memory")
)]
#![cfg(any(target_arch = "wasm32", test))]

use alloc::alloc::{alloc, dealloc, handle_alloc_error, realloc};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr;

/// A `result<list<u8>, u32>` in memory.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Outcome {
    /// 0 is `ok`, 1 is `err`.
    tag: u8,
    /// Address of the list, or the number.
    first: usize,
    /// Length of the list.
    second: usize,
}

impl Outcome {
    /// A place for the host to write to.
    const fn empty() -> Self {
        Self { tag: 1, first: 0, second: 0 }
    }

    /// Gives the bytes away; [`Outcome::into_result`] takes them back.
    fn new(result: Result<Vec<u8>, u32>) -> Self {
        match result {
            Ok(bytes) => {
                // Boxed, so that the capacity is the length, which is all that travels.
                let bytes = Box::into_raw(bytes.into_boxed_slice());
                Self { tag: 0, first: bytes.cast::<u8>().expose_provenance(), second: bytes.len() }
            }
            Err(number) => Self { tag: 1, first: number as usize, second: 0 },
        }
    }

    /// Takes ownership of what the memory names.
    ///
    /// # Safety
    /// With tag 0, `first` and `second` name a list as [`list`] wants it.
    unsafe fn into_result(self) -> Result<Vec<u8>, u32> {
        if self.tag == 0 {
            // SAFETY: the caller's promise is the same.
            Ok(unsafe { list(ptr::with_exposed_provenance_mut(self.first), self.second) })
        } else {
            // A u32 was stored, so nothing is cut off.
            Err(u32::try_from(self.first).unwrap_or(u32::MAX))
        }
    }
}

/// Takes ownership of a list of bytes.
///
/// # Safety
/// Unless `len` is 0, `data` was allocated by the global allocator with size
/// `len` and alignment 1, holds `len` initialised bytes and has no other owner.
unsafe fn list(data: *mut u8, len: usize) -> Vec<u8> {
    if len == 0 {
        // The address of an empty list means nothing, not even "allocated".
        return Vec::new();
    }
    // SAFETY: the caller's promise is what `from_raw` asks for.
    unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(data, len)) }.into_vec()
}

/// Allocates, grows, shrinks or frees for the host.
///
/// A size of zero owns nothing: the answer is a dangling address of the asked
/// alignment. Failure ends the guest; the ABI has no way to report it.
///
/// # Safety
/// Unless `old_len` is 0, `old` was given out by this function for `old_len`
/// bytes of the same alignment and is not used again.
unsafe fn reallocate(old: *mut u8, old_len: usize, align: usize, new_len: usize) -> *mut u8 {
    let (Ok(old_layout), Ok(new_layout)) =
        (Layout::from_size_align(old_len, align), Layout::from_size_align(new_len, align))
    else {
        trap()
    };
    let new = match (old_len, new_len) {
        (0, 0) => return ptr::without_provenance_mut(align),
        (_, 0) => {
            // SAFETY: `old` owns `old_layout` by the caller's promise; its size is not zero.
            unsafe { dealloc(old, old_layout) };
            return ptr::without_provenance_mut(align);
        }
        // SAFETY: the size is not zero.
        (0, _) => unsafe { alloc(new_layout) },
        // SAFETY: `old` owns `old_layout` by the caller's promise; the new size is
        // not zero and fits a layout.
        (_, _) => unsafe { realloc(old, old_layout, new_len) },
    };
    if new.is_null() {
        handle_alloc_error(new_layout)
    }
    new
}

#[cfg(target_arch = "wasm32")]
fn trap() -> ! {
    core::arch::wasm32::unreachable()
}

#[cfg(not(target_arch = "wasm32"))]
fn trap() -> ! {
    std::process::abort()
}

#[cfg(target_arch = "wasm32")]
pub(crate) use door::call;

#[cfg(target_arch = "wasm32")]
mod door {
    use super::{Outcome, list, reallocate, trap};
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    pub(crate) fn call(sentence: &[u8]) -> Result<Vec<u8>, u32> {
        let mut outcome = Outcome::empty();
        // SAFETY: the sentence can be read for its length, the outcome written;
        // the host keeps neither address after it returns.
        unsafe { synapse_call(sentence.as_ptr(), sentence.len(), &raw mut outcome) };
        // SAFETY: the host allocated the list of an `ok` by `cabi_realloc` with
        // alignment 1, filled it, and has given it away by returning.
        unsafe { outcome.into_result() }
    }

    // SAFETY: name and signature are those of the lowered import in `wit/synapse.wit`.
    #[link(wasm_import_module = "$root")]
    unsafe extern "C" {
        #[link_name = "synapse-call"]
        fn synapse_call(sentence: *const u8, len: usize, outcome: *mut Outcome);
    }

    /// Keeps the import in a guest that never calls: one import, not none.
    #[used]
    static IMPORT: unsafe extern "C" fn(*const u8, usize, *mut Outcome) = synapse_call;

    // SAFETY: `agent!` defines this name with this signature; a guest without it
    // does not link into a component.
    unsafe extern "Rust" {
        safe fn synapse_guest_turn(input: &[u8]) -> Result<Vec<u8>, u32>;
    }

    // SAFETY: the one export of this name in a guest, with the lifted signature.
    #[unsafe(export_name = "turn")]
    unsafe extern "C" fn turn(input: *mut u8, len: usize) -> *mut Outcome {
        // SAFETY: the host allocated the input by `cabi_realloc` with alignment 1,
        // filled it, and gives it away by calling.
        let input = unsafe { list(input, len) };
        Box::into_raw(Box::new(Outcome::new(synapse_guest_turn(&input))))
    }

    // SAFETY: the one export of this name in a guest, with the signature of a
    // post-return of `turn`.
    #[unsafe(export_name = "cabi_post_turn")]
    unsafe extern "C" fn post_turn(outcome: *mut Outcome) {
        // SAFETY: the host passes what `turn` returned, once.
        let outcome = unsafe { Box::from_raw(outcome) };
        // SAFETY: `Outcome::new` made it from a list of this allocator.
        drop(unsafe { outcome.into_result() });
    }

    // SAFETY: the one export of this name in a guest, with the ABI's signature.
    #[unsafe(export_name = "cabi_realloc")]
    unsafe extern "C" fn cabi_realloc(
        old: *mut u8,
        old_len: usize,
        align: usize,
        new_len: usize,
    ) -> *mut u8 {
        // SAFETY: the host keeps to the ABI, which asks the same.
        unsafe { reallocate(old, old_len, align, new_len) }
    }

    #[global_allocator]
    static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

    /// A panic is a trap: the turn is over and its memory dies with it.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        trap()
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, list, reallocate};
    use alloc::vec;
    use alloc::vec::Vec;
    use core::ptr;

    #[test]
    fn outcome_gives_back_what_it_took() {
        let mut spacious = Vec::with_capacity(100);
        spacious.extend_from_slice(b"bytes");
        for result in [Ok(spacious), Ok(Vec::new()), Err(0), Err(u32::MAX)] {
            // SAFETY: `new` made it.
            let back = unsafe { Outcome::new(result.clone()).into_result() };
            assert_eq!(back, result);
        }
    }

    #[test]
    fn untouched_outcome_is_an_error() {
        // SAFETY: there is no list in it.
        assert_eq!(unsafe { Outcome::empty().into_result() }, Err(0));
    }

    #[test]
    fn block_grows_shrinks_and_becomes_a_list() {
        // SAFETY: nothing is old.
        let block = unsafe { reallocate(ptr::null_mut(), 0, 1, 3) };
        // SAFETY: the block has three bytes.
        unsafe { block.copy_from(b"abc".as_ptr(), 3) };
        // SAFETY: the block is ours and three bytes long.
        let block = unsafe { reallocate(block, 3, 1, 4096) };
        // SAFETY: the block is ours and 4096 bytes long.
        let block = unsafe { reallocate(block, 4096, 1, 2) };
        // SAFETY: two bytes of alignment 1, both written above.
        assert_eq!(unsafe { list(block, 2) }, vec![b'a', b'b']);
    }

    #[test]
    fn size_zero_owns_nothing() {
        // SAFETY: nothing is old.
        let nothing = unsafe { reallocate(ptr::null_mut(), 0, 8, 0) };
        assert_eq!(nothing.addr(), 8);
        // SAFETY: an old size of zero owns nothing.
        let block = unsafe { reallocate(nothing, 0, 8, 16) };
        assert_eq!(block.addr() % 8, 0);
        // SAFETY: the block is ours and 16 bytes long.
        let freed = unsafe { reallocate(block, 16, 8, 0) };
        assert_eq!(freed.addr(), 8);
        // SAFETY: an empty list names no memory.
        assert_eq!(unsafe { list(freed, 0) }, Vec::<u8>::new());
    }
}
