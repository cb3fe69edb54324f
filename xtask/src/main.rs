//! One entry point for build and checks
//!
//! # Not here
//! Building guests (`synapse build`), which works without this project.

mod alike;
mod cache;
mod ci;
mod demo;
mod deny;
mod firmware;
mod setup;
mod step;
mod tcb;
#[path = "../../runtime/cli/src/build/toolchain.rs"]
mod toolchain;
mod tutorial;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Xtask::parse().command {
        Command::Setup => setup::run(&[setup::GUEST, setup::BARE]),
        Command::Ci => ci::run(),
        Command::Demo => demo::run(),
        Command::Tutorial => tutorial::run(),
        Command::Deny => deny::run(),
        Command::Tcb { json } => tcb::run(json),
        Command::Firmware { run, test, bless } => firmware::run(run, test, bless),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Builds and checks this project.
#[derive(Parser)]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Subcommand)]
enum Command {
    /// Makes guests buildable: installs a compiler for them if none is there.
    Setup,
    /// Runs every check; the last line says what was skipped.
    Ci,
    /// Shows the librarian at work on a copy of its sample notes.
    Demo,
    /// Follows docs/tutorial.md, and compares what its commands print.
    Tutorial,
    /// Checks the licence and the source of every dependency against deny.toml.
    Deny,
    /// Measures what decides, and fails if it is too large or hides something.
    Tcb {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Builds the image of the bare machine.
    Firmware {
        /// Boots it in QEMU, in this terminal.
        #[arg(long)]
        run: bool,
        /// Boots it on every board, and checks what it says.
        #[arg(long)]
        test: bool,
        /// Tests it, and keeps the counts of instructions that it finds.
        #[arg(long)]
        bless: bool,
    },
}
