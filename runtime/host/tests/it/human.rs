//! A question for a yes at a terminal, with a hand that types and one that does not.

use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use synapse_boundary::{Integrity, Label, Origin, Said, Secrecy};
use synapse_host::desk::Desk;
use synapse_host::human::Human;
use synapse_host::render::{Stream, Terminal};
use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::{Confirm, Heard};
use synapse_kernel::engine::Door;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Log, Sink, SinkFailed};
use synapse_kernel::task::{Parts, Task};
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

use crate::console::terminal;

/// Keeps the question that it is put.
#[derive(Default)]
struct Keeps(Mutex<Option<Asking>>);

impl Confirm for Keeps {
    fn ask<'a>(&'a self, asking: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>> {
        *self.0.lock().unwrap() = Some(asking);
        Box::pin(core::future::pending())
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn append(&mut self, _: &[u8], _: Durability) -> Result<(), SinkFailed> {
        Ok(())
    }
}

/// A question, as a task puts it.
fn asking() -> Asking {
    let grant = "version = 1\nprimitives = [\"fs_delete\"]\n[[paths]]\npath = \"/data/**\"\n\
                 rights = [\"delete\"]\n";
    let keeps = Arc::<Keeps>::default();
    let task = Task::new(Parts {
        run: [0; 32],
        id: 0,
        mark: Label::new(Integrity::Ingested, Secrecy::NONE, Origin::NONE),
        lines: Vec::new(),
        grant: Arc::new(Grant::parse(grant).unwrap()),
        journal_room: 1,
        held_room: 0,
        platform: Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap()),
        log: Arc::new(spin::Mutex::new(Log::begin(Nowhere, [0; 32]).unwrap())),
        watch: Arc::new(|_| {}),
        cancel: Arc::default(),
    });
    let mut task = task.confirmed_by(Arc::clone(&keeps) as Arc<dyn Confirm>);
    let crossing = task.submit(br#"{"name":"fs_delete","arguments":{"path":"/data/a"}}"#);
    let waits = pin!(crossing).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(waits, Poll::Pending));
    keeps.0.lock().unwrap().take().unwrap()
}

fn human(patience: u64) -> Human {
    Human {
        terminal: Terminal::new(Stream::Error),
        agent: "librarian".to_owned(),
        cancel: Arc::default(),
        patience: Duration::from_millis(patience),
        desk: Arc::new(Desk::default()),
        turn: Arc::default(),
    }
}

type Strokes = &'static [(&'static [u8], u64)];

/// What is said to a question while a hand types these, each after a while.
fn typed(patience: u64, strokes: Strokes) -> Said {
    let (mut hand, program) = terminal();
    hand.write_all(b"yes\ny").unwrap();
    let typing = thread::spawn(move || {
        for (bytes, wait) in strokes {
            thread::sleep(Duration::from_millis(*wait));
            hand.write_all(bytes).unwrap();
        }
        hand
    });
    let heard = human(patience).wait(asking(), Some(program.as_fd()), &AtomicBool::new(false));
    assert!(heard.console.starts_with("/dev/pts/"), "{}", heard.console);
    drop(typing.join().unwrap());
    heard.said
}

#[test]
fn only_a_yes_after_half_a_second_is_one() {
    let table: [(Strokes, Said); 12] = [
        (&[(b"yes\n", 900)], Said::Yes),
        (&[(b"y", 900), (b"es\n", 100)], Said::Yes),
        // Within the half second, whole or in part.
        (&[(b"yes\n", 100), (b"no\n", 1200)], Said::No),
        (&[(b"ye", 100), (b"s\n", 1200)], Said::Unrecognised),
        (&[(b"\n", 900)], Said::No),
        (&[(b"n\n", 900)], Said::No),
        (&[(b"y\n", 900)], Said::Unrecognised),
        (&[(b"Yes\n", 900)], Said::Unrecognised),
        (&[(b" yes\n", 900)], Said::Unrecognised),
        (&[(b"yes\nyes\n", 900)], Said::Unrecognised),
        (&[(b"\xff\n", 900)], Said::Unrecognised),
        (&[(b"\x04", 900)], Said::Nobody),
    ];
    for (strokes, said) in table {
        assert_eq!(typed(10_000, strokes), said, "{strokes:?}");
    }
}

#[test]
fn a_question_is_given_up_in_time_with_the_run_and_with_its_task() {
    assert_eq!(typed(900, &[]), Said::TimedOut);
    let (_hand, program) = terminal();
    let never = AtomicBool::new(false);
    let began = Instant::now();
    for input in [None, Some(program.as_fd())] {
        let waits = human(60_000);
        waits.cancel.store(true, Ordering::Relaxed);
        assert_eq!(waits.wait(asking(), input, &never).said, Said::Cancelled);
        let over = AtomicBool::new(true);
        assert_eq!(human(60_000).wait(asking(), input, &over).said, Said::Cancelled);
        assert_eq!(human(700).wait(asking(), input, &never).said, Said::TimedOut);
    }
    // What is no terminal says nothing.
    let file = File::open("/dev/null").unwrap();
    assert_eq!(human(60_000).wait(asking(), Some(file.as_fd()), &never).said, Said::Nobody);
    let (pipe, mut writes) = std::io::pipe().unwrap();
    writes.write_all(b"yes\n").unwrap();
    assert_eq!(human(60_000).wait(asking(), Some(pipe.as_fd()), &never).said, Said::Nobody);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn i8_the_first_answer_to_the_standing_question_counts() {
    let asked = human(60_000);
    let desk = Arc::clone(&asked.desk);
    let waiting = thread::spawn(move || asked.wait(asking(), None, &AtomicBool::new(false)));
    let standing = loop {
        match desk.standing() {
            Some(standing) => break standing,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(standing.asking.text(80).contains("│ /data/a\n"));
    let answer = |number, said| desk.answer(number, said, "elsewhere".to_owned());
    assert!(answer(1, Said::Yes).unwrap_err().contains("half a second"));
    assert!(answer(2, Said::Yes).unwrap_err().contains("does not stand"));
    thread::sleep(Duration::from_millis(600));
    assert_eq!(answer(1, Said::No), Ok(()));
    assert!(answer(1, Said::Yes).is_err(), "there is an answer already");
    let heard = waiting.join().unwrap();
    assert_eq!(heard, Heard { said: Said::No, console: "elsewhere".to_owned() });
    assert!(desk.standing().is_none() && answer(1, Said::Yes).is_err());
}

/// On a runtime as a run has one, and with a task that leaves.
#[test]
fn a_task_that_leaves_takes_its_question_along() {
    let asked = human(60_000);
    let desk = Arc::clone(&asked.desk);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let began = Instant::now();
    runtime.block_on(async {
        let left = tokio::time::timeout(Duration::from_millis(300), asked.ask(asking())).await;
        assert!(left.is_err(), "nobody answers");
    });
    // Waits for its threads.
    drop(runtime);
    assert!(desk.standing().is_none() && began.elapsed() < Duration::from_secs(20));
}
