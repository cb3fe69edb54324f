//! Where a run's records are kept: one file, and when its bytes are safe.
//!
//! Frames wait in memory as long as their durability permits, because one write
//! a record would be most of the cost of a call. A thread writes what waits
//! every 100 ms, so that a run that is killed loses no more than that.
//!
//! # Invariants
//! - I3: after the first failure no frame is taken, and what was promised before
//!   it was kept.
//! - A log is created, never opened: no run writes into another's.
//!
//! # Not here
//! What a frame says (`synapse_kernel::record`).

use core::fmt;
use core::time::Duration;
use std::env;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use synapse_kernel::record::{Durability, Sink, SinkFailed};

/// The name of a log in its run's directory.
pub const FILE: &str = "log";

/// Where everything of Synapse's own stands: `$XDG_STATE_HOME/synapse`.
///
/// # Errors
/// Neither that variable nor `HOME` names an absolute path.
pub fn state_dir() -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "neither XDG_STATE_HOME nor HOME is an absolute path; set one of them",
            )
        })?;
    Ok(state.join("synapse"))
}

/// Where the directories of runs stand, in [`state_dir`].
///
/// # Errors
/// As for [`state_dir`].
pub fn runs_dir() -> io::Result<PathBuf> {
    Ok(state_dir()?.join("runs"))
}

/// Makes the directory of a new run, named by the time and eight random digits.
///
/// # Errors
/// What the host answered.
pub fn new_run_dir() -> io::Result<PathBuf> {
    let runs = runs_dir()?;
    DirBuilder::new().recursive(true).mode(0o700).create(&runs)?;
    let mut random = [0; 2];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // The newest run has the last name, also of several within a second.
    let unique = now.subsec_micros() << 12 | u32::from(u16::from_be_bytes(random) & 0xfff);
    let dir = runs.join(format!("{}-{unique:08x}", utc(now.as_secs())));
    DirBuilder::new().mode(0o700).create(&dir)?;
    File::open(&runs)?.sync_all()?;
    Ok(dir)
}

/// A log file being written.
pub struct FileSink {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
}

impl FileSink {
    /// Creates the log of the run whose directory this is, and starts its thread.
    ///
    /// # Errors
    /// The file exists, or what else the host answered.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(FILE))?;
        // Until the run ends, so that nobody undoes what still goes on.
        file.try_lock()?;
        // The name must be as safe as the records.
        File::open(dir)?.sync_all()?;
        Self::of(file)
    }

    fn of(file: File) -> io::Result<Self> {
        let shared = Arc::new(Shared { file, waiting: Mutex::default(), stop: Condvar::new() });
        let flusher = thread::Builder::new().name("log".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.flush_until_stopped()
        })?;
        Ok(Self { shared, flusher: Some(flusher) })
    }

    /// Puts every frame taken so far on the disk.
    ///
    /// # Errors
    /// The disk failed, now or before.
    pub fn flush(&self) -> Result<(), SinkFailed> {
        self.shared.store(&mut self.shared.lock(), Durability::Synced)
    }

    /// Why the log takes no more frames, for people.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }
}

impl Sink for FileSink {
    fn append(&mut self, frame: &[u8], durability: Durability) -> Result<(), SinkFailed> {
        let mut waiting = self.shared.lock();
        if waiting.failure.is_some() {
            return Err(SinkFailed);
        }
        waiting.frames.extend_from_slice(frame);
        self.shared.store(&mut waiting, durability)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.stop.notify_all();
        if let Some(flusher) = self.flusher.take() {
            // A thread that panicked has nothing more to write.
            drop(flusher.join());
        }
        // A failure is kept by nobody: whoever must know it calls `flush`.
        let _ = self.flush();
    }
}

impl fmt::Debug for FileSink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FileSink").field("file", &self.shared.file).finish_non_exhaustive()
    }
}

struct Shared {
    file: File,
    waiting: Mutex<Waiting>,
    stop: Condvar,
}

