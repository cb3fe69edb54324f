//! Tasks, turns and values behind the door; knows no engine and no board.
#![no_std]

extern crate alloc;

pub mod account;
pub mod admit;
pub mod asking;
pub mod bounds;
mod channel;
mod child;
pub mod confirm;
pub mod crew;
pub mod engine;
pub mod explain;
pub mod grant;
pub mod held;
mod holding;
mod line;
pub mod manifest;
pub mod names;
pub mod package;
pub mod record;
pub mod render;
pub mod replay;
pub mod run;
pub mod session;
pub mod sources;
pub mod task;
pub mod verify;
pub mod words;
pub mod written;
