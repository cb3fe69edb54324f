//! One table of behaviours, asserted against both platforms.

use std::{fs, sync::Mutex};

use serde_json::{Value, json};
use synapse_boundary::Integrity;
use synapse_primitives::{
    Fault, Platform,
    memory::Memory,
    mounts::Access,
    platform::{Asker, Kind, Mode},
    rest::Names,
    search::Sight,
};

use crate::stage::{Calls, Stage, entry, hits, journal, now, usual};

/// Runs a behaviour on a fresh memory and on a fresh disk, both with `/data`,
/// read-only `/docs` holding `kept.md`, and `/data/own` reserved.
macro_rules! on_both {
    ($($name:ident($platform:ident, $journaled:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            fn behaves(
                $platform: &impl Platform,
                $journaled: &dyn Fn(u64) -> Option<Vec<u8>>,
            ) $body

            #[test]
            fn memory() {
                let mounts = [("/data", Access::ReadWrite), ("/docs", Access::ReadOnly)];
                let memory = Memory::new(&mounts).unwrap();
                memory.place("/docs/kept.md", b"kept").unwrap();
                memory.place("/data/own/log", b"secret").unwrap();
                memory.reserve("/data/own").unwrap();
                behaves(&memory, &|record| memory.journaled(record));
            }

            #[test]
            fn disk() {
                let stage = Stage::with(|data| {
                    fs::create_dir(data.join("own")).unwrap();
                    fs::write(data.join("own/log"), "secret").unwrap();
                    vec![data.join("own")]
                });
                fs::write(stage.outer("docs/kept.md"), "kept").unwrap();
                behaves(&stage.disk, &|record| {
                    fs::read(stage.outer("journal").join(record.to_string())).ok()
                });
                let left = stage.on_host("data");
                assert!(!left.iter().any(|name| name.starts_with(".synapse")), "{left:?}");
            }
        })*
    };
}

