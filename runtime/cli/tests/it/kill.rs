//! `synapse run`, killed at any point: what it did is recorded, and is whole.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use synapse_kernel::record::{Kind, tag};
use synapse_kernel::verify::{Broken, Reader};

use crate::guest::{ROUND, guest_in_rounds};
use crate::undo::tree;
use crate::{command, err, out, synapse};

/// As many seeded kills as the project promises.
const KILLS: u64 = 200;

const GRANT: &str = r#"
version = 1
primitives = ["fs_write", "fs_edit", "fs_move", "fs_delete"]
[[paths]]
path = "/data/**"
rights = ["write", "delete"]
[budget]
calls = 1000000
"#;

/// One round each. Who has edited has read, and may not delete any more.
const DELETES: [&str; 6] = [
    r#"{"name":"fs_delete","arguments":{"path":"/data/kept.md"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/kept.md","content":"000000","mode":"create"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/new/000000","content":"made","mode":"create"}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/data/new/000000","to":"/data/moved/000000"}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/data/moved/000000"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/page","content":"000000","mode":"replace"}}"#,
];
const EDITS: [&str; 5] = [
    r#"{"name":"fs_write","arguments":{"path":"/data/new/000000","content":"made","mode":"create"}}"#,
    r#"{"name":"fs_edit","arguments":{"path":"/data/new/000000","old":"made","new":"edited"}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/data/new/000000","to":"/data/moved/000000"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/page","content":"000000","mode":"replace"}}"#,
    APPEND,
];
const APPEND: &str =
    r#"{"name":"fs_write","arguments":{"path":"/data/log","content":" 000000","mode":"append"}}"#;

fn sentence(steps: &[&str], step: usize) -> String {
    steps[step % steps.len()].replace(ROUND, &format!("{:06}", step / steps.len()))
}

fn is_destructive(sentence: &str) -> bool {
    sentence.contains("fs_delete")
}

/// What a sentence does, to the files as they should be.
fn take(files: &mut BTreeMap<String, String>, sentence: &str) {
    let call: Value = serde_json::from_str(sentence).unwrap();
    let argument = |name: &str| {
        let text = call["arguments"][name].as_str().unwrap();
        text.strip_prefix("/data/").unwrap_or(text).to_owned()
    };
    match call["name"].as_str().unwrap() {
        "fs_delete" => drop(files.remove(&argument("path")).unwrap()),
        "fs_move" => {
            let moved = files.remove(&argument("from")).unwrap();
            files.insert(argument("to"), moved);
        }
        "fs_edit" => {
            let file = files.get_mut(&argument("path")).unwrap();
            *file = file.replace(&argument("old"), &argument("new"));
        }
        _ if argument("mode") == "append" => {
            files.get_mut(&argument("path")).unwrap().push_str(&argument("content"));
        }
        _ => drop(files.insert(argument("path"), argument("content"))),
    }
}

fn fill(folder: &Path) -> BTreeMap<String, String> {
    let files = ["kept.md", "log", "page"].map(|name| (name.to_owned(), format!("my own {name}")));
    for (name, text) in &files {
        fs::write(folder.join(name), text).unwrap();
    }
    files.into()
}

/// The files as they are, but for what is Synapse's own.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let found = tree(folder).into_iter().filter(|(path, _)| path.is_file());
    let named = found.map(|(path, bytes)| {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        (name, String::from_utf8(bytes).unwrap())
    });
    named.filter(|(name, _)| !name.contains(".synapse-")).collect()
}

/// A run that was killed.
struct Killed {
    root: tempfile::TempDir,
    /// Record and age, at the kill, of each call that was told.
    told: Vec<(u64, Duration)>,
}

impl Killed {
    /// Runs a guest of these steps, and kills it this long after it was started,
    /// or after its first call was told.
    fn run(
        steps: &[&str],
        pause: u32,
        after: Duration,
        calling: bool,
    ) -> (Self, BTreeMap<String, String>) {
        let root = tempfile::TempDir::new_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (folder, agent) = (root.path().join("notes"), root.path().join("busy"));
        for made in [&folder, &agent] {
            fs::create_dir(made).unwrap();
        }
        let before = fill(&folder);
        fs::write(agent.join("busy.wasm"), guest_in_rounds(steps, pause)).unwrap();
        fs::write(agent.join("grant.toml"), GRANT).unwrap();
        let dir = format!("{}=/data", folder.display());
        let arguments = ["run", agent.to_str().unwrap(), "--dir", &dir, "--json"];
        let mut run = command(&root.path().join("state"), &arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut told = Vec::new();
        if calling {
            told.push((record(&lines.next().unwrap()), Instant::now()));
        }
        let reader = thread::spawn(move || {
            // The last one may be cut short by the kill.
            told.extend(
                lines
                    .filter(|line| line.ends_with('}'))
                    .map(|line| (record(&line), Instant::now())),
            );
            told
        });
        thread::sleep(after);
        let now = Instant::now();
        run.kill().unwrap();
        assert!(!run.wait().unwrap().success(), "it ended by itself");
        let told = reader.join().unwrap().into_iter();
        let told = told.map(|(record, at)| (record, now.saturating_duration_since(at))).collect();
        (Self { root, told }, before)
    }

    fn log(&self) -> Vec<u8> {
        let runs = fs::read_dir(self.root.path().join("state/synapse/runs"));
        let run = runs.ok().and_then(|mut runs| runs.next()).map(|run| run.unwrap().path());
        run.and_then(|run| fs::read(run.join("log")).ok()).unwrap_or_default()
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("notes")
    }
}

fn record(line: &str) -> u64 {
    let call: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&call["type"], &call["code"]), (&"call".into(), &0.into()), "{call}");
    call["record"].as_u64().unwrap()
}

