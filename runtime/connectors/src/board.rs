//! A run's connectors: started, held against what was approved, called
//!
//! # Invariants
//! - A server is called only while its list is the approved one.
//! - What a sealed server is told is kept before it is told, and is in the label of all
//!   that it answers from then on, in later runs too.
//!
//! # Not here
//! Whether a call is permitted (the boundary), and its label otherwise (`primitives`).

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use synapse_kernel::manifest::{Manifest, Start, Verb};
use synapse_primitives::platform::{Connectors, Use, Used, Using};
use synapse_primitives::rest::Names;
use synapse_reply::Fault;
use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::answer;
use crate::approval::{Approved, replace};
use crate::confine::Launcher;
use crate::exec::{Lines, Runner, offers};
use crate::server::{Server, Trouble};
use crate::web::Web;

/// How often a call looks whether it was cancelled.
const GLANCE: Duration = Duration::from_millis(50);

/// The connectors of a run.
#[derive(Debug)]
pub struct Board {
    connectors: BTreeMap<String, Connector>,
    reach: Reach,
    cancel: Arc<AtomicBool>,
}

/// How this machine comes to servers.
struct Reach {
    launcher: Launcher,
    web: Option<Arc<dyn Web>>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("launcher", &self.launcher).finish_non_exhaustive()
    }
}

impl Reach {
    async fn begin(&self, start: &Start) -> Result<Server, Trouble> {
        match &self.web {
            _ if start.url.is_empty() => Server::start(start, &self.launcher).await,
            Some(web) => Server::reach(start, &self.launcher, web).await,
            None => Err(Trouble::Unreached(Fault::Unsupported)),
        }
    }
}

#[derive(Debug)]
struct Connector {
    manifest: Manifest,
    list: [u8; 32],
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    server: Option<Server>,
    /// Of one that is no server.
    lines: Lines,
    told: Told,
    glance: Glance,
}

/// A timer that goes on from call to call. One of each call's own would wake the thread
/// that waits for servers, to hear of it, before every answer.
#[derive(Debug, Default)]
struct Glance(Option<Interval>);

impl Glance {
    /// Waits until a run is cancelled.
    async fn until(&mut self, cancel: &AtomicBool) {
        let timer = self.0.get_or_insert_with(|| {
            let mut timer = interval(GLANCE);
            timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
            timer
        });
        while !cancel.load(Ordering::Relaxed) {
            timer.tick().await;
        }
    }
}

/// What a connector was told, for one that can tell nobody else, and where that is kept.
#[derive(Debug)]
struct Told(Option<(PathBuf, Names)>);

/// Why a run cannot have a connector.
#[derive(Debug)]
pub enum Unready {
    /// What it was told cannot be read.
    Told(PathBuf),
    /// It does not begin.
    Trouble(String, Trouble),
    /// It does not offer what was approved.
    Changed(String),
    /// A program of its lines is not there; in words.
    Program(String, String),
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told(path) => write!(
                f,
                "cannot read {}, which says what a connector was told; its answers have no label \
                 without it; check its permissions",
                path.display()
            ),
            Self::Trouble(server, why) => write!(f, "connector `{server}`: {why}"),
            Self::Program(server, why) => write!(f, "connector `{server}`: {why}"),
            Self::Changed(server) => write!(
                f,
                "connector `{server}` does not offer what was approved; see `synapse tools diff \
                 {server}`, then `synapse tools approve {server}`"
            ),
        }
    }
}

impl core::error::Error for Unready {}

/// How the file begins that says what a server was told, with its version.
const HEADER: &str = "synapse told 1";

impl Board {
    /// Those that were approved. `told` is the folder that says what each was told;
    /// `cancel` is set to end the run.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(
        approved: Vec<Approved>,
        told: &Path,
        launcher: Launcher,
        cancel: Arc<AtomicBool>,
    ) -> Result<Self, Unready> {
        let mut connectors = BTreeMap::new();
        for Approved { manifest, list } in approved {
            let path = told.join(&manifest.server);
            let names = read(&path)?;
            // Beside what each was told, the folders that lines are run in.
            let lines = Lines::new(&told.with_file_name("copies"));
            let told = Told(manifest.start.is_confined().then_some((path, names)));
            let state = Mutex::new(State { server: None, lines, told, glance: Glance::default() });
            let server = manifest.server.clone();
            connectors.insert(server, Connector { manifest, list, state });
        }
        Ok(Self { connectors, reach: Reach { launcher, web: None }, cancel })
    }

    /// With the network for those that are at an address.
    #[must_use]
    pub fn with_web(mut self, web: Arc<dyn Web>) -> Self {
        self.reach.web = Some(web);
        self
    }

    /// Starts them all, and holds what each offers against what was approved.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub async fn begin(&self) -> Result<(), Unready> {
        for (name, connector) in &self.connectors {
            if connector.manifest.start.lines {
                let now = offers(&connector.manifest);
                let now = now.map_err(|why| Unready::Program(name.clone(), why))?;
                if now.digest() != connector.list {
                    return Err(Unready::Changed(name.clone()));
                }
                continue;
            }
            let server = connector.begin(&self.reach).await;
            let server = server.map_err(|why| Unready::Trouble(name.clone(), why))?;
            let server = server.ok_or_else(|| Unready::Changed(name.clone()))?;
            connector.state.lock().await.server = Some(server);
        }
        Ok(())
    }

    async fn call(&self, call: Use<'_>) -> Used {
        let found = call.tool.split_once('/').and_then(|(server, verb)| {
            let connector = self.connectors.get(server)?;
            Some((connector, connector.manifest.verb(verb)?))
        });
        let Some((connector, verb)) = found else {
            return Used { reply: Err(Fault::NotFound), carried: Names::NONE };
        };
        let mut state = connector.state.lock().await;
        if connector.manifest.start.lines {
            return connector.run(&mut state, verb, self, call).await;
        }
        if state.told.tell(call.carries).is_err() {
            return Used { reply: Err(Fault::Io), carried: state.told.carried() };
        }
        let State { server, glance, .. } = &mut *state;
        let reply = tokio::select! {
            // Asked first: looking also sets the timer, which the call need not wait for.
            biased;
            reply = connector.call(server, verb, self, call) => reply,
            () = glance.until(&self.cancel) => Err(Fault::Cancelled),
        };
        if matches!(reply, Err(Fault::TimedOut | Fault::Closed | Fault::Cancelled | Fault::Changed))
        {
            // Whatever it does now, nobody waits for it.
            state.server = None;
        }
        Used { reply, carried: state.told.carried() }
    }
}

