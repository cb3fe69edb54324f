//! Runs of agents: those under way, and the logs of those that ended.
//!
//! # Invariants
//! - I3: a log takes records until its part of the memory is used up; then the
//!   door opens for nobody.
//!
//! # Not here
//! Who asked for a run (`shell`). What a run records (kernel).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use spin::Mutex;
use synapse_interpreter::{Interpreter, Time};
use synapse_kernel::record::{Durability, Sink, SinkFailed};
use synapse_kernel::run::{Order, Room, Run};
use synapse_kernel::{render, words};

use crate::board::Board;
use crate::budget::Budget;
use crate::executor::{self, Job};
use crate::packages::Bundle;
use crate::{clock, entropy, println, serial, weight};

/// All runs since the image started.
pub(crate) struct Agents {
    bundle: Bundle,
    board: Arc<Board>,
    budget: Budget,
    /// Bytes that logs may still take.
    log_room: Arc<AtomicUsize>,
    jobs: Vec<Job>,
    runs: Vec<Started>,
}

/// One run, under way or ended.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// The agent's name.
    pub(crate) name: String,
    /// Every byte of its log.
    pub(crate) log: Arc<Mutex<Vec<u8>>>,
    cancel: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

impl Started {
    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends it at its next step.
    pub(crate) fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

impl Agents {
    /// No runs yet.
    pub(crate) fn new(bundle: Bundle, board: Arc<Board>, budget: Budget) -> Self {
        let log_room = Arc::new(AtomicUsize::new(budget.logs));
        Self { bundle, board, budget, log_room, jobs: Vec::new(), runs: Vec::new() }
    }

    /// What came with the machine.
    pub(crate) fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The bounds of an agent.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// All runs, the first first.
    pub(crate) fn runs(&self) -> &[Started] {
        &self.runs
    }

    /// Lets every run go on for a while.
    pub(crate) fn step(&mut self) {
        executor::step(&mut self.jobs);
    }

    /// Starts a run of an agent on a task.
    pub(crate) fn start(&mut self, name: &str, task: &str) -> Result<Started, String> {
        if self.jobs.len() >= self.budget.agents {
            return Err(format!(
                "{} agents run already, as many as this machine has memory for; wait for one",
                self.jobs.len()
            ));
        }
        let engine = Interpreter::new(Time::Clock(clock::passed))
            .with_code_bytes(weight::bytes(self.budget.code));
        let (program, grant) = self.bundle.load(name, &engine, &self.budget)?;
        let number = self.runs.len() + 1;
        let started = Started {
            number,
            name: name.to_string(),
            log: Arc::default(),
            cancel: Arc::default(),
            ended: Arc::default(),
        };
        let order = Order {
            id: entropy::name(u64::try_from(number).unwrap_or(u64::MAX)),
            task,
            texts: &[],
            grant,
            approval: None,
            room: Room {
                journal: u64::try_from(self.budget.files).unwrap_or(u64::MAX),
                memory: self.budget.memory,
                held: self.budget.held,
            },
            platform: Arc::clone(&self.board),
            watch: Arc::new(|crossing| {
                clock::first_call();
                println!("{}", words::crossing(crossing));
            }),
            cancel: Arc::clone(&started.cancel),
        };
        let sink = Tape { log: Arc::clone(&started.log), room: Arc::clone(&self.log_room) };
        let run = Run::begin(order, sink)
            .map_err(|_| "the logs of earlier runs take all the room; `forget` them".to_string())?;
        let ended = Arc::clone(&started.ended);
        self.jobs.push(Box::pin(async move {
            let finished = run.turn(&engine, &program).await;
            let records = finished.log.lock().next();
            match finished.answer {
                Ok(answer) => serial::show(&render::block(answer)),
                Err(why) => println!("run {number} ended without an answer: {why}"),
            }
            println!("run {number} ended: {records} records");
            ended.store(true, Ordering::Relaxed);
        }));
        self.runs.push(started.clone());
        Ok(started)
    }

    /// Drops the logs of runs that have ended, and says how many.
    pub(crate) fn forget(&mut self) -> usize {
        let mut count = 0;
        for run in self.runs.iter().filter(|run| run.has_ended()) {
            let log = core::mem::take(&mut *run.log.lock());
            self.log_room.fetch_add(log.len(), Ordering::Relaxed);
            count += usize::from(!log.is_empty());
        }
        count
    }
}

/// A log in memory, inside the part that all of them share.
struct Tape {
    log: Arc<Mutex<Vec<u8>>>,
    room: Arc<AtomicUsize>,
}

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        let take = |room: usize| room.checked_sub(frame.len());
        let taken = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let mut log = self.log.lock();
        if taken.is_err() || log.try_reserve(frame.len()).is_err() {
            return Err(SinkFailed);
        }
        log.extend_from_slice(frame);
        Ok(())
    }
}
