//! Time that guests compute, counted in ticks of 10 ms.
//!
//! A thread ticks. A tick that falls while a guest computes is charged to it;
//! one that falls while it waits for the door, or for its thread, is not. Like
//! an operating system's tick this is exact on the whole, never for one stretch,
//! and costs a guest's call into the door two loads instead of two clocks.
//!
//! # Not here
//! Wall-clock limits: a wait in the door is bounded by the kernel.

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// The length of a tick.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// The thread that ticks, for as long as this lives.
#[derive(Debug)]
pub(super) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    ticks: AtomicU64,
    stop: AtomicBool,
}

impl Ticker {
    pub(super) fn start(engine: &wasmtime::Engine) -> io::Result<Self> {
        let shared = Arc::new(Shared { ticks: AtomicU64::new(0), stop: AtomicBool::new(false) });
        let engine = engine.clone();
        let ticking = Arc::clone(&shared);
        let thread = thread::Builder::new().name("synapse-tick".into()).spawn(move || {
            while !ticking.stop.load(Ordering::Relaxed) {
                thread::park_timeout(TICK);
                ticking.ticks.fetch_add(1, Ordering::Relaxed);
                engine.increment_epoch();
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// A meter for one turn, not running yet.
    pub(super) fn meter(&self, deadline: Duration) -> Arc<Meter> {
        let limit = deadline.as_nanos().div_ceil(TICK.as_nanos());
        Arc::new(Meter {
            shared: Arc::clone(&self.shared),
            limit: u64::try_from(limit).unwrap_or(u64::MAX),
            spent: AtomicU64::new(0),
            since: AtomicU64::new(0),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the ticker has nothing to tell that its end does not.
            drop(thread.join());
        }
    }
}

/// What one turn has spent. One thread at a time uses it: the atomics only let
/// it be shared with the future that a yielding guest waits on.
#[derive(Debug)]
pub(super) struct Meter {
    shared: Arc<Shared>,
    limit: u64,
    spent: AtomicU64,
    since: AtomicU64,
}

impl Meter {
    /// The guest computes from now on.
    pub(super) fn resume(&self) {
        self.since.store(self.shared.ticks.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The guest computes no longer.
    pub(super) fn pause(&self) {
        let now = self.shared.ticks.load(Ordering::Relaxed);
        let passed = now.saturating_sub(self.since.load(Ordering::Relaxed));
        let spent = self.spent.load(Ordering::Relaxed).saturating_add(passed);
        self.spent.store(spent, Ordering::Relaxed);
    }

    /// Whether the guest has used up its time.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed) >= self.limit
    }
}

/// Lets others on the thread go first, then starts the meter again.
#[derive(Debug)]
pub(super) struct GiveWay {
    meter: Arc<Meter>,
    gave: bool,
}

impl GiveWay {
    pub(super) const fn new(meter: Arc<Meter>) -> Self {
        Self { meter, gave: false }
    }
}

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.gave {
            self.meter.resume();
            return Poll::Ready(());
        }
        self.gave = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(ticks: &Arc<Shared>, limit: u64) -> Meter {
        Meter {
            shared: Arc::clone(ticks),
            limit,
            spent: AtomicU64::new(0),
            since: AtomicU64::new(0),
        }
    }

    #[test]
    fn only_ticks_between_resume_and_pause_are_charged() {
        let shared = Arc::new(Shared { ticks: AtomicU64::new(7), stop: AtomicBool::new(false) });
        let meter = meter(&shared, 3);
        let pass = |ticks| {
            shared.ticks.fetch_add(ticks, Ordering::Relaxed);
        };
        pass(100);
        meter.resume();
        pass(2);
        meter.pause();
        pass(100);
        assert!(!meter.is_spent());
        meter.resume();
        pass(1);
        meter.pause();
        assert!(meter.is_spent());
    }

    #[test]
    fn a_deadline_is_rounded_up_to_ticks() -> io::Result<()> {
        let engine = wasmtime::Engine::default();
        let ticker = Ticker::start(&engine)?;
        for (deadline, limit) in [(0, 0), (1, 1), (10, 1), (11, 2), (30_000, 3000)] {
            assert_eq!(ticker.meter(Duration::from_millis(deadline)).limit, limit);
        }
        assert_eq!(ticker.meter(Duration::MAX).limit, u64::MAX);
        Ok(())
    }
}
