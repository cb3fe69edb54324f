//! Bounds on everything that crosses the door.
//!
//! A sentence is written by a machine that may have been fooled, so every part
//! of it has a ceiling. Lengths count bytes as they stand in the sentence,
//! escapes included, which is what a parser and a sampler can both count.
//!
//! # Not here
//! Budgets of one task (`synapse-boundary`, the grant).

/// Bytes of one sentence.
pub const SENTENCE: usize = 1 << 20;
/// Bytes of a Text argument.
pub const TEXT: usize = 4096;
/// Bytes of a Path argument.
pub const PATH: usize = 4096;
/// Components of a Path.
pub const PATH_DEPTH: usize = 64;
/// Bytes of a Url argument.
pub const URL: usize = 2048;
/// Bytes of a Host argument.
pub const HOST: usize = 255;
/// Bytes of a Json argument, all of it.
pub const JSON: usize = 32_768;
/// Levels of arrays and objects inside a Json argument.
pub const JSON_DEPTH: usize = 4;
/// Bytes of a Selector, all of it.
pub const SELECTOR: usize = 4096;
/// Conditions in the `where` of a Selector.
pub const SELECTOR_CONDITIONS: usize = 8;
/// Pieces of a Content made of parts, messages of a Prompt.
pub const PARTS: usize = 64;
/// Held values that one sentence may name.
pub const HELD: usize = 64;
/// Digits of a Uint.
pub const UINT_DIGITS: usize = 15;
/// The largest Uint.
pub const UINT_MAX: u64 = 999_999_999_999_999;
/// Uses that one warrant may ask for.
pub const USES: u8 = 64;

/// Headers that one request may carry.
pub const HEADERS: usize = 64;
/// Origins named in one record.
pub const ORIGINS: usize = 8;
