//! What comes back through the door, as constants and types.
//!
//! The other half of the contract between guests and the kernel: `synapse-abi` says
//! what can be asked and how it is refused, this says what an answer looks like. No
//! decision rests on it, so it is not a part of what decides.
//!
//! # Reading order
//! [`code`] (how an admitted call fails), [`frame`] (how a reply travels), [`turn`]
//! (what travels in), [`limits`] (how much).
//!
//! # Not here
//! Labels: they stay with the kernel. Taking a frame apart (a guest's SDK).
#![no_std]

pub mod code;
pub mod frame;
pub mod limits;
pub mod turn;

pub use code::Fault;
