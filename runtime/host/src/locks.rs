//! Who works in which folders: one run at a time, or many that only read.
//!
//! Each run that goes on has a file here that says which folders it works in, and
//! holds the file's lock for as long as its process lives: a crash gives the folders
//! free. Whoever wants folders compares them with those of every other live run.
//!
//! # Invariants
//! - No two runs of one state folder work in folders that overlap, under whatever
//!   names, unless both only read.
//! - What a live run wrote here is understood, or nothing is given out.
//!
//! # Not here
//! What a run may do in its folders (the door). Other users and other state folders:
//! they are not seen.

use core::error::Error;
use core::fmt;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::log::date;
use crate::render;

/// The version of what stands in a lock's file.
const VERSION: u64 = 1;

/// What somebody does in the folders that they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// An agent runs.
    Run,
    /// A run is being undone.
    Undo,
    /// A person changes a file's label.
    Label,
}

impl Purpose {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Undo => "undo",
            Self::Label => "label",
        }
    }
}

/// A folder of the host that somebody works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Its path, for people.
    pub host: String,
    /// Whether nothing in it may change.
    pub read_only: bool,
    /// Device and inode of the folder, then of each that it stands in.
    line: Vec<(u64, u64)>,
    /// Its file system and where it stands in that, if the machine says so: a folder
    /// that is mounted at two places has two lines and one such place.
    place: Option<(String, PathBuf)>,
}

impl Folder {
    /// The folder at this path.
    ///
    /// # Errors
    /// There is none, or the host does not let it be looked at.
    pub fn find(path: &Path, read_only: bool) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        let line = path.ancestors().map(identity).collect::<io::Result<_>>()?;
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let place = place(&mounts, &path);
        Ok(Self { host: path.to_string_lossy().into_owned(), read_only, line, place })
    }

    fn conflicts(&self, other: &Self) -> bool {
        let inside = |inner: &Self, outer: &Self| {
            outer.line.first().is_some_and(|outer| inner.line.contains(outer))
                || match (&inner.place, &outer.place) {
                    (Some(inner), Some(outer)) => {
                        inner.0 == outer.0 && inner.1.starts_with(&outer.1)
                    }
                    _ => false,
                }
        };
        let shared = self.read_only && other.read_only;
        !shared && (inside(self, other) || inside(other, self))
    }
}

/// Somebody who works in folders now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    version: u64,
    /// The name of its run.
    pub run: String,
    /// What goes on.
    pub purpose: Purpose,
    /// Its process.
    pub pid: u32,
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// The folders.
    pub folders: Vec<Folder>,
}

/// Why folders were not given.
#[derive(Debug)]
pub enum LockError {
    /// Somebody works in one of them, or around or inside it.
    Held {
        /// What was wanted.
        wanted: String,
        /// What is held.
        held: String,
        /// By whom.
        by: Box<Holder>,
    },
    /// A live run wrote what this version does not understand.
    Unknown {
        /// The file.
        file: PathBuf,
    },
    /// The host did not let it be done.
    Host {
        /// The folder of locks.
        dir: PathBuf,
        /// What it answered.
        why: io::Error,
    },
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |text: &str| render::line(text.as_bytes(), 200);
        match self {
            Self::Held { wanted, held, by } => {
                let run = show(&by.run);
                let what = match by.purpose {
                    Purpose::Run => format!("run {run} works in"),
                    Purpose::Undo => format!("run {run} is being undone in"),
                    Purpose::Label => "a file is being endorsed in".to_owned(),
                };
                write!(
                    f,
                    "{}: the folder is in use: {what} {} (process {}, since {}); \
                     wait until it has ended, or end it with `synapse cancel`",
                    show(wanted),
                    show(held),
                    by.pid,
                    date(by.since),
                )
            }
            Self::Unknown { file } => write!(
                f,
                "{}: a run goes on that another version began, and which folders it works in is \
                 not understood; wait until it has ended",
                show(&file.to_string_lossy())
            ),
            Self::Host { dir, why } => write!(
                f,
                "the locks of folders in {} cannot be used: {why}; check its permissions",
                show(&dir.to_string_lossy())
            ),
        }
    }
}

