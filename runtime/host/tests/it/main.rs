//! The host's integration tests, one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod alike;
mod console;
mod engine;
mod human;
mod labels;
mod listen;
mod load;
mod moves;
mod records;
mod render;
mod sessions;
mod web;
