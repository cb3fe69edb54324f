//! One run: a log, a task, its turns, and the records of their ends.
//!
//! Both boards run agents by this code, so that the same agent, grant and
//! world leave the same records, byte for byte.
//!
//! # Invariants
//! - I3: the task, its turns and their ends are in the log beside the decisions.
//! - I6: a turn starts from a line of the human's, with the mark of what its input
//!   may show; run again, it starts with the mark that it had.
//!
//! # Not here
//! Where an agent, its grant and its folders come from, and who is told (a board).

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{FromUtf8Error, String};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::sync::atomic::AtomicBool;
use core::time::Duration;

use spin::Mutex;
use synapse_abi::limits::SENTENCE;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_primitives::execute::escape;
use synapse_primitives::{Labelled, Platform, hex};
use synapse_reply::limits::ANSWER;

use crate::confirm::Confirm;
use crate::crew::Staff;
use crate::engine::{Ended, Engine, TurnLimits};
use crate::grant::{Grant, SUMMARY_MAX};
use crate::held::Value;
use crate::names::{ENTRIES, NameIndex, Sought};
use crate::record::{Durability, Event, Kind, Log, RECORD, Sink, SinkFailed, tag};
use crate::session::{Author, Message, Session, mark};
use crate::task::{Parts, SharedLog, Task, Watch};
use crate::written::Written;

/// What a run is made of.
pub struct Order<'a, P> {
    /// The log's number, never used twice; 32 random bytes.
    pub id: [u8; 32],
    /// The line of the first turn, which the human typed.
    pub task: &'a str,
    /// What it goes on with; a new session's is empty.
    pub session: Session,
    /// The package's own texts, which the human approved with it.
    pub texts: &'a [&'a str],
    /// What the agent may do.
    pub grant: Arc<Grant>,
    /// The approval that the grant is bounded by, where the agent came in a package.
    pub approval: Option<Approval>,
    /// What the board has room for.
    pub room: Room,
    /// The board's devices.
    pub platform: Arc<P>,
    /// Who is told of every crossing.
    pub watch: Watch,
    /// Set by the board to end the turn.
    pub cancel: Arc<AtomicBool>,
}

/// What a human agreed to once, for an agent and all that came with it.
///
/// Texts are of letters, digits and the marks of digests and versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The package's name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The digest of all its bytes.
    pub digest: String,
    /// The digest of the grant file that was agreed to.
    pub grant: String,
    /// When, in milliseconds since 1970.
    pub approved: u64,
}

impl<P> fmt::Debug for Order<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order").field("task", &self.task).finish_non_exhaustive()
    }
}

/// Bytes that a board has room for, whatever a grant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Of displaced files in the journal.
    pub journal: u64,
    /// Of a guest's memories.
    pub memory: usize,
    /// Of held values.
    pub held: usize,
}

/// A run that has begun: its task waits for a turn.
pub struct Run<P, S> {
    task: Task<P, S>,
    log: SharedLog<S>,
    platform: Arc<P>,
    texts: Vec<String>,
    messages: Vec<Message>,
    /// What the human typed, until its turn starts.
    line: Option<String>,
    turns: u32,
    limits: TurnLimits,
    grant: Arc<Grant>,
    /// What the human wrote beforehand, until its turn starts.
    written: Option<Written>,
    /// How its last turn ended, for the record of its own end.
    end: (u16, Option<String>),
}

impl<P, S> fmt::Debug for Run<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("task", &self.task).finish_non_exhaustive()
    }
}

impl<P: Platform + 'static, S: Sink + 'static> Run<P, S> {
    /// Begins the log and the task.
    ///
    /// # Errors
    /// The sink takes no records: nothing was run.
    pub fn begin(order: Order<'_, P>, sink: S) -> Result<Self, SinkFailed> {
        Self::begin_with(order, None, sink)
    }

