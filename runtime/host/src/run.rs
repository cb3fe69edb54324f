//! One run: an agent, a task line, folders, a grant, and a log of it all.
//!
//! The one place of the host that reaches for authority nobody handed it: the
//! folders, the agent and the grant that a person named on the command line.
//!
//! # Invariants
//! - I3: the task, the turn and their ends are in the log beside the decisions.
//! - I9: what the agent may do is the grant, and the folders bound it.
//!
//! # Not here
//! Deciding (boundary), executing (primitives), printing (the command line).

use core::error::Error;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Value, json};
use synapse_abi::{code, limits, turn};
use synapse_boundary::record::{Durability, Event, Kind, tag};
use synapse_boundary::{Integrity, Label, Log, Origin, Secrecy};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::{Ended, Engine, TurnLimits};
use synapse_kernel::grant::Grant;
use synapse_kernel::task::{Crossing, Parts, SharedLog, Task};
use synapse_primitives::Platform;
use synapse_primitives::disk::{Disk, Identity, Mount};
use synapse_primitives::mounts::Access;

use crate::console::{Console, PATIENCE};
use crate::engine::Wasmtime;
use crate::log::{FileSink, new_run_dir};
use crate::render::Terminal;

/// Bytes of displaced files that one run's journal may keep.
pub const JOURNAL: u64 = 1 << 30;

/// A folder of the host, and where the agent sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOption {
    /// The folder.
    pub host: PathBuf,
    /// Where the agent sees it.
    pub guest: String,
    /// Whether nothing in it may change.
    pub read_only: bool,
}

/// What a person asked for.
pub struct Options {
    /// A component, or a package's folder.
    pub agent: PathBuf,
    /// The task line.
    pub task: String,
    /// The folders.
    pub mounts: Vec<MountOption>,
    /// The grant file; without one, the package's `grant.toml`.
    pub grant: Option<PathBuf>,
    /// Where what the agent says is shown.
    pub screen: Terminal,
    /// Told of every call.
    pub report: Box<dyn Fn(&Crossing<'_>) + Send + Sync>,
    /// Set to end the run.
    pub cancel: Arc<AtomicBool>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Where its log is.
    pub run_dir: PathBuf,
    /// Calls that crossed the door.
    pub calls: u64,
    /// Refusals, gate by gate.
    pub refused: [u64; 4],
    /// Permitted calls that came to nothing.
    pub faults: u64,
    /// Records in the log.
    pub records: u64,
    /// The agent's answer, or why there is none.
    pub answer: Result<Vec<u8>, String>,
}

/// Why a run did not begin, or could not be recorded.
#[derive(Debug)]
pub struct RunError(String);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for RunError {}

/// Runs an agent to its end.
///
/// # Errors
/// Something that the run needs is missing or is not what it should be; no call
/// was made then. A log that fails while the agent runs ends in an answer that
/// is an error, not here.
pub fn run(options: Options) -> Result<Summary, RunError> {
    let package = Package::find(&options)?;
    let bytes = read(&package.component, "agent")?;
    let admitted =
        admit(&bytes).map_err(|why| RunError(format!("{}: {why}", show(&package.component))))?;
    let text = String::from_utf8(read(&package.grant, "grant")?).map_err(|_| {
        RunError(format!(
            "{}: the grant is not UTF-8; write it as a TOML text",
            show(&package.grant)
        ))
    })?;
    let grant =
        Grant::parse(&text).map_err(|why| RunError(format!("{}: {why}", show(&package.grant))))?;
    let engine = Wasmtime::new().map_err(|why| RunError(why.to_string()))?;
    let program = engine.load(&admitted).map_err(|why| RunError(why.to_string()))?;

    let run_dir =
        new_run_dir().map_err(|why| cannot("make the run's folder", Path::new("state"), &why))?;
    let disk = Arc::new(open(&options, &package, &run_dir)?);
    let sink = FileSink::create(&run_dir).map_err(|why| cannot("make the log", &run_dir, &why))?;
    let mut id = [0; 32];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
        .map_err(|why| cannot("read randomness for the log", &run_dir, &why.into()))?;
    let no_log = || {
        RunError(format!(
            "{}: the log takes no records, so nothing was run; is the disk full?",
            show(&run_dir)
        ))
    };
    let log = Log::begin(sink, id).map_err(|_| no_log())?;
    let log: SharedLog<FileSink> = Arc::new(spin::Mutex::new(log));

    let prompt = Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE);
    let about = json!({ "task": cut(&options.task), "grant": grant.summary() }).to_string();
    note(&log, &disk, Kind::TaskStart, 0, prompt, Some(about.as_bytes())).ok_or_else(no_log)?;
    let start = note(&log, &disk, Kind::TurnStart, 0, prompt, None).ok_or_else(no_log)?;
    let mark = Label { origin: Origin::record(start), ..prompt };
    let input = input(&options.task, &grant);
    let limits = TurnLimits {
        memory_bytes: grant.memory,
        deadline: Duration::from_secs(grant.seconds),
        sentence_bytes: limits::SENTENCE,
        answer_bytes: limits::ANSWER,
        ..TurnLimits::default()
    };

