//! What a crossing costs, measured on the machine that asks.
//!
//! A duration says little about a machine that is not yours and busy with other
//! things. So what is to be compared is measured in turns within one run, and
//! its ratio is told beside it.
//!
//! # Reading order
//! [`measure`] (how), then the rows: [`door`], [`guest`], [`disk`], [`net`];
//! [`task`] is what they have in common.
//!
//! # Not here
//! Peers, which nothing shipped should hold: `benches/table.rs`.

pub mod disk;
pub mod door;
pub mod guest;
pub mod measure;
pub mod net;
pub mod task;

pub use measure::{Group, Row, Stopped, run};

/// What happened, why, and what to do.
pub type Failure = String;

/// The rows that need nothing but Synapse.
///
/// # Errors
/// This machine does not let one of them be prepared.
pub fn groups() -> Result<Vec<Group>, Failure> {
    Ok(vec![
        door::group()?,
        door::reasons()?,
        guest::calls()?,
        guest::turns()?,
        disk::group()?,
        net::group()?,
    ])
}