impl Connectors for Board {
    fn tool<'a>(&'a self, call: Use<'a>) -> Using<'a> {
        Box::pin(self.call(call))
    }
}

impl Connector {
    /// A server that offers what was approved, or another one.
    async fn begin(&self, reach: &Reach) -> Result<Option<Server>, Trouble> {
        let mut server = reach.begin(&self.manifest.start).await?;
        let offers = server.list().await?.digest() == self.list;
        Ok(offers.then_some(server))
    }

    async fn call(
        &self,
        server: &mut Option<Server>,
        verb: &Verb,
        board: &Board,
        call: Use<'_>,
    ) -> Result<Vec<u8>, Fault> {
        if board.cancel.load(Ordering::Relaxed) {
            return Err(Fault::Cancelled);
        }
        let arguments = serde_json::from_str(call.arguments).map_err(|_| Fault::BadAnswer)?;
        if server.is_none() {
            let begun = self.begin(&board.reach).await.map_err(|_| Fault::Closed)?;
            *server = Some(begun.ok_or(Fault::Changed)?);
        }
        let server = server.as_mut().ok_or(Fault::Closed)?;
        self.compare(server).await?;
        let result = server.call(&verb.tool, arguments).await?;
        let most = call.most.min(self.manifest.start.reply);
        let answer = answer::bytes(result, !verb.fields.is_empty(), most)?;
        // What it was given it may say back.
        match server.hide(&answer) {
            Some(hidden) if hidden.len() > most => Err(Fault::ReplyTooLarge),
            hidden => Ok(hidden.unwrap_or(answer)),
        }
    }

    /// Runs a verb's line. It hears itself of a cancellation, so that it leaves nothing
    /// that runs, and no change half made.
    async fn run(&self, state: &mut State, verb: &Verb, board: &Board, call: Use<'_>) -> Used {
        let State { lines, told, .. } = state;
        let runner = Runner { launcher: &board.reach.launcher, cancel: &board.cancel };
        let tell = |shown: &Names| {
            let mut carries = call.carries.clone();
            carries.join(shown);
            told.tell(&carries)?;
            Ok(told.carried())
        };
        let reply = lines.call((&self.manifest, &self.list, verb), runner, call, tell).await;
        Used { reply, carried: state.told.carried() }
    }

    /// Whether a server that says that its list changed offers what was approved.
    async fn compare(&self, server: &mut Server) -> Result<(), Fault> {
        if !server.has_changed() {
            return Ok(());
        }
        let list = server.list().await.map_err(|_| Fault::Changed)?;
        if list.digest() == self.list { Ok(()) } else { Err(Fault::Changed) }
    }
}

impl Told {
    /// Keeps what a sealed connector is about to be told.
    fn tell(&mut self, carries: &Names) -> std::io::Result<()> {
        let Some((path, told)) = &mut self.0 else { return Ok(()) };
        let mut all = told.clone();
        all.join(carries);
        if all != *told {
            let names: Vec<&str> = [HEADER].into_iter().chain(all.iter()).collect();
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            replace(path, &format!("{}\n", names.join("\n")))?;
            *told = all;
        }
        Ok(())
    }

    fn carried(&self) -> Names {
        self.0.as_ref().map_or(Names::NONE, |(_, told)| told.clone())
    }
}

fn read(path: &Path) -> Result<Names, Unready> {
    let text = match fs::read_to_string(path) {
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Names::NONE),
        text => text.map_err(|_| Unready::Told(path.to_owned()))?,
    };
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(Unready::Told(path.to_owned()));
    }
    let mut names = Names::NONE;
    lines.for_each(|name| names.add(name));
    Ok(names)
}
