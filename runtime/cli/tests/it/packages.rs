//! Packages: installed once, asked about once, and bounded from then on.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread;

use serde_json::Value;
use synapse_abi::registry::REGISTRY;

use crate::guest::{guest, guest_that};
use crate::{command, err, out, synapse};

pub(crate) const HEAD: &str = "manifest = 1\nname = \"reader\"\nversion = \"1.0.0\"\n\
    publisher = \"acme\"\ndescription = \"Reads notes\"\nlicence = \"MIT\"\n";

/// A package's folder with this agent, which asks for these entries.
pub(crate) fn folder(root: &Path, name: &str, agent: &[u8], asks: &[&str]) -> PathBuf {
    let dir = root.join(name);
    fs::create_dir_all(&dir).unwrap();
    let mut manifest = String::from(HEAD);
    for (number, entry) in asks.iter().enumerate() {
        manifest.push_str(&format!("[[capabilities]]\n{entry}\nreason = \"Reason {number}.\"\n"));
    }
    if asks.iter().any(|entry| entry.starts_with("tool")) {
        manifest.push_str("[[connectors]]\nname = \"mail\"\nreason = \"Your mail.\"\n");
    }
    fs::write(dir.join("manifest.toml"), manifest).unwrap();
    fs::write(dir.join("reader.wasm"), agent).unwrap();
    dir
}