on_both! {
    reads_stop_where_the_file_ends(platform, _journaled) {
        platform.put("/data/a", b"0123456789", Mode::Create).unwrap();
        for (offset, length, want) in [
            (0, 4, &b"0123"[..]),
            (8, 4, b"89"),
            (10, 4, b""),
            (u64::MAX, 4, b""),
            (i64::MAX as u64, 4, b""),
            (3, 0, b""),
        ] {
            assert_eq!(now(platform.read("/data/a", offset, length)).unwrap().bytes, want, "{offset}");
        }
        let large: Vec<u8> = (0..700_000_u32).flat_map(u32::to_le_bytes).collect();
        platform.put("/data/large", &large, Mode::Create).unwrap();
        let page = now(platform.read("/data/large", 5, 1 << 20)).unwrap().bytes;
        assert_eq!(Some(&*page), large.get(5..5 + (1 << 20)));
    }

    only_wanted_names_and_directories_are_named(platform, _journaled) {
        for path in ["/data/dir/b.md", "/data/dir/a.md", "/data/dir/sub/c.md", "/data/dir/z/d"] {
            platform.put(path, b"x", Mode::Create).unwrap();
        }
        let named = |path, wanted: &'static str| {
            let found = now(platform.named(path, &|name| name == wanted))?;
            let is_right = |(name, kind): &(String, Kind)| (*kind == Kind::File) == name.contains('.');
            assert!(found.names.iter().all(is_right), "{found:?}");
            let all: Vec<String> = found.names.into_iter().map(|(name, _)| name).collect();
            Ok((all.join(" "), found.seen))
        };
        let told = |names: &str, seen| Ok((names.to_owned(), seen));
        assert_eq!(named("/data/dir", "b.md"), told("b.md sub z", 4));
        assert_eq!(named("/data/dir", ""), told("sub z", 4));
        assert_eq!(named("/", ""), told("data docs", 2));
        // What is Synapse's own is not there.
        assert_eq!(named("/data", "own").map(|found| found.0), Ok("dir".to_owned()));
        assert_eq!(named("/data/none", ""), Err(Fault::NotFound));
        assert_eq!(named("/data/own", ""), Err(Fault::Reserved));
    }

    what_is_not_there_is_named(platform, _journaled) {
        platform.put("/data/dir/file", b"x", Mode::Create).unwrap();
        let long = format!("/data/{}", "n".repeat(256));
        for (path, want) in [
            ("/data/none", Fault::NotFound),
            ("/data/none/none", Fault::NotFound),
            ("/data/dir", Fault::NotAFile),
            ("/data/dir/file/x", Fault::NotADirectory),
            ("/data", Fault::NotAFile),
            ("/", Fault::NotAFile),
            ("/etc/passwd", Fault::NotFound),
            ("/database", Fault::NotFound),
            ("/data/../data/dir/file", Fault::NotFound),
            ("/data/dir/./file", Fault::NotFound),
            ("/data/own", Fault::Reserved),
            ("/data/own/log", Fault::Reserved),
            ("/data/.synapse-part-1", Fault::Reserved),
            ("/data/.Synapse-Part-1/x", Fault::Reserved),
            (long.as_str(), Fault::TooLarge),
        ] {
            assert_eq!(platform.all(path), Err(want), "read {path}");
        }
        assert_eq!(platform.names("/data/none"), Err(Fault::NotFound));
        assert_eq!(platform.names("/data/dir/file/x"), Err(Fault::NotADirectory));
        assert_eq!(platform.names("/data/own"), Err(Fault::Reserved));
        assert_eq!(platform.names("/etc"), Err(Fault::NotFound));
        assert_eq!(platform.take("/data/none"), Err(Fault::NotFound));
        assert_eq!(platform.shift("/data/none", "/data/b"), Err(Fault::NotFound));
    }

    listings_are_sorted_pages(platform, _journaled) {
        for name in ["b", "a-b", "Z", "é", "a/inner", "ab"] {
            platform.put(&format!("/data/{name}"), b"123", Mode::Create).unwrap();
        }
        assert_eq!(platform.names("/data").unwrap(), ["Z", "a", "a-b", "ab", "b", "é"]);
        let page = platform.page("/data", "Z", 2).unwrap();
        assert_eq!(page.entries, [entry("a", Kind::Directory, 0), entry("a-b", Kind::File, 3)]);
        assert!(page.more);
        let rest = platform.page("/data", "ab", 2).unwrap();
        assert_eq!(rest.entries, [entry("b", Kind::File, 3), entry("é", Kind::File, 3)]);
        assert!(!rest.more);
        let none = platform.page("/data", "", 0).unwrap();
        assert!(none.entries.is_empty() && none.more);
        let past = platform.page("/data", "\u{10ffff}", 5).unwrap();
        assert!(past.entries.is_empty() && !past.more);
        let own = platform.page("/data/b", "", 5).unwrap();
        assert_eq!(own.entries, [entry("b", Kind::File, 3)]);
        assert!(platform.page("/data/b", "b", 5).unwrap().entries.is_empty());
        assert_eq!(platform.names("/").unwrap(), ["data", "docs"]);
        assert_eq!(platform.page("/", "data", 9).unwrap().entries,
            [entry("docs", Kind::Directory, 0)]);
    }

    create_never_replaces(platform, _journaled) {
        let written = platform.put("/data/x/y/z", b"one", Mode::Create).unwrap();
        assert!(written.created);
        assert_eq!((written.displaced, written.length), (0, 3));
        assert_eq!(platform.put("/data/x/y/z", b"two", Mode::Create), Err(Fault::Exists));
        assert_eq!(platform.put("/data/x/y/z", b"two", Mode::CreateProgram), Err(Fault::Exists));
        assert!(platform.put("/data/x/run", b"two", Mode::CreateProgram).unwrap().created);
        assert_eq!(platform.put("/data/x/y", b"two", Mode::Create), Err(Fault::Exists));
        assert_eq!(platform.put("/data", b"two", Mode::Create), Err(Fault::Exists));
        assert_eq!(platform.put("/", b"two", Mode::Create), Err(Fault::Exists));
        assert_eq!(platform.put("/new", b"two", Mode::Create), Err(Fault::NotFound));
        assert_eq!(platform.put("/data/x/y/z/w/v", b"", Mode::Create), Err(Fault::NotADirectory));
        assert_eq!(platform.put("/data/own/new", b"", Mode::Create), Err(Fault::Reserved));
        assert_eq!(platform.put("/data/own", b"", Mode::Create), Err(Fault::Reserved));
        assert_eq!(platform.all("/data/x/y/z").unwrap(), b"one");
    }

    replace_journals_first(platform, journaled) {
        assert!(platform.put("/data/a", b"first", Mode::Replace).unwrap().created);
        let small = platform.put_as("/data/a", b"second", Mode::Replace, 7, 4);
        assert_eq!(small, Err(Fault::JournalFull));
        assert_eq!(platform.all("/data/a").unwrap(), b"first");
        assert_eq!(journaled(7), None);
        let written = platform.put_as("/data/a", b"second", Mode::Replace, 8, 5).unwrap();
        assert!(!written.created);
        assert_eq!((written.displaced, written.length), (5, 6));
        assert_eq!(journaled(8).unwrap(), b"first");
        assert_eq!(platform.all("/data/a").unwrap(), b"second");
        platform.put("/data/d/x", b"", Mode::Create).unwrap();
        assert_eq!(platform.put("/data/d", b"", Mode::Replace), Err(Fault::NotAFile));
        assert_eq!(platform.put("/data", b"", Mode::Append), Err(Fault::NotAFile));
    }

    append_keeps_what_stands(platform, journaled) {
        assert!(platform.put("/data/log", b"one\n", Mode::Append).unwrap().created);
        let written = platform.put_as("/data/log", b"two\n", Mode::Append, 9, 0).unwrap();
        assert!(!written.created);
        assert_eq!((written.displaced, written.length), (0, 8));
        assert_eq!(platform.all("/data/log").unwrap(), b"one\ntwo\n");
        assert_eq!(journaled(9), None);
        assert_eq!(platform.put("/data/own/log", b"x", Mode::Append), Err(Fault::Reserved));
    }

    edits_change_the_one_place(platform, journaled) {
        platform.put("/data/a", b"one two two three", Mode::Create).unwrap();
        platform.put("/data/d/x", b"", Mode::Create).unwrap();
        assert_eq!(platform.edits("/data/a", "four", "x"), Err(Fault::NoMatch));
        assert_eq!(platform.edits("/data/a", "", "x"), Err(Fault::NoMatch));
        assert_eq!(platform.edits("/data/a", "two", "x"), Err(Fault::Ambiguous));
        assert_eq!(platform.edits("/data/d", "two", "x"), Err(Fault::NotAFile));
        assert_eq!(platform.edits("/data", "two", "x"), Err(Fault::NotAFile));
        assert_eq!(platform.edits("/data/none", "two", "x"), Err(Fault::NotFound));
        assert_eq!(platform.edits("/data/none/none", "two", "x"), Err(Fault::NotFound));
        assert_eq!(platform.edits("/data/own/log", "secret", "x"), Err(Fault::Reserved));
        assert_eq!(platform.edits("/docs/kept.md", "kept", "x"), Err(Fault::ReadOnly));
        let full = now(platform.edit("/data/a", b"one", b"1", journal(4, 16)));
        assert_eq!(full, Err(Fault::JournalFull));
        assert_eq!(platform.all("/data/a").unwrap(), b"one two two three");
        assert_eq!(journaled(4), None);
        let journal = journal(5, 17);
        let written = now(platform.edit("/data/a", b"two two", b"2", journal)).unwrap();
        assert_eq!((written.created, written.displaced, written.length), (false, 17, 11));
        assert_eq!(platform.all("/data/a").unwrap(), b"one 2 three");
        assert_eq!(journaled(5).unwrap(), b"one two two three");
        platform.put("/data/b", b"aaa", Mode::Create).unwrap();
        assert_eq!(platform.edits("/data/b", "aa", "x"), Err(Fault::Ambiguous), "they overlap");
        assert_eq!(platform.edits("/data/b", "aaa", "").unwrap().length, 0);
        assert_eq!(platform.all("/data/b").unwrap(), b"");
    }

    searches_name_line_and_column(platform, _journaled) {
        for (name, text) in [
            ("b/deep/z.md", "x\nfour needle\n"),
            ("a.md", "no\nthe needle, a needle\n\nneedle"),
            ("b.md", "née\u{1}dle"),
            ("b/a.md", "\u{e9}needle"),
        ] {
            platform.put(&format!("/data/{name}"), text.as_bytes(), Mode::Create).unwrap();
        }
        let hit = |path: &str, line: u32, column: u32, text: &str| {
            json!({"path": path, "line": line, "column": column, "text": text})
        };
        let all = [
            hit("/data/a.md", 2, 5, "the needle, a needle"),
            hit("/data/a.md", 2, 15, "the needle, a needle"),
            hit("/data/a.md", 4, 1, "needle"),
            hit("/data/b/a.md", 1, 3, "\u{e9}needle"),
            hit("/data/b/deep/z.md", 2, 6, "four needle"),
        ];
        let found = platform.finds("/data", "needle", 0).unwrap();
        assert_eq!(found, json!({"hits": all, "next": null, "skipped": 0}));
        let file = platform.finds("/data/b/a.md", "needle", 0).unwrap();
        assert_eq!(file, json!({"hits": [all.get(3)], "next": null, "skipped": 0}));
        let rest = platform.finds("/data", "needle", 8).unwrap();
        assert_eq!(hits(&rest), all.get(1..).unwrap(), "the first stands at byte 7");
        let control = platform.finds("/data", "née\u{1}dle", 0).unwrap();
        assert_eq!(hits(&control), [hit("/data/b.md", 1, 1, "née\u{1}dle")]);
        let none = platform.finds("/data", "nowhere", 0).unwrap();
        assert_eq!(none, json!({"hits": [], "next": null, "skipped": 0}));
        assert_eq!(platform.finds("/data", "", 0), Err(Fault::NoMatch));
        assert_eq!(platform.finds("/data/none", "x", 0), Err(Fault::NotFound));
        assert_eq!(platform.finds("/data/own/log", "secret", 0), Err(Fault::Reserved));
        assert!(hits(&platform.finds("/data", "secret", 0).unwrap()).is_empty());
        assert_eq!(hits(&platform.finds("/", "kept", 0).unwrap()),
            [hit("/docs/kept.md", 1, 1, "kept")]);
    }

    searches_see_what_they_may(platform, _journaled) {
        for name in ["denied/a", "denied/b", "open/a", "open/secret", "passed/read"] {
            platform.put(&format!("/data/{name}"), b"needle", Mode::Create).unwrap();
        }
        let eyes = |path: &str| match path {
            "/data/denied" | "/data/open/secret" => Sight::Hidden,
            "/data/passed" => Sight::Passed,
            "/data/open/a" => Sight::Unspelled,
            _ => Sight::Read,
        };
        let found = platform.finds_as("/data", "needle", 0, &eyes).unwrap();
        let hit = json!({"path": "/data/passed/read", "line": 1, "column": 1, "text": "needle"});
        assert_eq!(found, json!({"hits": [hit], "next": null, "skipped": 1}));
        // The position does not count what is hidden: it would tell its size.
        let rest = platform.finds_as("/data", "needle", 1, &eyes).unwrap();
        assert!(hits(&rest).is_empty());
    }

    searches_go_on_where_they_ended(platform, _journaled) {
        let mut want = Vec::new();
        for file in 0..5_usize {
            let lines = "a needle in a line\n".repeat(700);
            platform.put(&format!("/data/{file}"), lines.as_bytes(), Mode::Create).unwrap();
            want.extend((1..=700_u64).map(|line| (format!("/data/{file}"), line)));
        }
        let (mut got, mut from, mut pages) = (Vec::new(), Some(0), 0);
        while let Some(at) = from {
            let page = platform.finds("/data", "needle", at).unwrap();
            let hits = hits(&page);
            assert!(hits.len() <= 1000);
            got.extend(hits.iter().map(|hit| {
                let path = hit.get("path").and_then(Value::as_str).unwrap();
                (path.to_owned(), hit.get("line").and_then(Value::as_u64).unwrap())
            }));
            (from, pages) = (page.get("next").and_then(Value::as_u64), pages + 1);
        }
        assert_eq!((got, pages), (want, 4));
    }

    long_lines_are_cut_around_the_hit(platform, _journaled) {
        let line = format!("{}needle{}", "é".repeat(5000), "ü".repeat(5000));
        platform.put("/data/a", line.as_bytes(), Mode::Create).unwrap();
        let page = platform.finds("/data", "needle", 0).unwrap();
        let hit = hits(&page).pop().unwrap();
        assert_eq!((hit.get("line"), hit.get("column")), (Some(&json!(1)), Some(&json!(10_001))));
        let text = hit.get("text").and_then(Value::as_str).unwrap();
        assert!(text.len() < 300 && text.contains("éneedleü") && !text.contains('\u{fffd}'));
        platform.put("/data/b", b"\xff\xfeneedle\xff", Mode::Create).unwrap();
        let page = platform.finds("/data/b", "needle", 0).unwrap();
        let text = hits(&page).pop().unwrap().get("text").cloned();
        assert_eq!(text, Some(json!("\u{fffd}\u{fffd}needle\u{fffd}")));
    }

    read_only_mounts_stay_as_they_are(platform, _journaled) {
        assert_eq!(platform.all("/docs/kept.md").unwrap(), b"kept");
        for mode in [Mode::Create, Mode::Replace, Mode::Append] {
            assert_eq!(platform.put("/docs/kept.md", b"", mode), Err(Fault::ReadOnly));
            assert_eq!(platform.put("/docs/new/new", b"", mode), Err(Fault::ReadOnly));
        }
        assert_eq!(platform.take("/docs/kept.md"), Err(Fault::ReadOnly));
        assert_eq!(platform.shift("/docs/kept.md", "/docs/b"), Err(Fault::ReadOnly));
        assert_eq!(platform.shift("/docs/kept.md", "/data/b"), Err(Fault::ReadOnly));
        platform.put("/data/a", b"", Mode::Create).unwrap();
        assert_eq!(platform.shift("/data/a", "/docs/a"), Err(Fault::ReadOnly));
        assert_eq!(platform.names("/docs").unwrap(), ["kept.md"]);
    }

    moves_never_replace(platform, _journaled) {
        for name in ["a", "b", "d/one", "d/two/three"] {
            platform.put(&format!("/data/{name}"), name.as_bytes(), Mode::Create).unwrap();
        }
        assert_eq!(platform.shift("/data/a", "/data/b"), Err(Fault::Exists));
        assert_eq!(platform.shift("/data/a", "/data/a"), Err(Fault::Exists));
        assert_eq!(platform.shift("/data/a", "/data/d"), Err(Fault::Exists));
        assert_eq!(platform.shift("/data/a", "/data"), Err(Fault::Exists));
        assert_eq!(platform.shift("/data/a", "/data/a/b"), Err(Fault::NotADirectory));
        assert_eq!(platform.shift("/data/a", "/data/b/c"), Err(Fault::NotADirectory));
        assert_eq!(platform.shift("/data/a", "/else/b"), Err(Fault::NotFound));
        assert_eq!(platform.shift("/data/a", "/data/own/a"), Err(Fault::Reserved));
        assert_eq!(platform.shift("/data/own/log", "/data/log"), Err(Fault::Reserved));
        assert_eq!(platform.shift("/data/own", "/data/mine"), Err(Fault::Reserved));
        assert_eq!(platform.shift("/data/d", "/data/d/two/d"), Err(Fault::Immovable));
        assert_eq!(platform.shift("/data", "/data2"), Err(Fault::Immovable));
        platform.shift("/data/a", "/data/new/place/a").unwrap();
        assert_eq!(platform.all("/data/new/place/a").unwrap(), b"a");
        assert_eq!(platform.all("/data/a"), Err(Fault::NotFound));

        let asked = Mutex::new(Vec::new());
        let moved = now(platform.rename("/data/d", "/data/e", usual(), &|from, to| {
            asked.lock().unwrap().push(format!("{from} {to}"));
            Some(Names::NONE)
        }));
        assert_eq!(moved, Ok(()));
        assert_eq!(*asked.lock().unwrap(), [
            "/data/d/one /data/e/one",
            "/data/d/two /data/e/two",
            "/data/d/two/three /data/e/two/three",
        ]);
        assert_eq!(platform.all("/data/e/two/three").unwrap(), b"d/two/three");
    }

    one_descendant_outside_stops_a_tree(platform, _journaled) {
        for name in ["d/a", "d/b/c", "d/z"] {
            platform.put(&format!("/data/{name}"), b"", Mode::Create).unwrap();
        }
        let moved = now(platform.rename("/data/d", "/data/deep/e", usual(), &|from, _| (!from.ends_with('c')).then(Names::default)));
        assert_eq!(moved, Err(Fault::Subtree));
        let moved = now(platform.rename("/data/d", "/data/deep/e", usual(), &|_, to| (to != "/data/deep/e/z").then(Names::default)));
        assert_eq!(moved, Err(Fault::Subtree));
        assert_eq!(now(platform.remove("/data/d", usual(), &|path| path != "/data/d/z")),
            Err(Fault::Subtree));
        assert_eq!(platform.names("/data").unwrap(), ["d"], "nothing moved, no parent made");
        assert_eq!(platform.names("/data/d").unwrap(), ["a", "b", "z"]);
        assert_eq!(platform.names("/data/d/b").unwrap(), ["c"]);
    }

    removal_takes_the_subtree(platform, _journaled) {
        for name in ["d/a", "d/b/c", "keep"] {
            platform.put(&format!("/data/{name}"), b"", Mode::Create).unwrap();
        }
        let asked = Mutex::new(Vec::new());
        let removed = now(platform.remove("/data/d", usual(), &|path| {
            asked.lock().unwrap().push(path.to_owned());
            true
        }));
        assert_eq!(removed, Ok(0));
        assert_eq!(*asked.lock().unwrap(), ["/data/d/a", "/data/d/b", "/data/d/b/c"]);
        assert_eq!(platform.names("/data").unwrap(), ["keep"]);
        assert_eq!(platform.take("/data/own"), Err(Fault::Reserved));
        for root in ["/data", "/"] {
            assert_eq!(platform.take(root), Err(Fault::Immovable));
            assert_eq!(platform.shift(root, "/data/x"), Err(Fault::Immovable));
        }
        platform.take("/data/keep").unwrap();
        assert_eq!(platform.names("/data").unwrap(), Vec::<String>::new());
    }

    a_removal_fits_the_journal_or_is_not_made(platform, journaled) {
        for (name, content) in [("d/a", "1234"), ("d/b/c", "567"), ("e", "12")] {
            platform.put(&format!("/data/{name}"), content.as_bytes(), Mode::Create).unwrap();
        }
        let remove = |path, record, room| {
            now(platform.remove(path, journal(record, room), &|_| true))
        };
        assert_eq!(remove("/data/d", 20, 6), Err(Fault::JournalFull));
        assert_eq!(platform.names("/data/d").unwrap(), ["a", "b"]);
        assert_eq!(remove("/data/d", 21, 7), Ok(7));
        assert_eq!(remove("/data/e", 22, 2), Ok(2));
        assert_eq!(journaled(22).unwrap(), b"12");
        assert_eq!(platform.names("/data").unwrap(), Vec::<String>::new());
    }

    very_deep_trees_are_refused_whole(platform, _journaled) {
        let deep = format!("/data/d{}", "/x".repeat(140));
        platform.put(&deep, b"", Mode::Create).unwrap();
        assert_eq!(platform.take("/data/d"), Err(Fault::TooMany));
        assert_eq!(platform.shift("/data/d", "/data/e"), Err(Fault::TooMany));
        assert_eq!(platform.all(&deep).unwrap(), b"");
    }
}

