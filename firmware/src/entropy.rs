//! Random bytes, if the machine has any to give
//!
//! # Invariants
//! - Nothing that must be secret is made of anything else: without a source
//!   there are no keys, and the console says so.
//!
//! # Not here
//! Numbers that only must differ: see `name`.

use sha2::{Digest, Sha256};

use crate::{clock, cpu};

/// 32 random bytes.
pub(crate) fn bytes() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for chunk in bytes.as_chunks_mut::<8>().0 {
        *chunk = cpu::random()?.to_le_bytes();
    }
    Some(bytes)
}

/// 32 bytes that no other run has: random ones, or else what the clocks say.
pub(crate) fn name(run: u64) -> [u8; 32] {
    bytes().unwrap_or_else(|| {
        let mut hash = Sha256::new();
        for number in [clock::now_ms(), cpu::ticks(), run] {
            hash.update(number.to_le_bytes());
        }
        hash.finalize().into()
    })
}
