//! Records as bytes: one frame each, chained, appended to a sink.
//!
//! The boundary says what a decision's record has to tell and waits for it; how
//! it is written is here, beside the records that decide nothing. The format is
//! `docs/abi.md`, "Record".
//!
//! # Invariants
//! - I3: one frame for each record, in order; after the first that the sink did
//!   not take there are no more.
//!
//! # Not here
//! When a decision is recorded (`synapse-boundary`). Where frames are kept (the
//! board's sink). Reading a log back (`verify`).

use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use synapse_abi::code::Refusal;
use synapse_abi::limits::SENTENCE;
use synapse_abi::registry::{Egress, Harm, Primitive, Role};
use synapse_boundary::gates::Question;
pub use synapse_boundary::record::SinkFailed;
use synapse_boundary::secret::blanks;
use synapse_boundary::sentence::{Argument, Call};
use synapse_boundary::target::Target;
use synapse_boundary::{Entry, Facts, Integrity, Label, Origin, Recorder, Said, Secrecy};
use synapse_reply::code;
use synapse_reply::frame::{Form, form};

/// Version of the format.
pub const VERSION: u8 = 1;
/// Content arguments up to this many bytes stand in the record as they are;
/// longer ones are replaced by their length and digest.
pub const CONTENT: usize = 64;
/// Bytes of one record frame, chain included.
pub const RECORD: usize = 64 << 10;
/// Bytes of a log's header: magic, version, run id.
pub const HEADER: usize = 48;
/// Bytes of a record's head.
pub const HEAD: usize = 48;
/// Bytes of a chain value.
pub const CHAIN: usize = 32;
/// How a log begins.
pub const MAGIC: [u8; 12] = *b"SYNAPSE-LOG\0";
/// The bit of a head's class that tells a warrant from a call.
pub const WARRANT: u8 = 8;
/// What `cause` says when there is none, and `primitive` in a byte.
pub const NONE: u64 = u64::MAX;

synapse_abi::numbered! {
    /// What a record is about.
    pub enum Kind: u8 {
        /// One attempt: permitted or refused.
        Decision = 1,
        /// What an executed call came to.
        Outcome = 2,
        /// A task began.
        TaskStart = 3,
        /// A turn began.
        TurnStart = 4,
        /// A turn ended.
        TurnEnd = 5,
        /// The human answered a question.
        Answer = 6,
        /// The run ended as it should.
        RunEnd = 7,
    }
}

/// Tags of a tail's fields.
pub mod tag {
    /// The sentence, long contents cut.
    pub const SENTENCE: u8 = 1;
    /// Normal targets, where they differ from what the sentence says.
    pub const TARGET: u8 = 2;
    /// Number and digest of each held value that was resolved.
    pub const HELD: u8 = 3;
    /// Records that explain the label.
    pub const ORIGINS: u8 = 4;
    /// Length, digest and first bytes of what is no sentence.
    pub const MALFORMED: u8 = 5;
    /// Reply length and, where due, digest.
    pub const OUTCOME: u8 = 6;
    /// JSON text of a start record.
    pub const TEXT: u8 = 7;
    /// Digest of the sentence that was asked about, what was said, and where.
    pub const ANSWER: u8 = 8;
}

/// When a record must be on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Within 100 ms and at the end of the turn.
    Soon,
    /// Handed to the operating system before the append returns.
    Written,
    /// On the disk before the append returns.
    Synced,
}

/// Where frames go: a port of the board. An append that returns `Ok` has met
/// the durability it was asked for.
pub trait Sink: Send {
    /// Appends one frame.
    ///
    /// # Errors
    /// [`SinkFailed`]; the run can write no more records.
    fn append(&mut self, frame: &[u8], durability: Durability) -> Result<(), SinkFailed>;
}

/// A sink in memory, for runs that nobody looks up later.
#[derive(Debug, Default)]
pub struct Tape(pub Vec<u8>);

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.0.extend_from_slice(frame);
        Ok(())
    }
}

/// The one log of a run.
#[derive(Debug)]
pub struct Log<S> {
    sink: S,
    chain: [u8; CHAIN],
    next: u64,
    failed: bool,
    frame: Vec<u8>,
}

/// Head fields of a record, and the tail of one that is no decision.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What it is about.
    pub kind: Kind,
    /// The task's number.
    pub task: u64,
    /// Which primitive, for an outcome.
    pub primitive: Option<Primitive>,
    /// A fault's or the guest's code; 0 for none.
    pub code: u16,
    /// The label of what it is about.
    pub label: Label,
    /// The record that it answers.
    pub cause: Option<u64>,
    /// Its one tail field.
    pub tail: Option<(u8, &'a [u8])>,
    /// When it must be on disk.
    pub durability: Durability,
}

