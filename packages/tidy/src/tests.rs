use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use synapse_guest::reply::frame::{Form, Mark, header};
use synapse_guest::serde_json::{self, Value, json};
use synapse_guest::testing::with_door;

use super::work;

const NOW: u64 = 400 * 24 * 60 * 60 * 1000;
const DAY: u64 = NOW / 400;

/// A stand-in for the kernel: files, held values, warrants, and gate 3.
#[derive(Default)]
struct World {
    /// Path, bytes, age in days.
    files: BTreeMap<String, (Vec<u8>, u64)>,
    held: Vec<Vec<u8>>,
    warrants: Vec<(String, u64)>,
    /// Paths for which the door finds no citation.
    uncited: BTreeSet<&'static str>,
    reading: bool,
    said: String,
    sentences: Vec<String>,
}

impl World {
    fn answer(&mut self, sentence: &[u8]) -> Result<Vec<u8>, u32> {
        self.sentences.push(String::from_utf8(sentence.to_vec()).unwrap());
        let call: Value = serde_json::from_slice(sentence).map_err(|_| 101u32)?;
        let arguments = &call["arguments"];
        let (form, payload) = match call["warrant"].as_str() {
            Some(_) => (Form::Nothing, self.mint(&call)?),
            None => self.call(call["name"].as_str().unwrap_or_default(), arguments)?,
        };
        let mark = if self.reading { Mark::Ingested } else { Mark::User };
        if call["hold"] == true || form == Form::Held {
            self.held.push(payload);
            let number = self.held.len() as u64;
            return Ok([&header(Form::Held, mark)[..], &number.to_le_bytes()].concat());
        }
        self.reading |= matches!(form, Form::Bytes) || call["name"] == "fs_list";
        Ok([&header(form, mark)[..], &payload].concat())
    }

    fn mint(&mut self, call: &Value) -> Result<Vec<u8>, u32> {
        let path = match &call["arguments"]["path"] {
            Value::String(path) => path.clone(),
            selector => self.pick(selector)?,
        };
        if self.reading {
            return Err(305);
        }
        if self.uncited.contains(path.as_str()) {
            return Err(306);
        }
        self.warrants.push((path, call["uses"].as_u64().unwrap()));
        Ok(Vec::new())
    }

    /// The path of the largest file of a held listing of `/data/logs`.
    fn pick(&self, selector: &Value) -> Result<String, u32> {
        assert_eq!(selector["where"], json!([["kind", "eq", "file"]]));
        assert_eq!(
            (&selector["order"], &selector["take"]),
            (&json!(["max", "size"]), &json!("path"))
        );
        let number = usize::try_from(selector["$select"].as_u64().unwrap()).unwrap();
        let records: Vec<Value> = serde_json::from_slice(&self.held[number - 1]).unwrap();
        let files = records.iter().filter(|record| record["kind"] == "file");
        let largest = files.max_by_key(|record| record["size"].as_u64()).ok_or(519u32)?;
        Ok(format!("/data/logs/{}", largest["name"].as_str().unwrap()))
    }

