//! Undoing one entry of a journal, by what stands there now.
//!
//! Each entry is undone by one rename or exchange, and marked in the journal when
//! that is done; whether it was done before a crash, but not marked, shows in what
//! stands where. What somebody changed since stays, and what stood there before is
//! put beside it.
//!
//! # Invariants
//! - No byte is removed: what an undo displaces is kept where the old thing was.
//! - A name that is taken is not taken over.
//! - An entry that was undone, or never came to be, is left alone.
//!
//! # Not here
//! Which entries, and in which order (the board). What a person is told (the
//! command line).

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{
        AtFlags, Dir, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, futimens,
        renameat_with, unlinkat,
    },
    io::Errno,
};
use sha2::{Digest, Sha256};

use super::{
    Disk, Held,
    keep::{Keep, PRIVATE, kept_name, unique},
    open::{Found, Missing, Parent, fault, look, read, sync, within},
    replace::{Fresh, copy, keep_attributes, length, settled},
};
use crate::{
    Fault,
    journal::{Entry, Operation, State},
    mounts::{Place, split_last},
    platform::{Kind, NAME_BYTES, PART_PREFIX, is_part},
};

/// Whether something is done, or only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolve {
    /// Nothing changes.
    Look,
    /// What can be undone is.
    Undo,
}

/// What undoing an entry comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// It is as it was before.
    Restored,
    /// Somebody changed it since: theirs stays, and what was there before stands
    /// beside it under this guest path.
    Beside(String),
    /// Somebody changed it since, and nothing is lost: theirs stays.
    Left,
    /// There is nothing to undo: it was undone before, or never came to be.
    Nothing,
}

impl Disk {
    /// Undoes the entry at this place of the journal, or says what that would come
    /// to. An entry that is marked as undone is not to be undone again: later ones
    /// were made on top of what it left.
    ///
    /// # Errors
    /// What keeps it from being undone; nothing is changed then. `NotDurable`
    /// where it was undone but the disk did not confirm it.
    pub fn undo(&self, place: usize, entry: &Entry, resolve: Resolve) -> Result<Undone, Fault> {
        let Place::Inside(mount, rest) = self.table.place(&entry.path)? else {
            return Err(Fault::NotFound);
        };
        let held = self.writable(mount)?;
        let _turn = held.turn();
        let keep = self.keep.as_ref().ok_or(Fault::NotFound)?;
        let undo = Undo { disk: self, keep, held, rest, entry, resolve };
        let undone = match entry.operation {
            Operation::Make => undo.unmake(),
            Operation::Create => undo.create(),
            Operation::Replace | Operation::Edit => undo.replace(),
            Operation::Append => undo.append(),
            Operation::Move => undo.shift(),
            Operation::Delete => undo.delete(),
        }?;
        if resolve == Resolve::Undo {
            keep.mark(place)?;
        }
        Ok(undone)
    }
}

struct Undo<'u> {
    disk: &'u Disk,
    keep: &'u Keep,
    held: &'u Held,
    rest: &'u str,
    entry: &'u Entry,
    resolve: Resolve,
}

impl<'u> Undo<'u> {
    /// A file that was made goes where displaced things are kept.
    fn create(&self) -> Result<Undone, Fault> {
        let after = self.entry.after.as_ref().ok_or(Fault::Unsupported)?;
        let slot = self.slot()?;
        let taken = slot.as_ref().map(|(dir, name)| look(dir.as_fd(), name)).transpose()?;
        let standing = self.standing(self.rest)?;
        let standing = standing.filter(|_| taken.flatten().is_none());
        let Some((parent, _)) = standing else { return Ok(Undone::Nothing) };
        let Some(found) = self.as_written(&parent, after)? else { return Ok(Undone::Left) };
        if self.resolve == Resolve::Undo {
            let (dir, name) = slot.ok_or(Fault::NotFound)?;
            let (from, to) = ((parent.dir.as_fd(), parent.name), (dir.as_fd(), &*name));
            rename(from, to, RenameFlags::NOREPLACE)?;
            if !look(dir.as_fd(), &name)?.is_some_and(|moved| found.unchanged(&moved)) {
                rename(to, from, RenameFlags::NOREPLACE)?;
                return Err(Fault::Changed);
            }
            settled(to.0, from.0)?;
        }
        Ok(Undone::Restored)
    }

