//! A task: the authority of one agent, and the door it speaks through.
//!
//! A sentence is decided, recorded and only then executed, in one straight
//! line; its reply is released into the task's mark before a guest sees it.
//!
//! # Invariants
//! - I3: one decision record for each answered attempt, before any effect.
//! - I4, I6: a reply reaches the guest only through the mark, which rises.
//!
//! # Not here
//! The decision (boundary), the effect (primitives), the instance (engine).

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use spin::Mutex;
use synapse_abi::code::Refusal;
use synapse_abi::registry::{Egress, Harm, Primitive};
use synapse_boundary::cite::Bearer;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::sentence::{Argument, Call};
use synapse_boundary::url::Url;
use synapse_boundary::{
    Decided, Facts, Held, Integrity, Label, Mark, Names, NormalPath, Opened, Request, TurnEnd,
    Verdict, Warrants, commit, decide,
};
use synapse_primitives::rest::Creator;
use synapse_primitives::{Caller, Executed, Labelled, Platform, execute, most};
use synapse_reply::Fault;
use synapse_reply::frame::{self, Form};
use synapse_reply::limits::ANSWER;

use crate::channel::{Pantry, Risen};
use crate::confirm::{Asker, Confirm, Scene};
use crate::crew::{Crew, Staff};
use crate::engine::{self, Door, Ended};
use crate::grant::{Grant, moved};
use crate::held::{About, Source, Value};
use crate::holding::{Holding, Seat};
use crate::names::{NameIndex, Renaming};
use crate::record::{Durability, Event, Kind, Log, Sink, is_held, tag};
use crate::session::{Message, input};
use crate::sources::stands;
use crate::written::Written;

/// Bytes that the held values of one task may take together, where a board has
/// no reason for less.
pub const HELD_BYTES: usize = 64 << 20;

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// What waits in channels and reports has this part of that.
const QUEUED: usize = 4;

/// Refusals for a spent budget before the turn is ended.
const OVERDRAFT: u32 = 100;

/// The log of a run, shared by its tasks.
pub type SharedLog<S> = Arc<Mutex<Log<S>>>;

/// One crossing of the door, told to whoever watches once it is over.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'a> {
    /// The number of its decision record.
    pub record: u64,
    /// Which primitive, if the sentence was one.
    pub primitive: Option<Primitive>,
    /// Its first target as the sentence says it, or nothing.
    pub target: &'a str,
    /// 0, or the code that the guest got.
    pub code: u16,
    /// Bytes of the reply's payload.
    pub bytes: usize,
    /// How far the mark has risen.
    pub mark: Integrity,
    /// Whether the reply is held.
    pub held: bool,
    /// Whether it asked for a warrant, not for the call itself.
    pub warrant: bool,
}

/// Told of every crossing.
pub type Watch = Arc<dyn Fn(&Crossing<'_>) + Send + Sync>;

/// The authority of one agent.
pub struct Task<P, S> {
    id: u64,
    mark: Mark,
    holding: Holding<P, S>,
    grant: Arc<Grant>,
    overdrawn: u32,
    stores: Stores<P>,
    warrants: Warrants,
    lines: Vec<String>,
    log: SharedLog<S>,
    watch: Watch,
    cancel: Arc<AtomicBool>,
    asker: Asker,
}

impl<P, S> core::fmt::Debug for Task<P, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id)
            .field("mark", &self.mark)
            .finish_non_exhaustive()
    }
}

/// What a task is made of.
pub struct Parts<P, S> {
    /// The number of its run's log.
    pub run: [u8; 32],
    /// Its number in the run.
    pub id: u64,
    /// What its memory holds when it starts.
    pub mark: Label,
    /// The lines that the human typed, for warrants; a child has none.
    pub lines: Vec<String>,
    /// What it may do.
    pub grant: Arc<Grant>,
    /// Bytes that the board's journal can take.
    pub journal_room: u64,
    /// Bytes that its held values may take together.
    pub held_room: usize,
    /// The board's devices.
    pub platform: Arc<P>,
    /// The run's log.
    pub log: SharedLog<S>,
    /// Who is told of every crossing.
    pub watch: Watch,
    /// Set by the board to end the turn.
    pub cancel: Arc<AtomicBool>,
}

