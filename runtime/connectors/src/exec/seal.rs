//! Running a line: its output, its time, its room, its end
//!
//! # Invariants
//! - When [`run`] comes back with an end, nothing of the line runs any more.
//! - What a line writes beyond its share is read and dropped, and much of it ends the line.
//!
//! # Not here
//! The processes themselves (`stage`); what becomes of the files (`back`).

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rustix::fs::statvfs;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::{sleep, timeout};

use super::Runner;
use super::place::Place;
use super::stage::{Report, Stage, Watch};
use crate::confine::{Wall, Walls};

/// A line that is to run.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) line: &'a [String],
    pub(super) variables: Vec<(String, OsString)>,
    pub(super) walls: Walls,
    pub(super) seconds: u64,
    /// Bytes of output that are kept.
    pub(super) most: usize,
    /// Bytes that its copy and all that is kept beside may have.
    pub(super) disk: u64,
    pub(super) place: &'a Place,
}

/// A line that ran.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) ended: Ended,
    pub(super) output: Vec<u8>,
    pub(super) errors: Vec<u8>,
    pub(super) truncated: bool,
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself, with this status.
    Exit(i32),
    /// By a signal: it crashed, or reached a limit on memory or computing.
    Signal(i32),
    /// Its time was over.
    Time,
    /// It wrote without end.
    Output,
    /// It filled the disk.
    Disk,
    /// The run was.
    Cancelled,
}

/// Why a line did not run.
#[derive(Debug)]
pub(super) enum Unrun {
    /// The process could not be started.
    Io(io::Error),
    /// A wall could not be raised.
    Wall(Wall),
    /// Nobody said that nothing of it runs any more.
    Lost,
}

/// How often a line is looked after, and how often its files are counted.
const GLANCE: Duration = Duration::from_millis(50);
const COUNT: Duration = Duration::from_secs(1);
/// How long its end may take.
const END: Duration = Duration::from_secs(10);
/// Bytes of output that end a line.
const FLOOD: u64 = 64 << 20;
/// Bytes that a line leaves free on the disk.
const FREE: u64 = 256 << 20;

impl Ended {
    /// The status, if it has one, and a word for what ended it.
    pub(super) const fn told(self) -> (Option<i32>, &'static str) {
        match self {
            Self::Exit(status) => (Some(status), "exit"),
            Self::Signal(_) => (None, "signal"),
            Self::Time => (None, "time"),
            Self::Output => (None, "output"),
            Self::Disk => (None, "disk"),
            Self::Cancelled => (None, "cancelled"),
        }
    }
}

/// Runs a line to its end.
pub(super) async fn run(order: Order<'_>, runner: Runner<'_>) -> Result<Ran, Unrun> {
    let mut running = Running::start(&order, runner).map_err(Unrun::Io)?;
    // It was started, and says nothing any more.
    let (output, errors) = running.pipes().map_err(|_| Unrun::Lost)?;
    let share = order.most / 2;
    let (output, errors) = (Share::new(output, share), Share::new(errors, share));
    let written = AtomicU64::new(0);
    let until = Instant::now() + Duration::from_secs(order.seconds);
    let stopped = tokio::select! {
        _ = async { tokio::join!(output.fill(&written), errors.fill(&written)) } => None,
        why = look_after(&order, runner, until, &written) => Some(why),
    };
    if stopped.is_some() {
        running.stop();
    }
    let report = running.report().await;
    // Without a report something may still run, whatever the line was ended for.
    let ended = match (stopped, report.ok_or(Unrun::Lost)?) {
        (Some(why), _) => why,
        (None, Report::Exit(status)) => Ended::Exit(status),
        (None, Report::Signal(signal)) => Ended::Signal(signal),
        (None, Report::Wall(wall)) => {
            return Err(Wall::of(wall).map_or(Unrun::Lost, Unrun::Wall));
        }
    };
    let ended = match ended {
        // The last file may have been the one too many.
        Ended::Exit(_) | Ended::Signal(_) if order.place.size() > order.disk => Ended::Disk,
        ended => ended,
    };
    let truncated = output.is_cut() || errors.is_cut() || ended == Ended::Output;
    Ok(Ran { ended, output: output.take(), errors: errors.take(), truncated })
}

