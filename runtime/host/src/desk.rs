//! The question that a run waits with, for every console that may answer it
//!
//! # Invariants
//! - One question stands at a time, and its first answer counts.
//! - An answer names the question that it is for, and none counts within half a
//!   second: nobody has read it by then.
//!
//! # Not here
//! Terminals (`human`), the socket (`control`).

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use synapse_boundary::Said;
use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::Heard;

/// No answer counts before this has passed.
pub const LEAST: Duration = Duration::from_millis(500);

/// Where a run puts its question.
#[derive(Debug, Default)]
pub struct Desk(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Questions so far.
    count: u64,
    standing: Option<Standing>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its number in the run, from 1.
    pub number: u64,
    /// What is shown.
    pub asking: Arc<Asking>,
    /// When it is given up.
    pub until: Instant,
    since: Instant,
    heard: Option<Heard>,
}

impl Desk {
    /// The question that stands now.
    #[must_use]
    pub fn standing(&self) -> Option<Standing> {
        self.inner().standing.clone().filter(|standing| standing.heard.is_none())
    }

    /// Answers a question by its number.
    ///
    /// # Errors
    /// In words: it does not stand any longer, or was shown too short a time ago.
    pub fn answer(&self, number: u64, said: Said, console: String) -> Result<(), &'static str> {
        let mut inner = self.inner();
        let standing = inner.standing.as_mut().filter(|standing| standing.number == number);
        match standing {
            Some(standing) if standing.heard.is_none() => {
                if standing.since.elapsed() < LEAST {
                    return Err("the question was not shown for half a second yet; read it first");
                }
                standing.heard = Some(Heard { said, console });
                Ok(())
            }
            _ => Err("the question does not stand any longer"),
        }
    }

    pub(crate) fn put(&self, asking: Arc<Asking>, patience: Duration) -> Standing {
        let mut inner = self.inner();
        inner.count += 1;
        let since = Instant::now();
        let (number, until) = (inner.count, since + patience);
        let standing = Standing { number, asking, until, since, heard: None };
        inner.standing = Some(standing.clone());
        standing
    }

    /// What was answered elsewhere.
    pub(crate) fn heard(&self) -> Option<Heard> {
        self.inner().standing.as_ref()?.heard.clone()
    }

    /// Takes the question away, and what was answered elsewhere by then.
    pub(crate) fn clear(&self) -> Option<Heard> {
        self.inner().standing.take()?.heard
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked left a whole question or none.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