impl Error for LockError {}

/// Folders that are held until this is dropped or the process ends.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    _file: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without its lock the file says nothing, and whoever looks next removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes folders for a run.
///
/// # Errors
/// Somebody who lives works in one of them, or the host does not let it be asked.
pub fn take(
    state: &Path,
    run: &str,
    purpose: Purpose,
    folders: Vec<Folder>,
) -> Result<Held, LockError> {
    let locks = Locks::open(state)?;
    for by in locks.live()? {
        for held in &by.folders {
            if let Some(wanted) = folders.iter().find(|wanted| wanted.conflicts(held)) {
                let (wanted, held) = (wanted.host.clone(), held.host.clone());
                return Err(LockError::Held { wanted, held, by: Box::new(by) });
            }
        }
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (run, pid) = (run.to_owned(), process::id());
    let name = format!("{run}.{}.{pid}", purpose.name());
    locks.write(&name, &Holder { version: VERSION, run, purpose, pid, since, folders })
}

/// Who works in folders now, the oldest first.
///
/// # Errors
/// As for [`take`].
pub fn live(state: &Path) -> Result<Vec<Holder>, LockError> {
    let mut live = Locks::open(state)?.live()?;
    live.sort_by(|one, other| (one.since, &one.run).cmp(&(other.since, &other.run)));
    Ok(live)
}

/// The folder of locks, while nobody else looks at it.
struct Locks {
    dir: PathBuf,
    _turn: File,
}

impl Locks {
    fn open(state: &Path) -> Result<Self, LockError> {
        let dir = state.join("locks");
        let turn = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
            let turn = open_options().create(true).truncate(false).open(dir.join(TURN))?;
            turn.lock()?;
            Ok(turn)
        };
        match turn() {
            Ok(turn) => Ok(Self { dir, _turn: turn }),
            Err(why) => Err(LockError::Host { dir, why }),
        }
    }

    fn live(&self) -> Result<Vec<Holder>, LockError> {
        let mut live = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(|why| self.host(why))? {
            let entry = entry.map_err(|why| self.host(why))?;
            if entry.file_name() != TURN
                && let Some(holder) = self.read(&entry.path())?
            {
                live.push(holder);
            }
        }
        Ok(live)
    }

    /// Who holds this file; it is removed if nobody does.
    fn read(&self, path: &Path) -> Result<Option<Holder>, LockError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(self.host(why)),
        };
        match file.try_lock() {
            Ok(()) => {
                fs::remove_file(path).or_else(gone).map_err(|why| self.host(why))?;
                return Ok(None);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(why)) => return Err(self.host(why)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|why| self.host(why))?;
        match serde_json::from_slice::<Holder>(&text) {
            Ok(holder) if holder.version == VERSION => Ok(Some(holder)),
            _ => Err(LockError::Unknown { file: path.to_owned() }),
        }
    }

    fn write(&self, name: &str, holder: &Holder) -> Result<Held, LockError> {
        let path = self.dir.join(name);
        let write = || {
            let mut file = open_options().create_new(true).open(&path)?;
            file.try_lock()?;
            file.write_all(&serde_json::to_vec(holder)?)?;
            Ok(file)
        };
        match write() {
            Ok(file) => Ok(Held { path, _file: file }),
            Err(why) => Err(self.host(why)),
        }
    }

    fn host(&self, why: io::Error) -> LockError {
        LockError::Host { dir: self.dir.clone(), why }
    }
}

fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn gone(why: io::Error) -> io::Result<()> {
    if why.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(why) }
}

