//! What can go wrong in a build, told as what, why, and what to do
//!
//! # Not here
//! Printing it, and ending the process with its code (`main`).

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use super::shown;

/// The reason why there is no component.
#[derive(Debug)]
pub(crate) enum BuildError {
    /// No compiler of the wanted kind can build guests; what each one lacks.
    NoToolchain { lacks: Vec<String> },
    /// The folder is not a package that can be built.
    Package { dir: PathBuf, why: String, todo: &'static str },
    /// A program could not be started.
    Start { command: String, why: io::Error },
    /// The compiler said no, in its own words, above.
    Compile { package: String },
    /// The compiled module does not fit the world of agents.
    Component { why: String },
    /// A file could not be read.
    Input { path: PathBuf, why: io::Error },
    /// The result could not be written.
    Output { path: PathBuf, why: io::Error },
}

impl BuildError {
    pub(crate) fn start(command: &Command, why: io::Error) -> Self {
        Self::Start { command: shown(command), why }
    }

    /// 5 when a compiler must be installed first, else 1.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoToolchain { .. } => 5,
            Self::Package { .. }
            | Self::Start { .. }
            | Self::Compile { .. }
            | Self::Component { .. }
            | Self::Input { .. }
            | Self::Output { .. } => 1,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToolchain { lacks } => {
                writeln!(f, "no compiler for guests is installed")?;
                for lack in lacks {
                    writeln!(f, "  {lack}")?;
                }
                write!(f, "install one: {INSTALL_TARGET}\n  or, on Debian: {INSTALL_DEBIAN}")
            }
            Self::Package { dir, why, todo } => {
                write!(f, "`{}` is not a guest package: {why}\n{todo}", dir.display())
            }
            Self::Start { command, why } => {
                write!(f, "`{command}` did not start: {why}\ncheck that the program is installed")
            }
            Self::Compile { package } => write!(
                f,
                "`{package}` did not compile, for the reason above\n\
                 guests are `no_std` with `alloc`, and a missing `synapse_guest_turn` means \
                 that `synapse_guest::agent!(turn);` is missing; correct it and build again"
            ),
            Self::Component { why } => write!(
                f,
                "the compiled module does not fit the world of agents: {why}\n\
                 name the turn once, at the root of the crate, with \
                 `synapse_guest::agent!(turn);`, and import nothing else"
            ),
            Self::Input { path, why } => {
                write!(f, "`{}` could not be read: {why}\nbuild again", path.display())
            }
            Self::Output { path, why } => write!(
                f,
                "`{}` could not be written: {why}\nname another file with --output",
                path.display()
            ),
        }
    }
}

/// The line that makes the ordinary compiler one for guests.
pub(crate) const INSTALL_TARGET: &str = "rustup target add wasm32-unknown-unknown";
const INSTALL_DEBIAN: &str = "apt-get update && apt-get install -y --no-install-recommends \
                              rustc-web cargo-web rust-web-src lld-19";
