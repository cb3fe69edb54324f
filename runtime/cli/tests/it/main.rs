//! The command's integration tests, one binary.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod audit;
mod bench;
mod cancel;
mod codes;
mod control;
mod doctor;
mod grant;
mod help;
mod locks;
mod new;
mod run;
mod screen;
mod state;
mod undo;
mod why;

use std::process::{Command, Output};

/// Runs the command with a state directory of its own.
fn synapse(state: &std::path::Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_synapse"))
        .args(arguments)
        .env("XDG_STATE_HOME", state)
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
