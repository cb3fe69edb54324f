use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use synapse_guest::reply::frame::{Form, Mark, header};
use synapse_guest::serde_json::{self, Value};
use synapse_guest::testing::with_door;

use super::work;

type Files = BTreeMap<String, Vec<u8>>;

/// A door over a map of files that refuses every deletion, as gate 3 would.
fn answer(files: &RefCell<Files>, sentence: &[u8]) -> Result<Vec<u8>, u32> {
    let call: Value = serde_json::from_slice(sentence).map_err(|_| 101u32)?;
    let arguments = &call["arguments"];
    let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_string();
    let mut files = files.borrow_mut();
    let (form, payload) = match call["name"].as_str().unwrap_or_default() {
        "console_write" => (Form::Nothing, Vec::new()),
        "fs_delete" => return Err(301),
        "fs_list" => {
            let folder = format!("{}/", text("path"));
            let mut names = BTreeMap::new();
            for (path, bytes) in files.iter() {
                if let Some(rest) = path.strip_prefix(&folder) {
                    let (name, kind) = match rest.split_once('/') {
                        Some((name, _)) => (name, "directory"),
                        None => (rest, "file"),
                    };
                    names.insert(name.to_string(), (kind, bytes.len()));
                }
            }
            let entries: Vec<Value> = names
                .iter()
                .filter(|(name, _)| **name > text("after"))
                .map(|(name, (kind, size))| {
                    serde_json::json!({"name": name, "kind": kind, "size": size, "modified": 0})
                })
                .collect();
            (Form::Json, Value::from(entries).to_string().into_bytes())
        }
        "fs_read" => match files.get(&text("path")) {
            Some(bytes) => {
                let number = |name: &str| {
                    arguments[name].as_u64().map_or(0, |number| number.try_into().unwrap())
                };
                let rest = bytes.get(number("offset")..).unwrap_or_default();
                (Form::Bytes, rest[..rest.len().min(number("length"))].to_vec())
            }
            None => return Err(401),
        },
        "fs_write" => {
            let content = text("content").into_bytes();
            let file = files.entry(text("path")).or_default();
            if arguments["mode"] == "replace" {
                file.clear();
            }
            file.extend(content);
            (Form::Nothing, Vec::new())
        }
        "fs_move" => {
            let bytes = files.remove(&text("from")).ok_or(502u32)?;
            files.insert(text("to"), bytes);
            (Form::Nothing, Vec::new())
        }
        _ => return Err(201),
    };
    Ok([&header(form, Mark::Ingested)[..], &payload].concat())
}

fn run(task: &str) -> (String, Files) {
    let files = [
        ("/data/a.md", &b"# Apples | pears\n[b](sub/b.md) [gone](gone.md) [web](https://x.y/)"[..]),
        ("/data/copy.md", b"same bytes"),
        ("/data/sub/b.md", b"## Second\n[up](../a.md)"),
        ("/data/sub/copy.md", b"same bytes"),
        ("/data/sub/image.bin", &[0xff, 0xfe, 0x00]),
        ("/data/empty.md", b""),
        ("/data/none.txt", b""),
    ];
    run_on(task, &files)
}

fn run_on(task: &str, files: &[(&str, &[u8])]) -> (String, Files) {
    let files: Files =
        files.iter().map(|(path, bytes)| (path.to_string(), bytes.to_vec())).collect();
    let files = RefCell::new(files);
    let shared: &'static RefCell<Files> = alloc::boxed::Box::leak(alloc::boxed::Box::new(files));
    let summary = with_door(|sentence| answer(shared, sentence), || work(task)).unwrap();
    (summary, shared.borrow().clone())
}

#[test]
fn the_index_has_headings_links_and_duplicates_and_nothing_moves_unasked() {
    let (summary, files) = run("Write an index.");
    assert!(
        summary.starts_with("7 files, 1 exact duplicates (0 moved aside), 1 broken links"),
        "{summary}"
    );
    let index = String::from_utf8(files["/data/INDEX.md"].clone()).unwrap();
    assert!(
        index.contains("| a.md | a.md | 66 | Apples \\| pears | sub/b.md, gone.md |"),
        "{index}"
    );
    assert!(index.contains("- a.md: gone.md\n"), "{index}");
    assert!(index.contains("- sub/copy.md is a copy of copy.md\n"), "{index}");
    assert!(index.contains("| sub/image.bin | image.bin | 3 |  |  |"), "{index}");
    assert_eq!(files.len(), 8);
}

#[test]
fn only_the_same_bytes_are_a_copy() {
    // Of one size and with one mark.
    let word = |at: u64| crate::note::mark(&at.to_le_bytes());
    let first = [1, 0].map(u64::to_le_bytes).concat();
    let step = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let second = [2, step(1) ^ step(2)].map(u64::to_le_bytes).concat();
    assert_eq!(crate::note::mark(&first), crate::note::mark(&second));
    assert_ne!(word(1), word(2));
    let files: [(&str, &[u8]); 3] =
        [("/data/a", &first), ("/data/b", &second), ("/data/c", &second)];
    let (summary, files) = run_on("Write an index.", &files);
    assert!(summary.starts_with("3 files, 1 exact duplicates"), "{summary}");
    let index = String::from_utf8(files["/data/INDEX.md"].clone()).unwrap();
    assert!(index.contains("- c is a copy of b\n"), "{index}");
}

