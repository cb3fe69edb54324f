//! A sentence that fails twice is refused for what comes first; mended there, for
//! what comes next. `examine` says the same (see `agree::outcome`).

use synapse_abi::registry::{Kind, REGISTRY, Rights};
use synapse_boundary::capability::End;
use synapse_boundary::scope::{Effect, Method};
use synapse_boundary::{Integrity, Warrants};

use crate::agree::{Tape, outcome};
use crate::world::{Limit, NetEntry, Outcome, Stamp, ToolEntry, Value, World};

/// The handles of [`world`].
const CHANNEL: u64 = 1;
const AGENT: u64 = 2;

/// A world in which much is granted and nothing was read.
pub(crate) fn world() -> World {
    let granted: Vec<_> = REGISTRY.iter().map(|row| row.primitive).collect();
    let mut table = World::table(&granted);
    let [channel, agent] = [Kind::Channel, Kind::Agent].map(|kind| End { kind, peer: None });
    assert_eq!(table.open(channel).zip(table.open(agent)), Some((CHANNEL, AGENT)));
    let all = [Rights::LIST, Rights::READ, Rights::WRITE, Rights::DELETE];
    let user = Stamp { integrity: Integrity::User, secrecy: 0 };
    let value = |number, bytes: &str, integrity| Value {
        number,
        stamp: Stamp { integrity, secrecy: 0 },
        bytes: bytes.into(),
        fault: None,
    };
    let tool = |name, effect| ToolEntry {
        name,
        effect,
        limits: vec![("to", Limit::Like(&["*@a.example"]))],
        clear: 1,
        roles: &[],
        says: &[],
    };
    World {
        granted,
        calls_left: 9,
        mark: user,
        allow: vec![("/data/**", all.into_iter().fold(Rights::NONE, Rights::and))],
        deny: vec!["/data/private/**", "/no/**"],
        nets: vec![NetEntry {
            host: "a.example",
            methods: vec![Method::Get, Method::Post],
            ports: (1, 65_535),
            paths: vec!["/"],
            clear: 1,
            secrets: vec!["a"],
            reads: false,
        }],
        served: vec![("a", "a.example"), ("b_9", "a.example")],
        deny_hosts: vec!["no.b.example"],
        tools: vec![tool("mail/send", Effect::Commit), tool("notes/add", Effect::Store)],
        held: vec![
            value(1, "/data/x", Integrity::Ingested),
            value(2, "https://A.example/", Integrity::User),
            value(3, &format!("/..{}", "/l".repeat(2048)), Integrity::User),
        ],
        handles: Vec::new(),
        journal_room: 1 << 20,
        own: Vec::new(),
        table,
        lines: Vec::new(),
        warrants: Warrants::default(),
        leave: Vec::new(),
        funded: Vec::new(),
        mounts: Vec::new(),
    }
}

/// A change to a world.
type Change = fn(&mut World);

const READ: Change = |world| world.mark.integrity = Integrity::Ingested;
const SPENT: Change = |world| world.calls_left = 0;
const NOTHING_GRANTED: Change = |world| world.table = World::table(&[]);
const SECRET: Change = |world| world.mark.secrecy = 2;

fn delete(path: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"{path}"}}}}"#)
}

fn replace(path: &str) -> String {
    format!(
        r#"{{"name":"fs_write","arguments":{{"path":"{path}","content":"","mode":"replace"}}}}"#
    )
}

fn tool(primitive: &str, tool: &str, to: &str) -> String {
    format!(
        r#"{{"name":"{primitive}","arguments":{{"tool":"{tool}","arguments":{{"to":"{to}"}}}}}}"#
    )
}

fn post(url: &str, content: &str) -> String {
    format!(
        r#"{{"name":"net_http_post","arguments":{{"url":{url},"headers":{{}},"content":{content}}}}}"#
    )
}

