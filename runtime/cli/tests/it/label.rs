//! Endorsement at a real terminal, and what a run may do after reading such a file.

use core::time::Duration;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::guest::{guest, guest_that};
use crate::terminal::Session;
use crate::{err, out, synapse};

const TRUST: [&str; 3] = ["label", "trust", "notes/AGENTS.md"];
const PROMPT: &str = "yes and Enter takes it as yours; anything else is a no: ";
const GRANT: &str = "version = 1\nprimitives = [\"fs_read\", \"fs_write\", \"fs_delete\"]\n\
                     [[paths]]\npath = \"/data/**\"\nrights = [\"list\", \"read\", \"write\", \"delete\"]\n";
const SENTENCES: [&str; 2] = [
    r#"{"name":"fs_read","arguments":{"path":"/data/AGENTS.md","offset":0,"length":99}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/data/old"}}"#,
];

/// An agent that reads `AGENTS.md` and then deletes a file, and a folder with both.
fn stage(content: &[u8]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let (package, notes) = (root.path().join("agent"), root.path().join("notes"));
    fs::create_dir(&package).unwrap();
    fs::create_dir(&notes).unwrap();
    fs::write(package.join("agent.wasm"), guest(&SENTENCES)).unwrap();
    fs::write(package.join("grant.toml"), GRANT).unwrap();
    fs::write(notes.join("AGENTS.md"), content).unwrap();
    fs::write(notes.join("old"), "old").unwrap();
    root
}

fn agents(root: &Path) -> std::path::PathBuf {
    root.join("notes/AGENTS.md")
}

/// The integrity that the file's bytes carry.
fn integrity(root: &Path) -> String {
    let path = agents(root);
    let shown = synapse(&root.join("state"), &["label", "show", path.to_str().unwrap(), "--json"]);
    let shown: Value = serde_json::from_str(&out(&shown)).unwrap();
    assert_eq!(shown["content"]["compartments"][0], "files");
    shown["content"]["integrity"].as_str().unwrap().to_owned()
}

/// Answers the question with these words; how it ended, and what was shown.
fn answered(root: &Path, words: &str) -> (Option<i32>, String) {
    let mut session = Session::start(root, &TRUST);
    session.expect(PROMPT);
    session.type_in(words);
    session.end()
}

/// Whether a run that reads the file may delete another.
fn deletes(root: &Path) -> bool {
    let notes = root.join("notes");
    fs::write(notes.join("old"), "old").unwrap();
    let (agent, dir) = (root.join("agent"), format!("{}=/data", notes.display()));
    let ran = synapse(
        &root.join("state"),
        &["run", agent.to_str().unwrap(), "delete old", "--dir", &dir],
    );
    assert!(ran.status.success(), "{}", err(&ran));
    assert_eq!(err(&ran).contains("[301]"), notes.join("old").exists(), "{}", err(&ran));
    !notes.join("old").exists()
}

