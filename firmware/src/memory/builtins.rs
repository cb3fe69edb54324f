//! The functions that compiled code calls without being asked
//!
//! The compiler turns copies, fills and comparisons into calls of these. They
//! are written in instructions, because written in Rust they would be turned
//! into calls of themselves.
//!
//! # Not here
//! Unwinding: a panic ends the image, and the two symbols are never called.

use core::arch::asm;
use core::slice;

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    // SAFETY: the caller owns both ranges, and they do not overlap.
    unsafe {
        asm!(
            "rep movsq",
            "mov ecx, {rest:e}",
            "rep movsb",
            rest = in(reg) length & 7,
            inout("rcx") length >> 3 => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= length {
        // SAFETY: the caller's promise; going up, nothing is read after it was
        // overwritten.
        return unsafe { memcpy(to, from, length) };
    }
    // SAFETY: the caller owns both ranges; going down from their ends, nothing
    // is read after it was overwritten. The direction flag is put back.
    unsafe {
        asm!(
            "std",
            "lea rdi, [{to} + rcx - 1]",
            "lea rsi, [{from} + rcx - 1]",
            "mov {rest:e}, ecx",
            "and {rest:e}, 7",
            "shr rcx, 3",
            "xchg rcx, {rest}",
            "rep movsb",
            "sub rdi, 7",
            "sub rsi, 7",
            "mov rcx, {rest}",
            "rep movsq",
            "cld",
            to = in(reg) to,
            from = in(reg) from,
            rest = out(reg) _,
            inout("rcx") length => _,
            out("rdi") _,
            out("rsi") _,
            options(nostack)
        );
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, length: usize) -> *mut u8 {
    let pattern = u64::from(byte.to_le_bytes()[0]).wrapping_mul(0x0101_0101_0101_0101);
    // SAFETY: the caller owns the range.
    unsafe {
        asm!(
            "rep stosq",
            "mov ecx, {rest:e}",
            "rep stosb",
            rest = in(reg) length & 7,
            inout("rcx") length >> 3 => _,
            inout("rdi") to => _,
            in("rax") pattern,
            options(nostack, preserves_flags)
        );
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    // SAFETY: the caller owns the range.
    let left = unsafe { slice::from_raw_parts(left, length) };
    // SAFETY: as above.
    let right = unsafe { slice::from_raw_parts(right, length) };
    for (from_left, from_right) in left.iter().zip(right) {
        if from_left != from_right {
            return i32::from(*from_left) - i32::from(*from_right);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, length: usize) -> i32 {
    // SAFETY: the caller's promise is the same.
    unsafe { memcmp(left, right, length) }
}

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    crate::exit::exit(crate::exit::Exit::Panic)
}