    /// The old file and the new one change places again.
    fn replace(&self) -> Result<Undone, Fault> {
        let Some(slot) = self.kept()? else { return Ok(Undone::Nothing) };
        let slot = (slot.0.as_fd(), &*slot.1);
        let after = self.entry.after.as_ref().ok_or(Fault::Unsupported)?;
        if let Some((parent, _)) = self.standing(self.rest)?
            && let Some(found) = self.as_written(&parent, after)?
        {
            return self.exchange(&parent, &found, slot);
        }
        self.place(slot)
    }

    /// The file is copied up to where it ended before, and the copy, with the
    /// time that the file had, takes its place.
    fn append(&self) -> Result<Undone, Fault> {
        let entry = (self.entry.before.as_ref(), self.entry.after.as_ref());
        let (Some(before), Some(after)) = entry else { return Err(Fault::Unsupported) };
        let slot = self.slot()?;
        let copied = slot.as_ref().map(|(dir, name)| look(dir.as_fd(), name)).transpose()?;
        let copied = copied.flatten();
        if copied.is_some_and(|copied| !is_alike(&copied, before)) {
            return Ok(Undone::Nothing);
        }
        let Some((parent, found)) = self.standing(self.rest)? else { return Ok(Undone::Left) };
        if found.regular().is_err() {
            return Ok(Undone::Left);
        }
        let (file, found) = self.disk.file(parent.dir.as_fd(), parent.name, OFlags::RDONLY)?;
        let written = after.size.saturating_sub(before.size);
        let unchanged = is_alike(&found, after);
        // Of an append of nothing, nothing shows but the file's time.
        let shows = unchanged || written > 0;
        if !shows || digest(&file, before.size, written)? != after.sha256 {
            return Ok(Undone::Left);
        }
        if self.resolve == Resolve::Undo && copied.is_none() {
            let (dir, name) = slot.as_ref().ok_or(Fault::NotFound)?;
            shorten(&file, &found, before, (dir.as_fd(), name))?;
        }
        let slot = slot.as_ref().map(|(dir, name)| (dir.as_fd(), &**name));
        match (unchanged, slot) {
            (true, Some(slot)) => self.exchange(&parent, &found, slot),
            (false, Some(slot)) => self.place(slot),
            (true, None) => Ok(Undone::Restored),
            (false, None) => self.free_name(&parent).map(|(_, path)| Undone::Beside(path)),
        }
    }

    /// What was moved goes back, whatever became of what is in it.
    fn shift(&self) -> Result<Undone, Fault> {
        let entry = (self.entry.before.as_ref(), self.entry.to.as_ref());
        let (Some(before), Some(to)) = entry else { return Err(Fault::Unsupported) };
        let Place::Inside(_, to_rest) = self.disk.table.place(to)? else {
            return Err(Fault::Unsupported);
        };
        let source = self.standing(to_rest)?;
        let Some((source, _)) = source.filter(|(_, found)| is_same(found, before)) else {
            let back = self.standing(self.rest)?;
            let back = back.is_some_and(|(_, found)| is_same(&found, before));
            return Ok(if back { Undone::Nothing } else { Undone::Left });
        };
        self.place((source.dir.as_fd(), source.name))
    }

    /// What was taken away comes back.
    fn delete(&self) -> Result<Undone, Fault> {
        let Some(slot) = self.kept()? else { return Ok(Undone::Nothing) };
        self.place((slot.0.as_fd(), &*slot.1))
    }

