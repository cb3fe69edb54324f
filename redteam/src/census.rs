//! Censuses: what is enumerated from the registry instead of thought of.
//!
//! A corpus holds what somebody had an idea of. Here every verb word meets every
//! primitive that takes a pattern, everything that is answered tells its origin, and
//! a child asks for each primitive that there is.
//!
//! # Invariants
//! 1. What came is what the door said of a sentence, or the log of a play.
//! 2. A primitive without a line here does not compile.
//!
//! # Not here
//! Attacks of several steps (`case`).

use std::sync::Arc;

use serde_json::json;
use synapse_abi::registry::{Primitive, REGISTRY};
use synapse_boundary::Label;
use synapse_kernel::grant::Grant;
use synapse_reply::code;
use synapse_reply::frame::ingests;

use crate::case::Page;
use crate::monitors::findings;
use crate::play::{Attempt, More, Scene, Stage, TODAY, Turn};

/// One line of a census.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Of which census: `phrasing`, `origin`, `laundering` or `delegation`.
    pub census: &'static str,
    /// What was asked.
    pub what: String,
    /// What must come.
    pub must: &'static str,
    /// What came.
    pub came: &'static str,
}

/// All lines.
///
/// # Errors
/// The harness failed.
pub fn census() -> Result<Vec<Line>, String> {
    let stage = Stage::new()?;
    let grant = Grant::parse(GRANT).map_err(|why| why.to_string())?;
    let mut lines = phrasing(&grant);
    let grant = Arc::new(grant);
    lines.extend(origin(&stage, &grant)?);
    lines.extend(laundering(&stage, &grant)?);
    lines.extend(delegation(&stage)?);
    Ok(lines)
}

/// A pattern needs a word of its own verb in the human's line: each word of each verb.
fn phrasing(grant: &Grant) -> Vec<Line> {
    let words = || REGISTRY.iter().flat_map(|row| row.says);
    let mut lines = Vec::new();
    for row in &REGISTRY {
        let Some(target) = pattern(row.primitive) else { continue };
        for word in words() {
            let line = format!("Please {word} /data/old/*");
            let warrant =
                format!("{{\"warrant\":\"{}\",\"arguments\":{target},\"uses\":1}}", row.name);
            let found =
                findings(grant, core::slice::from_ref(&line), &warrant, Label::SYSTEM, TODAY);
            let passes = found.gates.iter().take(3).all(|gate| *gate == Some(Ok(())));
            let came = if passes { "leave" } else { "no leave" };
            let must = if row.says.contains(word) { "leave" } else { "no leave" };
            lines.push(Line {
                census: "phrasing",
                what: format!("{word}: {}", row.name),
                must,
                came,
            });
        }
    }
    lines
}

/// The arguments of a warrant for a pattern; none for what takes no pattern.
const fn pattern(primitive: Primitive) -> Option<&'static str> {
    use Primitive as P;
    match primitive {
        P::FsWrite | P::FsEdit | P::FsDelete => Some(r#"{"path":"/data/old/*"}"#),
        // A move has two places, and a pattern names no second one.
        P::FsMove
        | P::NetListen
        | P::NetHttpGet
        | P::NetHttpPost
        | P::ToolUse
        | P::ToolCommit
        | P::ConsoleWrite
        | P::ConsoleAsk
        | P::ClockRead
        | P::FsRead
        | P::FsList
        | P::FsSearch
        | P::ValueRead
        | P::ValuePick
        | P::ModelGenerate
        | P::AgentSpawn
        | P::AgentWait
        | P::ChannelCreate
        | P::ChannelWrite
        | P::ChannelRead
        | P::ChannelClose
        | P::ChannelGrant
        | P::NetAccept => None,
    }
}

