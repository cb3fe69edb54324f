//! Putting bytes under a name, so that a crash finds the old file or the new.
//!
//! The new file is written where the old one is to be kept, made durable, entered
//! in the journal, and then *exchanged* with the old one by one call of the kernel:
//! what was displaced is kept by the very step that displaces it. If it is not what
//! was entered, the two are exchanged back and the answer is `Changed`. A free name
//! is taken without replacing, by a file written beside it under a hidden name.
//!
//! Appending goes the same way, on a copy (shared blocks where the file system
//! can). Writing at the end of the file itself would be cheaper, but a crash in
//! the middle of it leaves a file that is neither the old one nor the new.
//!
//! # Invariants
//! - The journal's entry is durable before the name changes hands.
//! - A failure leaves no unfinished file, nothing kept and no new directory.
//! - A replaced file keeps its owner, permissions and access list, or is refused.
//!
//! # Not here
//! How much room the journal has (the kernel), and undo.

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};
use core::cmp::Ordering;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    buffer::spare_capacity,
    fs::{
        AtFlags, Gid, Mode as Bits, OFlags, RenameFlags, Uid, XattrFlags, copy_file_range, fchmod,
        fchown, fgetxattr, flistxattr, fsetxattr, ftruncate, ioctl_ficlone, renameat_with,
        unlinkat,
    },
    io::{Errno, pread, pwrite, retry_on_intr},
};

