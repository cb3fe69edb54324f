//! `synapse run`, as a person types it.

use core::time::Duration;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::time::SystemTime;

use synapse_kernel::grant::Grant;

use crate::guest::guest;
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

pub(crate) const ENGINES: [&str; 2] = ["wasmtime", "wasmi"];

/// Sentences of a guest that says them one after the other: it writes what it
/// has listed, then reads it, then tries what is refused after reading.
const LISTER: [&str; 6] = [
    r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":1000},"hold":true}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/index.json","content":{"$held":1},"mode":"create"}}"#,
    r#"{"name":"fs_read","arguments":{"path":"/data/index.json","offset":0,"length":100}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/data/note-0.md"}}"#,
    r#"{"name":"fs_read","arguments":{"path":"/data/note-1.md","offset":0,"length":100}}"#,
    r#"{"name":"fs_read" "#,
];

const LISTER_GRANT: &str = r#"
version = 1
primitives = ["fs_list", "fs_read", "fs_write", "fs_delete"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
"#;

pub(crate) fn lister_package(root: &Path) {
    let package = root.join("lister");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("lister.wasm"), guest(&LISTER)).unwrap();
    fs::write(package.join("grant.toml"), LISTER_GRANT).unwrap();
}

fn package(root: &Path) {
    let folder = root.join("silent");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("silent.wasm"), wat::parse_str(SILENT).unwrap()).unwrap();
    fs::write(folder.join("grant.toml"), "version = 1\nprimitives = []\n").unwrap();
}

/// Runs the package on a folder below `root`.
fn run(root: &Path, folder: &str) -> Output {
    run_on(root, "silent", folder, "wasmtime")
}

pub(crate) fn run_on(root: &Path, agent: &str, folder: &str, engine: &str) -> Output {
    let agent = root.join(agent);
    let dir = format!("{}=/data", root.join(folder).display());
    let arguments = ["run", agent.to_str().unwrap(), "--dir", &dir, "--json", "--engine", engine];
    synapse(&root.join("state"), &arguments)
}

#[test]
fn a_run_leaves_a_log_that_verifies() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    fs::create_dir(root.path().join("notes")).unwrap();
    for engine in ENGINES {
        let ran = run_on(root.path(), "silent", "notes", engine);
        assert!(ran.status.success(), "{}", err(&ran));
        let verified = synapse(&root.path().join("state"), &["audit", "verify", "latest"]);
        assert!(verified.status.success(), "{}", err(&verified));
        assert!(out(&verified).starts_with("4 records, "), "{}", out(&verified));
    }
}

/// The calls of a task, as they are told, and the files afterwards.
type Did = (String, BTreeMap<OsString, Vec<u8>>);

/// What a task does to a fresh copy of a folder that was filled in this order, and
/// how the file system lists the copy.
fn copied(root: &Path, engine: &str, order: &[u32]) -> (Did, Vec<OsString>) {
    let folder = root.join("copy");
    fs::create_dir(&folder).unwrap();
    for number in order {
        let path = folder.join(format!("note-{}.md", number * 7919 % 101));
        let mut file = fs::File::create(path).unwrap();
        write!(file, "note {number}").unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_hours(9999)).unwrap();
    }
    let listed = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let ran = run_on(root, "lister", "copy", engine);
    assert!(ran.status.success(), "{}", err(&ran));
    let calls = out(&ran).lines().filter(|line| line.contains(r#""call""#)).collect();
    let files = fs::read_dir(&folder).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name(), fs::read(entry.path()).unwrap())
    });
    let files = files.collect();
    fs::remove_dir_all(&folder).unwrap();
    ((calls, files), listed)
}