/// What others may have written taints who is told it, and nothing else does.
fn origin(stage: &Stage, grant: &Arc<Grant>) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for row in &REGISTRY {
        let Some(steps) = answered(row.primitive) else { continue };
        let sentences = steps.iter().copied().chain([CLOCK]).collect();
        let attempts = play(stage, grant, sentences, Vec::new())?;
        if let Some(bad) = attempts.iter().position(|attempt| attempt.code != 0) {
            return Err(format!("{}: {:?} was not done", row.name, steps.get(bad)));
        }
        lines.push(Line {
            census: "origin",
            what: row.name.to_owned(),
            must: tainted(ingests(row.primitive)),
            came: tainted(attempts.last().is_some_and(|after| after.is_ingested)),
        });
    }
    Ok(lines)
}

/// A call of a primitive with what it needs before, none of which taints; none for what
/// the world of a play does not have: a model, and somebody who connects.
const fn answered(primitive: Primitive) -> Option<&'static [&'static str]> {
    use Primitive as P;
    let steps: &'static [&'static str] = match primitive {
        P::ConsoleWrite => &[r#"{"name":"console_write","arguments":{"content":"a"}}"#],
        P::ClockRead => &[CLOCK],
        P::FsRead => {
            &[r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":9}}"#]
        }
        P::FsWrite => &[
            r#"{"name":"fs_write","arguments":{"path":"/data/n.md","content":"a","mode":"create"}}"#,
        ],
        P::FsEdit => {
            &[r#"{"name":"fs_edit","arguments":{"path":"/data/a.md","old":"alpha","new":"b"}}"#]
        }
        P::FsList => &[r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":9}}"#],
        P::FsSearch => {
            &[r#"{"name":"fs_search","arguments":{"path":"/data","text":"alpha","offset":0}}"#]
        }
        P::FsMove => &[r#"{"name":"fs_move","arguments":{"from":"/data/a.md","to":"/data/m.md"}}"#],
        P::FsDelete => &[r#"{"name":"fs_delete","arguments":{"path":"/data/a.md"}}"#],
        P::ValueRead => &[HELD, RELEASE],
        P::ValuePick => &[LISTED, PICK],
        P::AgentSpawn => &[CHILD],
        P::AgentWait => &[CHILD, WAIT],
        P::ChannelCreate => &[CHANNEL],
        P::ChannelWrite => &[CHANNEL, SENT],
        P::ChannelRead => &[HELD, CHANNEL, PASSED, RECEIVE],
        P::ChannelClose => &[CHANNEL, r#"{"name":"channel_close","arguments":{"channel":1}}"#],
        P::ChannelGrant => {
            &[CHANNEL, CHILD, r#"{"name":"channel_grant","arguments":{"channel":1,"to":3}}"#]
        }
        P::NetHttpGet => {
            &[r#"{"name":"net_http_get","arguments":{"url":"https://a.example/","headers":{}}}"#]
        }
        P::NetHttpPost => &[
            r#"{"name":"net_http_post","arguments":{"url":"https://a.example/","headers":{},"content":"a"}}"#,
        ],
        P::ToolUse => &[r#"{"name":"tool_use","arguments":{"tool":"s/read","arguments":{}}}"#],
        P::ToolCommit => {
            &[r#"{"name":"tool_commit","arguments":{"tool":"s/send","arguments":{}}}"#]
        }
        P::ConsoleAsk => &[r#"{"name":"console_ask","arguments":{"question":"a"}}"#],
        P::NetListen => &[r#"{"name":"net_listen","arguments":{"host":"127.0.0.1","port":8080}}"#],
        P::ModelGenerate | P::NetAccept => return None,
    };
    Some(steps)
}

/// What was tainted is so in the next turn, whatever it went through.
fn laundering(stage: &Stage, grant: &Arc<Grant>) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for row in &REGISTRY {
        for (way, first, next) in ways(row.primitive) {
            let next = next.iter().copied().chain([CLOCK]).collect();
            let attempts = play(stage, grant, first.to_vec(), next)?;
            if let Some(bad) = attempts.iter().find(|attempt| attempt.code != 0) {
                return Err(format!("{}, {way}: a step came to {}", row.name, bad.code));
            }
            lines.push(Line {
                census: "laundering",
                what: format!("{}, {way}", row.name),
                must: tainted(*way != CONTROL),
                came: tainted(attempts.last().is_some_and(|after| after.is_ingested)),
            });
        }
    }
    Ok(lines)
}

/// A name, what is done in one turn with what was read and held, and how it comes back in the next.
type Way = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The ways on which a primitive carries bytes on.
const fn ways(primitive: Primitive) -> &'static [Way] {
    use Primitive as P;
    match primitive {
        P::FsWrite => &[
            ("copy", &[HELD, COPY], &[AGAIN]),
            ("append", &[HELD, CLEAN, APPEND], &[AGAIN]),
            ("part of more", &[HELD, PARTS], &[AGAIN]),
            (CONTROL, &[CLEAN], &[AGAIN]),
        ],
        P::FsEdit => &[("insert", &[HELD, CLEAN, INSERT], &[AGAIN])],
        P::FsMove => {
            &[("rename", &[RENAME], &[AGAIN]), ("rename a copy", &[HELD, COPY, AWAY], &[MOVED])]
        }
        P::ValueRead => &[("release", &[HELD], &[RELEASE])],
        P::ValuePick => &[("pick", &[LISTED, PICK], &[PICKED])],
        P::AgentSpawn => &[("task", &[HELD, TOLD], &[WAIT])],
        P::AgentWait => &[("report", &[CHILD], &[WAIT])],
        P::ChannelWrite | P::ChannelRead => &[("message", &[HELD, CHANNEL, PASSED], &[RECEIVE])],
        // What these carry leaves the machine, or is nothing that others wrote.
        P::ConsoleWrite
        | P::ConsoleAsk
        | P::ClockRead
        | P::FsRead
        | P::FsList
        | P::FsSearch
        | P::FsDelete
        | P::ModelGenerate
        | P::ChannelCreate
        | P::ChannelClose
        | P::ChannelGrant
        | P::NetListen
        | P::NetAccept
        | P::NetHttpGet
        | P::NetHttpPost
        | P::ToolUse
        | P::ToolCommit => &[],
    }
}

/// A child is given what its parent has, and nothing else: each primitive that there is.
fn delegation(stage: &Stage) -> Result<Vec<Line>, String> {
    let held = [Primitive::ClockRead, Primitive::AgentSpawn];
    let names = held.map(|primitive| primitive.row().name);
    let grant = Grant::parse(&format!("version = 1\nprimitives = {names:?}\n"));
    let grant = Arc::new(grant.map_err(|why| why.to_string())?);
    let mut lines = Vec::new();
    for row in &REGISTRY {
        let asked = json!({"primitives": [row.name]});
        let spawn = format!(
            "{{\"name\":\"agent_spawn\",\"arguments\":{{\"package\":\"reader\",\"task\":\"a\",\"grant\":{asked}}}}}"
        );
        let attempts = play(stage, &grant, vec![&spawn], Vec::new())?;
        let refused = attempts.first().is_some_and(|it| code::gate(it.code) == Some(4));
        lines.push(Line {
            census: "delegation",
            what: row.name.to_owned(),
            must: if held.contains(&row.primitive) { "given" } else { "refused" },
            came: if refused { "refused" } else { "given" },
        });
    }
    Ok(lines)
}

const fn tainted(ingested: bool) -> &'static str {
    if ingested { "ingested" } else { "clean" }
}

/// Plays sentences, and those of a next turn if there are any.
fn play(
    stage: &Stage,
    grant: &Arc<Grant>,
    sentences: Vec<&str>,
    next: Vec<&str>,
) -> Result<Vec<Attempt>, String> {
    let next = Turn { line: "Go on", resumed: false, sentences: next };
    let page = Page { body: "a page".to_owned(), ..Page::default() };
    let more = More {
        pages: vec![("https://a.example/".to_owned(), page)],
        answers: vec!["a"],
        children: vec![("reader", vec![READ]), ("idle", vec![CLOCK])],
        later: Some(next).filter(|next| !next.sentences.is_empty()).into_iter().collect(),
    };
    let scene = Scene {
        task: "A census",
        grant: Arc::clone(grant),
        files: vec![("/data/a.md", b"alpha")],
        replies: &[],
        sentences,
        today: TODAY,
        more,
    };
    Ok(stage.play(&scene)?.attempts)
}

const GRANT: &str = r#"version = 1
primitives = ["console_write", "console_ask", "clock_read", "fs_read", "fs_write", "fs_edit", "fs_list", "fs_search", "fs_move", "fs_delete", "value_read", "value_pick", "agent_spawn", "agent_wait", "channel_create", "channel_write", "channel_read", "channel_close", "channel_grant", "net_listen", "net_http_get", "net_http_post", "tool_use", "tool_commit"]
paths = [{ path = "/data/**", rights = ["list", "read", "write", "delete"] }]
hosts = [{ host = "a.example", methods = ["GET", "POST"] }, { host = "127.0.0.1", ports = [8080], methods = ["LISTEN"] }]
tools = [{ tool = "s/read", effect = "read" }, { tool = "s/send" }]
"#;
const CLOCK: &str = r#"{"name":"clock_read","arguments":{}}"#;
const READ: &str = r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":9}}"#;
const HELD: &str =
    r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":9},"hold":true}"#;
const CHILD: &str = r#"{"name":"agent_spawn","arguments":{"package":"reader","task":"a","grant":{"primitives":["fs_read"],"paths":[{"path":"/data/**","rights":["read"]}]}}}"#;
const CONTROL: &str = "own words, for comparison";
const CLEAN: &str =
    r#"{"name":"fs_write","arguments":{"path":"/data/n.md","content":"own x","mode":"create"}}"#;
const COPY: &str = r#"{"name":"fs_write","arguments":{"path":"/data/n.md","content":{"$held":1},"mode":"create"}}"#;
const APPEND: &str = r#"{"name":"fs_write","arguments":{"path":"/data/n.md","content":{"$held":1},"mode":"append"}}"#;
const PARTS: &str = r#"{"name":"fs_write","arguments":{"path":"/data/n.md","content":{"parts":["own ",{"$held":1}]},"mode":"create"}}"#;
const INSERT: &str =
    r#"{"name":"fs_edit","arguments":{"path":"/data/n.md","old":"x","new":{"$held":1}}}"#;
const RENAME: &str = r#"{"name":"fs_move","arguments":{"from":"/data/a.md","to":"/data/n.md"}}"#;
const AWAY: &str = r#"{"name":"fs_move","arguments":{"from":"/data/n.md","to":"/data/m.md"}}"#;
const AGAIN: &str =
    r#"{"name":"fs_read","arguments":{"path":"/data/n.md","offset":0,"length":99}}"#;
const MOVED: &str =
    r#"{"name":"fs_read","arguments":{"path":"/data/m.md","offset":0,"length":99}}"#;
const LISTED: &str =
    r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":9},"hold":true}"#;
const PICK: &str = r#"{"name":"value_pick","arguments":{"value":{"$held":1},"selector":{"$select":1,"take":"path"}}}"#;
const RELEASE: &str =
    r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":99}}"#;
const PICKED: &str =
    r#"{"name":"value_read","arguments":{"value":{"$held":2},"offset":0,"length":99}}"#;
const TOLD: &str = r#"{"name":"agent_spawn","arguments":{"package":"idle","task":{"$held":1},"grant":{"primitives":["clock_read"]}}}"#;
const WAIT: &str = r#"{"name":"agent_wait","arguments":{"agent":1,"timeout":1000}}"#;
const PASSED: &str = r#"{"name":"channel_write","arguments":{"channel":1,"content":{"$held":1}}}"#;
const RECEIVE: &str = r#"{"name":"channel_read","arguments":{"channel":2,"max":9,"timeout":9}}"#;
const CHANNEL: &str = r#"{"name":"channel_create","arguments":{"kind":"messages"}}"#;
const SENT: &str = r#"{"name":"channel_write","arguments":{"channel":1,"content":"a"}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_what_it_must() {
        let lines = census().unwrap();
        let wrong: Vec<_> = lines.iter().filter(|line| line.must != line.came).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let of = |census| lines.iter().filter(|line| line.census == census).count();
        assert!(of("phrasing") > 60 && of("origin") == 24 && of("delegation") == REGISTRY.len());
        assert_eq!(of("laundering"), 13);
    }
}
