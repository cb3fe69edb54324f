//! One turn: a fresh store, one call of `turn`, and why it ended.
//!
//! The canonical ABI of `func(list<u8>) -> result<list<u8>, u32>`, both ways.
//! A list is a pointer and a length, in memory that the receiver's `realloc`
//! gave. A result lies in memory: a byte that tells `ok` (0) from `err` (1),
//! and at offset 4 the list or the number. While a guest allocates or cleans
//! up it may not call the door.
//!
//! # Not here
//! What is charged to the guest (`meter`). Its bounds (`limiter`).

use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::mem;
use core::ops::Range;
use core::task::Poll;

use synapse_kernel::bounds::Bounds;
use synapse_kernel::engine::{Door, Ended, Trap, TurnLimits};
use wasmi::errors::{ErrorKind, HostError, InstantiationError};
use wasmi::{
    Extern, Func, Instance, Memory, ResumableCall, ResumableCallHostTrap, Store, TrapCode, Val,
};

use crate::Shared;
use crate::limiter::Limiter;
use crate::meter::Meter;
use crate::wiring::{self, Instantiate, Source, Step};

pub(crate) async fn run<D: Door>(
    program: &Shared,
    meter: Meter,
    door: &mut D,
    input: &[u8],
    limits: TurnLimits,
) -> Result<Vec<u8>, Ended> {
    let mut store = Store::new(&program.engine, Limiter(Bounds::new(limits)));
    store.limiter(|limiter| limiter);
    let turn = Turn {
        store,
        instances: Vec::new(),
        doors: Vec::new(),
        door,
        meter,
        limits,
        sentence: Vec::new(),
    };
    turn.answer(&program.wiring, input).await
}

/// A guest while its turn lasts.
struct Turn<'a, D> {
    store: Store<Limiter>,
    instances: Vec<Instance>,
    doors: Vec<(Func, Abi)>,
    door: &'a mut D,
    meter: Meter,
    limits: TurnLimits,
    /// Sentences are copied here; kept from call to call.
    sentence: Vec<u8>,
}

/// How bytes are put into a guest.
#[derive(Clone, Copy)]
struct Abi {
    memory: Memory,
    realloc: Func,
}

