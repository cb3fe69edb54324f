//! Between a sentence and its execution nothing is allocated.
//!
//! A binary of its own: it counts by an allocator of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use allocation_counter::measure;
use synapse_bench::door::{World, sentences};
use synapse_bench::task::log;
use synapse_boundary::Opened;

/// The number of allocations from decision to permission, in a log whose buffer
/// has its size.
fn allocations(sentence: &[u8]) -> u64 {
    let world = World::small().unwrap();
    let mut log = log().unwrap();
    for _ in 0..2 {
        assert!(matches!(world.submit(sentence, &mut log), Ok(Opened::Permitted(_))));
    }
    let mut permitted = false;
    let counted = measure(|| {
        let opened = world.submit(sentence, &mut log);
        permitted = matches!(opened, Ok(Opened::Permitted(_)));
        // What is executed next is not part of it.
        core::mem::forget(opened);
    });
    assert!(permitted);
    counted.count_total
}

#[test]
fn a_permitted_call_in_plain_names_without_escapes_allocates_nothing() {
    for sentence in sentences() {
        assert_eq!(allocations(&sentence), 0, "{}", String::from_utf8_lossy(&sentence));
    }
    let (text, long) = ("x".repeat(60), "y".repeat(4000));
    for (name, arguments) in [
        ("clock_read", String::new()),
        ("console_write", r#""content":"hello""#.to_owned()),
        ("console_write", r#""content":{"parts":["a","hello"]}"#.to_owned()),
        ("fs_read", r#""path":"/data/a.md","offset":0,"length":65536"#.to_owned()),
        ("fs_list", r#""path":"/data","after":"","limit":1000"#.to_owned()),
        ("fs_search", r#""path":"/data","text":"x","offset":0"#.to_owned()),
        ("fs_write", format!(r#""path":"/data/a.md","content":"{text}","mode":"create""#)),
        ("fs_edit", format!(r#""path":"/data/a.md","old":"{text}","new":"{text}""#)),
        ("fs_write", format!(r#""path":"/data/a.md","content":"{long}","mode":"create""#)),
        ("fs_move", r#""from":"/data/a.md","to":"/data/b.md""#.to_owned()),
        ("fs_delete", r#""path":"/data/a.md""#.to_owned()),
    ] {
        let sentence = format!(r#"{{"name":"{name}","arguments":{{{arguments}}}}}"#);
        let shown = sentence.get(..60).unwrap_or(&sentence);
        assert_eq!(allocations(sentence.as_bytes()), 0, "{shown}");
    }
}

#[test]
fn the_count_sees_what_an_escape_and_a_name_to_fold_cost() {
    for path in [r#"/data/a\"b"#, "/data/README.md", "/data/é"] {
        let sentence = format!(r#"{{"name":"fs_delete","arguments":{{"path":"{path}"}}}}"#);
        assert!(allocations(sentence.as_bytes()) > 0, "{path}");
    }
}