/// Comes back when a line has to be ended.
async fn look_after(
    order: &Order<'_>,
    runner: Runner<'_>,
    until: Instant,
    written: &AtomicU64,
) -> Ended {
    let began_free = free(&order.place.tree());
    let mut counted = Instant::now();
    loop {
        sleep(GLANCE).await;
        if runner.cancel.load(Ordering::Relaxed) {
            return Ended::Cancelled;
        }
        if Instant::now() >= until {
            return Ended::Time;
        }
        if written.load(Ordering::Relaxed) > FLOOD {
            return Ended::Output;
        }
        if began_free >= FREE && free(&order.place.tree()) < FREE {
            return Ended::Disk;
        }
        if counted.elapsed() >= COUNT {
            if order.place.size() > order.disk {
                return Ended::Disk;
            }
            counted = Instant::now();
        }
    }
}

/// Bytes that are free on a folder's file system.
fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

/// What is read of one pipe.
struct Share {
    pipe: tokio::sync::Mutex<pipe::Receiver>,
    kept: Mutex<(Vec<u8>, bool)>,
    most: usize,
}

impl Share {
    fn new(pipe: pipe::Receiver, most: usize) -> Self {
        Self { pipe: tokio::sync::Mutex::new(pipe), kept: Mutex::default(), most }
    }

    /// Reads to the end.
    async fn fill(&self, written: &AtomicU64) {
        let mut pipe = self.pipe.lock().await;
        let mut part = vec![0; 1 << 16];
        while let Ok(length @ 1..) = pipe.read(&mut part).await {
            written.fetch_add(length as u64, Ordering::Relaxed);
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = self.most.saturating_sub(kept.0.len());
            kept.0.extend_from_slice(part.get(..length.min(room)).unwrap_or_default());
            kept.1 |= length > room;
        }
    }

    fn is_cut(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn take(&self) -> Vec<u8> {
        core::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// The process that watches over a line, which ends with this.
struct Running {
    process: Child,
    control: UnixStream,
}

impl Running {
    fn start(order: &Order<'_>, runner: Runner<'_>) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        let watch =
            Watch { arguments: runner.launcher.arguments.clone(), walls: order.walls.clone() };
        let process = Command::new(&runner.launcher.program)
            .args(&runner.launcher.arguments)
            .arg(Stage::Watch.word())
            .arg(serde_json::to_string(&watch)?)
            .args(order.line)
            .env_clear()
            .envs(order.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(order.place.tree())
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { process, control })
    }

    fn pipes(&mut self) -> io::Result<(pipe::Receiver, pipe::Receiver)> {
        let lost = || io::Error::from(io::ErrorKind::BrokenPipe);
        let output = OwnedFd::from(self.process.stdout.take().ok_or_else(lost)?);
        let errors = OwnedFd::from(self.process.stderr.take().ok_or_else(lost)?);
        Ok((pipe::Receiver::from_owned_fd(output)?, pipe::Receiver::from_owned_fd(errors)?))
    }

    /// Asks for its end, with all that it started.
    fn stop(&self) {
        let _ = self.control.shutdown(Shutdown::Write);
    }

    /// What came of the line, once nothing of it runs any more.
    async fn report(&mut self) -> Option<Report> {
        let control = self.control.try_clone().ok()?;
        control.set_nonblocking(true).ok()?;
        let mut control = tokio::net::UnixStream::from_std(control).ok()?;
        let mut report = Vec::new();
        // Its end is closed with its process.
        timeout(END, control.read_to_end(&mut report)).await.ok()?.ok()?;
        serde_json::from_slice(&report).ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let until = Instant::now() + END;
        while matches!(self.process.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
