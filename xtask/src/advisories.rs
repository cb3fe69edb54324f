//! What the `RustSec` database says of the locked dependencies
//!
//! Asks whichever of the two usual tools is installed, and only on demand: the
//! database comes from the network and changes without this project changing,
//! so that a step of `ci` would fail for no change of anybody's.
//!
//! # Not here
//! What needs no network (`deny`).

use crate::step::{Failure, cargo, done, there};

/// Checks the lock file, or says what to install.
pub(crate) fn run() -> Result<(), Failure> {
    for (tool, check) in TOOLS {
        if there(cargo(tool)?) {
            return done(&mut cargo(check)?)
                .map_err(|why| format!("{why}\nwithout a network nothing was checked"));
        }
    }
    Err(format!("no tool for advisories is installed\nrun: {INSTALL}"))
}

/// Each tool by Cargo's word for it, and the words that check.
const TOOLS: &[(&str, &str)] =
    &[("deny", "deny --locked check advisories"), ("audit", "audit --deny warnings")];
const INSTALL: &str = "cargo install --locked cargo-deny";
