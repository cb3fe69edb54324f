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
mod desk;
#[expect(unsafe_code, reason = "what is forbidden is done on purpose")]
mod drill;
mod entropy;
mod executor;
mod exit;
mod fw_cfg;
mod handover;
mod install;
#[expect(unsafe_code, reason = "the processor's own tables, and what it leaves on a stack")]
mod interrupt;
mod keyboard;
#[expect(unsafe_code, reason = "addresses of the machine become references here")]
mod memory;
mod packages;
mod past;
#[expect(unsafe_code, reason = "in and out are instructions of the machine")]
mod port;
#[cfg(feature = "replay")]
mod replay;
mod serial;
mod shell;
mod virtio;
mod weight;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use agents::Agents;
use budget::Budget;
use drill::Cut;
use exit::{Exit, exit};
use handover::Handover;
use memory::{Loaded, heap, paging};
use packages::Bundle;
use shell::Shell;
use synapse_store::device::Device;
use synapse_store::{Database, Rooms, Shelf, Store, Volatile};
use virtio::block::{Disk, NoDisk};

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
    let cut = handover.word("drill").map(|way| Cut::named(way).unwrap_or_else(|| drill::run(way)));
    if !clock::init() {
        println!("no clock chip: the time counts from 1970");
    }
    if entropy::bytes().is_none() {
        println!("no source of randomness: no keys can be made");
    }
    let shell = carried(bundle).and_then(|bundle| shell(bundle, cut.unwrap_or_default()));
    match shell {
        Ok(shell) => shell.run(),
        Err(why) => {
            println!("error: {why}");
            exit(Exit::Unable)
        }
    }
}

/// The bundle: a boot module, or else a file of QEMU's.
fn carried(module: &'static [u8]) -> Result<&'static [u8], String> {
    match fw_cfg::bundle().filter(|_| module.is_empty()) {
        None => Ok(module),
        Some(Ok(bundle)) => Ok(bundle),
        Some(Err(size)) => Err(format!(
            "the bundle has {} KiB, and there is no room for it; give the machine more memory",
            size >> 10
        )),
    }
}

/// Where files and logs are kept: on the disk, or in memory if there is none.
fn store(budget: &Budget, cut: Cut) -> Result<(Box<dyn Store>, Rooms), String> {
    let disk = match Disk::find(cut) {
        Ok(disk) => Box::new(disk),
        Err(NoDisk::Missing) => return Ok((Box::new(Volatile::default()), budget.rooms())),
        Err(NoDisk::ReadOnly) => {
            return Err("the disk cannot be written; give it one that can, or none".to_string());
        }
        Err(NoDisk::Unusable) => {
            return Err(
                "the disk cannot be spoken to: it is not of virtio 1, or its registers are \
                        out of reach; give it another, or none"
                    .to_string(),
            );
        }
    };
    let bytes = disk.bytes();
    let store = Database::open(disk, budget.pages()).map_err(|why| why.to_string())?;
    println!("disk: {} KiB", bytes >> 10);
    Ok((Box::new(store), budget.rooms_on(bytes)))
}

/// Puts the bundle's files in their places.
fn shell(bundle: &'static [u8], cut: Cut) -> Result<Shell, String> {
    let budget = Budget::of(heap::free());
    let bundle = Bundle::read(bundle)?;
    let mut mounts: Vec<String> = Vec::new();
    let mut files: Vec<(String, &[u8])> = Vec::new();
    for (path, bytes) in bundle.below("files/") {
        let (root, _) = path.split_once('/').ok_or_else(|| {
            format!("files/{path}: a file stands in a folder, such as files/data/{path}")
        })?;
        let root = format!("/{root}");
        if !mounts.contains(&root) {
            mounts.push(root);
        }
        files.push((format!("/{path}"), bytes));
    }
    if mounts.is_empty() {
        mounts.push("/data".to_string());
    }
    let (store, rooms) = store(&budget, cut)?;
    let shelf = Shelf::open(store, rooms, &mounts, &files, clock::now_ms());
    let shelf = Arc::new(shelf.map_err(|why| why.to_string())?);
    Ok(Shell::new(Agents::new(bundle, Arc::clone(&shelf), budget), shelf))
}
