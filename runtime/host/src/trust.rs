//! Endorsement: a person says of one file that it counts as written by them
//!
//! The whole content is shown and asked about, by the rules of every other question.
//! The folder is held meanwhile, so that no run works where the label changes.
//!
//! # Invariants
//! - A yes is for the bytes that were shown, in the file that they were read from: what
//!   changes by then is an error, what changes later counts as from outside again.
//! - The integrity alone is raised. Compartments stay, and no warrant cites the file.
//! - It is recorded before it holds.
//!
//! # Not here
//! Hearing (`human`), how a label is kept (`store`), what it means (the door).

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use synapse_boundary::{Integrity, Said};
use synapse_primitives::hex;
use synapse_primitives::rest::Seen;
use synapse_primitives::store::StoreError;

use crate::human::hear;
use crate::locks::{self, Folder, Held, Purpose};
use crate::render::{self, Terminal};
use crate::store;

/// The record of endorsements in the state folder.
pub const FILE: &str = "trust.log";

/// Files that tell agents how to behave, where a person keeps them.
pub const USUAL: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "SOUL.md", "MEMORY.md"];

/// What came of the wish to endorse a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It counts as written by the person now.
    Trusted,
    /// It did already.
    Already,
    /// They did not say yes.
    Refused,
}

/// Why a file is not endorsed.
#[derive(Debug)]
pub struct TrustError(String);

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TrustError {}

/// Shows a file and asks whether it counts as the person's. The path is whole and
/// without links.
///
/// # Errors
/// Nobody is at a terminal, a run works in the folder, the file is none that can be
/// shown, changed meanwhile, or its label cannot be kept.
pub fn trust(
    state: &Path,
    path: &Path,
    terminal: Terminal,
    patience: Duration,
) -> Result<Came, TrustError> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !terminal.is_seen() {
        return Err(said(
            path,
            "it is shown and asked about at a terminal, standard input and output",
        ));
    }
    let _held = hold(state, path)?;
    let mut file = open(path)?;
    let (seen, bytes) = read(path, &mut file)?;
    let rest = store::settled(state, path, &seen).map_err(|why| unkept(path, &why))?;
    if rest.integrity != Integrity::Ingested {
        return Ok(Came::Already);
    }
    let columns = terminal.columns();
    let mut text = render::wrapped(path.as_os_str().as_encoded_bytes(), columns);
    let names: Vec<String> = rest.names.iter().map(|name| render::line(name, 80)).collect();
    text += &format!(
        "counts as written by others (compartments: {}), and is, {} bytes:\n",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        bytes.len()
    );
    text += &if bytes.is_empty() { "(nothing)\n".into() } else { render::wrapped(&bytes, columns) };
    text += "an agent that has read this file alone does without a question what else only your \
             own words let it do; until the file changes\n";
    let until = Instant::now() + patience;
    let mut stop = || (Instant::now() >= until).then_some(Said::TimedOut);
    if hear(terminal, stdin.as_fd(), &text, ASKS, &mut stop) != Said::Yes {
        return Ok(Came::Refused);
    }
    let now = read(path, &mut file)?;
    if now != (seen, bytes) || look(path)? != seen {
        return Err(said(path, "it changed while it was shown, so nothing was done; look again"));
    }
    record(state, "trust", path, Some(&now.1))?;
    store::vouch(state, path, &seen, Integrity::User).map_err(|why| unkept(path, &why))?;
    Ok(Came::Trusted)
}

/// Says that a file does not count as the person's any longer.
///
/// # Errors
/// A run works in the folder, it is no file, or its label cannot be kept.
pub fn revoke(state: &Path, path: &Path) -> Result<(), TrustError> {
    let _held = hold(state, path)?;
    let seen = look(path)?;
    record(state, "revoke", path, None)?;
    store::vouch(state, path, &seen, Integrity::Ingested).map_err(|why| unkept(path, &why))
}

/// The files of these folders that a person may want to endorse, unless they were told
/// of a folder's before.
///
/// # Errors
/// It cannot be remembered that they were told.
pub fn offers<'a>(
    state: &Path,
    folders: impl Iterator<Item = &'a Path>,
) -> Result<Vec<PathBuf>, TrustError> {
    let mut offers = Vec::new();
    // A folder that cannot be opened is the run's to tell of.
    for folder in folders.filter_map(|folder| fs::canonicalize(folder).ok()) {
        let outside = |path: &PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
                && store::carries(state, path)
                    .is_ok_and(|(content, _)| content.integrity == Integrity::Ingested)
        };
        let before = offers.len();
        if !is_offered(state, &folder) {
            offers.extend(USUAL.iter().map(|name| folder.join(name)).filter(outside));
        }
        if offers.len() > before {
            record(state, "offer", &folder, None)?;
        }
    }
    Ok(offers)
}

