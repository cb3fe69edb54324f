//! `synapse undo`, on what a guest of three lines did.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::{err, out, synapse};

const GRANT: &str = r#"
version = 1
primitives = ["fs_write", "fs_edit", "fs_move", "fs_delete"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
"#;

/// A guest that says these sentences, whatever it is answered.
fn guest(sentences: &[&str]) -> Vec<u8> {
    let (mut data, mut calls, mut at) = (String::new(), String::new(), 8192);
    for sentence in sentences {
        let quoted = sentence.replace('"', "\\22");
        data.push_str(&format!("(data (i32.const {at}) \"{quoted}\")"));
        let length = sentence.len();
        calls.push_str(&format!(
            "(call $door (i32.const {at}) (i32.const {length}) (i32.const 512))"
        ));
        at += length;
    }
    wat::parse_str(format!(
        r#"(component
          (import "synapse-call" (func $door
            (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
          (core module $libc
            (memory (export "memory") 1)
            (global $top (mut i32) (i32.const 1024))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
              global.get $top
              (global.set $top (i32.add (global.get $top) (local.get 3)))))
          (core instance $libc (instantiate $libc))
          (core func $lowered (canon lower (func $door)
            (memory $libc "memory") (realloc (func $libc "realloc"))))
          (core module $main
            (import "libc" "memory" (memory 1))
            (import "host" "door" (func $door (param i32 i32 i32)))
            {data}
            (func (export "turn") (param i32 i32) (result i32)
              {calls}
              (i32.store8 (i32.const 512) (i32.const 0))
              (i32.store (i32.const 516) (i32.const 0))
              (i32.store (i32.const 520) (i32.const 0))
              i32.const 512))
          (core instance $main (instantiate $main
            (with "libc" (instance $libc))
            (with "host" (instance (export "door" (func $lowered))))))
          (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
            (canon lift (core func $main "turn")
              (memory $libc "memory") (realloc (func $libc "realloc"))))
          (export "turn" (func $turn)))"#
    ))
    .unwrap()
}

const SENTENCES: [&str; 6] = [
    r#"{"name":"fs_delete","arguments":{"path":"/data/old"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/new/a.md","content":"made","mode":"create"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/b.md","content":"agent","mode":"replace"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/c.md","content":" more","mode":"append"}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/data/c.md","to":"/data/moved/c.md"}}"#,
    r#"{"name":"fs_edit","arguments":{"path":"/data/b.md","old":"agent","new":"edited"}}"#,
];

pub(crate) struct World {
    root: tempfile::TempDir,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl World {
    /// A folder after such a guest has run in it.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (folder, agent) = (root.path().join("notes"), root.path().join("busy"));
        fs::create_dir_all(folder.join("old/deep")).unwrap();
        fs::create_dir(&agent).unwrap();
        for name in ["b.md", "c.md", "old/x", "old/deep/y"] {
            fs::write(folder.join(name), format!("{name} as it was")).unwrap();
        }
        fs::write(agent.join("busy.wasm"), guest(&SENTENCES)).unwrap();
        fs::write(agent.join("grant.toml"), GRANT).unwrap();
        let before = tree(&folder);
        let world = Self { root, before };
        let dir = format!("{}=/data", folder.display());
        let ran = world.synapse(&["run", agent.to_str().unwrap(), "--dir", &dir]);
        assert!(err(&ran).contains("6 calls, refused: 0, failed: 0"), "{}", err(&ran));
        assert_eq!(fs::read_to_string(folder.join("moved/c.md")).unwrap(), "c.md as it was more");
        assert!(!folder.join("old").exists());
        world
    }

    pub(crate) fn synapse(&self, arguments: &[&str]) -> std::process::Output {
        synapse(&self.root.path().join("state"), arguments)
    }

    pub(crate) fn note(&self, name: &str) -> PathBuf {
        self.root.path().join("notes").join(name)
    }

    fn now(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        tree(&self.note(""))
    }
}

fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let bytes = if path.is_dir() {
                left.push(path.clone());
                b"directory".to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(path, bytes);
        }
    }
    found
}