impl<S: Sink> Log<S> {
    /// Begins a log: the sink's first bytes are the header.
    ///
    /// # Errors
    /// The sink took nothing.
    pub fn begin(mut sink: S, run: [u8; 32]) -> Result<Self, SinkFailed> {
        let header = header(run);
        sink.append(&header, Durability::Written)?;
        let chain = Sha256::digest(header).into();
        Ok(Self { sink, chain, next: 0, failed: false, frame: Vec::new() })
    }

    /// The number of the next record.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The sink, to ask it what it alone knows.
    pub const fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Writes a record that decides nothing: a start, an end, an outcome.
    ///
    /// # Errors
    /// The sink failed.
    pub fn note(&mut self, event: &Event<'_>, now: u64) -> Result<u64, SinkFailed> {
        let mut frame = self.head(event, Asked::Nothing, now);
        if let Some((tag, bytes)) = event.tail {
            field(&mut frame, tag, |out| out.extend_from_slice(bytes));
        }
        self.seal(frame, event.durability)
    }

    /// What the next chain value is of: the last one, and the head.
    fn head(&mut self, event: &Event<'_>, asked: Asked, now: u64) -> Vec<u8> {
        // A warrant has no effect, so it is of no class that has.
        let row = event.primitive.filter(|_| asked != Asked::Warrant).map(Primitive::row);
        let destructive = row.is_some_and(|row| row.harm == Harm::Destructive);
        let egress = row.is_some_and(|row| row.egress != Egress::Never);
        let class = u8::from(destructive) | u8::from(egress) << 1 | asked.bit();
        let mut frame = core::mem::take(&mut self.frame);
        frame.clear();
        frame.extend_from_slice(&self.chain);
        let [low, high] = event.code.to_le_bytes();
        frame.extend_from_slice(&[
            VERSION,
            event.kind.number(),
            event.primitive.map_or(u8::MAX, Primitive::id),
            code::gate(event.code).unwrap_or(0),
            low,
            high,
            event.label.integrity.number(),
            class,
        ]);
        let (secrecy, cause) = (event.label.secrecy.bits(), event.cause.unwrap_or(NONE));
        let numbers = [self.next, now, event.task, secrecy, cause].map(u64::to_le_bytes);
        frame.extend_from_slice(numbers.as_flattened());
        frame
    }

    fn seal(&mut self, mut frame: Vec<u8>, durability: Durability) -> Result<u64, SinkFailed> {
        let chain: [u8; CHAIN] = Sha256::digest(&frame).into();
        let body = frame.get(CHAIN..).unwrap_or_default();
        let length = u32::try_from(body.len()).map_err(|_| SinkFailed)?.to_le_bytes();
        frame.extend_from_slice(&chain);
        // The frame begins with its length, in place of the end of the last chain value.
        let start = CHAIN.saturating_sub(length.len());
        let whole = frame.get_mut(start..).unwrap_or_default();
        whole.iter_mut().zip(length).for_each(|(slot, byte)| *slot = byte);
        let after = self.next.checked_add(1).ok_or(SinkFailed)?;
        if self.failed || whole.len() > RECORD || self.sink.append(whole, durability).is_err() {
            self.failed = true;
            return Err(SinkFailed);
        }
        let record = core::mem::replace(&mut self.next, after);
        self.chain = chain;
        self.frame = frame;
        Ok(record)
    }
}

impl<S: Sink> Recorder for Log<S> {
    fn record(
        &mut self,
        entry: &Entry<'_>,
        facts: &impl Facts,
        now: u64,
    ) -> Result<u64, SinkFailed> {
        let asked = match (entry.call, entry.primitive) {
            (Some(call), _) if is_held(call) => Asked::Held,
            (Some(_), _) | (None, None) => Asked::Nothing,
            (None, Some(_)) => Asked::Warrant,
        };
        let row = entry.call.map(|call| call.primitive().row());
        let durability = match (entry.refusal, row) {
            (None, Some(row)) if row.harm == Harm::Destructive => Durability::Synced,
            // A request that carries a secret counts as destructive.
            (None, Some(_)) if entry.call.is_some_and(carries) => Durability::Synced,
            (None, Some(row)) if row.egress != Egress::Never => Durability::Written,
            _ => Durability::Soon,
        };
        let event = Event {
            kind: Kind::Decision,
            task: entry.task,
            primitive: entry.primitive,
            code: entry.refusal.map_or(0, Refusal::number),
            label: entry.justification,
            cause: entry.cause,
            tail: None,
            durability,
        };
        let mut frame = self.head(&event, asked, now);
        decision_tail(&mut frame, entry, facts);
        self.seal(frame, durability)
    }

    fn answered(
        &mut self,
        question: &Question<'_>,
        (said, console): (Said, &str),
        now: u64,
    ) -> Result<u64, SinkFailed> {
        let call = question.call();
        let mut tail = Sha256::digest(call.map_or("", |call| call.raw())).to_vec();
        tail.push(said.number());
        tail.extend_from_slice(console.as_bytes());
        let event = Event {
            kind: Kind::Answer,
            task: question.task(),
            primitive: call.map(Call::primitive),
            code: 0,
            label: Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE),
            cause: None,
            tail: Some((tag::ANSWER, &tail)),
            durability: Durability::Written,
        };
        self.note(&event, now)
    }
}