/// Changes a text of a package's folder.
pub(crate) fn changed(dir: &Path, from: &str, to: &str) {
    let path = dir.join("manifest.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from}\n{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

fn install(root: &Path, more: &[&str]) -> Output {
    synapse(&root.join("state"), &[&["install"], more].concat())
}

/// Installs a folder's package with all that it asks for.
pub(crate) fn installed(root: &Path, package: &Path) {
    let grant = out(&synapse(&root.join("state"), &["package", "grant", text(package)]));
    fs::write(root.join("all.toml"), grant).unwrap();
    let digest = digest(root, package);
    let grant = root.join("all.toml");
    let done = install(root, &[text(package), "--accept", &digest, "--grant", text(&grant)]);
    assert!(done.status.success(), "{}", err(&done));
}

pub(crate) fn digest(root: &Path, package: &Path) -> String {
    let shown = out(&synapse(&root.join("state"), &["package", "inspect", text(package)]));
    shown.lines().find_map(|line| line.strip_prefix("digest: ")).unwrap().to_owned()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn shown(root: &Path) -> Value {
    let shown = synapse(&root.join("state"), &["show", "reader", "--json"]);
    assert!(shown.status.success(), "{}", err(&shown));
    serde_json::from_slice(&shown.stdout).unwrap()
}

pub(crate) fn records(root: &Path) -> Vec<Value> {
    let shown = out(&synapse(&root.join("state"), &["audit", "show", "latest", "--json"]));
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What came of each primitive that was called in the last run.
fn outcomes(root: &Path) -> BTreeMap<String, u64> {
    let records = records(root);
    let decided = records.iter().filter(|record| record["kind"] == "decision");
    let outcome = |record: &Value| {
        let of = records
            .iter()
            .find(|other| other["kind"] == "outcome" && other["cause"] == record["record"]);
        of.unwrap_or(record)["code"].as_u64().unwrap()
    };
    decided.map(|record| (record["primitive"].as_str().unwrap().into(), outcome(record))).collect()
}

/// One sentence for each primitive.
const EACH: [&str; 26] = [
    r#"{"name":"console_write","arguments":{"content":"hello"}}"#,
    r#"{"name":"console_ask","arguments":{"question":"well?"}}"#,
    r#"{"name":"clock_read","arguments":{}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/new.md","content":"x","mode":"create"}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/data/new.md","to":"/data/moved.md"}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/data/moved.md"}}"#,
    r#"{"name":"fs_edit","arguments":{"path":"/data/note.md","old":"text","new":"words"}}"#,
    r#"{"name":"fs_read","arguments":{"path":"/data/note.md","offset":0,"length":9}}"#,
    r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":9}}"#,
    r#"{"name":"fs_search","arguments":{"path":"/data","text":"words","offset":0}}"#,
    r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":1}}"#,
    r#"{"name":"value_pick","arguments":{"value":{"$held":1},"selector":{"$select":1,"take":"name"}}}"#,
    r#"{"name":"model_generate","arguments":{"prompt":[{"role":"user","text":"hi"}],"grammar":"text","max_tokens":1}}"#,
    r#"{"name":"agent_spawn","arguments":{"package":"tidy","task":"go","grant":{}}}"#,
    r#"{"name":"agent_wait","arguments":{"agent":1,"timeout":1}}"#,
    r#"{"name":"channel_create","arguments":{"kind":"bytes"}}"#,
    r#"{"name":"channel_write","arguments":{"channel":1,"content":"x"}}"#,
    r#"{"name":"channel_read","arguments":{"channel":1,"max":1,"timeout":1}}"#,
    r#"{"name":"channel_close","arguments":{"channel":1}}"#,
    r#"{"name":"channel_grant","arguments":{"channel":1,"to":2}}"#,
    r#"{"name":"net_listen","arguments":{"host":"127.0.0.1","port":8000}}"#,
    r#"{"name":"net_accept","arguments":{"listener":1,"timeout":1}}"#,
    r#"{"name":"net_http_get","arguments":{"url":"https://example.org/","headers":{}}}"#,
    r#"{"name":"net_http_post","arguments":{"url":"https://example.org/","headers":{},"content":"x"}}"#,
    r#"{"name":"tool_use","arguments":{"tool":"mail/read","arguments":{}}}"#,
    r#"{"name":"tool_commit","arguments":{"tool":"mail/send","arguments":{}}}"#,
];

const PLACES: [&str; 5] = [
    "path = \"/data/**\"\nrights = [\"list\", \"read\", \"write\", \"delete\"]",
    "host = \"example.org\"\nmethods = [\"GET\", \"POST\"]",
    "host = \"127.0.0.1\"\nports = [8000]\nmethods = [\"LISTEN\"]",
    "tool = \"mail/read\"\neffect = \"read\"",
    "tool = \"mail/send\"",
];

#[test]
fn each_primitive_comes_to_what_was_agreed_to() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let primitives: Vec<String> =
        REGISTRY.iter().map(|row| format!("primitive = \"{}\"", row.name)).collect();
    let asks: Vec<&str> = primitives.iter().map(String::as_str).chain(PLACES).collect();
    let agent = guest(&EACH);
    let package = folder(root, "src", &agent, &asks);
    let state = root.join("state");
    let run = |agent: &str, more: &[&str]| {
        let notes = root.join("notes");
        drop(fs::remove_dir_all(&notes));
        fs::create_dir(&notes).unwrap();
        fs::write(notes.join("note.md"), "text").unwrap();
        let told = command(&state, &[&["run", agent, "--dir", text(&notes)], more].concat())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(told.status.success(), "{}", err(&told));
        outcomes(root)
    };
    installed(root, &package);
    // The door's answers to the same grant, given by hand.
    let path = root.join("alone.wasm");
    fs::write(&path, &agent).unwrap();
    let all = root.join("all.toml");
    let door = run(text(&path), &["--grant", text(&all)]);
    let full = run("reader", &[]);
    assert_eq!(full.len(), 26, "{full:?}");
    assert_eq!(full, door);
    assert!(full.values().all(|code| *code != 201), "{full:?}");
    assert_eq!((full["fs_write"], full["fs_delete"], full["fs_read"]), (0, 0, 0), "{full:?}");

    // Of each primitive alone, all others are refused.
    for row in REGISTRY {
        let grant = format!(
            "version = 1\nprimitives = [\"{}\"]\n[[paths]]\npath = \"/data/**\"\n\
             rights = [\"list\", \"read\", \"write\", \"delete\"]\n",
            row.name
        );
        let one = root.join("one.toml");
        fs::write(&one, grant).unwrap();
        let came = run("reader", &["--grant", text(&one), "--quiet"]);
        for (name, code) in &came {
            assert_eq!(*code == 201, name != row.name, "{} granted, {name}: {code}", row.name);
        }
    }

    // Nothing agreed to: nothing done.
    let nothing = root.join("nothing.toml");
    fs::write(&nothing, "version = 1\nprimitives = []\n").unwrap();
    assert!(synapse(&state, &["remove", "reader"]).status.success());
    let digest = digest(root, &package);
    let done = install(root, &[text(&package), "--accept", &digest, "--grant", text(&nothing)]);
    assert!(done.status.success(), "{}", err(&done));
    for more in [&[][..], &["--grant", text(&all)]] {
        let none = run("reader", more);
        assert!(none.len() == 26 && none.values().all(|code| *code == 201), "{none:?}");
        assert_eq!(fs::read_to_string(root.join("notes/note.md")).unwrap(), "text");
    }
}

#[test]
fn a_run_says_which_approval_bounds_it() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let agent = guest(&[r#"{"name":"clock_read","arguments":{}}"#]);
    installed(root, &folder(root, "src", &agent, &["primitive = \"clock_read\""]));
    let ran = synapse(&root.join("state"), &["run", "reader", "go"]);
    assert!(ran.status.success(), "{}", err(&ran));
    let shown = shown(root);
    let raw = out(&synapse(&root.join("state"), &["audit", "show", "latest", "--json"]));
    let start = raw.lines().next().unwrap();
    for part in [&shown["digest"], &shown["approval"], &Value::from("reader")] {
        assert!(start.contains(part.as_str().unwrap()), "{part}\n{start}");
    }
}

#[test]
fn without_a_terminal_both_the_digest_and_the_grant_are_named() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &["primitive = \"fs_read\"", PLACES[0]]);
    let state = root.join("state");
    let told = install(root, &[text(&package)]);
    let digest = digest(root, &package);
    assert_eq!(told.status.code(), Some(1));
    assert!(
        err(&told).contains(&format!("--accept {digest} --grant grant.toml")),
        "{}",
        err(&told)
    );
    let grant = root.join("grant.toml");
    let wide = "version = 1\nprimitives = [\"fs_read\", \"fs_write\"]\n";
    let other = format!("sha256:{}", "0".repeat(64));
    for (grant_text, accept, part) in [
        (wide, &digest, "more than the package asks for"),
        ("version = 1\nprimitives = []\n", &other, "you agreed to sha256:0000"),
        ("version = 1\n", &digest, "primitives"),
    ] {
        fs::write(&grant, grant_text).unwrap();
        let told = install(root, &[text(&package), "--accept", accept, "--grant", text(&grant)]);
        assert_eq!(told.status.code(), Some(1));
        assert!(err(&told).contains(part), "{}", err(&told));
    }
    for half in [&["--accept", &digest][..], &["--grant", text(&grant)]] {
        assert_eq!(install(root, &[&[text(&package)], half].concat()).status.code(), Some(2));
    }
    assert_eq!(out(&synapse(&state, &["list"])), "");
    let exact = "version = 1\nprimitives = [\"fs_read\"]\n[[paths]]\npath = \"/data/a/*\"\nrights = [\"read\"]\n";
    fs::write(&grant, exact).unwrap();
    let done = install(root, &[text(&package), "--accept", &digest, "--grant", text(&grant)]);
    assert!(done.status.success(), "{}", err(&done));
    let kept = shown(root)["grant"].as_str().unwrap().to_owned();
    assert!(kept.contains("/data/a/*") && !kept.contains("list"), "{kept}");
    let words = out(&synapse(&state, &["show", "reader"]));
    for part in ["narrowed by you; it asks for /data and everything below it", "IT WILL NEVER"] {
        assert!(words.replace("\n    ", " ").contains(part), "{part}\n{words}");
    }
}

#[test]
fn an_upgrade_asks_only_if_it_wants_more() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let asks = ["primitive = \"fs_read\"", "path = \"/data/notes/*\"\nrights = [\"read\"]"];
    let package = folder(root, "src", &guest(&[]), &asks);
    assert!(
        err(&synapse(&root.join("state"), &["upgrade", text(&package)])).contains("not installed")
    );
    installed(root, &package);
    let again = install(root, &[text(&package)]);
    assert!(again.status.success() && err(&again).contains("installed already"));
    changed(&package, "Reads notes", "Reads notes well");
    let told = err(&install(root, &[text(&package)]));
    assert!(told.contains("other bytes than the installed one"), "{told}");
    changed(&package, "1.0.0", "0.9.0");
    let told = err(&install(root, &[text(&package)]));
    assert!(told.contains("older") && told.contains("--allow-downgrade"), "{told}");
    let before = shown(root);

    for (from, to) in [
        ("/data/notes/*", "/data/notes/**"),
        ("[\"read\"]", "[\"read\", \"write\"]"),
        (
            "primitive = \"fs_read\"\nreason = \"Reason 0.\"",
            "primitive = \"fs_read\"\nreason = \"Reason 0.\"\n[[capabilities]]\nprimitive = \"fs_delete\"\nreason = \"More.\"",
        ),
        ("licence = \"MIT\"", "licence = \"MIT\"\nbudget = { calls = 100001 }"),
        (
            "licence = \"MIT\"",
            "licence = \"MIT\"\n[[capabilities]]\nhost = \"*.example.org\"\nreason = \"News.\"",
        ),
    ] {
        let wider = folder(root, "wider", &guest(&[]), &asks);
        changed(&wider, "1.0.0", "1.1.0");
        changed(&wider, from, to);
        let told = install(root, &[text(&wider)]);
        assert_eq!(told.status.code(), Some(1), "{to}");
        assert!(err(&told).contains("what nobody agreed to"), "{to}: {}", err(&told));
        assert_eq!(shown(root), before, "{to}");
    }

    let less = folder(root, "less", &guest(&[]), &asks);
    changed(&less, "1.0.0", "1.1.0");
    changed(&less, "/data/notes/*", "/data/notes/today.md");
    let done = synapse(&root.join("state"), &["upgrade", text(&less)]);
    assert!(done.status.success(), "{}", err(&done));
    assert!(err(&done).contains("no more than you agreed to"), "{}", err(&done));
    let now = shown(root);
    assert!(now["grant"].as_str().unwrap().contains("/data/notes/today.md"), "{now}");
    assert_eq!(now["version"], "1.1.0");
    // What was asked for once and given up is asked for again as anything new.
    let told = install(root, &[text(&package), "--allow-downgrade"]);
    assert!(err(&told).contains("what nobody agreed to"), "{}", err(&told));
    changed(&less, "1.1.0", "1.2.0");
    changed(&less, "acme", "other");
    let told = err(&install(root, &[text(&less)]));
    assert!(told.contains("it is of `acme`, and this one is of `other`"), "{told}");
}

#[test]
fn files_are_made_signed_and_checked() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &["primitive = \"fs_read\"", PLACES[0]]);
    let state = root.join("state");
    let (file, other, key) = (root.join("a.synapse"), root.join("b.synapse"), root.join("key"));
    let done = |arguments: &[&str]| {
        let done = synapse(&state, arguments);
        assert!(done.status.success(), "{arguments:?}: {}", err(&done));
        out(&done)
    };
    done(&["package", "build", text(&package), "-o", text(&file)]);
    done(&["package", "build", text(&package), "-o", text(&other)]);
    assert_eq!(fs::read(&file).unwrap(), fs::read(&other).unwrap());
    let unsigned = synapse(&state, &["package", "verify", text(&file)]);
    assert!(unsigned.status.code() == Some(1) && err(&unsigned).contains("not signed"));
    let public = done(&["package", "keygen", text(&key)]);
    let public = public.trim();
    done(&["package", "sign", text(&file), "--key", text(&key)]);
    assert!(done(&["package", "verify", text(&file), "--key", public]).contains(public));
    let wrong = format!("ed25519:{}", "0".repeat(64));
    let told = synapse(&state, &["package", "verify", text(&file), "--key", &wrong]);
    assert!(told.status.code() == Some(1) && err(&told).contains("not by"), "{}", err(&told));
    assert_eq!(digest(root, &file), digest(root, &other), "a signature changes no content");
    let mut bytes = fs::read(&file).unwrap();
    bytes.push(0);
    fs::write(&file, bytes).unwrap();
    let told = synapse(&state, &["package", "verify", text(&file)]);
    assert!(told.status.code() == Some(1) && err(&told).contains("behind its end"));
}

