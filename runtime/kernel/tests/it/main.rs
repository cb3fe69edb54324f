//! The kernel's integration tests, one binary.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod admit;
mod children;
mod confirm;
mod crew;
mod door;
mod ends;
mod grant;
mod leaks;
mod listen;
mod log;
mod moves;
mod power;
mod rest;
mod session;
mod shadow;
mod tools;
