//! The port to a WebAssembly engine: run one turn of one guest.
//!
//! A board brings the engine, the kernel brings the door. The engine knows
//! nothing of tasks, labels or grants: it moves a sentence out of guest memory,
//! waits for the door, and moves the reply back in.
//!
//! # Invariants
//! - I4: a [`Reply`] is the only thing of the door's that an engine writes into
//!   a guest, and an engine unpacks it in one place.
//! - I6: a turn is one fresh instance; nothing of it outlives [`Engine::turn`].
//!
//! # Not here
//! What a sentence means (the boundary). Who may start a turn, and how long a
//! wait inside the door may take (tasks).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::admit::{Admitted, Shown};

/// Runs guests. One value serves every task of a process.
pub trait Engine: Send + Sync {
    /// A component made ready to run; cheap to clone.
    type Program: Clone + Send + Sync;

    /// Compiles a component. This takes time in proportion to the component's
    /// size and does not yield: a caller with other work runs it on a thread.
    ///
    /// # Errors
    /// The engine cannot run this component: it needs more than the engine was
    /// set up for.
    fn load(&self, component: &Admitted<'_>) -> Result<Self::Program, LoadError>;

    /// Runs one turn in a fresh instance: `input` goes to the guest's `turn`,
    /// its answer comes back. The door is returned however the turn ends; only
    /// a dropped future takes the door with it.
    fn turn<D: Door>(
        &self,
        program: &Self::Program,
        door: D,
        input: &[u8],
        limits: TurnLimits,
    ) -> impl Future<Output = (D, Result<Vec<u8>, Ended>)> + Send;
}

impl<E: Engine> Engine for Arc<E> {
    type Program = E::Program;

    fn load(&self, component: &Admitted<'_>) -> Result<E::Program, LoadError> {
        (**self).load(component)
    }

    fn turn<D: Door>(
        &self,
        program: &E::Program,
        door: D,
        input: &[u8],
        limits: TurnLimits,
    ) -> impl Future<Output = (D, Result<Vec<u8>, Ended>)> + Send {
        (**self).turn(program, door, input, limits)
    }
}

/// The one thing a guest can reach.
pub trait Door: Send + 'static {
    /// Answers one sentence, called once for every `synapse-call` the guest
    /// makes with a readable sentence. `Err` is a code of the ABI.
    ///
    /// A sentence longer than [`TurnLimits::sentence_bytes`] arrives cut to one
    /// byte more than that, so that the door sees, records and refuses it.
    fn submit(&mut self, sentence: &[u8]) -> impl Future<Output = Result<Reply, u32>> + Send;

    /// Whether the turn is to stop. Asked before the guest starts, about every
    /// 10 ms while it runs, and after each answer before the guest sees it.
    /// To end a wait inside [`Door::submit`] is the door's own business.
    fn cancelled(&self) -> bool;
}

/// What the door answers a sentence with: a framed reply on its way to a guest.
#[derive(Debug)]
pub struct Reply {
    bytes: Vec<u8>,
}

impl Reply {
    /// A reply of these bytes.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Gives the bytes up to be written into guest memory. For engines only.
    #[must_use]
    pub fn lower(self) -> Vec<u8> {
        self.bytes
    }
}

/// The bounds of one turn. The default suits a small agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Bytes of all linear memories together. Default 256 MiB; an engine may
    /// have a lower bound of its own.
    pub memory_bytes: usize,
    /// Elements of all tables together. Default 20,000.
    pub table_elements: usize,
    /// Time the guest itself may compute, in steps of about 10 ms, or exactly
    /// where an engine counts instructions for it. Waits inside the door and
    /// turns of others on the same thread are not charged: they are the
    /// kernel's to bound. Default 30 s.
    pub deadline: Duration,
    /// Bytes of a sentence that the door is shown whole. Default 1 MiB.
    pub sentence_bytes: usize,
    /// Bytes of the answer. Default 1 MiB.
    pub answer_bytes: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            table_elements: 20_000,
            deadline: Duration::from_secs(30),
            sentence_bytes: 1 << 20,
            answer_bytes: 1 << 20,
        }
    }
}

/// How a turn ended without an answer. Exhaustive: a kernel handles them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The guest returned an error of its own.
    Code(u32),
    /// The guest computed for longer than [`TurnLimits::deadline`].
    Deadline,
    /// The guest broke after it was denied more memory or a larger table.
    MemoryLimit,
    /// The guest's calls nested too deeply.
    StackOverflow,
    /// The guest broke in another way.
    Trap(Trap),
    /// The answer was longer than [`TurnLimits::answer_bytes`].
    AnswerTooLarge,
    /// [`Door::cancelled`] said so.
    Cancelled,
    /// The engine runs as many guests as it can; this one never started.
    NoRoom,
    /// The engine failed, for a reason that is not the guest's.
    Engine,
}

/// What a guest broke on. No text of the guest's is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// It reached `unreachable`: in most languages, a panic.
    Unreachable,
    /// It used memory outside its own.
    MemoryBounds,
    /// It used a table outside its bounds, or called an entry that is empty or
    /// of another type.
    IndirectCall,
    /// It divided by zero, overflowed, or converted a number that does not fit.
    Arithmetic,
    /// It broke the canonical ABI: a pointer outside its memory, a bad
    /// allocation, an unknown discriminant, a call where none is allowed.
    Abi,
    /// Something else that its instructions cannot do.
    Other,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "the agent gave up with its own code {code}"),
            Self::Deadline => f.write_str(
                "the agent was stopped: it computed for longer than its turn allows; \
                 give it less to do in one turn, or a longer deadline",
            ),
            Self::MemoryLimit => f.write_str(
                "the agent broke: it asked for more memory than its turn allows; \
                 give it less to hold at once, or a higher limit",
            ),
            Self::StackOverflow => f.write_str(
                "the agent broke: its calls nested too deeply; \
                 this is a bug of the agent, look for recursion without an end",
            ),
            Self::Trap(trap) => write!(f, "the agent broke: {trap}; this is a bug of the agent"),
            Self::AnswerTooLarge => f.write_str(
                "the agent's answer was not taken: it is longer than the limit; \
                 let the agent write long results to a file",
            ),
            Self::Cancelled => f.write_str("the turn was cancelled"),
            Self::NoRoom => f.write_str(
                "the agent did not start: as many agents run as this machine has room for; \
                 wait until one has ended",
            ),
            Self::Engine => f.write_str(
                "the agent was stopped: the engine failed under it; \
                 see whether this machine is short of memory, else report it",
            ),
        }
    }
}

impl Error for Ended {}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "it reached code that it marks as unreachable (a panic)",
            Self::MemoryBounds => "it used memory outside its own",
            Self::IndirectCall => "it called through a table entry that does not fit",
            Self::Arithmetic => "it divided by zero or a number did not fit",
            Self::Abi => "it passed a value that breaks the calling convention",
            Self::Other => "it did something that WebAssembly forbids",
        })
    }
}

/// Why an engine cannot run an admitted component.
///
/// The engine's message may quote the component: it is kept raw and escaped
/// when displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    why: String,
}

impl LoadError {
    /// An engine's own words for what it could not do.
    #[must_use]
    pub const fn new(why: String) -> Self {
        Self { why }
    }

    /// The engine's message, raw: it may quote the component.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the component cannot be compiled: {}; build it again with `synapse build`",
            Shown(&self.why)
        )
    }
}

impl Error for LoadError {}
