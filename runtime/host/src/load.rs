//! From a component's bytes to a program, within a time.
//!
//! Compilers take far longer for some code than for other code of that size,
//! and they cannot be stopped. So they work on a thread of their own, which is
//! left behind where it takes too long: it holds no lock and ends by itself.
//!
//! # Invariants
//! - Neither looking at a component nor compiling it keeps its caller waiting
//!   for longer than the limit, or after they gave up.
//!
//! # Not here
//! What may become a guest (`admit`). How long a guest may run (its limits).

use core::error::Error;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use synapse_kernel::admit::{NotAdmitted, admit};
use synapse_kernel::engine::{Engine, LoadError};

/// How long a component may take. Large guests that are made of a whole language's
/// interpreter take seconds.
pub const LIMIT: Duration = Duration::from_mins(1);

/// Admits a component and compiles it; `cancel` is set to give up.
///
/// # Errors
/// It is no guest, the engine does not take it, or it takes too long.
pub fn load<E>(
    engine: E,
    bytes: Vec<u8>,
    limit: Duration,
    cancel: &AtomicBool,
) -> Result<(E, E::Program), NotLoaded>
where
    E: Engine<Program: Send + 'static> + Send + 'static,
{
    let (done, result) = mpsc::channel();
    let work = move || {
        let program = admit(&bytes)
            .map_err(NotLoaded::NotAdmitted)
            .and_then(|admitted| engine.load(&admitted).map_err(NotLoaded::Engine));
        // Nobody waits any more after the limit.
        drop(done.send(program.map(|program| (engine, program))));
    };
    thread::Builder::new().name("load".to_owned()).spawn(work).map_err(NotLoaded::Thread)?;
    let begun = Instant::now();
    while !cancel.load(Ordering::Relaxed) {
        let left = limit.saturating_sub(begun.elapsed());
        match result.recv_timeout(left.min(STEP)) {
            Ok(program) => return program,
            Err(RecvTimeoutError::Disconnected) => return Err(NotLoaded::Broken),
            Err(RecvTimeoutError::Timeout) if left <= STEP => {
                return Err(NotLoaded::TooLong(limit));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Err(NotLoaded::Cancelled)
}

/// How often it looks whether its caller gave up.
const STEP: Duration = Duration::from_millis(50);

/// Why there is no program.
#[derive(Debug)]
pub enum NotLoaded {
    /// The component is no guest.
    NotAdmitted(NotAdmitted),
    /// The engine does not take it.
    Engine(LoadError),
    /// It was not compiled in this time.
    TooLong(Duration),
    /// Whoever wanted it gave up.
    Cancelled,
    /// The compiler panicked, and has told so itself.
    Broken,
    /// There is no thread to compile on.
    Thread(io::Error),
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAdmitted(why) => why.fmt(f),
            Self::Engine(why) => why.fmt(f),
            Self::TooLong(limit) => write!(
                f,
                "the component takes longer than {} s to compile; \
                 build it smaller, or interpret it with `--engine wasmi`",
                limit.as_secs_f32()
            ),
            Self::Cancelled => f.write_str("the run was ended before its agent was compiled"),
            Self::Broken => f.write_str(
                "the compiler failed on the component; interpret it with `--engine wasmi`",
            ),
            Self::Thread(why) => {
                write!(f, "no thread could be started to compile on: {why}; try again")
            }
        }
    }
}

impl Error for NotLoaded {}