#[test]
fn an_undone_run_leaves_the_folder_as_it_was() {
    let world = World::new();
    let after = world.now();
    let looked = world.synapse(&["undo", "--dry-run"]);
    assert_eq!(looked.status.code(), Some(0), "{}", err(&looked));
    let plan = out(&looked);
    for told in
        ["/data/old comes back", "/data/moved/c.md goes back to /data/c.md", "would be undone"]
    {
        assert!(plan.contains(told), "`{told}`: {plan}");
    }
    assert_eq!(world.now(), after, "a look changes nothing");

    let asked = world.synapse(&["undo"]);
    assert_eq!(asked.status.code(), Some(1));
    assert!(err(&asked).contains("--yes"), "{}", err(&asked));
    assert_eq!(world.now(), after, "nobody was asked");

    let undone = world.synapse(&["undo", "latest", "--yes"]);
    assert_eq!(undone.status.code(), Some(0), "{}{}", out(&undone), err(&undone));
    assert_eq!(world.now(), world.before);
    let again = world.synapse(&["undo", "--yes"]);
    assert_eq!(out(&again), "there is nothing to undo\n");
}

#[test]
fn one_record_is_undone_alone_and_what_was_changed_since_stays() {
    let world = World::new();
    let lines = out(&world.synapse(&["undo", "--dry-run", "--json"]));
    let steps: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = steps.last().unwrap();
    assert_eq!((&summary["type"], &summary["failed"]), (&"summary".into(), &0.into()));
    let record = |operation: &str| {
        let step = steps.iter().find(|step| step["operation"] == operation).unwrap();
        step["record"].as_u64().unwrap().to_string()
    };
    let one = world.synapse(&["undo", &record("edit"), "--yes"]);
    assert!(one.status.success(), "{}", err(&one));
    assert_eq!(fs::read(world.note("b.md")).unwrap(), b"agent");
    assert!(!world.note("old").exists(), "the rest stays done");

    fs::write(world.note("b.md"), "mine").unwrap();
    let rest = world.synapse(&["undo", "--yes"]);
    assert!(rest.status.success(), "{}", err(&rest));
    let beside = format!("b (before record {}).md", record("replace"));
    assert!(out(&rest).contains(&beside), "{}", out(&rest));
    assert_eq!(fs::read(world.note("b.md")).unwrap(), b"mine");
    assert_eq!(fs::read(world.note(&beside)).unwrap(), b"b.md as it was");
    assert!(world.note("old/deep/y").exists());
}

#[test]
fn what_cannot_be_undone_is_told_and_nothing_is_touched() {
    let world = World::new();
    let runs = world.root.path().join("state/synapse/runs");
    let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let going_on = File::open(run.join("log")).unwrap();
    going_on.try_lock().unwrap();
    let said = err(&world.synapse(&["undo", "--yes"]));
    assert!(said.contains("still going on"), "{said}");
    drop(going_on);

    let after = world.now();
    fs::rename(world.note(""), world.root.path().join("aside")).unwrap();
    fs::create_dir(world.note("")).unwrap();
    let gone = world.synapse(&["undo", "--yes"]);
    assert_eq!(gone.status.code(), Some(4), "{}", err(&gone));
    assert!(out(&gone).contains("its folder is gone or is another one"), "{}", out(&gone));
    assert!(world.now().is_empty(), "another folder of that name is not touched");
    fs::remove_dir(world.note("")).unwrap();
    fs::rename(world.root.path().join("aside"), world.note("")).unwrap();
    assert_eq!(world.now(), after);
    assert!(world.synapse(&["undo", "--yes"]).status.success());
    assert_eq!(world.now(), world.before);

    fs::write(run.join("journal/index"), "{\"synapse-journal\":2}\n").unwrap();
    let said = err(&world.synapse(&["undo", "--yes"]));
    assert!(said.contains("no header of version 1"), "{said}");
    let said = err(&world.synapse(&["undo", "/nowhere", "--yes"]));
    assert!(said.contains("name the directory of a run"), "{said}");
}
