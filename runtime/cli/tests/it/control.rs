//! A run that goes on, seen and ended from another terminal.

use core::time::Duration;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::{err, out, synapse};

/// A guest that never ends by itself.
const ENDLESS: &str = r#"(component
  (core module $main
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
    (func (export "turn") (param i32 i32) (result i32) (loop $again (br $again)) unreachable))
  (core instance $main (instantiate $main))
  (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
    (canon lift (core func $main "turn")
      (memory $main "memory") (realloc (func $main "realloc"))))
  (export "turn" (func $turn)))"#;

/// A run that is killed if its test does not end it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(root: &Path) -> Running {
    let package = root.join("endless");
    fs::create_dir_all(root.join("notes")).unwrap();
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("endless.wasm"), wat::parse_str(ENDLESS).unwrap()).unwrap();
    let grant = "version = 1\nprimitives = []\n[budget]\nseconds = 600\n";
    fs::write(package.join("grant.toml"), grant).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_synapse"))
        .arg("run")
        .arg(&package)
        .args(["count\u{1b} for ever", "--dir"])
        .arg(root.join("notes"))
        .env("XDG_STATE_HOME", root.join("state"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Running(child)
}

/// The runs that go on, once there are so many.
fn listed(root: &Path, count: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let ps = synapse(&root.join("state"), &["ps", "--json"]);
        assert!(ps.status.success(), "{}", err(&ps));
        let runs: Vec<Value> =
            out(&ps).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if runs.len() == count && runs.iter().all(|run| !run["calls"].is_null()) {
            return runs;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{runs:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_run_is_listed_and_ended_and_its_log_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("state");
    let mut running = start(root.path());
    let run = listed(root.path(), 1).remove(0);
    assert_eq!(run["pid"], running.0.id());
    assert_eq!(run["task"], "count\u{1b} for ever");
    assert!(run["folders"][0]["host"].as_str().unwrap().ends_with("/notes"));
    let text = out(&synapse(&state, &["ps"]));
    assert!(text.contains("0 calls, ") && !text.contains('\u{1b}'), "{text}");

    let other = synapse(&state, &["cancel", "20260101-000000-12345678"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(err(&other).contains("no run `20260101-000000-12345678` goes on"), "{}", err(&other));

    let cancelled = synapse(&state, &["cancel", run["run"].as_str().unwrap()]);
    assert!(cancelled.status.success(), "{}", err(&cancelled));
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    let verified = synapse(&state, &["audit", "verify", "latest"]);
    assert!(verified.status.success(), "{}", err(&verified));
    assert!(listed(root.path(), 0).is_empty());
    assert_eq!(synapse(&state, &["cancel", "latest"]).status.code(), Some(1));
}

#[test]
fn a_run_that_was_killed_holds_nothing() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    listed(root.path(), 1);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    assert!(listed(root.path(), 0).is_empty());
    let again = start(root.path());
    assert_eq!(listed(root.path(), 1)[0]["pid"], again.0.id());
}
