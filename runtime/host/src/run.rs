//! One run: an agent, a task line, folders, a grant, and a log of it all.
//!
//! The one place of the host that reaches for authority nobody handed it: the
//! folders, the agent and the grant that a person named on the command line.
//!
//! # Invariants
//! - I9: what the agent may do is the grant, and the folders bound it.
//!
//! # Not here
//! What a run records (kernel), executing (primitives), printing (the command
//! line).

use core::error::Error;
use core::fmt;
use core::mem::take;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use synapse_compiled::Cache;
use synapse_kernel::admit::COMPONENT_MAX;
use synapse_kernel::crew::{self, Staff};
use synapse_kernel::engine::Engine;
use synapse_kernel::explain;
use synapse_kernel::grant::{Grant, Notice};
use synapse_kernel::run::{Approval, NoAnswer, Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::task::{Crossing, HELD_BYTES};
use synapse_kernel::written::{Unwritten, Written};
use synapse_primitives::disk::{Disk, Identity, Mount};
use synapse_primitives::mounts::Access;
use synapse_reply::code;
use synapse_secrets::Given;

use crate::agents::{CHILDREN, Known, Timer};
use crate::console::Console;
use crate::control::{Control, Status};
use crate::desk::Desk;
use crate::engine::{Choice, Wasmtime, interpreter};
use crate::human::Human;
use crate::load::{LIMIT, load};
use crate::locks::{self, Folder, Held, Purpose};
use crate::log::{FileSink, new_run_dir, state_dir};
use crate::net::Client;
use crate::package::{Authority, Installed, Store};
use crate::render::Terminal;
use crate::session::{Keeper, Kept, Manner, Place, digest};
use crate::store::{self, Labels};
use crate::tools::{self, Named, runtime};
use crate::typed;

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

/// What is to run.
#[derive(Debug)]
pub enum Agent {
    /// A component, or a package's folder.
    Path(PathBuf),
    /// What was installed, with what was agreed to.
    Installed(Box<Installed>),
}

impl Agent {
    /// What a person calls it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::Installed(installed) => installed.package.manifest.name.clone(),
        }
    }
}

