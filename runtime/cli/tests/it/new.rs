//! `synapse new`, as a person types it. Building what it makes is what
//! `cargo xtask tutorial` does.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::{err, out};

fn new(dir: &Path, name: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_synapse"))
        .args(["new", name])
        .current_dir(dir)
        .output()
        .unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_project_is_whole_and_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let made = new(dir.path(), "lister");
    assert!(made.status.success(), "{}", err(&made));
    for told in ["synapse build lister", "synapse run lister --dir"] {
        assert!(out(&made).contains(told), "{}", out(&made));
    }
    assert_eq!(names(dir.path()), ["lister"], "nothing stays beside it");
    assert_eq!(
        names(&dir.path().join("lister")),
        [
            ".gitignore", "Cargo.lock", "Cargo.toml", "SOUL.md", "grant.toml", "manifest.toml",
            "src", "vendor"
        ]
    );
    // Cargo itself takes it, as it stands and without a registry.
    let cargo = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--no-deps"])
        .arg("--manifest-path")
        .arg(dir.path().join("lister/Cargo.toml"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", err(&cargo));
}

#[test]
fn what_exists_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("file"), "mine").unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
    for name in ["empty", "file", "link"] {
        let refused = new(dir.path(), name);
        assert_eq!(refused.status.code(), Some(1), "{name}");
        assert!(err(&refused).contains("exists already"), "{}", err(&refused));
    }
    assert_eq!(names(dir.path()), ["empty", "file", "link"]);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"mine");
}

#[test]
fn a_name_that_cargo_would_refuse_is_2() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["../out", "Upper", "loop", "serde"] {
        assert_eq!(new(dir.path(), name).status.code(), Some(2), "{name}");
    }
    assert!(names(dir.path()).is_empty());
}
