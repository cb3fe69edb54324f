//! The kernel's board without an operating system: bare `x86_64`.
//!
//! One core, no interrupts, polled devices. What the kernel needs of a machine
//! stands in small modules here; what decides is the same code as on the host.
//!
//! # Invariants
//! - Nothing that a guest does ends the image: it ends the guest's turn.
//! - Every way the image can end says why on the serial line, and has a code.
//! - `unsafe` stands only in `boot`, `port`, `memory`, `interrupt` and `drill`.
//!
//! # Not here
//! Deciding (boundary), tasks (kernel), effects (primitives). Starting a
//! machine (`synapse-machine`).
#![no_std]

extern crate alloc;

#[expect(unsafe_code, reason = "the first instructions, before Rust's rules can hold")]
mod boot;
#[expect(unsafe_code, reason = "what is forbidden is done on purpose")]
mod drill;
mod exit;
mod handover;
#[expect(unsafe_code, reason = "the processor's own tables, and what it leaves on a stack")]
mod interrupt;
#[expect(unsafe_code, reason = "addresses of the machine become references here")]
mod memory;
#[expect(unsafe_code, reason = "in and out are instructions of the machine")]
mod port;
mod serial;

use exit::{Exit, exit};
use handover::Handover;
use memory::{Loaded, heap, paging};

/// What runs once the machine is in 64-bit mode.
fn start(memory: Loaded, magic: u32, information: u32) -> ! {
    serial::init();
    interrupt::init();
    let Some(handover) = Handover::read(&memory, magic, information) else {
        println!("the loader said nothing of the machine; boot by PVH or Multiboot2");
        exit(Exit::Unable)
    };
    // Only now: a loader may leave what it says in the first page.
    paging::protect();
    let modules = memory.settle(handover.free.clone(), handover.modules.clone());
    println!("synapse: {} KiB of memory free", heap::free() >> 10);
    println!("synapse: {} bytes of bundle", modules.first().map_or(0, |module| module.len()));
    if let Some(way) = handover.word("drill") {
        drill::run(way);
    }
    exit(Exit::Success)
}
