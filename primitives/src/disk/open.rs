//! Opening beneath a handle, and saying what stands there.
//!
//! Every system call that resolves a name is in this file or is given one name
//! and the directory this file opened.
//!
//! # Invariants
//! - A name is one segment; links are refused by the kernel.
//! - A device is not opened to find out that it is one.
//! - Every errno has its fault in one function.
//!
//! # Not here
//! What is done with the handles (`list`, `replace`, `tree`).

use alloc::{borrow::ToOwned, string::String, sync::Arc, vec::Vec};
use core::time::Duration;
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    buffer::spare_capacity,
    fs::{
        AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fsync, mkdirat, openat2,
        readlinkat, statat, unlinkat,
    },
    io::{Errno, pread, retry_on_intr},
    path::Arg,
};

use super::{Disk, Held, Identity};
use crate::{
    Fault,
    mounts::split_last,
    platform::{Detail, Entry, Kind, Shown},
    rest::Rest,
};

/// The most bytes one read asks the host for.
const CHUNK: usize = 1 << 18;

/// The coarsest step of a file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// What stands under a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) identity: Identity,
    pub(super) kind: Kind,
    pub(super) stat: Stat,
}

/// Whether missing directories on the way are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Refuse,
    Make,
}

/// The open directory of a path's last name.
#[derive(Debug)]
pub(super) struct Parent<'p> {
    pub(super) dir: Reached<'p>,
    pub(super) name: &'p str,
    /// The directories made on the way; gone again unless they are kept.
    pub(super) made: Made<'p>,
}

/// A directory that a path leads to.
#[derive(Debug)]
pub(super) enum Reached<'d> {
    /// The root of a mount, which is open as long as the disk is.
    Root(BorrowedFd<'d>),
    /// One below it.
    Below(Arc<OwnedFd>),
}

impl AsFd for Reached<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(dir) => *dir,
            Self::Below(dir) => dir.as_fd(),
        }
    }
}

/// Directories made for a change that may yet fail.
#[derive(Debug, Default)]
pub(super) struct Made<'d>(Vec<(Reached<'d>, String)>);

impl<'d> Made<'d> {
    pub(super) fn keep(&mut self) {
        self.0.clear();
    }

