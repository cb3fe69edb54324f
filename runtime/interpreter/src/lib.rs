//! The kernel's engine port on wasmi: guests without an operating system.
//!
//! An interpreter needs no signals, no memory mappings and no second stack, so
//! the firmware runs guests with it; the host offers it beside wasmtime, where
//! both must decide alike. wasmi knows core modules only: the component around
//! them is read here, and the canonical ABI of its one import and its one
//! export is written by hand.
//!
//! A call of the guest's to the door suspends the guest: while the door works,
//! and whenever a slice of fuel is used up, the executor may run others.
//!
//! # Invariants
//! - I4: `Turn::ask` is the one place that unpacks a
//!   [`Reply`](synapse_kernel::engine::Reply) into a guest.
//! - I6: a store and everything in it is dropped before `turn` returns.
//! - A guest reaches the host through `synapse-call` alone. What it does wrong
//!   ends its turn: every pointer and length of its own is checked, its memory
//!   and tables are allocated fallibly and within the turn's limits.
//!
//! # Reading order
//! `wiring` (what a component is made of), `turn` (how it runs), `meter`.
//!
//! # Not here
//! What may be a guest (`admit`). What a call means (the door). When to stop
//! waiting inside the door (the kernel).
#![no_std]

extern crate alloc;

mod limiter;
mod meter;
mod start;
mod turn;
mod wiring;

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use synapse_kernel::admit::{Admitted, COMPONENT_MAX};
use synapse_kernel::engine::{Door, Ended, Engine, LoadError, TurnLimits};
use wasmi::{CompilationMode, Config};

use meter::Meter;
pub use meter::Time;
use wiring::Wiring;

/// Runs guests on wasmi. One value serves every task of a board.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    time: Time,
    code_bytes: usize,
}

impl Interpreter {
    /// An engine that measures a guest's time in this way.
    #[must_use]
    pub const fn new(time: Time) -> Self {
        Self { time, code_bytes: COMPONENT_MAX }
    }

    /// The same for a board with little memory: no component with more bytes,
    /// and no more bytes of code in all instances together. Loaded code takes
    /// several times its bytes.
    #[must_use]
    pub const fn with_code_bytes(self, code_bytes: usize) -> Self {
        Self { code_bytes, ..self }
    }
}

impl Engine for Interpreter {
    type Program = Program;

    fn load(&self, component: &Admitted<'_>) -> Result<Program, LoadError> {
        let bytes = component.bytes();
        if bytes.len() > self.code_bytes {
            let limit = self.code_bytes;
            return Err(LoadError::new(format!(
                "it has {} bytes, this board takes {limit}",
                bytes.len()
            )));
        }
        // Code lives as long as its engine: with one for each program, a
        // program that is dropped leaves nothing behind.
        let engine = wasmi::Engine::new(&config());
        let wiring = Wiring::read(&engine, bytes, self.code_bytes).map_err(LoadError::new)?;
        Ok(Program { shared: Arc::new(Shared { engine, wiring }) })
    }

    async fn turn<D: Door>(
        &self,
        program: &Program,
        mut door: D,
        input: &[u8],
        limits: TurnLimits,
    ) -> (D, Result<Vec<u8>, Ended>) {
        let meter = Meter::new(self.time, limits.deadline);
        let result = turn::run(&program.shared, meter, &mut door, input, limits).await;
        (door, result)
    }
}

/// A compiled component.
#[derive(Clone)]
pub struct Program {
    shared: Arc<Shared>,
}

struct Shared {
    engine: wasmi::Engine,
    wiring: Wiring,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

/// What `admit` takes for the firmware, compiled whole before it runs.
fn config() -> Config {
    let mut config = Config::default();
    config
        .compilation_mode(CompilationMode::Eager)
        .consume_fuel(true)
        .ignore_custom_sections(true)
        // A start function runs as any other call: see `start`.
        .allow_start_fn(false)
        .set_max_recursion_depth(CALLS)
        .set_max_stack_height(STACK)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    config
}

/// Calls of a guest that may be open at once.
const CALLS: usize = 8192;
/// Bytes of stack that a guest may use, as on wasmtime.
const STACK: usize = 512 << 10;
