//! The door, end to end below the engine: sentences in, records and codes out.

use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use spin::Mutex;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_kernel::engine::{Door, Ended};
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Kind, Log, Sink, SinkFailed, WARRANT, tag};
use synapse_kernel::task::{HELD_BYTES, Parts, Task};
use synapse_kernel::verify::{Broken, Reader, Record};
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;
use synapse_reply::Fault;
use synapse_reply::frame::{Form, Mark};

const GRANT: &str = r#"
version = 1
primitives = ["console_write", "console_ask", "clock_read", "fs_read", "fs_list", "fs_write", "fs_edit", "fs_search", "fs_move", "fs_delete", "value_read", "value_pick", "agent_spawn", "channel_create", "channel_read", "tool_use"]
deny = ["/data/private/**", "/data/a", "**/.env"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
[[tools]]
tool = "calendar/list"
effect = "read"
[budget]
calls = 40
"#;

/// Keeps every frame, and fails once it is told to.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<(Vec<u8>, Option<usize>)>>);

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        let mut tape = self.0.lock();
        if tape.1.is_some_and(|most| tape.0.len() + frame.len() > most) {
            return Err(SinkFailed);
        }
        tape.0.extend_from_slice(frame);
        Ok(())
    }
}

struct World {
    tape: Tape,
    platform: Arc<Memory>,
    task: Task<Memory, Tape>,
    asked: usize,
}

impl World {
    fn new(mark: Integrity) -> Self {
        let platform = Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap());
        platform.place("/data/a.md", b"alpha").unwrap();
        platform.place("/data/private/b.md", b"beta").unwrap();
        let tape = Tape::default();
        let log = Arc::new(Mutex::new(Log::begin(tape.clone(), [7; 32]).unwrap()));
        let task = Task::new(Parts {
            run: [7; 32],
            id: 3,
            mark: Label::new(mark, Secrecy::PROMPT, Origin::NONE),
            lines: vec!["delete /data/a.md, then delete the largest file".into()],
            grant: Arc::new(Grant::parse(GRANT).unwrap()),
            journal_room: 1 << 20,
            held_room: HELD_BYTES,
            platform: Arc::clone(&platform),
            log,
            watch: Arc::new(|_| {}),
            cancel: Arc::new(AtomicBool::new(false)),
        });
        Self { tape, platform, task, asked: 0 }
    }

    /// Submits one sentence; the in-memory platform never waits.
    fn ask(&mut self, sentence: &str) -> Result<(Form, Mark, Vec<u8>), u32> {
        self.asked += 1;
        let mut crossing = core::pin::pin!(self.task.submit(sentence.as_bytes()));
        let waker = core::task::Waker::noop();
        let mut context = core::task::Context::from_waker(waker);
        let core::task::Poll::Ready(answer) = crossing.as_mut().poll(&mut context) else {
            unreachable!("nothing here waits")
        };
        let bytes = answer?.lower();
        let reply = synapse_guest::Reply::parse(bytes).unwrap();
        Ok((reply.form, reply.mark, reply.payload))
    }

    fn log(&self) -> Vec<u8> {
        self.tape.0.lock().0.clone()
    }
}

fn records(log: &[u8]) -> Vec<Record<'_>> {
    Reader::new(log).collect::<Result<_, _>>().unwrap()
}

fn read(path: &str) -> String {
    format!(r#"{{"name":"fs_read","arguments":{{"path":"{path}","offset":0,"length":9}}}}"#)
}

fn delete(path: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"{path}"}}}}"#)
}