#[test]
fn the_same_task_on_two_copies_decides_and_leaves_the_same_on_both_engines() {
    // A file system in memory lists by age, one that hashes names always alike.
    let memory = tempfile::TempDir::new_in("/dev/shm");
    let by_age = memory.is_ok();
    let root = memory.or_else(|_| tempfile::tempdir()).unwrap();
    lister_package(root.path());

    let order: Vec<u32> = (0..40).collect();
    let ((calls, files), listed) = copied(root.path(), "wasmtime", &order);
    assert_eq!(calls.matches(r#""call""#).count(), LISTER.len(), "{calls}");
    for told in ["\"code\":0", "\"code\":301", "\"code\":101"] {
        assert!(calls.contains(told), "{told}: {calls}");
    }
    assert_eq!(files.len(), order.len() + 1);
    assert!(files[OsStr::new("index.json")].starts_with(b"[{"));
    let shuffled: Vec<u32> = order.iter().map(|number| (number * 17 + 5) % 40).collect();
    for engine in ENGINES {
        let (again, shuffled) = copied(root.path(), engine, &shuffled);
        assert!(!by_age || shuffled != listed, "both copies are listed alike: {listed:?}");
        assert_eq!(again, (calls.clone(), files.clone()), "{engine}");
    }
}

/// A run of an agent that breaks at once.
pub(crate) fn on_broken_agent(root: &Path) -> Output {
    package(root);
    fs::create_dir(root.join("notes")).unwrap();
    let broken = SILENT.replace("(result i32) i32.const 512)", "(result i32) unreachable)");
    fs::write(root.join("silent/silent.wasm"), wat::parse_str(broken).unwrap()).unwrap();
    run(root, "notes")
}

#[test]
fn each_engine_stops_a_hostile_agent_and_says_why() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    fs::create_dir(root.path().join("notes")).unwrap();
    for (body, told) in [
        ("(loop $l (br $l)) unreachable", "it computed for longer than its turn allows"),
        ("call $f", "its calls nested too deeply"),
        (
            "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable",
            "it asked for more memory than its turn allows",
        ),
        ("unreachable", "a panic"),
        ("i32.const 65536", "breaks the calling convention"),
    ] {
        let hostile = SILENT.replace(
            "(param i32 i32) (result i32) i32.const 512)",
            &format!(
                "(param i32 i32) (result i32) {body})
                 (func $f (result i32) (i32.add (call $f) (i32.const 1)))"
            ),
        );
        let folder = root.path().join("silent");
        fs::write(folder.join("silent.wasm"), wat::parse_str(hostile).unwrap()).unwrap();
        let grant = "version = 1\nprimitives = []\n[budget]\nseconds = 1\nmemory = 4194304\n";
        fs::write(folder.join("grant.toml"), grant).unwrap();
        for engine in ENGINES {
            let ran = run_on(root.path(), "silent", "notes", engine);
            assert_eq!(ran.status.code(), Some(3), "{engine}: {}", err(&ran));
            assert!(out(&ran).contains(told), "{engine}, `{told}`: {}", out(&ran));
        }
    }
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
    fs::File::create(folder.join("silent.wasm")).unwrap().set_len((100 << 20) + 1).unwrap();
    let said = err(&run(root.path(), ""));
    assert!(said.contains("the component is too large"), "{said}");
    fs::remove_file(folder.join("silent.wasm")).unwrap();
    symlink("/dev/zero", folder.join("silent.wasm")).unwrap();
    let said = err(&run(root.path(), ""));
    assert!(said.contains("the component is too large"), "{said}");
}

/// A grant with a warning, which is not what the run was asked for.
const UNUSED: &str =
    "version = 1\nprimitives = []\n[[paths]]\npath = \"/data/**\"\nrights = [\"read\"]\n";

#[test]
fn warnings_about_the_grant_are_told_before_the_run() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    let grant = root.path().join("silent/grant.toml");
    fs::write(&grant, UNUSED).unwrap();
    let run = |flags: &[&str]| {
        let agent = root.path().join("silent");
        let words = [&["run", agent.to_str().unwrap()], flags].concat();
        let ran = synapse(&root.path().join("state"), &words);
        assert!(ran.status.success(), "{}", err(&ran));
        (out(&ran), err(&ran))
    };
    let told = format!("warning: right `read` has no use\n --> {}:5:11\n", grant.display());
    let (_, said) = run(&[]);
    assert!(said.starts_with(&told), "{said}");
    assert_eq!(said.matches("warning").count(), 1, "{said}");
    let (lines, said) = run(&["--json"]);
    let first = lines.lines().next().unwrap();
    assert!(first.contains(r#""type":"warning""#) && first.contains(r#""line":5"#), "{lines}");
    assert_eq!(said, "");
    assert!(!run(&["--quiet"]).1.contains("warning"));
}

#[test]
fn grant_is_refused_where_the_first_record_has_no_room_for_it() {
    let root = tempfile::tempdir().unwrap();
    package(root.path());
    let folder = root.path().join("silent");
    let grant = |entries: usize| -> String {
        let paths = (0..entries).map(|number| {
            format!(
                "[[paths]]\npath = \"/data/{number:04}/{}\"\nrights = [\"read\"]\n",
                "x".repeat(90)
            )
        });
        format!("version = 1\nprimitives = [\"fs_read\"]\n{}", paths.collect::<String>())
    };
    let most = (1..1000).find(|count| Grant::check(&grant(count + 1)).is_err()).unwrap();
    let run = |entries: usize| {
        fs::write(folder.join("grant.toml"), grant(entries)).unwrap();
        let line = "\u{1}".repeat(1000);
        let agent = folder.to_str().unwrap();
        synapse(&root.path().join("state"), &["run", agent, &line, "--quiet"])
    };
    let ran = run(most + 1);
    assert_eq!(ran.status.code(), Some(1), "{}", err(&ran));
    assert!(err(&ran).contains("the grant is too long"), "{}", err(&ran));
    assert!(!root.path().join("state/synapse/runs").exists(), "nothing ran");
    let ran = run(most);
    assert!(ran.status.success(), "{}", err(&ran));
}
