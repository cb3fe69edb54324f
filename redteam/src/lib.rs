//! Attacks and everyday work, played through the real door.
//!
//! An attack is a script, not a model: the attacker is taken to have persuaded
//! the agent of everything, from the first bytes on that carry the injection.
//! What is left to stop it is the door, and the same script meets the same
//! door every time. So a number printed here can be had again by anyone.
//!
//! # Invariants
//! 1. A step counts as stopped only if the gate that its case names refused it.
//! 2. A call that never crossed the door is a failure of the harness, never a
//!    success of the door.
//!
//! # Not here
//! Any decision (`synapse-boundary`): weaker monitors are predicted, never run.

mod ambient;
mod case;
mod census;
mod monitors;
mod order;
mod page;
mod play;
mod public;
mod report;
mod trial;
mod world;

pub use case::{BadCase, Case, Goal, Page, Step, Stop, Turn, Vector, corpus, parse, schema, work};
pub use census::{Line, census};
pub use monitors::{Monitor, Row, Rows};
pub use page::{Section, page};
pub use public::Category;
pub use public::dojo::{Bench, End, Job, Met, Missing, Public, Told, play};
pub use public::search::{Search, search};
pub use public::tell::Sums;
pub use report::{Counts, Progress, Report, baseline, run};
pub use trial::{Outcome, Trial};
