//! Questions at a real terminal, and from another one.

use core::time::Duration;
use std::fs::{self};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::guest::guest;
use crate::terminal::{PATIENCE, Session, command};
use crate::{err, out, synapse};

const PROMPT: &str = "anything else is a no: ";
const RUN: [&str; 4] = ["run", "agent", "--dir", "notes"];
const GRANT: &str = "version = 1\nprimitives = [\"fs_read\", \"fs_write\", \"fs_delete\"]\n\
                     [[paths]]\npath = \"/data/**\"\nrights = [\"list\", \"read\", \"write\", \"delete\"]\n";
const READ: &str =
    r#"{"name":"fs_read","arguments":{"path":"/data/note.md","offset":0,"length":9}}"#;

fn delete(name: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"/data/{name}"}}}}"#)
}

/// An agent that reads a note, then says these sentences; and files that it may want gone.
fn stage(sentences: &[String]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let (package, notes) = (root.path().join("agent"), root.path().join("notes"));
    fs::create_dir(&package).unwrap();
    fs::create_dir(&notes).unwrap();
    for name in ["note.md", "a", "b", "c", "d"] {
        fs::write(notes.join(name), "text").unwrap();
    }
    let mut said = vec![READ];
    said.extend(sentences.iter().map(String::as_str));
    fs::write(package.join("agent.wasm"), guest(&said)).unwrap();
    fs::write(package.join("grant.toml"), GRANT).unwrap();
    root
}

fn has(root: &Path, name: &str) -> bool {
    root.join("notes").join(name).exists()
}

