//! What a guest links: the door, and the shape of a turn
//!
//! A guest is a component with one import and one export of our own making.
//! This crate speaks the canonical ABI for both, so that a guest is ordinary
//! safe Rust: a function from the turn's input to the turn's answer, which
//! calls [`call`] as often as it likes.
//!
//! ```
//! #![forbid(unsafe_code)]
//! extern crate alloc;
//!
//! synapse_guest::agent!(turn);
//!
//! fn turn(input: &[u8]) -> Result<alloc::vec::Vec<u8>, u32> {
//!     Ok(input.to_vec())
//! }
//! # fn main() { assert_eq!(turn(b"again"), Ok(b"again".to_vec())); }
//! ```
//!
//! # Reading order
//! [`Sentence`] writes any call or warrant, [`calls`] the ones with a type of
//! their own, [`hold`] those whose reply is not to be seen, [`files`] what takes
//! several, [`net`] requests; [`warrant`] is what to ask for first, and [`Selector`]
//! how to name what only the kernel has seen. [`Turn`] is what comes in.
//!
//! Off WebAssembly there is no door; `testing::with_door` stands in for it, so
//! a guest's logic is unit-tested on the host.
//!
//! # Trust
//! None is placed in this crate: it runs above the door, inside the guest.
//! Whatever it sends is parsed and decided by the kernel.
//!
//! # Not here
//! The meaning of sentences, replies and codes (`synapse-abi`, `synapse-reply`).
//! Making the component out of the core module (`synapse build`).
#![no_std]

extern crate alloc;
#[cfg(not(target_arch = "wasm32"))]
extern crate std;

pub mod agents;
pub mod calls;
mod canonical;
mod error;
pub mod files;
pub mod hold;
mod json;
pub mod net;
mod selector;
mod sentence;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod turn;
pub mod warrant;

pub use error::Error;
pub use selector::{Selector, Target};
pub use sentence::{Argument, Content, Held, Part, Reply, Sentence, Text};
pub use serde_json;
pub use synapse_abi as abi;
pub use synapse_reply as reply;
pub use turn::{Author, Budget, Grant, Handle, Message, PathGrant, Turn, TurnError};

use alloc::vec::Vec;

/// Submits one sentence to the door and waits for its answer.
///
/// The sentence is the text of one call or one warrant; the reply is framed as
/// `synapse-reply` says.
///
/// # Errors
/// The number of the kernel's refusal or fault.
///
/// # Panics
/// Never in a guest. On a host, when no `testing::with_door` stands around it.
pub fn call(sentence: &[u8]) -> Result<Vec<u8>, u32> {
    #[cfg(target_arch = "wasm32")]
    return canonical::call(sentence);
    #[cfg(not(target_arch = "wasm32"))]
    testing::call(sentence)
}

/// Makes a function `fn(&[u8]) -> Result<Vec<u8>, u32>` the guest's turn.
///
/// Stands once, at the root of the guest's crate. It expands to nothing off
/// WebAssembly but a check of the function's type.
#[macro_export]
macro_rules! agent {
    ($turn:path) => {
        const _: () = {
            extern crate alloc;

            #[cfg_attr(target_arch = "wasm32", unsafe(export_name = "synapse_guest_turn"))]
            extern "Rust" fn synapse_guest_turn(
                input: &[u8],
            ) -> ::core::result::Result<alloc::vec::Vec<u8>, u32> {
                let turn: fn(&[u8]) -> ::core::result::Result<alloc::vec::Vec<u8>, u32> = $turn;
                turn(input)
            }

            // The name must be used where it is not exported.
            #[cfg(not(target_arch = "wasm32"))]
            const _: fn(&[u8]) -> ::core::result::Result<alloc::vec::Vec<u8>, u32> =
                synapse_guest_turn;
        };
    };
}
