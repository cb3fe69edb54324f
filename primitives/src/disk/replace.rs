//! Putting bytes under a name, so that a crash finds the old file or the new.
//!
//! The new file is written beside the old one under a hidden name, made durable,
//! and then put in place by one call of the kernel. A free name is taken without
//! replacing; a taken one is *exchanged*, so that what was displaced is still in
//! hand and can be compared with what the journal holds. If it is something else,
//! the two are exchanged back and the answer is `Changed`.
//!
//! Appending goes the same way, on a copy (shared blocks where the file system
//! can). Writing at the end of the file itself would be cheaper, but a crash in
//! the middle of it leaves a file that is neither the old one nor the new.
//!
//! # Invariants
//! - Displaced bytes are durable in the journal before the name changes hands.
//! - A failure leaves no unfinished file, no journal entry and no new directory.
//! - A replaced file keeps its owner, permissions and access list, or is refused.
//!
//! # Not here
//! How much room the journal has (the kernel), and undo.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::sync::atomic::{AtomicU64, Ordering};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    buffer::spare_capacity,
    fs::{
        AtFlags, Gid, Mode as Bits, OFlags, RenameFlags, Uid, XattrFlags, copy_file_range, fchmod,
        fchown, fgetxattr, flistxattr, fsetxattr, ioctl_ficlone, renameat_with, unlinkat,
    },
    io::{Errno, pread, pwrite, retry_on_intr},
};

use super::{
    Disk, Held, Identity,
    open::{Found, Missing, Parent, exclusive, fault, look, position, read, readable, stat, sync},
};
use crate::{
    Fault,
    platform::{Journal, Kind, Mode, PART_PREFIX, WHOLE_BYTES, Written, edited},
};

/// The largest file an append copies where blocks cannot be shared.
const COPY_LIMIT: u64 = 1 << 28;

/// The bytes copied in one step.
const CHUNK: usize = 1 << 18;

/// The most bytes Linux gives or takes for extended attributes.
const XATTR_BYTES: usize = 1 << 16;

impl Disk {
    pub(super) fn put(
        &self,
        held: &Held,
        rest: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> Result<Written, Fault> {
        let _turn = held.turn();
        let mut parent = self.parent(held, rest, Missing::Make)?;
        let written = match (self.look(parent.dir.as_fd(), parent.name)?, mode) {
            (None, _) => take_name(&parent, content, mode)?,
            (Some(found), Mode::Create) => return Err(found.in_the_way()),
            (Some(_), Mode::Replace) => self.replace(&parent, content, journal)?,
            (Some(_), Mode::Append) => self.append(&parent, content)?,
        };
        parent.made.keep();
        Ok(written)
    }

    pub(super) fn replace_in(
        &self,
        held: &Held,
        rest: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        let _turn = held.turn();
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let taken = self.file(parent.dir.as_fd(), parent.name, OFlags::RDWR)?;
        if taken.1.size() > WHOLE_BYTES {
            return Err(Fault::TooLarge);
        }
        let whole = edited(&read(&taken.0, 0, WHOLE_BYTES)?, old, new)?;
        self.displace(&parent, &whole, taken, journal)
    }

    fn replace(
        &self,
        parent: &Parent<'_>,
        content: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        let taken = self.file(parent.dir.as_fd(), parent.name, OFlags::RDWR)?;
        self.displace(parent, content, taken, journal)
    }

    /// Puts content in the place of an open file, which the journal keeps.
    fn displace(
        &self,
        parent: &Parent<'_>,
        content: &[u8],
        (old, found): (OwnedFd, Found),
        journal: Journal,
    ) -> Result<Written, Fault> {
        let size = found.size();
        let room = if self.journal.is_some() { journal.room } else { 0 };
        if size > room {
            return Err(Fault::JournalFull);
        }
        // The journal's file is declared first, so that it outlives every failure below.
        let mut entry = match &self.journal {
            Some(dir) => Some(journaled(dir.as_fd(), journal.record, &old, size)?),
            None => None,
        };
        let new = Fresh::part(parent.dir.as_fd(), PRIVATE)?;
        put_all(&new.file, content, 0)?;
        exchange(parent, &old, &found, new, || {
            if let Some(entry) = &mut entry {
                entry.keep();
            }
        })?;
        Ok(Written { created: false, displaced: size, length: length(content) })
    }

    fn append(&self, parent: &Parent<'_>, content: &[u8]) -> Result<Written, Fault> {
        let (old, found) = self.file(parent.dir.as_fd(), parent.name, OFlags::RDWR)?;
        let size = found.size();
        let length = size.checked_add(length(content)).ok_or(Fault::TooLarge)?;
        let new = Fresh::part(parent.dir.as_fd(), PRIVATE)?;
        copy(&old, &new.file, size, COPY_LIMIT)?;
        put_all(&new.file, content, size)?;
        exchange(parent, &old, &found, new, || {})?;
        Ok(Written { created: false, displaced: 0, length })
    }
}

impl Found {
    /// Why a name that must be free is not.
    pub(super) fn in_the_way(&self) -> Fault {
        match self.kind {
            Kind::File | Kind::Directory | Kind::Other => Fault::Exists,
            Kind::Link => Fault::Link,
        }
    }