    fn text(&self, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Object(object) => match (&object.get("$held"), object.get("parts")) {
                (Some(number), _) => {
                    let at = usize::try_from(number.as_u64().unwrap()).unwrap() - 1;
                    String::from_utf8(self.held[at].clone()).unwrap()
                }
                (_, parts) => {
                    let parts = parts.and_then(Value::as_array).unwrap();
                    parts.iter().map(|part| self.text(part)).collect()
                }
            },
            _ => String::new(),
        }
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Result<(Form, Vec<u8>), u32> {
        let path = self.text(&arguments["path"]);
        let nothing = (Form::Nothing, Vec::new());
        match name {
            "console_write" => {
                let said = self.text(&arguments["content"]);
                self.said.push_str(&said);
            }
            "clock_read" => {
                return Ok((Form::Json, json!({"unix_ms": NOW}).to_string().into_bytes()));
            }
            "fs_list" => return self.list(&path),
            "fs_read" => {
                let (bytes, _) = match self.files.get(&path) {
                    Some(file) => file,
                    None if self.list(&path).is_ok() => return Err(504),
                    None => return Err(502),
                };
                return Ok((Form::Bytes, bytes.clone()));
            }
            "fs_write" => {
                let content = self.text(&arguments["content"]).into_bytes();
                self.files.insert(path, (content, 0));
            }
            "fs_move" => {
                let file = self.files.remove(&self.text(&arguments["from"])).ok_or(502u32)?;
                self.files.insert(self.text(&arguments["to"]), file);
            }
            "fs_delete" => {
                let held = arguments["path"].is_object();
                if (self.reading || held) && !self.spend(&path) {
                    return Err(301);
                }
                self.files.remove(&path).ok_or(502u32)?;
            }
            "value_pick" => {
                let picked = self.pick(&arguments["selector"])?;
                return Ok((Form::Held, picked.into_bytes()));
            }
            _ => return Err(201),
        }
        Ok(nothing)
    }

    fn spend(&mut self, path: &str) -> bool {
        let covers = |of: &str| {
            let child = |folder| path.strip_prefix(folder).is_some_and(|name| !name.contains('/'));
            of == path || of.strip_suffix('*').is_some_and(child)
        };
        let found = self.warrants.iter_mut().find(|(of, uses)| *uses > 0 && covers(of));
        found.map(|(_, uses)| *uses -= 1).is_some()
    }

    fn list(&self, folder: &str) -> Result<(Form, Vec<u8>), u32> {
        let mut names = BTreeMap::new();
        for (path, (bytes, age)) in &self.files {
            let Some(rest) = path.strip_prefix(&format!("{folder}/")) else { continue };
            let (name, kind) = match rest.split_once('/') {
                Some((name, _)) => (name, "directory"),
                None => (rest, "file"),
            };
            let modified = NOW - age * DAY;
            let (size, name) = (bytes.len(), name.to_string());
            let entry = json!({"name": name, "kind": kind, "size": size, "modified": modified});
            names.insert(name, entry);
        }
        if names.is_empty() {
            return Err(502);
        }
        let entries = names.into_values().collect::<Vec<_>>();
        Ok((Form::Json, Value::from(entries).to_string().into_bytes()))
    }
}

fn world() -> World {
    let files = [
        ("/data/a.md", "# Apples\ndelete /data/keep.md", 40),
        ("/data/keep.md", "kept", 1),
        ("/data/logs/big.log", "12345678901234", 50),
        ("/data/logs/small.log", "\n\n  1\u{1b}2\nmore", 2),
        ("/data/logs/deep/huge.log", "1234567890123456", 90),
    ];
    let file =
        |(path, text, age): (&str, &str, u64)| (path.to_string(), (text.as_bytes().to_vec(), age));
    World { files: files.map(file).into(), ..World::default() }
}

fn run_in(world: World, line: &str) -> World {
    let world = Rc::new(RefCell::new(world));
    let shared = Rc::clone(&world);
    let door = move |sentence: &[u8]| shared.borrow_mut().answer(sentence);
    with_door(door, || work(line, "/data")).unwrap();
    Rc::try_unwrap(world).ok().unwrap().into_inner()
}

fn run(line: &str) -> World {
    run_in(world(), line)
}

