//! Ctrl-C, while an agent runs.

use core::time::Duration;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::guest::{guest_slow, guest_that};
use crate::run::ENGINES;
use crate::{command, err, out, synapse};

/// Says one sentence, then computes without an end.
fn endless(root: &Path) {
    let package = root.join("endless");
    fs::create_dir(&package).unwrap();
    fs::create_dir(root.join("notes")).unwrap();
    let listing = r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":9}}"#;
    let agent = guest_that(&[listing], "(loop $again (br $again))");
    fs::write(package.join("endless.wasm"), agent).unwrap();
    let grant = "version = 1\nprimitives = [\"fs_list\"]\n[[paths]]\npath = \"/data/**\"\n\
                 rights = [\"list\"]\n[budget]\nseconds = 600\n";
    fs::write(package.join("grant.toml"), grant).unwrap();
}

/// A run that was ended by Ctrl-C after its first call, and what it then printed.
pub(crate) fn interrupted(root: &Path, engine: &str) -> (Output, String) {
    endless(root);
    let mut child = Command::new(env!("CARGO_BIN_EXE_synapse"))
        .args(["run", "endless", "--dir", "notes", "--json", "--engine", engine])
        .current_dir(root)
        .env("XDG_STATE_HOME", root.join("state"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.contains("fs_list"), "{first}");
    let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    (child.wait_with_output().unwrap(), rest)
}

#[test]
fn ctrl_c_ends_the_turn_with_130_and_the_log_is_whole() {
    for engine in ENGINES {
        let root = tempfile::tempdir().unwrap();
        let (ended, rest) = interrupted(root.path(), engine);
        assert_eq!(ended.status.code(), Some(130), "{engine}: {}", err(&ended));
        assert!(err(&ended).contains("ending the run"), "{}", err(&ended));
        let summary: Value = serde_json::from_str(&rest).unwrap();
        assert_eq!((&summary["cancelled"], &summary["calls"]), (&true.into(), &1.into()));

        let verified = synapse(&root.path().join("state"), &["audit", "verify", "latest"]);
        assert_eq!(verified.status.code(), Some(0), "{}", err(&verified));
        assert!(out(&verified).ends_with("complete\n"), "{}", out(&verified));
    }
}

#[test]
fn ctrl_c_ends_a_run_whose_agent_is_still_being_compiled() {
    let root = tempfile::tempdir().unwrap();
    let (agent, grant) = (root.path().join("slow.wasm"), root.path().join("grant.toml"));
    fs::write(&agent, guest_slow(4)).unwrap();
    fs::write(&grant, "version = 1\nprimitives = []\n").unwrap();
    let arguments = ["run", agent.to_str().unwrap(), "--grant", grant.to_str().unwrap()];
    let mut run = command(root.path(), &arguments);
    let child = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let begun = Instant::now();
    while !catches_ctrl_c(child.id()) {
        assert!(begun.elapsed() < Duration::from_mins(1), "it never watches for Ctrl-C");
        thread::sleep(Duration::from_millis(5));
    }
    // It reads its agent and begins to compile it.
    thread::sleep(Duration::from_millis(100));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let asked = Instant::now();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", err(&ended));
    assert!(err(&ended).contains("ended before its agent was compiled"), "{}", err(&ended));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert!(!root.path().join("synapse/runs").exists(), "nothing began");
}

/// Whether a process handles the signal of Ctrl-C, which is the second.
fn catches_ctrl_c(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0)
}