/// What a person asked for.
pub struct Options {
    /// The agent.
    pub agent: Agent,
    /// The line of the first turn, which a person typed.
    pub task: String,
    /// Where the lines of further turns come from.
    pub lines: Lines,
    /// What it goes on with.
    pub session: Option<Kept>,
    /// The folders.
    pub mounts: Vec<MountOption>,
    /// The grant file; without one, the package's `grant.toml`. An installed package has
    /// what both this file and its approval allow.
    pub grant: Option<PathBuf>,
    /// A file of warrants that the person wrote beforehand.
    pub warrants: Option<PathBuf>,
    /// The engine that runs it.
    pub engine: Choice,
    /// Where what the agent says is shown.
    pub screen: Terminal,
    /// Told of each warning about the grant, before anything runs.
    pub warn: Box<dyn Fn(&Warning<'_>)>,
    /// Told what is not as it was in the run that it goes on from: `agent`, `grant`
    /// or `folders`.
    pub changed: Box<dyn Fn(&str)>,
    /// Told of every call.
    pub report: Arc<dyn Fn(&Crossing<'_>) + Send + Sync>,
    /// Told of each turn's end: its answer, or why there is none.
    pub answered: Box<dyn Fn(Answer<'_>)>,
    /// What becomes of a call that only a human can allow.
    pub confirm: Confirm,
    /// How long a question of either kind waits.
    pub patience: Duration,
    /// Set to end the run.
    pub cancel: Arc<AtomicBool>,
}

/// What becomes of a call that only a human can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// They are asked.
    Ask,
    /// It is refused.
    Deny,
}

/// A turn's answer, or why there is none.
pub type Answer<'a> = Result<&'a [u8], NoAnswer>;

/// Where the lines of further turns come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// There is one turn.
    One,
    /// They are typed at the terminal.
    Typed,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Something in a grant that is legal and probably not meant.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'a> {
    /// The grant's file.
    pub file: &'a Path,
    /// What stands in it.
    pub text: &'a str,
    /// Where, and why.
    pub notice: &'a Notice,
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
    /// Why what it wrote or said was not kept with its labels, if that is so.
    pub unkept: Option<String>,
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
    match options.engine {
        Choice::Wasmtime => {
            let engine = Wasmtime::new().map_err(|why| RunError(why.to_string()))?;
            // Without a cache the start takes longer, no more.
            let cache = state_dir().and_then(|state| Cache::open(&state));
            match cache {
                Ok(cache) => run_on(engine.with_cache(cache), options),
                Err(_) => run_on(engine, options),
            }
        }
        Choice::Wasmi => run_on(interpreter(), options),
    }
}

fn run_on<E>(engine: E, mut options: Options) -> Result<Summary, RunError>
where
    E: Engine<Program: Send + 'static> + Send + 'static,
{
    let mut package = Package::find(&options)?;
    let (named, grant) = granted(&package, &options)?;
    let digests = [digest(&package.component), digest(package.grant.as_bytes())];
    let texts: Vec<&str> = package.soul.as_deref().into_iter().collect();
    let (engine, program) = load(engine, take(&mut package.component), LIMIT, &options.cancel)
        .map_err(|why| RunError(format!("{}: {why}", show(&package.name))))?;

    let written = written(&options, &grant)?;
    let executor =
        runtime().map_err(|why| RunError(format!("cannot start the executor: {why}")))?;
    let secrets = tools::given(named.secrets().chain(grant.secrets())).map_err(RunError)?;
    let cancel = Arc::clone(&options.cancel);
    let connectors = named.start(&executor, Arc::clone(&secrets), cancel).map_err(RunError)?;
    let run_dir =
        new_run_dir().map_err(|why| cannot("make the run's folder", Path::new("state"), &why))?;
    let _held = hold(&options, &run_dir).inspect_err(|_| {
        // A run that did not begin leaves nothing.
        let _ = fs::remove_dir(&run_dir);
    })?;
    let session = options.session.take();
    let mut keeper = keeper(&options, &run_dir, digests, session.as_ref())?;
    let disk = open(&options, &package, &run_dir, secrets)?;
    let disk = Arc::new(match connectors {
        Some(connectors) => disk.with_connectors(Box::new(connectors)),
        None => disk,
    });
    let labels = labels(&disk, &run_dir)?;
    let sink = FileSink::create(&run_dir).map_err(|why| cannot("make the log", &run_dir, &why))?;
    let mut id = [0; 32];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
        .map_err(|why| cannot("read randomness for the log", &run_dir, &why.into()))?;
    let counts = Arc::new(Counts::default());
    let questions = Arc::new(Desk::default());
    let _control = answer(&options, &run_dir, Arc::clone(&counts), Arc::clone(&questions))?;
    // Whoever takes rights back writes that down, then ends the runs that go on: of the
    // two, one sees the other.
    if let Agent::Installed(installed) = &options.agent {
        still(installed, state_of(&run_dir))?;
    }
    let human = human(&options, questions);
    let (counted, report) = (Arc::clone(&counts), Arc::clone(&options.report));
    let order = Order {
        id,
        task: &options.task,
        session: session.map_or_else(Session::default, |kept| kept.session(&grant)),
        texts: &texts,
        grant: Arc::clone(&grant),
        approval: package.approval.clone(),
        room: Room { journal: JOURNAL, memory: usize::MAX, held: HELD_BYTES },
        platform: Arc::clone(&disk),
        watch: Arc::new(move |crossing| {
            counted.count(crossing);
            report(crossing);
        }),
        cancel: Arc::clone(&options.cancel),
    };
    let run = Run::begin_with(order, written, sink).map_err(|_| {
        RunError(format!(
            "{}: the log takes no records, so nothing was run; is the disk full?",
            show(&run_dir)
        ))
    })?;
    let run = match options.confirm {
        Confirm::Ask => run.confirmed_by(Arc::new(human)),
        Confirm::Deny => run,
    };
    let engine = Arc::new(engine);
    let own = own_package(&options, &texts, &program);
    let cancel = Arc::clone(&options.cancel);
    let known = Known::new(Arc::clone(&engine), state_of(&run_dir).to_path_buf(), own, cancel);
    let places = Arc::new(AtomicUsize::new(CHILDREN));
    let run = run.staffed(Staff::new(Arc::clone(&engine), known, places, usize::MAX));
    let mut forgotten = None;
    let (run, answer) = executor.block_on(turns(run, &engine, &program, &options, |run| {
        let kept = keeper.keep(run.messages(), run.values(), &grant);
        forgotten = kept.err().map(|why| {
            format!("what was said was not kept: {why}; no run can go on from the last turn")
        });
    }));
    let finished = run.end(answer);
    // A resolver that hangs hears of no cancellation; nobody waits for it.
    executor.shutdown_background();
    let records = finished.log.lock().next();
    let unkept = labels.end(&disk.rest()).err().map(|why| {
        format!(
            "{}: the labels of what the agent wrote were not kept: {why}; the next run in the \
             folder takes them from this run's journal",
            show(&state_of(&run_dir).join(store::FILE))
        )
    });
    Ok(Summary {
        run_dir,
        calls: counts.calls.load(Ordering::Relaxed),
        refused: [0, 1, 2, 3].map(|gate: usize| {
            counts.refused.get(gate).map_or(0, |count| count.load(Ordering::Relaxed))
        }),
        faults: counts.faults.load(Ordering::Relaxed),
        records,
        unkept: unkept.or(forgotten),
        answer: finished.answer.map_err(|why| why.to_string()),
    })
}

/// What is granted, beside the connectors that it names; what is odd about it is told.
fn granted(package: &Package, options: &Options) -> Result<(Named, Arc<Grant>), RunError> {
    let (name, text) = (&package.grant_name, &package.grant);
    let named = Named::find(text).map_err(|why| RunError(format!("{}: {why}", show(name))))?;
    let grant = Grant::parse_with(text, &named.manifests)
        .map_err(|why| RunError(format!("{}: {why}", show(name))))?;
    for notice in grant.warnings() {
        (options.warn)(&Warning { file: name, text, notice });
    }
    Ok((named, Arc::new(grant)))
}

/// Runs the turns, each to its end, where what was said is kept and its answer told.
async fn turns<E: Engine>(
    mut run: Run<Disk, FileSink>,
    engine: &E,
    program: &E::Program,
    options: &Options,
    mut keep: impl FnMut(&Run<Disk, FileSink>),
) -> (Run<Disk, FileSink>, Result<Vec<u8>, NoAnswer>) {
    loop {
        let (ended, answer) = run.turn(engine, program).await;
        run = ended;
        keep(&run);
        (options.answered)(answer.as_deref().map_err(|why| *why));
        if options.lines == Lines::One || answer == Err(NoAnswer::Unrecorded) {
            return (run, answer);
        }
        let Some(line) = typed::next(options.screen, &options.cancel) else {
            return (run, answer);
        };
        run.next(&line);
    }
}

/// What makes an agent runnable.
struct Package {
    /// What its component is called.
    name: PathBuf,
    component: Vec<u8>,
    /// What its grant is called.
    grant_name: PathBuf,
    grant: String,
    /// What the package says of itself to its agent, if it does.
    soul: Option<String>,
    /// What nobody may change while it runs: files, and the package's folder.
    own: Vec<PathBuf>,
    approval: Option<Approval>,
}

impl Package {
    fn find(options: &Options) -> Result<Self, RunError> {
        match &options.agent {
            Agent::Path(path) => Self::at(path, options.grant.as_deref()),
            Agent::Installed(installed) => Self::installed(installed, options.grant.as_deref()),
        }
    }

