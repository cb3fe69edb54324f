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
struct Counted {
    task: Task<Memory, Tape>,
    answered: usize,
    permitted: usize,
}

impl Door for Counted {
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

fn i3_one_decision_record_for_each_attempt_counted_at_the_import<E: Under>() {
    let mut guest = turning(MANY);
    guest.items = ITEMS;
    guest.memory = "2";
    let program = guest.load::<E>();
    let tape = Tape::default();
    let grant = "version = 1\nprimitives = [\"clock_read\"]\n[budget]\ncalls = 1990\n";
    let task = Task::new(Parts {
        run: [7; 32],
        id: 0,
        mark: Label::SYSTEM,
        lines: Vec::new(),
        grant: Arc::new(Grant::parse(grant).unwrap()),
        journal_room: 0,
        held_room: HELD_BYTES,
        platform: Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap()),
        log: Arc::new(Mutex::new(Log::begin(tape.clone(), [1; 32]).unwrap())),
        watch: Arc::new(|_| {}),
        cancel: Arc::new(AtomicBool::new(false)),
    });
    let door = Counted { task, answered: 0, permitted: 0 };
    let limits = TurnLimits::default();
    let (door, ended) = one_thread().block_on(E::shared().turn(&program, door, b"", limits));
    assert_eq!(ended, Ok(Vec::new()));
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

under_both! { i3_one_decision_record_for_each_attempt_counted_at_the_import }
