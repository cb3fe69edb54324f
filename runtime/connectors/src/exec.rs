//! Lines in place of a server: programs that a human approved word by word
//!
//! Coding needs programs: tests, compilers, formatters, git. None of them is trusted, and
//! neither is what they build and start. So a line is run in a copy of the folder,
//! without a network, and what it changed there is brought back through the platform's
//! own journaled operations, file by file, once nothing of it runs any more.
//!
//! # Invariants
//! - Nothing passes a shell, and no word that an agent puts into a line begins with `-`.
//! - A program is the one that was approved, to the last byte of its file.
//! - What a line changed is brought back whole or not at all, file by file, and only after
//!   all that it started is gone.
//!
//! # Reading order
//! `line` (what is run), `copy`, `place` and `inside` (the folder that it is run in),
//! `seal` and `stage` (running it), `back` (what it changed), `git` (a repository in it),
//! `template`, `offer`.
//!
//! # Not here
//! Which paths a call may reach, and the label of what it did (`synapse-primitives`).

mod back;
mod copy;
mod git;
mod inside;
mod line;
mod offer;
mod place;
mod seal;
mod stage;
pub mod template;

use core::sync::atomic::AtomicBool;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use synapse_kernel::manifest::{Effect, FOLDER, Manifest, Start, Verb};
use synapse_primitives::platform::Use;
use synapse_primitives::rest::Names;
use synapse_primitives::tree::Reach;
use synapse_reply::Fault;

use self::back::Back;
use self::copy::Copy;
use self::place::Place;
use self::seal::{Ended, Order, Ran, Unrun};
use crate::confine::{Launcher, Walls};
use crate::list::List;
pub use offer::offers;
pub use place::{Holds, Old};
pub(crate) use stage::Stage;

/// The lines of one connector.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Where the copies of folders are kept, all connectors' together.
    base: PathBuf,
    /// By the folder that each is a copy of.
    copies: BTreeMap<String, Copy>,
}

/// Who runs a line, and until when.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'a> {
    pub(crate) launcher: &'a Launcher,
    pub(crate) cancel: &'a AtomicBool,
}

/// What is told once a line may have left something that runs.
const LOST: &str = "a line of this connector may have left programs that still run and could not be \
                    ended; nothing of it was brought back, its copy is given up, and the connector \
                    runs no line any more in this run: end those programs, then start the run anew";

/// Why a line was not run, in words for who called it, or what befell this machine.
enum Unfit {
    Told(String),
    Fault(Fault),
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self::Told(why)
    }
}

impl Lines {
    pub(crate) fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), copies: BTreeMap::new() }
    }

    /// Runs a verb's line and brings back what it changed. `tell` keeps what the line is
    /// about to be shown, and says what it was ever shown.
    pub(crate) async fn call(
        &mut self,
        (manifest, list, verb): (&Manifest, &[u8; 32], &Verb),
        runner: Runner<'_>,
        call: Use<'_>,
        tell: impl FnOnce(&Names) -> io::Result<Names>,
    ) -> Result<Vec<u8>, Fault> {
        match self.run((manifest, list, verb), runner, call, tell).await {
            Ok(reply) => Ok(reply),
            Err(Unfit::Told(why)) => Ok(format!("{{\"error\":true}}\n{why}\n").into_bytes()),
            Err(Unfit::Fault(fault)) => Err(fault),
        }
    }

    async fn run(
        &mut self,
        (manifest, list, verb): (&Manifest, &[u8; 32], &Verb),
        runner: Runner<'_>,
        call: Use<'_>,
        tell: impl FnOnce(&Names) -> io::Result<Names>,
    ) -> Result<Vec<u8>, Unfit> {
        let arguments: Map<String, Value> =
            serde_json::from_str(call.arguments).map_err(|_| Unfit::Fault(Fault::BadAnswer))?;
        let root = line::folder(&arguments)?;
        line::fill(verb, &arguments, root, |_| true)?;
        let now = offers(manifest).map_err(Unfit::Told)?;
        if List::digest(&now) != *list {
            return Err(Unfit::Fault(Fault::Changed));
        }
        if self.copies.values().any(|copy| copy.place.is_lost()) {
            return Err(Unfit::Told(LOST.to_owned()));
        }
        let start = &manifest.start;
        let copy = self.copy(&manifest.server, root, call)?;
        copy.follow(call.tree, root, start.disk, runner.cancel).await?;
        let told = tell(&call.tree.shown()).map_err(|_| Unfit::Fault(Fault::Io))?;
        let words = line::fill(verb, &arguments, root, |path| copy.has(path))?;
        copy.place.begin()?;
        let ran = seal::run(order(start, &words, &copy.place, call.most), runner).await;
        if !matches!(ran, Err(Unrun::Lost)) {
            copy.place.end()?;
        }
        let ran = ran.map_err(|why| unrun(&why, &words))?;
        if matches!(ran.ended, Ended::Cancelled) {
            return Err(Unfit::Fault(Fault::Cancelled));
        }
        if matches!(ran.ended, Ended::Disk) {
            copy.empty()?;
        }
        let back = match (&ran.ended, verb.effect) {
            (Ended::Exit(_), effect) if effect != Effect::Read => {
                let reach = if git::is_shipped(&verb.line) { Reach::History } else { Reach::Plain };
                back::bring(copy, call.tree, root, &told, reach).await?
            }
            _ => Back::default(),
        };
        // What was left in the copy stands nowhere else.
        if matches!(ran.ended, Ended::Exit(_)) && back.left.is_empty() {
            copy.place.settle()?;
        }
        Ok(reply(&ran, &back, (&copy.place.tree(), root), call.most.min(start.reply)))
    }

    /// The copy of a folder, made for the first call in it.
    fn copy(&mut self, server: &str, root: &str, call: Use<'_>) -> Result<&mut Copy, String> {
        let host = call.tree.host(root).ok_or_else(|| {
            format!("argument `{FOLDER}` is no folder that is mounted; name one below a mount")
        })?;
        match self.copies.entry(host) {
            std::collections::btree_map::Entry::Occupied(known) => Ok(known.into_mut()),
            std::collections::btree_map::Entry::Vacant(free) => {
                let copy = Copy::open(&self.base, server, free.key())?;
                Ok(free.insert(copy))
            }
        }
    }
}

