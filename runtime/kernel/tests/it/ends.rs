//! What a guest's own code does to the records of ends.

use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use spin::Mutex;
use synapse_kernel::admit::Admitted;
use synapse_kernel::engine::{Door, Ended, Engine, LoadError, TurnLimits};
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Kind, Sink, SinkFailed};
use synapse_kernel::run::{Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::verify::Reader;
use synapse_kernel::words;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

/// An engine whose guest gives up with this code.
struct GivesUp(u32);

impl Engine for GivesUp {
    type Program = ();
    fn load(&self, _: &Admitted<'_>) -> Result<(), LoadError> {
        Ok(())
    }
    async fn turn<D: Door>(
        &self,
        (): &(),
        door: D,
        _: &[u8],
        _: TurnLimits,
    ) -> (D, Result<Vec<u8>, Ended>) {
        (door, Err(Ended::Code(self.0)))
    }
}

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);
impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.0.lock().extend_from_slice(frame);
        Ok(())
    }
}

fn ends(code: u32) -> Vec<(Kind, u8, u16, String)> {
    let tape = Tape::default();
    let order = Order {
        id: [1; 32],
        task: "x",
        session: Session::default(),
        texts: &[],
        grant: Arc::new(Grant::parse("version = 1\nprimitives = [\"clock_read\"]\n").unwrap()),
        approval: None,
        room: Room { journal: 0, memory: 1 << 20, held: 1 << 20 },
        platform: Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap()),
        watch: Arc::new(|_| {}),
        cancel: Arc::new(AtomicBool::new(false)),
    };
    let run = Run::begin(order, tape.clone()).unwrap();
    let engine = GivesUp(code);
    let mut turn = core::pin::pin!(async {
        let (run, answer) = run.turn(&engine, &()).await;
        run.end(answer)
    });
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    assert!(turn.as_mut().poll(&mut context).is_ready());
    let log = tape.0.lock().clone();
    Reader::new(&log)
        .map(Result::unwrap)
        .filter(|record| matches!(record.kind, Kind::TurnEnd | Kind::RunEnd))
        .map(|record| (record.kind, record.gate, record.code, words::verdict(&record)))
        .collect()
}

#[test]
fn a_guest_writes_no_refusal_and_no_success_into_the_log() {
    let refused = ends(301);
    assert!(refused.iter().all(|end| end.1 == 0), "{refused:?}");
}

#[test]
fn giving_up_with_code_0_is_no_success() {
    let gave_up = ends(0);
    assert!(gave_up.iter().all(|end| end.2 != 0), "{gave_up:?}");
}
