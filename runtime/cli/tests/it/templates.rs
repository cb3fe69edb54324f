//! The lines that ship for npm and pytest, with the programs themselves.
//!
//! `cargo xtask servers` sees that they are there, names the folder that has pytest in
//! `SYNAPSE_SERVERS`, and runs these tests. Those for cargo and git need nothing more
//! than the project does, and stand in `exec`.

use std::env;
use std::path::PathBuf;

use crate::exec::{World, call, edit, release};
use crate::{command, err};

/// Adds a template's connector on a machine on whose path this folder stands first.
fn add(world: &World, template: &str, first: Option<PathBuf>) {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = first.clone().into_iter().chain(env::split_paths(&path));
    let path = env::join_paths(folders).unwrap();
    let mut add =
        command(&world.path("state"), &["tools", "add", template, "--template", template]);
    if let Some(environment) = first.as_deref().and_then(std::path::Path::parent) {
        add.arg("--read").arg(environment);
    }
    let added = add.env("PATH", path).output().unwrap();
    assert!(added.status.success(), "{}", err(&added));
    world.approve(template);
}

/// Runs the sentences, and says what each held value was.
fn held<const N: usize>(world: &World, tools: &[&str], sentences: &[String]) -> [String; N] {
    let sentences: Vec<&str> = sentences.iter().map(String::as_str).collect();
    let ran = world.run(tools, &sentences);
    assert!(ran.status.success(), "{}", err(&ran));
    let records = world.records();
    assert!(!records.contains("refused") && !records.contains("answer"), "{records}");
    core::array::from_fn(|number| world.held(number + 1))
}

#[test]
#[ignore = "needs the programs; `cargo xtask servers` runs it"]
fn npm_runs_the_project_s_tests_and_scripts_and_what_they_make_is_brought_back() {
    let world = World::new();
    let scripts = r#"{"test": "node --test", "build": "node build.js"}"#;
    world.put(
        "package.json",
        &format!(r#"{{"name": "sums", "version": "1.0.0", "scripts": {scripts}}}"#),
    );
    world.put("sum.js", "exports.sum = (a, b) => a - b;\n");
    let test = "require('node:test')('adds', () => \
                require('node:assert').strictEqual(require('./sum.js').sum(2, 2), 4));\n";
    world.put("sum.test.js", test);
    world.put("build.js", "require('node:fs').writeFileSync('built.txt', 'built');\n");
    let before = world.tree();
    add(&world, "npm", None);
    let sentences = [
        call("npm/test", ""),
        release(1),
        edit("sum.js", "a - b", "a + b"),
        call("npm/test", ""),
        call("npm/run", r#""script":"build""#),
        call("npm/run", r#""script":"publish""#),
    ];
    let [failed, passed, built, none] = held(&world, &["npm/test", "npm/run"], &sentences);
    assert!(failed.contains("\"status\":1,") && failed.contains("0 !== 4"), "{failed}");
    assert!(passed.contains("\"status\":0,") && passed.contains("pass 1"), "{passed}");
    assert!(built.contains("\"changed\":[\"/data/p/built.txt\"]"), "{built}");
    assert!(none.contains("Missing script"), "{none}");
    assert_eq!(world.tree()[&world.path("data/p/built.txt")], b"built");
    world.undo();
    assert!(world.tree() == before, "something has other bytes");
}

#[test]
#[ignore = "needs the programs; `cargo xtask servers` runs it"]
fn pytest_runs_all_tests_those_of_a_file_and_those_of_a_name() {
    let programs = env::var_os("SYNAPSE_SERVERS");
    let programs = programs.expect("SYNAPSE_SERVERS names no folder; use `cargo xtask servers`");
    let world = World::new();
    world.put("sums.py", "def add(a, b):\n    return a - b\n");
    world.put("conftest.py", "");
    let test = "import sums\ndef test_adds():\n    assert sums.add(2, 2) == 4\n\
                def test_is_there():\n    assert sums\n";
    world.put("tests/test_sums.py", test);
    let before = world.tree();
    add(&world, "pytest", Some(PathBuf::from(programs).join("pytest/bin")));
    let sentences = [
        call("pytest/test", ""),
        release(1),
        edit("sums.py", "a - b", "a + b"),
        call("pytest/test_path", r#""path":"tests/test_sums.py""#),
        call("pytest/test_named", r#""name":"adds""#),
    ];
    let tools = ["pytest/test", "pytest/test_path", "pytest/test_named"];
    let [failed, passed, named] = held(&world, &tools, &sentences);
    assert!(failed.contains("\"status\":1,") && failed.contains("1 failed, 1 passed"), "{failed}");
    assert!(passed.contains("\"status\":0,") && passed.contains("2 passed"), "{passed}");
    assert!(named.contains("1 passed, 1 deselected"), "{named}");
    // It leaves no caches behind.
    for answer in [&failed, &passed, &named] {
        assert!(answer.contains("\"changed\":[]"), "{answer}");
    }
    world.undo();
    assert!(world.tree() == before, "something has other bytes");
}
