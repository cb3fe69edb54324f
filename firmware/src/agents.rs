//! Runs of agents: those under way, and where what they do is kept.
//!
//! # Not here
//! Who asked for a run (`shell`). What a run records (kernel), and where
//! (`synapse_store`).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;

use synapse_interpreter::{Interpreter, Program, Time};
use synapse_kernel::crew::{Finding, Package, Packages, Staff};
use synapse_kernel::grant::Grant;
use synapse_kernel::run::{Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::{render, words};
use synapse_primitives::Fault;
use synapse_store::Shelf;

use crate::board::Seat;
use crate::budget::Budget;
use crate::desk::Desk;
use crate::executor::{self, Job};
use crate::exit::{Exit, exit};
use crate::packages::Bundle;
use crate::{clock, entropy, install, packages, println, serial, weight};

/// All runs of this machine.
pub(crate) struct Agents {
    bundle: Arc<Bundle>,
    shelf: Arc<Shelf>,
    desk: Arc<Desk>,
    budget: Budget,
    jobs: Vec<Job>,
    /// Places that are free for agents, children among them.
    places: Arc<AtomicUsize>,
    /// Those under way.
    runs: Vec<Started>,
    /// When what waited was last made safe.
    settled: Duration,
    /// Whether runs ask for what only a human can allow.
    pub(crate) ask: bool,
}

/// A run that was started.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// What its agent is called.
    name: String,
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
    /// Nothing is under way yet.
    pub(crate) fn new(bundle: Bundle, shelf: Arc<Shelf>, budget: Budget) -> Self {
        Self {
            bundle: Arc::new(bundle),
            shelf,
            desk: Arc::default(),
            places: Arc::new(AtomicUsize::new(budget.agents)),
            budget,
            jobs: Vec::new(),
            runs: Vec::new(),
            settled: clock::passed(),
            ask: false,
        }
    }

    /// The numbers of the runs that are under way.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = u64> {
        self.runs.iter().map(|run| run.number)
    }

    /// Ends those that are under way of an agent of this name.
    pub(crate) fn end(&self, name: &str) {
        for run in self.runs.iter().filter(|run| run.name == name) {
            println!("ending its run {}", run.number);
            run.cancel();
        }
    }

    /// What came with the machine.
    pub(crate) fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Where questions lie.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The bounds of an agent.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Lets every run go on for a while.
    pub(crate) fn step(&mut self) {
        executor::step(&mut self.jobs);
        self.runs.retain(|run| !run.has_ended());
        let now = clock::passed();
        if now.saturating_sub(self.settled) >= SOON {
            self.settled = now;
            if self.shelf.settle().is_err() {
                println!("the disk failed: nothing more can be recorded");
                exit(Exit::Unable);
            }
        }
    }

    /// Starts a run of an agent on a task.
    pub(crate) fn start(&mut self, name: &str, task: &str) -> Result<Started, String> {
        let place = Place::take(&self.places).ok_or_else(|| {
            format!(
                "{} agents run already, as many as this machine has memory for; wait for one",
                self.budget.agents
            )
        })?;
        let engine = Interpreter::new(Time::Clock(clock::passed))
            .with_code_bytes(weight::bytes(self.budget.code));
        let known = Known {
            bundle: Arc::clone(&self.bundle),
            shelf: Arc::clone(&self.shelf),
            engine: Arc::new(engine),
            budget: self.budget,
        };
        let engine = Arc::clone(&known.engine);
        let Package { program, bounds, texts, approval } = known.ready(name)?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let places = Arc::clone(&self.places);
        let staff = Staff::new(Arc::clone(&engine), known, places, self.budget.memory);
        let number = self.shelf.begin(name);
        let (cancel, ended) = (Arc::default(), Arc::default());
        let started = Started { number, name: name.to_string(), cancel, ended };
        let seat = Arc::new(Seat {
            shelf: Arc::clone(&self.shelf),
            desk: Arc::clone(&self.desk),
            run: number,
            agent: name.to_string(),
            cancel: Arc::clone(&started.cancel),
        });
        let order = Order {
            id: entropy::name(number),
            task,
            session: Session::default(),
            texts: &texts,
            grant: bounds.unwrap_or_default(),
            approval,
            room: Room {
                journal: self.shelf.rooms().files,
                memory: self.budget.memory,
                held: self.budget.held,
            },
            platform: Arc::clone(&seat),
            watch: Arc::new(|crossing| {
                clock::first_call();
                println!("{}", words::crossing(crossing));
            }),
            cancel: Arc::clone(&started.cancel),
        };
        let Ok(run) = Run::begin(order, self.shelf.tape(number)) else {
            // Nothing of it was recorded, and perhaps this is not either.
            let _ = self.shelf.end(number);
            return Err("the logs of earlier runs take all the room; `forget` them".to_string());
        };
        let run = run.staffed(staff);
        let run = if self.ask { run.confirmed_by(seat) } else { run };
        let (ended, kept) = (Arc::clone(&started.ended), Arc::clone(&self.shelf));
        self.jobs.push(Box::pin(async move {
            let (run, answer) = run.turn(&engine, &program).await;
            let finished = run.end(answer);
            let records = finished.log.lock().next();
            match finished.answer {
                Ok(answer) => serial::show(&render::block(answer)),
                Err(why) => println!("run {number} ended without an answer: {why}"),
            }
            if kept.end(number).is_err() {
                println!("run {number}: its end could not be noted");
            }
            println!("run {number} ended: {records} records");
            drop(place);
            ended.store(true, Ordering::Relaxed);
        }));
        self.runs.push(started.clone());
        Ok(started)
    }

    /// Drops the logs of runs that are not under way, with what could be put back
    /// of them, and says how many.
    pub(crate) fn forget(&self) -> Result<usize, String> {
        self.shelf
            .forget(|run| !self.under_way().any(|number| number == run.number))
            .map_err(|fault| format!("the logs stay: {}", fault.name()))
    }
}

/// A place that an agent has, until this is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(places: &Arc<AtomicUsize>) -> Option<Self> {
        let less = |places: usize| places.checked_sub(1);
        places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Self(Arc::clone(places)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// What may be run: what is installed, and what came along with a grant.
struct Known {
    bundle: Arc<Bundle>,
    shelf: Arc<Shelf>,
    engine: Arc<Interpreter>,
    budget: Budget,
}

impl Known {
    /// An agent made ready, bounded by what was agreed to or by what came along.
    fn ready(&self, name: &str) -> Result<Package<Program>, String> {
        if let Some(installed) = install::installed(&self.shelf, name)? {
            let component = installed.package.component();
            let program = packages::load(name, component, &self.engine, &self.budget)?;
            let grant = Grant::parse(&installed.text).map_err(|why| why.to_string())?;
            return Ok(Package {
                program,
                bounds: Some(Arc::new(grant)),
                texts: installed.package.soul().map(ToString::to_string).into_iter().collect(),
                approval: Some(installed.approval()),
            });
        }
        let (program, grant) = self.bundle.load(name, &self.engine, &self.budget)?;
        Ok(Package { program, bounds: Some(grant), texts: Vec::new(), approval: None })
    }
}

impl Packages<Arc<Interpreter>> for Known {
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, Program> {
        Box::pin(async move {
            let installed = self.shelf.package(name).map_err(|_| Fault::Io)?.is_some();
            if !installed && !self.bundle.agents().any(|agent| agent == name) {
                return Err(Fault::NotFound);
            }
            self.ready(name).map_err(|_| Fault::Unsupported)
        })
    }
}

/// How long a record that nobody waits for may wait.
const SOON: Duration = Duration::from_millis(100);
