//! How large the pool of instances is, and what the compiler accepts.
//!
//! # Not here
//! The limits of one turn, which are lower and come with each turn.

use std::fs;

use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::agents::CHILDREN;

/// Bytes of stack that a guest may use.
const WASM_STACK: usize = 512 << 10;
/// Bytes of the whole stack: what the door needs below the guest's calls too.
const STACK: usize = 2 << 20;
/// Elements of one table.
const TABLE_ELEMENTS: usize = 20_000;
/// Guests that one run has at once: its own, its children's, and some whose end is
/// not yet cleared away. A place costs microseconds of every start.
const LIVE: u32 = 1_088;
const _: () = assert!(LIVE as usize > CHILDREN, "every child needs a place");
/// Memory mappings that a process may have, unless the machine says otherwise:
/// the default of Linux.
const MAPPINGS: u32 = 65_530;
/// Mappings that are set aside for one live instance. It takes about six; the
/// rest is for everything else in the process.
const MAPPINGS_EACH: u32 = 16;
/// Core instances that the pool holds for each component: a guest and the
/// encoder's two shims.
const CORE_INSTANCES_EACH: u32 = 3;

/// The size of the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Guests alive at once.
    live: u32,
    /// Bytes of the largest linear memory.
    memory: usize,
    /// Address space reserved for each memory, and behind it.
    reservation: u64,
    guard: u64,
}

impl Size {
    pub(super) const SMALL: Self =
        Self { live: 4, memory: 4 << 20, reservation: 4 << 20, guard: 64 << 10 };

    pub(super) fn machine() -> Self {
        let mappings = fs::read_to_string("/proc/sys/vm/max_map_count")
            .ok()
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(MAPPINGS);
        Self {
            live: mappings.div_euclid(MAPPINGS_EACH).clamp(1, LIVE),
            memory: 1 << 30,
            reservation: 4 << 30,
            guard: 32 << 20,
        }
    }
}

pub(super) fn config(size: Size) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(size.live)
        .total_core_instances(size.live.saturating_mul(CORE_INSTANCES_EACH))
        .total_memories(size.live)
        .total_tables(size.live.saturating_mul(2))
        .total_stacks(size.live)
        .max_core_instances_per_component(64)
        .max_memories_per_component(4)
        .max_tables_per_component(16)
        .max_tables_per_module(4)
        .max_memories_per_module(1)
        .max_memory_size(size.memory)
        .table_elements(TABLE_ELEMENTS);

    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .memory_init_cow(true)
        .memory_reservation(size.reservation)
        .memory_guard_size(size.guard)
        .guard_before_linear_memory(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(STACK)
        // Defence in depth for I6: no guest finds another's stack.
        .async_stack_zeroing(true)
        .epoch_interruption(true)
        .wasm_component_model(true)
        // What `admit` refuses, and what may differ between boards.
        .wasm_relaxed_simd(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .cranelift_nan_canonicalization(true)
        // A trap is told by its reason alone.
        .wasm_backtrace_max_frames(None);
    config
}
