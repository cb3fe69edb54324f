//! One entry point for build and checks
//!
//! # Not here
//! Building guests (`synapse build`), which works without this project.

mod advisories;
mod alike;
mod cache;
mod ci;
mod demo;
mod deny;
mod firmware;
mod instructions;
mod packages;
mod registry;
mod servers;
mod setup;
mod step;
mod tcb;
#[path = "../../runtime/cli/src/build/toolchain.rs"]
mod toolchain;
mod tutorial;

use clap::{Parser, Subcommand};
use instructions::Counted;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Xtask::parse().command {
        Command::Setup => setup::run(&[setup::GUEST, setup::BARE]),
        Command::Ci => ci::run(),
        Command::Demo => demo::run(),
        Command::Packages { output } => packages::run(output),
        Command::Servers => servers::install().and_then(|folder| servers::test(&folder)),
        Command::Registry => registry::install().and_then(|()| registry::test()),
        Command::Tutorial => tutorial::run(),
        Command::Deny => deny::run(),
        Command::Advisories => advisories::run(),
        Command::Tcb { json } => tcb::run(json),
        Command::Instructions { bless } => {
            instructions::run(bless).and_then(|counted| match counted {
                Counted::Same => Ok(()),
                Counted::Not(why) => Err(why),
            })
        }
        Command::Firmware { named: true, .. } => firmware::name(),
        Command::Firmware { run, test, bless, .. } => firmware::run(run, test, bless),
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

#[derive(Clone, Subcommand)]
enum Command {
    /// Makes guests buildable: installs a compiler for them if none is there.
    Setup,
    /// Runs every check; the last line says what was skipped.
    Ci,
    /// Shows the librarian at work on a copy of its sample notes.
    Demo,
    /// Makes the packages that come with Synapse, so that `synapse install NAME` finds them.
    Packages {
        /// The folder to put them in, which is not where `synapse install` looks.
        #[arg(long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
    /// Follows docs/tutorial.md, and compares what its commands print.
    Tutorial,
    /// Installs well-known MCP servers into the build cache, and runs the tests with them.
    Servers,
    /// Runs the tests with a registry, which Debian's packages have.
    Registry,
    /// Checks the licence and the source of every dependency against deny.toml.
    Deny,
    /// Asks `cargo deny` or `cargo audit` for advisories, over the network.
    Advisories,
    /// Measures what decides, and fails if it is too large or hides something.
    Tcb {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Counts what a sentence costs at the door, and fails if it is not as it was.
    Instructions {
        /// Writes the counts down as those that are meant.
        #[arg(long)]
        bless: bool,
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
        /// Links it with the names of its functions, for `addr2line`, and does nothing else.
        #[arg(long)]
        named: bool,
    },
}
