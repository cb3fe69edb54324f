//! A folder that a program wrote in, reached by its handle alone
//!
//! The program chose every name in it, and may have put a link, a pipe or bytes that are
//! no text anywhere. This process has rights outside that the program has not.
//!
//! # Invariants
//! - Every name is looked up beneath the folder's handle; the kernel follows no link.
//! - Only a plain file is read, and nothing is waited for.
//! - A name's bytes are what they are: none is looked up by a likeness of it.
//!
//! # Not here
//! What is to stand there (`copy`).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, fstat, mkdirat,
    openat, openat2, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use synapse_primitives::platform::Kind;

/// Levels that are looked at, and entries.
const LEVELS: usize = 200;
const ENTRIES: usize = 400_000;

/// A folder, by its handle.
#[derive(Debug)]
pub(super) struct Inside(OwnedFd);

/// What a file is known by: the kernel alone writes the time of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What stands in a folder.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) named: BTreeMap<String, (Kind, Mark)>,
    /// Paths that are no text, and are not looked into.
    pub(super) nameless: Vec<PathBuf>,
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

impl Inside {
    /// The folder at a path that no program can change.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, FOLDER, Mode::empty())?))
    }

    /// Opens beneath the folder, through no link.
    fn reach(&self, path: &Path, how: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        // A pipe is not waited for; what is opened for its path alone cannot be one's end.
        let waits = if how.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK };
        let how = how | OFlags::NOFOLLOW | OFlags::CLOEXEC | waits;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        loop {
            match openat2(&self.0, path, how, mode, resolve) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                reached => return reached,
            }
        }
    }

    /// The directory that holds a path's last name, and that name.
    fn parent<'p>(&self, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let above = path.parent().unwrap_or(Path::new(""));
        Ok((self.reach(above, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?, name))
    }

    /// Whether a file or directory stands at a path, and no link before it.
    pub(super) fn has(&self, path: &Path) -> bool {
        let found = self.reach(path, OFlags::PATH, Mode::empty()).and_then(fstat);
        found.is_ok_and(|found| kind(&found) != Kind::Link)
    }

    /// A plain file, to be read.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        let file = self.reach(path, OFlags::RDONLY, Mode::empty())?;
        if kind(&fstat(&file)?) == Kind::File {
            Ok(File::from(file))
        } else {
            Err(io::Error::other("it is no plain file"))
        }
    }

    /// A new file, to be written.
    pub(super) fn new_file(&self, path: &Path) -> io::Result<File> {
        let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        Ok(File::from(self.reach(path, how, Mode::RUSR | Mode::WUSR)?))
    }

    pub(super) fn new_folder(&self, path: &Path) -> io::Result<()> {
        let (above, name) = self.parent(path)?;
        Ok(mkdirat(above, name, Mode::RWXU)?)
    }

    pub(super) fn new_link(&self, path: &Path, leads_to: &str) -> io::Result<()> {
        let (above, name) = self.parent(path)?;
        Ok(symlinkat(leads_to, above, name)?)
    }

    pub(super) fn mark(&self, path: &Path) -> io::Result<Mark> {
        let (above, name) = self.parent(path)?;
        Ok(mark(&statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Everything in the folder, by its path there.
    pub(super) fn all(&self) -> io::Result<Found> {
        let mut found = Found::default();
        walk(self.0.as_fd(), Path::new(""), 0, &mut found)?;
        Ok(found)
    }

    /// Bytes of all that is in the folder; without an end where it is too deep to be told.
    pub(super) fn size(&self) -> u64 {
        size(self.0.as_fd(), 0)
    }

    /// Takes away all that is in the folder.
    pub(super) fn clear(&self) -> io::Result<()> {
        for name in names(self.0.as_fd())? {
            self.remove(Path::new(&name))?;
        }
        Ok(())
    }

    /// Takes away what stands at a path, if anything does.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let (above, name) = match self.parent(path) {
            // Where a link or a file stands before it, nothing stands at it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            parent => parent?,
        };
        let mut moved = Vec::new();
        self.take(above.as_fd(), name, 0, &mut moved)?;
        while let Some(name) = moved.pop() {
            self.take(self.0.as_fd(), &name, 0, &mut moved)?;
        }
        Ok(())
    }

    /// Takes away what has a name in a directory; what is too deep is moved up for later.
    fn take(
        &self,
        above: BorrowedFd<'_>,
        name: &OsStr,
        level: usize,
        moved: &mut Vec<OsString>,
    ) -> io::Result<()> {
        match unlinkat(above, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(why) => return Err(why.into()),
        }
        unclose(above, name)?;
        if level > LEVELS {
            for number in 0_u32..=u32::MAX {
                let free = OsString::from(format!("moved-{number}"));
                match renameat_with(above, name, &self.0, &free, RenameFlags::NOREPLACE) {
                    Err(Errno::EXIST) => {}
                    Err(why) => return Err(why.into()),
                    Ok(()) => {
                        moved.push(free);
                        break;
                    }
                }
            }
            return Ok(());
        }
        let here = openat(above, name, FOLDER, Mode::empty())?;
        for inner in names(here.as_fd())? {
            self.take(here.as_fd(), &inner, level.saturating_add(1), moved)?;
        }
        Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
    }
}

