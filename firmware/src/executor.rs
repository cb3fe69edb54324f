//! Driving futures on one core: each is polled in turn until all have ended
//!
//! No device interrupts, so nobody is woken: whoever waits is asked again.
//!
//! # Not here
//! When a future lets others go first (its engine, after each slice of fuel).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// A future that is driven beside others.
pub(crate) type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Asks every job once, and drops those that have ended.
pub(crate) fn step(jobs: &mut Vec<Job>) {
    let mut context = Context::from_waker(Waker::noop());
    jobs.retain_mut(|job| job.as_mut().poll(&mut context).is_pending());
}

/// Drives one future to its end, asking `others` each time that it waits.
pub(crate) fn finish<T>(future: impl Future<Output = T>, mut others: impl FnMut()) -> T {
    let mut future = core::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        others();
    }
}
