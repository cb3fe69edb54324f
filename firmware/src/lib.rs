//! The kernel's board without an operating system: bare `x86_64`.
//!
//! One core, no interrupts, polled devices. What the kernel needs of a machine
//! stands in small modules here; what decides is the same code as on the host.
//!
//! # Invariants
//! - Nothing that a guest does ends the image: it ends the guest's turn.
//! - Every way the image can end says why on the serial line, and has a code.
//! - `unsafe` stands only in `boot`, `cpu`, `port`, `memory` and `interrupt`.
//!
//! # Not here
//! Deciding (boundary), tasks (kernel), effects (primitives). Starting a
//! machine (`synapse-machine`).
#![no_std]

#[expect(unsafe_code, reason = "the first instructions, before Rust's rules can hold")]
mod boot;
mod exit;
#[expect(unsafe_code, reason = "addresses of the machine become references here")]
mod memory;
#[expect(unsafe_code, reason = "in and out are instructions of the machine")]
mod port;
mod serial;

/// What runs once the machine is in 64-bit mode.
fn start() -> ! {
    serial::init();
    println!("synapse: first light");
    exit::exit(exit::Exit::Success)
}