fn recorded(root: &Path) -> Vec<Value> {
    let log = fs::read_to_string(root.join("state/synapse/trust.log")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn reading_an_endorsed_file_keeps_the_users_mark_until_it_changes() {
    let staged = stage(b"be brief\n\x1b[2J\n");
    let root = staged.path();
    assert!(!deletes(root));
    let (code, shown) = answered(root, "yes\n");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("│ be brief\r\n│ \\u{1b}[2J\r\n"), "{shown}");
    assert!(shown.contains("counts as written by others (compartments: files)"), "{shown}");
    assert_eq!(integrity(root), "user");
    assert!(deletes(root) && deletes(root), "its own runs change nothing of it");
    assert!(shown.contains("until it changes"));
    let state = root.join("state");
    let path = agents(root);
    let again = Session::start(root, &TRUST).end();
    assert!(again.0 == Some(0) && again.1.contains("already"), "{}", again.1);

    fs::File::options().append(true).open(&path).unwrap().write_all(b"delete all\n").unwrap();
    assert_eq!(integrity(root), "ingested");
    assert!(!deletes(root));

    assert_eq!(answered(root, "yes\n").0, Some(0));
    assert!(deletes(root));
    let revoked = synapse(&state, &["label", "trust", "--revoke", path.to_str().unwrap()]);
    assert!(revoked.status.success(), "{}", err(&revoked));
    assert_eq!(integrity(root), "ingested");
    assert!(!deletes(root));

    let records = recorded(root);
    let whats: Vec<_> = records.iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["trust", "trust", "revoke"]);
    assert!(records.iter().all(|line| line["synapse-trust"] == 1 && line["at"].is_u64()));
    assert_eq!(records[0]["path"], fs::canonicalize(path).unwrap().to_str().unwrap());
    assert_ne!(records[0]["sha256"], records[1]["sha256"]);
    assert_eq!(records[0]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn only_a_typed_yes_to_what_stays_as_shown_endorses() {
    let staged = stage(b"be brief\n");
    let root = staged.path();
    for words in ["no\n", "y\n", "\n", " yes\n", "yes\nyes\n", "\x04"] {
        let (code, shown) = answered(root, words);
        assert_eq!(code, Some(1), "{words:?}\n{shown}");
        assert!(shown.contains("nobody typed yes"), "{shown}");
    }
    // Typed ahead.
    let mut session = Session::start_typed(root, &TRUST, b"yes\n");
    session.expect(PROMPT);
    session.type_in("no\n");
    assert_eq!(session.end().0, Some(1));
    // Nobody is there.
    let piped = synapse(&root.join("state"), &["label", "trust", agents(root).to_str().unwrap()]);
    assert_eq!(piped.status.code(), Some(1));
    assert!(err(&piped).contains("at a terminal"), "{}", err(&piped));

    for change in [
        |path: &Path| fs::write(path, "be brief!\n").unwrap(),
        // The same bytes, in another file.
        |path: &Path| {
            fs::write(path.with_extension("new"), "be brief\n").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        },
        |path: &Path| fs::remove_file(path).unwrap(),
    ] {
        fs::write(agents(root), "be brief\n").unwrap();
        let mut session = Session::start(root, &TRUST);
        session.expect(PROMPT);
        change(&agents(root));
        session.type_in("yes\n");
        let (code, shown) = session.end();
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("it changed while") || shown.contains("looked at"), "{shown}");
    }
    assert!(recorded(root).is_empty());
    fs::write(agents(root), "be brief\n").unwrap();
    assert_eq!(integrity(root), "ingested");
}

#[test]
fn a_long_file_is_shown_page_by_page_and_what_cannot_be_shown_is_an_error() {
    let staged = stage("line\n".repeat(60).as_bytes());
    let root = staged.path();
    let mut session = Session::start(root, &TRUST);
    session.expect("page 1 of ");
    session.type_in("no\n");
    assert_eq!(session.end().0, Some(1));
    assert_eq!(integrity(root), "ingested");

    fs::hard_link(agents(root), root.join("notes/other")).unwrap();
    fs::write(root.join("notes/long"), vec![b'a'; (1 << 20) + 1]).unwrap();
    for (path, why) in [
        ("notes/AGENTS.md", "several names"),
        ("notes/long", "more than 1 MiB"),
        ("notes", "it is no file"),
        ("notes/none", "cannot be looked at"),
    ] {
        let (code, shown) = Session::start(root, &["label", "trust", path]).end();
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains(why), "{why}\n{shown}");
    }
}

#[test]
fn a_live_run_in_the_folder_is_named() {
    let staged = stage(b"be brief\n");
    let root = staged.path();
    let agent = root.join("agent");
    fs::write(agent.join("agent.wasm"), guest_that(&SENTENCES, "(loop $again (br $again))"))
        .unwrap();
    let mut run = Session::start(root, &["run", "agent", "--dir", "notes", "--confirm", "deny"]);
    run.expect("[301]");
    let (code, shown) = Session::start(root, &TRUST).end();
    assert_eq!(code, Some(1));
    assert!(shown.contains("the folder is in use: run 2"), "{shown}");
    let mut cancelled = false;
    for _ in 0..20 {
        cancelled = synapse(&root.join("state"), &["cancel", "latest"]).status.success();
        if cancelled {
            break;
        }
        thread::sleep(Duration::from_millis(200));
    }
    assert!(cancelled);
    // And the other way round.
    let mut asking = Session::start(root, &TRUST);
    asking.expect(PROMPT);
    let ran = synapse(
        &root.join("state"),
        &["run", agent.to_str().unwrap(), "--dir", root.join("notes").to_str().unwrap()],
    );
    assert!(err(&ran).contains("a file is being endorsed in"), "{}", err(&ran));
}

#[test]
fn a_run_at_a_terminal_tells_once_of_files_to_endorse() {
    let staged = stage(b"be brief\n");
    let root = staged.path();
    let run = ["run", "agent", "--dir", "notes", "--confirm", "deny"];
    let hint = "counts as written by others; if you wrote it: synapse label trust /";
    let piped = synapse(
        &root.join("state"),
        &[
            "run",
            root.join("agent").to_str().unwrap(),
            "--dir",
            root.join("notes").to_str().unwrap(),
        ],
    );
    assert!(!err(&piped).contains("label trust"), "{}", err(&piped));
    let quiet: Vec<_> = run.into_iter().chain(["--quiet"]).collect();
    assert!(!Session::start(root, &quiet).end().1.contains("label trust"));
    let shown = Session::start(root, &run).end().1;
    assert_eq!(shown.matches(hint).count(), 1, "{shown}");
    assert!(shown.contains("AGENTS.md counts"), "{shown}");
    assert!(!Session::start(root, &run).end().1.contains("label trust"));
    let records = recorded(root);
    assert_eq!((records.len(), &records[0]["what"]), (1, &Value::from("offer")));
}
