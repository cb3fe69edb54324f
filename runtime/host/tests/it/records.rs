//! Records counted against calls that a real guest made at its one import.

use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use spin::Mutex;
use synapse_boundary::Label;
use synapse_kernel::engine::{Door, Reply, TurnLimits};
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Kind, Log, Sink, SinkFailed};
use synapse_kernel::task::{HELD_BYTES, Parts, Task};
use synapse_kernel::verify::Reader;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

use crate::engine::{Under, one_thread, turning, under_both};

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.0.lock().extend_from_slice(frame);
        Ok(())
    }
}

/// Counts at the import, on the engine's side of the door.
struct Counted<S> {
    task: Task<Memory, S>,
    answered: usize,
    permitted: usize,
}

impl<S: Sink + 'static> Door for Counted<S> {
    async fn submit(&mut self, sentence: &[u8]) -> Result<Reply, u32> {
        let reply = self.task.submit(sentence).await;
        self.answered += 1;
        self.permitted += usize::from(reply.is_ok());
        reply
    }

    fn cancelled(&self) -> bool {
        self.task.cancelled()
    }
}

/// A thousand times: `hello`, which is no sentence, and a read of the clock.
const MANY: &str = r"
    (global.set $left (i32.const 1000))
    (loop $again
      (call $door (i32.const 1024) (i32.const 5) (i32.const 512))
      (call $door (i32.const 2048) (i32.const 36) (i32.const 512))
      (global.set $left (i32.sub (global.get $left) (i32.const 1)))
      (br_if $again (global.get $left)))
    (i32.store8 (i32.const 512) (i32.const 0))
    (i32.store (i32.const 516) (i32.const 0))
    (i32.store (i32.const 520) (i32.const 0))
    i32.const 512";

const ITEMS: &str = r#"
    (global $left (mut i32) (i32.const 0))
    (data (i32.const 2048) "{\22name\22:\22clock_read\22,\22arguments\22:{}}")"#;

/// A guest that makes so many rounds of two calls, within so many calls.
fn counted<E: Under, S: Sink + 'static>(rounds: u32, calls: u64, sink: S) -> Counted<S> {
    let text = MANY.replace("1000", &rounds.to_string());
    let mut guest = turning(&text);
    guest.items = ITEMS;
    guest.memory = "2";
    // Each reply stands where the one before did.
    guest.realloc = "i32.const 65536";
    let program = guest.load::<E>();
    let grant = format!("version = 1\nprimitives = [\"clock_read\"]\n[budget]\ncalls = {calls}\n");
    let task = Task::new(Parts {
        run: [7; 32],
        id: 0,
        mark: Label::SYSTEM,
        lines: Vec::new(),
        grant: Arc::new(Grant::parse(&grant).unwrap()),
        journal_room: 0,
        held_room: HELD_BYTES,
        platform: Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap()),
        log: Arc::new(Mutex::new(Log::begin(sink, [1; 32]).unwrap())),
        watch: Arc::new(|_| {}),
        cancel: Arc::new(AtomicBool::new(false)),
    });
    let door = Counted { task, answered: 0, permitted: 0 };
    let limits = TurnLimits::default();
    let (door, ended) = one_thread().block_on(E::shared().turn(&program, door, b"", limits));
    assert_eq!(ended, Ok(Vec::new()));
    door
}

fn i3_one_decision_record_for_each_attempt_counted_at_the_import<E: Under>() {
    let tape = Tape::default();
    let door = counted::<E, _>(1000, 1990, tape.clone());
    assert_eq!(door.answered, 2000);
    assert_eq!(door.permitted, 995, "the budget ends five reads of the clock early");
    let log = tape.0.lock();
    let records: Vec<_> = Reader::new(&log).collect::<Result<_, _>>().unwrap();
    let count = |kind| records.iter().filter(|record| record.kind == kind).count();
    assert_eq!(count(Kind::Decision), door.answered);
    assert_eq!(count(Kind::Outcome), door.permitted);
    let refused = |code| records.iter().filter(|record| record.code == code).count();
    assert_eq!((refused(101), refused(203)), (1000, 5));
}

/// A log that another keeps.
struct Elsewhere;

impl Sink for Elsewhere {
    fn append(&mut self, _: &[u8], _: Durability) -> Result<(), SinkFailed> {
        Ok(())
    }
}

fn a_million_calls_take_the_memory_of_a_thousand<E: Under>() {
    let peak = |rounds| {
        let mut answered = 0;
        let made = allocation_counter::measure(|| {
            answered = counted::<E, _>(rounds, 1_000_000, Elsewhere).answered;
        });
        assert_eq!(answered, usize::try_from(rounds).unwrap() * 2);
        made.bytes_max
    };
    // What is made once, and kept, is made before.
    peak(500);
    let (few, many) = (peak(500), peak(500_000));
    assert!(many <= few + (16 << 10), "{few} bytes for a thousand calls, {many} for a million");
}

under_both! {
    i3_one_decision_record_for_each_attempt_counted_at_the_import,
    a_million_calls_take_the_memory_of_a_thousand,
}
