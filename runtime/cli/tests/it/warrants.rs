//! `synapse run --warrants`: what a person wrote beforehand, in a run that nobody watches.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::guest::guest;
use crate::run::ENGINES;
use crate::{err, out, synapse};

const GRANT: &str = "version = 1\nprimitives = [\"fs_read\", \"fs_write\", \"fs_delete\"]\n\
    [[paths]]\npath = \"/data/**\"\nrights = [\"list\", \"read\", \"write\", \"delete\"]\n";
const FILE: &str = "# nightly\n\n\
    {\"warrant\":\"fs_delete\",\"arguments\":{\"path\":\"/data/tmp/**\"},\"uses\":2}\n";

fn call(name: &str, path: &str, more: &str) -> String {
    format!(r#"{{"name":"{name}","arguments":{{"path":"/data/{path}"{more}}}}}"#)
}

/// An agent that wants the warrant of the file once more, then the file itself, then
/// reads, and deletes.
fn stage(root: &Path) {
    let (package, notes) = (root.join("agent"), root.join("notes"));
    drop(fs::remove_dir_all(&notes));
    fs::create_dir_all(&package).unwrap();
    fs::create_dir_all(notes.join("tmp")).unwrap();
    for name in ["note", "kept", "tmp/a", "tmp/b", "tmp/c"] {
        fs::write(notes.join(name), "text").unwrap();
    }
    let read = r#","offset":0,"length":9"#;
    let sentences = [
        FILE.lines().last().unwrap().to_owned(),
        call("fs_read", "warrants", read),
        call("fs_write", "warrants", r#","content":"x","mode":"replace""#),
        call("fs_read", "note", read),
        call("fs_delete", "tmp/a", ""),
        call("fs_delete", "kept", ""),
        call("fs_delete", "tmp/b", ""),
        call("fs_delete", "tmp/c", ""),
    ];
    let sentences: Vec<&str> = sentences.iter().map(String::as_str).collect();
    fs::write(package.join("agent.wasm"), guest(&sentences)).unwrap();
    fs::write(package.join("grant.toml"), GRANT).unwrap();
}

fn run(root: &Path, text: &str, engine: &str) -> Output {
    fs::write(root.join("notes/warrants"), text).unwrap();
    let at = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (agent, notes, file) = (at("agent"), at("notes"), at("notes/warrants"));
    let arguments =
        ["run", &agent, "tidy up", "--dir", &notes, "--warrants", &file, "--engine", engine];
    synapse(&root.join("state"), &arguments)
}

#[test]
fn what_the_file_names_goes_after_reading_and_the_record_says_so() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for engine in ENGINES {
        stage(root);
        let ran = run(root, FILE, engine);
        assert!(ran.status.success(), "{}", err(&ran));
        let has = |name: &str| root.join("notes").join(name).exists();
        assert!(!has("tmp/a") && !has("tmp/b") && has("kept") && has("tmp/c"), "{}", err(&ran));
        assert_eq!(fs::read_to_string(root.join("notes/warrants")).unwrap(), FILE);

        let state = root.join("state");
        let verified = synapse(&state, &["audit", "verify", "latest"]);
        assert!(verified.status.success(), "{}", err(&verified));
        let shown = out(&synapse(&state, &["audit", "show", "latest", "--json"]));
        let records: Vec<Value> =
            shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let digest = Sha256::digest(FILE).iter().fold(String::new(), |mut text, byte| {
            text.push_str(&format!("{byte:02x}"));
            text
        });
        for part in [&*digest, "notes/warrants"] {
            assert!(records[0].to_string().contains(part), "{}", records[0]);
        }
        let decided: Vec<_> =
            records.iter().filter(|record| record["kind"] == "decision").collect();
        let minted = decided[0]["record"].as_u64();
        let deletions: Vec<_> = decided
            .iter()
            .filter(|record| record["primitive"] == "fs_delete")
            .map(|record| (record["code"].as_u64().unwrap(), record["cause"].as_u64()))
            .collect();
        // The agent's own try for the same warrant cites nothing.
        let expected = [(0, None), (306, None), (0, minted), (301, None), (0, minted), (301, None)];
        assert_eq!(deletions, expected, "{shown}");
        for (place, by) in [(0, true), (1, false), (5, true), (6, false)] {
            let record = decided[place]["record"].to_string();
            let why = out(&synapse(&state, &["why", &record]));
            assert_eq!(why.contains("written  by you beforehand, in /"), by, "{place}: {why}");
        }
        // The file is nobody's below the door.
        for primitive in ["fs_read", "fs_write"] {
            let outcome = records
                .iter()
                .find(|record| record["primitive"] == primitive && record["kind"] == "outcome");
            assert!(outcome.unwrap()["code"].as_u64().unwrap() > 500, "{shown}");
        }
    }
}

#[test]
fn a_line_that_is_not_to_be_had_is_an_error_before_anything_runs() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    stage(root);
    let line = |path: &str| {
        format!(r#"{{"warrant":"fs_delete","arguments":{{"path":"{path}"}},"uses":1}}"#)
    };
    for (text, code) in [
        ("delete everything below tmp".to_owned(), "[101]"),
        (line("/elsewhere/a"), "[401]"),
        (line("/data/.git/**"), "[306]"),
        (line("/data/**"), "[306]"),
    ] {
        let ran = run(root, &format!("{FILE}{text}\n"), "wasmtime");
        assert_eq!(ran.status.code(), Some(1), "{text}: {}", err(&ran));
        assert!(err(&ran).contains("notes/warrants:4: no warrant can be made"), "{}", err(&ran));
        assert!(err(&ran).contains(code), "{text}: {}", err(&ran));
    }
    assert!(root.join("notes/tmp/a").exists());
    assert!(!root.join("state/synapse/runs").exists(), "nothing began");
}
