//! The tasks of one run: who is a child of whom, and what lets them all go on.
//!
//! Children are futures beside that of the run's own task. One poll of a run lets
//! each of them go on that was woken, so no executor is needed, no thread is held by
//! who waits, and what is dropped has ended: a child with its handle, its children
//! with it.
//!
//! # Invariants
//! - I9: a child's grant comes out of its parent's.
//! - A child that was ended makes no further step, and none of its children does.
//! - Agents of a run are counted, from the call that starts one until its handle is
//!   closed; so are its sockets, and the bytes that wait in channels and reports.
//!
//! # Not here
//! What a handle is to a call (`holding`). Which packages there are (a board).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};

use spin::Mutex;
use synapse_primitives::Platform;
use synapse_reply::Fault;

use crate::channel::Pantry;
use crate::engine::{Ended, Engine, TurnLimits};
use crate::grant::Grant;
use crate::record::Sink;
use crate::run::Approval;
use crate::task::{SharedLog, Task, Watch};

/// Listeners and connections that all tasks of a run may have open at once.
const SOCKETS: usize = 256;

/// A future that goes on beside others.
pub(crate) type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a board knows by names: packages that may be started.
pub trait Packages<E: Engine>: Send + Sync {
    /// The package with this name, made ready to run.
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, E::Program>;
}

/// A package that is looked for; `NotFound` where there is none.
pub type Finding<'a, Q> = Pin<Box<dyn Future<Output = Result<Package<Q>, Fault>> + Send + 'a>>;

/// A package, as a child is made of it.
#[derive(Clone, Debug)]
pub struct Package<Q> {
    /// Its component.
    pub program: Q,
    /// What a human agreed to for it at most, whoever starts it.
    pub bounds: Option<Arc<Grant>>,
    /// Its own texts, which were approved with it.
    pub texts: Vec<String>,
    /// The approval.
    pub approval: Option<Approval>,
}

/// What a run may start children of, and how many.
pub struct Staff<P, S> {
    pub(crate) starter: Arc<dyn Start<P, S>>,
    pub(crate) places: Arc<AtomicUsize>,
    pub(crate) memory: usize,
}

impl<P, S> core::fmt::Debug for Staff<P, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Staff").field("places", &self.places).finish_non_exhaustive()
    }
}

impl<P: Platform + 'static, S: Sink + 'static> Staff<P, S> {
    /// Children on this engine, of these packages. `places` are those that are free for
    /// agents, shared with whoever else takes some; `memory` bounds each guest's.
    pub fn new<E, B>(engine: E, packages: B, places: Arc<AtomicUsize>, memory: usize) -> Self
    where
        E: Engine<Program: 'static> + Clone + 'static,
        B: Packages<E> + 'static,
    {
        Self { starter: Arc::new(Starter { engine, packages }), places, memory }
    }
}

/// Makes a package's turn, on an engine that nobody above needs to name.
pub(crate) trait Start<P, S>: Send + Sync {
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, Turn<P, S>>;
}

/// One turn of a program, still to be run.
pub(crate) type Turn<P, S> =
    Box<dyn FnOnce(Task<P, S>, Vec<u8>, TurnLimits) -> Turning<P, S> + Send>;
type Turning<P, S> = Pin<Box<dyn Future<Output = (Task<P, S>, Result<Vec<u8>, Ended>)> + Send>>;

struct Starter<E, B> {
    engine: E,
    packages: B,
}

impl<E, B, P, S> Start<P, S> for Starter<E, B>
where
    E: Engine<Program: 'static> + Clone + 'static,
    B: Packages<E>,
    P: Platform + 'static,
    S: Sink + 'static,
{
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, Turn<P, S>> {
        Box::pin(async move {
            let Package { program, bounds, texts, approval } = self.packages.find(name).await?;
            let engine = self.engine.clone();
            let turn: Turn<P, S> = Box::new(move |task, input, limits| {
                Box::pin(async move { engine.turn(&program, task, &input, limits).await })
            });
            Ok(Package { program: turn, bounds, texts, approval })
        })
    }
}

/// What the tasks of one run share.
pub(crate) struct Crew<P, S> {
    pub(crate) run: [u8; 32],
    pub(crate) platform: Arc<P>,
    pub(crate) log: SharedLog<S>,
    pub(crate) watch: Watch,
    pub(crate) cancel: Arc<AtomicBool>,
    /// Bytes that the journal can still take.
    pub(crate) journal_room: Arc<AtomicU64>,
    pub(crate) pantry: Arc<Pantry>,
    /// Listeners and connections that there may still be.
    pub(crate) sockets: Arc<Pantry>,
    pub(crate) staff: Option<Staff<P, S>>,
    /// The number of the task that began last.
    last: AtomicU64,
    jobs: Mutex<BTreeMap<u64, Running>>,
    bell: Arc<Bell>,
}

