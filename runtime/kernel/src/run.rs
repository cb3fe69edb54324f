//! One run: a log, a task, its turn, and the records of their ends.
//!
//! Both boards run agents by this code, so that the same agent, grant and
//! world leave the same records, byte for byte.
//!
//! # Invariants
//! - I3: the task, the turn and their ends are in the log beside the decisions.
//! - I6: the task line is the human's, and so is the mark that a turn starts with.
//!
//! # Not here
//! Where an agent, its grant and its folders come from, and who is told (a board).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt::{self, Write};
use core::sync::atomic::AtomicBool;
use core::time::Duration;

use spin::Mutex;
use synapse_abi::{limits, turn};
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_primitives::Platform;
use synapse_primitives::execute::escape;

use crate::engine::{Ended, Engine, TurnLimits};
use crate::grant::{Grant, SUMMARY_MAX};
use crate::record::{Durability, Event, Kind, Log, Sink, SinkFailed, tag};
use crate::task::{Parts, SharedLog, Task, Watch};

/// What a run is made of.
pub struct Order<'a, P> {
    /// The log's number, never used twice; 32 random bytes.
    pub id: [u8; 32],
    /// The line that the human typed.
    pub task: &'a str,
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

/// A run that has begun: its task waits for its turn.
pub struct Run<P, S> {
    task: Task<P, S>,
    log: SharedLog<S>,
    platform: Arc<P>,
    input: Vec<u8>,
    limits: TurnLimits,
}

impl<P, S> fmt::Debug for Run<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("task", &self.task).finish_non_exhaustive()
    }
}

impl<P: Platform + 'static, S: Sink + 'static> Run<P, S> {
    /// Begins the log, the task and the turn.
    ///
    /// # Errors
    /// The sink takes no records: nothing was run.
    pub fn begin(order: Order<'_, P>, sink: S) -> Result<Self, SinkFailed> {
        let Order { id, task: line, texts, grant, approval, room, platform, watch, cancel } = order;
        let mut log = Log::begin(sink, id)?;
        let prompt = Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE);
        let about = about(line, &grant, approval.as_ref());
        note(&mut log, &*platform, Kind::TaskStart, 0, prompt, Some(about.as_bytes()))?;
        let start = note(&mut log, &*platform, Kind::TurnStart, 0, prompt, None)?;
        let log = Arc::new(Mutex::new(log));
        let input = input(texts, line, &grant).into_bytes();
        let limits = TurnLimits {
            memory_bytes: grant.memory.min(room.memory),
            deadline: Duration::from_secs(grant.seconds),
            sentence_bytes: limits::SENTENCE,
            answer_bytes: limits::ANSWER,
            ..TurnLimits::default()
        };
        let task = Task::new(Parts {
            id: 0,
            mark: Label { origin: Origin::record(start), ..prompt },
            grant,
            journal_room: room.journal,
            held_room: room.held,
            platform: Arc::clone(&platform),
            log: Arc::clone(&log),
            watch,
            cancel,
        });
        Ok(Self { task, log, platform, input, limits })
    }

    /// Runs the turn to its end, and ends the log.
    pub async fn turn<E: Engine>(self, engine: &E, program: &E::Program) -> Finished<S> {
        let Self { task, log, platform, input, limits } = self;
        let (task, ended) = engine.turn(program, task, &input, limits).await;
        // What a guest says of itself is no code of the kernel's.
        let (code, said) = match ended {
            Ok(_) => (0, None),
            Err(Ended::Code(number)) => (GAVE_UP, Some(format!("{{\"guest\":{number}}}"))),
            Err(_) => (BROKE, None),
        };
        let said = said.as_deref().map(str::as_bytes);
        let mut answer = ended.map_err(NoAnswer::Ended);
        for kind in [Kind::TurnEnd, Kind::RunEnd] {
            if note(&mut log.lock(), &*platform, kind, code, task.mark(), said).is_err() {
                answer = Err(NoAnswer::Unrecorded);
            }
        }
        Finished { answer, log }
    }
}

/// The code of an end where the guest answered with a code of its own.
const GAVE_UP: u16 = u16::MAX - 1;
/// The code of an end that the guest did not choose.
const BROKE: u16 = u16::MAX;

