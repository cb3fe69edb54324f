//! Bytes of a text, looked at eight at a time
//!
//! A rule about single bytes is asked of a whole word at once. What it finds first is
//! there; above that it may find what is not, so that who asks stops there or refuses.
//!
//! # Not here
//! The rules (`parse`, `path`).

use core::iter::once;

/// The words of a text in any order, where it is shorter than one filled up with `-`.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = u64> {
    let short = || text.iter().rev().fold(DASHES, |word, byte| word << 8 | u64::from(*byte));
    // The last one has bytes of the one before where they do not come out even.
    let last = text.last_chunk().map_or_else(short, |last| u64::from_le_bytes(*last));
    text.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).chain(once(last))
}

/// Sets the highest bit of each byte of a word that is below a limit of at most 128.
pub(crate) const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(u64::from_le_bytes([limit; 8])) & !word & HIGH
}

/// Sets the highest bit of each byte of a word that is this one.
pub(crate) const fn is(word: u64, byte: u8) -> u64 {
    below(word ^ u64::from_le_bytes([byte; 8]), 1)
}

/// The highest bit of each byte.
pub(crate) const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
const DASHES: u64 = u64::from_le_bytes([b'-'; 8]);