/// A job that was begun; none while it is going on.
struct Running {
    job: Option<Job>,
    alarm: Arc<Alarm>,
}

/// Who is to go on, and who lets them.
#[derive(Default)]
struct Bell {
    woken: Mutex<Vec<u64>>,
    driver: Mutex<Option<Waker>>,
}

impl Bell {
    fn hears(&self, waker: &Waker) {
        let mut driver = self.driver.lock();
        if !driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            *driver = Some(waker.clone());
        }
    }
}

/// Wakes one job.
struct Alarm {
    number: u64,
    rung: AtomicBool,
    bell: Arc<Bell>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            self.bell.woken.lock().push(self.number);
            let driver = self.bell.driver.lock().clone();
            if let Some(driver) = driver {
                driver.wake();
            }
        }
    }
}

impl<P, S> Crew<P, S> {
    pub(crate) fn new(
        (run, first): ([u8; 32], u64),
        (platform, log): (Arc<P>, SharedLog<S>),
        (watch, cancel): (Watch, Arc<AtomicBool>),
        (journal_room, pantry): (u64, Arc<Pantry>),
    ) -> Self {
        Self {
            run,
            platform,
            log,
            watch,
            cancel,
            journal_room: Arc::new(AtomicU64::new(journal_room)),
            pantry,
            sockets: Pantry::new(SOCKETS),
            staff: None,
            last: AtomicU64::new(first),
            jobs: Mutex::default(),
            bell: Arc::default(),
        }
    }

    /// A number that no task of the run has had.
    pub(crate) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Lets a job go on from now on.
    pub(crate) fn begin(&self, number: u64, job: Job) {
        let bell = Arc::clone(&self.bell);
        let alarm = Arc::new(Alarm { number, rung: AtomicBool::new(false), bell });
        let running = Running { job: Some(job), alarm: Arc::clone(&alarm) };
        self.jobs.lock().insert(number, running);
        alarm.wake();
    }

    /// Ends a job where it stands.
    pub(crate) fn end(&self, number: u64) {
        // What it drops may end others.
        let ended = self.jobs.lock().remove(&number);
        drop(ended);
    }

    /// Runs a future to its end, and beside it whoever has begun.
    pub(crate) async fn beside<T>(&self, mut first: impl Future<Output = T> + Unpin) -> T {
        poll_fn(|context| {
            self.bell.hears(context.waker());
            let polled = Pin::new(&mut first).poll(context);
            if polled.is_pending() {
                self.step();
            }
            polled
        })
        .await
    }

    /// Lets each job go on that was woken.
    fn step(&self) {
        let woken = core::mem::take(&mut *self.bell.woken.lock());
        for number in woken {
            let taken = self
                .jobs
                .lock()
                .get_mut(&number)
                .and_then(|running| Some((running.job.take()?, Arc::clone(&running.alarm))));
            let Some((mut job, alarm)) = taken else { continue };
            alarm.rung.store(false, Ordering::Release);
            let waker = Waker::from(alarm);
            let polled = job.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                self.end(number);
            } else if let Some(running) = self.jobs.lock().get_mut(&number) {
                running.job = Some(job);
            }
        }
    }
}

/// How long a wait goes on without a look at whether the run is to end.
const SLICE: u64 = 100;

/// Waits until there is something, at most so many milliseconds.
pub(crate) async fn wait<P: Platform, T>(
    platform: &P,
    cancel: &AtomicBool,
    timeout: u64,
    mut look: impl FnMut(&Context<'_>) -> Poll<T> + Send,
) -> Result<T, Fault> {
    let mut left = timeout;
    loop {
        let slice = left.min(SLICE);
        let mut nap = pin!(platform.sleep(slice));
        let seen = poll_fn(|context| match look(context) {
            Poll::Ready(seen) => Poll::Ready(Some(seen)),
            Poll::Pending if slice == 0 => Poll::Ready(None),
            Poll::Pending => nap.as_mut().poll(context).map(|()| None),
        });
        if let Some(seen) = seen.await {
            return Ok(seen);
        }
        left = left.saturating_sub(slice);
        if cancel.load(Ordering::Relaxed) {
            return Err(Fault::Cancelled);
        }
        if left == 0 {
            return Err(Fault::TimedOut);
        }
    }
}