    /// Puts a thing under its old name, or beside what has that name now.
    fn place(&self, from: (BorrowedFd<'_>, &str)) -> Result<Undone, Fault> {
        let missing = match self.resolve {
            Resolve::Look => Missing::Refuse,
            Resolve::Undo => Missing::Make,
        };
        let mut parent = match self.disk.parent(self.held, self.rest, missing) {
            Ok(parent) => parent,
            // The directories on the way would be made again.
            Err(Fault::NotFound) if self.resolve == Resolve::Look => return Ok(Undone::Restored),
            Err(fault) => return Err(fault),
        };
        let beside = match look(parent.dir.as_fd(), parent.name)? {
            None => None,
            Some(_) => Some(self.free_name(&parent)?),
        };
        if self.resolve == Resolve::Undo {
            let name = beside.as_ref().map_or(parent.name, |(name, _)| name);
            rename(from, (parent.dir.as_fd(), name), RenameFlags::NOREPLACE)?;
            parent.made.keep();
            settled(parent.dir.as_fd(), from.0)?;
        }
        Ok(beside.map_or(Undone::Restored, |(_, path)| Undone::Beside(path)))
    }

    /// Exchanges what stands at the path with what is kept for it.
    fn exchange(
        &self,
        parent: &Parent<'_>,
        found: &Found,
        slot: (BorrowedFd<'_>, &str),
    ) -> Result<Undone, Fault> {
        if self.resolve == Resolve::Undo {
            let place = (parent.dir.as_fd(), parent.name);
            rename(slot, place, RenameFlags::EXCHANGE)?;
            let displaced = look(slot.0, slot.1)?;
            if !displaced.is_some_and(|displaced| found.unchanged(&displaced)) {
                rename(slot, place, RenameFlags::EXCHANGE)?;
                return Err(Fault::Changed);
            }
            settled(parent.dir.as_fd(), slot.0)?;
        }
        Ok(Undone::Restored)
    }

    /// Where what the change displaced is kept, or what undoing it displaces; none
    /// where a look would have to make it.
    fn slot(&self) -> Result<Option<(OwnedFd, String)>, Fault> {
        if let Some(kept) = &self.entry.kept {
            let (dir, name) = self.keep.find(self.held, kept)?;
            return Ok(Some((dir, name.to_string())));
        }
        let missing = match self.resolve {
            Resolve::Look => Missing::Refuse,
            Resolve::Undo => Missing::Make,
        };
        match self.keep.drawer(self.held, missing) {
            Ok(drawer) => Ok(Some((drawer.dir, kept_name(self.entry.record, self.entry.part)))),
            Err(Fault::NotFound) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Where what the change displaced is kept, if it still is.
    fn kept(&self) -> Result<Option<(OwnedFd, String)>, Fault> {
        let before = self.entry.before.as_ref().ok_or(Fault::Unsupported)?;
        let Some((dir, name)) = self.slot()? else { return Ok(None) };
        let found = look(dir.as_fd(), &name)?;
        Ok(found.filter(|found| found.identity == before.identity).map(|_| (dir, name)))
    }

    /// What stands at a path now, if anything does.
    fn standing(&self, rest: &'u str) -> Result<Option<(Parent<'u>, Found)>, Fault> {
        match self.disk.parent(self.held, rest, Missing::Refuse) {
            Ok(parent) => {
                let found = self.disk.look(parent.dir.as_fd(), parent.name)?;
                Ok(found.map(|found| (parent, found)))
            }
            Err(Fault::NotFound | Fault::NotADirectory | Fault::Link) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The file at the path, if it holds what the change wrote.
    fn as_written(&self, parent: &Parent<'_>, after: &State) -> Result<Option<Found>, Fault> {
        let dir = parent.dir.as_fd();
        if look(dir, parent.name)?.is_none_or(|found| found.regular().is_err()) {
            return Ok(None);
        }
        let (file, found) = self.disk.file(dir, parent.name, OFlags::RDONLY)?;
        let same = found.size() == after.size && digest(&file, 0, after.size)? == after.sha256;
        Ok(same.then_some(found))
    }

    /// A free name that says what stands under it, and its guest path.
    fn free_name(&self, parent: &Parent<'_>) -> Result<(String, String), Fault> {
        for count in 1..100_u32 {
            let again = if count == 1 { String::new() } else { format!(" {count}") };
            let mark = format!(" (before record {}{again})", self.entry.record);
            let name = marked(parent.name, &mark);
            if look(parent.dir.as_fd(), &name)?.is_none() {
                let (above, _) = split_last(&self.entry.path);
                let path = format!("{}/{name}", above.unwrap_or_default());
                return Ok((name, path));
            }
        }
        Err(Fault::Exists)
    }

    /// Takes writes that a crash left unfinished out of a directory.
    fn sweep(&self, parent: &Parent<'_>) -> Result<(), Fault> {
        let inside = within(parent.dir.as_fd(), parent.name)?;
        for entry in Dir::read_from(&inside).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let name = entry.file_name();
            if is_part(name.to_bytes()) {
                let kept = self.keep.drawer(self.held, Missing::Make)?.dir;
                renameat_with(&inside, name, kept, name, RenameFlags::NOREPLACE).map_err(fault)?;
            }
        }
        Ok(())
    }

    /// Directories that were made go again, where nothing is in them.
    fn unmake(&self) -> Result<Undone, Fault> {
        let mut undone = Undone::Nothing;
        for path in self.entry.made.iter().rev() {
            let Place::Inside(_, rest) = self.disk.table.place(path)? else { continue };
            let Some((parent, found)) = self.standing(rest)? else { continue };
            if found.kind != Kind::Directory {
                return Ok(Undone::Left);
            }
            undone = Undone::Restored;
            if self.resolve == Resolve::Undo {
                self.sweep(&parent)?;
                match unlinkat(&parent.dir, parent.name, AtFlags::REMOVEDIR) {
                    Ok(()) => settled(parent.dir.as_fd(), parent.dir.as_fd())?,
                    // Somebody has put something there.
                    Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Undone::Left),
                    Err(errno) => return Err(fault(errno)),
                }
            }
        }
        Ok(undone)
    }
}

/// A name with a mark before its extension, short enough for any disk.
fn marked(name: &str, mark: &str) -> String {
    let dot = name.rfind('.').filter(|at| *at > 0).unwrap_or(name.len());
    let (mut stem, extension) = name.split_at_checked(dot).unwrap_or((name, ""));
    while stem.len().saturating_add(extension.len()).saturating_add(mark.len()) > NAME_BYTES {
        let mut chars = stem.chars();
        if chars.next_back().is_none() {
            break;
        }
        stem = chars.as_str();
    }
    format!("{stem}{mark}{extension}")
}

fn rename(
    from: (BorrowedFd<'_>, &str),
    to: (BorrowedFd<'_>, &str),
    flags: RenameFlags,
) -> Result<(), Fault> {
    renameat_with(from.0, from.1, to.0, to.1, flags).map_err(fault)
}

/// SHA-256 of a part of a file, or nothing where it ends before that.
fn digest(file: &OwnedFd, from: u64, count: u64) -> Result<Option<[u8; 32]>, Fault> {
    const CHUNK: u64 = 1 << 20;
    let (mut hash, mut done) = (Sha256::new(), 0);
    while done < count {
        let want = count.saturating_sub(done).min(CHUNK);
        let bytes: Vec<u8> = read(file, from.saturating_add(done), want)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        hash.update(&bytes);
        done = done.saturating_add(length(&bytes));
    }
    Ok(Some(hash.finalize().into()))
}

/// Whether something is what an entry says: itself, or a file that an undo put in
/// its place.
fn is_same(found: &Found, state: &State) -> bool {
    let itself = found.identity == state.identity && found.kind == state.kind;
    itself || (state.kind == Kind::File && is_alike(found, state))
}

/// Whether a file has the size and the time that an entry says.
fn is_alike(found: &Found, state: &State) -> bool {
    found.kind == Kind::File
        && found.size() == state.size
        && (found.stat.st_mtime, found.stat.st_mtime_nsec) == state.modified
}

/// Copies a file up to the length it had, and gives the copy the time it had.
fn shorten(
    file: &OwnedFd,
    found: &Found,
    before: &State,
    (dir, name): (BorrowedFd<'_>, &str),
) -> Result<(), Fault> {
    // Under another name until it is whole, so that no crash leaves half a copy.
    let mut copied = Fresh::named(dir, unique(PART_PREFIX), PRIVATE)?;
    copy(file, &copied.file, before.size, u64::MAX)?;
    keep_attributes(file, found, &copied.file)?;
    let modified = Timespec {
        tv_sec: before.modified.0,
        tv_nsec: before.modified.1.try_into().map_err(|_| Fault::Unsupported)?,
    };
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: modified };
    futimens(&copied.file, &times).map_err(fault)?;
    sync(copied.file.as_fd())?;
    rename((dir, copied.name()), (dir, name), RenameFlags::NOREPLACE)?;
    copied.keep();
    settled(dir, dir)
}
