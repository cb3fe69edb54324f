//! Gives the turn's input back
//!
//! The smallest guest there is: it shows that a guest builds and answers.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

synapse_guest::agent!(turn);

/// Answers with its input.
///
/// # Errors
/// Never.
pub fn turn(input: &[u8]) -> Result<Vec<u8>, u32> {
    Ok(input.to_vec())
}