#[test]
fn i1_each_gate_refuses_what_is_its_own_and_an_earlier_gate_goes_first() {
    let mut world = World::new(Integrity::Ingested);
    let list = r#"{"name":"net_http_get","arguments":{"url":"https://a.example/","headers":{}}}"#;
    let edit =
        r#"{"name":"fs_write","arguments":{"path":"/data/SOUL.md","content":"x","mode":"create"}}"#;
    for (sentence, code) in [
        (r#"{"name":"fs_read""#, 101),
        (r#"{"name":"no_such","arguments":{}}"#, 103),
        (list, 201),
        (r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":1}}"#, 202),
        (r#"{"name":"channel_read","arguments":{"channel":1,"max":1,"timeout":0}}"#, 202),
        (&delete("/data/a.md"), 301),
        // Out of scope, or misspelt, as well: the label gate comes first.
        (&delete("/etc/passwd"), 301),
        (&delete("/data/a."), 301),
        (edit, 302),
        (&read("/data/../etc/passwd"), 401),
        (&read("/data/private/b.md"), 402),
        (&read("data/a.md"), 403),
        (&read("/../a"), 404),
        (&read("/data/a."), 405),
        (r#"{"name":"tool_use","arguments":{"tool":"mail/list","arguments":{}}}"#, 401),
        (r#"{"warrant":"fs_delete","arguments":{"path":"/data/a.md"},"uses":1}"#, 305),
    ] {
        assert_eq!(world.ask(sentence).unwrap_err(), code, "{sentence}");
    }
    let log = world.log();
    let records = records(&log);
    assert!(records.iter().all(|record| record.kind == Kind::Decision && record.gate > 0));
    assert_eq!(records.len(), world.asked);
}

#[test]
fn i3_one_decision_record_for_each_attempt_and_an_outcome_for_each_executed_call() {
    let mut world = World::new(Integrity::User);
    let mut executed = 0;
    for sentence in [
        read("/data/a.md"),
        read("/data/none.md"),
        read("/etc/passwd"),
        delete("/data/a.md"),
        "nonsense".into(),
        r#"{"name":"clock_read","arguments":{}}"#.into(),
        r#"{"name":"fs_edit","arguments":{"path":"/data/a.md","old":"a","new":"b"}}"#.into(),
    ] {
        let answer = world.ask(&sentence);
        executed += usize::from(!matches!(answer, Err(code) if code < 500));
    }
    let log = world.log();
    let records = records(&log);
    let count = |kind| records.iter().filter(|record| record.kind == kind).count();
    assert_eq!(count(Kind::Decision), world.asked);
    assert_eq!(count(Kind::Outcome), executed);
    for outcome in records.iter().filter(|record| record.kind == Kind::Outcome) {
        let decision = outcome.cause.unwrap();
        assert!(decision < outcome.sequence, "the decision stands before the effect");
    }
}

#[test]
fn i3_nothing_happens_when_the_sink_takes_no_record() {
    let mut world = World::new(Integrity::User);
    let full = world.log().len();
    world.tape.0.lock().1 = Some(full);
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 525);
    assert_eq!(world.ask(&read("/data/a.md")).unwrap_err(), 525);
    world.tape.0.lock().1 = None;
    assert_eq!(world.ask(&read("/data/a.md")).unwrap_err(), 525, "a failed log stays failed");
    assert_eq!(world.platform.reserve("/data/a.md"), Ok(()), "it is still there");
}

#[test]
fn i6_reading_raises_the_mark_and_holding_does_not() {
    let mut world = World::new(Integrity::User);
    let held = read("/data/a.md").replace("}}", r#"},"hold":true}"#);
    assert_eq!(world.ask(&held).unwrap(), (Form::Held, Mark::User, 1u64.to_le_bytes().to_vec()));
    let missing = read("/data/none.md").replace("}}", r#"},"hold":true}"#);
    let reply = world.ask(&missing).unwrap();
    assert_eq!(reply, (Form::Held, Mark::User, 2u64.to_le_bytes().to_vec()));
    let copy = r#"{"name":"fs_write","arguments":{"path":"/data/c.md","content":{"parts":["<",{"$held":1},">"]},"mode":"create"}}"#;
    assert_eq!(world.ask(copy).unwrap().1, Mark::User);
    // The held value's label counts for the call that names it, in any role.
    let soul = copy.replace("c.md", "SOUL.md");
    assert_eq!(world.ask(&soul).unwrap_err(), 302);
    let release =
        r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":1,"length":3}}"#;
    assert_eq!(world.ask(release).unwrap(), (Form::Bytes, Mark::Ingested, b"lph".to_vec()));
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 301);
    let fault = release.replace("\"$held\":1", "\"$held\":2");
    assert_eq!(world.ask(&fault).unwrap_err(), 502);
    assert_eq!(world.ask(&read("/data/c.md")).unwrap().2, b"<alpha>");
}

#[test]
fn i5_a_fault_that_a_held_value_decided_raises_the_mark_as_its_release_would() {
    let mut world = World::new(Integrity::User);
    let missing = read("/data/none.md").replace("}}", r#"},"hold":true}"#);
    assert_eq!(world.ask(&missing).unwrap().1, Mark::User);
    let show = r#"{"name":"console_write","arguments":{"content":{"$held":1}}}"#;
    assert_eq!(world.ask(show).unwrap_err(), 502);
    assert_eq!(world.task.mark().integrity, Integrity::Ingested);
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 301);
}

#[test]
fn i5_a_fault_of_the_disk_raises_the_mark_whatever_its_number() {
    for (sentence, code) in [
        (r#"{"name":"fs_move","arguments":{"from":"/data/d","to":"/data/d/e"}}"#, 526),
        (&delete("/data/none"), 502),
    ] {
        let mut world = World::new(Integrity::User);
        world.platform.place("/data/d/x.md", b"x").unwrap();
        assert_eq!(world.ask(sentence).unwrap_err(), code, "{sentence}");
        assert_eq!(world.task.mark().integrity, Integrity::Ingested, "{sentence}");
    }
    // That the kernel has no such device is the kernel's own word.
    let mut world = World::new(Integrity::User);
    for sentence in [
        r#"{"name":"agent_spawn","arguments":{"package":"a","task":"t","grant":{"primitives":["clock_read"]}}}"#,
        r#"{"name":"tool_use","arguments":{"tool":"calendar/list","arguments":{}}}"#,
    ] {
        assert_eq!(world.ask(sentence).unwrap_err(), 501, "{sentence}");
    }
    assert_eq!(world.task.mark().integrity, Integrity::User);
}

#[test]
fn a_listing_shows_no_name_that_is_denied_however_the_folder_is_called() {
    let mut world = World::new(Integrity::User);
    for path in ["/data/a", "/data/x.env/.env", "/data/x.env/b"] {
        world.platform.place(path, b"x").unwrap();
    }
    let mut names = |path: &str| {
        let list =
            format!(r#"{{"name":"fs_list","arguments":{{"path":"{path}","after":"","limit":9}}}}"#);
        String::from_utf8(world.ask(&list).unwrap().2).unwrap()
    };
    let root = names("/data");
    assert!(root.contains(r#""name":"a.md""#), "{root}");
    assert!(!root.contains(r#""name":"a""#) && !root.contains("private"), "{root}");
    let folder = names("/data/x.env");
    assert!(folder.contains(r#""name":"b""#) && !folder.contains(".env"), "{folder}");
    assert!(names("/data/a.md").contains(r#""name":"a.md""#), "a file gives its own entry");
}

#[test]
fn i13_a_warrant_is_an_empty_reply_and_the_cause_of_what_it_covers() {
    let mut world = World::new(Integrity::User);
    let warrant = r#"{"warrant":"fs_delete","arguments":{"path":"/data/a.md"},"uses":1}"#;
    assert_eq!(world.ask(warrant).unwrap(), (Form::Nothing, Mark::User, Vec::new()));
    assert_eq!(world.ask(warrant).unwrap_err(), 307);
    world.ask(&read("/data/a.md")).unwrap();
    assert_eq!(world.ask(warrant).unwrap_err(), 305);
    world.ask(&delete("/data/a.md")).unwrap();
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 301);
    let log = world.log();
    let records = records(&log);
    let decisions: Vec<_> = records.iter().filter(|it| it.kind == Kind::Decision).collect();
    let (minted, deleted) = (decisions[0], decisions[4]);
    assert_eq!((minted.code, minted.class), (0, WARRANT), "no effect, and none that is unknown");
    assert_eq!((deleted.code, deleted.cause), (0, Some(minted.sequence)));
    assert_eq!(decisions.iter().filter(|it| it.cause.is_some()).count(), 1);
}

#[test]
fn i13_a_selector_works_over_the_whole_listing_that_the_kernel_held_itself() {
    let mut world = World::new(Integrity::User);
    world.platform.place("/data/big", b"more than all others").unwrap();
    let list = |limit: u8| {
        format!(
            r#"{{"name":"fs_list","arguments":{{"path":"/data","after":"","limit":{limit}}},"hold":true}}"#
        )
    };
    let largest = |number: u8| {
        format!(
            r#"{{"warrant":"fs_delete","arguments":{{"path":{{"$select":{number},"order":["max","size"],"take":"path"}}}},"uses":1}}"#
        )
    };
    for limit in [2, 9] {
        world.ask(&list(limit)).unwrap();
    }
    for number in [1, 2] {
        assert_eq!(world.ask(&largest(number)).unwrap().0, Form::Nothing, "{number}");
    }
    world.ask(&read("/data/a.md")).unwrap();
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 301);
    world.ask(&delete("/data/big")).unwrap();
    world.platform.place("/data/big", b"again").unwrap();
    assert_eq!(world.ask(&delete("/data/big")).unwrap_err(), 301, "a page is not the listing");
}

#[test]
fn i13_warrants_end_with_their_turn() {
    let mut world = World::new(Integrity::User);
    let warrant = r#"{"warrant":"fs_delete","arguments":{"path":"/data/a.md"},"uses":1}"#;
    world.ask(warrant).unwrap();
    world.task.end_turn(Err(Ended::Deadline));
    world.ask(warrant).unwrap();
    world.task.end_turn(Ok(()));
    assert_eq!(world.ask(warrant).unwrap_err(), 307);
    world.ask(&read("/data/a.md")).unwrap();
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 301);
}

#[test]
fn i16_an_overwrite_after_reading_passes_while_the_journal_holds_what_it_displaces() {
    let mut world = World::new(Integrity::Ingested);
    let write =
        r#"{"name":"fs_write","arguments":{"path":"/data/a.md","content":"new","mode":"replace"}}"#;
    assert!(world.ask(write).is_ok());
    let log = world.log();
    let decision = records(&log)[0].sequence;
    assert_eq!(world.platform.journaled(decision).unwrap(), b"alpha");
}

#[test]
fn a_spent_budget_refuses_then_ends_the_turn() {
    let mut world = World::new(Integrity::User);
    let clock = r#"{"name":"clock_read","arguments":{}}"#;
    for _ in 0..40 {
        assert!(world.ask(clock).is_ok());
    }
    assert_eq!(world.ask(clock).unwrap_err(), 203);
    assert!(!world.task.cancelled());
    for _ in 0..100 {
        assert_eq!(world.ask(clock).unwrap_err(), 203);
    }
    assert!(world.task.cancelled());
}

#[test]
fn any_altered_byte_of_a_log_is_found_and_its_record_named() {
    let mut world = World::new(Integrity::User);
    let long =
        format!(r#"{{"name":"console_write","arguments":{{"content":"{}"}}}}"#, "x".repeat(70_000));
    for sentence in [&read("/data/a.md"), "", &long, &delete("/data/a.md")] {
        let _ = world.ask(sentence);
    }
    let whole = world.log();
    let ends: Vec<usize> = {
        let mut reader = Reader::new(&whole);
        let mut at = 48;
        core::iter::from_fn(|| {
            let length = u32::from_le_bytes(whole.get(at..at + 4)?.try_into().unwrap()) as usize;
            reader.next()?.unwrap();
            at += 4 + length + 32;
            Some(at)
        })
        .collect()
    };
    assert_eq!(*ends.last().unwrap(), whole.len());
    for at in 0..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 1 << (at % 8);
        let broken = Reader::new(&altered).find_map(Result::err).unwrap();
        let expected = ends.iter().position(|end| at < *end).unwrap() as u64;
        match broken {
            Broken::Header => assert!(at < 16, "byte {at}"),
            Broken::Record(named) | Broken::Torn(named) => assert_eq!(named, expected, "byte {at}"),
        }
    }
}

#[test]
fn a_call_that_was_executed_is_not_said_to_be_undone_by_a_log_that_fails_after_it() {
    let mut twin = World::new(Integrity::User);
    twin.ask(&delete("/data/a.md")).unwrap();
    let log = twin.log();
    let decision = 48 + 4 + u32::from_le_bytes(log[48..52].try_into().unwrap()) as usize + 32;
    let mut world = World::new(Integrity::User);
    world.tape.0.lock().1 = Some(decision);
    assert_eq!(world.ask(&delete("/data/a.md")).unwrap_err(), 531);
    assert_eq!(world.log().len(), decision);
    assert_eq!(world.ask(&read("/data/a.md")).unwrap_err(), 525, "that log takes nothing more");
    assert_eq!(world.platform.reserve("/data/a.md"), Err(Fault::NotFound), "it was done");
}

fn edit(path: &str, old: &str) -> String {
    format!(r#"{{"name":"fs_edit","arguments":{{"path":"{path}","old":"{old}","new":"b"}}}}"#)
}

#[test]
fn i5_what_came_of_an_edit_tells_what_stood_there() {
    for (old, code) in [("alpha", None), ("omega", Some(519)), ("a", Some(520))] {
        let mut world = World::new(Integrity::User);
        assert_eq!(world.ask(&edit("/data/a.md", old)).err(), code);
        assert_eq!(world.task.mark().integrity, Integrity::Ingested, "{old}");
        assert!(Secrecy::FILES.is_within(world.task.mark().secrecy), "{old}");
    }
}

#[test]
fn i16_an_edit_that_the_journal_cannot_hold_changes_nothing() {
    let mut world = World::new(Integrity::User);
    world.platform.place("/data/large", &vec![b'x'; (1 << 20) + 1]).unwrap();
    assert_eq!(world.ask(&edit("/data/large", &"x".repeat(9))).unwrap_err(), 520);
    world.platform.place("/data/large", &[vec![b'x'; 1 << 20], b"old".to_vec()].concat()).unwrap();
    assert_eq!(world.ask(&edit("/data/large", "old")).unwrap_err(), 523);
    assert!(world.ask(&edit("/data/a.md", "alpha")).is_ok(), "what fits is still taken");
}

#[test]
fn a_search_shows_no_name_that_is_denied_and_nothing_of_what_it_holds() {
    let mut world = World::new(Integrity::User);
    for path in ["/data/a", "/data/x/.env", "/data/x/b", "/data/z:z"] {
        world.platform.place(path, b"a beta").unwrap();
    }
    let search = r#"{"name":"fs_search","arguments":{"path":"/data","text":"beta","offset":0}}"#;
    let (form, mark, found) = world.ask(search).unwrap();
    assert_eq!((form, mark), (Form::Json, Mark::Ingested));
    let want = r#"{"hits":[{"path":"/data/x/b","line":1,"column":3,"text":"a beta"}],"next":null,"skipped":1}"#;
    assert_eq!(String::from_utf8(found).unwrap(), want);
}

#[test]
fn i5_an_answer_is_the_humans_and_the_question_says_what_was_read_before_it() {
    let ask = r#"{"name":"console_ask","arguments":{"question":"which?"}}"#;
    for mark in [Integrity::User, Integrity::Ingested] {
        let mut world = World::new(mark);
        world.platform.answer(Ok(b"both"));
        let held = ask.replace("}}", "},\"hold\":true}");
        assert_eq!(world.ask(&held).unwrap().0, Form::Held);
        let read =
            r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":9}}"#;
        assert_eq!(world.ask(read).unwrap().2, b"both");
        let log = world.log();
        let records = records(&log);
        let outcome = records.iter().find(|record| record.kind == Kind::Outcome).unwrap();
        assert_eq!((outcome.integrity, outcome.secrecy), (1, Secrecy::PROMPT.bits()));
        let (question, asker) = world.platform.asked().pop().unwrap();
        assert_eq!((&*question, asker.integrity), (&b"which?"[..], mark));
        assert_eq!(asker.record, records[0].sequence);
        assert_eq!(world.task.mark().integrity, mark);
        for fault in [Fault::Closed, Fault::TimedOut] {
            world.platform.answer(Err(fault));
            assert_eq!(world.ask(ask).unwrap_err(), u32::from(fault.number()));
        }
    }
}

#[test]
fn i14_what_is_picked_stays_unseen_and_a_failed_pick_shows_at_its_use_alone() {
    let mut world = World::new(Integrity::User);
    world.platform.place("/data/z.md", b"longest of all").unwrap();
    let list = |limit: u64| {
        format!(
            r#"{{"name":"fs_list","arguments":{{"path":"/data/","after":"","limit":{limit}}},"hold":true}}"#
        )
    };
    let pick = |value: u64, rest: &str| {
        format!(
            r#"{{"name":"value_pick","arguments":{{"value":{{"$held":{value}}},"selector":{{"$select":{value},{rest}}}}}}}"#
        )
    };
    let release = |value: u64| {
        format!(
            r#"{{"name":"value_read","arguments":{{"value":{{"$held":{value}}},"offset":0,"length":99}}}}"#
        )
    };
    let largest = r#""where":[["kind","eq","file"]],"order":["max","size"],"take":"path""#;
    for (sentence, number) in [
        (list(1000), 1_u64),
        (pick(1, largest), 2),
        (pick(1, r#""order":["max","size"],"take":"size""#), 3),
        (pick(1, r#""where":[["name","eq","nothing"]],"take":"path""#), 4),
        // All of the page, which is not all of the listing.
        (list(1), 5),
        (pick(5, largest), 6),
        // What was picked is no record.
        (pick(2, largest), 7),
        // A fault stays one.
        (pick(4, largest), 8),
    ] {
        let held = (Form::Held, Mark::User, number.to_le_bytes().to_vec());
        assert_eq!(world.ask(&sentence), Ok(held), "{sentence}");
    }
    let read =
        r#"{"name":"fs_read","arguments":{"path":{"$held":2},"offset":0,"length":7},"hold":true}"#;
    assert_eq!(world.ask(read), Ok((Form::Held, Mark::User, 9_u64.to_le_bytes().to_vec())));
    let log = world.log();
    let picked = records(&log);
    let targets: Vec<_> = picked.iter().filter_map(|record| record.field(tag::TARGET)).collect();
    assert_eq!(targets.last(), Some(&&b"/data/z.md"[..]));

    let bytes = |bytes: &[u8]| Ok((Form::Bytes, Mark::Ingested, bytes.to_vec()));
    assert_eq!(world.ask(&release(2)), bytes(b"/data/z.md"));
    assert_eq!(world.ask(&release(3)), bytes(b"14"));
    assert_eq!(world.ask(&release(9)), bytes(b"longest"));
    for value in [4, 6, 7, 8] {
        assert_eq!(world.ask(&release(value)), Err(Fault::NoMatch.number().into()), "{value}");
    }
}