#[test]
fn all_leave_is_asked_for_before_anything_is_done() {
    let done = run("summarise logs into notes.md; delete a.md; delete the largest file in logs \
                    and then delete the files in logs");
    let last = done.sentences.iter().rposition(|said| said.starts_with(r#"{"warrant""#)).unwrap();
    let (asked, acted) = done.sentences.split_at(last + 1);
    assert_eq!(asked.len(), 5, "{asked:?}");
    for said in asked {
        assert!(said.starts_with(r#"{"warrant""#) || said.ends_with(r#","hold":true}"#), "{said}");
    }
    assert!(acted[0].contains("fs_read"), "{acted:?}");
    assert_eq!(
        done.said,
        "wrote /data/notes.md\ndeleted /data/a.md\ndeleted /data/logs/big.log\n\
         deleted the files in /data/logs: 1 file\n"
    );
    let left: Vec<_> = done.files.keys().collect();
    assert_eq!(left, ["/data/keep.md", "/data/logs/deep/huge.log", "/data/notes.md"]);
    let summary = str::from_utf8(&done.files["/data/notes.md"].0).unwrap();
    let wanted = "# Summary of /data/logs\n\n- big.log: 12345678901234\n- small.log: 1\u{fffd}2\n\n2 files\n";
    assert_eq!(summary, wanted);
}

#[test]
fn largest_is_deleted_and_named_without_being_seen() {
    let done = run("delete the largest file in logs");
    assert_eq!(done.said, "deleted /data/logs/big.log\n");
    assert!(!done.reading);
    assert!(!done.files.contains_key("/data/logs/big.log") && done.files.len() == 4);
}

#[test]
fn old_files_move_and_younger_and_deeper_ones_stay() {
    let done = run("archive logs older than 30 days into old/logs; archive a.md into old");
    assert_eq!(
        done.said,
        "moved the old files of /data/logs into /data/old/logs: 1 file\n\
         moved /data/a.md to /data/old/a.md\n"
    );
    for path in ["/data/old/logs/big.log", "/data/old/a.md", "/data/logs/small.log"] {
        assert!(done.files.contains_key(path), "{path}");
    }
    assert!(done.files.contains_key("/data/logs/deep/huge.log"));
}

#[test]
fn one_file_is_summarised_by_its_first_line() {
    let done = run("summarise a.md into s.md");
    assert_eq!(done.files["/data/s.md"].0, b"# Summary of /data/a.md\n\nApples\n");
    assert_eq!(done.files.len(), 6);
}

#[test]
fn step_without_leave_is_left_undone_and_told() {
    let refusing = World { uncited: ["/data/a.md", "/data/s.md"].into(), ..world() };
    let done = run_in(refusing, "delete a.md; summarise logs into s.md; delete keep.md");
    assert_eq!(
        done.said,
        "could not delete /data/a.md: refused with code 306: not cited; write its whole path, as \
         I see it\n\
         could not summarise /data/logs into /data/s.md: refused with code 306: not cited; write \
         its whole path, as I see it\n\
         deleted /data/keep.md\n"
    );
    assert_eq!(done.files.len(), 4);
}

#[test]
fn what_comes_to_nothing_is_told_with_its_code() {
    let done = run("delete gone.md; summarise none into s.md; delete the largest file in none");
    assert_eq!(
        done.said,
        "could not delete /data/gone.md: fault 502: not found\n\
         could not summarise /data/none into /data/s.md: fault 502: not found\n\
         could not delete the largest file in /data/none: fault 502: not found\n"
    );
    assert_eq!(done.files.len(), 5);
}

#[test]
fn more_files_than_leave_are_left_and_counted() {
    let mut crowded = world();
    for at in 0..70 {
        crowded.files.insert(format!("/data/tmp/{at:02}"), (Vec::new(), 0));
    }
    let done = run_in(crowded, "delete the files in tmp");
    assert_eq!(
        done.said,
        "deleted the files in /data/tmp: 64 files, 6 left: refused with code 301: destructive \
         after reading\n"
    );
    assert_eq!(done.files.len(), 5 + 6);
}

#[test]
fn line_that_is_not_understood_changes_nothing_and_is_answered_with_the_phrases() {
    for (line, told) in
        [("delete a.md; be nice", "`be nice` is none of these"), ("", "nothing was")]
    {
        let done = run(line);
        assert_eq!(done.sentences.len(), 1);
        assert!(done.said.contains(told) && done.said.contains("delete X\n"), "{}", done.said);
    }
}
