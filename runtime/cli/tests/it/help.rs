//! What the command says of itself.

use crate::{err, out, synapse};
use synapse_abi::registry::REGISTRY;

#[test]
fn help_names_every_command_and_each_its_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let whole = out(&synapse(dir.path(), &["--help"]));
    let commands = [
        "new", "run", "build", "firmware", "primitives", "audit", "undo", "grant", "tools", "why",
        "secret", "check", "package", "install", "upgrade", "list", "show", "revoke", "remove",
        "bench", "sessions", "ps", "cancel", "confirm", "gc", "doctor", "completions", "man",
    ];
    for command in commands {
        assert!(whole.contains(&format!("\n  {command}")), "{whole}");
    }
    for arguments in [
        &["--help"][..],
        &["new", "--help"],
        &["run", "--help"],
        &["build", "--help"],
        &["undo", "--help"],
        &["audit", "show", "--help"],
        &["audit", "verify", "--help"],
        &["grant", "check", "--help"],
        &["grant", "new", "--help"],
        &["grant", "schema", "--help"],
        &["tools", "add", "--help"],
        &["tools", "check", "--help"],
        &["tools", "approve", "--help"],
        &["tools", "show", "--help"],
        &["tools", "diff", "--help"],
        &["tools", "list", "--help"],
        &["tools", "import", "--help"],
        &["tools", "schema", "--help"],
        &["secret", "set", "--help"],
        &["secret", "list", "--help"],
        &["secret", "remove", "--help"],
        &["why", "--help"],
        &["check", "--help"],
        &["doctor", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
        &["bench", "--help"],
        &["ps", "--help"],
        &["sessions", "list", "--help"],
        &["sessions", "show", "--help"],
        &["sessions", "resume", "--help"],
        &["cancel", "--help"],
        &["confirm", "--help"],
        &["gc", "--help"],
        &["package", "build", "--help"],
        &["package", "inspect", "--help"],
        &["package", "grant", "--help"],
        &["package", "sign", "--help"],
        &["package", "verify", "--help"],
        &["package", "keygen", "--help"],
        &["install", "--help"],
        &["upgrade", "--help"],
        &["list", "--help"],
        &["show", "--help"],
        &["revoke", "--help"],
        &["remove", "--help"],
    ] {
        let help = synapse(dir.path(), arguments);
        assert_eq!(help.status.code(), Some(0));
        assert!(out(&help).contains("Exit codes: 0"), "{arguments:?}");
    }
}

#[test]
fn a_wrong_command_line_is_2_and_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, told) in [
        (&["jump"][..], "jump"),
        (&["run"], "AGENT"),
        (&["sessions", "resume", "latest"], "LINE"),
        (&["run", "a.wasm", "--dir", "notes:ro"], "notes=/data:ro"),
        (&["run", "a.wasm", "--confirm", "never"], "possible values: ask, deny"),
        (&["audit", "verify"], "RUN"),
        (&["gc", "--older", "30s"], "such as 30d"),
        (&["grant", "new", "--folder", "notes"], "write it like /data"),
        (&["grant", "new", "--host", "A.example"], "write it like example.org"),
        (&["grant", "new", "--calls", "0"], "0 is not in 1.."),
    ] {
        let wrong = synapse(dir.path(), arguments);
        assert_eq!(wrong.status.code(), Some(2), "{arguments:?}");
        assert!(err(&wrong).contains(told), "{}", err(&wrong));
    }
}

#[test]
fn primitives_are_the_registry() {
    let dir = tempfile::tempdir().unwrap();
    let table = out(&synapse(dir.path(), &["primitives"]));
    assert_eq!(table.lines().count(), REGISTRY.len() + 1);
    let lines = out(&synapse(dir.path(), &["primitives", "--json"]));
    assert_eq!(lines.lines().count(), REGISTRY.len());
    for ((row, line), object) in REGISTRY.iter().zip(table.lines().skip(1)).zip(lines.lines()) {
        assert!(line.contains(row.name), "{line}");
        let object: serde_json::Value = serde_json::from_str(object).unwrap();
        assert_eq!(object["name"], row.name);
        assert_eq!(object["id"], row.primitive.id());
        assert_eq!(object["arguments"].as_array().unwrap().len(), row.arguments.len());
    }
}