impl<D: Door> Turn<'_, D> {
    async fn answer(mut self, wiring: &wiring::Wiring, input: &[u8]) -> Result<Vec<u8>, Ended> {
        self.check()?;
        for step in &wiring.steps {
            match step {
                Step::Instantiate(instantiate) => self.instantiate(instantiate).await?,
                Step::Door(abi) => self.open(abi)?,
            }
        }
        let abi = self.abi(&wiring.turn.abi)?;
        let turn = self.function(&wiring.turn.function)?;
        let at = self.give(abi, input).await?;
        let params = [word(at), word(size(input.len())?)];
        let result = self.call::<1>(turn, &params).await?;
        let at = number(&result)?;
        let answer = self.taken(abi.memory, at)?;
        if let Some(clean_up) = &wiring.turn.clean_up {
            self.call_apart::<0>(self.function(clean_up)?, &[word(at)]).await?;
        }
        answer
    }

    async fn instantiate(&mut self, step: &Instantiate) -> Result<(), Ended> {
        let imports: Vec<_> =
            step.imports.iter().map(|source| self.find(source)).collect::<Result<_, _>>()?;
        let instance = self.slice(0, |store| Instance::new(store, &step.code, &imports))?;
        self.instances.push(instance);
        if let Some(start) = &step.start {
            let start = instance.get_func(&self.store, start).ok_or(Ended::Engine)?;
            self.call::<0>(start, &[]).await?;
        }
        Ok(())
    }

    /// Makes the door a function of the guest's: it stops the guest and says
    /// what was asked, nothing else.
    fn open(&mut self, abi: &wiring::Abi) -> Result<(), Ended> {
        let abi = self.abi(abi)?;
        let door = self.doors.len();
        let asks = move |at: u32, length: u32, result: u32| -> Result<(), wasmi::Error> {
            Err(wasmi::Error::host(Asked { door, at, length, result }))
        };
        let function = Func::wrap(&mut self.store, asks);
        self.doors.push((function, abi));
        Ok(())
    }

    /// Calls into the guest, and lets it ask the door as often as it wants.
    async fn call<const R: usize>(
        &mut self,
        function: Func,
        params: &[Val],
    ) -> Result<[Val; R], Ended> {
        let mut results = [const { Val::I32(0) }; R];
        let first = self.slice(0, |store| function.call_resumable(store, params, &mut results))?;
        let mut running = self.compute(first, &mut results).await?;
        while let Some(asking) = running {
            let asked = asking.host_error().downcast_ref().copied().ok_or(Ended::Engine)?;
            self.ask(asked).await?;
            let next = self.slice(0, |store| asking.resume(store, &[], &mut results))?;
            running = self.compute(next, &mut results).await?;
        }
        Ok(results)
    }

    /// Calls into the guest while the canonical ABI forbids it the door.
    async fn call_apart<const R: usize>(
        &mut self,
        function: Func,
        params: &[Val],
    ) -> Result<[Val; R], Ended> {
        let mut results = [const { Val::I32(0) }; R];
        let first = self.slice(0, |store| function.call_resumable(store, params, &mut results))?;
        match self.compute(first, &mut results).await? {
            None => Ok(results),
            Some(_) => Err(self.broke()),
        }
    }

    /// Goes on until the guest returns, or asks the door.
    async fn compute(
        &mut self,
        mut running: ResumableCall,
        results: &mut [Val],
    ) -> Result<Option<ResumableCallHostTrap>, Ended> {
        loop {
            let paused = match running {
                ResumableCall::Finished => return Ok(None),
                ResumableCall::HostTrap(asking) => return Ok(Some(asking)),
                ResumableCall::OutOfFuel(paused) => paused,
            };
            self.check()?;
            give_way().await;
            self.check()?;
            let least = paused.required_fuel();
            running = self.slice(least, |store| paused.resume(store, results))?;
        }
    }

    /// Lets the guest compute until its fuel is used up.
    fn slice<T>(
        &mut self,
        least: u64,
        run: impl FnOnce(&mut Store<Limiter>) -> Result<T, wasmi::Error>,
    ) -> Result<T, Ended> {
        let fuel = self.meter.begin(least).ok_or(Ended::Deadline)?;
        let ran = match self.store.set_fuel(fuel) {
            Ok(()) => run(&mut self.store),
            Err(why) => Err(why),
        };
        self.meter.end(self.store.get_fuel().unwrap_or(0));
        ran.map_err(|why| self.store.data().0.explain(ended(&why)))
    }

    /// `synapse-call`: copies the sentence out, asks the door, writes the reply.
    async fn ask(&mut self, asked: Asked) -> Result<(), Ended> {
        let (_, abi) = *self.doors.get(asked.door).ok_or(Ended::Engine)?;
        let all = abi.memory.data(&self.store);
        let all = span(asked.at, asked.length).and_then(|range| all.get(range));
        let all = all.ok_or_else(|| self.broke())?;
        let shown = self.limits.sentence_bytes.saturating_add(1).min(all.len());
        let mut sentence = mem::take(&mut self.sentence);
        sentence.clear();
        sentence.extend_from_slice(all.get(..shown).unwrap_or(all));

        let reply = self.door.submit(&sentence).await;
        self.sentence = sentence;
        self.check()?;
        match reply {
            // I4: the one place where a reply turns into bytes for a guest.
            Ok(reply) => {
                let bytes = reply.lower();
                let at = self.give(abi, &bytes).await?;
                let length = size(bytes.len())?;
                self.put(abi.memory, asked.result, OK, &[at, length])
            }
            Err(code) => self.put(abi.memory, asked.result, ERR, &[code]),
        }
    }

    /// Puts bytes where the guest's allocator wants them.
    async fn give(&mut self, abi: Abi, bytes: &[u8]) -> Result<u32, Ended> {
        let length = size(bytes.len())?;
        let params = [word(0), word(0), word(1), word(length)];
        let result = self.call_apart::<1>(abi.realloc, &params).await?;
        let at = number(&result)?;
        self.write(abi.memory, at, bytes)?;
        Ok(at)
    }

    /// Lays a result out in the guest's memory.
    fn put(&mut self, memory: Memory, at: u32, tag: u8, words: &[u32]) -> Result<(), Ended> {
        self.result(memory, at)?;
        self.write(memory, at, &[tag])?;
        for (word, offset) in words.iter().zip([4, 8]) {
            self.write(memory, at.saturating_add(offset), &word.to_le_bytes())?;
        }
        Ok(())
    }

    /// Takes the guest's result out of its memory.
    fn taken(&self, memory: Memory, at: u32) -> Result<Result<Vec<u8>, Ended>, Ended> {
        let (words, _) = self.result(memory, at)?.as_chunks::<4>();
        let &[[tag, ..], first, second] = words else { return Err(Ended::Engine) };
        let (first, second) = (u32::from_le_bytes(first), u32::from_le_bytes(second));
        match tag {
            OK => {
                let all = memory.data(&self.store);
                let list = span(first, second).and_then(|range| all.get(range));
                let list = list.ok_or_else(|| self.broke())?;
                if list.len() > self.limits.answer_bytes {
                    return Ok(Err(Ended::AnswerTooLarge));
                }
                Ok(Ok(list.to_vec()))
            }
            ERR => Ok(Err(Ended::Code(first))),
            _ => Err(self.broke()),
        }
    }

    /// The place of a result: whole, and aligned.
    fn result(&self, memory: Memory, at: u32) -> Result<&[u8; RESULT], Ended> {
        let place = usize::try_from(at).ok().filter(|at| at.is_multiple_of(ALIGN));
        place
            .and_then(|at| memory.data(&self.store).get(at..)?.first_chunk())
            .ok_or_else(|| self.broke())
    }

    fn write(&mut self, memory: Memory, at: u32, bytes: &[u8]) -> Result<(), Ended> {
        let at = usize::try_from(at).map_err(|_| self.broke())?;
        memory.write(&mut self.store, at, bytes).map_err(|_| self.broke())
    }

    /// The guest broke the canonical ABI.
    fn broke(&self) -> Ended {
        self.store.data().0.explain(Ended::Trap(Trap::Abi))
    }

    /// Whether the turn goes on.
    fn check(&self) -> Result<(), Ended> {
        if self.door.cancelled() {
            Err(Ended::Cancelled)
        } else if self.meter.is_spent() {
            Err(Ended::Deadline)
        } else {
            Ok(())
        }
    }

    fn abi(&self, abi: &wiring::Abi) -> Result<Abi, Ended> {
        let memory = self.find(&abi.memory)?.into_memory().ok_or(Ended::Engine)?;
        Ok(Abi { memory, realloc: self.function(&abi.realloc)? })
    }

    fn function(&self, source: &Source) -> Result<Func, Ended> {
        self.find(source)?.into_func().ok_or(Ended::Engine)
    }

    /// An item that an earlier step made. `admit` has checked that it is there.
    fn find(&self, source: &Source) -> Result<Extern, Ended> {
        let found = match source {
            Source::Export(instance, name) => self
                .instances
                .get(*instance)
                .and_then(|instance| instance.get_export(&self.store, name)),
            Source::Door(door) => self.doors.get(*door).map(|(function, _)| (*function).into()),
        };
        found.ok_or(Ended::Engine)
    }
}

