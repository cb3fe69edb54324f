//! Breaking on purpose, so that anyone can see what an image does then
//!
//! Whoever starts a machine may ask for it: `drill=stack` on the command line, or
//! `drill=cut:7`, which stands still in the middle of the seventh write to the
//! disk, as if the power were cut. Nothing else leads here.
//!
//! # Not here
//! What is printed (`interrupt`, `exit`).

use core::arch::asm;
use core::hint::black_box;

use crate::exit::{Exit, exit};
use crate::memory::paging;
use crate::{port, println};

/// The write to the disk in which the power is cut, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut(u64);

impl Cut {
    /// What a drill's name says, if it is one of these.
    pub(crate) fn named(way: &str) -> Option<Self> {
        way.strip_prefix("cut:")?.parse().ok().map(Self)
    }

    /// Counts a write, and says whether it is the one.
    pub(crate) fn is_now(&mut self) -> bool {
        let is_last = self.0 == 1;
        self.0 = self.0.saturating_sub(1);
        is_last
    }

    /// Stands still.
    pub(crate) fn happen() -> ! {
        println!("drill: the power is cut in the middle of a write");
        loop {
            port::halt();
        }
    }
}

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