    /// As [`Self::begin`], with warrants for its first turn that the human wrote.
    ///
    /// # Errors
    /// As there.
    pub fn begin_with(
        order: Order<'_, P>,
        written: Option<Written>,
        sink: S,
    ) -> Result<Self, SinkFailed> {
        let Order {
            id,
            task: line,
            session,
            texts,
            grant,
            approval,
            room,
            platform,
            watch,
            cancel,
        } = order;
        let mut log = Log::begin(sink, id)?;
        let from = session.from.as_deref();
        let about = about((Some(line), None), from, &grant, approval.as_ref(), written.as_ref());
        note(&mut log, &*platform, &Note::of(Kind::TaskStart, PROMPT).saying(&about))?;
        let log = Arc::new(Mutex::new(log));
        let limits = bounds(&grant, room.memory);
        let task = Task::new(Parts {
            run: id,
            id: 0,
            mark: PROMPT,
            // A line of the file has its place, and no words that an agent could cite.
            lines: vec![String::new(); written.as_ref().map_or(0, Written::len)],
            grant: Arc::clone(&grant),
            journal_room: room.journal,
            held_room: room.held,
            platform: Arc::clone(&platform),
            log: Arc::clone(&log),
            watch,
            cancel,
        });
        Ok(Self {
            task: task.carrying(session.values),
            log,
            platform,
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            messages: session.messages,
            line: Some(line.to_owned()),
            turns: 0,
            limits,
            grant,
            written,
            end: (0, None),
        })
    }

    /// As [`Task::confirmed_by`].
    #[must_use]
    pub fn confirmed_by(self, human: Arc<dyn Confirm>) -> Self {
        Self { task: self.task.confirmed_by(human), ..self }
    }

    /// As [`Task::staffed`].
    #[must_use]
    pub fn staffed(self, staff: Staff<P, S>) -> Self {
        Self { task: self.task.staffed(staff), ..self }
    }

    /// Gives the next turn its line, which the human typed.
    pub fn next(&mut self, line: &str) {
        self.line = Some(line.to_owned());
    }

    /// Runs a turn to its end: that of the line that was given, or without one the
    /// last turn again, with the mark that it had.
    pub async fn turn<E: Engine>(
        mut self,
        engine: &E,
        program: &E::Program,
    ) -> (Self, Result<Vec<u8>, NoAnswer>) {
        let Ok(input) = self.start().await else { return (self, Err(NoAnswer::Unrecorded)) };
        let held = self.task.values().len();
        let crew = self.task.crew();
        let turn = Box::pin(engine.turn(program, self.task, &input, self.limits));
        let (task, ended) = crew.beside(turn).await;
        self.task = task;
        let end = ended.as_ref().map(|_| ()).map_err(|ended| *ended);
        self.task.end_turn(end);
        self.end = ending(end);
        for number in (1..).take(self.task.values().len()).skip(held) {
            self.messages.push(Message::held(Author::World, number));
        }
        let Ok(end) = self.note_end(Kind::TurnEnd) else {
            return (self, Err(NoAnswer::Unrecorded));
        };
        if let Ok(answer) = &ended {
            self.join(answer, end);
        }
        (self, ended.map_err(NoAnswer::Ended))
    }

