//! A task with everything below it, and a log in memory
//!
//! # Not here
//! Files of logs: how fast a disk takes them is no question about the door.

use core::pin::pin;
use core::sync::atomic::AtomicBool;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use spin::Mutex;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Log, Sink, SinkFailed};
use synapse_kernel::task::{Parts, Task};
use synapse_primitives::Platform;

use crate::Failure;

/// A sink that begins again where it is full; it never allocates.
#[derive(Debug)]
pub struct Ring(Vec<u8>);

impl Ring {
    /// An empty one, as large as what a log file's sink gathers.
    #[must_use]
    pub fn new() -> Self {
        Self(Vec::with_capacity(1 << 17))
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self::new()
    }
}

impl Sink for Ring {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        if self.0.capacity() - self.0.len() < frame.len() {
            self.0.clear();
        }
        self.0.extend_from_slice(frame);
        Ok(())
    }
}

/// A log that forgets.
///
/// # Errors
/// Never: memory takes what it is given.
pub fn log() -> Result<Log<Ring>, Failure> {
    Log::begin(Ring::new(), [0; 32]).map_err(|_| "a log in memory took no header".to_owned())
}

/// A task that a human started, under this grant.
///
/// # Errors
/// The grant is wrong.
pub fn task<P: Platform + 'static>(platform: P, grant: &str) -> Result<Task<P, Ring>, Failure> {
    let grant =
        Grant::parse(grant).map_err(|why| format!("the rows' own grant is wrong: {why}"))?;
    Ok(Task::new(Parts {
        run: [7; 32],
        id: 0,
        mark: mark(),
        lines: Vec::new(),
        grant: Arc::new(grant),
        journal_room: 0,
        held_room: 0,
        platform: Arc::new(platform),
        log: Arc::new(Mutex::new(log()?)),
        watch: Arc::new(|_| {}),
        cancel: Arc::new(AtomicBool::new(false)),
    }))
}

/// What a task starts with that a human typed.
pub(crate) fn mark() -> Label {
    Label::new(Integrity::User, Secrecy::PROMPT, Origin::record(1))
}

/// The result of a future that has nothing to wait for.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Err("a call waited that has nothing to wait for".to_owned()),
    }
}
