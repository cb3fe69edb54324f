//! The host board: wasmtime, the disk, the console and the log.
//!
//! Everything that the kernel leaves to a board with an operating system, and
//! the one place that reaches for the authority a person named.
//!
//! # Reading order
//! [`run`] (a whole run), [`package`], [`locks`], [`load`], [`engine`], [`log`], [`control`],
//! [`render`], [`console`], [`typed`], [`session`], [`net`], [`tools`], [`store`], [`trust`], [`undo`], [`gc`].
//!
//! # Trust
//! Trusted to execute what was authorized and to report facts; it decides
//! nothing.
//!
//! # Not here
//! Deciding (`synapse-boundary`), tasks (`synapse-kernel`), commands (`synapse`).

pub mod agents;
pub mod console;
pub mod control;
pub mod desk;
pub mod elsewhere;
pub mod engine;
pub mod gc;
pub mod human;
mod input;
pub mod load;
pub mod locks;
pub mod log;
pub mod net;
pub mod package;
pub mod render;
pub mod run;
pub mod session;
pub mod store;
pub mod tools;
pub mod trust;
pub mod typed;
pub mod undo;
