//! Page tables: what may be written is never executed, nor the reverse.
//!
//! Boot maps the first 4 GiB to themselves in pages of 2 MiB, so that 64-bit
//! mode can be entered at all. [`protect`] then takes rights away, in place.
//!
//! # Invariants
//! - Only the image's code can be executed, and it cannot be written.
//! - The page below the stack and the one at address 0 are not mapped.
//!
//! # Not here
//! What happens at a page that is not there (`interrupt`).

use core::arch::asm;
use core::ops::Range;

const PAGE: u64 = 4096;
const LARGE: u64 = 2 << 20;
const ENTRIES: usize = 512;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const IS_LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;

/// Tables that cut the image and what lies below it into small pages.
const FINE: usize = 4;

/// All tables, in the order in which boot lays them: the top, the one below it,
/// four of 1 GiB in large pages, and then the fine ones, which boot leaves empty.
#[repr(C, align(4096))]
pub(crate) struct Tables([u64; (6 + FINE) * ENTRIES]);

pub(crate) static mut TABLES: Tables = Tables([0; (6 + FINE) * ENTRIES]);

unsafe extern "C" {
    static image_start: u8;
    static code_start: u8;
    static code_end: u8;
    static stack_guard: u8;
    static image_end: u8;
}

/// Where the image is.
pub(crate) fn image() -> Range<u64> {
    address(&raw const image_start)..address(&raw const image_end)
}

/// Where its code is.
pub(crate) fn code() -> Range<u64> {
    address(&raw const code_start)..address(&raw const code_end)
}

/// The page below the stack.
pub(crate) fn guard() -> Range<u64> {
    let start = address(&raw const stack_guard);
    start..start + PAGE
}

fn address(symbol: *const u8) -> u64 {
    // An address has 64 bits on this machine.
    symbol.expose_provenance() as u64
}

/// Takes every right away that nobody needs.
pub(crate) fn protect() {
    let tables = (&raw mut TABLES).cast::<u64>();
    let set = |index: usize, entry: u64| {
        debug_assert!(index < (6 + FINE) * ENTRIES, "an entry outside of the tables");
        // SAFETY: the index is one of the tables'; nobody else refers to them.
        unsafe { tables.wrapping_add(index).write_volatile(entry) };
    };
    let large = 2 * ENTRIES;
    let fine = 6 * ENTRIES;
    let code = address(&raw const code_start)..address(&raw const code_end);
    let constants = image().start..code.start;
    for (index, page) in (0..FINE * ENTRIES).zip((0..).step_by(4096)) {
        let rights = match page {
            0 => 0,
            page if guard().contains(&page) => 0,
            page if code.contains(&page) => PRESENT,
            page if constants.contains(&page) => PRESENT | NO_EXECUTE,
            _ => PRESENT | WRITABLE | NO_EXECUTE,
        };
        set(fine + index, if rights == 0 { 0 } else { page | rights });
    }
    let first_fine = address(tables.cast()) + 6 * PAGE;
    for (index, page) in (0..4 * ENTRIES).zip((0..).step_by(2 << 20)) {
        let entry = if index < FINE {
            (first_fine + page / LARGE * PAGE) | PRESENT | WRITABLE
        } else {
            page | PRESENT | WRITABLE | IS_LARGE | NO_EXECUTE
        };
        set(large + index, entry);
    }
    // SAFETY: the tables map all that is in use; loading them again makes the
    // machine forget the old rights.
    unsafe {
        asm!("mov {tables}, cr3", "mov cr3, {tables}", tables = out(reg) _, options(nostack));
    };
}
