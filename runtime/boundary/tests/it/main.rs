//! The boundary's integration tests, one binary.

mod grammar;
mod url;
