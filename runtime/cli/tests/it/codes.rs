//! Every exit code that docs/cli.md and the help name, and a way to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::cancel::interrupted;
use crate::run::{lister_package, on_broken_agent};
use crate::undo::World;
use crate::{out, synapse};

const PAGE: &str = include_str!("../../../../docs/cli.md");

/// The codes of the table: rows that begin with a number.
fn documented() -> BTreeSet<i32> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    rows.filter_map(|cell| cell.parse().ok()).collect()
}

#[test]
fn each_documented_code_is_one_that_the_command_ends_with() {
    let codes = documented();
    assert!(codes.len() > 5, "{codes:?}");
    for code in codes {
        let dir = tempfile::tempdir().unwrap();
        let ended = end(code, dir.path());
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
    }
}

#[test]
fn a_reader_of_errors_that_left_changes_no_code() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = crate::command(dir.path(), &["audit", "verify", "latest"]);
    assert_eq!(command.stderr(writer).status().unwrap().code(), Some(1));
}

fn end(code: i32, dir: &Path) -> Output {
    match code {
        0 => synapse(dir, &["primitives"]),
        1 => synapse(dir, &["audit", "verify", "latest"]),
        2 => synapse(dir, &["jump"]),
        3 => on_broken_agent(dir),
        4 => {
            let world = World::new();
            fs::rename(world.note(""), dir.join("aside")).unwrap();
            fs::create_dir(world.note("")).unwrap();
            world.synapse(&["undo", "--yes"])
        }
        5 => Command::new(env!("CARGO_BIN_EXE_synapse"))
            .arg("build")
            .arg(dir)
            .envs([("PATH", "/nowhere"), ("RUSTC", "/none")])
            .output()
            .unwrap(),
        6 => {
            lister_package(dir);
            let grant = dir.join("lister");
            synapse(dir, &["check", "{}", "--grant", grant.to_str().unwrap()])
        }
        130 => interrupted(dir, "wasmtime").0,
        other => unreachable!("docs/cli.md names {other}, and no test ends with it"),
    }
}

#[test]
fn the_help_names_the_same_codes() {
    let dir = tempfile::tempdir().unwrap();
    let help = out(&synapse(dir.path(), &["--help"]));
    let codes = help.split("Exit codes: ").nth(1).unwrap().split("Usage:").next().unwrap();
    let codes = codes.split(|c: char| !c.is_ascii_digit()).filter_map(|code| code.parse().ok());
    assert_eq!(codes.collect::<BTreeSet<i32>>(), documented(), "{help}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
