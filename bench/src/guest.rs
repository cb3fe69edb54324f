//! A guest on the engine: a call and back, and a fresh turn
//!
//! # Not here
//! Compiling a component, which happens once.

use core::hint::black_box;
use std::rc::Rc;

use synapse_host::engine::{Program, Wasmtime};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::{Door, Engine as _, Reply, TurnLimits};
use synapse_primitives::memory::Memory;
use tokio::runtime::{Builder, Runtime};

use crate::task::task;
use crate::{Failure, Group, Row};

/// Calls: the crossing alone, and all that happens to a call.
///
/// # Errors
/// This machine does not let the engine start.
pub fn calls() -> Result<Group, Failure> {
    let machine = Rc::new(Machine::new()?);
    let memory = Memory::new(&[]).map_err(|why| why.to_string())?;
    let whole = task(memory, GRANT)?;
    Ok(Group {
        title: "A guest: calls within one turn",
        rows: vec![
            calling("call and back: an empty door", &machine, Empty),
            calling("call and back: all of clock_read", &machine, whole),
        ],
    })
}

/// Turns: a fresh instance each.
///
/// # Errors
/// As for [`calls`].
pub fn turns() -> Result<Group, Failure> {
    let machine = Machine::new()?;
    let fresh = Row::new("fresh turn", move |times| {
        (0..times).try_for_each(|_| machine.turn(Empty, 0).map(drop))
    });
    Ok(Group { title: "A guest: turns", rows: vec![fresh] })
}

fn calling<D: Door>(name: &'static str, machine: &Rc<Machine>, door: D) -> Row {
    let machine = Rc::clone(machine);
    let mut door = Some(door);
    Row::new(name, move |times| {
        let Some(taken) = door.take() else { return Err("its last turn failed".to_owned()) };
        door = Some(machine.turn(taken, times)?);
        Ok(())
    })
}

/// An engine with the guest that calls as often as it is told.
struct Machine {
    engine: Wasmtime,
    program: Program,
    executor: Runtime,
}

impl Machine {
    fn new() -> Result<Self, Failure> {
        let engine = Wasmtime::new().map_err(|why| why.to_string())?;
        let admitted = admit(GUEST).map_err(|why| why.to_string())?;
        let program = engine.load(&admitted).map_err(|why| why.to_string())?;
        let executor = Builder::new_current_thread().enable_time().build();
        let executor = executor.map_err(|why| format!("no executor started: {why}"))?;
        Ok(Self { engine, program, executor })
    }

    /// One turn with so many calls.
    fn turn<D: Door>(&self, door: D, calls: u32) -> Result<D, Failure> {
        let input = [&calls.to_le_bytes()[..], SENTENCE].concat();
        let turn = self.engine.turn(&self.program, door, &input, TurnLimits::default());
        let (door, answer) = self.executor.block_on(turn);
        answer.map_err(|why| why.to_string())?;
        Ok(door)
    }
}

/// A door with nothing behind it.
struct Empty;

impl Door for Empty {
    async fn submit(&mut self, sentence: &[u8]) -> Result<Reply, u32> {
        black_box(sentence);
        Ok(Reply::new(vec![1, 0, 0, 0]))
    }

    fn cancelled(&self) -> bool {
        false
    }
}

const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.wasm"));
const SENTENCE: &[u8] = br#"{"name":"clock_read","arguments":{}}"#;
const GRANT: &str = r#"
version = 1
primitives = ["clock_read"]
[budget]
calls = 9223372036854775807
"#;

#[cfg(test)]
mod tests {
    use super::{Machine, SENTENCE};
    use synapse_kernel::engine::{Door, Reply};

    struct Counting(u32);

    impl Door for Counting {
        async fn submit(&mut self, sentence: &[u8]) -> Result<Reply, u32> {
            assert_eq!(sentence, SENTENCE);
            self.0 += 1;
            if self.0 > 70_000 { Err(503) } else { Ok(Reply::new(vec![0; 100])) }
        }

        fn cancelled(&self) -> bool {
            false
        }
    }

    #[test]
    fn the_guest_calls_as_often_as_it_is_told_and_tells_of_an_error() {
        let machine = Machine::new().unwrap();
        for calls in [0, 1, 70_000] {
            assert_eq!(machine.turn(Counting(0), calls).unwrap().0, calls);
        }
        assert!(machine.turn(Counting(0), 70_001).is_err_and(|why| why.contains("503")));
    }
}
