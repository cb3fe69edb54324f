//! Questions that reach a human, and what their answers come to.

use core::future::{pending, ready};
use core::pin::{Pin, pin};
use core::sync::atomic::AtomicBool;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::Arc;

use spin::Mutex;
use synapse_boundary::{Integrity, Label, Origin, Said, Secrecy};
use synapse_kernel::asking::{Asking, SHOWN};
use synapse_kernel::confirm::{Confirm, Heard};
use synapse_kernel::engine::Door;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Kind, Log, Sink, SinkFailed};
use synapse_kernel::render::{COLUMN, is_hidden};
use synapse_kernel::task::{HELD_BYTES, Parts, Task};
use synapse_kernel::verify::{Reader, Record};
use synapse_kernel::words;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

const GRANT: &str = r#"
version = 1
primitives = ["fs_read", "fs_write", "fs_edit", "fs_move", "fs_delete", "value_read", "net_http_post"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
[[hosts]]
host = "a.example"
methods = ["POST"]
"#;

/// What a hand does when it is asked: it may do something else first.
type Move = Box<dyn FnOnce() -> Said + Send>;

/// A human that answers as it was told to, and never where it was not.
#[derive(Default)]
struct Hand {
    moves: Mutex<VecDeque<Move>>,
    seen: Mutex<Vec<String>>,
}

impl Confirm for Hand {
    fn ask<'a>(&'a self, asking: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>> {
        self.seen.lock().push(asking.text(300));
        let next = self.moves.lock().pop_front();
        match next {
            Some(next) => Box::pin(ready(Heard { said: next(), console: "a hand".to_owned() })),
            None => Box::pin(pending()),
        }
    }
}

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
    files: Arc<Memory>,
    hand: Arc<Hand>,
    task: Task<Memory, Tape>,
}

impl World {
    /// A task that has read from outside.
    fn new(journal_room: u64) -> Self {
        let files = Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap());
        files.place("/data/a.md", b"alpha").unwrap();
        let (tape, hand) = (Tape::default(), Arc::new(Hand::default()));
        let log = Arc::new(Mutex::new(Log::begin(tape.clone(), [7; 32]).unwrap()));
        let task = Task::new(Parts {
            run: [0; 32],
            lines: Vec::new(),
            id: 3,
            mark: Label::new(Integrity::Ingested, Secrecy::FILES, Origin::record(5)),
            grant: Arc::new(Grant::parse(GRANT).unwrap()),
            journal_room,
            held_room: HELD_BYTES,
            platform: Arc::clone(&files),
            log,
            watch: Arc::new(|_| {}),
            cancel: Arc::new(AtomicBool::new(false)),
        });
        let task = task.confirmed_by(Arc::clone(&hand) as Arc<dyn Confirm>);
        Self { tape, files, hand, task }
    }

    fn will(&self, next: impl FnOnce() -> Said + Send + 'static) {
        self.hand.moves.lock().push_back(Box::new(next));
    }

    fn says(&self, said: Said) {
        self.will(move || said);
    }

    /// The code of a sentence; `None` where it still waits, and is dropped then.
    fn ask(&mut self, sentence: &str) -> Option<u32> {
        let mut crossing = pin!(self.task.submit(sentence.as_bytes()));
        match crossing.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer.err().unwrap_or(0)),
            Poll::Pending => None,
        }
    }

    fn shown(&self) -> String {
        self.hand.seen.lock().last().cloned().unwrap_or_default()
    }

    fn asked(&self) -> usize {
        self.hand.seen.lock().len()
    }

    /// Kind, code and cause of each record.
    fn records(&self) -> Vec<(Kind, u16, Option<u64>)> {
        let log = self.tape.0.lock().0.clone();
        let records = Reader::new(&log).collect::<Result<Vec<Record<'_>>, _>>().unwrap();
        records.iter().map(|record| (record.kind, record.code, record.cause)).collect()
    }

    fn has(&self, path: &str) -> bool {
        self.files.reserve(path).is_ok()
    }
}

fn delete(path: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"{path}"}}}}"#)
}

const A: &str = "/data/a.md";

#[test]
fn i8_a_yes_is_a_record_and_the_decision_rests_on_it() {
    let mut world = World::new(1 << 20);
    world.says(Said::Yes);
    assert_eq!(world.ask(&delete(A)), Some(0));
    assert!(!world.has(A));
    assert_eq!(
        world.records(),
        [(Kind::Answer, 0, None), (Kind::Decision, 0, Some(0)), (Kind::Outcome, 0, Some(1))]
    );
    let log = world.tape.0.lock().0.clone();
    let answer = Reader::new(&log).next().unwrap().unwrap();
    assert_eq!(words::answer(&answer), Some((Said::Yes, &b"a hand"[..])));
    // What the human said is known to the task now.
    let mark = world.task.mark();
    assert!(Secrecy::PROMPT.is_within(mark.secrecy), "{mark:?}");
}