    let counts = Arc::new(Counts::default());
    let (counted, report) = (Arc::clone(&counts), options.report);
    let task = Task::new(Parts {
        id: 0,
        mark,
        grant: Arc::new(grant),
        journal_room: JOURNAL,
        platform: Arc::clone(&disk),
        log: Arc::clone(&log),
        watch: Arc::new(move |crossing| {
            counted.count(crossing);
            report(crossing);
        }),
        cancel: options.cancel,
    });
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .map_err(|why| cannot("start the executor", &run_dir, &why))?;
    let (task, ended) = executor.block_on(engine.turn(&program, task, &input, limits));
    let code = match ended {
        Ok(_) => 0,
        Err(Ended::Code(number)) => u16::try_from(number).unwrap_or(u16::MAX),
        Err(_) => u16::MAX,
    };
    let mut answer = ended.map_err(|why| why.to_string());
    for kind in [Kind::TurnEnd, Kind::RunEnd] {
        if note(&log, &disk, kind, code, task.mark(), None).is_none() {
            answer = Err("the log took no more records; what ran before is recorded".to_owned());
        }
    }
    drop(task);
    let records = log.lock().next();
    Ok(Summary {
        run_dir,
        calls: counts.calls.load(Ordering::Relaxed),
        refused: [0, 1, 2, 3].map(|gate: usize| {
            counts.refused.get(gate).map_or(0, |count| count.load(Ordering::Relaxed))
        }),
        faults: counts.faults.load(Ordering::Relaxed),
        records,
        answer,
    })
}

/// What makes an agent runnable, and nobody's to change while it runs.
struct Package {
    component: PathBuf,
    grant: PathBuf,
    /// The package's folder, where the agent came in one.
    folder: Option<PathBuf>,
}

impl Package {
    fn find(options: &Options) -> Result<Self, RunError> {
        let folder = if options.agent.is_dir() {
            let folder = fs::canonicalize(&options.agent);
            Some(folder.map_err(|why| cannot("open the package", &options.agent, &why))?)
        } else {
            None
        };
        let component = match &folder {
            Some(folder) => {
                let name = folder.file_name().map(PathBuf::from).unwrap_or_default();
                folder.join(name.with_extension("wasm"))
            }
            None => options.agent.clone(),
        };
        let beside = folder.as_ref().map(|folder| folder.join("grant.toml"));
        let grant = options.grant.clone().or(beside).ok_or_else(|| {
            RunError(
                "no grant was given, and an agent without one may do nothing; add `--grant FILE`"
                    .to_owned(),
            )
        })?;
        Ok(Self { component, grant, folder })
    }
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    faults: AtomicU64,
    refused: [AtomicU64; 4],
}

