//! Every primitive with every way to end: whose label its answer has, and that what
//! came from outside names the record that brought it.

use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Kind, Primitive, REGISTRY, Row};
use synapse_boundary::capability::{End, Table};
use synapse_boundary::gates::Question;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::scope::{
    Effect, HostPattern, Method, Net, Pattern, Scope, Terms, Tool, Verb,
};
use synapse_boundary::{
    Authorized, Entry, Facts, Held, Integrity, Label, Mark, Names, NormalPath, Opened, Origin,
    Recorder, Request, Rights, Said, Secrecy, Warrants, commit, decide,
};
use synapse_reply::Fault;
use synapse_reply::frame::ingests;

use super::{Done, label};
use crate::fetch::Reached;
use crate::labelled::Labelled;

/// The record of every decision here, and that of the held value.
const RECORD: u64 = 40;
const VALUE: u64 = 7;

/// A call of each primitive, in the order of the registry.
const CALLS: [&str; REGISTRY.len()] = [
    r#"{"name":"console_write","arguments":{"content":"a"}}"#,
    r#"{"name":"console_ask","arguments":{"question":"a"}}"#,
    r#"{"name":"clock_read","arguments":{}}"#,
    r#"{"name":"fs_read","arguments":{"path":"/a","offset":0,"length":1}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/a","content":"a","mode":"create"}}"#,
    r#"{"name":"fs_edit","arguments":{"path":"/a","old":"x","new":"y"}}"#,
    r#"{"name":"fs_list","arguments":{"path":"/a","after":"","limit":1}}"#,
    r#"{"name":"fs_search","arguments":{"path":"/a","text":"t","offset":0}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/a","to":"/b"}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/a"}}"#,
    r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":1}}"#,
    r#"{"name":"value_pick","arguments":{"value":{"$held":1},"selector":{"$select":1,"take":"p"}}}"#,
    r#"{"name":"model_generate","arguments":{"prompt":[{"role":"user","text":"a"}],"grammar":"json","max_tokens":9}}"#,
    r#"{"name":"agent_spawn","arguments":{"package":"a-b","task":"t","grant":{}}}"#,
    r#"{"name":"agent_wait","arguments":{"agent":1,"timeout":2}}"#,
    r#"{"name":"channel_create","arguments":{"kind":"bytes"}}"#,
    r#"{"name":"channel_write","arguments":{"channel":2,"content":"c"}}"#,
    r#"{"name":"channel_read","arguments":{"channel":2,"max":2,"timeout":3}}"#,
    r#"{"name":"channel_close","arguments":{"channel":2}}"#,
    r#"{"name":"channel_grant","arguments":{"channel":2,"to":1}}"#,
    r#"{"name":"net_listen","arguments":{"host":"a.example","port":443}}"#,
    r#"{"name":"net_accept","arguments":{"listener":3,"timeout":2}}"#,
    r#"{"name":"net_http_get","arguments":{"url":"https://a.example/","headers":{}}}"#,
    r#"{"name":"net_http_post","arguments":{"url":"https://a.example/","headers":{},"content":"x"}}"#,
    r#"{"name":"tool_use","arguments":{"tool":"s/read","arguments":{}}}"#,
    r#"{"name":"tool_commit","arguments":{"tool":"s/send","arguments":{}}}"#,
];

/// Who decides how a call ends, as the design has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// The kernel, or the human before it.
    Here,
    /// What was read, whoever wrote it.
    ByTheValue,
    /// Whoever else uses the files, or whoever is at the other end.
    Outside,
    /// The same, but that there is no such device.
    OutsideOnceBuilt,
}

const fn ends(primitive: Primitive) -> Ends {
    match primitive {
        Primitive::ConsoleWrite
        | Primitive::ConsoleAsk
        | Primitive::ClockRead
        | Primitive::ChannelCreate
        | Primitive::ChannelClose => Ends::Here,
        Primitive::ValueRead | Primitive::ValuePick => Ends::ByTheValue,
        Primitive::FsRead
        | Primitive::FsWrite
        | Primitive::FsEdit
        | Primitive::FsList
        | Primitive::FsSearch
        | Primitive::FsMove
        | Primitive::FsDelete
        | Primitive::AgentWait
        | Primitive::ChannelWrite
        | Primitive::ChannelRead
        | Primitive::ChannelGrant
        | Primitive::NetAccept => Ends::Outside,
        Primitive::ModelGenerate
        | Primitive::AgentSpawn
        | Primitive::NetListen
        | Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit => Ends::OutsideOnceBuilt,
    }
}

/// One held value, from outside.
struct World;

impl Names for World {}

impl Facts for World {
    fn held(&self, number: u64) -> Option<Held<'_>> {
        (number == 1).then(|| Held {
            label: Label::new(Integrity::Ingested, Secrecy::FILES, Origin::record(VALUE)),
            bytes: b"a",
            digest: [0; 32],
            fault: None,
            reply_of: None,
        })
    }

    fn journal_room(&self) -> u64 {
        1
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }

    fn attenuates(&self, _: &str) -> Result<(), Refusal> {
        Ok(())
    }
}

struct Tape;

impl Recorder for Tape {
    fn record(&mut self, _: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        Ok(RECORD)
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        Err(SinkFailed)
    }
}

