//! `synapse grant`, from a file to what people and programs read of it.

use crate::{err, out, synapse};
use serde_json::Value;
use std::fs;
use std::process::Output;

/// A folder to work in, and the command in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        synapse(self.0.path(), &[&["grant"], arguments].concat())
    }

    /// What `check` says of a text, with the file's name as `FILE`.
    fn check(&self, text: &str) -> (Option<i32>, String) {
        let file = self.path("g.toml");
        fs::write(&file, text).unwrap();
        let output = self.run(&["check", &file]);
        (output.status.code(), out(&output).replace(&file, "FILE"))
    }
}

const WRONG: &str = r#"version = 1
primitives = ["fs_raed"]
deny_hosts = ["*.example"]

[[paths]]
path = "/data/../etc"
rights = ["read"]
	[budget]
	calls = "a\u0007\u202e"
"#;

const WRONG_TOLD: &str = "\
error: primitive `fs_raed` is unknown
 --> FILE:2:15
  |
2 | primitives = [\"fs_raed\"]
  |               ^^^^^^^^^
  = a grant has no such primitive
  = the nearest is `fs_read`; use it or remove this

error: pattern `/data/../etc` is not in normal form
 --> FILE:6:8
  |
6 | path = \"/data/../etc\"
  |        ^^^^^^^^^^^^^^
  = one path has one spelling
  = write it without `.`, `..`, empty names and a last `/`

error: `calls` has the wrong type
 --> FILE:9:10
  |
9 | \\u{9}calls = \"a\\u0007\\u202e\"
  |              ^^^^^^^^^^^^^^^
  = it is an integer of 64 bits
  = write a whole number

FILE: no grant, 3 mistakes
";

const BROAD: &str = r#"version = 1
primitives = ["net_http_get"]
[[hosts]]
host = "*.com"
"#;

const BROAD_TOLD: &str = "\
warning: host `*.com` is over-broad
 --> FILE:4:8
  |
4 | host = \"*.com\"
  |        ^^^^^^^
  = anybody may have a place there, and be told what goes there
  = name the hosts that the task needs

FILE: a grant, with 1 warning
";

#[test]
fn check_shows_each_mistake_where_it_stands() {
    let folder = Folder::new();
    let (code, told) = folder.check(WRONG);
    assert_eq!(told, WRONG_TOLD);
    assert_eq!(code, Some(1));
}

#[test]
fn check_shows_warnings_and_takes_the_grant() {
    let folder = Folder::new();
    let (code, told) = folder.check(BROAD);
    assert_eq!(told, BROAD_TOLD);
    assert_eq!(code, Some(0));
    let (code, told) = folder.check("version = 1\nprimitives = []\n");
    assert_eq!((code, &*told), (Some(0), "FILE: a grant\n"));
}

#[test]
fn check_speaks_to_programs() {
    let folder = Folder::new();
    for (text, code, kinds) in [
        (WRONG, 1, &["error", "error", "error", "summary"][..]),
        (BROAD, 0, &["warning", "summary"]),
    ] {
        folder.check(text);
        let output = folder.run(&["check", "--json", &folder.path("g.toml")]);
        assert_eq!(output.status.code(), Some(code));
        let lines: Vec<Value> =
            out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().map(|line| &line["type"]).eq(kinds), "{lines:?}");
        let last = lines.last().unwrap();
        assert_eq!(last["errors"], kinds.iter().filter(|kind| **kind == "error").count());
        assert_eq!(last["warnings"], kinds.iter().filter(|kind| **kind == "warning").count());
        assert!(lines.iter().rev().skip(1).all(|line| line["line"].is_u64()), "{lines:?}");
    }
}

#[test]
fn what_cannot_be_read_is_no_grant() {
    let folder = Folder::new();
    let missing = folder.run(&["check", &folder.path("none.toml")]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(err(&missing).contains("could not be read"), "{}", err(&missing));
    fs::write(folder.path("g.toml"), b"ab\xff").unwrap();
    let binary = folder.run(&["check", &folder.path("g.toml")]);
    assert_eq!(binary.status.code(), Some(1));
    assert!(err(&binary).contains("byte 2 is not part of any character"), "{}", err(&binary));
}

const NEW: &str = r#"# What an agent may do. What is not named here is not granted.
version = 1
primitives = [
    "console_write",
    "clock_read",
    "fs_read",
    "fs_write",
    "fs_edit",
    "fs_search",
    "value_read",
    "net_http_get",
]

# Closed whatever else is granted, wherever the name stands.
deny = ["**/.env", "**/.gnupg", "**/.ssh"]

[[paths]]
path = "/in/**"
rights = ["read", "write"]

[[hosts]]
host = "example.org"
ports = [8443]
methods = ["GET"]

[budget]
calls = 10000
seconds = 20
"#;

#[test]
fn new_writes_a_grant_from_flags_and_never_over_another() {
    let folder = Folder::new();
    let file = folder.path("new.toml");
    let flags = ["--folder", "/in/", "--rights", "write,read", "--host", "example.org:8443"];
    let arguments = [&["new", &file, "--seconds", "20"], &flags[..]].concat();
    let output = folder.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(
        out(&output).replace(&file, "FILE"),
        "wrote FILE\ncheck it after a change: synapse grant check FILE\n\
         use it: synapse run AGENT TASK --dir FOLDER=/in --grant FILE\n"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), NEW);
    assert_eq!(out(&folder.run(&["check", &file])).replace(&file, "FILE"), "FILE: a grant\n");

    fs::write(&file, "mine").unwrap();
    let again = folder.run(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(err(&again).contains("is there already"), "{}", err(&again));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(fs::read_dir(folder.0.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn new_without_a_terminal_and_flags_has_the_defaults_and_warns_of_what_is_wide() {
    let folder = Folder::new();
    let plain = folder.path("plain.toml");
    assert_eq!(folder.run(&["new", &plain]).status.code(), Some(0));
    let text = fs::read_to_string(&plain).unwrap();
    assert!(text.contains("path = \"/data/**\"\nrights = [\"list\", \"read\"]\n"), "{text}");
    assert!(!text.contains("[[hosts]]"), "{text}");
    let wide = folder.run(&["new", &folder.path("wide.toml"), "--host", "*.com", "--send"]);
    assert!(out(&wide).contains("warning: host `*.com` is over-broad"), "{}", out(&wide));
    let nowhere = folder.run(&["new", &folder.path("none/g.toml")]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(err(&nowhere).contains("was not written"), "{}", err(&nowhere));
}

#[test]
fn the_schema_is_json_and_names_every_part() {
    let output = Folder::new().run(&["schema"]);
    let schema: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    for part in ["version", "primitives", "paths", "hosts", "tools", "compartments", "budget"] {
        assert!(schema["properties"][part]["description"].is_string(), "{part}");
    }
}