fn order<'a>(start: &Start, line: &'a [String], place: &'a Place, most: usize) -> Order<'a> {
    let inherited = start.environment.iter();
    let inherited = inherited.filter_map(|name| Some((name.clone(), std::env::var_os(name)?)));
    let cache = place.cache();
    let set = start.set.iter().map(|(name, value)| {
        let value = value.strip_prefix("{cache}").map_or_else(
            || OsString::from(value),
            |rest| {
                let mut path = OsString::from(&cache);
                path.push(rest);
                path
            },
        );
        (name.clone(), value)
    });
    let own = [("HOME", place.home()), ("TMPDIR", place.spare())];
    let own = own.into_iter().map(|(name, path)| (name.to_owned(), path.into_os_string()));
    let named = inherited.chain(own).chain(set).filter(|(name, _)| git::admits(name));
    let variables = named.chain(git::variables(&place.tree())).collect();
    let write = [place.tree(), place.cache(), place.home(), place.spare()];
    let text = |path: PathBuf| path.into_os_string().into_string().unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let walls = Walls {
        read: start.read.clone(),
        write: write.map(text).to_vec(),
        network: false,
        memory: start.memory,
        computing: Some(start.seconds.saturating_mul(cores)),
    };
    let most = most.min(start.reply);
    Order { line, variables, walls, seconds: start.seconds, most, disk: start.disk, place }
}

fn unrun(why: &Unrun, line: &[String]) -> Unfit {
    let program = line.first().map_or("", String::as_str);
    match why {
        Unrun::Io(why) => {
            Unfit::Told(format!("the line's process cannot be started: {why}; check this machine"))
        }
        Unrun::Wall(wall) => Unfit::Told(format!("{program} was not started: {wall}")),
        Unrun::Lost => Unfit::Told(LOST.to_owned()),
    }
}

/// A line of JSON about the run, then what it wrote.
fn reply(ran: &Ran, back: &Back, names: (&Path, &str), most: usize) -> Vec<u8> {
    let shown = |bytes: &[u8]| line::renamed(bytes, names);
    let (mut output, mut errors) = (shown(&ran.output), shown(&ran.errors));
    let mut truncated = ran.truncated;
    let head = |output: &[u8], errors: &[u8], truncated: bool| {
        let (status, ended) = ran.ended.told();
        let head = json!({
            "status": status, "ended": ended, "stdout": output.len(), "stderr": errors.len(),
            "truncated": truncated, "changed": back.changed, "left": back.left,
        });
        format!("{head}\n")
    };
    let mut first = head(&output, &errors, truncated);
    let room = most.saturating_sub(first.len());
    if output.len().saturating_add(errors.len()) > room {
        // A few digits of the lengths may go.
        truncated = true;
        let each = room.saturating_sub(16) / 2;
        output.truncate(each);
        errors.truncate(each);
        first = head(&output, &errors, truncated);
    }
    let mut reply = first.into_bytes();
    reply.append(&mut output);
    reply.append(&mut errors);
    reply
}