/// Takes the file's folder, so that no run works there.
fn hold(state: &Path, path: &Path) -> Result<Held, TrustError> {
    if path.to_str().is_none() {
        return Err(said(path, "its path is not UTF-8, so that no label can be kept; rename it"));
    }
    let folder = Folder::find(path.parent().unwrap_or(path), false)
        .map_err(|why| said(path, &format!("its folder cannot be opened: {why}")))?;
    locks::take(state, "label", Purpose::Label, vec![folder])
        .map_err(|why| TrustError(why.to_string()))
}

fn open(path: &Path) -> Result<File, TrustError> {
    look(path)?;
    // What took the file's place by now is neither followed nor waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    file.map(File::from).map_err(|why| said(path, &format!("it cannot be opened: {why}")))
}

/// What stands under a path now, which must be a file of one name.
fn look(path: &Path) -> Result<Seen, TrustError> {
    let found = fs::symlink_metadata(path);
    let found = found.map_err(|why| said(path, &format!("it cannot be looked at: {why}")))?;
    let seen = store::seen(&found);
    match (found.is_file(), seen.links) {
        (true, 1) => Ok(seen),
        (true, _) => Err(said(
            path,
            "it has several names, and whoever writes to one writes to all; copy it to a file of its own",
        )),
        (false, _) => Err(said(path, "it is no file; endorse files one by one")),
    }
}

/// What is in an open file, while it stays as it is.
fn read(path: &Path, file: &mut File) -> Result<(Seen, Vec<u8>), TrustError> {
    let mut bytes = Vec::new();
    let mut all = || {
        let before = store::seen(&file.metadata()?);
        file.rewind()?;
        file.take(SHOWN + 1).read_to_end(&mut bytes)?;
        Ok((before, store::seen(&file.metadata()?)))
    };
    let (before, after) =
        all().map_err(|why: io::Error| said(path, &format!("it cannot be read: {why}")))?;
    if before != after {
        return Err(said(path, "it changed while it was read, so nothing was done; look again"));
    }
    if bytes.len() as u64 > SHOWN {
        return Err(said(path, "it has more than 1 MiB, which nobody reads to the end; split it"));
    }
    Ok((after, bytes))
}

/// Writes a line to the record, on the disk before anything holds.
fn record(state: &Path, what: &str, path: &Path, bytes: Option<&[u8]>) -> Result<(), TrustError> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let digest = bytes.map(|bytes| hex(&Sha256::digest(bytes)));
    let line = json!({
        "synapse-trust": VERSION, "at": at, "what": what,
        "path": path.to_string_lossy(), "sha256": digest,
    });
    let write = || {
        fs::create_dir_all(state)?;
        let mut options = File::options();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(state.join(FILE))?;
        file.lock()?;
        let mut all = Vec::new();
        file.read_to_end(&mut all)?;
        // A line that was cut off stays one of its own.
        let cut = if all.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
        file.write_all(format!("{cut}{line}\n").as_bytes())?;
        file.sync_all()
    };
    write().map_err(|why| {
        said(&state.join(FILE), &format!("it cannot be recorded: {why}; check its permissions"))
    })
}

fn is_offered(state: &Path, folder: &Path) -> bool {
    let Ok(file) = File::open(state.join(FILE)) else { return false };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let offer = json!({
        "synapse-trust": VERSION, "what": "offer", "path": folder.to_string_lossy(),
    });
    let says = |line: &Value, key: &str| line.get(key) == offer.get(key);
    lines.any(|line| ["synapse-trust", "what", "path"].iter().all(|key| says(&line, key)))
}

fn unkept(path: &Path, why: &StoreError) -> TrustError {
    said(path, &format!("its label cannot be kept: {why}; use the version that wrote the store"))
}

fn said(path: &Path, why: &str) -> TrustError {
    TrustError(format!("{}: {why}", render::line(path.as_os_str().as_encoded_bytes(), 200)))
}

const ASKS: &str = "yes and Enter takes it as yours; anything else is a no: ";
const VERSION: u64 = 1;
/// Bytes that a person can be asked about.
const SHOWN: u64 = 1 << 20;
