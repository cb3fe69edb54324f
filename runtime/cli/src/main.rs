//! The `synapse` command
//!
//! Reads the command line and hands each subcommand to its module; a failure
//! is told in one form (what happened, why, what to do) and by the exit code.
//!
//! # Not here
//! Any decision about a call (`synapse-boundary`).

mod build;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Synapse::parse().command {
        Command::Build(build) => match build.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("error: {failure}");
                ExitCode::from(failure.exit_code())
            }
        },
    }
}

/// Runs agents behind one door.
#[derive(Parser)]
#[command(version)]
struct Synapse {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Build),
}