    /// What was said so far.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What is held, by numbers from 1.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        self.task.values()
    }

    /// Ends the log; the last turn's answer stands if the log took its end.
    #[must_use]
    pub fn end(mut self, answer: Result<Vec<u8>, NoAnswer>) -> Finished<S> {
        // Its children end before it does.
        self.task.let_go();
        let noted = self.note_end(Kind::RunEnd);
        let answer = noted.map_err(|_| NoAnswer::Unrecorded).and(answer);
        Finished { answer, log: self.log }
    }

    /// Records the start of a turn; its input.
    async fn start(&mut self) -> Result<Vec<u8>, SinkFailed> {
        let line = self.line.take();
        let text = match &line {
            // The start of the task has it already.
            Some(_) if self.turns == 0 => None,
            Some(line) => Some(format!("{{\"task\":\"{}\"}}", cut(line, LINE))),
            None => Some("{\"retry\":true}".to_owned()),
        };
        let label = match line {
            Some(_) => mark(&self.messages, PROMPT),
            None => self.task.mark(),
        };
        let start = Note { text: text.as_deref(), ..Note::of(Kind::TurnStart, label) };
        let start = note(&mut self.log.lock(), &*self.platform, &start)?;
        self.turns = self.turns.saturating_add(1);
        if let Some(line) = line {
            let typed = Label { origin: Origin::record(start), ..PROMPT };
            self.messages.extend(Message::clear(Author::Human, Labelled::new(line.clone(), typed)));
            self.task.next_turn(line, mark(&self.messages, typed));
        }
        let written = self.written.take();
        let words = written.iter().flat_map(Written::words);
        let sought = Sought::of(self.task.lines().iter().map(String::as_str).chain(words));
        let names = NameIndex::walk(&*self.platform, &self.grant.scope, &sought, ENTRIES).await;
        self.task.know(names);
        let warrants = written.map(|written| self.task.endow(&written)).transpose()?;
        let warrants = warrants.unwrap_or_default();
        Ok(self.task.input(&self.texts, &self.messages, &warrants).into_bytes())
    }

    /// Puts an answer into the session, with the mark that it was given under. One
    /// that there is no room for is not kept.
    fn join(&mut self, answer: &[u8], end: u64) {
        let mut copy = Vec::new();
        if copy.try_reserve_exact(answer.len()).is_err() {
            return;
        }
        copy.extend_from_slice(answer);
        let label = self.task.mark();
        let message = match String::from_utf8(copy) {
            Ok(text) if label.integrity != Integrity::Ingested => {
                Message::clear(Author::Agent, Labelled::new(text, label))
            }
            text => {
                let bytes = text.map_or_else(FromUtf8Error::into_bytes, String::into_bytes);
                self.hold(bytes, label, end)
            }
        };
        self.messages.extend(message);
    }

    fn hold(&mut self, answer: Vec<u8>, label: Label, end: u64) -> Option<Message> {
        let number = self.task.keep_answer(Labelled::new(answer, label), end).ok()?;
        Some(Message::held(Author::Agent, number))
    }

    fn note_end(&self, kind: Kind) -> Result<u64, SinkFailed> {
        let (code, text) = (self.end.0, self.end.1.as_deref());
        let end = Note { code, text, ..Note::of(kind, self.task.mark()) };
        note(&mut self.log.lock(), &*self.platform, &end)
    }
}

/// The label of what the human types.
const PROMPT: Label = Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE);

/// The code of an end where the guest answered with a code of its own.
const GAVE_UP: u16 = u16::MAX - 1;
/// The code of an end that the guest did not choose.
pub(crate) const BROKE: u16 = u16::MAX;

/// A run after its end.
#[derive(Debug)]
pub struct Finished<S> {
    /// The agent's answer, or why there is none.
    pub answer: Result<Vec<u8>, NoAnswer>,
    /// The run's log, which is complete.
    pub log: SharedLog<S>,
}

/// Why a turn has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The turn ended without one.
    Ended(Ended),
    /// The log took no more records.
    Unrecorded,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(ended) => ended.fmt(f),
            Self::Unrecorded => {
                f.write_str("the log took no more records; what ran before is recorded")
            }
        }
    }
}

impl Error for NoAnswer {}

/// A record of a task that decides nothing.
#[derive(Clone, Copy)]
pub(crate) struct Note<'a> {
    pub(crate) kind: Kind,
    pub(crate) task: u64,
    pub(crate) label: Label,
    pub(crate) cause: Option<u64>,
    pub(crate) code: u16,
    pub(crate) text: Option<&'a str>,
}

impl<'a> Note<'a> {
    /// One of the run's own task.
    pub(crate) const fn of(kind: Kind, label: Label) -> Self {
        Self { kind, task: 0, label, cause: None, code: 0, text: None }
    }

    pub(crate) const fn saying(self, text: &'a str) -> Self {
        Self { text: Some(text), ..self }
    }
}

pub(crate) fn note<S: Sink>(
    log: &mut Log<S>,
    platform: &impl Platform,
    note: &Note<'_>,
) -> Result<u64, SinkFailed> {
    let Note { kind, task, label, cause, code, text } = *note;
    let event = Event {
        kind,
        task,
        primitive: None,
        code,
        label,
        cause,
        tail: text.map(|text| (tag::TEXT, text.as_bytes())),
        durability: Durability::Written,
    };
    log.note(&event, platform.now_ms())
}