/// The records of the last run, which must be as they were written.
fn records(root: &Path) -> Vec<Value> {
    let state = root.join("state");
    let verified = synapse(&state, &["audit", "verify", "latest"]);
    assert!(verified.status.success(), "{}", err(&verified));
    assert!(out(&verified).ends_with("complete\n"), "{}", out(&verified));
    let shown = out(&synapse(&state, &["audit", "show", "latest", "--json"]));
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Kind and code of the records about deletions and writes.
fn came(records: &[Value]) -> Vec<(&str, u64)> {
    let about = records
        .iter()
        .filter(|record| record["primitive"] == "fs_delete" || record["primitive"] == "fs_write");
    about
        .map(|record| (record["kind"].as_str().unwrap(), record["code"].as_u64().unwrap()))
        .collect()
}

fn why(root: &Path, record: &Value) -> String {
    out(&synapse(&root.join("state"), &["why", &record["record"].to_string()]))
}

#[test]
fn a_yes_deletes_after_reading_and_is_explained() {
    let staged = stage(&[delete("a"), delete("b")]);
    let root = staged.path();
    let mut session = Session::start(root, &RUN);
    let shown = session.expect(PROMPT);
    for part in [
        "agent asks for a yes:",
        "fs_delete, stopped because it cannot be taken back",
        "path, written by the agent:\r\n│ /data/a\r\n",
        "there is a file of 4 bytes now",
        "what others wrote may have led to it, read in record",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    session.type_in("yes\n");
    session.expect("allowed once");
    session.expect(PROMPT);
    session.type_in("no\n");
    session.expect("not allowed");
    assert_eq!(session.end().0, Some(0));
    assert!(!has(root, "a") && has(root, "b"));

    let records = records(root);
    assert_eq!(
        came(&records),
        [("answer", 0), ("decision", 0), ("outcome", 0), ("answer", 0), ("decision", 309)]
    );
    let about = |kind: &str| {
        let found = records
            .iter()
            .filter(move |record| record["kind"] == kind && record["primitive"] == "fs_delete");
        found.cloned().collect::<Vec<_>>()
    };
    let (answers, decisions) = (about("answer"), about("decision"));
    for (answer, decision) in answers.iter().zip(&decisions) {
        assert_eq!(answer["record"], decision["cause"]);
        assert!(answer["answer"]["console"].as_str().unwrap().starts_with("/dev/pts/"), "{answer}");
        assert_eq!(why(root, answer), why(root, decision));
    }
    let told = why(root, &decisions[0]);
    for part in
        ["label      passed, by the human's yes", "answered #", "yes (at /dev/pts/", "read in  #"]
    {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let told = why(root, &decisions[1]);
    for part in [
        "refused by gate 3: declined [309]",
        "label      the human said no",
        "answered #",
        "no (at /dev/pts/",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    for before in ["y", "yes\n", "yes\nyes\nyes\n"] {
        let staged = stage(&[delete("a")]);
        let root = staged.path();
        let mut session = Session::start_typed(root, &RUN, before.as_bytes());
        session.expect("asks for a yes");
        session.type_in(before);
        session.expect(PROMPT);
        thread::sleep(Duration::from_millis(300));
        assert!(session.child.try_wait().unwrap().is_none() && has(root, "a"), "it waits still");
        session.type_in("\n");
        assert_eq!(session.end().0, Some(0));
        assert_eq!(came(&records(root)), [("answer", 0), ("decision", 309)], "{before:?}");
    }
}

#[test]
fn the_third_wrong_answer_ends_the_run() {
    let staged = stage(&["a", "b", "c", "d"].map(delete));
    let root = staged.path();
    let mut session = Session::start(root, &RUN);
    for wrong in ["y\n", "YES\n", "yes \n"] {
        session.expect(PROMPT);
        session.type_in(wrong);
        session.expect("neither yes nor no");
    }
    assert_eq!(session.end().0, Some(3));
    assert!(["a", "b", "c", "d"].iter().all(|name| has(root, name)));
    let pair = [("answer", 0), ("decision", 309)];
    assert_eq!(came(&records(root)), [pair, pair, pair].concat());
}

#[test]
fn a_file_that_changes_while_the_question_stands_stays() {
    let staged = stage(&[delete("a")]);
    let root = staged.path();
    let mut session = Session::start(root, &RUN);
    session.expect(PROMPT);
    fs::write(root.join("notes/a"), "something worth keeping").unwrap();
    session.type_in("yes\n");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0));
    assert!(screen.contains("changed [511]"), "{screen}");
    assert_eq!(came(&records(root)), [("answer", 0), ("decision", 0), ("outcome", 511)]);
    assert_eq!(fs::read_to_string(root.join("notes/a")).unwrap(), "something worth keeping");
}

/// Contents that would clear the screen, turn its text around or go on for pages.
#[test]
fn a_long_and_hostile_content_is_shown_to_its_end_and_obeyed_nowhere() {
    let mut lines: Vec<String> = (0..60).map(|line| format!("line {line}\\n")).collect();
    lines.push(
        "\\u001b[2J\\u001b]0;t\\u0007\u{202e}evil\u{2066} p\u{430}ypal \u{200b}the end".to_owned(),
    );
    let content = lines.concat();
    let write = format!(
        r#"{{"name":"fs_write","arguments":{{"path":"/data/SOUL.md","content":"{content}","mode":"create"}}}}"#
    );
    let staged = stage(&[write.clone(), write.replace("SOUL.md", "MEMORY.md")]);
    let root = staged.path();
    let mut session = Session::start(root, &RUN);
    session.expect("asks for a yes");
    for page in 1..=3 {
        session.expect(&format!("page {page} of 4; Enter shows the next"));
        session.expect(PROMPT);
        session.type_in("\n");
    }
    let last = session.expect(PROMPT);
    let end = "│ \\u{1b}[2J\\u{1b}]0;t\\u{7}\\u{202e}evil\\u{2066} p\\u{430}ypal \r\n│ \\u{200b}the end\r\n";
    assert!(last.contains(end), "{last}");
    session.type_in("yes\n");
    // Of the second, a page is enough.
    session.expect("page 1 of 4");
    session.expect(PROMPT);
    session.type_in("yes\n");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0));
    let hidden = |c: char| !matches!(c, '\n' | '\r') && synapse_kernel::render::is_hidden(c);
    assert!(!screen.chars().any(hidden), "{screen:?}");
    assert!(has(root, "SOUL.md") && !has(root, "MEMORY.md"));
    let records = records(root);
    assert_eq!(
        came(&records),
        [("answer", 0), ("decision", 0), ("outcome", 0), ("answer", 0), ("decision", 309)]
    );
}

