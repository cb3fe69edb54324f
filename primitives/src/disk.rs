//! The host's disk: real files, reached by handle and never through a link.
//!
//! A path is walked one directory at a time, each opened beneath the one
//! before; what is then checked and what is then changed hang on the same open
//! directory, so that nobody can slip a link in between. The kernel refuses the
//! links itself (`openat2`), and where it cannot, the disk does not start:
//! there is no second, weaker way.
//!
//! Work is done inside the future, on the thread that polls it. Changes to one
//! mount take turns, so that two tasks never race each other on a file.
//!
//! # Invariants
//! - No path is handed to the operating system with more than one segment.
//! - Every open forbids symbolic links and magic links and stays beneath.
//! - A directory or file of Synapse's own is found by device and inode, under
//!   whatever name.
//! - A change that fails leaves what was there, and no trace of itself.
//!
//! Bind mounts are ordinary directories for a path: somebody with authority over
//! the host put them there, and homes are made that way. A moved or removed tree
//! must not contain one, for its other end is not part of the tree.
//!
//! # Not here
//! Opening a mount's directory (the board), admitting a path (gate 4).

mod keep;
mod label;
mod list;
mod open;
mod replace;
mod tree;
mod undo;
mod way;

use alloc::{boxed::Box, collections::BTreeSet, string::String, vec::Vec};
use core::{fmt, mem, net::SocketAddr, pin::Pin};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use cap_std::fs::Dir;
use rustix::{
    fs::{Mode as Permissions, OFlags, openat},
    io::Errno,
};
use synapse_boundary::url::Url;

use crate::{
    Fault, Platform,
    journal::{self, Folder},
    mounts::{Access, MountError, Place, Table},
    platform::{
        Admits, Asker, Connectors, Detail, Fetch, Fetched, Journal, Listener, Listing, Mode, Named,
        Net, Shown, Use, Used, Written, by_the_clock, by_the_list,
    },
    rest::{Creator, Index},
    state::Standing,
};

use keep::Keep;
use open::Missing;
pub use undo::{Resolve, Undone};
use way::Way;

/// Where shown bytes go: the board's console, with its one renderer.
pub trait Screen: Send + Sync {
    /// Shows bytes to the human.
    ///
    /// # Errors
    /// `Closed` when nobody can see them, `Io`.
    fn show(&self, bytes: &[u8]) -> Result<(), Fault>;

    /// Asks the human for one line.
    ///
    /// # Errors
    /// As [`Platform::ask`].
    fn ask(&self, question: &[u8], asker: Asker) -> Result<Vec<u8>, Fault>;
}

/// What waits: the board's timer.
pub trait Timer: Send + Sync {
    /// As [`Platform::sleep`].
    fn sleep<'a>(&'a self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The screen of a disk that only undoes: nobody is there.
struct Nobody;

impl Screen for Nobody {
    fn show(&self, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::Closed)
    }

    fn ask(&self, _: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Err(Fault::Closed)
    }
}

/// A host directory and the guest path it is seen at.
#[derive(Debug)]
pub struct Mount {
    /// The normal guest path of its root, such as `/data`.
    pub root: String,
    /// Where it is on the host, for the journal: nothing is opened by it here.
    pub host: String,
    /// The directory, opened by the board.
    pub dir: Dir,
    /// Whether it may be changed.
    pub access: Access,
}

/// What a file or directory is, under whatever name it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// The number of its file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl Identity {
    /// The identity of an open file or directory.
    ///
    /// # Errors
    /// What the host answers to `fstat`.
    pub fn of(handle: impl AsFd) -> Result<Self, Fault> {
        open::stat(handle.as_fd()).map(|found| found.identity)
    }
}

/// Why the disk does not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskError {
    /// The mounts do not form a tree.
    Mounts(MountError),
    /// The kernel cannot forbid links while it opens a path.
    NoOpenat2,
    /// A mount or the journal cannot be opened.
    Unopened {
        /// The mount's guest root, or `journal`.
        what: String,
        /// What the host answered.
        fault: Fault,
    },
    /// A mount is one of Synapse's own directories.
    OwnDirectory {
        /// The mount's guest root.
        root: String,
    },
}

