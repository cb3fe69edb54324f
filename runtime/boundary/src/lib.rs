//! The reference monitor: gates, labels, scope, records.
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions, clippy::wildcard_enum_match_arm)]

extern crate alloc;

mod parse;
mod sentence;
mod url;

pub use parse::parse;
pub use sentence::{Argument, Call, Content, Held, Piece, Pieces, Sentence, Text, Warrant};
pub use url::{Host, HostName, Scheme, Url};
