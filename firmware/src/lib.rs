//! The kernel's board without an operating system: bare `x86_64`.
//!
//! One core, no interrupts, polled devices. What the kernel needs of a machine
//! stands in small modules here; what decides is the same code as on the host.
//!
//! # Invariants
//! - Nothing that a guest does ends the image: it ends the guest's turn.
//! - Every way the image can end says why on the serial line, and has a code.
//! - `unsafe` stands only in `boot`, `cpu`, `port`, `memory`,
//!   `interrupt` and `drill`.
//!
//! # Not here
//! Deciding (boundary), tasks (kernel), effects (primitives). Starting a
//! machine (`synapse-machine`).
#![no_std]

extern crate alloc;

mod agents;
mod bench;
mod board;
#[expect(unsafe_code, reason = "the first instructions, before Rust's rules can hold")]
mod boot;
mod budget;
mod clock;
mod console;
#[expect(unsafe_code, reason = "instructions that Rust has no words for")]
mod cpu;
#[expect(unsafe_code, reason = "what is forbidden is done on purpose")]
mod drill;
mod entropy;
mod executor;
mod exit;
mod handover;
mod human;
#[expect(unsafe_code, reason = "the processor's own tables, and what it leaves on a stack")]
mod interrupt;
mod keyboard;
#[expect(unsafe_code, reason = "addresses of the machine become references here")]
mod memory;
mod packages;
#[expect(unsafe_code, reason = "in and out are instructions of the machine")]
mod port;
mod replay;
mod serial;
mod shell;
mod weight;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use agents::Agents;
use board::Board;
use budget::Budget;
use exit::{Exit, exit};
use handover::Handover;
use memory::{Loaded, heap, paging};
use packages::Bundle;
use shell::Shell;

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
    let [bundle, ..] = memory.settle(handover.free.clone(), handover.modules.clone());
    let free = heap::free();
    println!("synapse {}: {} KiB of memory", env!("CARGO_PKG_VERSION"), free >> 10);
    if let Some(way) = handover.word("drill") {
        drill::run(way);
    }
    if !clock::init() {
        println!("no clock chip: the time counts from 1970");
    }
    if entropy::bytes().is_none() {
        println!("no source of randomness: no keys can be made");
    }
    match shell(bundle, Budget::of(free)) {
        Ok(shell) => shell.run(),
        Err(why) => {
            println!("error: {why}");
            exit(Exit::Unable)
        }
    }
}

/// Puts the bundle's files in their places.
fn shell(bundle: &'static [u8], budget: Budget) -> Result<Shell, String> {
    let bundle = Bundle::read(bundle)?;
    let mut mounts: Vec<String> = Vec::new();
    for (path, _) in bundle.below("files/") {
        let root = path.split_once('/').ok_or_else(|| {
            format!("files/{path}: a file stands in a folder, such as files/data/{path}")
        })?;
        let root = format!("/{}", root.0);
        if !mounts.contains(&root) {
            mounts.push(root);
        }
    }
    if mounts.is_empty() {
        mounts.push("/data".to_string());
    }
    let roots: Vec<&str> = mounts.iter().map(|root| &**root).collect();
    let room = u64::try_from(budget.files).unwrap_or(u64::MAX);
    let board = Arc::new(Board::new(&roots, room).map_err(|why| why.to_string())?);
    for (path, bytes) in bundle.below("files/") {
        let path = format!("/{path}");
        board.place(&path, bytes).map_err(|fault| format!("{path}: {}", fault.name()))?;
    }
    Ok(Shell::new(Agents::new(bundle, Arc::clone(&board), budget), board))
}