impl<P, S> core::fmt::Debug for Parts<P, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Parts").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<P: Platform + 'static, S: Sink + 'static> Task<P, S> {
    /// Starts a task.
    #[must_use]
    pub fn new(parts: Parts<P, S>) -> Self {
        let Parts { run, id, mark, lines, grant, journal_room, held_room, .. } = parts;
        let crew = Crew::new(
            (run, id),
            (parts.platform, parts.log),
            (parts.watch, parts.cancel),
            (journal_room, Pantry::new(held_room / QUEUED)),
        );
        let seat = Seat {
            task: id,
            depth: 0,
            calls: Arc::new(AtomicU64::new(grant.calls)),
            grant,
            held_room,
            risen: Risen::new(mark),
            post: None,
            warrants: Warrants::NONE,
            is_over: Arc::default(),
        };
        Self { lines, ..Self::seated(Arc::new(crew), mark, seat) }
    }

    /// A task at its place in a crew.
    pub(crate) fn seated(crew: Arc<Crew<P, S>>, mark: Label, mut seat: Seat) -> Self {
        Self {
            id: seat.task,
            mark: Mark::new(mark),
            grant: Arc::clone(&seat.grant),
            overdrawn: 0,
            stores: Stores {
                values: Vec::new(),
                bytes: 0,
                held_room: seat.held_room,
                journal_room: Arc::clone(&crew.journal_room),
                names: NameIndex::default(),
                creator: Creator { run: crew.run, task: seat.task },
                platform: Arc::clone(&crew.platform),
                grant: Arc::clone(&seat.grant),
                calls: Arc::clone(&seat.calls),
                now: AtomicU64::new(0),
            },
            warrants: mem::take(&mut seat.warrants),
            lines: Vec::new(),
            log: Arc::clone(&crew.log),
            watch: Arc::clone(&crew.watch),
            cancel: Arc::clone(&crew.cancel),
            asker: Asker::default(),
            holding: Holding::new(seat.grant.granted, crew, seat),
        }
    }

    /// Lets it have children, of what a board knows by names. It is for a run's own
    /// task that has called nothing yet.
    #[must_use]
    pub fn staffed(mut self, staff: Staff<P, S>) -> Self {
        if let Some(crew) = Arc::get_mut(&mut self.holding.crew) {
            crew.staff = Some(staff);
        }
        self
    }

    /// The tasks that it goes on beside.
    pub(crate) fn crew(&self) -> Arc<Crew<P, S>> {
        Arc::clone(&self.holding.crew)
    }

    /// Closes all that it holds.
    pub(crate) fn let_go(&mut self) {
        self.holding.clear();
    }

    /// What a turn of it starts with.
    pub(crate) fn input(
        &mut self,
        texts: &[String],
        messages: &[Message],
        warrants: &[String],
    ) -> String {
        self.holding.collect();
        let handles = self.holding.listed();
        let bounds = (&*self.grant, self.calls_left());
        input(texts, messages, &self.stores.values, handles, warrants, bounds)
    }

    /// Keeps what a parent says, where it may not stand in the clear; its number.
    pub(crate) fn keep_task(&mut self, task: Labelled<Vec<u8>>, record: u64) -> Result<u64, Fault> {
        let digest = Sha256::digest(task.value()).into();
        let about = About { primitive: None, record, source: None, room: task.value().len() };
        self.stores.keep(Value::new(task.map(Label::SYSTEM, Ok), digest, about))
    }

    /// Asks this human about what only they can allow; by default nobody is
    /// asked, and it is refused.
    #[must_use]
    pub fn confirmed_by(mut self, human: Arc<dyn Confirm>) -> Self {
        self.asker.human = Some(human);
        self
    }

    /// Goes on with the held values of a session.
    #[must_use]
    pub fn carrying(mut self, values: Vec<Value>) -> Self {
        let rooms = values.iter().map(|value| value.about().room);
        self.stores.bytes = rooms.fold(0, usize::saturating_add);
        self.stores.values = values;
        self
    }

    /// The held values, by their numbers from 1.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.stores.values
    }

    /// Calls that are left.
    #[must_use]
    pub fn calls_left(&self) -> u64 {
        self.stores.calls.load(Ordering::Relaxed)
    }

    /// Begins another turn, from a line that the human typed, with the label of all
    /// that its input shows. The memory that saw more is gone.
    pub fn next_turn(&mut self, line: String, mark: Label) {
        // What a retry might have had goes to no other turn.
        self.warrants.end_turn(TurnEnd::Final);
        self.lines.push(line);
        self.mark = Mark::new(mark);
        self.holding.seat.risen.rise(mark);
        self.stores.calls.store(self.grant.calls, Ordering::Relaxed);
        self.overdrawn = 0;
        self.asker.next_turn();
    }

    /// Mints the warrants that the human wrote, and tells of each; the sentences of those
    /// that were minted. They take no call of the budget.
    ///
    /// # Errors
    /// The log takes no records.
    pub(crate) fn endow(&mut self, written: &Written) -> Result<Vec<String>, SinkFailed> {
        let mut minted = Vec::new();
        for (sentence, lines) in written.asked() {
            let request = Request {
                task: self.id,
                mark: &self.mark,
                table: &self.holding.table,
                scope: &self.grant.scope,
                calls_left: self.calls_left(),
                warrants: &self.warrants,
                lines: &lines,
            };
            self.stores.tick();
            let verdict = match decide(request, &self.stores, sentence.as_bytes()) {
                Decided::Final(verdict) => verdict,
                Decided::Ask(_) => continue,
            };
            let seen = Seen::of(&verdict, sentence.as_bytes());
            let now = self.stores.now();
            let log = &mut *self.log.lock();
            let (record, code) = match commit(verdict, log, &mut self.warrants, &self.stores, now)?
            {
                Opened::Minted(record) => {
                    minted.push(sentence.to_owned());
                    (record, 0)
                }
                Opened::Refused(refused) => {
                    self.mark.absorb(refused.label);
                    (refused.record, refused.refusal.number())
                }
                // What is no warrant is not in the file; it is not done.
                Opened::Permitted(authorized) => (authorized.record(), Fault::Unsupported.number()),
            };
            self.tell(&seen, record, code, 0, false);
        }
        Ok(minted)
    }

    /// Keeps what its guest answered; its number.
    ///
    /// # Errors
    /// `NoRoom`.
    pub(crate) fn keep_answer(
        &mut self,
        answer: Labelled<Vec<u8>>,
        record: u64,
    ) -> Result<u64, Fault> {
        let digest = Sha256::digest(answer.value()).into();
        let about = About { primitive: None, record, source: None, room: ANSWER };
        self.stores.keep(Value::new(answer.map(Label::SYSTEM, Ok), digest, about))
    }

    /// The lines that it may cite.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Says which names there are in its folders.
    pub fn know(&mut self, names: NameIndex) {
        self.stores.names = names;
    }

    /// Which names it knows of.
    #[must_use]
    pub const fn names(&self) -> &NameIndex {
        &self.stores.names
    }

    /// How far its mark has risen.
    #[must_use]
    pub const fn mark(&self) -> Label {
        self.mark.label()
    }

    /// Ends a turn, and with it every warrant. One that broke may be tried again, with
    /// what it did not spend.
    pub fn end_turn(&mut self, answer: Result<(), Ended>) {
        self.holding.end_turn();
        let untainted = self.mark.label().integrity != Integrity::Ingested;
        self.warrants.end_turn(match answer {
            Err(_) if untainted => TurnEnd::Retried,
            Ok(()) | Err(_) => TurnEnd::Final,
        });
    }

    async fn cross(&mut self, sentence: &[u8]) -> Result<engine::Reply, u16> {
        self.holding.collect();
        if self.holding.seat.is_over.load(Ordering::Relaxed) {
            self.warrants.end_turn(TurnEnd::Final);
        }
        let calls_left = self.calls_left();
        let request = Request {
            task: self.id,
            mark: &self.mark,
            table: &self.holding.table,
            scope: &self.grant.scope,
            calls_left,
            warrants: &self.warrants,
            lines: &self.lines,
        };
        self.stores.tick();
        let (verdict, learned) = match decide(request, &self.stores, sentence) {
            Decided::Final(verdict) => (verdict, Label::SYSTEM),
            Decided::Ask(question) => {
                let (platform, log, facts) = (&*self.stores.platform, &self.log, &self.stores);
                let tick = &|| self.stores.tick();
                let scene = Scene { platform, log, facts, tick, request, sentence };
                let asked = self.asker.ask(question, &scene).await;
                asked.map_err(|SinkFailed| Fault::NoRecord.number())?
            }
        };
        let seen = Seen::of(&verdict, sentence);
        if calls_left == 0 {
            self.overdrawn = self.overdrawn.saturating_add(1);
        }
        self.stores.calls.store(calls_left.saturating_sub(1), Ordering::Relaxed);
        // What is granted before anything else was asked stands in a child's input.
        if seen.primitive != Some(Primitive::ChannelGrant) {
            self.holding.begin();
        }
        let now = self.stores.now();
        // The lock is free again before anything else is recorded.
        let opened = commit(verdict, &mut *self.log.lock(), &mut self.warrants, &self.stores, now);
        let authorized = match opened {
            Ok(Opened::Permitted(authorized)) => authorized,
            Ok(Opened::Minted(record)) => {
                self.tell(&seen, record, 0, 0, false);
                return Ok(self.frame(Form::Nothing, &[]));
            }
            Ok(Opened::Refused(refused)) => {
                self.mark.absorb(refused.label.join(learned));
                self.tell(&seen, refused.record, refused.refusal.number(), 0, false);
                return Err(refused.refusal.number());
            }
            Err(_) => return Err(Fault::NoRecord.number()),
        };
        let (record, primitive) = (authorized.record(), authorized.call().primitive());
        let hold = is_held(authorized.call());
        let (room, renaming) = (charge(authorized.call()), Renaming::of(&authorized));
        let source = hold.then(|| Source::of(&authorized)).flatten();
        let (creator, compartments) = (self.stores.creator, &*self.grant.compartments);
        let caller = Caller { creator, compartments };
        let (stores, hands) = (&self.stores, &mut self.holding);
        let executed = execute(authorized, &*stores.platform, stores, caller, hands).await;
        self.mark.absorb(learned);
        let digest = hold.then(|| digest(&executed));
        self.outcome(record, primitive, digest, &executed)?;
        if let Ok(done) = executed.value() {
            let less = |room: u64| Some(room.saturating_sub(done.displaced));
            let room = &self.stores.journal_room;
            // There is always something, so that it cannot fail.
            let _ = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            if let Some(renaming) = renaming {
                self.stores.names.apply(renaming);
            }
        }
        if let Some(digest) = digest {
            let label = executed.label();
            let kept = executed.map(Label::SYSTEM, |result| result.map(|done| done.payload));
            let about = About { primitive: Some(primitive), record, source, room };
            let number = match self.stores.keep(Value::new(kept, digest, about)) {
                Ok(number) => number,
                Err(fault) => {
                    self.mark.absorb(label);
                    self.tell(&seen, record, fault.number(), 0, false);
                    return Err(fault.number());
                }
            };
            self.tell(&seen, record, 0, 0, true);
            return Ok(self.frame(Form::Held, &number.to_le_bytes()));
        }
        match executed.release(&mut self.mark) {
            Ok(done) => {
                self.tell(&seen, record, 0, done.payload.len(), false);
                Ok(self.frame(done.form, &done.payload))
            }
            Err(fault) => {
                self.tell(&seen, record, fault.number(), 0, false);
                Err(fault.number())
            }
        }
    }

    fn frame(&self, form: Form, payload: &[u8]) -> engine::Reply {
        let header = frame::header(form, self.mark.label().integrity);
        let mut bytes = Vec::with_capacity(header.len().saturating_add(payload.len()));
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(payload);
        engine::Reply::new(bytes)
    }

    fn outcome(
        &self,
        record: u64,
        primitive: Primitive,
        held: Option<[u8; 32]>,
        executed: &Executed,
    ) -> Result<(), u16> {
        let row = primitive.row();
        let due = row.harm == Harm::Destructive || row.egress != Egress::Never;
        let length = u64::try_from(payload(executed).len()).unwrap_or(u64::MAX);
        let mut tail = Vec::with_capacity(40);
        tail.extend_from_slice(&length.to_le_bytes());
        if let Some(digest) = held.or_else(|| due.then(|| digest(executed))) {
            tail.extend_from_slice(&digest);
        }
        let event = Event {
            kind: Kind::Outcome,
            task: self.id,
            primitive: Some(primitive),
            code: executed.value().as_ref().err().map_or(0, |fault| fault.number()),
            label: executed.label(),
            cause: Some(record),
            tail: Some((tag::OUTCOME, &tail)),
            durability: Durability::Soon,
        };
        let noted = self.log.lock().note(&event, self.stores.platform.now_ms());
        noted.map(|_| ()).map_err(|_| Fault::Unrecorded.number())
    }

    fn tell(&self, seen: &Seen<'_>, record: u64, code: u16, bytes: usize, held: bool) {
        (self.watch)(&Crossing {
            record,
            primitive: seen.primitive,
            target: seen.target,
            code,
            bytes,
            mark: self.mark.label().integrity,
            held,
            warrant: seen.warrant,
        });
    }
}

