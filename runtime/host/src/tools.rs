//! The connectors of a run, and asking a human about one
//!
//! # Invariants
//! - A grant that names a connector which was not approved as it is now does not run.
//!
//! # Not here
//! Servers and their walls (`synapse-connectors`), what a grant's entry means (the
//! kernel).

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::collections::BTreeSet;
use std::env;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use synapse_boundary::Said;
use synapse_connectors::approval::{Approved, Folder, Unapproved};
use synapse_connectors::board::Board;
use synapse_connectors::confine::Launcher;
use synapse_connectors::exec;
use synapse_connectors::list::List;
use synapse_connectors::server::Server;
use synapse_connectors::web::Web;
use synapse_kernel::manifest::{Manifest, Start};
use synapse_secrets::{Given, Vault};
use tokio::runtime::Runtime;

use crate::human::hear;
use crate::log::state_dir;
use crate::net::Client;
use crate::render::{self, Terminal};

/// The hidden command that raises the walls around a server.
pub const CONFINE: &str = "confine";

/// Where the manifests of all connectors stand: `$XDG_CONFIG_HOME/synapse/tools`.
///
/// # Errors
/// Neither that variable nor `HOME` names an absolute path.
pub fn settings() -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "neither XDG_CONFIG_HOME nor HOME is an absolute path; set one of them",
            )
        })?;
    Ok(settings.join("synapse/tools"))
}

/// Starts a server behind its walls and asks what it offers.
///
/// # Errors
/// It does not begin, or does not say; in words.
pub fn inspect(start: &Start) -> Result<List, String> {
    let launcher = launcher(given(named(start))?)?;
    let runtime = runtime().map_err(|why| format!("the executor cannot be started: {why}"))?;
    let web = web(Arc::default())?;
    let list = runtime.block_on(async {
        let mut server = match &*start.url {
            "" => Server::start(start, &launcher).await?,
            _ => Server::reach(start, &launcher, &web).await?,
        };
        server.list().await
    });
    list.map_err(|why| why.to_string())
}

/// What a connector offers: its server's list, or the programs of its lines.
///
/// # Errors
/// As [`inspect`]; a program is not there.
pub fn offers(manifest: &Manifest) -> Result<List, String> {
    if manifest.start.lines { exec::offers(manifest) } else { inspect(&manifest.start) }
}

/// Shows a text to its end, and says whether a yes was typed after it.
///
/// # Errors
/// Nobody is at a terminal.
pub fn agreed(text: &str, terminal: Terminal, patience: Duration) -> Result<bool, String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !terminal.is_seen() {
        return Err("it is shown and asked about at a terminal, standard input and output".into());
    }
    let until = Instant::now() + patience;
    let mut stop = || (Instant::now() >= until).then_some(Said::TimedOut);
    let text = render::wrapped(text.as_bytes(), terminal.columns());
    Ok(hear(terminal, stdin.as_fd(), &text, ASKS, &mut stop) == Said::Yes)
}

const ASKS: &str = "yes and Enter approves it; anything else is a no: ";

/// The connectors that a grant names: their manifests, and the lists that they have to
/// offer.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) manifests: Vec<Manifest>,
    lists: Vec<[u8; 32]>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    tools: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    tool: String,
}

impl Named {
    /// Those of a grant's text. A server that nobody added answers nothing.
    pub(crate) fn find(grant: &str) -> Result<Self, String> {
        // What is wrong with it, its reader says.
        let Ok(file) = toml::from_str::<File>(grant) else { return Ok(Self::default()) };
        let servers = file.tools.iter().filter_map(|entry| Some(entry.tool.split_once('/')?.0));
        let servers: BTreeSet<&str> = servers.collect();
        let mut named = Self::default();
        for server in servers {
            let settings = settings().map_err(|why| format!("no connector can be found: {why}"))?;
            match Folder::of(&settings, server).approved() {
                Ok(Approved { manifest, list }) => {
                    named.manifests.push(manifest);
                    named.lists.push(list);
                }
                Err(Unapproved::Missing) => {}
                Err(why) => {
                    let server = render::line(server.as_bytes(), 80);
                    return Err(format!("connector `{server}`: {why}"));
                }
            }
        }
        Ok(named)
    }

    /// The names of the secrets that they need.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.manifests.iter().flat_map(|manifest| named(&manifest.start))
    }

    /// Starts them all, where there are any, each with its secrets.
    pub(crate) fn start(
        self,
        runtime: &Runtime,
        secrets: Arc<Given>,
        cancel: Arc<AtomicBool>,
    ) -> Result<Option<Board>, String> {
        if self.manifests.is_empty() {
            return Ok(None);
        }
        let told = state_dir().map_err(|why| why.to_string())?.join("told");
        let both = self.manifests.into_iter().zip(self.lists);
        let approved = both.map(|(manifest, list)| Approved { manifest, list }).collect();
        let launcher = launcher(secrets)?;
        let web = web(Arc::clone(&cancel))?;
        let board = Board::new(approved, &told, launcher, cancel).map_err(|why| why.to_string())?;
        let board = board.with_web(web);
        runtime.block_on(board.begin()).map_err(|why| why.to_string())?;
        Ok(Some(board))
    }
}

/// What agents may not see: where manifests and approvals stand, if there are any.
pub(crate) fn own() -> Option<PathBuf> {
    settings().ok().filter(|path: &PathBuf| Path::is_dir(path))
}

/// What drives a run.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().enable_time().build()
}

fn launcher(secrets: Arc<Given>) -> Result<Launcher, String> {
    let program = env::current_exe();
    let program = program.map_err(|why| format!("this program cannot be found: {why}"))?;
    Ok(Launcher { program, arguments: vec![CONFINE.to_owned()], secrets })
}

/// The names of the secrets that a server needs.
fn named(start: &Start) -> impl Iterator<Item = &str> {
    let blanks = start.secrets.iter().filter_map(|(_, value)| value.split_once("{secret:"));
    blanks.filter_map(|(_, rest)| rest.strip_suffix('}'))
}

/// The secrets of these names, of all that are kept. Where none is named, none is read.
pub(crate) fn given<'n>(names: impl Iterator<Item = &'n str>) -> Result<Arc<Given>, String> {
    let names: BTreeSet<&str> = names.collect();
    if names.is_empty() {
        return Ok(Arc::default());
    }
    let state = state_dir().map_err(|why| why.to_string())?;
    let kept = Vault::of(&state).read().map_err(|why| why.to_string())?;
    Ok(Arc::new(Given::new(kept, |name| names.contains(name))))
}

/// The network for servers at an address.
fn web(cancel: Arc<AtomicBool>) -> Result<Arc<dyn Web>, String> {
    let client = Client::new(cancel).map_err(|why| format!("TLS cannot be had: {why}"))?;
    Ok(Arc::new(client))
}
