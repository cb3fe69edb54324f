//! Breaking on purpose, so that anyone can see what an image does then
//!
//! Whoever starts a machine may ask for it: `drill=stack` on the command line.
//! Nothing else leads here.
//!
//! # Not here
//! What is printed (`interrupt`, `exit`).

use core::arch::asm;
use core::hint::black_box;

use crate::exit::{Exit, exit};
use crate::memory::paging;
use crate::println;

/// Breaks in the way that is asked for; one that is not known ends the image.
pub(crate) fn run(way: &str) -> ! {
    println!("drill: {way}");
    let code = paging::image().start;
    match way {
        "stack" => deepen(0),
        "null" => store(0),
        "constant" => store(code),
        // The code of this very function.
        "code" => store((run as *const ()).expose_provenance() as u64),
        "execute" => {
            let instructions = [0xc3_u8; 16];
            call(instructions.as_ptr().expose_provenance() as u64);
        }
        "divide" => divide(),
        "panic" => deny(way),
        "memory" => drop(black_box(alloc::vec![1_u8; 4 << 30])),
        _ => println!("there is no such drill"),
    }
    exit(Exit::Unable)
}

fn deepen(level: u64) {
    let here = black_box([level; 64]);
    if here.first() == Some(&level) {
        deepen(level + 1);
    }
    black_box(here);
}

fn store(address: u64) {
    // SAFETY: none; the machine is to stop it.
    unsafe { asm!("mov byte ptr [{}], 0", in(reg) address, options(nostack)) };
}

fn call(address: u64) {
    // SAFETY: none; the machine is to stop it.
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}

fn divide() {
    // SAFETY: no memory is touched.
    unsafe {
        asm!("div {0:e}", in(reg) 0, inout("eax") 1 => _, inout("edx") 0 => _, options(nomem, nostack));
    };
}

#[expect(clippy::panic, reason = "it is what was asked for")]
fn deny(way: &str) -> ! {
    panic!("asked for by drill={way}")
}
