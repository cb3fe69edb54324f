//! A run in a world that stands still: what every board must agree on.
//!
//! The clock does not move, numbers that are random elsewhere are given, and
//! the files are the same. What is left to differ is the board itself: its
//! engine, its allocator, its compiler flags. So two boards that leave the same
//! log decided and recorded alike.
//!
//! # Invariants
//! - I18: same sentence, same state, same verdict, on both boards.
//!
//! # Not here
//! Comparing logs (whoever asked for them).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use sha2::{Digest, Sha256};
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

use crate::engine::Engine;
use crate::grant::Grant;
use crate::record::Tape;
use crate::run::{NoAnswer, Order, Room, Run};
use crate::session::Session;

/// What one replayed run is made of.
#[derive(Debug)]
pub struct Replay<'a> {
    /// Its place in a list of them; the log's number is made from it.
    pub number: u64,
    /// The line that the human typed.
    pub task: &'a str,
    /// What the agent may do.
    pub grant: Arc<Grant>,
    /// The files below `/data`, by their paths.
    pub files: &'a [(&'a str, &'a [u8])],
}

/// What came of it.
#[derive(Debug)]
pub struct Replayed {
    /// The log, every byte of it.
    pub log: Vec<u8>,
    /// The agent's answer, or why there is none.
    pub answer: Result<Vec<u8>, NoAnswer>,
}

impl Replay<'_> {
    /// Runs it. Nothing, if the world cannot be made: a path of a file is not
    /// below `/data`, or a name of it is taken by a folder.
    pub async fn run<E: Engine>(self, engine: &E, program: &E::Program) -> Option<Replayed> {
        let world = Memory::new(&[("/data", Access::ReadWrite)]).ok()?;
        world.set_now(NOW);
        for (path, bytes) in self.files {
            world.place(path, bytes).ok()?;
        }
        let order = Order {
            id: Sha256::digest(self.number.to_le_bytes()).into(),
            task: self.task,
            session: Session::default(),
            texts: &[],
            grant: self.grant,
            approval: None,
            room: ROOM,
            platform: Arc::new(world),
            watch: Arc::new(|_| {}),
            cancel: Arc::new(AtomicBool::new(false)),
        };
        let run = Run::begin(order, Tape::default()).ok()?;
        let (run, answer) = run.turn(engine, program).await;
        let finished = run.end(answer);
        let log = core::mem::take(&mut finished.log.lock().sink().0);
        Some(Replayed { log, answer: finished.answer })
    }
}

/// 2026-01-01, in milliseconds since 1970.
const NOW: u64 = 1_767_225_600_000;
/// Little enough for any board.
const ROOM: Room = Room { journal: 256 << 10, memory: 2 << 20, held: 256 << 10 };
