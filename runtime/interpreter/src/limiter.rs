//! What a guest may hold: the kernel's bounds, asked by wasmi.
//!
//! # Not here
//! Allocating: wasmi does it, fallibly. How many instances there are (`wiring`).

use synapse_kernel::bounds::Bounds;
use wasmi::ResourceLimiter;
use wasmi::errors::{MemoryError, TableError};
use wasmi_core::LimiterError;

/// The kernel's bounds, asked in wasmi's words.
pub(crate) struct Limiter(pub(crate) Bounds);

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        Ok(self.0.memory.grow(current, desired, maximum))
    }

    fn memory_grow_failed(&mut self, _: &MemoryError) -> Result<(), LimiterError> {
        self.0.memory.failed();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        Ok(self.0.table.grow(current, desired, maximum))
    }

    fn table_grow_failed(&mut self, _: &TableError) -> Result<(), LimiterError> {
        self.0.table.failed();
        Ok(())
    }

    /// The wiring counts them.
    fn instances(&self) -> usize {
        usize::MAX
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}

/// Tables and memories of one guest, as on wasmtime.
const TABLES: usize = 16;
const MEMORIES: usize = 4;