impl<P: Platform + 'static, S: Sink + 'static> Door for Task<P, S> {
    async fn submit(&mut self, sentence: &[u8]) -> Result<engine::Reply, u32> {
        let answer = self.cross(sentence).await;
        self.holding.seat.risen.rise(self.mark.label());
        answer.map_err(u32::from)
    }

    fn cancelled(&self) -> bool {
        self.overdrawn > OVERDRAFT || self.asker.is_over() || self.cancel.load(Ordering::Relaxed)
    }
}

/// What a watcher is told of a sentence.
struct Seen<'s> {
    primitive: Option<Primitive>,
    target: &'s str,
    warrant: bool,
}

impl<'s> Seen<'s> {
    fn of(verdict: &Verdict<'_>, raw: &'s [u8]) -> Self {
        let primitive = verdict.primitive();
        let target = match (verdict.call(), primitive) {
            (Some(call), _) => {
                let named = matches!(call.argument(0), Argument::Text(_));
                raw.get(call.range(0)).filter(|_| named)
            }
            (None, Some(primitive)) => {
                let first = primitive.row().arguments.first();
                let sentence = str::from_utf8(raw).ok();
                sentence.and_then(|raw| Some(stands(raw, first?.name)?.as_bytes()))
            }
            (None, None) => None,
        };
        let target = target.and_then(|target| str::from_utf8(target).ok()).unwrap_or_default();
        let warrant = verdict.call().is_none() && primitive.is_some();
        Self { primitive, target: target.trim_matches('"'), warrant }
    }
}

