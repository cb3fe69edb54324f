//! One table of behaviours, asserted against both platforms.

use std::{fs, sync::Mutex};

use synapse_primitives::{
    Fault, Platform,
    memory::Memory,
    mounts::Access,
    platform::{Kind, Listing, Mode},
};

use crate::stage::{Calls, Stage, entry, now};

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
            assert_eq!(now(platform.read("/data/a", offset, length)).unwrap(), want, "{offset}");
        }
        let large: Vec<u8> = (0..700_000_u32).flat_map(u32::to_le_bytes).collect();
        platform.put("/data/large", &large, Mode::Create).unwrap();
        let page = now(platform.read("/data/large", 5, 1 << 20)).unwrap();
        assert_eq!(Some(&*page), large.get(5..5 + (1 << 20)));
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
        let page = Listing {
            entries: vec![entry("a", Kind::Directory, 0), entry("a-b", Kind::File, 3)],
            more: true,
            unnamed: 0,
        };
        assert_eq!(platform.page("/data", "Z", 2).unwrap(), page);
        let rest = platform.page("/data", "ab", 2).unwrap();
        assert_eq!(rest.entries, [entry("b", Kind::File, 3), entry("é", Kind::File, 3)]);
        assert!(!rest.more);
        let none = platform.page("/data", "", 0).unwrap();
        assert!(none.entries.is_empty() && none.more);
        let past = platform.page("/data", "\u{10ffff}", 5).unwrap();
        assert_eq!(past, Listing::default());
        let own = platform.page("/data/b", "", 5).unwrap();
        assert_eq!(own.entries, [entry("b", Kind::File, 3)]);
        assert_eq!(platform.page("/data/b", "b", 5).unwrap(), Listing::default());
        assert_eq!(platform.names("/").unwrap(), ["data", "docs"]);
        assert_eq!(platform.page("/", "data", 9).unwrap().entries,
            [entry("docs", Kind::Directory, 0)]);
    }

    create_never_replaces(platform, _journaled) {
        let written = platform.put("/data/x/y/z", b"one", Mode::Create).unwrap();
        assert!(written.created);
        assert_eq!((written.displaced, written.length), (0, 3));
        assert_eq!(platform.put("/data/x/y/z", b"two", Mode::Create), Err(Fault::Exists));
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
        assert_eq!(platform.shift("/data/d", "/data/d/two/d"), Err(Fault::Unsupported));
        assert_eq!(platform.shift("/data", "/data2"), Err(Fault::Subtree));
        platform.shift("/data/a", "/data/new/place/a").unwrap();
        assert_eq!(platform.all("/data/new/place/a").unwrap(), b"a");
        assert_eq!(platform.all("/data/a"), Err(Fault::NotFound));

        let asked = Mutex::new(Vec::new());
        let moved = now(platform.rename("/data/d", "/data/e", &|from, to| {
            asked.lock().unwrap().push(format!("{from} {to}"));
            true
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
        let moved = now(platform.rename("/data/d", "/data/deep/e", &|from, _| !from.ends_with('c')));
        assert_eq!(moved, Err(Fault::Subtree));
        let moved = now(platform.rename("/data/d", "/data/deep/e", &|_, to| to != "/data/deep/e/z"));
        assert_eq!(moved, Err(Fault::Subtree));
        assert_eq!(now(platform.remove("/data/d", &|path| path != "/data/d/z")),
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
        let removed = now(platform.remove("/data/d", &|path| {
            asked.lock().unwrap().push(path.to_owned());
            true
        }));
        assert_eq!(removed, Ok(()));
        assert_eq!(*asked.lock().unwrap(), ["/data/d/a", "/data/d/b", "/data/d/b/c"]);
        assert_eq!(platform.names("/data").unwrap(), ["keep"]);
        assert_eq!(platform.take("/data/own"), Err(Fault::Reserved));
        for root in ["/data", "/"] {
            assert_eq!(platform.take(root), Err(Fault::Subtree));
            assert_eq!(platform.shift(root, "/data/x"), Err(Fault::Subtree));
        }
        platform.take("/data/keep").unwrap();
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

    let stage = Stage::new();
    assert!(stage.disk.now_ms() > 1_700_000_000_000);
    now(stage.disk.show(b"one ")).unwrap();
    now(stage.disk.show(b"two")).unwrap();
    assert_eq!(*stage.shown.lock().unwrap(), b"one two");
}