    fn at(agent: &Path, grant: Option<&Path>) -> Result<Self, RunError> {
        let folder = if agent.is_dir() {
            let folder = fs::canonicalize(agent);
            Some(folder.map_err(|why| cannot("open the package", agent, &why))?)
        } else {
            None
        };
        let name = match &folder {
            Some(folder) => {
                let name = folder.file_name().map(PathBuf::from).unwrap_or_default();
                folder.join(name.with_extension("wasm"))
            }
            None => agent.to_path_buf(),
        };
        let beside = folder.as_ref().map(|folder| folder.join("grant.toml"));
        let grant = grant.map(Path::to_path_buf).or(beside).ok_or_else(|| {
            RunError(
                "no grant was given, and an agent without one may do nothing; add `--grant FILE`"
                    .to_owned(),
            )
        })?;
        let soul = match folder.as_ref().map(|folder| folder.join("SOUL.md")) {
            Some(path) if path.exists() => Some(soul(&path)?),
            Some(_) | None => None,
        };
        Ok(Self {
            component: read(&name, "agent")?,
            grant: text(&grant, "grant")?,
            soul,
            own: [name.clone(), grant.clone()].into_iter().chain(folder).collect(),
            name,
            grant_name: grant,
            approval: None,
        })
    }

    /// What was approved, and of that what the caller's grant allows too.
    fn installed(installed: &Installed, grant: Option<&Path>) -> Result<Self, RunError> {
        let name = PathBuf::from(&installed.package.manifest.name);
        let mut own = Vec::new();
        let grant_of = match grant {
            None => installed.text.clone(),
            Some(path) => {
                let caller = Authority::read(&text(path, "grant")?)
                    .map_err(|why| RunError(format!("{}: {why}", show(path))))?;
                own.push(path.to_path_buf());
                installed.grant.meet(&caller).text()
            }
        };
        Ok(Self {
            component: installed.package.component().to_vec(),
            grant_name: grant.map_or_else(|| name.clone(), Path::to_path_buf),
            grant: grant_of,
            soul: installed.package.soul().map(ToOwned::to_owned),
            own,
            approval: Some(installed.approval()),
            name,
        })
    }
}

/// A package that is run from its folder, by the folder's name.
fn own_package<Q: Clone>(
    options: &Options,
    texts: &[&str],
    program: &Q,
) -> Option<(String, crew::Package<Q>)> {
    let Agent::Path(path) = &options.agent else { return None };
    let folder = fs::canonicalize(path).ok().filter(|path| path.is_dir())?;
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    let (program, bounds, approval) = (program.clone(), None, None);
    let package = crew::Package { program, bounds, texts, approval };
    Some((folder.file_name()?.to_str()?.to_owned(), package))
}

/// Whether what was approved when the run was ordered is approved now.
fn still(installed: &Installed, state: &Path) -> Result<(), RunError> {
    let told = |why: &dyn fmt::Display| RunError(why.to_string());
    let store = Store::open(state).map_err(|why| told(&why))?;
    let now = store.get(&installed.package.manifest.name).map_err(|why| told(&why))?;
    if now.is_some_and(|now| now.approval() == installed.approval()) {
        return Ok(());
    }
    Err(told(&"what the package may do was changed just now, so nothing was run; run it again"))
}

/// What a package says of itself to its agent.
fn soul(path: &Path) -> Result<String, RunError> {
    let soul = text(path, "package's text")?;
    if soul.len() > SOUL_MAX {
        return Err(RunError(format!(
            "{}: it has more than {SOUL_MAX} bytes; say less to the agent",
            show(path)
        )));
    }
    Ok(soul)
}

/// Reads a text.
fn text(path: &Path, what: &str) -> Result<String, RunError> {
    String::from_utf8(read(path, what)?).map_err(|_| {
        RunError(format!("{}: the {what} is not UTF-8; write it as a text", show(path)))
    })
}

/// Bytes that a package's text for its agent may have.
const SOUL_MAX: usize = 64 << 10;

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

/// Takes the folders, so that nobody else works in them meanwhile.
fn hold(options: &Options, run_dir: &Path) -> Result<Held, RunError> {
    let folder = |mount: &MountOption| {
        Folder::find(&mount.host, mount.read_only)
            .map_err(|why| cannot("open the folder", &mount.host, &why))
    };
    let folders = options.mounts.iter().map(folder).collect::<Result<_, _>>()?;
    let name = run_dir.file_name().unwrap_or_default().to_string_lossy();
    locks::take(state_of(run_dir), &name, Purpose::Run, folders)
        .map_err(|why| RunError(why.to_string()))
}

/// What earlier runs left is known to the disk, and what this one does will be kept.
fn labels(disk: &Disk, run_dir: &Path) -> Result<Labels, RunError> {
    let state = state_of(run_dir);
    let unusable = |why: &dyn fmt::Display| {
        RunError(format!(
            "{}: what the folders' files carry cannot be known: {why}; use the version that wrote \
             it, or move it away: then every file counts as from outside",
            show(&state.join(store::FILE))
        ))
    };
    let (folders, writable) =
        disk.folders().map_err(|fault| unusable(&format!("fault {}", fault.number())))?;
    let run = run_dir.file_name().unwrap_or_default().to_string_lossy();
    let (labels, index) =
        Labels::begin(state, &run, folders, writable).map_err(|why| unusable(&why))?;
    *disk.rest() = index;
    Ok(labels)
}

/// Lets other programs of this user ask how the run goes, and end it.
fn answer(
    options: &Options,
    run_dir: &Path,
    counts: Arc<Counts>,
    desk: Arc<Desk>,
) -> Result<Control, RunError> {
    let (agent, task) = (options.agent.name(), options.task.clone());
    let cancelled = Arc::clone(&options.cancel);
    let asked = Arc::clone(&desk);
    let package = match &options.agent {
        Agent::Installed(installed) => Some(installed.package.manifest.name.clone()),
        Agent::Path(_) => None,
    };
    let status = move || Status {
        package: package.clone(),
        agent: agent.clone(),
        task: task.clone(),
        calls: counts.calls.load(Ordering::Relaxed),
        cancelled: cancelled.load(Ordering::Relaxed),
        question: asked.standing().map(|standing| standing.number),
    };
    Control::serve(run_dir, Arc::clone(&options.cancel), desk, status).map_err(|why| {
        RunError(format!(
            "cannot make the run's socket: {}: {why}; its file system may hold none, set \
             XDG_STATE_HOME to a folder on another one",
            show(run_dir)
        ))
    })
}

/// Keeps what is said, and tells what is not as it was when it was said.
fn keeper(
    options: &Options,
    run_dir: &Path,
    [component, granted]: [String; 2],
    before: Option<&Kept>,
) -> Result<Keeper, RunError> {
    // Whoever goes on from here may stand in another folder.
    let find = |path: &Path| fs::canonicalize(path).map_err(|why| cannot("open", path, &why));
    let mounts = options.mounts.iter().map(|mount| {
        let host = find(&mount.host)?;
        Ok(MountOption { host, ..mount.clone() })
    });
    let manner = Manner {
        agent: match &options.agent {
            Agent::Path(path) => Place::Path(find(path)?),
            Agent::Installed(_) => Place::Installed(options.agent.name()),
        },
        component,
        grant: options.grant.as_deref().map(find).transpose()?,
        granted,
        mounts: mounts.collect::<Result<_, RunError>>()?,
    };
    for what in before.iter().flat_map(|kept| manner.changed(&kept.manner)) {
        (options.changed)(what);
    }
    let state = state_of(run_dir);
    Keeper::new(state, run_dir, manner).map_err(|why| cannot("make the sessions' key", state, &why))
}

/// What the person wrote beforehand, if every line of it can be minted.
fn written(options: &Options, grant: &Grant) -> Result<Option<Written>, RunError> {
    let Some(path) = &options.warrants else { return Ok(None) };
    let file = fs::canonicalize(path).map_err(|why| cannot("open the warrants", path, &why))?;
    let text = String::from_utf8(read(&file, "warrants")?)
        .map_err(|_| RunError(format!("{}: the warrants are not UTF-8", show(path))))?;
    let mount = |mount: &MountOption| {
        let host = fs::canonicalize(&mount.host).unwrap_or_default();
        (mount.guest.clone(), host.to_string_lossy().into_owned())
    };
    let written = Written::read(&file.to_string_lossy(), &text).and_then(|written| {
        written.check(grant, options.mounts.iter().map(mount).collect())?;
        Ok(written)
    });
    written.map(Some).map_err(|Unwritten { line, refusal }| {
        RunError(format!(
            "{}:{line}: no warrant can be made of this line: {} [{}]; {}",
            show(path),
            code::name(refusal),
            refusal.number(),
            explain::refusal(refusal).remedy
        ))
    })
}

/// Whoever may say yes to what the agent asks for.
fn human(options: &Options, desk: Arc<Desk>) -> Human {
    Human {
        terminal: options.screen,
        agent: options.agent.name(),
        cancel: Arc::clone(&options.cancel),
        patience: options.patience,
        desk,
        turn: Arc::default(),
    }
}

/// The state folder that holds a run's directory.
fn state_of(run_dir: &Path) -> &Path {
    run_dir.parent().and_then(Path::parent).unwrap_or(run_dir)
}

/// Opens the folders, and hides from them what is Synapse's own.
fn open(
    options: &Options,
    package: &Package,
    run_dir: &Path,
    secrets: Arc<Given>,
) -> Result<Disk, RunError> {
    let mut own = Vec::new();
    let installed = match &options.agent {
        Agent::Installed(installed) => {
            let store = Store::open(state_of(run_dir)).map_err(|why| RunError(why.to_string()))?;
            store.own(installed)
        }
        Agent::Path(_) => Vec::new(),
    };
    let files = package.own.iter().chain(&options.warrants).chain(&installed);
    let files = files.map(PathBuf::as_path);
    let tools = tools::own();
    for path in [state_of(run_dir), run_dir].into_iter().chain(files).chain(tools.as_deref()) {
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
        agent: options.agent.name(),
        cancel: Arc::clone(&options.cancel),
        patience: options.patience,
    };
    let client = Client::new(Arc::clone(&options.cancel))
        .map_err(|why| RunError(format!("cannot make the network's client: {why}")))?
        .given(secrets);
    Disk::new(mounts, &own, Some(journal), Box::new(console))
        .map(|disk| disk.with_net(Box::new(client)).with_timer(Box::new(Timer)))
        .map_err(|why| RunError(why.to_string()))
}

/// Reads a file, or so much of it that it is seen to be too large.
fn read(path: &Path, what: &str) -> Result<Vec<u8>, RunError> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(COMPONENT_MAX as u64 + 1).read_to_end(&mut bytes))
        .map_err(|why| cannot(&format!("read the {what}"), path, &why))?;
    Ok(bytes)
}

fn cannot(what: &str, path: &Path, why: &io::Error) -> RunError {
    RunError(format!("cannot {what}: {}: {why}; check the path and its permissions", show(path)))
}

fn show(path: &Path) -> String {
    crate::render::line(path.to_string_lossy().as_bytes(), 200)
}