/// A task's held values, its part of the journal, and what it made.
struct Stores<P> {
    values: Vec<Value>,
    bytes: usize,
    held_room: usize,
    journal_room: Arc<AtomicU64>,
    names: NameIndex,
    creator: Creator,
    platform: Arc<P>,
    grant: Arc<Grant>,
    /// Calls that are left.
    calls: Arc<AtomicU64>,
    /// The clock that the decision at hand goes by: it stands still for one decision,
    /// and is the time of its record.
    now: AtomicU64,
}

impl<P: Platform> Stores<P> {
    /// Sets the clock of a decision.
    fn tick(&self) {
        self.now.store(self.platform.now_ms(), Ordering::Relaxed);
    }
}

impl<P> Stores<P> {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Keeps a value, and charges its room; its number.
    fn keep(&mut self, value: Value) -> Result<u64, Fault> {
        let total = self.bytes.saturating_add(value.about().room);
        if total > self.held_room {
            return Err(Fault::NoRoom);
        }
        self.bytes = total;
        self.values.push(value);
        u64::try_from(self.values.len()).map_err(|_| Fault::NoRoom)
    }
}

/// The bytes of a reply; none of a fault.
fn payload(executed: &Executed) -> &[u8] {
    executed.value().as_ref().map_or(&[], |done| &done.payload)
}