#[test]
fn what_is_installed_is_the_old_or_the_new_whenever_it_is_killed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let package = folder(root, "src", &guest(&[]), &["primitive = \"fs_read\"", PLACES[0]]);
    installed(root, &package);
    let state = root.join("state");
    let mut seen = BTreeMap::new();
    for round in 1..=24_u64 {
        let version = format!("1.0.{round}");
        let before = shown(root)["version"].as_str().unwrap().to_owned();
        let path = package.join("manifest.toml");
        let manifest = fs::read_to_string(&path).unwrap();
        let line = manifest.lines().find(|line| line.starts_with("version")).unwrap();
        let manifest = manifest.replace(line, &format!("version = \"{version}\""));
        fs::write(&path, manifest).unwrap();
        let mut child =
            command(&state, &["upgrade", text(&package)]).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(round * 2));
        drop(child.kill());
        child.wait().unwrap();
        let now = shown(root)["version"].as_str().unwrap().to_owned();
        assert!(now == before || now == version, "{before} → {version}: {now}");
        *seen.entry(now == version).or_insert(0) += 1;
    }
    // What was left over is gone after one that ends.
    changed(&package, "version = \"1.0.24\"", "version = \"2.0.0\"");
    assert!(synapse(&state, &["upgrade", text(&package)]).status.success());
    assert_eq!(fs::read_dir(state.join("synapse/packages/reader")).unwrap().count(), 2, "{seen:?}");
}

