//! Connectors: MCP servers behind the door, each confined and each approved
//!
//! A server is a program that somebody else wrote, and it describes itself. So it runs
//! behind walls that it cannot take down, nothing that it says of itself decides
//! anything, and what a human approved is held against what it offers.
//!
//! # Invariants
//! - A program is started behind all of its walls, or not at all; an address is the
//!   one that its manifest names.
//! - A server whose list of tools is not the approved one is not called.
//! - Whatever a server does or fails to do, a call ends in its time.
//!
//! # Reading order
//! `confine` (the walls), `web` (a server at an address), `server` (one that answers),
//! `list` (what it offers), `approval` (what a human said), `answer` (its bytes), `exec`
//! (lines in place of a server), `board` (a run's connectors), `ready` (what is known of
//! some), `import`.
//!
//! # Trust
//! The board calls it for authorized calls alone; it trusts the kernel's manifests and
//! nothing that comes from a server.
//!
//! # Not here
//! What a verb does and who may call it (a manifest and the boundary).

pub mod answer;
pub mod approval;
pub mod board;
pub mod confine;
pub mod exec;
pub mod import;
pub mod list;
pub mod ready;
pub mod server;
pub mod web;
