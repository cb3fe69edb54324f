//! The reference monitor: what decides, and what records that it decided.
//!
//! Every effect of every task passes through here as a sentence and leaves as
//! an [`Authorized`], which nothing else can make. The decision is pure, reads
//! labels and capabilities and never the meaning of a text, and is recorded
//! before anyone can see it.
//!
//! # Reading order
//! [`sentence`] and `parse` (gate 1), [`capability`], [`label`], [`path`], [`scope`], [`target`], [`headers`],
//! [`cite`], [`select`], [`link`] and [`warrant`], then [`gates`] (all four, in order), then
//! [`record`] (commit) and [`mod@answer`].
//!
//! # Trust
//! With `synapse-abi` this is all that decides. It trusts its caller for the
//! facts it asks for ([`Facts`]) and for the label that it puts on a reply.
//!
//! # Not here
//! Effects (`synapse-primitives`), tasks (`synapse-kernel`), the disk.
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions, clippy::wildcard_enum_match_arm)]

extern crate alloc;

pub mod answer;
pub mod capability;
pub mod cite;
pub mod gates;
pub mod headers;
pub mod label;
pub mod link;
mod parse;
pub mod path;
pub mod protected;
pub mod record;
pub mod scope;
pub mod secret;
pub mod select;
pub mod sentence;
pub mod target;
pub mod url;
pub mod warrant;
mod words;

pub use answer::{Answer, Said, State, answer, decide_answered};
pub use capability::Table;
pub use cite::Names;
pub use gates::{Decided, Facts, Findings, Held, Reply, Request, Verdict, decide, examine};
pub use label::{Integrity, Label, Mark, Origin, Secrecy};
pub use parse::parse;
pub use path::NormalPath;
pub use record::{Authorized, Entry, Opened, Recorder, commit};
pub use scope::{Rights, Scope};
pub use warrant::{TurnEnd, Warrants};
