//! A question at a terminal, with a hand that types.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use synapse_boundary::Integrity;
use synapse_host::console::Console;
use synapse_host::render::{Stream, Terminal};
use synapse_primitives::Fault;
use synapse_primitives::platform::Asker;

/// A terminal: the end that a hand types at, and the end that a program reads.
pub(crate) fn terminal() -> (File, File) {
    let hand = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&hand).unwrap();
    unlockpt(&hand).unwrap();
    let name = ptsname(&hand, Vec::new()).unwrap();
    let program = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(hand), program)
}

fn console(patience: u64) -> Console {
    Console {
        terminal: Terminal::new(Stream::Error),
        agent: "librarian".to_owned(),
        cancel: Arc::new(AtomicBool::new(false)),
        patience: Duration::from_millis(patience),
    }
}

const ASKER: Asker = Asker { record: 7, integrity: Integrity::Ingested };

/// What comes of a question while a hand types these, each after a while.
fn typed(patience: u64, strokes: &'static [(&'static [u8], u64)]) -> Result<Vec<u8>, Fault> {
    let (mut hand, program) = terminal();
    hand.write_all(b"typed before\n").unwrap();
    let typing = thread::spawn(move || {
        for (bytes, wait) in strokes {
            thread::sleep(Duration::from_millis(*wait));
            hand.write_all(bytes).unwrap();
        }
        hand
    });
    let answer = console(patience).ask_on(program.as_fd(), b"which?", ASKER);
    drop(typing.join().unwrap());
    answer
}

#[test]
fn one_line_typed_after_the_question_is_the_answer() {
    assert_eq!(typed(5000, &[(b"both, please\n", 200)]), Ok(b"both, please".to_vec()));
    assert_eq!(typed(5000, &[(b"h", 200), (b"\xc3\xa9\n", 200)]), Ok("hé".into()));
    assert_eq!(typed(5000, &[(b"\n", 200)]), Ok(Vec::new()));
}

#[test]
fn a_paste_of_several_lines_is_no_answer_and_the_question_stands() {
    let strokes: &[(&[u8], u64)] = &[(b"first\nsecond\nthird\n", 200), (b"by hand\n", 400)];
    assert_eq!(typed(5000, strokes), Ok(b"by hand".to_vec()));
}

#[test]
fn no_answer_is_told_apart_by_why() {
    assert_eq!(typed(300, &[]), Err(Fault::TimedOut));
    assert_eq!(typed(5000, &[(b"\x04", 200)]), Err(Fault::Closed), "end of input");
    assert_eq!(typed(5000, &[(b"\xff\n", 200)]), Err(Fault::NotText));
    let file = File::open("/dev/null").unwrap();
    assert_eq!(console(5000).ask_on(file.as_fd(), b"which?", ASKER), Err(Fault::Closed));
    let (pipe, _writes) = std::io::pipe().unwrap();
    assert_eq!(console(5000).ask_on(pipe.as_fd(), b"which?", ASKER), Err(Fault::Closed));
}

#[test]
fn the_end_of_a_run_ends_a_question() {
    let (_hand, program) = terminal();
    let console = console(60_000);
    console.cancel.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    let answer = console.ask_on(program.as_fd(), b"which?", ASKER);
    assert_eq!(answer, Err(Fault::Cancelled));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_heading_is_this_programs_own_and_says_what_the_agent_has_read() {
    let mut console = console(0);
    console.agent = "a\n#9 forged\u{202e}".to_owned();
    let read = console.heading(ASKER);
    assert_eq!(read.lines().count(), 1, "{read}");
    assert!(read.contains("(record 7); it has read what others wrote"), "{read}");
    assert!(!read.trim_end().chars().any(synapse_host::render::is_hidden), "{read}");
    let clean = console.heading(Asker { integrity: Integrity::User, ..ASKER });
    assert!(clean.contains("it has read nothing that others wrote"), "{clean}");
}