    fn unchanged(&self, now: &Found) -> bool {
        self.identity == now.identity
            && self.stat.st_size == now.stat.st_size
            && self.stat.st_mtime == now.stat.st_mtime
            && self.stat.st_mtime_nsec == now.stat.st_mtime_nsec
    }
}

/// Nobody else reads a file before it has the permissions of the one it replaces.
const PRIVATE: Bits = Bits::from_raw_mode(0o600);

/// A file of ours under a name that goes again, unless it is kept.
#[derive(Debug)]
struct Fresh<'d> {
    dir: BorrowedFd<'d>,
    name: String,
    file: OwnedFd,
    /// What the name must stand for to be removed.
    ours: Option<Identity>,
}

impl<'d> Fresh<'d> {
    fn part(dir: BorrowedFd<'d>, mode: Bits) -> Result<Self, Fault> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let (id, nanos) = (process::id(), since.as_nanos());
        Self::named(dir, format!("{PART_PREFIX}{id:08x}-{nanos:016x}-{count:x}"), mode)
    }

    fn named(dir: BorrowedFd<'d>, name: String, mode: Bits) -> Result<Self, Fault> {
        let file = exclusive(dir, &name, mode)?;
        let ours = stat(file.as_fd()).map(|found| found.identity);
        let fresh = Self { dir, name, file, ours: ours.ok() };
        ours.map(|_| fresh)
    }

