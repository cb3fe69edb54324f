//! Selectors over held replies.

use proptest::prelude::*;
use synapse_boundary::parse;
use synapse_boundary::select::{Taken, conditions, resolve};

/// A selector that gate 1 lets through.
fn selector(rest: &str) -> String {
    let selector = format!("{{\"$select\":3,{rest}}}");
    let warrant =
        format!("{{\"warrant\":\"fs_delete\",\"arguments\":{{\"path\":{selector}}},\"uses\":1}}");
    assert!(parse(warrant.as_bytes()).is_ok(), "{selector}");
    selector
}

const LISTING: &str = "[{\"name\":\"a.md\",\"kind\":\"file\",\"size\":10,\"modified\":5},\
    {\"name\":\"b.log\",\"kind\":\"file\",\"size\":9,\"modified\":5},\
    {\"name\":\"c\\\"\\n\u{e9}.log\",\"kind\":\"file\",\"size\":100,\"modified\":-7},\
    {\"name\":\"sub\",\"kind\":\"directory\",\"size\":0,\"modified\":6}]";

#[test]
fn a_selector_takes_from_the_one_record_that_is_meant() {
    let text = |text: &'static str| Some(Taken::Text(text.into()));
    let table = [
        ("\"order\":[\"max\",\"size\"],\"take\":\"path\"", text("/data/c\"\n\u{e9}.log")),
        ("\"order\":[\"max\",\"size\"],\"take\":\"name\"", text("c\"\n\u{e9}.log")),
        ("\"order\":[\"min\",\"size\"],\"take\":\"path\"", text("/data/sub")),
        (
            "\"where\":[[\"kind\",\"eq\",\"file\"]],\"order\":[\"min\",\"size\"],\"take\":\"path\"",
            text("/data/b.log"),
        ),
        (
            "\"where\":[[\"kind\",\"eq\",\"file\"],[\"name\",\"prefix\",\"a\"]],\"take\":\"path\"",
            text("/data/a.md"),
        ),
        ("\"where\":[[\"name\",\"prefix\",\"c\\\"\"]],\"take\":\"kind\"", text("file")),
        ("\"where\":[[\"name\",\"prefix\",\"c\\\"\\n\"]],\"take\":\"kind\"", text("file")),
        ("\"where\":[[\"size\",\"eq\",10]],\"take\":\"name\"", text("a.md")),
        ("\"where\":[[\"size\",\"eq\",10]],\"take\":\"size\"", Some(Taken::Json("10"))),
        ("\"order\":[\"max\",\"name\"],\"take\":\"path\"", text("/data/sub")),
        ("\"order\":[\"min\",\"name\"],\"take\":\"path\"", text("/data/a.md")),
        ("\"order\":[\"min\",\"modified\"],\"take\":\"size\"", Some(Taken::Json("100"))),
        // Tied.
        ("\"where\":[[\"kind\",\"eq\",\"file\"]],\"take\":\"path\"", None),
        (
            "\"where\":[[\"kind\",\"eq\",\"file\"]],\"order\":[\"max\",\"modified\"],\"take\":\"path\"",
            None,
        ),
        ("\"order\":[\"max\",\"kind\"],\"take\":\"kind\"", None),
        ("\"take\":\"path\"", None),
        // Absent.
        ("\"where\":[[\"kind\",\"eq\",\"link\"]],\"take\":\"path\"", None),
        (
            "\"where\":[[\"kind\",\"eq\",\"link\"]],\"order\":[\"max\",\"size\"],\"take\":\"path\"",
            None,
        ),
        ("\"where\":[[\"owner\",\"eq\",\"a\"]],\"take\":\"path\"", None),
        ("\"where\":[[\"name\",\"eq\",\"a.md\"]],\"take\":\"owner\"", None),
        ("\"order\":[\"max\",\"owner\"],\"take\":\"path\"", None),
        // Of another kind.
        ("\"where\":[[\"size\",\"eq\",\"10\"]],\"take\":\"path\"", None),
        ("\"where\":[[\"size\",\"prefix\",10]],\"take\":\"path\"", None),
        ("\"where\":[[\"size\",\"prefix\",\"1\"]],\"take\":\"path\"", None),
        ("\"where\":[[\"name\",\"eq\",\"A.md\"]],\"take\":\"path\"", None),
        ("\"where\":[[\"name\",\"prefix\",\"c\\\\\"]],\"take\":\"path\"", None),
    ];
    for (rest, expected) in table {
        let found = resolve(&selector(rest), LISTING.as_bytes(), Some("/data/"));
        assert_eq!(found, expected, "{rest}");
    }
}