fn digest(executed: &Executed) -> [u8; 32] {
    Sha256::digest(payload(executed)).into()
}

/// Bytes that a held reply is charged: what the sentence asks for, so that the
/// room that is left tells nothing of what came.
fn charge(call: &Call<'_>) -> usize {
    let asked = match (call.primitive(), call.argument(2)) {
        (Primitive::FsRead | Primitive::ValueRead, Argument::Uint(length)) => {
            usize::try_from(length).unwrap_or(usize::MAX)
        }
        _ => match frame::form(call.primitive()) {
            Form::Nothing | Form::Handle => 0,
            Form::Bytes | Form::Json | Form::Held => usize::MAX,
        },
    };
    asked.min(most(call))
}

impl<P> Names for Stores<P> {
    fn exists(&self, path: &str) -> bool {
        self.names.exists(path)
    }

    fn bearer(&self, name: &str) -> Bearer<'_> {
        self.names.bearer(name)
    }

    fn mounts(&self) -> &[(String, String)] {
        self.names.mounts()
    }
}

impl<P: Platform> Facts for Stores<P> {
    fn held(&self, number: u64) -> Option<Held<'_>> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Some(self.values.get(index)?.held())
    }

    fn journal_room(&self) -> u64 {
        self.journal_room.load(Ordering::Relaxed)
    }

    fn attenuates(&self, grant: &str) -> Result<(), Refusal> {
        // The call itself is one of those that are left.
        let left = self.calls.load(Ordering::Relaxed).saturating_sub(1);
        let child = self.grant.child(grant, left, None)?;
        let has_use = moved(grant).iter().all(|warrant| child.has_use_of(warrant));
        if has_use { Ok(()) } else { Err(Refusal::OutOfScope) }
    }

    fn is_own_creation(&self, path: &NormalPath<'_>) -> bool {
        self.platform.is_own(path.as_str(), self.creator)
    }

    fn serves(&self, secret: &str, url: &Url<'_>) -> bool {
        self.platform.serves(secret, url)
    }

    fn today(&self) -> Option<i64> {
        i64::try_from(self.now() / DAY_MS).ok()
    }
}
