//! What a call costs on this machine, in ticks of its processor
//!
//! Where an emulator counts instructions as time, ticks are instructions, the
//! same from run to run: that is how a change of cost is found.
//!
//! # Not here
//! The cost table of the host, side by side with others.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;

use synapse_boundary::{
    Facts, Held, Label, Mark, Names, NormalPath, Request, Table, Warrants, decide,
};
use synapse_interpreter::{Interpreter, Time};
use synapse_kernel::engine::Door;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::Log;
use synapse_kernel::run::{Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::task::{Parts, Task};
use synapse_store::{Rooms, Shelf, Tape, Volatile};

use crate::board::Seat;
use crate::budget::Budget;
use crate::packages::Bundle;
use crate::{cpu, executor, println, weight};

/// Measures the gates, a whole crossing, and an agent of the bundle if one is
/// named: its run on files of its own.
pub(crate) fn run(bundle: &Bundle, budget: &Budget, agent: &str) -> Result<(), String> {
    let grant = Arc::new(Grant::parse(GRANT).map_err(|why| why.to_string())?);
    println!("bench decide {}", gates(&grant));
    println!("bench crossing {}", crossing(&grant)?);
    if agent.is_empty() {
        return Ok(());
    }
    let engine = Interpreter::new(Time::Fuel { per_second: 1 << 30 })
        .with_code_bytes(weight::bytes(budget.code));
    let start = cpu::ticks();
    let (program, grant) = bundle.load(agent, &engine, budget)?;
    println!("bench load {}", since(start));
    let world = World::new(grant)?;
    let order = Order {
        id: [0; 32],
        task: "",
        session: Session::default(),
        texts: &[],
        grant: Arc::clone(&world.grant),
        approval: None,
        room: Room { journal: 0, memory: budget.memory, held: 0 },
        platform: Arc::clone(&world.seat),
        watch: Arc::new(|_| {}),
        cancel: Arc::default(),
    };
    let start = cpu::ticks();
    let run = Run::begin(order, world.tape()).map_err(|_| FULL.to_string())?;
    let (_, answer) = executor::finish(run.turn(&engine, &program), || {});
    let ticks = since(start);
    answer.map_err(|why| format!("{agent} ended without an answer: {why}"))?;
    println!("bench agent {ticks}");
    Ok(())
}

/// A place for one task, in memory: what it does is forgotten.
struct World {
    seat: Arc<Seat>,
    grant: Arc<Grant>,
}

impl World {
    fn new(grant: Arc<Grant>) -> Result<Self, String> {
        let file = ("/data/a.md".to_string(), &[b'a'; 60][..]);
        let rooms = Rooms { files: ROOM, logs: ROOM, whole: ROOM };
        let (store, mounts) = (Box::new(Volatile::default()), ["/data".to_string()]);
        let shelf =
            Shelf::open(store, rooms, &mounts, &[file], 0).map_err(|why| why.to_string())?;
        let shelf = Arc::new(shelf);
        let (run, agent) = (shelf.begin("bench"), "bench".to_string());
        let (desk, cancel) = (Arc::default(), Arc::default());
        Ok(Self { seat: Arc::new(Seat { shelf, desk, run, agent, cancel }), grant })
    }

    fn tape(&self) -> Tape {
        self.seat.shelf.tape(self.seat.run)
    }
}

/// All four gates, without the record.
fn gates(grant: &Grant) -> u64 {
    let mark = Mark::new(Label::SYSTEM);
    let (table, warrants) = (Table::new(grant.granted), Warrants::default());
    let start = cpu::ticks();
    for _ in 0..TIMES {
        let request = Request {
            task: 0,
            mark: &mark,
            table: &table,
            scope: &grant.scope,
            calls_left: 1,
            warrants: &warrants,
            lines: &[],
        };
        black_box(decide(request, &Nothing, black_box(SENTENCE)));
    }
    since(start) / TIMES
}

/// Gates, record, effect and reply.
fn crossing(grant: &Arc<Grant>) -> Result<u64, String> {
    let world = World::new(Arc::clone(grant))?;
    let log = Log::begin(world.tape(), [0; 32]).map_err(|_| FULL.to_string())?;
    let mut task = Task::new(Parts {
        run: [7; 32],
        id: 0,
        mark: Label::SYSTEM,
        lines: Vec::new(),
        grant: Arc::clone(grant),
        journal_room: 0,
        held_room: 0,
        platform: Arc::clone(&world.seat),
        log: Arc::new(spin::Mutex::new(log)),
        watch: Arc::new(|_| {}),
        cancel: Arc::default(),
    });
    let start = cpu::ticks();
    for _ in 0..TIMES {
        let reply = executor::finish(task.submit(black_box(SENTENCE)), || {});
        let bytes: Vec<u8> = reply.map_err(|code| format!("code {code}"))?.lower();
        black_box(bytes);
    }
    Ok(since(start) / TIMES)
}

fn since(start: u64) -> u64 {
    cpu::ticks().saturating_sub(start)
}

/// A task that holds nothing.
struct Nothing;

impl Names for Nothing {}

impl Facts for Nothing {
    fn held(&self, _: u64) -> Option<Held<'_>> {
        None
    }

    fn journal_room(&self) -> u64 {
        0
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }
}

const TIMES: u64 = 1000;
/// Bytes that what is measured may take for files, and for its log.
const ROOM: u64 = 1 << 20;
const FULL: &str = "the log takes nothing";
const SENTENCE: &[u8] =
    br#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":65536}}"#;
const GRANT: &str = r#"version = 1
primitives = ["fs_read"]
[[paths]]
path = "/data/**"
rights = ["list", "read"]
"#;
