//! The two processes between Synapse and a line's program
//!
//! The first stays outside of the walls: it starts the second, takes over what outlives
//! its parent, and ends all of it when the program is over or nobody waits any more. The
//! second raises the walls around itself and becomes the program.
//!
//! # Invariants
//! - All walls stand before the program's first instruction.
//! - When the first process is gone, so is everything that was started below it.
//!
//! # Not here
//! What the walls are (`confine`); what becomes of the output (`seal`).

use core::convert::Infallible;
use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};
use serde::{Deserialize, Serialize};

use crate::confine::{Wall, Walls, close_descriptors, close_files, filter, limit};

/// Which process this one is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// That which watches over a line.
    Watch,
    /// That which becomes the program.
    Become,
}

/// What the watching process is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Watch {
    /// What this program is started again with, before its own words.
    pub(super) arguments: Vec<String>,
    pub(super) walls: Walls,
}

/// What came of a line, as the watching process says it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// It ended with this status.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
    /// It was not started.
    Wall(i32),
}

/// How often what is left is looked for.
const PAUSE: Duration = Duration::from_millis(2);

impl Stage {
    /// The word that asks for it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Watch => "--watch",
            Self::Become => "--become",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Watch, Self::Become].into_iter().find(|stage| stage.word() == word)
    }

    /// Is that process, to its end; with the status to end with.
    pub(crate) fn enter(self, arguments: impl Iterator<Item = String>) -> u8 {
        match self {
            Self::Watch => watch(arguments).map_or(Wall::Program as u8, |()| 0),
            Self::Become => match become_program(arguments) {
                Err(wall) => wall as u8,
                Ok(never) => match never {},
            },
        }
    }
}

fn watch(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let order: Watch = serde_json::from_str(&arguments.next().unwrap_or_default())?;
    set_child_subreaper(Some(getpid()))?;
    let (mut told, tell) = io::pipe()?;
    let child = Command::new(std::env::current_exe()?)
        .args(order.arguments)
        .arg(Stage::Become.word())
        .arg(serde_json::to_string(&order.walls)?)
        .args(arguments)
        .stdin(Stdio::from(OwnedFd::from(tell)))
        .process_group(0)
        .spawn()?;
    thread::spawn(|| {
        // Whoever waits for the line closes its end when they do not any more.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        loop {
            end_all();
            thread::sleep(PAUSE);
        }
    });
    let mut wall = Vec::new();
    told.read_to_end(&mut wall)?;
    let first = reap(Pid::from_child(&child))?;
    // What outlives its parent is this process's child.
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => {
                end_all();
                thread::sleep(PAUSE);
            }
            Err(_) => break,
        }
    }
    let report = match (wall.first(), first.exit_status(), first.terminating_signal()) {
        (Some(wall), ..) => Report::Wall(i32::from(*wall)),
        (None, Some(status), _) => Report::Exit(status),
        (None, None, signal) => Report::Signal(signal.unwrap_or_default()),
    };
    let stdin = io::stdin();
    let mut answer = UnixStream::from(stdin.as_fd().try_clone_to_owned()?);
    answer.write_all(serde_json::to_string(&report)?.as_bytes())
}

/// Waits for the program, and takes note of nothing else that ends.
fn reap(program: Pid) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty())? {
            Some((pid, status)) if pid == program => return Ok(status),
            Some(_) | None => {}
        }
    }
}

/// Ends everything below this process.
fn end_all() {
    for pid in below(getpid()) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The processes below one, whatever group or session they are in.
fn below(top: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let parents: Vec<(i32, i32)> =
        entries.filter_map(number).filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let (mut found, mut at) = (vec![top.as_raw_nonzero().get()], 0);
    while let Some(above) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        at = at.saturating_add(1);
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A program's name may hold anything, closing brackets too.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Becomes the program behind its walls; says through its input which wall failed.
fn become_program(arguments: impl Iterator<Item = String>) -> Result<Infallible, Wall> {
    let stdin = io::stdin();
    let failed = |report: BorrowedFd<'_>, wall: Wall| {
        let _ = rustix::io::write(report, &[wall as u8]);
        wall
    };
    close_descriptors().map_err(|_| failed(stdin.as_fd(), Wall::Descriptors))?;
    let report = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)
        .map_err(|_| failed(stdin.as_fd(), Wall::Descriptors))?;
    raise(arguments).map_err(|wall| failed(report.as_fd(), wall))
}

fn raise(mut arguments: impl Iterator<Item = String>) -> Result<Infallible, Wall> {
    let walls = arguments.next().and_then(|walls| serde_json::from_str::<Walls>(&walls).ok());
    let walls = walls.ok_or(Wall::Request)?;
    let program = arguments.next().ok_or(Wall::Request)?;
    let program = Path::new(&program);
    let nothing = std::fs::File::open("/dev/null").map_err(|_| Wall::Descriptors)?;
    nix::unistd::dup2_stdin(nothing).map_err(|_| Wall::Descriptors)?;
    limit(&walls).map_err(|_| Wall::Limits)?;
    close_files(&walls, program)?;
    filter(walls.network).map_err(|_| Wall::Calls)?;
    // Comes back with an error only.
    let _ = Command::new(program).args(arguments).exec();
    Err(Wall::Program)
}
