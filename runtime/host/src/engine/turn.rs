//! One turn: a fresh store, one call of `turn`, and why it ended.
//!
//! The store's data does not name the door's type, so that one linked program
//! serves every door; a function pointer made for the type knows it.
//!
//! # Not here
//! What is charged to the guest (`clock`). The pool's bounds (`pool`).

use core::any::Any;
use core::mem;
use std::sync::Arc;

use synapse_kernel::bounds::Bounds;
use synapse_kernel::engine::{Door, Ended, Trap, TurnLimits};
use wasmtime::component::WasmList;
use wasmtime::{
    PoolConcurrencyLimitError, ResourceLimiter, Store, StoreContextMut, UpdateDeadline, WasmtimeBug,
};

use super::Program;
use super::clock::{GiveWay, Meter};

/// What `synapse-call` returns into the guest.
type Answer = (Result<Vec<u8>, u32>,);

/// `synapse-call` for one type of door.
type Call = for<'a> fn(
    StoreContextMut<'a, State>,
    WasmList<u8>,
) -> Box<dyn Future<Output = wasmtime::Result<Answer>> + Send + 'a>;

/// The data of a store.
pub(super) struct State {
    door: Box<dyn Any + Send>,
    call: Call,
    cancelled: fn(&(dyn Any + Send)) -> bool,
    meter: Arc<Meter>,
    limiter: Limiter,
    sentence_bytes: usize,
    /// Sentences are copied here; kept from call to call.
    sentence: Vec<u8>,
    /// Set when the host, not the guest, ends the turn.
    stopped: Option<Ended>,
}

impl State {
    fn new<D: Door>(door: D, meter: Arc<Meter>, limits: TurnLimits) -> Self {
        Self {
            door: Box::new(door),
            call: call::<D>,
            cancelled: |door| door.downcast_ref::<D>().is_none_or(Door::cancelled),
            meter,
            limiter: Limiter(Bounds::new(limits)),
            sentence_bytes: limits.sentence_bytes,
            sentence: Vec::new(),
            stopped: None,
        }
    }

    /// The function that answers `synapse-call` in this store.
    pub(super) fn call(store: &StoreContextMut<'_, Self>) -> Call {
        store.data().call
    }

    /// Whether the turn goes on.
    fn check(&mut self) -> Result<(), Stopped> {
        let ended = if (self.cancelled)(&*self.door) {
            Ended::Cancelled
        } else if self.meter.is_spent() {
            Ended::Deadline
        } else {
            return Ok(());
        };
        self.stopped = Some(ended);
        Err(Stopped)
    }
}

pub(super) async fn run<D: Door>(
    program: &Program,
    meter: Arc<Meter>,
    door: D,
    input: &[u8],
    limits: TurnLimits,
) -> (D, Result<Vec<u8>, Ended>) {
    let state = State::new(door, Arc::clone(&meter), limits);
    let mut store = Store::new(program.instance.engine(), state);
    store.limiter(|state| &mut state.limiter);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store| Ok(tick(store.data_mut())));
    // Bounded by the guest's own memory; the door and the answer have bounds
    // of their own that can be reported by name.
    store.set_hostcall_fuel(usize::MAX);

    meter.resume();
    let result = answer(program, &mut store, input, limits).await;
    let door = match store.into_data().door.downcast::<D>() {
        Ok(door) => *door,
        Err(_) => unreachable!("the store was made for this door"),
    };
    (door, result)
}

async fn answer(
    program: &Program,
    store: &mut Store<State>,
    input: &[u8],
    limits: TurnLimits,
) -> Result<Vec<u8>, Ended> {
    if store.data_mut().check().is_err() {
        return Err(why(store, Stopped.into(), Ended::Engine));
    }
    let instance = match program.instance.instantiate_async(&mut *store).await {
        Ok(instance) => instance,
        Err(error) => return Err(why(store, error, Ended::Engine)),
    };
    let turn = instance
        .get_typed_func::<(&[u8],), Answer>(&mut *store, program.turn)
        .map_err(|error| why(store, error, Ended::Engine))?;
    // The guest's own clean-up of the answer is part of this call.
    match turn.call_async(&mut *store, (input,)).await {
        Ok((Ok(answer),)) if answer.len() > limits.answer_bytes => Err(Ended::AnswerTooLarge),
        Ok((Ok(answer),)) => Ok(answer),
        Ok((Err(code),)) => Err(Ended::Code(code)),
        Err(error) => Err(why(store, error, Ended::Trap(Trap::Abi))),
    }
}

