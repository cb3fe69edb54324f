//! `synapse doctor`, `completions` and `man`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::{err, out, synapse};

/// What the command says with these variables instead of its own.
fn doctor(state: &Path, set: &[(&str, &str)]) -> (Output, BTreeMap<String, Value>) {
    let ran = Command::new(env!("CARGO_BIN_EXE_synapse"))
        .args(["doctor", "--json"])
        .env("XDG_STATE_HOME", state)
        .envs(set.iter().copied())
        .output()
        .unwrap();
    let mut checks = BTreeMap::new();
    for line in out(&ran).lines() {
        let check: Value = serde_json::from_str(line).unwrap();
        checks.insert(check["check"].as_str().unwrap().to_owned(), check);
    }
    (ran, checks)
}

#[test]
fn a_machine_that_can_run_is_0_and_nothing_is_left_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let (ran, checks) = doctor(dir.path(), &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", out(&ran));
    for check in ["state", "space", "openat2", "wasmtime", "wasmi", "alike"] {
        assert_eq!(checks[check]["ok"], true, "{}", checks[check]);
    }
    assert_eq!(checks["terminal"]["ok"], false, "a pipe is none");
    assert!(checks["state"]["found"].as_str().unwrap().contains("the first run makes it"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_a_run_would_fail_on_is_1_and_what_only_others_need_is_not() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let (ran, checks) = doctor(&dir.path().join("file/below"), &[]);
    assert_eq!(ran.status.code(), Some(1), "{}", out(&ran));
    assert_eq!(checks["state"]["ok"], false);
    assert!(checks["state"]["to_do"].as_str().unwrap().contains("XDG_STATE_HOME"));

    let (ran, checks) = doctor(dir.path(), &[("PATH", "/nowhere"), ("RUSTC", "/none")]);
    assert_eq!(ran.status.code(), Some(0), "{}", out(&ran));
    for check in ["compiler", "qemu"] {
        assert_eq!(
            (&checks[check]["ok"], &checks[check]["needed"]),
            (&false.into(), &false.into())
        );
    }
}

#[test]
fn a_folder_is_checked_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let notes = dir.path().join("notes");
    fs::create_dir(&notes).unwrap();
    let ran = synapse(dir.path(), &["doctor", "--dir", notes.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{}", out(&ran));
    assert!(out(&ran).contains("notes: files can be exchanged"), "{}", out(&ran));
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);
    let none = dir.path().join("none");
    let ran = synapse(dir.path(), &["doctor", "--dir", none.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(1));
    for told in ["none: No such file", "matters: ", "do: name a folder", "would not work"] {
        assert!(out(&ran).contains(told), "{told}: {}", out(&ran));
    }
}

/// The names of the commands, as the help lists them.
fn commands(dir: &Path) -> Vec<String> {
    let help = out(&synapse(dir, &["-h"]));
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    // What follows further in goes on from the line before.
    let names = list.lines().filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_page_and_a_completion() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("deep/man");
    let written = synapse(dir.path(), &["man", pages.to_str().unwrap()]);
    assert!(written.status.success(), "{}", err(&written));
    let commands = commands(dir.path());
    assert!(commands.len() > 8, "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = out(&synapse(dir.path(), &["completions", shell]));
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    for command in &commands {
        let page = fs::read_to_string(pages.join(format!("synapse-{command}.1"))).unwrap();
        assert!(page.contains(".SH DESCRIPTION") || page.contains(".SH SYNOPSIS"), "{command}");
    }
    let whole = out(&synapse(dir.path(), &["man"]));
    assert!(whole.contains(".TH synapse 1"), "{whole}");
    let taken = synapse(dir.path(), &["man", env!("CARGO_BIN_EXE_synapse")]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(err(&taken).contains("took no pages"), "{}", err(&taken));
}

#[test]
fn a_completion_that_bash_cannot_read_would_be_none() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    fs::write(&script, out(&synapse(dir.path(), &["completions", "bash"]))).unwrap();
    let read = Command::new("bash").arg("-n").arg(&script).output().unwrap();
    assert!(read.status.success(), "{}", err(&read));
}
