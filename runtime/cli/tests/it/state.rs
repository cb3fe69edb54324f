//! What runs leave in the state folder: kept machine code, and what `gc` removes.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{lister_package, run_on};
use crate::{err, out, synapse};

fn names(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn machine_code_is_kept_and_made_anew_when_it_was_touched() {
    let root = tempfile::tempdir().unwrap();
    lister_package(root.path());
    fs::create_dir(root.path().join("notes")).unwrap();
    let run = || {
        let ran = run_on(root.path(), "lister", "notes", "wasmtime");
        assert!(ran.status.success(), "{}", err(&ran));
    };
    run();
    let kept = names(&root.path().join("state/synapse/compiled"));
    let [file] = kept.as_slice() else { panic!("{kept:?}") };
    let whole = fs::read(file).unwrap();
    run();
    assert!(fs::read(file).unwrap() == whole, "another start keeps what there is");
    fs::write(file, vec![0x90; whole.len()]).unwrap();
    run();
    assert!(fs::read(file).unwrap() != vec![0x90; whole.len()], "it was compiled again");
}

#[test]
fn old_runs_are_removed_and_others_are_told() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("state");
    let runs = state.join("synapse/runs");
    lister_package(root.path());
    for folder in ["one", "two"] {
        fs::create_dir(root.path().join(folder)).unwrap();
        assert!(run_on(root.path(), "lister", folder, "wasmi").status.success());
    }
    let gc = |arguments: &[&str]| {
        let collected = synapse(&state, &[&["gc"], arguments].concat());
        assert!(collected.status.success(), "{}", err(&collected));
        out(&collected)
    };
    assert_eq!(gc(&[]), "0 runs removed, 0 bytes\n", "neither is old");
    assert!(gc(&["--older", "0m", "--dry-run"]).contains("2 runs would be removed, "));
    assert_eq!(names(&runs).len(), 2);

    let broken = names(&runs).remove(0);
    let mut log = fs::read(broken.join("log")).unwrap();
    log[200] ^= 1;
    fs::write(broken.join("log"), log).unwrap();
    let lines = gc(&["--older", "0m", "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let name = broken.file_name().unwrap().to_str().unwrap();
    for line in &lines[..2] {
        let is_broken = line["run"] == name;
        assert_eq!(line["removed"], !is_broken, "{line}");
        assert_eq!(line["stays"] == "log", is_broken, "{line}");
    }
    assert_eq!((&lines[2]["runs"], lines[2]["freed"].as_u64() > Some(100)), (&1.into(), true));
    assert_eq!(names(&runs), [broken]);

    assert!(gc(&["--older", "0m"]).contains("stays: its log is not as it was written at record "));
    assert!(gc(&["--older", "0m", "--broken"]).contains("1 run removed, "));
    assert!(names(&runs).is_empty());
    assert!(
        root.path().join("one/index.json").exists(),
        "what runs wrote in folders is not theirs"
    );
}