    fn keep(&mut self) {
        self.ours = None;
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        // The name may hold somebody else's file by now, which is theirs to remove.
        let Some(ours) = self.ours else { return };
        if let Ok(Some(found)) = look(self.dir, &self.name)
            && found.identity == ours
        {
            let _left = unlinkat(self.dir, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Puts content under a name that is free.
fn take_name(parent: &Parent<'_>, content: &[u8], mode: Mode) -> Result<Written, Fault> {
    let dir = parent.dir.as_fd();
    let synced = readable(dir)?;
    let mut new = Fresh::part(dir, Bits::from_raw_mode(0o666))?;
    put_all(&new.file, content, 0)?;
    sync(new.file.as_fd())?;
    renameat_with(dir, new.name.as_str(), dir, parent.name, RenameFlags::NOREPLACE).map_err(
        |errno| match (errno, mode) {
            // The name was free a moment ago, so nothing of it is in the journal.
            (Errno::EXIST, Mode::Replace | Mode::Append) => Fault::Changed,
            (errno, _) => fault(errno),
        },
    )?;
    new.keep();
    sync(synced.as_fd())?;
    Ok(Written { created: true, displaced: 0, length: length(content) })
}

/// Puts the new file in the old one's place, if that is still what was read.
fn exchange(
    parent: &Parent<'_>,
    old: &OwnedFd,
    found: &Found,
    mut new: Fresh<'_>,
    settled: impl FnOnce(),
) -> Result<(), Fault> {
    let dir = parent.dir.as_fd();
    let synced = readable(dir)?;
    keep_attributes(old, found, &new.file)?;
    sync(new.file.as_fd())?;
    let swap = || {
        renameat_with(dir, new.name.as_str(), dir, parent.name, RenameFlags::EXCHANGE)
            .map_err(fault)
    };
    if !found.unchanged(&stat(old.as_fd())?) {
        return Err(Fault::Changed);
    }
    swap().map_err(|fault| if fault == Fault::NotFound { Fault::Changed } else { fault })?;
    let displaced = look(dir, &new.name)?;
    if !displaced.is_some_and(|displaced| found.unchanged(&displaced)) {
        swap()?;
        return Err(Fault::Changed);
    }
    settled();
    new.ours = Some(found.identity);
    sync(synced.as_fd())
}

/// Copies the file's bytes to the journal, durably.
fn journaled<'d>(
    dir: BorrowedFd<'d>,
    record: u64,
    old: &OwnedFd,
    size: u64,
) -> Result<Fresh<'d>, Fault> {
    let full = |fault| match fault {
        Fault::NoSpace | Fault::TooLarge => Fault::JournalFull,
        // A record has one entry: a second is the journal's fault, not the file's.
        Fault::Exists => Fault::Io,
        fault => fault,
    };
    let entry = Fresh::named(dir, record.to_string(), PRIVATE).map_err(full)?;
    copy(old, &entry.file, size, u64::MAX).map_err(full)?;
    sync(entry.file.as_fd()).and_then(|()| sync(dir)).map_err(full)?;
    Ok(entry)
}

/// Gives the new file the old one's owner, attributes and permissions.
///
/// The set-id bits are left out: they vouched for the old content. So is every
/// attribute of the `security` kind, which the host sets by its own rules.
fn keep_attributes(old: &OwnedFd, found: &Found, new: &OwnedFd) -> Result<(), Fault> {
    let mine = stat(new.as_fd())?.stat;
    if (mine.st_uid, mine.st_gid) != (found.stat.st_uid, found.stat.st_gid) {
        let (uid, gid) = (Uid::from_raw(found.stat.st_uid), Gid::from_raw(found.stat.st_gid));
        fchown(new, Some(uid), Some(gid)).map_err(fault)?;
    }
    fchmod(new, Bits::from_raw_mode(found.stat.st_mode & 0o777)).map_err(fault)?;
    let mut names = vec![0; XATTR_BYTES];
    let filled = match flistxattr(old, names.as_mut_slice()) {
        Ok(filled) => filled,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(fault(errno)),
    };
    names.truncate(filled);
    for name in names.split(|byte| *byte == 0) {
        if name.starts_with(b"user.") || name == b"system.posix_acl_access" {
            let mut value = vec![0; XATTR_BYTES];
            let filled = fgetxattr(old, name, value.as_mut_slice()).map_err(fault)?;
            value.truncate(filled);
            fsetxattr(new, name, &value, XattrFlags::empty()).map_err(fault)?;
        }
    }
    Ok(())
}

/// Copies exactly `size` bytes; at most `limit` if blocks cannot be shared.
fn copy(from: &OwnedFd, to: &OwnedFd, size: u64, limit: u64) -> Result<(), Fault> {
    if ioctl_ficlone(to, from).is_ok() {
        return if stat(to.as_fd())?.size() == size { Ok(()) } else { Err(Fault::Changed) };
    }
    if size > limit {
        return Err(Fault::TooLarge);
    }
    let (mut read, mut written) = (0, 0);
    while read < size {
        let want = usize::try_from(size.saturating_sub(read)).unwrap_or(CHUNK).min(1 << 30);
        match copy_file_range(from, Some(&mut read), to, Some(&mut written), want) {
            // Nothing copied means the end, or a file system that will not say so.
            Ok(0) | Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(fault(errno)),
        }
    }
    let mut chunk = Vec::new();
    while read < size {
        let want = usize::try_from(size.saturating_sub(read)).unwrap_or(CHUNK).min(CHUNK);
        chunk.clear();
        chunk.try_reserve_exact(want).map_err(|_| Fault::TooMany)?;
        let got = retry_on_intr(|| pread(from, spare_capacity(&mut chunk), read)).map_err(fault)?;
        if got == 0 {
            return Err(Fault::Changed);
        }
        chunk.truncate(want);
        put_all(to, &chunk, read)?;
        read = read.saturating_add(length(&chunk));
    }
    Ok(())
}

fn put_all(file: &OwnedFd, content: &[u8], offset: u64) -> Result<(), Fault> {
    let mut done = 0;
    while let Some(left) = content.get(done..).filter(|left| !left.is_empty()) {
        let at = position(offset, done).ok_or(Fault::TooLarge)?;
        match retry_on_intr(|| pwrite(file, left, at)).map_err(fault)? {
            0 => return Err(Fault::Io),
            wrote => done = done.saturating_add(wrote),
        }
    }
    Ok(())
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}
