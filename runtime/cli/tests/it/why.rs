//! `synapse why` and `synapse check`, as a person types them.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::run::{lister_package, run_on};
use crate::{err, out, synapse};

/// A run that wrote, read, then was refused a deletion and a bad sentence.
fn ran(root: &Path) {
    lister_package(root);
    fs::create_dir(root.join("notes")).unwrap();
    fs::write(root.join("notes/note-0.md"), "note").unwrap();
    assert!(run_on(root, "lister", "notes", "wasmtime").status.success());
}

fn why(root: &Path, arguments: &[&str]) -> Output {
    synapse(&root.join("state"), &[&["why"], arguments].concat())
}

/// The numbers of the run's decision records with this code.
fn decisions(root: &Path, code: u64) -> Vec<String> {
    let shown = out(&synapse(&root.join("state"), &["audit", "show", "latest", "--json"]));
    let records = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let wanted = records.filter(|record| record["kind"] == "decision" && record["code"] == code);
    wanted.map(|record| record["record"].to_string()).collect()
}

#[test]
fn a_refusal_is_explained_with_what_led_to_it_and_what_would_pass() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    ran(root);
    let [refused] = &decisions(root, 301)[..] else { unreachable!("one deletion is refused") };
    let told = out(&why(root, &[refused]));
    let read = &format!("#{}", decisions(root, 0)[2]);
    let warrant = r#"{"warrant":"fs_delete","arguments":{"path":"/data/note-0.md"},"uses":1}"#;
    for part in [
        &format!("record   #{refused}: refused by gate 3: destructive after reading [301]"),
        r#"asked    {"name":"fs_delete","arguments":{"path":"/data/note-0.md"}}"#,
        "capability passed",
        "label      it cannot be taken back",
        "scope      not reached",
        "because  something from outside had been read; it may tell of: prompt, files",
        "fs_read",
        "from     path: the agent's own words",
        "to pass  do it, or ask for a warrant, before anything is read",
        &format!("or ask before {read}, if the human's line names the target: {warrant}"),
        &format!("or hold what {read} fs_read brought, and pass it on unread"),
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let object: Value = serde_json::from_str(&out(&why(root, &[refused, "--json"]))).unwrap();
    assert_eq!(object["gates"][2], "refused");
    assert_eq!(object["decision"]["code"], 301);
    assert_eq!(object["outcome"], Value::Null);
    assert!(object["origins"].as_array().is_some_and(|origins| !origins.is_empty()));
    assert_eq!(object["arguments"][0]["value"], r#""/data/note-0.md""#);
    assert_eq!(object["ways"].as_array().map(Vec::len), Some(2));

    // A permission, by its outcome's number too.
    let written = &decisions(root, 0)[1];
    let told = out(&why(root, &[&format!("#{written}")]));
    let listed = &decisions(root, 0)[0];
    let from = format!("content: held value 1, brought by #{listed}\n");
    assert!(told.contains(&from), "{from}{told}");
    let outcome = (written.parse::<u64>().unwrap() + 1).to_string();
    assert!(told.contains("came to ") && told.contains("scope      passed"), "{told}");
    assert_eq!(out(&why(root, &[&outcome])), told);
}

#[test]
fn what_cannot_be_explained_says_why() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let none = why(root, &["1"]);
    assert!(err(&none).contains("there is no run to read"), "{}", err(&none));
    ran(root);
    for (record, told) in
        [("9999", "no such record; its numbers go from 0 to "), ("0", "no call but a task start")]
    {
        let failed = why(root, &[record]);
        assert_eq!(failed.status.code(), Some(1));
        assert!(err(&failed).contains(told), "{}", err(&failed));
    }
    assert_eq!(why(root, &["x"]).status.code(), Some(2));
}

#[test]
fn each_gate_says_what_it_would_answer_before_and_after_reading() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    lister_package(root);
    let grant = root.join("lister");
    let check = |sentence: &str, more: &[&str]| {
        let arguments = [&["check", sentence, "--grant", grant.to_str().unwrap()], more].concat();
        synapse(root, &arguments)
    };
    for (sentence, code, parts) in [
        (
            r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":1}}"#,
            0,
            &["grammar    passed", "scope      passed"][..],
        ),
        (
            r#"{"name":"fs_delete","arguments":{"path":"/data/a"}}"#,
            6,
            &["label      passed                            destructive after reading [301]"],
        ),
        (
            r#"{"name":"clock_read","arguments":{}}"#,
            6,
            &["capability not granted [201]", "add it to `primitives`"],
        ),
        ("{}", 6, &["grammar    malformed [101]", "scope      -"]),
    ] {
        let checked = check(sentence, &[]);
        assert_eq!(checked.status.code(), Some(code), "{sentence}: {}", err(&checked));
        for part in parts {
            assert!(out(&checked).contains(part), "{part}: {}", out(&checked));
        }
    }
    let checked = check(r#"{"name":"fs_delete","arguments":{"path":"/data/a"}}"#, &["--json"]);
    let object: Value = serde_json::from_str(&out(&checked)).unwrap();
    assert_eq!(object["before_reading"][2]["passed"], true);
    assert_eq!(object["after_reading"][2]["code"], 301);
    assert!(!root.join("synapse").exists(), "nothing is recorded");
}