#[test]
fn what_was_changed_on_the_disk_does_not_run() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let asks = ["primitive = \"fs_read\"", "path = \"/data/a\"\nrights = [\"read\"]"];
    installed(root, &folder(root, "src", &guest(&[]), &asks));
    let dir = root.join("state/synapse/packages/reader");
    let lock = dir.join("lock.json");
    let good = fs::read_to_string(&lock).unwrap();
    let run = || err(&synapse(&root.join("state"), &["run", "reader"]));
    for (from, to, told) in [
        ("/data/a", "/data/**", "more than the package asks for"),
        ("\"version\": 1", "\"version\": 2", "does not know"),
        ("\"source\"", "\"key\": \"ed25519:00\", \"source\"", "of another package"),
        ("\"name\": \"reader\"", "\"name\": \"other\"", "another's, or damaged"),
        ("\"grant\"", "\"grants\"", "damaged"),
    ] {
        assert!(good.contains(from), "{good}");
        fs::write(&lock, good.replace(from, to)).unwrap();
        assert!(run().contains(told), "{told}: {}", run());
    }
    fs::write(&lock, &good).unwrap();
    let names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let file = names.filter(|path| path != &lock).find(|path| path.is_file()).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[600] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert!(run().contains("its bytes are others"), "{}", run());
    assert!(synapse(&root.join("state"), &["remove", "reader"]).status.success());
    assert!(!dir.exists());
}