/// Whether a GET carries a secret.
fn carries(call: &Call<'_>) -> bool {
    call.primitive() == Primitive::NetHttpGet && blanks(call).is_ok_and(|all| !all.is_empty())
}

/// Whether the reply of a call stays with the kernel.
pub(crate) fn is_held(call: &Call<'_>) -> bool {
    call.hold() || form(call.primitive()) == Form::Held
}

/// What a record tells of a sentence beside its primitive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Held,
    Warrant,
}

impl Asked {
    const fn bit(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Held => 4,
            Self::Warrant => WARRANT,
        }
    }
}

/// The first bytes of a log.
fn header(run: [u8; 32]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let version = u32::from(VERSION).to_le_bytes();
    let parts = MAGIC.iter().chain(&version).chain(&run);
    header.iter_mut().zip(parts).for_each(|(slot, byte)| *slot = *byte);
    header
}

fn field(frame: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    frame.extend_from_slice(&[tag, 0, 0, 0, 0]);
    let start = frame.len();
    write(frame);
    let length = u32::try_from(frame.len().saturating_sub(start)).unwrap_or(u32::MAX);
    let at = start.saturating_sub(4)..start;
    if let Some(slot) = frame.get_mut(at) {
        slot.copy_from_slice(&length.to_le_bytes());
    }
}

fn decision_tail(frame: &mut Vec<u8>, entry: &Entry<'_>, facts: &impl Facts) {
    match (entry.call, entry.primitive) {
        (Some(call), _) => call_tail(frame, call, entry.targets, facts),
        // A warrant has no content to cut.
        (None, Some(_)) => field(frame, tag::SENTENCE, |out| out.extend_from_slice(entry.raw)),
        (None, None) => field(frame, tag::MALFORMED, |out| malformed(out, entry.raw)),
    }
    if entry.justification.origin.records().next().is_some() {
        field(frame, tag::ORIGINS, |out| {
            for record in entry.justification.origin.records() {
                out.extend_from_slice(&record.to_le_bytes());
            }
        });
    }
}

fn malformed(out: &mut Vec<u8>, raw: &[u8]) {
    let length = u64::try_from(raw.len()).unwrap_or(u64::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&Sha256::digest(raw.get(..SENTENCE).unwrap_or(raw)));
    out.extend_from_slice(raw.get(..CONTENT).unwrap_or(raw));
}

fn call_tail(
    frame: &mut Vec<u8>,
    call: &Call<'_>,
    targets: [Option<&Target<'_>>; 2],
    facts: &impl Facts,
) {
    field(frame, tag::SENTENCE, |out| cut_sentence(out, call));
    let named = call.arguments().filter(|(argument, _)| argument.role == Role::Target);
    let differs = named.zip(targets).any(|((_, value), target)| {
        let target = target.and_then(Target::text);
        let literal = |target| matches!(value, Argument::Text(text) if text.raw() == target);
        target.is_some_and(|target| !literal(target))
    });
    if differs {
        field(frame, tag::TARGET, |out| {
            for (index, target) in
                targets.into_iter().flatten().filter_map(Target::text).enumerate()
            {
                if index > 0 {
                    out.push(0);
                }
                out.extend_from_slice(target.as_bytes());
            }
        });
    }
    if call.held().next().is_some() {
        field(frame, tag::HELD, |out| {
            for number in call.held() {
                if let Some(held) = facts.held(number) {
                    out.extend_from_slice(&number.to_le_bytes());
                    out.extend_from_slice(&held.digest);
                }
            }
        });
    }
}

/// The sentence with each long content replaced by its length and digest.
fn cut_sentence(out: &mut Vec<u8>, call: &Call<'_>) {
    let raw = call.raw();
    let mut from = 0usize;
    let arguments = call.primitive().row().arguments.iter().enumerate();
    for (index, _) in arguments.filter(|(_, argument)| argument.role == Role::Content) {
        let content = call.span(index);
        if content.len() <= CONTENT {
            continue;
        }
        let at = call.range(index);
        out.extend_from_slice(raw.as_bytes().get(from..at.start).unwrap_or_default());
        cut(out, content.as_bytes());
        from = at.end;
    }
    out.extend_from_slice(raw.as_bytes().get(from..).unwrap_or_default());
}

fn cut(out: &mut Vec<u8>, content: &[u8]) {
    use core::fmt::Write;
    let mut out = Bytes(out);
    // Writing to a vector cannot fail.
    let _ = write!(out, "{{\"$cut\":[{},\"", content.len());
    for byte in Sha256::digest(content) {
        let _ = write!(out, "{byte:02x}");
    }
    let _ = out.write_str("\"]}");
}

/// Writes text at the end of bytes.
struct Bytes<'a>(&'a mut Vec<u8>);

impl core::fmt::Write for Bytes<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