#[test]
fn records_of_a_connector_are_taken_as_they_are() {
    let reply = r#"[{"id":7,"to":["a@x","b@x"],"path":"/etc","when":"2024-05-01"},
        {"id":8,"to":[],"path":"/tmp","when":"2024-05-02","of":{"a":[1]}}]"#
        .replace(['\n', ' '], "");
    let table = [
        ("\"where\":[[\"id\",\"eq\",7]],\"take\":\"to\"", Some(Taken::Json("[\"a@x\",\"b@x\"]"))),
        ("\"where\":[[\"id\",\"eq\",8]],\"take\":\"to\"", Some(Taken::Json("[]"))),
        ("\"where\":[[\"id\",\"eq\",8]],\"take\":\"of\"", Some(Taken::Json("{\"a\":[1]}"))),
        ("\"order\":[\"max\",\"when\"],\"take\":\"path\"", Some(Taken::Text("/tmp".into()))),
        // One record lacks it.
        ("\"order\":[\"max\",\"of\"],\"take\":\"path\"", None),
        ("\"order\":[\"max\",\"to\"],\"take\":\"path\"", None),
    ];
    for (rest, expected) in table {
        assert_eq!(resolve(&selector(rest), reply.as_bytes(), None), expected, "{rest}");
    }
}

#[test]
fn what_is_malformed_selects_nothing() {
    let one = selector("\"take\":\"name\"");
    let most = selector("\"order\":[\"max\",\"size\"],\"take\":\"name\"");
    assert_eq!(resolve(&one, b"[{\"name\":\"a\"}]", None), Some(Taken::Text("a".into())));
    for reply in [
        "",
        "[",
        "[]",
        "{}",
        "null",
        "[{\"name\":\"a\"}",
        "[{\"name\":\"a\"}] ",
        " [{\"name\":\"a\"}]",
        "[{\"name\":\"a\"},]",
        "[{\"name\":\"a\"}]x",
        "[{\"name\": \"a\"}]",
        "[\"name\"]",
        "[[\"name\",\"a\"]]",
        "{\"name\":\"a\"}",
        "[{\"name\":\"a\",\"name\":\"b\"}]",
        "[{\"name\":\"a\",\"name\":\"a\"}]",
        "[{\"name\":\"\\u0041\"}]",
        "[{\"name\":\"a\",\"n\":1.0}]",
        "[{\"name\":\"a\",\"n\":1e3}]",
        "[{\"name\":{\"$held\":1}}]",
        "[{\"name\":\"a\",\"d\":[[[1]]]}]",
        "[{\"name\":\"a\\\"}]",
    ] {
        assert_eq!(resolve(&one, reply.as_bytes(), None), None, "{reply}");
    }
    assert_eq!(resolve(&one, b"[{\"name\":\"\xff\"}]", None), None);
    for reply in [
        r#"[{"name":"a","size":1},{"name":"b","size":"2"}]"#,
        r#"[{"name":"a","size":1},{"name":"b"}]"#,
        r#"[{"name":"a","size":1},{"name":"b","size":null}]"#,
        r#"[{"name":"a","size":1},{"name":"b","size":2,"size":0}]"#,
        r#"[{"name":"a","size":2},{"name":"b","size":1},{"name":"c","size":2}]"#,
        r#"[{"name":"a","size":1},5]"#,
    ] {
        assert_eq!(resolve(&most, reply.as_bytes(), None), None, "{reply}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(resolve(&one, deep.as_bytes(), None), None);
}

#[test]
fn literals_are_told_with_their_field() {
    let all = selector(
        "\"where\":[[\"kind\",\"eq\",\"file\"],[\"a\\\"b\",\"prefix\",\"c\\n\"],[\"size\",\"eq\",-1.5],[\"x\",\"eq\",true]],\"order\":[\"max\",\"size\"],\"take\":\"path\"",
    );
    let found: Vec<_> =
        conditions(&all).map(|(field, _, json)| (field.into_owned(), json)).collect();
    let expected = [("kind", "\"file\""), ("a\"b", "\"c\\n\""), ("size", "-1.5"), ("x", "true")];
    assert!(found.iter().map(|(field, json)| (&**field, *json)).eq(expected));
    assert_eq!(conditions(&selector("\"take\":\"path\"")).count(), 0);
}

proptest! {
    #[test]
    fn the_largest_is_that_of_a_plain_search(sizes in prop::collection::vec(0_u32..6, 0..6)) {
        let records: Vec<String> = sizes.iter().enumerate()
            .map(|(at, size)| format!("{{\"name\":\"n{at}\",\"size\":{size}}}")).collect();
        let reply = format!("[{}]", records.join(","));
        let most = selector("\"order\":[\"max\",\"size\"],\"take\":\"path\"");
        let top = sizes.iter().max();
        let holders: Vec<usize> =
            (0..sizes.len()).filter(|at| Some(&sizes[*at]) == top).collect();
        let expected = match holders.as_slice() {
            [at] => Some(Taken::Text(format!("/d/n{at}").into())),
            _ => None,
        };
        prop_assert_eq!(resolve(&most, reply.as_bytes(), Some("/d")), expected);
    }

    #[test]
    fn any_reply_is_read(reply in any::<Vec<u8>>(), cut in 0..LISTING.len()) {
        let most = selector("\"order\":[\"max\",\"size\"],\"take\":\"path\"");
        prop_assert_eq!(resolve(&most, &reply, None), None);
        prop_assert_eq!(resolve(&most, &LISTING.as_bytes()[..cut], None), None);
    }
}