impl fmt::Display for DiskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounts(error) => error.fmt(out),
            Self::NoOpenat2 => out.write_str(
                "cannot open folders safely: this kernel or its sandbox refuses `openat2`, \
                 without which a link could lead out of a folder; use Linux 5.6 or newer and \
                 permit the call",
            ),
            Self::Unopened { what, fault } => write!(
                out,
                "cannot open {what:?}: the host answered with fault {}; check that the folder \
                 exists and that you may read it",
                fault.number()
            ),
            Self::OwnDirectory { root } => write!(
                out,
                "cannot mount {root:?}: the folder holds Synapse's own state, which no agent \
                 may touch; choose another folder"
            ),
        }
    }
}

impl core::error::Error for DiskError {}

/// The mounts of one task on the host's file systems.
pub struct Disk {
    table: Table,
    mounts: Vec<Held>,
    reserved: BTreeSet<Identity>,
    keep: Option<Keep>,
    listed: Mutex<Option<list::Listed>>,
    rest: Mutex<Index>,
    screen: Box<dyn Screen>,
    net: Option<Box<dyn Net>>,
    connectors: Option<Box<dyn Connectors>>,
    timer: Option<Box<dyn Timer>>,
}

struct Held {
    dir: OwnedFd,
    host: String,
    access: Access,
    turn: Mutex<()>,
    way: Mutex<Way>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Disk").field("table", &self.table).finish_non_exhaustive()
    }
}

impl Disk {
    /// Serves these mounts.
    ///
    /// `reserved` are Synapse's own directories and files: what they are or hold
    /// answers [`Fault::Reserved`] and is not listed. The journal's directory,
    /// which must be empty, joins them by itself; without one there is no room to
    /// displace anything.
    ///
    /// # Errors
    /// [`DiskError`], each with its reason.
    pub fn new(
        mounts: Vec<Mount>,
        reserved: &[Identity],
        journal: Option<Dir>,
        screen: Box<dyn Screen>,
    ) -> Result<Self, DiskError> {
        let keep = journal.map(|dir| begin(&dir, "journal")).transpose()?;
        Self::with(mounts, reserved, keep, screen, Keep::begin)
    }

    /// The same disk beside a network.
    #[must_use]
    pub fn with_net(self, net: Box<dyn Net>) -> Self {
        Self { net: Some(net), ..self }
    }

    /// The same disk beside connectors.
    #[must_use]
    pub fn with_connectors(self, connectors: Box<dyn Connectors>) -> Self {
        Self { connectors: Some(connectors), ..self }
    }

    /// The same disk beside a timer; without one, who waits asks the clock.
    #[must_use]
    pub fn with_timer(self, timer: Box<dyn Timer>) -> Self {
        Self { timer: Some(timer), ..self }
    }

    /// Serves the folders of a run that is over, for [`Disk::undo`] alone.
    ///
    /// # Errors
    /// [`DiskError`], each with its reason.
    pub fn reopen(
        mounts: Vec<Mount>,
        dir: Dir,
        journal: &journal::Journal,
    ) -> Result<Self, DiskError> {
        let dir = begin(&dir, "journal")?;
        Self::with(mounts, &[], Some(dir), Box::new(Nobody), |dir, _| Keep::over(dir, journal))
    }

