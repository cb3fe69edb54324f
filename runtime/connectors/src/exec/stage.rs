//! The two processes between Synapse and a line's program
//!
//! The first stays outside of the walls: it starts the second, takes over what outlives
//! its parent, and ends all of it when the program is over or nobody waits any more. The
//! second raises the walls around itself and becomes the program.
//!
//! # Invariants
//! - All walls stand before the program's first instruction.
//! - The first process reports an end only when nothing that was started below it is left.
//!
//! # Not here
//! What the walls are (`confine`); what becomes of the output (`seal`).

use core::convert::Infallible;
use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_child_subreaper, wait,
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
/// How long it may take until nothing is left: less than `seal` waits for.
const END: Duration = Duration::from_secs(5);
/// How often one more process is looked for before those that were found are ended.
const SCANS: usize = 20;

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
    let program = Pid::from_child(&child);
    thread::spawn(move || {
        // Whoever waits for the line closes its end when they do not any more.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        loop {
            // What cannot be ended is found out below, where all that is left is waited for.
            let _ = end_all(program);
            thread::sleep(PAUSE);
        }
    });
    let mut wall = Vec::new();
    told.read_to_end(&mut wall)?;
    let first = reap(program)?;
    let until = Instant::now() + END;
    // What outlives its parent is this process's child, so without children none is left.
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) if Instant::now() >= until => return Err(io::ErrorKind::TimedOut.into()),
            Ok(None) => {
                end_all(program)?;
                thread::sleep(PAUSE);
            }
            Err(Errno::CHILD) => break,
            Err(why) => return Err(why.into()),
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

/// Ends everything below this process, as far as it is found: all of it is stopped first,
/// so that none starts another while the others are ended.
fn end_all(program: Pid) -> io::Result<()> {
    let mut stopped = BTreeSet::new();
    for _ in 0..SCANS {
        let found = below(getpid().as_raw_pid())?;
        let before = stopped.len();
        for process in &found {
            if process.group == program.as_raw_pid() {
                let _ = kill_process_group(program, Signal::STOP);
            }
            if stopped.insert((process.pid, process.group)) {
                signal(process.pid, Signal::STOP);
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    if stopped.iter().any(|(_, group)| *group == program.as_raw_pid()) {
        let _ = kill_process_group(program, Signal::KILL);
    }
    for (pid, _) in stopped {
        signal(pid, Signal::KILL);
    }
    Ok(())
}

/// Signals what may be gone by now.
fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// A process, as the kernel tells of it.
#[derive(Clone, Copy)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

/// The processes below one, whatever group or session they are in.
fn below(top: i32) -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            all.extend(process(pid)?);
        }
    }
    let (mut found, mut above) = (Vec::new(), vec![top]);
    while let Some(parent) = above.pop() {
        let children = all.iter().filter(|process| process.parent == parent).copied();
        let from = found.len();
        found.extend(children);
        above.extend(found.iter().skip(from).map(|process: &Process| process.pid));
    }
    Ok(found)
}

/// None where it is gone by now.
fn process(pid: i32) -> io::Result<Option<Process>> {
    // A program's name may hold anything, bytes that are no text and closing brackets too.
    let stat = match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Another user's, where /proc hides those; a child that hides is still waited for.
        Err(why) if why.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        Err(why) if why.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
        Err(why) => return Err(why),
    };
    let stat = String::from_utf8_lossy(&stat);
    let told = stat.rsplit_once(") ").and_then(|(_, told)| {
        let mut told = told.split(' ').skip(1);
        Some((told.next()?.parse().ok()?, told.next()?.parse().ok()?))
    });
    let (parent, group) = told.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(Process { pid, parent, group }))
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