/// What a guest asked the door, on its way out of the guest.
#[derive(Clone, Copy, Debug)]
struct Asked {
    door: usize,
    at: u32,
    length: u32,
    result: u32,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the guest waits for the door")
    }
}

impl HostError for Asked {}

/// Lets others on the executor go first.
async fn give_way() {
    let mut gave = false;
    poll_fn(|context| {
        if mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Why wasmi could not go on.
fn ended(why: &wasmi::Error) -> Ended {
    use InstantiationError as I;
    if let ErrorKind::Instantiation(why) = why.kind() {
        return match why {
            I::ElementSegmentDoesNotFit { .. } => Ended::Trap(Trap::IndirectCall),
            I::TooManyTables | I::TooManyMemories => Ended::MemoryLimit,
            _ => Ended::Engine,
        };
    }
    Ended::Trap(match why.as_trap_code() {
        Some(TrapCode::StackOverflow) => return Ended::StackOverflow,
        Some(TrapCode::OutOfFuel) => return Ended::Deadline,
        Some(TrapCode::GrowthOperationLimited | TrapCode::OutOfSystemMemory) => {
            return Ended::MemoryLimit;
        }
        Some(TrapCode::UnreachableCodeReached) => Trap::Unreachable,
        Some(TrapCode::MemoryOutOfBounds) => Trap::MemoryBounds,
        Some(
            TrapCode::TableOutOfBounds | TrapCode::IndirectCallToNull | TrapCode::BadSignature,
        ) => Trap::IndirectCall,
        Some(
            TrapCode::IntegerDivisionByZero
            | TrapCode::IntegerOverflow
            | TrapCode::BadConversionToInteger,
        ) => Trap::Arithmetic,
        None => return Ended::Engine,
    })
}

/// Where a list of the guest's lies.
fn span(at: u32, length: u32) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(usize::try_from(length).ok()?)?)
}

/// A length as the guest counts; what it cannot count, it has no room for.
fn size(length: usize) -> Result<u32, Ended> {
    u32::try_from(length).map_err(|_| Ended::MemoryLimit)
}

const fn word(number: u32) -> Val {
    Val::I32(number.cast_signed())
}

const fn number(results: &[Val; 1]) -> Result<u32, Ended> {
    match results {
        [Val::I32(number)] => Ok(number.cast_unsigned()),
        _ => Err(Ended::Engine),
    }
}

/// Bytes of a `result<list<u8>, u32>`, what they are aligned to, and its tags.
const RESULT: usize = 12;
const ALIGN: usize = 4;
const OK: u8 = 0;
const ERR: u8 = 1;