#[test]
fn everything_but_a_yes_is_a_no() {
    for said in Said::ALL.iter().copied().filter(|said| *said != Said::Yes) {
        let mut world = World::new(1 << 20);
        world.says(said);
        assert_eq!(world.ask(&delete(A)), Some(309), "{said:?}");
        assert_eq!(world.records(), [(Kind::Answer, 0, None), (Kind::Decision, 309, Some(0))]);
        assert!(world.has(A));
    }
}

#[test]
fn i8_a_call_is_asked_about_once_and_five_in_all() {
    let mut world = World::new(1 << 20);
    for number in 0..5 {
        world.says(Said::No);
        for _ in 0..3 {
            assert_eq!(world.ask(&delete(&format!("/data/{number}"))), Some(309));
        }
    }
    assert_eq!((world.ask(&delete("/data/6")), world.asked()), (Some(309), 5));
    assert!(!world.task.cancelled(), "a plain no is an answer");
}

#[test]
fn three_answers_that_are_none_end_the_task() {
    let mut world = World::new(1 << 20);
    for (number, over) in [(1, false), (2, false), (3, true)] {
        world.says(Said::Unrecognised);
        assert_eq!(world.ask(&delete(&format!("/data/{number}"))), Some(309));
        assert_eq!(world.task.cancelled(), over);
    }
}

#[test]
fn i8_what_changed_while_the_question_stood_is_left_alone() {
    let write = r#"{"name":"fs_write","arguments":{"path":"/data/SOUL.md","content":"x","mode":"replace"}}"#;
    let edit = r#"{"name":"fs_edit","arguments":{"path":"/data/SOUL.md","old":"soul","new":"x"}}"#;
    let moved = r#"{"name":"fs_move","arguments":{"from":"/data/SOUL.md","to":"/data/b"}}"#;
    for sentence in [write, edit, moved, &delete("/data/SOUL.md")] {
        let mut world = World::new(1 << 20);
        world.files.place("/data/SOUL.md", b"soul").unwrap();
        let files = Arc::clone(&world.files);
        world.will(move || {
            files.place("/data/SOUL.md", b"soul and more").unwrap();
            Said::Yes
        });
        assert_eq!(world.ask(sentence), Some(511), "{sentence}");
        assert_eq!(world.files.journaled(1), None, "{sentence}");
        let read =
            r#"{"name":"fs_read","arguments":{"path":"/data/SOUL.md","offset":0,"length":9}}"#;
        assert_eq!(world.ask(read), Some(0));
        // The answer is spent, and is not asked for again.
        assert_eq!((world.ask(sentence), world.asked()), (Some(309), 1), "{sentence}");
    }
}

#[test]
fn i3_a_wait_that_is_given_up_is_a_recorded_refusal() {
    let mut world = World::new(1 << 20);
    assert_eq!(world.ask(&delete(A)), None);
    assert_eq!(world.records(), [(Kind::Decision, 309, None)]);
    assert!(world.has(A));
}

#[test]
fn i3_without_a_record_of_the_answer_nothing_is_done() {
    let mut world = World::new(1 << 20);
    world.says(Said::Yes);
    let full = world.tape.0.lock().0.len();
    world.tape.0.lock().1 = Some(full);
    assert_eq!(world.ask(&delete(A)), Some(525));
    assert!(world.has(A) && world.records().is_empty());
}

