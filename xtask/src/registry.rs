//! A registry as Debian ships it, and the tests with it
//!
//! # Not here
//! What the tests hold (the tests of the command).

use crate::setup;
use crate::step::{Failure, cargo, done};

/// Installs the registry and what copies into it, if they are not there.
pub(crate) fn install() -> Result<(), Failure> {
    setup::registry()
}

/// Runs the tests that need them.
pub(crate) fn test() -> Result<(), Failure> {
    done(&mut cargo(
        "test --locked --profile ci --package synapse --test it -- --ignored registry::",
    )?)
}
