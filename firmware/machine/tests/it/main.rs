//! Whole images, booted: what they say, and how they end.
//!
//! An image takes minutes to build, so these tests are left out of an ordinary
//! run; `cargo xtask firmware --test` builds it, names it in `SYNAPSE_FIRMWARE`
//! and runs them all.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod agents;
mod boot;
mod confirm;
mod counts;
mod desk;
mod disk;
mod guests;
mod hostile;
mod install;
mod librarian;
mod loader;
mod replay;

use core::time::Duration;
use std::env;
use std::path::PathBuf;

use synapse_bundle::{File, Writer};
use synapse_machine::{Machine, Model, Plan};

/// How long a machine may take for one thing. Emulation on a busy builder is slow.
const PATIENCE: Duration = Duration::from_mins(1);

fn plan() -> Plan {
    Plan::new(&named("SYNAPSE_FIRMWARE"))
}

fn named(variable: &str) -> PathBuf {
    let path = env::var_os(variable).map(PathBuf::from);
    path.unwrap_or_else(|| panic!("{variable} names nothing; run `cargo xtask firmware --test`"))
}

fn bundle(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = Writer::default();
    for (path, bytes) in files {
        assert!(writer.add(File { path, bytes }));
    }
    writer.finish()
}

/// Boots a machine with these files on this board, up to its prompt.
fn boot(model: Model, memory: u32, files: &[(&str, &[u8])]) -> Machine {
    up(&Plan { model, memory, bundle: bundle(files), ..plan() })
}

/// Starts a machine, up to its prompt.
fn up(plan: &Plan) -> Machine {
    let mut machine = plan.start().unwrap();
    machine.expect("synapse> ", PATIENCE).unwrap_or_else(|why| panic!("{why}"));
    machine
}

/// Types a line and waits for the prompt after it.
fn ask(machine: &mut Machine, line: &str) -> String {
    machine.enter(line).unwrap();
    machine.expect("synapse> ", PATIENCE).unwrap_or_else(|why| panic!("{line}: {why}"))
}

fn power_off(mut machine: Machine) {
    machine.enter("poweroff").unwrap();
    let (code, said) = machine.end(PATIENCE).unwrap();
    assert_eq!(code, synapse_machine::SUCCESS, "{said}");
}