/// `synapse-call`: copies the sentence out, asks the door, lowers the reply.
fn call<D: Door>(
    mut store: StoreContextMut<'_, State>,
    sentence: WasmList<u8>,
) -> Box<dyn Future<Output = wasmtime::Result<Answer>> + Send + '_> {
    Box::new(async move {
        store.data().meter.pause();
        let mut bytes = mem::take(&mut store.data_mut().sentence);
        let all = sentence.as_le_slice(&store);
        let shown = store.data().sentence_bytes.saturating_add(1).min(all.len());
        bytes.clear();
        bytes.extend_from_slice(all.get(..shown).unwrap_or(all));

        let state = store.data_mut();
        let door = state.door.downcast_mut::<D>().ok_or(Stopped)?;
        let reply = door.submit(&bytes).await;
        state.sentence = bytes;
        state.check()?;
        state.meter.resume();
        // I4: the one place where a reply turns into bytes for a guest.
        Ok((reply.map(synapse_kernel::engine::Reply::lower),))
    })
}

/// About every 10 ms of a computing guest: stop it, or let others go first.
fn tick(state: &mut State) -> UpdateDeadline {
    state.meter.pause();
    match state.check() {
        Ok(()) => UpdateDeadline::YieldCustom(1, Box::pin(GiveWay::new(Arc::clone(&state.meter)))),
        Err(Stopped) => UpdateDeadline::Interrupt,
    }
}

/// Why a turn ended; `other` if the error is neither a trap nor the pool's.
fn why(store: &Store<State>, error: wasmtime::Error, other: Ended) -> Ended {
    let state = store.data();
    if let Some(stopped) = state.stopped {
        return stopped;
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Ended::NoRoom;
    }
    if error.is::<WasmtimeBug>() {
        return Ended::Engine;
    }
    let ended = error.downcast_ref::<wasmtime::Trap>().map_or(other, |trap| trapped(*trap));
    state.limiter.0.explain(ended)
}

fn trapped(trap: wasmtime::Trap) -> Ended {
    use wasmtime::Trap as T;
    Ended::Trap(match trap {
        T::StackOverflow => return Ended::StackOverflow,
        T::Interrupt => return Ended::Deadline,
        T::UnreachableCodeReached => Trap::Unreachable,
        T::MemoryOutOfBounds => Trap::MemoryBounds,
        T::TableOutOfBounds | T::IndirectCallToNull | T::BadSignature | T::NullReference => {
            Trap::IndirectCall
        }
        T::IntegerOverflow | T::IntegerDivisionByZero | T::BadConversionToInteger => {
            Trap::Arithmetic
        }
        T::CannotEnterComponent
        | T::CannotLeaveComponent
        | T::InvalidChar
        | T::StringOutOfBounds
        | T::ListOutOfBounds
        | T::InvalidDiscriminant
        | T::UnalignedPointer => Trap::Abi,
        // wasmtime adds traps for proposals that `admit` refuses.
        _ => Trap::Other,
    })
}

/// The host ended the turn; `State::stopped` says how.
#[derive(Debug)]
struct Stopped;

impl core::fmt::Display for Stopped {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the turn was stopped")
    }
}

impl core::error::Error for Stopped {}

/// The kernel's bounds, asked in wasmtime's words.
struct Limiter(Bounds);

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.0.memory.grow(current, desired, maximum))
    }

    fn memory_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.0.memory.failed();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.0.table.grow(current, desired, maximum))
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.0.table.failed();
        Ok(())
    }
}
