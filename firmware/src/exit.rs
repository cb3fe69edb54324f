//! The ways in which the image ends, each with a code of its own
//!
//! QEMU's `isa-debug-exit` turns the code into its exit status `code * 2 + 1`,
//! so that whoever started the machine can tell the ends apart.
//!
//! # Not here
//! Ends of a guest: they are the turn's, and the image goes on.

use core::panic::PanicInfo;

use crate::memory::heap;
use crate::memory::stack::Calls;
use crate::{port, println};

/// How the image ends. The status of QEMU stands beside each.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// As asked: 33.
    Success = 0x10,
    /// It could not begin its work: 35.
    Unable = 0x11,
    /// A bug of the image: 37.
    Panic = 0x12,
    /// The processor found a fault, the end of the stack among them: 39.
    Fault = 0x13,
}

/// Ends the image.
pub(crate) fn exit(how: Exit) -> ! {
    port::write_u32(DEBUG_EXIT, how as u32);
    loop {
        // Without that device the machine stands still, at no cost.
        port::halt();
    }
}

const DEBUG_EXIT: u16 = 0xf4;

#[cfg_attr(feature = "image", panic_handler)]
#[cfg_attr(not(feature = "image"), expect(dead_code, reason = "a check has the host's own"))]
// Its message and its place are left alone: no image has them then, nor what prints the
// values in them. They would be a twelfth of it.
fn panic(_: &PanicInfo<'_>) -> ! {
    println!("panic: called from{}", Calls::here());
    if let bytes @ 1.. = heap::denied() {
        println!("the last request for memory that was denied was for {bytes} bytes");
    }
    exit(Exit::Panic)
}