/// Where a path stands in its own file system, by the kernel's table of mounts.
fn place(mounts: &[u8], path: &Path) -> Option<(String, PathBuf)> {
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = String::from_utf8(fields.next()?.to_vec()).ok()?;
        Some((device, plain(fields.next()?), plain(fields.next()?)))
    };
    let mounts = mounts.split(|byte| *byte == b'\n').filter_map(mount);
    // Of two at one place, the later hides the earlier, and the last of equals is found.
    let (device, root, at) = mounts
        .filter(|(_, _, at)| path.starts_with(at))
        .max_by_key(|(_, _, at)| at.as_os_str().len())?;
    Some((device, root.join(path.strip_prefix(at).ok()?)))
}

/// A path of that table, where some bytes stand as a backslash and three octal digits.
fn plain(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = match rest {
            [b'\\', digits @ ..] => digits
                .get(..3)
                .and_then(|digits| str::from_utf8(digits).ok())
                .and_then(|digits| u8::from_str_radix(digits, 8).ok()),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = code.and_then(|_| rest.get(4..)).unwrap_or(after);
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Whoever looks at the locks or changes them holds the lock of this file meanwhile.
const TURN: &str = ".turn";

#[cfg(test)]
mod tests {
    use super::{Folder, LockError, Purpose, live, place, take};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    fn folder(path: &Path, read_only: bool) -> Vec<Folder> {
        vec![Folder::find(path, read_only).unwrap()]
    }

    #[test]
    fn overlapping_folders_are_given_once_unless_all_only_read() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("a/b/c")).unwrap();
        fs::create_dir_all(at("a/bc")).unwrap();
        symlink(at("a/b"), at("link")).unwrap();
        let try_take = |path: &str, read_only| {
            take(&at("state"), "second", Purpose::Run, folder(&at(path), read_only))
        };
        let first = take(&at("state"), "first", Purpose::Undo, folder(&at("a/b"), false)).unwrap();
        for path in ["a", "a/b", "a/b/c", "link", "link/c", "a/bc/../b"] {
            for read_only in [false, true] {
                let Err(LockError::Held { by, .. }) = try_take(path, read_only) else {
                    panic!("{path}");
                };
                assert_eq!((by.run.as_str(), by.purpose), ("first", Purpose::Undo));
            }
        }
        assert!(try_take("a/bc", false).is_ok());
        drop(first);
        let _reader = take(&at("state"), "first", Purpose::Run, folder(&at("a/b"), true)).unwrap();
        assert!(try_take("a", true).is_ok());
        assert!(try_take("a", false).is_err());
    }

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_is_not_understood_gives_nothing_out() {
        let root = tempfile::tempdir().unwrap();
        let state = root.path().join("state");
        let held = take(&state, "one", Purpose::Run, Vec::new()).unwrap();
        assert_eq!(live(&state).unwrap()[0].run, "one");
        let left = state.join("locks/two.run.1");
        fs::write(&left, fs::read(&held.path).unwrap()).unwrap();
        assert_eq!(live(&state).unwrap().len(), 1);
        assert!(!left.exists());
        fs::write(&held.path, br#"{"version":2}"#).unwrap();
        assert!(matches!(live(&state), Err(LockError::Unknown { .. })));
        drop(held);
        assert!(live(&state).unwrap().is_empty());
    }

    #[test]
    fn a_place_is_the_same_through_every_mount() {
        let mounts = br"22 1 8:1 / / rw - ext4 /dev/a rw
30 22 8:2 /@home /home rw shared:1 - btrfs /dev/b rw
31 22 8:2 /@home/ann/my\040notes /mnt rw - btrfs /dev/b rw
";
        for (path, device, inner) in [
            ("/srv/x", "8:1", "/srv/x"),
            ("/home/ann/my notes/a", "8:2", "/@home/ann/my notes/a"),
            ("/mnt/a", "8:2", "/@home/ann/my notes/a"),
            ("/mntx", "8:1", "/mntx"),
        ] {
            let expected = Some((device.to_owned(), PathBuf::from(inner)));
            assert_eq!(place(mounts, Path::new(path)), expected, "{path}");
        }
    }
}
