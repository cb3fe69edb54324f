//! `synapse audit`: a run's records, read back and checked
//!
//! Everything in a log was decided by this program, but much of its text was
//! written by others, so all of it passes the renderer.
//!
//! # Not here
//! The chain and the format (`synapse_kernel::verify`).

use core::fmt;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;
use synapse_host::{log, render};
use synapse_kernel::record::Kind;
use synapse_kernel::verify::{Broken, Reader, Record};
use synapse_kernel::words;
use synapse_primitives::hex;

use crate::output;

/// Reads a run's log.
#[derive(clap::Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print one line a record: number, time, task, kind, what, verdict, target.
    ///
    /// The chain is checked on the way; printing ends at the first record that
    /// is not as it was written.
    ///
    /// Exit codes: 0 printed, 1 unreadable or not as written, 2 the command
    /// line is wrong.
    Show {
        /// A log, a run's directory, or `latest`.
        run: PathBuf,
        /// Print one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Check that no record was altered, inserted, moved or left out.
    ///
    /// Exit codes: 0 as written and complete, 1 unreadable, not as written or
    /// without its end, 2 the command line is wrong.
    Verify {
        /// A log, a run's directory, or `latest`.
        run: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

impl Audit {
    /// Reads the log, and says what is in it or whether it is sound.
    pub(crate) fn run(self) -> Result<ExitCode, AuditError> {
        match self.action {
            Action::Show { run, json } => show(&Found::find(run)?, json),
            Action::Verify { run, json } => verify(&Found::find(run)?, json),
        }
    }
}

/// Why a log tells nothing.
#[derive(Debug)]
pub(crate) enum AuditError {
    /// There is no run to read.
    NoRuns { dir: PathBuf },
    /// The folder of runs cannot be found or listed.
    Runs { why: io::Error },
    /// The log cannot be read.
    Log { path: PathBuf, why: io::Error },
    /// The log is not as it was written.
    Broken { path: PathBuf, broken: Broken },
    /// The log tells of no such call.
    Untold { told: String },
    /// Standard output took nothing.
    Output { why: io::Error },
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRuns { dir } => write!(
                f,
                "there is no run to read: `{}` has none\nrun an agent first, or name a log",
                shown(dir)
            ),
            Self::Runs { why } => {
                write!(f, "the folder of runs could not be read: {why}\nname a log instead")
            }
            Self::Log { path, why } => write!(
                f,
                "the log `{}` could not be read: {why}\nname a log, a run's directory or `latest`",
                shown(path)
            ),
            Self::Broken { path, broken } => {
                let path = shown(path);
                match broken {
                    Broken::Header => write!(
                        f,
                        "`{path}` is no log of this version: its header is not one\n\
                         name a log that `synapse run` wrote, or use the version that wrote it"
                    ),
                    Broken::Record(number) => write!(
                        f,
                        "record {number} of `{path}` is not as it was written: its chain value \
                         does not follow from what stands before it\n\
                         trust the records before it and nothing from there on"
                    ),
                    Broken::Torn(number) => write!(
                        f,
                        "`{path}` ends inside record {number}: the rest was never written or was \
                         cut off\ntrust the records before it and nothing from there on"
                    ),
                }
            }
            Self::Untold { told } => f.write_str(told),
            // The caller tells nothing of a reader that has seen enough.
            Self::Output { why } => f.write_str(&output::told(why).unwrap_or_default()),
        }
    }
}

impl AuditError {
    /// Whether the reader of standard output left, which needs no message.
    pub(crate) fn is_reader_gone(&self) -> bool {
        matches!(self, Self::Output { why } if output::told(why).is_none())
    }
}

/// A log that was read.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

impl Found {
    /// Reads a log, a run's directory, or `latest`.
    pub(crate) fn find(run: PathBuf) -> Result<Self, AuditError> {
        let run = named(run)?;
        let path = if run.is_dir() { run.join(log::FILE) } else { run };
        match fs::read(&path) {
            Ok(bytes) => Ok(Self { path, bytes }),
            Err(why) => Err(AuditError::Log { path, why }),
        }
    }

    fn broken(&self, broken: Broken) -> AuditError {
        AuditError::Broken { path: self.path.clone(), broken }
    }
}

