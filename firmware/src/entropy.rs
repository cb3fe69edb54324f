//! Random bytes, if the machine has any to give
//!
//! # Invariants
//! - Nothing that must be secret is made of anything else: without a source
//!   there are no keys, and the console says so.
//!
//! # Not here
//! Numbers that only must differ: see `name`.

use sha2::{Digest, Sha256};
use spin::Once;

use crate::virtio::random::Random;
use crate::{clock, cpu};

/// The device that gives random bytes, once it was looked for.
static DEVICE: Once<Option<Random>> = Once::new();

/// 32 random bytes, out of what each source gives: one that is bad spoils nothing.
pub(crate) fn bytes() -> Option<[u8; 32]> {
    let device = DEVICE.call_once(Random::find).as_ref().and_then(Random::bytes);
    let sources = [processor(), device];
    let mut given = sources.iter().flatten().peekable();
    given.peek()?;
    let mut hash = Sha256::new();
    given.for_each(|bytes| hash.update(bytes));
    Some(hash.finalize().into())
}

fn processor() -> Option<[u8; 32]> {
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