/// A run after its end.
#[derive(Debug)]
pub struct Finished<S> {
    /// The agent's answer, or why there is none.
    pub answer: Result<Vec<u8>, NoAnswer>,
    /// The run's log, which is complete.
    pub log: SharedLog<S>,
}

/// Why a run has no answer.
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

fn note<S: Sink>(
    log: &mut Log<S>,
    platform: &impl Platform,
    kind: Kind,
    code: u16,
    label: Label,
    text: Option<&[u8]>,
) -> Result<u64, SinkFailed> {
    let event = Event {
        kind,
        task: 0,
        primitive: None,
        code,
        label,
        cause: None,
        tail: text.map(|text| (tag::TEXT, text)),
        durability: Durability::Written,
    };
    log.note(&event, platform.now_ms())
}

/// What the start record says of the task: its line, cut, its grant, and what that is
/// bounded by.
fn about(line: &str, grant: &Grant, approval: Option<&Approval>) -> String {
    let mut json = String::from("{");
    if let Some(Approval { package, version, digest, grant, approved }) = approval {
        json.push_str("\"approval\":{");
        let texts =
            [("package", package), ("version", version), ("digest", digest), ("grant", grant)];
        for (key, text) in texts {
            let _ = write!(json, "\"{key}\":\"");
            let cut = text.char_indices().nth(NAME).map_or(text.len(), |(end, _)| end);
            escape(&mut json, text.get(..cut).unwrap_or(text));
            json.push_str("\",");
        }
        let _ = write!(json, "\"approved\":{approved}}},");
    }
    json.push_str("\"grant\":");
    json.push_str(grant.summary());
    json.push_str(",\"task\":\"");
    let cut = line.char_indices().nth(LINE).map_or(line.len(), |(end, _)| end);
    escape(&mut json, line.get(..cut).unwrap_or(line));
    json.push_str("\"}");
    json
}

/// The turn's input, as `docs/abi.md` has it.
fn input(texts: &[&str], line: &str, grant: &Grant) -> String {
    let mut json = String::new();
    // Writing to a String cannot fail.
    let _ = write!(json, "{{\"v\":{},\"messages\":[", turn::VERSION);
    let package = texts.iter().map(|text| (turn::Author::Package, *text));
    for (author, text) in package.chain([(turn::Author::Human, line)]) {
        let comma = if json.ends_with('[') { "" } else { "," };
        let _ = write!(json, "{comma}{{\"from\":\"{}\",\"text\":\"", author.name());
        escape(&mut json, text);
        json.push_str("\"}");
    }
    let _ = write!(
        json,
        "],\"handles\":[],\"warrants\":[],\"grant\":{},\"budget\":{{\"calls\":{}}}}}",
        grant.summary(),
        grant.calls
    );
    json
}

/// Characters of a task line that the start record keeps.
const LINE: usize = 1000;

/// Characters of each text of an approval that it keeps.
const NAME: usize = 72;

// A character takes six bytes at most, the record's own fields and names less than 384.
const _: () = assert!(SUMMARY_MAX + 6 * (LINE + 4 * NAME) + 384 <= limits::RECORD);

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::{about, input};
    use crate::grant::Grant;

    const GRANT: &str = "version = 1\nprimitives = [\"clock_read\"]\n[budget]\ncalls = 7\n";

    #[test]
    fn input_is_what_the_abi_says() {
        let grant = Grant::parse(GRANT).unwrap();
        assert_eq!(
            input(&["be brief"], "say \"a\\b\"\n", &grant),
            "{\"v\":1,\"messages\":[{\"from\":\"package\",\"text\":\"be brief\"},{\"from\":\"human\",\"text\":\"say \\\"a\\\\b\\\"\\n\"}],\
             \"handles\":[],\"warrants\":[],\
             \"grant\":{\"primitives\":[\"clock_read\"],\"paths\":[],\"hosts\":[],\"tools\":[]},\"budget\":{\"calls\":7}}"
        );
    }

    #[test]
    fn start_record_keeps_the_line_cut() {
        let grant = Grant::parse(GRANT).unwrap();
        let about = about(&"é".repeat(2000), &grant, None);
        assert!(about.ends_with(&format!(",\"task\":\"{}\"}}", "é".repeat(1000))));
    }
}