/// The bounds of a turn under a grant.
pub(crate) fn bounds(grant: &Grant, memory: usize) -> TurnLimits {
    TurnLimits {
        memory_bytes: grant.memory.min(memory),
        deadline: Duration::from_secs(grant.seconds),
        sentence_bytes: SENTENCE,
        answer_bytes: ANSWER,
        ..TurnLimits::default()
    }
}

/// How a turn ended, for the record of that. What a guest says of itself is no code
/// of the kernel's.
pub(crate) fn ending(end: Result<(), Ended>) -> (u16, Option<String>) {
    match end {
        Ok(()) => (0, None),
        Err(Ended::Code(number)) => (GAVE_UP, Some(format!("{{\"guest\":{number}}}"))),
        Err(_) => (BROKE, None),
    }
}

/// What the start record says of the task: its line, cut, its grant with what that is
/// bounded by, the run that it goes on from, of a child its parent and its package, and
/// the warrants that were written.
pub(crate) fn about(
    (line, parent): (Option<&str>, Option<(u64, &str)>),
    from: Option<&str>,
    grant: &Grant,
    approval: Option<&Approval>,
    written: Option<&Written>,
) -> String {
    let approval = approval.map(|Approval { package, version, digest, grant, approved }| {
        let texts =
            [("package", package), ("version", version), ("digest", digest), ("grant", grant)];
        let texts = texts.map(|(key, text)| format!("\"{key}\":\"{}\",", cut(text, NAME)));
        format!("\"approval\":{{{}\"approved\":{approved}}},", texts.concat())
    });
    let from = from.map(|from| format!("\"from\":\"{}\",", cut(from, NAME)));
    let parent = parent.map(|(task, package)| {
        format!(",\"package\":\"{}\",\"parent\":{task}", cut(package, NAME))
    });
    let line = line.map(|line| format!(",\"task\":\"{}\"", cut(line, LINE)));
    let written = written.map(|written| {
        let digest = hex(&written.digest);
        let (file, lines) = (cut(&written.file, FILE), written.len());
        format!(",\"warrants\":{{\"file\":\"{file}\",\"sha256\":\"{digest}\",\"lines\":{lines}}}")
    });
    let [approval, from, parent, line, written] =
        [approval, from, parent, line, written].map(Option::unwrap_or_default);
    format!("{{{approval}{from}\"grant\":{}{parent}{line}{written}}}", grant.summary())
}

/// So much of a line as a record keeps, escaped.
fn cut(line: &str, most: usize) -> String {
    let end = line.char_indices().nth(most).map_or(line.len(), |(end, _)| end);
    let mut escaped = String::new();
    escape(&mut escaped, line.get(..end).unwrap_or(line));
    escaped
}

/// Characters of a task line that the start record keeps.
const LINE: usize = 1000;
/// Characters that it keeps of a run's name, and of each text of an approval.
const NAME: usize = 72;
/// Characters that it keeps of the name of a file of warrants.
const FILE: usize = 200;

// A character takes six bytes at most, the record's own fields and keys less than 512. What
// has a parent goes on from no run, and has no file.
const _: () = assert!(SUMMARY_MAX + 6 * (LINE + FILE + 5 * NAME) + 512 <= RECORD);

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::about;
    use crate::grant::Grant;

    const GRANT: &str = "version = 1\nprimitives = [\"clock_read\"]\n[budget]\ncalls = 7\n";

    #[test]
    fn start_record_keeps_the_line_cut_and_the_run_before() {
        let grant = Grant::parse(GRANT).unwrap();
        let about = about((Some(&"é".repeat(2000)), None), Some("before"), &grant, None, None);
        assert!(about.starts_with("{\"from\":\"before\",\"grant\":{"));
        assert!(about.ends_with(&format!(",\"task\":\"{}\"}}", "é".repeat(1000))));
    }
}