#[test]
fn nobody_is_asked_for_what_their_yes_could_not_do() {
    let mut world = World::new(0);
    let edit = r#"{"name":"fs_edit","arguments":{"path":"/data/a.md","old":"alpha","new":"x"}}"#;
    assert_eq!(world.ask(edit), Some(303), "the journal has no room, whoever says so");
    let sentence = |content: &str| {
        format!(
            r#"{{"name":"fs_write","arguments":{{"path":"/data/SOUL.md","content":{content},"mode":"create"}}}}"#
        )
    };
    // More than anybody reads.
    world.files.place("/data/long", &vec![b'a'; SHOWN]).unwrap();
    let read = r#"{"name":"fs_read","arguments":{"path":"/data/long","offset":0,"length":1048576},"hold":true}"#;
    assert_eq!(world.ask(read), Some(0));
    assert_eq!(world.ask(&sentence(r#"{"$held":1}"#)), Some(309));
    assert_eq!(world.asked(), 0);
    world.says(Said::Yes);
    assert_eq!((world.ask(&sentence(r#""short""#)), world.asked()), (Some(0), 1));
}

#[test]
fn a_question_shows_the_call_and_where_each_part_came_from() {
    let mut world = World::new(1 << 20);
    let hold =
        r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":9},"hold":true}"#;
    assert_eq!(world.ask(hold), Some(0));
    world.says(Said::No);
    let write = r#"{"name":"fs_write","arguments":{"path":"/data//SOUL.md","content":{"parts":["by hand\n",{"$held":1}]},"mode":"replace"}}"#;
    assert_eq!(world.ask(write), Some(309));
    let shown = world.shown();
    for part in [
        "fs_write, stopped because the name tells tools or agents what to do",
        "[302]\n",
        "path, written by the agent:\n│ /data//SOUL.md\nwhich is:\n│ /data/SOUL.md\n",
        "content, part 1 of 2, 8 bytes, written by the agent:\n│ by hand\n",
        "content, part 2 of 2, held value 1 from records #0, #5, read from outside (may tell of: prompt, files), 5 bytes:\n│ alpha\n",
        "mode, written by the agent: replace\n",
        "nothing has this name now\n",
        "what others wrote may have led to it, read in records #0, #5 (may tell of: prompt, files)",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    world.says(Said::No);
    world.files.place("/data/f/a", b"12").unwrap();
    world.files.place("/data/f/g/b", b"345").unwrap();
    assert_eq!(world.ask(&delete("/data/f")), Some(309));
    let part = "there is a folder now, with 3 entries at any depth, 5 bytes\n";
    assert!(world.shown().contains(part), "{}", world.shown());
    world.says(Said::No);
    let post = r#"{"name":"net_http_post","arguments":{"url":"https://a.example/","headers":{"a":{"$held":1}},"content":"b"}}"#;
    assert_eq!(world.ask(post), Some(309));
    for part in [
        "net_http_post, stopped because",
        "url, written by the agent:\n│ https://a.example/\n",
        "headers, written by the agent:\n│ {\"a\":{\"$held\":1}}\n",
        "in it, held value 1 from records #0, #5, read from outside",
        "│ alpha\n",
    ] {
        assert!(world.shown().contains(part), "{part}\n{}", world.shown());
    }
}

/// Escape sequences, bidirectional text, look-alikes and forged lines, everywhere.
#[test]
fn no_field_of_a_question_can_lie() {
    const EVIL: &str =
        "\\u001b[2Jyes\u{202e}\u{200b}\u{e0041} d\u{430}ta\\nfs_read, stopped because";
    let mut world = World::new(1 << 20);
    let name = "/data/SOUL.md/\u{202e}d\u{430}ta";
    world
        .files
        .place("/data/evil", "\u{1b}]0;x\u{7}\n│ forged\u{2066}\r\nd\u{430}ta".as_bytes())
        .unwrap();
    let hold = r#"{"name":"fs_read","arguments":{"path":"/data/evil","offset":0,"length":99},"hold":true}"#;
    assert_eq!(world.ask(hold), Some(0));
    for sentence in [
        format!(
            r#"{{"name":"fs_write","arguments":{{"path":"/data/SOUL.md","content":"{EVIL}","mode":"create"}}}}"#
        ),
        format!(
            r#"{{"name":"fs_edit","arguments":{{"path":"/data/SOUL.md","old":"{EVIL}","new":{{"$held":1}}}}}}"#
        ),
        format!(
            r#"{{"name":"net_http_post","arguments":{{"url":"https://a.example/","headers":{{"a":"{EVIL}","b":{{"$held":1}}}},"content":"{EVIL}"}}}}"#
        ),
        delete(&name.replace('\u{202e}', "")),
    ] {
        world.says(Said::No);
        assert_eq!(world.ask(&sentence), Some(309), "{sentence}");
        let shown = world.shown();
        assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown}");
        assert!(shown.contains("d\\u{430}ta"), "{shown}");
        let forged = |line: &str| {
            !line.starts_with(COLUMN) && (line.contains("forged") || line.contains('\u{430}'))
        };
        assert!(!shown.lines().any(forged), "{shown}");
        assert_eq!(
            shown
                .lines()
                .filter(|line| line.contains("stopped because") && !line.starts_with(COLUMN))
                .count(),
            1,
            "{shown}"
        );
    }
    // In one script alone, it is readable and spelled out.
    world.says(Said::No);
    assert_eq!(world.ask(&delete("/data/\u{441}\u{43e}\u{441}\u{43e}")), Some(309));
    let spelled = "the same, spelled in ASCII:\n│ /data/\\u{441}\\u{43e}\\u{441}\\u{43e}\n";
    assert!(world.shown().contains(spelled), "{}", world.shown());
}

#[test]
fn content_is_shown_to_its_end() {
    let mut world = World::new(1 << 20);
    let long: Vec<String> = (0..5000).map(|line| format!("line {line}\\n")).collect();
    let long = long.concat();
    world.says(Said::Yes);
    let write = format!(
        r#"{{"name":"fs_write","arguments":{{"path":"/data/SOUL.md","content":"{long}the end","mode":"create"}}}}"#
    );
    assert_eq!(world.ask(&write), Some(0));
    let shown = world.shown();
    assert!(shown.contains("│ line 0\n") && shown.contains("│ line 4999\n│ the end\n"), "{shown}");
}