    /// Where each was made, and its name, outermost first.
    pub(super) fn dirs(&self) -> &[(Reached<'d>, String)] {
        &self.0
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // Only an empty directory can go: what somebody put there meanwhile stays.
        while let Some((dir, name)) = self.0.pop() {
            let _kept = unlinkat(&dir, name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

impl Disk {
    /// Walks to the directory that holds the last name of `rest`.
    pub(super) fn parent<'p>(
        &self,
        held: &'p Held,
        rest: &'p str,
        missing: Missing,
    ) -> Result<Parent<'p>, Fault> {
        let (parents, name) = split_last(rest);
        let mut made = Made::default();
        let mut dir = Reached::Root(held.dir.as_fd());
        let mut way = held.way();
        let parents = parents.into_iter().flat_map(|parents| parents.split('/'));
        for (at, parent) in parents.enumerate() {
            if let Some(below) = way.still(at, dir.as_fd(), parent) {
                dir = Reached::Below(below);
                continue;
            }
            let below = match step(dir.as_fd(), parent) {
                Ok(below) => below,
                Err(Fault::NotFound) if missing == Missing::Make => {
                    let new = make(dir.as_fd(), parent)?;
                    let below = step(dir.as_fd(), parent)?;
                    if new {
                        made.0.push((dir, parent.to_owned()));
                    }
                    below
                }
                Err(fault) => return Err(fault),
            };
            let identity = stat(below.as_fd())?.identity;
            self.free(identity)?;
            dir = Reached::Below(way.turn(at, parent, below, identity));
        }
        held.keep(way);
        Ok(Parent { dir, name, made })
    }

    /// What stands under a name, if anything does.
    ///
    /// # Errors
    /// `Reserved` for Synapse's own, besides what the host answers.
    pub(super) fn look(&self, dir: BorrowedFd<'_>, name: &str) -> Result<Option<Found>, Fault> {
        match look(dir, name)? {
            Some(found) => {
                self.free(found.identity)?;
                Ok(Some(found))
            }
            None => Ok(None),
        }
    }

    /// Opens the regular file under a name.
    pub(super) fn file(
        &self,
        dir: BorrowedFd<'_>,
        name: &str,
        flags: OFlags,
    ) -> Result<(OwnedFd, Found), Fault> {
        self.look(dir, name)?.ok_or(Fault::NotFound)?.regular()?;
        // The name may stand for something else by now: what counts is the handle, and
        // `NONBLOCK` keeps a FIFO from holding the thread until it is looked at.
        let file = beneath(dir, name, flags | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let found = stat(file.as_fd())?;
        self.free(found.identity)?;
        found.regular()?;
        Ok((file, found))
    }

    pub(super) fn read_file(
        &self,
        (held, path, rest): (&Held, &str, &str),
        offset: u64,
        length: u64,
    ) -> Result<Shown, Fault> {
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let (file, found) = self.file(parent.dir.as_fd(), parent.name, OFlags::RDONLY)?;
        let bytes = read(&file, offset, found.within(offset, length))?;
        // Looked at after it was read: what changed meanwhile shows.
        let seen = stat(file.as_fd())?.seen();
        Ok(Shown { bytes, rest: self.rest().content(path, &seen) })
    }

    /// Refuses what is Synapse's own.
    pub(super) fn free(&self, identity: Identity) -> Result<(), Fault> {
        if self.reserved.contains(&identity) { Err(Fault::Reserved) } else { Ok(()) }
    }
}

impl Found {
    /// Refuses what is not a regular file.
    pub(super) fn regular(&self) -> Result<(), Fault> {
        match self.kind {
            Kind::File => Ok(()),
            Kind::Directory => Err(Fault::NotAFile),
            Kind::Link => Err(Fault::Link),
            Kind::Other => Err(Fault::Special),
        }
    }

    /// Whether its last change is so long ago that another would show.
    pub(super) fn settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = u64::try_from(self.stat.st_ctime).unwrap_or(0);
        let changed = Duration::from_secs(seconds)
            .saturating_add(Duration::from_nanos(self.stat.st_ctime_nsec));
        now.checked_sub(changed).is_some_and(|since| since > SETTLED)
    }

    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// How many of `length` bytes there are from `offset` on. Some file systems say
    /// that a file is empty and give bytes all the same.
    pub(super) fn within(&self, offset: u64, length: u64) -> u64 {
        match self.size() {
            0 => length,
            size => length.min(size.saturating_sub(offset)),
        }
    }

    pub(super) fn entry(&self, name: String, rest: Rest) -> Entry {
        let size = if self.kind == Kind::File { self.size() } else { 0 };
        let seconds = u64::try_from(self.stat.st_mtime).unwrap_or(0);
        let modified_ms = match self.stat.st_mtime {
            ..0 => 0,
            0.. => seconds.saturating_mul(1000).saturating_add(self.stat.st_mtime_nsec / 1_000_000),
        };
        Entry { name, kind: self.kind, size, modified_ms, rest }
    }

    /// What a list does not say of it; a link that leads nowhere that is text leads
    /// nowhere.
    pub(super) fn detail(&self, dir: BorrowedFd<'_>, name: &str) -> Result<Detail, Fault> {
        let executable = self.kind == Kind::File && self.stat.st_mode & 0o100 != 0;
        let link = match self.kind {
            Kind::Link => readlinkat(dir, name, Vec::new()).map_err(fault)?.into_string().ok(),
            Kind::File | Kind::Directory | Kind::Other => None,
        };
        Ok(Detail { executable, link })
    }
}

/// The directories of a path that are not there, by their guest paths,
/// outermost first. `path` ends with `rest`.
pub(super) fn missing(held: &Held, path: &str, rest: &str) -> Result<Vec<String>, Fault> {
    let Some(parents) = split_last(rest).0 else { return Ok(Vec::new()) };
    let mut end = path.len().saturating_sub(rest.len());
    let mut dir = Some(Reached::Root(held.dir.as_fd()));
    let mut missing = Vec::new();
    for parent in parents.split('/') {
        end = end.saturating_add(parent.len());
        dir = match dir.map(|dir| step(dir.as_fd(), parent)).transpose() {
            Err(Fault::NotFound) => None,
            stepped => stepped?.map(Arc::new).map(Reached::Below),
        };
        if dir.is_none() {
            missing.extend(path.get(..end).map(ToOwned::to_owned));
        }
        // The slash after it.
        end = end.saturating_add(1);
    }
    Ok(missing)
}

/// Opens a name beneath a directory; no link, no way out.
pub(super) fn beneath(dir: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Fault> {
    open(dir, name, flags, Mode::empty(), ResolveFlags::empty()).map_err(fault)
}

/// Makes a new file under a name that must be free.
pub(super) fn exclusive(dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<OwnedFd, Fault> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    open(dir, name, flags, mode, ResolveFlags::empty()).map_err(fault)
}

/// Opens a directory of a tree for reading; a mount inside the tree is not part of it.
pub(super) fn within(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Fault> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    open(dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV).map_err(fault)
}

/// A readable handle on the same directory, which can be listed and synced.
pub(super) fn readable(dir: BorrowedFd<'_>) -> Result<OwnedFd, Fault> {
    probe(dir).map_err(fault)
}

pub(super) fn probe(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    open(dir, ".", flags, Mode::empty(), ResolveFlags::empty())
}

pub(super) fn sync(handle: BorrowedFd<'_>) -> Result<(), Fault> {
    retry_on_intr(|| fsync(handle)).map_err(fault)
}

pub(super) fn look(dir: BorrowedFd<'_>, name: impl Arg) -> Result<Option<Found>, Fault> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(found(stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(fault(errno)),
    }
}

/// What stands under a name of a tree; what is mounted there is not part of it.
pub(super) fn look_within(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Found>, Fault> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    match open(dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
        Ok(handle) => stat(handle.as_fd()).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(fault(errno)),
    }
}

pub(super) fn stat(handle: BorrowedFd<'_>) -> Result<Found, Fault> {
    fstat(handle).map(found).map_err(fault)
}

/// At most `length` bytes of an open file.
pub(super) fn read(file: &OwnedFd, offset: u64, length: u64) -> Result<Vec<u8>, Fault> {
    let length = usize::try_from(length).map_err(|_| Fault::TooLarge)?;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let Some(at) = position(offset, bytes.len()) else { break };
        let want = length.saturating_sub(bytes.len()).min(CHUNK);
        bytes.try_reserve_exact(want).map_err(|_| Fault::TooLarge)?;
        if retry_on_intr(|| pread(file, spare_capacity(&mut bytes), at)).map_err(fault)? == 0 {
            break;
        }
    }
    // There may have been room for more.
    bytes.truncate(length);
    Ok(bytes)
}

/// The offset of the byte after `done` more, unless no file reaches it.
pub(super) fn position(offset: u64, done: usize) -> Option<u64> {
    let at = offset.checked_add(u64::try_from(done).ok()?)?;
    // The host counts in signed numbers, and the end of a read must be one too.
    (at <= i64::MAX.unsigned_abs().saturating_sub(CHUNK as u64)).then_some(at)
}

/// What a host's error means to a guest.
pub(super) fn fault(errno: Errno) -> Fault {
    match errno {
        Errno::NOENT => Fault::NotFound,
        Errno::EXIST | Errno::NOTEMPTY => Fault::Exists,
        Errno::ISDIR => Fault::NotAFile,
        Errno::NOTDIR => Fault::NotADirectory,
        Errno::FBIG | Errno::NAMETOOLONG | Errno::OVERFLOW | Errno::MLINK => Fault::TooLarge,
        Errno::NOSPC | Errno::DQUOT => Fault::NoSpace,
        Errno::ROFS => Fault::ReadOnly,
        Errno::LOOP => Fault::Link,
        Errno::NXIO | Errno::NODEV => Fault::Special,
        Errno::STALE | Errno::AGAIN => Fault::Changed,
        Errno::XDEV => Fault::CrossDevice,
        Errno::ACCESS | Errno::PERM | Errno::BUSY | Errno::TXTBSY => Fault::HostDenied,
        Errno::ILSEQ => Fault::NameNotText,
        Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL => Fault::Unsupported,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Fault::TooMany,
        Errno::TIMEDOUT => Fault::TimedOut,
        // Whatever else a file system invents, the call did not do its work.
        _ => Fault::Io,
    }
}

fn step(dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Fault> {
    beneath(dir, name, OFlags::PATH | OFlags::DIRECTORY)
}

/// Makes a directory; whether it is new.
fn make(dir: BorrowedFd<'_>, name: &str) -> Result<bool, Fault> {
    match mkdirat(dir, name, Mode::from_raw_mode(0o777)) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(false),
        Err(errno) => return Err(fault(errno)),
    }
    sync(readable(dir)?.as_fd())?;
    Ok(true)
}

fn open(
    dir: BorrowedFd<'_>,
    name: &str,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let resolve =
        resolve | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    retry_on_intr(|| openat2(dir, name, flags | OFlags::CLOEXEC, mode, resolve))
}

fn found(stat: Stat) -> Found {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Kind::Other,
    };
    let identity = Identity { device: stat.st_dev, inode: stat.st_ino };
    Found { identity, kind, stat }
}
