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
mod cite;
mod grammar;
mod invariants;
mod leave;
mod link;
mod model;
mod names;
mod order;
mod random;
mod request;
mod sdk;
mod select;
mod sentences;
mod small;
mod url;
mod warrants;
mod world;