fn grant(channel: u64, to: u64) -> String {
    format!(r#"{{"name":"channel_grant","arguments":{{"channel":{channel},"to":{to}}}}}"#)
}

fn moved(from: &str, to: &str) -> String {
    format!(r#"{{"name":"fs_move","arguments":{{"from":"{from}","to":"{to}"}}}}"#)
}

/// Sees to it that a sentence in a changed world comes to the first code, and what
/// is mended of it to the second.
fn pair(
    first: u16,
    both: impl AsRef<[u8]>,
    changes: &[Change],
    second: u16,
    mended: impl AsRef<[u8]>,
    fewer: &[Change],
) {
    let (both, mended) = (code(both.as_ref(), changes), code(mended.as_ref(), fewer));
    assert_eq!((both, mended), (first, second), "{first} goes before {second}");
}

fn code(sentence: &[u8], changes: &[Change]) -> u16 {
    let mut world = world();
    for change in changes {
        change(&mut world);
    }
    let mut log = Tape::default();
    match outcome(&mut log, &mut world, sentence).0 {
        Outcome::Permitted | Outcome::Minted => 0,
        Outcome::Question(code) | Outcome::Refused(code) => code,
    }
}

#[test]
fn i1_within_gate_1_length_then_grammar_left_to_right_then_the_first_counter_or_url() {
    let over = vec![0xff; (1 << 20) + 1];
    let at = &over[1..];
    let parts = |count: usize| format!(r#"{{"parts":[{}]}}"#, vec![r#""""#; count].join(","));
    let long_url = format!("\"https://A.example/{}\"", "l".repeat(2048));
    let long = format!("\"https://a.example/{}\"", "l".repeat(2048));
    let (wrong, right) = (r#""https://A.example/""#, r#""https://a.example/""#);
    let cut = |mut text: String| {
        text.pop();
        text.into_bytes()
    };
    pair(102, &over, &[], 101, at, &[]);
    pair(101, b"{\"name\":\"nope\"}\xff", &[], 103, b"{\"name\":\"nope\"}", &[]);
    pair(101, br#" {"name":"nope"}"#, &[], 103, br#"{"name":"nope"}"#, &[]);
    pair(103, br#"{"name":"nope"} "#, &[], 101, br#"{"name":"fs_read"} "#, &[]);
    pair(101, cut(post(wrong, "\"\"")), &[], 104, post(wrong, "\"\""), &[]);
    pair(101, cut(post(right, &parts(65))), &[], 102, post(right, &parts(65)), &[]);
    pair(104, post(wrong, &parts(65)), &[], 102, post(right, &parts(65)), &[]);
    pair(102, post(&long_url, "\"\""), &[], 104, post(wrong, "\"\""), &[]);
    pair(
        102,
        post(&long, "\"\""),
        &[NOTHING_GRANTED],
        201,
        post(right, "\"\""),
        &[NOTHING_GRANTED],
    );
    pair(
        104,
        post(wrong, "\"\""),
        &[NOTHING_GRANTED],
        201,
        post(right, "\"\""),
        &[NOTHING_GRANTED],
    );
    pair(
        103,
        br#"{"name":"nope","arguments":{}}"#,
        &[NOTHING_GRANTED],
        201,
        br#"{"name":"clock_read","arguments":{}}"#,
        &[NOTHING_GRANTED],
    );
}

#[test]
fn i1_within_gate_2_the_grant_then_the_budget_then_handles_and_all_before_gate_3() {
    const CLOSE: &[u8] = br#"{"name":"channel_close","arguments":{"channel":7}}"#;
    const WARRANT: &[u8] =
        br#"{"warrant":"fs_delete","arguments":{"path":{"$select":9,"take":"path"}},"uses":1}"#;
    const MINTED: &[u8] =
        br#"{"warrant":"fs_delete","arguments":{"path":{"$select":1,"take":"path"}},"uses":1}"#;
    const NO_TARGET: &[u8] = br#"{"name":"fs_delete","arguments":{"path":{"$held":9}}}"#;
    pair(201, CLOSE, &[NOTHING_GRANTED, SPENT], 203, CLOSE, &[SPENT]);
    pair(203, CLOSE, &[SPENT], 202, CLOSE, &[]);
    pair(201, CLOSE, &[NOTHING_GRANTED], 202, CLOSE, &[]);
    pair(202, NO_TARGET, &[READ], 301, delete("/data/x"), &[READ]);
    pair(202, NO_TARGET, &[], 402, delete("/no/x"), &[]);
    pair(202, grant(CHANNEL, CHANNEL), &[READ], 301, grant(CHANNEL, AGENT), &[READ]);
    pair(202, WARRANT, &[READ], 305, MINTED, &[READ]);
    pair(201, MINTED, &[NOTHING_GRANTED, READ], 305, MINTED, &[READ]);
    pair(203, MINTED, &[SPENT, READ], 305, MINTED, &[READ]);
    pair(305, MINTED, &[READ], 310, MINTED, &[]);
    pair(203, delete("/no/x"), &[SPENT, READ], 301, delete("/no/x"), &[READ]);
}

#[test]
fn i1_within_gate_3_protected_names_then_harm_then_secrecy_and_all_before_gate_4() {
    const NO_ROOM: Change = |world| world.journal_room = 0;
    let url = r#""https://a.example/""#;
    let post = post(url, r#""x""#);
    let (soul, out, denied) = (delete("/data/SOUL.md"), delete("/out"), delete("/no/x"));
    let relative = delete("x");
    let store = tool("tool_use", "notes/add", "x@a.example");
    let over = tool("tool_use", "notes/add", "x@c");
    let wrong_verb = tool("tool_use", "mail/send", "x@a.example");
    pair(302, &soul, &[READ], 301, delete("/data/x"), &[READ]);
    pair(
        302,
        replace("/data/SOUL.md"),
        &[READ, NO_ROOM],
        303,
        replace("/data/x"),
        &[READ, NO_ROOM],
    );
    pair(301, &post, &[READ, SECRET], 304, &post, &[SECRET]);
    pair(301, &store, &[READ, SECRET], 304, &store, &[SECRET]);
    pair(302, delete("/no/SOUL.md"), &[READ], 402, delete("/no/SOUL.md"), &[]);
    pair(301, &out, &[READ], 401, &out, &[]);
    pair(301, &denied, &[READ], 402, &denied, &[]);
    pair(301, &relative, &[READ], 403, &relative, &[]);
    pair(302, moved("x", "/data/SOUL.md"), &[READ], 403, moved("x", "/data/y"), &[READ]);
    pair(303, replace("/out"), &[READ, NO_ROOM], 401, replace("/out"), &[READ]);
    pair(304, &over, &[SECRET], 407, &over, &[]);
    pair(304, &wrong_verb, &[SECRET], 401, &wrong_verb, &[]);
}

#[test]
fn a_get_that_carries_a_secret_is_destructive_unless_its_entry_says_that_it_reads() {
    const READS: Change = |world| world.nets[0].reads = true;
    const UNSERVED: Change = |world| world.served.clear();
    let get = |host: &str, headers: &str| {
        format!(
            r#"{{"name":"net_http_get","arguments":{{"url":"https://{host}/","headers":{headers}}}}}"#
        )
    };
    let carrying = get("a.example", r#"{"x-key":"{secret:a}"}"#);
    pair(301, &carrying, &[READ], 0, &carrying, &[]);
    pair(0, &carrying, &[READ, READS], 0, get("a.example", "{}"), &[READ]);
    pair(410, &carrying, &[READ, READS, UNSERVED], 410, &carrying, &[UNSERVED]);
    let unnamed = get("a.example", r#"{"x-key":"{secret:b_9}"}"#);
    pair(410, &unnamed, &[READ], 401, get("b.example", r#"{"x-key":"{secret:a}"}"#), &[]);
    let part = get("a.example", r#"{"x-key":"x{secret:a}","te":"x"}"#);
    pair(410, &part, &[READ], 407, get("a.example", r#"{"te":"x"}"#), &[READ]);
}

#[test]
fn i1_within_gate_4_defects_then_deny_then_allow_then_limits_target_by_target() {
    let over = format!("/data/{}:", "l".repeat(255));
    pair(403, delete("../a:b"), &[], 404, delete("/../a:b"), &[]);
    pair(404, delete("/../a:b"), &[], 405, delete("/a:b"), &[]);
    pair(405, delete("/a:b/../../.."), &[], 404, delete("/ab/../../.."), &[]);
    pair(406, delete(&over), &[], 405, delete("/data/l:"), &[]);
    pair(
        406,
        br#"{"name":"fs_delete","arguments":{"path":{"$held":3}}}"#,
        &[],
        404,
        delete("/../l"),
        &[],
    );
    pair(405, delete("/no/a:b"), &[], 402, delete("/no/ab"), &[]);
    pair(402, delete("/no/ab"), &[], 401, delete("/ab"), &[]);
    pair(
        401,
        tool("tool_commit", "notes/add", "x@c"),
        &[],
        407,
        tool("tool_commit", "mail/send", "x@c"),
        &[],
    );
    pair(401, moved("/out", "/no/x"), &[], 402, moved("/data/x", "/no/x"), &[]);
    pair(402, moved("/no/x", "/data/a:b"), &[], 405, moved("/data/x", "/data/a:b"), &[]);
    pair(
        409,
        post(r#"{"$held":2}"#, "\"\""),
        &[],
        402,
        post("\"https://no.b.example/\"", "\"\""),
        &[],
    );
    pair(
        402,
        post("\"https://no.b.example/\"", "\"\""),
        &[],
        401,
        post("\"https://b.example/\"", "\"\""),
        &[],
    );
    assert_eq!(code(delete("/data/x").as_bytes(), &[]), 0);
}
