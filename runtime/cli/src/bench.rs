//! `synapse bench`: what a call costs on this machine
//!
//! # Not here
//! What is measured, and how (`synapse-bench`).

use std::io;
use synapse_bench::Stopped;

use crate::output;

/// Measures what a call costs on this machine; it takes a few seconds.
///
/// A duration depends on the machine and on what else it does. The ratios
/// depend on neither much: what is compared is measured in turns.
///
/// Exit codes: 0 done, 1 failed.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Print one JSON object a row.
    #[arg(long)]
    json: bool,
}

impl Bench {
    /// Prints the table, group by group.
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut groups = synapse_bench::groups()?;
        match synapse_bench::run(&mut groups, &mut io::stdout().lock(), self.json) {
            Ok(()) => Ok(()),
            Err(Stopped::Row(why)) => Err(why),
            Err(Stopped::Output(why)) => output::told(&why).map_or(Ok(()), Err),
        }
    }
}
