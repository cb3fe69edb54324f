//! The boundary's integration tests, one binary.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod agree;
mod answers;
mod attacks;
mod grammar;
mod invariants;
mod model;
mod names;
mod order;
mod random;
mod sentences;
mod url;
mod world;