    fn with(
        mounts: Vec<Mount>,
        reserved: &[Identity],
        journal: Option<OwnedFd>,
        screen: Box<dyn Screen>,
        keep: impl FnOnce(OwnedFd, Vec<Folder>) -> Result<Keep, Fault>,
    ) -> Result<Self, DiskError> {
        let mut reserved: BTreeSet<Identity> = reserved.iter().copied().collect();
        if let Some(dir) = &journal {
            reserved.insert(identity(dir, "journal")?);
        }
        let roots = mounts.iter().map(|mount| mount.root.clone()).collect();
        let table = Table::new(roots).map_err(DiskError::Mounts)?;
        let (mut held, mut folders) = (Vec::new(), Vec::new());
        for mount in mounts {
            let dir = begin(&mount.dir, &mount.root)?;
            let identity = identity(&dir, &mount.root)?;
            if is_below(&dir, &reserved, &mount.root)? {
                return Err(DiskError::OwnDirectory { root: mount.root });
            }
            held.push(Held::new(dir, mount.host.clone(), mount.access));
            folders.push(Folder { guest: mount.root, host: mount.host, identity });
        }
        let unopened = |fault| DiskError::Unopened { what: String::from("journal"), fault };
        let keep = journal.map(|dir| keep(dir, folders)).transpose().map_err(unopened)?;
        let (listed, rest) = (Mutex::default(), Mutex::default());
        Ok(Self {
            table,
            mounts: held,
            reserved,
            keep,
            listed,
            rest,
            screen,
            net: None,
            connectors: None,
            timer: None,
        })
    }

    /// The folders as a store knows them, and of these the ones that may be changed.
    ///
    /// # Errors
    /// A folder cannot be looked at.
    pub fn folders(&self) -> Result<(Vec<Folder>, Vec<Folder>), Fault> {
        let (mut folders, mut writable) = (Vec::new(), Vec::new());
        for (guest, held) in self.table.roots().zip(&self.mounts) {
            let identity = Identity::of(&held.dir)?;
            let folder = Folder { guest: guest.into(), host: held.host.clone(), identity };
            if held.access == Access::ReadWrite {
                writable.push(folder.clone());
            }
            folders.push(folder);
        }
        Ok((folders, writable))
    }

    /// What is kept of the files' labels: to put in what an earlier run left, and to
    /// take out what this one did.
    pub fn rest(&self) -> MutexGuard<'_, Index> {
        // Each entry is put in whole.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self, mount: usize) -> Result<&Held, Fault> {
        self.mounts.get(mount).ok_or(Fault::NotFound)
    }

    fn writable(&self, mount: usize) -> Result<&Held, Fault> {
        let held = self.held(mount)?;
        match held.access {
            Access::ReadWrite => Ok(held),
            Access::ReadOnly => Err(Fault::ReadOnly),
        }
    }
}

impl Held {
    fn new(dir: OwnedFd, host: String, access: Access) -> Self {
        Self { dir, host, access, turn: Mutex::default(), way: Mutex::default() }
    }

    /// The way that the last path went. It is taken, so that nobody waits for it: who
    /// comes meanwhile opens each directory.
    fn way(&self) -> Way {
        mem::take(&mut *self.way.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn keep(&self, way: Way) {
        *self.way.lock().unwrap_or_else(PoisonError::into_inner) = way;
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a panic elsewhere leaves nothing broken behind it.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Platform for Disk {
    async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Shown, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::NotAFile);
        };
        self.read_file((self.held(mount)?, path, rest), offset, length)
    }

    async fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        self.listing(path, after, usize::try_from(limit).unwrap_or(usize::MAX))
    }