use super::{
    Disk, Held, Identity,
    keep::{PRIVATE, full, kept_name, state, unique},
    open::{
        Found, Missing, Parent, exclusive, fault, look, missing, position, read, readable, stat,
        sync,
    },
    tree::standing,
};
use crate::{
    Fault,
    journal::{Entry, Operation},
    platform::{Journal, Kind, Mode, PART_PREFIX, WHOLE_BYTES, Written, edited},
    rest::How,
    state::Standing,
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
        (held, path, rest): (&Held, &str, &str),
        content: &[u8],
        mode: Mode,
        journal: &Journal,
    ) -> Result<Written, Fault> {
        let _turn = held.turn();
        let change = Change { held, path, journal };
        let mut parent = self.made_parent(&change, path, rest)?;
        let written = match (self.look(parent.dir.as_fd(), parent.name)?, mode) {
            (None, _) => {
                journal.meets(Standing::absent)?;
                self.take_name(&parent, content, mode, &change)?
            }
            (Some(found), Mode::Create | Mode::CreateProgram) => return Err(found.in_the_way()),
            (Some(_), Mode::Replace) => {
                let taken = self.file(parent.dir.as_fd(), parent.name, OFlags::RDWR)?;
                self.displace(&parent, content, taken, Operation::Replace, &change)?
            }
            (Some(_), Mode::Append) => self.append(&parent, content, &change)?,
        };
        parent.made.keep();
        Ok(written)
    }

    pub(super) fn replace_in(
        &self,
        (held, path, rest): (&Held, &str, &str),
        old: &[u8],
        new: &[u8],
        journal: &Journal,
    ) -> Result<Written, Fault> {
        let _turn = held.turn();
        let parent = self.parent(held, rest, Missing::Refuse)?;
        let taken = self.file(parent.dir.as_fd(), parent.name, OFlags::RDWR)?;
        if taken.1.size() > WHOLE_BYTES {
            return Err(Fault::TooLarge);
        }
        let whole = read(&taken.0, 0, taken.1.within(0, WHOLE_BYTES))?;
        let whole = edited(&whole, old, new)?;
        self.displace(&parent, &whole, taken, Operation::Edit, &Change { held, path, journal })
    }

    /// Puts content in the place of an open file, which the journal keeps.
    fn displace(
        &self,
        parent: &Parent<'_>,
        content: &[u8],
        (old, found): (OwnedFd, Found),
        operation: Operation,
        change: &Change<'_>,
    ) -> Result<Written, Fault> {
        change.journal.meets(|| standing(&found))?;
        let size = found.size();
        let keep = self.keep.as_ref().ok_or(Fault::JournalFull)?;
        if size > change.journal.room {
            return Err(Fault::JournalFull);
        }
        let drawer = keep.drawer(change.held, Missing::Make).map_err(full)?;
        let how = if operation == Operation::Edit { How::Keep } else { How::Replace };
        let mut labelling = self.labelling(change, Some(&found), how);
        let mut kept = || {
            let name = kept_name(change.journal.record, change.journal.part);
            let mut new = Fresh::named(drawer.dir.as_fd(), name, PRIVATE).map_err(|fault| {
                // A change has one entry: a second is the journal's fault, not the file's.
                if fault == Fault::Exists { Fault::Io } else { fault }
            })?;
            put_all(&new.file, content, 0)?;
            keep_attributes(&old, &found, &new.file)?;
            sync(new.file.as_fd())?;
            let written = stat(new.file.as_fd())?;
            let entry = Entry {
                before: Some(state(&found, None)),
                after: Some(state(&written, Some(content))),
                kept: Some(drawer.kept(change.journal.record, change.journal.part)),
                ..change.entry(operation)
            };
            keep.enter(&entry)?;
            exchange(parent, &old, &found, &new).map_err(full)?;
            labelling.settle(&new.file, &written);
            new.keep();
            settled(parent.dir.as_fd(), drawer.dir.as_fd())
        };
        let kept = kept();
        if kept.is_err() {
            drawer.leave(change.held);
        }
        let before = labelling.before();
        kept.map(|()| Written { created: false, displaced: size, length: length(content), before })
    }

    /// An append displaces nothing that its entry does not say: it is undone by
    /// the length that the file had.
    fn append(
        &self,
        parent: &Parent<'_>,
        content: &[u8],
        change: &Change<'_>,
    ) -> Result<Written, Fault> {
        let dir = parent.dir.as_fd();
        let (old, found) = self.file(dir, parent.name, OFlags::RDWR)?;
        change.journal.meets(|| standing(&found))?;
        let size = found.size();
        let length = size.checked_add(length(content)).ok_or(Fault::TooLarge)?;
        let mut new = Fresh::named(dir, unique(PART_PREFIX), PRIVATE)?;
        copy(&old, &new.file, size, COPY_LIMIT)?;
        put_all(&new.file, content, size)?;
        keep_attributes(&old, &found, &new.file)?;
        sync(new.file.as_fd())?;
        let written = stat(new.file.as_fd())?;
        let mut labelling = self.labelling(change, Some(&found), How::Keep);
        self.enter(&Entry {
            before: Some(state(&found, None)),
            after: Some(state(&written, Some(content))),
            ..change.entry(Operation::Append)
        })?;
        exchange(parent, &old, &found, &new)?;
        labelling.settle(&new.file, &written);
        new.ours = Some(found.identity);
        settled(dir, dir)?;
        Ok(Written { created: false, displaced: 0, length, before: labelling.before() })
    }

    /// Puts content under a name that is free.
    fn take_name(
        &self,
        parent: &Parent<'_>,
        content: &[u8],
        mode: Mode,
        change: &Change<'_>,
    ) -> Result<Written, Fault> {
        let dir = parent.dir.as_fd();
        let bits = Bits::from_raw_mode(if mode == Mode::CreateProgram { 0o766 } else { 0o666 });
        let mut new = Fresh::named(dir, unique(PART_PREFIX), bits)?;
        put_all(&new.file, content, 0)?;
        sync(new.file.as_fd())?;
        let written = stat(new.file.as_fd())?;
        let mut labelling = self.labelling(change, None, How::Create);
        self.enter(&Entry {
            after: Some(state(&written, Some(content))),
            ..change.entry(Operation::Create)
        })?;
        renameat_with(dir, new.name.as_str(), dir, parent.name, RenameFlags::NOREPLACE).map_err(
            |errno| match (errno, mode) {
                // The name was free a moment ago, so nothing of it is in the journal.
                (Errno::EXIST, Mode::Replace | Mode::Append) => Fault::Changed,
                (errno, _) => fault(errno),
            },
        )?;
        labelling.settle(&new.file, &written);
        new.keep();
        settled(dir, dir)?;
        let before = labelling.before();
        Ok(Written { created: true, displaced: 0, length: length(content), before })
    }

    /// Walks to the directory of a path, making what is missing on the way; that
    /// too is a change, and entered before it is made.
    pub(super) fn made_parent<'p>(
        &self,
        change: &Change<'p>,
        path: &str,
        rest: &'p str,
    ) -> Result<Parent<'p>, Fault> {
        let made = missing(change.held, path, rest)?;
        if !made.is_empty() {
            let made = made.clone();
            self.enter(&Entry { path: path.to_owned(), made, ..change.entry(Operation::Make) })?;
        }
        let parent = self.parent(change.held, rest, Missing::Make)?;
        self.label_made(&made, &parent, &change.journal.stamp);
        Ok(parent)
    }

    /// Enters a change in the journal, if the run has one.
    pub(super) fn enter(&self, entry: &Entry) -> Result<(), Fault> {
        self.keep.as_ref().map_or(Ok(()), |keep| keep.enter(entry))
    }
}

