//! The command's integration tests, one binary.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod audit;
mod bench;
mod bound;
mod cancel;
mod codes;
mod confirm;
mod consent;
mod control;
mod doctor;
mod egress;
mod errands;
mod exec;
mod fetch;
mod grant;
mod guest;
mod help;
mod kill;
mod label;
mod locks;
mod net;
mod new;
mod packages;
mod redteam;
mod registry;
mod run;
mod screen;
mod secret;
mod servers;
mod sessions;
mod state;
mod templates;
mod terminal;
mod tidy;
mod tools;
mod undo;
mod warrants;
mod why;

use std::process::{Command, Output};

/// Runs the command with a state directory of its own.
fn synapse(state: &std::path::Path, arguments: &[&str]) -> Output {
    command(state, arguments).output().unwrap()
}

fn command(state: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synapse"));
    command.args(arguments).env("XDG_STATE_HOME", state);
    command.env("XDG_CONFIG_HOME", state.join("settings"));
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