#[test]
fn an_agent_cannot_touch_what_it_is_installed_as() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let read = r#"{"name":"fs_read","arguments":{"path":"/data/lock","offset":0,"length":9}}"#;
    let write =
        r#"{"name":"fs_write","arguments":{"path":"/data/lock","content":"x","mode":"replace"}}"#;
    let edit = r#"{"name":"fs_edit","arguments":{"path":"/data/bytes","old":"a","new":"b"}}"#;
    let asks = [
        "primitive = \"fs_read\"", "primitive = \"fs_write\"", "primitive = \"fs_edit\"", PLACES[0],
    ];
    installed(root, &folder(root, "src", &guest(&[write, edit, read]), &asks));
    let dir = root.join("state/synapse/packages/reader");
    let notes = root.join("notes");
    fs::create_dir(&notes).unwrap();
    // Under another name in its folder they are the same files.
    fs::hard_link(dir.join("lock.json"), notes.join("lock")).unwrap();
    let names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let file = names.filter(|path| !path.ends_with("lock.json")).find(|path| path.is_file());
    fs::hard_link(file.unwrap(), notes.join("bytes")).unwrap();
    let ran = synapse(&root.join("state"), &["run", "reader", "--dir", text(&notes)]);
    assert!(ran.status.success(), "{}", err(&ran));
    let came = outcomes(root);
    assert!(came.len() == 3 && came.values().all(|code| *code == 516), "{came:?}");
    shown(root);
    let own = format!("{}=/data", dir.display());
    let told = synapse(&root.join("state"), &["run", "reader", "--dir", &own]);
    assert!(err(&told).contains("Synapse's own state"), "{}", err(&told));
}

/// A run that is killed if its test does not end it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_revocation_holds_at_once() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let asks = ["primitive = \"fs_read\"", "primitive = \"clock_read\"", PLACES[0]];
    let clock = r#"{"name":"clock_read","arguments":{}}"#;
    installed(root, &folder(root, "src", &guest_that(&[clock], "(loop $on (br $on))"), &asks));
    let state = root.join("state");
    let child = command(&state, &["run", "reader", "for ever"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let goes_on = || out(&synapse(&state, &["ps"])).contains("1 call");
    for _ in 0..600 {
        if goes_on() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    assert!(goes_on(), "it has begun");
    let none = synapse(&state, &["revoke", "reader", "fs_delete"]);
    assert!(none.status.code() == Some(1) && err(&none).contains("name one of"), "{}", err(&none));
    assert!(goes_on(), "nothing was taken back");
    let taken = synapse(&state, &["revoke", "reader", "clock_read", "/data/**"]);
    assert!(taken.status.success(), "{}", err(&taken));
    assert_eq!(running.0.wait().unwrap().code(), Some(130), "the run was ended");
    let kept = shown(root)["grant"].as_str().unwrap().to_owned();
    assert!(kept.contains("fs_read") && !kept.contains("clock_read"), "{kept}");
    assert!(!kept.contains("/data"), "{kept}");
    let words = out(&synapse(&state, &["show", "reader"]));
    assert!(words.contains("OFF: see the time (clock_read)"), "{words}");
}
