//! What the network may try, row by row, and where each row stops.
//!
//! Every row goes through the real door, disk and client. What differs from a run
//! is the machine below: it answers for names, and every address of it is this
//! machine's loopback, where connections are counted.

mod answers;
mod listen;
mod places;
mod secrets;
pub(crate) mod tls;
pub(crate) mod world;