impl Counts {
    fn count(&self, crossing: &Crossing<'_>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match code::gate(crossing.code) {
            Some(0) => {
                self.faults.fetch_add(1, Ordering::Relaxed);
            }
            Some(gate) => {
                if let Some(count) = self.refused.get(usize::from(gate).saturating_sub(1)) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => {}
        }
    }
}

/// Opens the folders, and hides from them what is Synapse's own.
fn open(options: &Options, package: &Package, run_dir: &Path) -> Result<Disk, RunError> {
    let mut own = Vec::new();
    let state = run_dir.parent().and_then(Path::parent).unwrap_or(run_dir);
    let files = [state, run_dir, &package.component, &package.grant];
    for path in files.into_iter().chain(package.folder.as_deref()) {
        let file = fs::File::open(path).map_err(|why| cannot("open", path, &why))?;
        own.push(
            Identity::of(&file)
                .map_err(|_| RunError(format!("{}: its identity cannot be read", show(path))))?,
        );
    }
    let folder = |path: &Path| Dir::open_ambient_dir(path, ambient_authority());
    let journal = run_dir.join("journal");
    fs::create_dir(&journal).map_err(|why| cannot("make the journal", &journal, &why))?;
    let journal = folder(&journal).map_err(|why| cannot("open the journal", &journal, &why))?;
    let mounts = options
        .mounts
        .iter()
        .map(|mount| {
            let host = fs::canonicalize(&mount.host)
                .map_err(|why| cannot("open the folder", &mount.host, &why))?;
            let dir = folder(&host).map_err(|why| cannot("open the folder", &host, &why))?;
            let access = if mount.read_only { Access::ReadOnly } else { Access::ReadWrite };
            let Some(host) = host.to_str().map(ToOwned::to_owned) else {
                return Err(RunError(format!(
                    "{}: the folder's path is not UTF-8, so that the journal cannot name it; \
                     rename the folder",
                    show(&host)
                )));
            };
            Ok(Mount { root: mount.guest.clone(), host, dir, access })
        })
        .collect::<Result<_, RunError>>()?;
    let console = Console {
        terminal: options.screen,
        agent: options.agent.to_string_lossy().into_owned(),
        cancel: Arc::clone(&options.cancel),
        patience: PATIENCE,
    };
    Disk::new(mounts, &own, Some(journal), Box::new(console))
        .map_err(|why| RunError(why.to_string()))
}

fn note(
    log: &SharedLog<FileSink>,
    disk: &Disk,
    kind: Kind,
    code: u16,
    label: Label,
    text: Option<&[u8]>,
) -> Option<u64> {
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
    log.lock().note(&event, disk.now_ms()).ok()
}

/// What a start record keeps of the task line.
fn cut(task: &str) -> String {
    task.chars().take(1000).collect()
}

/// The turn's input, as `docs/abi.md` has it.
fn input(task: &str, grant: &Grant) -> Vec<u8> {
    let granted: Value = serde_json::from_str(grant.summary()).unwrap_or_default();
    let message = json!({ "from": turn::From::Human.name(), "text": task });
    json!({
        "v": turn::VERSION,
        "messages": [message],
        "handles": [],
        "warrants": [],
        "grant": granted,
        "budget": { "calls": grant.calls },
    })
    .to_string()
    .into_bytes()
}

fn read(path: &Path, what: &str) -> Result<Vec<u8>, RunError> {
    fs::read(path).map_err(|why| cannot(&format!("read the {what}"), path, &why))
}

fn cannot(what: &str, path: &Path, why: &io::Error) -> RunError {
    RunError(format!("cannot {what}: {}: {why}; check the path and its permissions", show(path)))
}

fn show(path: &Path) -> String {
    crate::render::line(path.to_string_lossy().as_bytes(), 200)
}
