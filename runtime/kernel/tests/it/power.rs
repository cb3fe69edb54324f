//! A log whose end is lost: what a kill takes is what was not written, what a power cut
//! takes is all after the last sync.

use core::pin::pin;
use core::sync::atomic::AtomicBool;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use spin::Mutex;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_kernel::engine::Door as _;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Kind, Log, Sink, SinkFailed};
use synapse_kernel::task::{HELD_BYTES, Parts, Task};
use synapse_kernel::verify::{Broken, Reader, Record};
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

const GRANT: &str = r#"
version = 1
primitives = ["clock_read", "fs_read", "fs_write", "fs_move", "fs_delete", "net_http_get"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
[[hosts]]
host = "example.org"
clear = ["prompt", "files"]
"#;

/// What a task may say, again and again; after it has read, a deletion is refused.
const SAYS: [&str; 8] = [
    r#"{"name":"clock_read","arguments":{}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/a","content":"x","mode":"replace"}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/data/a"}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/data/b","content":"y","mode":"append"}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/data/b","to":"/data/c"}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/data/c"}}"#,
    r#"{"name":"net_http_get","arguments":{"url":"https://example.org/","headers":{}},"hold":true}"#,
    "no sentence",
];

/// A frame, and what was asked of the disk for it.
type Frame = (Vec<u8>, Durability);

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<Frame>>>);

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], durability: Durability) -> Result<(), SinkFailed> {
        self.0.lock().push((frame.to_vec(), durability));
        Ok(())
    }
}

/// Says sentences in an order of its own; the frames.
fn ran(mut seed: u64) -> Vec<Frame> {
    let tape = Tape::default();
    let platform = Memory::new(&[("/data", Access::ReadWrite)]).unwrap();
    let mut task = Task::new(Parts {
        run: [7; 32],
        id: 0,
        mark: Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE),
        lines: Vec::new(),
        grant: Arc::new(Grant::parse(GRANT).unwrap()),
        journal_room: 1 << 20,
        held_room: HELD_BYTES,
        platform: Arc::new(platform),
        log: Arc::new(Mutex::new(Log::begin(tape.clone(), [1; 32]).unwrap())),
        watch: Arc::new(|_| {}),
        cancel: Arc::new(AtomicBool::new(false)),
    });
    for _ in 0..40 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let sentence = SAYS[usize::try_from(seed >> 33).unwrap() % SAYS.len()];
        let mut crossing = pin!(task.submit(sentence.as_bytes()));
        let Poll::Ready(_) = crossing.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            unreachable!("nothing here waits")
        };
    }
    drop(task);
    let frames = tape.0.lock();
    frames.clone()
}

/// What is left of the log after so many frames, if all is lost behind the last one
/// that had at least this.
fn left(frames: &[Frame], kept: &[Durability]) -> Vec<u8> {
    let last = frames.iter().rposition(|(_, durability)| kept.contains(durability));
    // The log's own beginning is on the disk before anything is decided.
    let end = last.map_or(1, |last| last + 1);
    frames[..end].iter().flat_map(|(frame, _)| frame.clone()).collect()
}

fn read(log: &[u8]) -> Vec<Record<'_>> {
    Reader::new(log).collect::<Result<_, Broken>>().unwrap()
}

/// The permitted calls of a class.
fn calls(records: &[Record<'_>], class: u8) -> Vec<u64> {
    let permitted = records.iter().filter(|record| {
        record.kind == Kind::Decision && record.code == 0 && record.class & class != 0
    });
    permitted.map(|record| record.sequence).collect()
}

const DESTRUCTIVE: u8 = 1;
const EGRESS: u8 = 2;

#[test]
fn i3_whatever_is_lost_no_effect_is_without_its_record() {
    let (mut destroyed, mut sent) = (0, 0);
    for seed in 0..200 {
        let frames = ran(seed);
        for cut in 1..=frames.len() {
            // All that was appended before may have had its effect.
            let done: Vec<u8> = frames[..cut].iter().flat_map(|(frame, _)| frame.clone()).collect();
            let done = read(&done);
            let (power, kill) = (
                left(&frames[..cut], &[Durability::Synced]),
                left(&frames[..cut], &[Durability::Synced, Durability::Written]),
            );
            let (power, kill) = (read(&power), read(&kill));
            assert_eq!(calls(&power, DESTRUCTIVE), calls(&done, DESTRUCTIVE), "{seed}, {cut}");
            assert_eq!(calls(&kill, DESTRUCTIVE), calls(&done, DESTRUCTIVE), "{seed}, {cut}");
            assert_eq!(calls(&kill, EGRESS), calls(&done, EGRESS), "{seed}, {cut}");
        }
        let all: Vec<u8> = frames.iter().flat_map(|(frame, _)| frame.clone()).collect();
        let all = read(&all);
        destroyed += calls(&all, DESTRUCTIVE).len();
        sent += calls(&all, EGRESS).len();
    }
    assert!(destroyed > 200 && sent > 200, "{destroyed} destroyed, {sent} sent");
}