/// A scope in which everything above lies.
fn scope() -> Scope {
    let mut scope = Scope::default();
    let rights = [Rights::LIST, Rights::READ, Rights::WRITE, Rights::DELETE];
    let all = rights.into_iter().fold(Rights::NONE, Rights::and);
    scope.allow(&Pattern::parse("/**").unwrap(), all);
    let clear = Secrecy::from_bits(u64::MAX);
    let net = Net {
        methods: [Method::Get, Method::Post, Method::Listen].into(),
        ports: [443..=443].into(),
        paths: ["/".into()].into(),
        clear,
        own: Secrecy::NONE,
        secrets: [].into(),
        reads: false,
    };
    scope.net(HostPattern::parse("a.example").unwrap(), net);
    for (name, effect) in [("s/read", Effect::Read), ("s/send", Effect::Commit)] {
        let terms = Terms { clear, ..Terms::default() };
        scope.tool(name, Tool { effect, limits: Vec::new(), terms, verb: Verb::default() });
    }
    scope
}

/// Has each call authorized for a task that has read nothing, and looks at it; tells
/// which primitives the door refuses.
fn each(mut look: impl FnMut(&'static Row, &Authorized<'_>)) -> Vec<(&'static str, Refusal)> {
    let (scope, mark) = (scope(), Mark::new(user()));
    let mut table = Table::new(u32::MAX);
    for kind in [Kind::Agent, Kind::Channel, Kind::Listener] {
        table.open(End { kind, peer: None }).unwrap();
    }
    let mut warrants = Warrants::default();
    let mut refused = Vec::new();
    for (row, call) in REGISTRY.iter().zip(CALLS) {
        let request = Request {
            task: 1,
            mark: &mark,
            table: &table,
            scope: &scope,
            calls_left: 1,
            warrants: &Warrants::NONE,
            lines: &[],
        };
        let verdict = decide(request, &World, call.as_bytes()).unasked();
        assert_eq!(verdict.primitive(), Some(row.primitive), "{call}");
        match commit(verdict, &mut Tape, &mut warrants, &World, 0).unwrap() {
            Opened::Permitted(authorized) => look(row, &authorized),
            Opened::Refused(it) => refused.push((row.name, it.refusal)),
            Opened::Minted(_) => unreachable!("no warrant is asked for here"),
        }
    }
    refused
}

fn user() -> Label {
    Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE)
}

/// What a task's mark comes to by an answer; `shown` is what files carry at rest, or
/// what another task said.
fn mark(authorized: &Authorized<'_>, answer: Result<Done, Fault>) -> Label {
    let shown = Label::new(Integrity::Ingested, Secrecy::FILES, Origin::NONE);
    let label = label(authorized, &World, &answer, shown, &Reached::default());
    let mut mark = Mark::new(user());
    let _ = Labelled::new(answer, label).release(&mut mark);
    mark.label()
}

/// No call of these is authorized yet; what is, is looked at.
const REFUSED: [(&str, Refusal); 1] = [("model_generate", Refusal::OutOfScope)];

fn names_its_record(mark: Label, row: &Row) -> bool {
    let by_the_value = ends(row.primitive) == Ends::ByTheValue;
    mark.origin.records().any(|record| record == if by_the_value { VALUE } else { RECORD })
}

#[test]
fn i5_what_may_bring_in_bytes_of_others_raises_the_mark_and_names_its_record() {
    let mut ingesting = 0;
    let refused = each(|row, authorized| {
        let mark = mark(authorized, Ok(Done::NOTHING));
        let rises = mark.integrity == Integrity::Ingested;
        if ingests(row.primitive) {
            assert!(rises, "{} brings in bytes of others", row.name);
            ingesting += 1;
        } else if matches!(ends(row.primitive), Ends::Here | Ends::Outside) {
            assert!(!rises, "{} is acknowledged by the kernel", row.name);
        }
        assert!(!rises || names_its_record(mark, row), "{}: {mark:?}", row.name);
    });
    assert_eq!(refused, REFUSED);
    let rows = REGISTRY.iter().filter(|row| ingests(row.primitive));
    let lost = rows.filter(|row| REFUSED.iter().any(|(name, _)| *name == row.name)).count();
    let all = REGISTRY.iter().filter(|row| ingests(row.primitive)).count();
    assert_eq!(ingesting + lost, all, "each row with the flag is met");
}

#[test]
fn i5_every_fault_of_every_primitive_has_the_label_of_who_decided_it() {
    let mut wrong = Vec::<String>::new();
    let mut met = 0;
    let refused = each(|row, authorized| {
        for fault in Fault::ALL.iter().copied() {
            let mark = mark(authorized, Err(fault));
            let outside = match ends(row.primitive) {
                Ends::Here => false,
                Ends::ByTheValue | Ends::Outside => true,
                Ends::OutsideOnceBuilt => fault != Fault::Unsupported,
            };
            let rises = mark.integrity == Integrity::Ingested;
            if rises != outside || (rises && !names_its_record(mark, row)) {
                wrong.push(alloc::format!("{} {fault:?}: {mark:?}", row.name));
            }
            met += 1;
        }
    });
    assert_eq!(refused, REFUSED);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(met, (REGISTRY.len() - REFUSED.len()) * Fault::ALL.len());
}
