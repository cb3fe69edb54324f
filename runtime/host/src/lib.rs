//! The host board: wasmtime, disk, console, log.

pub mod engine;
