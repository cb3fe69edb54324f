//! The boundary's integration tests, one binary.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod grammar;
mod sentences;
mod url;