/// What a log that was cut off anywhere tells: the number of each decision, and
/// of the first record that is missing.
fn decisions(log: &[u8], steps: &[&str], seed: u64) -> (Vec<u64>, u64) {
    let (mut decided, mut ended, mut next) = (Vec::new(), Vec::new(), 0);
    for record in Reader::new(log) {
        let record = match record {
            Ok(record) => record,
            Err(Broken::Torn(_)) => break,
            Err(Broken::Header) if log.is_empty() => break,
            Err(broken) => unreachable!("seed {seed}: {broken:?}"),
        };
        assert_eq!(record.sequence, next, "seed {seed}");
        next += 1;
        match record.kind {
            Kind::Decision => {
                let told = record.field(tag::SENTENCE).unwrap();
                let own = sentence(steps, decided.len());
                assert_eq!((told, record.code), (own.as_bytes(), 0), "seed {seed}: one an attempt");
                decided.push(record.sequence);
            }
            Kind::Outcome => {
                assert_eq!(record.code, 0, "seed {seed}");
                ended.push(record.cause.unwrap());
            }
            _ => {}
        }
    }
    assert!(decided.starts_with(&ended), "seed {seed}: one outcome for each, in order");
    assert!(decided.len() <= ended.len() + 1, "seed {seed}");
    (decided, next)
}

#[test]
fn i3_i16_a_run_killed_anywhere_is_recorded_and_whole_and_can_be_undone() {
    let (mut calls, mut ahead, mut running) = (0, 0, 0);
    for seed in 0..KILLS {
        let wait = Duration::from_micros(seed * 7919 % 15_000);
        let steps: &[&str] = if seed % 2 == 0 { &DELETES } else { &EDITS };
        let (killed, before) = Killed::run(steps, 1, wait, seed % 8 > 0);
        let (decided, _) = decisions(&killed.log(), steps, seed);
        calls += decided.len();
        running += usize::from(!killed.told.is_empty());

        // The folder is as a step left it: the last one recorded, the one before it, or one
        // ahead of the log; but none that destroys is ahead.
        let (found, mut model, mut done) = (files(&killed.folder()), before.clone(), 0);
        while done + 1 < decided.len() || found != model {
            let next = sentence(steps, done);
            let ahead = done >= decided.len();
            assert!(!(ahead && is_destructive(&next)), "seed {seed}: {done} {found:?}");
            take(&mut model, &next);
            done += 1;
        }
        ahead += done.saturating_sub(decided.len());
        for ((record, _), step) in killed.told.iter().zip(0..) {
            let recorded = decided.contains(record) || !is_destructive(&sentence(steps, step));
            assert!(recorded, "seed {seed}: {record} was told of");
        }

        if decided.is_empty() && found == before {
            continue;
        }
        let undone = synapse(&killed.root.path().join("state"), &["undo", "--yes"]);
        assert!(undone.status.success(), "seed {seed}: {}{}", out(&undone), err(&undone));
        assert_eq!(files(&killed.folder()), before, "seed {seed}");
    }
    println!("{running} of {KILLS} killed in a call; {calls} calls, {ahead} ahead of their record");
    assert!(running > 150 && calls > 1000, "{running} {calls}");
}

/// How late a thread may wake on a machine that does other things too.
const LATE: Duration = Duration::from_millis(250);

#[test]
fn a_killed_run_loses_no_record_that_is_older_than_100_ms() {
    let mut oldest = Duration::ZERO;
    for seed in 0..5 {
        // Slow, and none of it destroys: no record is written because of those after it.
        let append = &[APPEND];
        let wait = Duration::from_millis(700 + seed * 53);
        let (killed, _) = Killed::run(append, 20_000_000, wait, true);
        let (_, missing) = decisions(&killed.log(), append, seed);
        assert!(killed.told.iter().any(|(_, age)| *age > LATE), "{:?}", killed.told);
        let lost = killed.told.iter().filter(|(record, _)| *record >= missing);
        oldest = oldest.max(lost.map(|(_, age)| *age).max().unwrap_or_default());
    }
    println!("the oldest record that was lost: {oldest:?}");
    assert!(oldest < Duration::from_millis(100) + LATE, "{oldest:?}");
}