/// What is changed, and under which record.
pub(super) struct Change<'c> {
    pub(super) held: &'c Held,
    pub(super) path: &'c str,
    pub(super) journal: &'c Journal,
}

impl Change<'_> {
    /// An entry that says no more than this.
    pub(super) fn entry(&self, operation: Operation) -> Entry {
        Entry {
            record: self.journal.record,
            part: self.journal.part,
            operation,
            path: self.path.to_owned(),
            to: None,
            before: None,
            after: None,
            kept: None,
            made: Vec::new(),
            stamp: Some(self.journal.stamp.rest.clone()),
        }
    }
}

/// Makes a change durable that is made.
pub(super) fn settled(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> Result<(), Fault> {
    let synced = |dir| readable(dir).and_then(|dir| sync(dir.as_fd()));
    synced(one).and_then(|()| synced(other)).map_err(|_| Fault::NotDurable)
}

impl Found {
    /// Why a name that must be free is not.
    pub(super) fn in_the_way(&self) -> Fault {
        match self.kind {
            Kind::File | Kind::Directory | Kind::Other => Fault::Exists,
            Kind::Link => Fault::Link,
        }
    }

    pub(super) fn unchanged(&self, now: &Found) -> bool {
        self.identity == now.identity
            && self.stat.st_size == now.stat.st_size
            && self.stat.st_mtime == now.stat.st_mtime
            && self.stat.st_mtime_nsec == now.stat.st_mtime_nsec
    }
}

/// A file of ours under a name that goes again, unless it is kept.
#[derive(Debug)]
pub(super) struct Fresh<'d> {
    dir: BorrowedFd<'d>,
    name: String,
    pub(super) file: OwnedFd,
    /// What the name must stand for to be removed.
    ours: Option<Identity>,
}

impl<'d> Fresh<'d> {
    pub(super) fn named(dir: BorrowedFd<'d>, name: String, mode: Bits) -> Result<Self, Fault> {
        let file = exclusive(dir, &name, mode)?;
        let ours = stat(file.as_fd()).map(|found| found.identity);
        let fresh = Self { dir, name, file, ours: ours.ok() };
        ours.map(|_| fresh)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn keep(&mut self) {
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

/// Puts the new file in the old one's place, if that is still what was read.
fn exchange(
    parent: &Parent<'_>,
    old: &OwnedFd,
    found: &Found,
    new: &Fresh<'_>,
) -> Result<(), Fault> {
    let swap = || {
        let place = (parent.dir.as_fd(), parent.name);
        renameat_with(new.dir, new.name.as_str(), place.0, place.1, RenameFlags::EXCHANGE)
            .map_err(fault)
    };
    if !found.unchanged(&stat(old.as_fd())?) {
        return Err(Fault::Changed);
    }
    swap().map_err(|fault| if fault == Fault::NotFound { Fault::Changed } else { fault })?;
    let displaced = look(new.dir, &new.name)?;
    if !displaced.is_some_and(|displaced| found.unchanged(&displaced)) {
        swap()?;
        return Err(Fault::Changed);
    }
    Ok(())
}

/// Gives the new file the old one's owner, attributes and permissions.
///
/// The set-id bits are left out: they vouched for the old content. So is every
/// attribute of the `security` kind, which the host sets by its own rules.
pub(super) fn keep_attributes(old: &OwnedFd, found: &Found, new: &OwnedFd) -> Result<(), Fault> {
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

/// Copies the first `size` bytes; at most `limit` if blocks cannot be shared.
pub(super) fn copy(from: &OwnedFd, to: &OwnedFd, size: u64, limit: u64) -> Result<(), Fault> {
    if ioctl_ficlone(to, from).is_ok() {
        return match stat(to.as_fd())?.size().cmp(&size) {
            Ordering::Less => Err(Fault::Changed),
            Ordering::Equal => Ok(()),
            Ordering::Greater => ftruncate(to, size).map_err(fault),
        };
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

pub(super) fn put_all(file: &OwnedFd, content: &[u8], offset: u64) -> Result<(), Fault> {
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

pub(super) fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}
