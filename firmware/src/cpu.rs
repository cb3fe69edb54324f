//! Instructions of the processor that Rust has no words for
//!
//! # Not here
//! Its tables (`interrupt`, `memory::paging`), and what a tick is (`clock`).

use core::arch::x86_64::{__cpuid, _mm_pause, _rdrand64_step, _rdtsc};

/// Ticks since the machine was started.
pub(crate) fn ticks() -> u64 {
    // SAFETY: every 64-bit processor has it, and nothing forbids its use.
    unsafe { _rdtsc() }
}

/// Waits a little, for a device to be looked at again.
pub(crate) fn pause() {
    _mm_pause();
}

/// 64 random bits, if the processor makes them.
pub(crate) fn random() -> Option<u64> {
    let has = __cpuid(1).ecx & 1 << 30 != 0;
    // The instruction may fail when it is asked too often; the maker says to
    // try ten times.
    (0..10).filter(|_| has).find_map(|_| rdrand())
}

fn rdrand() -> Option<u64> {
    let mut bits = 0;
    // SAFETY: the caller has seen that the processor has the instruction.
    let done = unsafe { draw(&mut bits) };
    done.then_some(bits)
}

#[target_feature(enable = "rdrand")]
fn draw(bits: &mut u64) -> bool {
    _rdrand64_step(bits) == 1
}
