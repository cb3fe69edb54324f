//! Input and output ports
//!
//! # Not here
//! What stands behind a port: each device has a module of its own.

use core::arch::asm;

/// Reads a byte.
pub(crate) fn read(port: u16) -> u8 {
    let byte: u8;
    // SAFETY: reading a port changes no memory of ours; devices that would
    // write memory on their own are set up by nobody but `virtio`.
    unsafe { asm!("in al, dx", in("dx") port, out("al") byte, options(nomem, nostack)) };
    byte
}

/// Writes a byte.
pub(crate) fn write(port: u16, byte: u8) {
    // SAFETY: as for `read`.
    unsafe { asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack)) };
}

/// Reads a byte after the other.
pub(crate) fn read_all(port: u16, into: &mut [u8]) {
    // SAFETY: the instruction writes as many bytes as the range has.
    unsafe {
        asm!(
            "rep insb",
            in("dx") port,
            inout("rcx") into.len() => _,
            inout("rdi") into.as_mut_ptr() => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Reads a double word.
pub(crate) fn read_u32(port: u16) -> u32 {
    let word: u32;
    // SAFETY: as for `read`.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") word, options(nomem, nostack)) };
    word
}

/// Writes a word.
pub(crate) fn write_u16(port: u16, word: u16) {
    // SAFETY: as for `read`.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") word, options(nomem, nostack)) };
}

/// Writes a double word.
pub(crate) fn write_u32(port: u16, word: u32) {
    // SAFETY: as for `read`.
    unsafe { asm!("out dx, eax", in("dx") port, in("eax") word, options(nomem, nostack)) };
}

/// Stops until an interrupt, of which there is none.
pub(crate) fn halt() {
    // SAFETY: it touches nothing; interrupts are off, so it never continues.
    unsafe { asm!("cli; hlt", options(nomem, nostack)) };
}