#[test]
fn ctrl_c_at_a_question_keeps_everything() {
    let staged = stage(&[delete("a")]);
    let root = staged.path();
    let mut session = Session::start(root, &RUN);
    session.expect(PROMPT);
    let id = Pid::from_raw(session.child.id().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert_eq!(session.end().0, Some(130));
    assert!(has(root, "a"));
    let records = records(root);
    assert_eq!(came(&records), [("answer", 0), ("decision", 309)]);
    assert!(
        records.iter().any(|record| record["answer"]["said"] == "nothing before the run was ended")
    );
}

#[test]
fn nobody_is_asked_without_a_terminal_or_with_deny() {
    let staged = stage(&[delete("a")]);
    let root = staged.path();
    let piped = command(root, &RUN).stdin(Stdio::null()).output().unwrap();
    assert!(piped.status.success(), "{}", err(&piped));
    assert_eq!(came(&records(root)), [("decision", 301)]);
    let mut session = Session::start(root, &[&RUN[..], &["--confirm", "deny"]].concat());
    session.expect("destructive after reading [301]");
    assert_eq!(session.end().0, Some(0));
    assert_eq!(came(&records(root)), [("decision", 301)]);
}

#[test]
fn another_terminal_answers_for_a_run_that_has_none() {
    let staged = stage(&[delete("a"), delete("b"), delete("c")]);
    let root = staged.path();
    let none = Session::start(root, &["confirm"]).end();
    assert!(none.0 == Some(0) && none.1.contains("no run asks anything"), "{none:?}");
    let ask = [&RUN[..], &["--confirm", "ask"]].concat();
    let mut run = command(root, &ask)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for (number, answer) in [(1, "yes\n"), (2, "no\n"), (3, "?\n")] {
        waits(root, number);
        // Without a terminal it is listed and not answered.
        let listed = command(root, &["confirm"]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(listed.status.code(), Some(1), "{}", err(&listed));
        assert!(
            out(&listed).contains("agent: ") && err(&listed).contains("the question stands"),
            "{}",
            err(&listed)
        );
        let mut session = Session::start(root, &["confirm"]);
        let shown = session.expect(PROMPT);
        assert!(
            shown.contains("agent asks for a yes:") && shown.contains("fs_delete, stopped because"),
            "{shown}"
        );
        session.type_in(answer);
        let (code, screen) = session.end();
        let told = if number == 1 { "allowed once" } else { "not allowed" };
        assert!(code == Some(0) && screen.contains(told), "{screen}");
    }
    assert!(run.wait().unwrap().success());
    assert!(!has(root, "a") && has(root, "b") && has(root, "c"));
    let records = records(root);
    let pair = [("answer", 0), ("decision", 309)];
    assert_eq!(
        came(&records),
        [&[("answer", 0), ("decision", 0), ("outcome", 0)][..], &pair, &pair].concat()
    );
    let consoles = records.iter().filter_map(|record| record["answer"]["console"].as_str());
    assert!(
        consoles.clone().count() == 3
            && consoles
                .into_iter()
                .all(|console| console.starts_with("the control socket, process "))
    );
}

#[test]
fn the_first_terminal_that_answers_counts() {
    let staged = stage(&[delete("a"), delete("b")]);
    let root = staged.path();
    let mut session = Session::start(root, &RUN);
    session.expect(PROMPT);
    waits(root, 1);
    let mut other = Session::start(root, &["confirm", "latest"]);
    other.expect(PROMPT);
    other.type_in("yes\n");
    assert_eq!(other.end().0, Some(0));
    session.expect("allowed once, from another terminal");
    session.expect(PROMPT);
    waits(root, 2);
    let mut other = Session::start(root, &["confirm", "latest"]);
    other.expect(PROMPT);
    session.type_in("no\n");
    let (code, screen) = other.end();
    assert!(code == Some(1) && screen.contains("does not stand any longer"), "{screen}");
    assert_eq!(session.end().0, Some(0));
    assert!(!has(root, "a") && has(root, "b"));
}

/// Waits until the one run that goes on asks its question with this number.
fn waits(root: &Path, number: u64) {
    let began = Instant::now();
    loop {
        let ps = out(&synapse(&root.join("state"), &["ps", "--json"]));
        let run: Option<Value> = ps.lines().next().and_then(|line| serde_json::from_str(line).ok());
        if run.is_some_and(|run| run["question"] == number) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "no question {number}: {ps}");
        thread::sleep(Duration::from_millis(50));
    }
}
