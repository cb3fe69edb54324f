//! Behaviours of the platforms: one table for both, and the disk's own dangers.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its stage has failed")]

mod both;
mod host;
mod hostile;
mod labels;
mod reserved;
mod stage;
mod states;
mod undo;
