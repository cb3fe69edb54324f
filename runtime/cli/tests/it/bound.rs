//! What an installed package asks for at run time beyond its approval, and what is said of it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::guest::guest;
use crate::packages::{changed, digest, folder, installed, records, shown, text};
use crate::{err, out, synapse};

const SAYS: [&str; 5] = [
    r#"{"name":"fs_delete","arguments":{"path":"/data/a.md"}}"#,
    r#"{"name":"fs_read","arguments":{"path":"/data/b/c.md","offset":0,"length":9}}"#,
    r#"{"name":"clock_read","arguments":{}}"#,
    r#"{"name":"fs_list","arguments":{"path":"/data/a","after":"","limit":9}}"#,
    r#"{"name":"net_http_get","arguments":{"url":"https://example.org/","headers":{}}}"#,
];

const ASKS: [&str; 5] = [
    "primitive = \"fs_read\"",
    "primitive = \"fs_list\"",
    "primitive = \"clock_read\"",
    "primitive = \"net_http_get\"",
    "path = \"/data/a/**\"\nrights = [\"list\", \"read\"]",
];

/// What `synapse why` says of each decision of the last run, in lines and as an object.
fn whys(root: &Path) -> Vec<(String, Value)> {
    let decided = records(root).into_iter().filter(|record| record["kind"] == "decision");
    let why = |more: &[&str]| out(&synapse(&root.join("state"), &[&["why"], more].concat()));
    decided
        .map(|record| {
            let number = record["record"].to_string();
            let object = serde_json::from_str(&why(&[&number, "--json"])).unwrap();
            (why(&[&number]), object)
        })
        .collect()
}

#[test]
fn a_refusal_names_what_the_manifest_lacks_and_the_approval() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&SAYS), &ASKS);
    installed(root, &package);
    // All but the clock is agreed to, and of the folders nothing is listed.
    let state = root.join("state");
    assert!(synapse(&state, &["revoke", "reader", "clock_read"]).status.success());
    fs::create_dir_all(root.join("notes/a")).unwrap();
    let notes = root.join("notes");
    let run = || {
        let ran = synapse(&state, &["run", "reader", "go", "--dir", text(&notes)]);
        assert!(ran.status.success(), "{}", err(&ran));
    };
    run();
    let approval = shown(root)["approval"].clone();
    let told = whys(root);
    let lacks = |number: usize, part: &str| {
        let (lines, object) = &told[number];
        assert!(lines.contains("bound by reader 1.0.0, approved 2"), "{lines}");
        assert_eq!(object["approval"]["grant"], approval);
        let line = lines.lines().find_map(|line| line.strip_prefix("lacks    "));
        assert_eq!(object["lacks"].as_str(), line, "{lines}");
        assert!(line.unwrap_or("-").contains(part), "{part}\n{lines}");
    };
    lacks(0, "a capability in its manifest: primitive = \"fs_delete\"");
    lacks(
        1,
        "an entry in its manifest that lets fs_read reach \"/data/b/c.md\": out of scope [401]",
    );
    lacks(2, "nothing: its manifest asks for this");
    lacks(3, "-");
    lacks(4, "an entry in its manifest that lets net_http_get reach \"https://example.org/\"");

    // Of a version that is gone nobody says what it asked for.
    assert!(synapse(&state, &["remove", "reader"]).status.success());
    let (lines, _) = &whys(root)[0];
    assert!(lines.contains("lacks    not known: this version"), "{lines}");
    // A run of an agent that came in no package is bounded by no approval.
    let (agent, grant) = (root.join("src/reader.wasm"), root.join("one.toml"));
    fs::write(&grant, "version = 1\nprimitives = [\"clock_read\"]\n").unwrap();
    let ran = synapse(&state, &["run", text(&agent), "go", "--grant", text(&grant)]);
    assert!(ran.status.success(), "{}", err(&ran));
    let (lines, object) = &whys(root)[0];
    assert!(!lines.contains("bound by") && !lines.contains("lacks"), "{lines}");
    assert_eq!((&object["approval"], &object["lacks"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_package_that_comes_with_synapse_is_known_by_its_name() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let state = root.join("state");
    let package = folder(root, "src", &guest(&[]), &["primitive = \"clock_read\""]);
    let share = root.join("share/synapse/packages");
    fs::create_dir_all(&share).unwrap();
    let call = |arguments: &[&str]| {
        let mut command = crate::command(&state, arguments);
        command.env("XDG_DATA_HOME", root.join("share")).current_dir(root).output().unwrap()
    };
    let missing = call(&["install", "reader"]);
    assert_eq!(missing.status.code(), Some(1));
    for part in ["no package of that name is in", "share/synapse/packages", "cargo xtask packages"]
    {
        assert!(err(&missing).contains(part), "{part}\n{}", err(&missing));
    }
    let build = |package: &Path| {
        let file = share.join("reader.synapse");
        assert!(call(&["package", "build", text(package), "-o", text(&file)]).status.success());
    };
    build(&package);
    let inspected = out(&call(&["package", "inspect", "reader"]));
    let first = digest(root, &package);
    assert!(inspected.contains(&first), "{inspected}");
    fs::write(root.join("grant.toml"), out(&call(&["package", "grant", "reader"]))).unwrap();
    let done = call(&["install", "reader", "--accept", &first, "--grant", "grant.toml"]);
    assert!(done.status.success(), "{}", err(&done));
    assert!(shown(root)["source"].as_str().unwrap().ends_with("packages/reader.synapse"));

    // A newer one is found where the first one came from.
    changed(&package, "1.0.0", "1.1.0");
    build(&package);
    let mut upgrade = crate::command(&state, &["upgrade", "reader"]);
    let done = upgrade.current_dir(root).output().unwrap();
    assert!(done.status.success(), "{}", err(&done));
    assert_eq!(shown(root)["version"], "1.1.0");
    // What has the name here is meant before it.
    fs::create_dir(root.join("reader")).unwrap();
    let here = call(&["install", "reader"]);
    assert!(err(&here).contains("manifest.toml"), "{}", err(&here));
}