/// What a person calls a run, `latest` being the one that began last.
pub(crate) fn named(run: PathBuf) -> Result<PathBuf, AuditError> {
    if run == Path::new("latest") && !run.exists() { latest() } else { Ok(run) }
}

/// The directory of the run that began last. Names begin with the second; of
/// one second's runs, the log that was written last counts.
fn latest() -> Result<PathBuf, AuditError> {
    let dir = log::runs_dir().map_err(|why| AuditError::Runs { why })?;
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return Err(AuditError::NoRuns { dir });
        }
        Err(why) => return Err(AuditError::Runs { why }),
    };
    let mut last: Option<((Vec<u8>, SystemTime), PathBuf)> = None;
    for entry in entries {
        let path = entry.map_err(|why| AuditError::Runs { why })?.path();
        let Ok(written) = path.join(log::FILE).metadata().and_then(|log| log.modified()) else {
            continue;
        };
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let key = (name.get(..SECOND).unwrap_or(name).to_vec(), written);
        if last.as_ref().is_none_or(|(found, _)| *found < key) {
            last = Some((key, path));
        }
    }
    last.map(|(_, path)| path).ok_or(AuditError::NoRuns { dir })
}

fn show(found: &Found, json: bool) -> Result<ExitCode, AuditError> {
    for record in Reader::new(&found.bytes) {
        let record = record.map_err(|broken| found.broken(broken))?;
        let text = if json { output::json(&object(&record)) } else { words::record(&record) };
        output::say(&text).map_err(|why| AuditError::Output { why })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(found: &Found, json: bool) -> Result<ExitCode, AuditError> {
    let mut reader = Reader::new(&found.bytes);
    let mut records = 0_u64;
    let mut ended = false;
    let mut broken = None;
    for record in reader.by_ref() {
        match record {
            Ok(record) => {
                records += 1;
                ended = record.kind == Kind::RunEnd;
            }
            Err(what) => broken = Some(what),
        }
    }
    // By its full name: an iterator has another `chain`.
    let chain = hex(&Reader::chain(&reader));
    let sound = broken.is_none() && ended;
    if json {
        let (what, number) = match broken {
            None => (Value::Null, Value::Null),
            Some(Broken::Header) => ("header".into(), Value::Null),
            Some(Broken::Record(number)) => ("record".into(), number.into()),
            Some(Broken::Torn(number)) => ("torn".into(), number.into()),
        };
        let value = json!({
            "records": records, "chain": chain, "complete": sound,
            "broken": what, "at": number,
        });
        output::say(&output::json(&value)).map_err(|why| AuditError::Output { why })?;
    } else if let Some(broken) = broken {
        return Err(found.broken(broken));
    } else {
        let end = if ended { "complete" } else { "the run did not end: killed, or still running" };
        let counted = words::grouped(records);
        let plural = if records == 1 { "record" } else { "records" };
        output::say(&format!("{counted} {plural}, chain {chain}, {end}"))
            .map_err(|why| AuditError::Output { why })?;
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A record for a program.
pub(crate) fn object(record: &Record<'_>) -> Value {
    json!({
        "record": record.sequence,
        "time": record.time,
        "task": record.task,
        "kind": words::kind(record.kind),
        "primitive": record.primitive.map(|primitive| primitive.row().name),
        "gate": record.gate,
        "code": record.code,
        "name": words::code_name(record.code),
        "text": words::text(record).map(String::from_utf8_lossy),
        "integrity": integrity_name(record.integrity),
        "secrecy": format!("{:016x}", record.secrecy),
        "destructive": record.class & 1 != 0,
        "egress": record.class & 2 != 0,
        "held": record.class & 4 != 0,
        "cause": record.cause,
        "answer": words::answer(record).map(|(said, console)| json!({
            "said": words::said_word(said),
            "console": String::from_utf8_lossy(console),
        })),
    })
}

fn integrity_name(number: u8) -> &'static str {
    match number {
        0 => "system",
        1 => "user",
        _ => "ingested",
    }
}

/// A path of this machine, whose name may have been chosen by others.
pub(crate) fn shown(path: &Path) -> String {
    render::escape(path.as_os_str().as_encoded_bytes())
}

/// `YYYYMMDD-HHMMSS`.
const SECOND: usize = 15;