/// Opens a directory to us that a program may have closed.
fn unclose(above: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let here = openat(above, name, how, Mode::empty())?;
    // By its handle: the name may be another's by now.
    let path = format!("/proc/self/fd/{}", here.as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(0o700))
}

fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

fn kind(found: &Stat) -> Kind {
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    }
}

fn mark(found: &Stat) -> Mark {
    if kind(found) == Kind::Directory {
        return Mark::default();
    }
    let nanoseconds = |part| i64::try_from(part).unwrap_or_default();
    Mark {
        inode: found.st_ino,
        size: found.st_size.try_into().unwrap_or_default(),
        modified: (found.st_mtime, nanoseconds(found.st_mtime_nsec)),
        changed: (found.st_ctime, nanoseconds(found.st_ctime_nsec)),
    }
}

fn walk(folder: BorrowedFd<'_>, inner: &Path, level: usize, found: &mut Found) -> io::Result<()> {
    for name in names(folder)? {
        let path = inner.join(&name);
        let Ok(text) = String::from_utf8(path.as_os_str().as_bytes().to_vec()) else {
            found.nameless.push(path);
            continue;
        };
        let stat = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if kind(&stat) == Kind::Directory {
            if level >= LEVELS {
                return Err(io::Error::other("it is too deep"));
            }
            let below = openat(folder, &name, FOLDER, Mode::empty())?;
            walk(below.as_fd(), &path, level.saturating_add(1), found)?;
        }
        found.named.insert(text, (kind(&stat), mark(&stat)));
        if found.named.len().saturating_add(found.nameless.len()) > ENTRIES {
            return Err(io::Error::other("it is more files than can be looked at"));
        }
    }
    Ok(())
}

fn size(folder: BorrowedFd<'_>, level: usize) -> u64 {
    if level > LEVELS {
        return u64::MAX;
    }
    let inner = |name: OsString| {
        let Ok(found) = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { return 0 };
        let own = u64::try_from(found.st_blocks).unwrap_or_default().saturating_mul(512);
        if kind(&found) != Kind::Directory {
            return own;
        }
        let below = openat(folder, &name, FOLDER, Mode::empty());
        own.saturating_add(below.map_or(0, |below| size(below.as_fd(), level.saturating_add(1))))
    };
    names(folder).unwrap_or_default().into_iter().map(inner).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_likeness_of_a_name_is_never_looked_up_and_no_link_is_followed() {
        let (outer, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outer.path().join("x"), "mine").unwrap();
        let odd = OsStr::from_bytes(b"d\xff");
        fs::create_dir(root.path().join(odd)).unwrap();
        fs::write(root.path().join(odd).join("x"), "theirs").unwrap();
        symlink(outer.path(), root.path().join("d\u{fffd}")).unwrap();
        rustix::fs::mknodat(CWD, root.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let inside = Inside::open(root.path()).unwrap();
        let found = inside.all().unwrap();
        assert_eq!(found.nameless, [Path::new(odd)]);
        assert_eq!(found.named.keys().collect::<Vec<_>>(), ["d\u{fffd}", "pipe"]);
        for path in ["d\u{fffd}/x", "pipe", "../x", "/etc/passwd", "d\u{fffd}"] {
            assert!(inside.file(Path::new(path)).is_err(), "{path}");
        }
        let through = Path::new("d\u{fffd}/y");
        assert!(inside.new_file(through).is_err() && inside.new_folder(through).is_err());
        assert!(!inside.has(Path::new("d\u{fffd}")) && !inside.has(Path::new("d\u{fffd}/x")));
        inside.remove(Path::new("d\u{fffd}/x")).unwrap();
        inside.remove(Path::new(odd)).unwrap();
        inside.clear().unwrap();
        assert_eq!(fs::read(outer.path().join("x")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_too_deep_is_told_and_still_taken_away() {
        let root = tempfile::tempdir().unwrap();
        let mut here = root.path().to_owned();
        for _ in 0..500 {
            here.push("d");
            fs::create_dir(&here).unwrap();
        }
        let inside = Inside::open(root.path()).unwrap();
        assert!(inside.all().is_err() && inside.size() == u64::MAX);
        inside.clear().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