    async fn named(
        &self,
        path: &str,
        wanted: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Named, Fault> {
        match self.table.place(path)? {
            Place::Above => by_the_list(self, path, wanted).await,
            Place::Root(mount) => self.wanted((self.held(mount)?, None), wanted),
            Place::Inside(mount, rest) => self.wanted((self.held(mount)?, Some(rest)), wanted),
        }
    }

    async fn state(&self, path: &str) -> Result<Standing, Fault> {
        self.standing(path)
    }

    async fn write(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> Result<Written, Fault> {
        match (self.table.place(path)?, mode) {
            (Place::Inside(mount, rest), _) => {
                self.put((self.writable(mount)?, path, rest), content, mode, &journal)
            }
            (Place::Root(_) | Place::Above, Mode::Create | Mode::CreateProgram) => {
                Err(Fault::Exists)
            }
            (Place::Root(_) | Place::Above, Mode::Replace | Mode::Append) => Err(Fault::NotAFile),
        }
    }

    async fn edit(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        match self.table.place(path)? {
            Place::Inside(mount, rest) => {
                self.replace_in((self.writable(mount)?, path, rest), old, new, &journal)
            }
            Place::Root(_) | Place::Above => Err(Fault::NotAFile),
        }
    }

    async fn rename(
        &self,
        from: &str,
        to: &str,
        journal: Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        self.shift(from, to, &journal, admits)
    }

    async fn remove(
        &self,
        path: &str,
        journal: Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        self.take(path, &journal, admits)
    }

    async fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        self.screen.show(bytes)
    }

    async fn ask(&self, question: &[u8], asker: Asker) -> Result<Vec<u8>, Fault> {
        self.screen.ask(question, asker)
    }

    async fn fetch(&self, request: Fetch<'_>) -> Result<Fetched, Fault> {
        match &self.net {
            Some(net) => net.fetch(request).await,
            None => Err(Fault::Unsupported),
        }
    }

    fn serves(&self, secret: &str, url: &Url<'_>) -> bool {
        self.net.as_ref().is_some_and(|net| net.serves(secret, url))
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
        self.net.as_ref().map_or(Err(Fault::Unsupported), |net| net.listen(at))
    }

    async fn tool(&self, call: Use<'_>) -> Used {
        match &self.connectors {
            Some(connectors) => connectors.tool(call).await,
            None => Used::UNSUPPORTED,
        }
    }

    async fn detail(&self, path: &str) -> Result<Detail, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Ok(Detail::default());
        };
        let parent = self.parent(self.held(mount)?, rest, Missing::Refuse)?;
        let found = self.look(parent.dir.as_fd(), parent.name)?.ok_or(Fault::NotFound)?;
        found.detail(parent.dir.as_fd(), parent.name)
    }

    async fn sleep(&self, ms: u64) {
        match &self.timer {
            Some(timer) => timer.sleep(ms).await,
            None => by_the_clock(self, ms).await,
        }
    }

    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn is_own(&self, path: &str, creator: Creator) -> bool {
        self.rest().is_own(path, creator)
    }

    fn mounts(&self) -> Vec<(String, String)> {
        let roots = self.table.roots().map(String::from);
        roots.zip(self.mounts.iter().map(|held| held.host.clone())).collect()
    }
}

/// Opens a directory the board supplied through the one call the disk rests on.
fn begin(dir: &Dir, what: &str) -> Result<OwnedFd, DiskError> {
    open::probe(dir.as_fd()).map_err(|errno| match errno {
        // A sandbox that does not know the call answers one of the other two.
        Errno::NOSYS | Errno::PERM | Errno::INVAL => DiskError::NoOpenat2,
        errno => DiskError::Unopened { what: String::from(what), fault: open::fault(errno) },
    })
}

/// Whether a directory, or one above it, is reserved.
fn is_below(dir: &OwnedFd, reserved: &BTreeSet<Identity>, what: &str) -> Result<bool, DiskError> {
    let mut here = identity(dir, what)?;
    let mut parent = up(dir.as_fd(), what)?;
    loop {
        if reserved.contains(&here) {
            return Ok(true);
        }
        let above = identity(&parent, what)?;
        // The root of all is its own parent.
        if above == here {
            return Ok(false);
        }
        here = above;
        parent = up(parent.as_fd(), what)?;
    }
}

fn up(dir: BorrowedFd<'_>, what: &str) -> Result<OwnedFd, DiskError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, "..", flags, Permissions::empty()).map_err(|errno| DiskError::Unopened {
        what: String::from(what),
        fault: open::fault(errno),
    })
}

fn identity(dir: &OwnedFd, what: &str) -> Result<Identity, DiskError> {
    Identity::of(dir).map_err(|fault| DiskError::Unopened { what: String::from(what), fault })
}
