//! The kernel's engine port on wasmtime, and the choice of another engine.
//!
//! Instances come from a pool and are copy-on-write, so that a fresh one a turn
//! costs microseconds. A guest runs on a stack of its own: while it waits for
//! the door, and at least every 10 ms while it computes, its thread is free for
//! others.
//!
//! # Invariants
//! - I4: `call` is the one place that unpacks a [`Reply`](synapse_kernel::engine::Reply)
//!   into a guest.
//! - I6: a store and everything in it is dropped before `turn` returns, and its
//!   memory is cleared before another guest gets it, stacks included.
//! - A guest reaches the host through `synapse-call` alone, and cannot end the
//!   process: what it does wrong ends its turn.
//!
//! # Not here
//! What may be a guest (`admit`). What a call means (the door). When to stop
//! waiting inside the door (the kernel).

mod clock;
mod pool;
mod turn;

use core::fmt;
use std::sync::LazyLock;
use std::time::Instant;

use synapse_compiled::Cache;
use synapse_interpreter::{Interpreter, Time};
use synapse_kernel::admit::{Admitted, EXPORT, IMPORT};
use synapse_kernel::engine::{Door, Ended, Engine, LoadError, TurnLimits};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, WasmList};

use clock::Ticker;
use pool::Size;
use turn::State;

/// The engines there are. Both give the same decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Compiles a guest to machine code before it runs.
    #[default]
    Wasmtime,
    /// Interprets a guest, as the firmware does.
    Wasmi,
}

/// Guests on wasmi, timed by this machine's clock.
#[must_use]
pub fn interpreter() -> Interpreter {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    Interpreter::new(Time::Clock(|| START.elapsed()))
}

/// Runs guests on wasmtime. One value serves every task of the process.
pub struct Wasmtime {
    engine: wasmtime::Engine,
    linker: Linker<State>,
    ticker: Ticker,
    cache: Option<Cache>,
}

impl Wasmtime {
    /// An engine sized for this machine: address space is reserved for as many
    /// guests as the kernel's limit on memory mappings bears.
    ///
    /// # Errors
    /// The machine does not let this process reserve the address space, or
    /// start the thread that keeps the time.
    pub fn new() -> Result<Self, StartError> {
        Self::of_size(Size::machine())
    }

    /// An engine for measuring under tools that bear no large reservations:
    /// four guests at once, 4 MiB of memory each.
    ///
    /// # Errors
    /// As for [`Wasmtime::new`].
    pub fn small() -> Result<Self, StartError> {
        Self::of_size(Size::SMALL)
    }

    /// The same engine, which compiles no component that this cache holds.
    #[must_use]
    pub fn with_cache(self, cache: Cache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    fn of_size(size: Size) -> Result<Self, StartError> {
        let engine = wasmtime::Engine::new(&pool::config(size)).map_err(StartError::new)?;
        let mut linker = Linker::new(&engine);
        linker
            .root()
            .func_wrap_async(IMPORT, |store, (sentence,): (WasmList<u8>,)| {
                let call = State::call(&store);
                call(store, sentence)
            })
            .map_err(StartError::new)?;
        let ticker = Ticker::start(&engine).map_err(StartError::new)?;
        Ok(Self { engine, linker, ticker, cache: None })
    }
}

impl Engine for Wasmtime {
    type Program = Program;

    fn load(&self, component: &Admitted<'_>) -> Result<Program, LoadError> {
        let failed = |error: wasmtime::Error| LoadError::new(format!("{error:#}"));
        let component = match &self.cache {
            Some(cache) => cache.load(&self.engine, component.bytes()),
            None => Component::from_binary(&self.engine, component.bytes()),
        }
        .map_err(failed)?;
        let turn = component
            .get_export_index(None, EXPORT)
            .ok_or_else(|| LoadError::new(format!("no export `{EXPORT}`")))?;
        let instance = self.linker.instantiate_pre(&component).map_err(failed)?;
        Ok(Program { instance, turn })
    }

    async fn turn<D: Door>(
        &self,
        program: &Program,
        door: D,
        input: &[u8],
        limits: TurnLimits,
    ) -> (D, Result<Vec<u8>, Ended>) {
        turn::run(program, self.ticker.meter(limits.deadline), door, input, limits).await
    }
}

impl fmt::Debug for Wasmtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wasmtime").finish_non_exhaustive()
    }
}

/// A compiled component, linked to the door.
#[derive(Clone)]
pub struct Program {
    instance: InstancePre<State>,
    turn: ComponentExportIndex,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

/// Why the engine could not start.
#[derive(Debug)]
pub struct StartError {
    why: wasmtime::Error,
}

impl StartError {
    fn new(why: impl Into<wasmtime::Error>) -> Self {
        Self { why: why.into() }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the engine did not start: {:#}; it reserves address space for its guests, \
             see whether `ulimit -v` limits it",
            self.why
        )
    }
}

impl core::error::Error for StartError {}