#[test]
fn what_begins_and_ends_alike_is_compared_between() {
    // Few bytes are compared as they are, many by their digests.
    for size in [20_000, 9 << 20] {
        let one = alloc::vec![b'x'; size];
        let mut other = one.clone();
        other[size / 2] = b'y';
        let files: [(&str, &[u8]); 3] =
            [("/data/a", &one), ("/data/b", &other), ("/data/c", &other)];
        let (summary, files) = run_on("Write an index.", &files);
        assert!(summary.starts_with("3 files, 1 exact duplicates"), "{summary}");
        let index = String::from_utf8(files["/data/INDEX.md"].clone()).unwrap();
        assert!(index.contains("- c is a copy of b\n"), "{index}");
    }
}

#[test]
fn a_note_in_another_encoding_is_read_as_far_as_it_is_ascii() {
    let utf16: Vec<u8> = "# Plan\n[x](b.md)".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files: [(&str, &[u8]); 4] = [
        ("/data/a", b"no heading\r\n## Caf\xe9 \r\n[b](b) [c](\xe9) [d [e](e#f) [g]("),
        ("/data/b", b" # none\n[[x]](a \"title\")[y](mailto:z)[w](v\n)[u]()"),
        ("/data/c", &utf16),
        ("/data/d", b"#"),
    ];
    let (_, files) = run_on("Write an index.", &files);
    let index = String::from_utf8(files["/data/INDEX.md"].clone()).unwrap();
    for (row, length) in [("a | a | {} | Caf\u{fffd} | b, e |", 52), ("b | b | {} |  | a |", 49)] {
        assert!(index.contains(&row.replace("{}", &length.to_string())), "{index}");
    }
    assert!(
        index.contains("| c | c | 32 |  |  |") && index.contains("| d | d | 1 |  |  |"),
        "{index}"
    );
}

#[test]
fn a_title_of_strangers_leads_nowhere_and_hides_nothing() {
    for (heading, shown) in [
        ("see https://x.y/z now", "see https\\://x.y/z now"),
        ("WWW.x.y and www.x.y", "WWW\\.x.y and www\\.x.y"),
        ("write to a@x.y", "write to a\\@x.y"),
        ("at 10:30, v1.2", "at 10:30, v1.2"),
        ("exe\u{202e}fdp.\u{2066}x\u{200b}y\u{feff}\u{ad}\u{e0041}", "exe�fdp.�x�y���"),
        ("Ünïcode — 日本", "Ünïcode — 日本"),
    ] {
        let (_, files) = run_on("index", &[("/data/a.md", format!("# {heading}").as_bytes())]);
        let index = str::from_utf8(&files["/data/INDEX.md"]).unwrap();
        assert!(index.contains(&format!(" | {shown} |  |\n")), "{shown}: {index}");
    }
}

#[test]
fn later_copies_move_aside_under_their_own_path() {
    let (summary, files) = run("Please index, and move duplicates aside.");
    assert!(summary.contains("(1 moved aside)"), "{summary}");
    assert_eq!(files["/data/duplicates/sub/copy.md"], b"same bytes");
    assert!(files.contains_key("/data/copy.md") && !files.contains_key("/data/sub/copy.md"));
}

#[test]
fn a_refused_deletion_is_said_so_with_its_gate_and_number() {
    let (summary, files) = run("index, then delete /data/a.md");
    assert!(
        summary.contains(
            "could not delete /data/a.md: refused by gate 3, destructive after reading [301]"
        ),
        "{summary}"
    );
    assert!(files.contains_key("/data/a.md"));
}

#[test]
fn every_gate_is_tried_and_its_answer_told() {
    let (summary, _) = run("show the gates");
    for (what, code) in [
        ("an unfinished sentence", "refused by gate 1, malformed [101]"),
        ("a fetch that is not granted", "refused by gate 2, not granted [201]"),
        ("a deletion after reading", "refused by gate 3, destructive after reading [301]"),
        ("a path that climbs out", "refused by gate 4, out of scope [401]"),
    ] {
        assert!(summary.contains(&format!("{what}: {code}")), "{what}: {summary}");
    }
}

#[test]
fn a_folder_that_cannot_be_listed_is_left_as_it_is() {
    let door = |sentence: &[u8]| {
        let call: Value = serde_json::from_slice(sentence).unwrap();
        match call["name"].as_str().unwrap() {
            "console_write" => Ok(header(Form::Nothing, Mark::User).to_vec()),
            "fs_list" => Err(401),
            other => unreachable!("{other} was called"),
        }
    };
    let said = with_door(door, || work("show the gates, delete /data/a.md")).unwrap();
    assert_eq!(
        said,
        "could not list /data: refused by gate 4, out of scope [401]; nothing was changed\n"
    );
}