#[test]
fn a_tree_that_holds_synapse_stays() {
    fn behaves(platform: &impl Platform) {
        platform.put("/data/tree/a", b"", Mode::Create).unwrap();
        assert_eq!(platform.take("/data/tree"), Err(Fault::Reserved));
        assert_eq!(platform.shift("/data/tree", "/data/moved"), Err(Fault::Reserved));
        assert_eq!(platform.names("/data").unwrap(), ["tree"]);
        assert_eq!(platform.names("/data/tree").unwrap(), ["a"], "its own are not shown");
    }
    let memory = Memory::new(&[("/data", Access::ReadWrite)]).unwrap();
    memory.place("/data/tree/own/log", b"").unwrap();
    memory.reserve("/data/tree/own").unwrap();
    behaves(&memory);

    let stage = Stage::with(|data| {
        fs::create_dir_all(data.join("tree/own")).unwrap();
        vec![data.join("tree/own")]
    });
    behaves(&stage.disk);
    assert!(stage.data("tree/own").exists());
}

#[test]
fn the_clock_and_the_screen() {
    let memory = Memory::new(&[]).unwrap();
    memory.set_now(1_700_000_000_123);
    assert_eq!(memory.now_ms(), 1_700_000_000_123);
    now(memory.show(b"one ")).unwrap();
    now(memory.show(b"two")).unwrap();
    assert_eq!(memory.shown(), b"one two");
    let asker = Asker { record: 3, integrity: Integrity::Ingested };
    memory.answer(Ok(b"yes"));
    memory.answer(Err(Fault::TimedOut));
    let answers = [now(memory.ask(b"a?", asker)), now(memory.ask(b"b?", asker))];
    assert_eq!(answers, [Ok(b"yes".to_vec()), Err(Fault::TimedOut)]);
    assert_eq!(now(memory.ask(b"c?", asker)), Err(Fault::Closed));
    assert_eq!(memory.asked().first(), Some(&(b"a?".to_vec(), asker)));

    let stage = Stage::new();
    assert!(stage.disk.now_ms() > 1_700_000_000_000);
    now(stage.disk.show(b"one ")).unwrap();
    now(stage.disk.show(b"two")).unwrap();
    assert_eq!(*stage.shown.lock().unwrap(), b"one two");
    assert_eq!(now(stage.disk.ask(b"a?", asker)), Ok(b"a?".to_vec()), "the screen answers");
}