#[derive(Default)]
struct Waiting {
    frames: Vec<u8>,
    /// Written since the disk was last asked to confirm.
    unconfirmed: bool,
    stopped: bool,
    failure: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // What waits is whole after each statement that changes it.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, waiting: &mut Waiting, durability: Durability) -> Result<(), SinkFailed> {
        if waiting.failure.is_some() {
            return Err(SinkFailed);
        }
        let due = durability != Durability::Soon || waiting.frames.len() >= FULL;
        let stored = if due { self.write(waiting) } else { Ok(()) };
        let stored = stored.and_then(|()| {
            if durability == Durability::Synced && waiting.unconfirmed {
                self.file.sync_data()?;
                waiting.unconfirmed = false;
            }
            Ok(())
        });
        stored.map_err(|why| {
            waiting.failure = Some(why.to_string());
            SinkFailed
        })
    }

    fn write(&self, waiting: &mut Waiting) -> io::Result<()> {
        if waiting.frames.is_empty() {
            return Ok(());
        }
        (&self.file).write_all(&waiting.frames)?;
        waiting.frames.clear();
        waiting.unconfirmed = true;
        Ok(())
    }

    fn flush_until_stopped(&self) {
        let mut waiting = self.lock();
        while !waiting.stopped && waiting.failure.is_none() {
            (waiting, _) =
                self.stop.wait_timeout(waiting, PERIOD).unwrap_or_else(PoisonError::into_inner);
            if self.store(&mut waiting, Durability::Written).is_err() || !waiting.unconfirmed {
                continue;
            }
            // The disk takes its time, and a call must not wait for it. What is
            // written meanwhile is unconfirmed again.
            waiting.unconfirmed = false;
            drop(waiting);
            let synced = self.file.sync_data();
            waiting = self.lock();
            if let Err(why) = synced {
                waiting.failure = Some(why.to_string());
            }
        }
    }
}

/// `YYYYMMDD-HHMMSS` of so many seconds since 1970.
fn utc(seconds: u64) -> String {
    let ([year, month, date], [hour, minute, second]) = calendar(seconds);
    format!("{year:04}{month:02}{date:02}-{hour:02}{minute:02}{second:02}")
}

/// The same for people.
#[must_use]
pub fn date(seconds: u64) -> String {
    let ([year, month, date], [hour, minute, second]) = calendar(seconds);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day; hour, minute and second.
fn calendar(seconds: u64) -> ([u64; 3], [u64; 3]) {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from March, so that the leap day is a year's last.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    ([year, month, date], [second / 3_600, second / 60 % 60, second % 60])
}

/// Bytes that are written without waiting for the thread.
const FULL: usize = 64 * 1024;
const PERIOD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::{FILE, FULL, FileSink, PERIOD, utc};
    use std::fs::{self, File, OpenOptions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;
    use synapse_kernel::record::{Durability, Sink as _};

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_782_400, "20000229-000000"),
            (951_868_800, "20000301-000000"),
            (1_798_761_599, "20261231-235959"),
            (4_107_542_400, "21000301-000000"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    #[test]
    fn frames_are_in_the_file_when_their_durability_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(FILE);
        let length = || fs::metadata(&file).unwrap().len();
        let mut sink = FileSink::create(dir.path()).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        sink.append(b"written", Durability::Written).unwrap();
        assert_eq!(length(), 7);
        sink.append(b"synced", Durability::Synced).unwrap();
        assert_eq!(length(), 13);
        sink.append(&vec![0; FULL], Durability::Soon).unwrap();
        assert_eq!(length(), 13 + 65_536);
        sink.append(b"soon", Durability::Soon).unwrap();
        for _ in 0..50 {
            if length() == 17 + 65_536 {
                break;
            }
            thread::sleep(PERIOD);
        }
        assert_eq!(length(), 17 + 65_536);
        sink.append(b"last", Durability::Soon).unwrap();
        drop(sink);
        assert_eq!(length(), 21 + 65_536);
        assert!(FileSink::create(dir.path()).is_err(), "a log is never opened again");
    }

    #[test]
    fn after_a_failure_nothing_is_taken() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut sink = FileSink::of(full).unwrap();
        assert!(sink.append(b"a", Durability::Written).is_err());
        assert!(sink.append(b"b", Durability::Soon).is_err());
        assert!(sink.flush().is_err());
        assert!(sink.failure().is_some());
    }

    #[test]
    fn a_failure_of_the_thread_is_told_to_the_next_append() {
        let mut sink = FileSink::of(File::open("/dev/null").unwrap()).unwrap();
        sink.append(b"a", Durability::Soon).unwrap();
        for _ in 0..50 {
            if sink.failure().is_some() {
                break;
            }
            thread::sleep(PERIOD);
        }
        assert!(sink.append(b"b", Durability::Soon).is_err());
    }
}
