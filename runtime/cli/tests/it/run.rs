//! `synapse run`, as a person types it.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::{err, out, synapse};

/// A guest that answers nothing and calls nothing.
const SILENT: &str = r#"(component
  (core module $main
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
    (func (export "turn") (param i32 i32) (result i32) i32.const 512))
  (core instance $main (instantiate $main))
  (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
    (canon lift (core func $main "turn")
      (memory $main "memory") (realloc (func $main "realloc"))))
  (export "turn" (func $turn)))"#;

fn package(root: &Path) {
    let folder = root.join("silent");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("silent.wasm"), wat::parse_str(SILENT).unwrap()).unwrap();
    fs::write(folder.join("grant.toml"), "version = 1\nprimitives = []\n").unwrap();
}

/// Runs the package on a folder below `root`.
fn run(root: &Path, folder: &str) -> Output {
    let agent = root.join("silent");
    let dir = format!("{}=/data", root.join(folder).display());
    synapse(&root.join("state"), &["run", agent.to_str().unwrap(), "--dir", &dir])
}

#[test]
fn a_run_leaves_a_log_that_verifies() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    fs::create_dir(root.path().join("notes")).unwrap();
    let ran = run(root.path(), "notes");
    assert!(ran.status.success(), "{}", err(&ran));
    let verified = synapse(&root.path().join("state"), &["audit", "verify", "latest"]);
    assert!(verified.status.success(), "{}", err(&verified));
    assert!(out(&verified).starts_with("4 records, "), "{}", out(&verified));
}

#[test]
fn what_is_synapses_own_or_the_running_packages_cannot_be_handed_to_an_agent() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    for own in ["silent", "state/synapse"] {
        fs::create_dir_all(root.path().join(own)).unwrap();
        let ran = run(root.path(), own);
        let said = err(&ran);
        assert_eq!(ran.status.code(), Some(1), "{own}: {said}");
        assert!(said.contains("no agent may touch"), "{own}: {said}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    let folder = root.path().join("silent");
    let good = fs::read(folder.join("silent.wasm")).unwrap();
    let second = SILENT.replacen(
        "(component",
        r#"(component (import "wasi:cli/environment@0.2.0" (instance))"#,
        1,
    );
    for (bytes, named) in [
        (b"\0asm\x01\0\0\0".to_vec(), "a core module, not a component"),
        (good[..good.len() / 2].to_vec(), "the component is cut short"),
        (wat::parse_str(second).unwrap(), "wasi:cli/environment@0.2.0"),
        (b"text".to_vec(), "not WebAssembly"),
    ] {
        fs::write(folder.join("silent.wasm"), bytes).unwrap();
        let ran = run(root.path(), "");
        let said = err(&ran);
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.contains(named), "`{named}`: {said}");
    }
}
