//! Where a copy stands in Synapse's own state, and what it is marked with
//!
//! A place keeps its name, so that what is built in it need not be built again. One run
//! has it at a time; what it holds is the last line's until the next one.
//!
//! # Invariants
//! - What a line was begun in and not ended, nobody uses any more.
//! - An old place is taken away only while no run has it.
//!
//! # Not here
//! What is put there (`copy`); which old ones are to go (`synapse-host`).

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use synapse_primitives::hex;

use super::inside::Inside;

/// What a line may write there.
const FOLDERS: [&str; 4] = [TREE, "cache", "home", "spare"];
const TREE: &str = "tree";
/// Held by the run that has it, and written when it took it.
const LOCK: &str = "lock";
/// The folder of the host that it is for.
const FOLDER: &str = "folder";
/// Stands there while a line runs.
const BUSY: &str = "busy";
/// Stands there while what a line changed is nowhere else.
const UNKEPT: &str = "unkept";
/// Before the name of one that is given up.
const LOST: &str = ".lost-";

/// A place, held by this run alone.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    busy: bool,
    _lock: File,
}

impl Place {
    /// The place of a connector and a folder of the host.
    pub(super) fn open(base: &Path, server: &str, host: &str) -> Result<Self, String> {
        let name = hex(&Sha256::digest(host));
        let path = base.join(format!("{server}-{}", name.get(..16).unwrap_or(&name)));
        let failed = |why: &io::Error| {
            format!("the copy of the folder cannot be made at {}: {why}", path.display())
        };
        let locked = || {
            made(&path).map_err(|why| failed(&why))?;
            let name = path.join(LOCK);
            let lock = File::create(&name).map_err(|why| failed(&why))?;
            if lock.try_lock().is_err() || !stands(&name, &lock).unwrap_or_default() {
                return Err("another run works in a copy of this folder; wait until it has ended"
                    .to_owned());
            }
            lock.set_modified(SystemTime::now()).map_err(|why| failed(&why))?;
            Ok(lock)
        };
        let mut lock = locked()?;
        if path.join(BUSY).exists() {
            // What was begun there may still write there, and is let have it.
            let lost = give_up(base, &path).map_err(|why| failed(&why))?;
            let _ = fs::remove_dir_all(&lost);
            lock = locked()?;
        }
        let folders = FOLDERS.iter().try_for_each(|folder| made(&path.join(folder)));
        let named = folders.and_then(|()| fs::write(path.join(FOLDER), host));
        named.map_err(|why| failed(&why))?;
        Ok(Self { path, busy: false, _lock: lock })
    }

    /// Where the line is run.
    pub(super) fn tree(&self) -> PathBuf {
        self.path.join(TREE)
    }

    /// What is kept from call to call, and from run to run.
    pub(super) fn cache(&self) -> PathBuf {
        self.path.join("cache")
    }

    /// The home folder of what runs.
    pub(super) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// What is emptied before each line.
    pub(super) fn spare(&self) -> PathBuf {
        self.path.join("spare")
    }

    /// What no line reaches.
    pub(super) fn own(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Bytes of all that lines may write.
    pub(super) fn size(&self) -> u64 {
        size(&self.path)
    }

    /// Takes everything away that lines left.
    pub(super) fn empty(&self) -> Result<(), String> {
        FOLDERS.iter().try_for_each(|folder| clear(&self.path.join(folder)))?;
        self.settle()
    }

    /// A line is about to run there: until [`Self::end`] something of it may write there.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        let path = self.path.join(BUSY);
        fs::write(&path, []).map_err(|why| unmarked(&path, &why))?;
        self.busy = true;
        Ok(())
    }

    /// Nothing of it runs any more. What it changed is there alone, until [`Self::settle`].
    pub(super) fn end(&mut self) -> Result<(), String> {
        let path = self.path.join(BUSY);
        fs::rename(&path, self.path.join(UNKEPT)).map_err(|why| unmarked(&path, &why))?;
        self.busy = false;
        Ok(())
    }

    /// Whether a line was begun there and not ended: then nobody uses it any more.
    pub(super) const fn is_lost(&self) -> bool {
        self.busy
    }

    /// What a line changed there, and was to be brought back, was; or it was taken away.
    pub(super) fn settle(&self) -> Result<(), String> {
        let path = self.path.join(UNKEPT);
        match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(unmarked(&path, &why)),
            _ => Ok(()),
        }
    }
}

/// A place that no run has.
#[derive(Debug)]
pub struct Old {
    path: PathBuf,
    /// Whose it is; none of one that is given up.
    pub server: Option<String>,
    /// The folder of the host that it is for, where that was written down.
    pub folder: Option<PathBuf>,
    /// When a run last took it.
    pub used: SystemTime,
    /// What stands in the way of taking it away.
    pub holds: Option<Holds>,
    _lock: Option<File>,
}

/// What an old place may hold that stands nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What a line may still write that was begun there and not ended.
    Line,
    /// What a line changed and was not brought back.
    Changes,
}

impl Old {
    /// The names of all that stand in the folder of copies.
    ///
    /// # Errors
    /// It cannot be listed.
    pub fn names(base: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(base) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                // A name that is not UTF-8 is no copy's.
                names.extend(entry.file_name().into_string());
            }
        }
        names.retain(|name| name.starts_with(LOST) || server(name).is_some());
        names.sort();
        Ok(names)
    }

    /// The place of such a name, taken so that no run does; none where one has it.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn take(base: &Path, name: &str) -> io::Result<Option<Self>> {
        let path = base.join(name);
        if name.starts_with(LOST) {
            let used = fs::symlink_metadata(&path)?.modified()?;
            return Ok(Some(Self {
                path,
                used,
                server: None,
                folder: None,
                holds: None,
                _lock: None,
            }));
        }
        let lock = match File::options().read(true).open(path.join(LOCK)) {
            // Somebody makes it or takes it away.
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            lock => lock?,
        };
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(why)) => return Err(why),
            Ok(()) => {}
        }
        if !stands(&path.join(LOCK), &lock).unwrap_or_default() {
            return Ok(None);
        }
        let marked = |mark| path.join(mark).exists();
        let holds = match (marked(BUSY), marked(UNKEPT)) {
            (true, _) => Some(Holds::Line),
            (_, true) => Some(Holds::Changes),
            _ => None,
        };
        Ok(Some(Self {
            server: server(name).map(ToOwned::to_owned),
            folder: fs::read_to_string(path.join(FOLDER)).ok().map(PathBuf::from),
            used: lock.metadata()?.modified()?,
            holds,
            path,
            _lock: Some(lock),
        }))
    }

    /// Bytes of what stands there.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        size(&self.path)
    }

    /// Takes it away.
    ///
    /// # Errors
    /// Not all of it could be.
    pub fn remove(self) -> io::Result<()> {
        let path = match (&self.server, self.path.parent()) {
            // Whoever comes now finds none, or the next.
            (Some(_), Some(base)) => give_up(base, &self.path)?,
            _ => self.path,
        };
        Inside::open(&path)?.clear()?;
        fs::remove_dir(path)
    }
}

/// Whether a lock still has its name: one that was taken away meanwhile locks nothing.
fn stands(name: &Path, lock: &File) -> io::Result<bool> {
    Ok(fs::metadata(name)?.ino() == lock.metadata()?.ino())
}

/// The connector in a place's name.
fn server(name: &str) -> Option<&str> {
    let (server, folder) = name.rsplit_once('-')?;
    let is_hex = folder.len() == 16 && folder.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then_some(server)
}

/// Gives a place a name that no connector has.
fn give_up(base: &Path, path: &Path) -> io::Result<PathBuf> {
    let inode = fs::metadata(path)?.ino();
    let lost = base.join(format!("{LOST}{}-{inode}", std::process::id()));
    fs::rename(path, &lost).map(|()| lost)
}

fn made(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn size(place: &Path) -> u64 {
    let sizes = FOLDERS
        .iter()
        .map(|folder| Inside::open(&place.join(folder)).map_or(0, |inside| inside.size()));
    sizes.fold(0, u64::saturating_add)
}

/// Takes away all that is in a folder.
pub(super) fn clear(folder: &Path) -> Result<(), String> {
    let cleared = Inside::open(folder).and_then(|inside| inside.clear());
    cleared.map_err(|why| unremoved(folder, &why))
}

pub(super) fn unremoved(path: &Path, why: &io::Error) -> String {
    format!("what a line left cannot be removed: {}: {why}; remove it by hand", path.display())
}

fn unmarked(path: &Path, why: &io::Error) -> String {
    format!("the copy cannot be marked at {}: {why}; is the disk full?", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "/host";

    fn open(base: &Path) -> Place {
        Place::open(base, "own", HOST).unwrap()
    }

    /// The one place that stands there, if no run has it.
    fn old(base: &Path) -> Option<Old> {
        let names = Old::names(base).unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        Old::take(base, &names[0]).unwrap()
    }

    #[test]
    fn a_place_that_a_line_was_begun_in_is_used_by_nobody() {
        let base = tempfile::tempdir().unwrap();
        let mut place = open(base.path());
        fs::write(place.cache().join("kept"), "x").unwrap();
        place.begin().unwrap();
        assert!(place.is_lost());
        drop(place);
        let mut place = open(base.path());
        assert!(!place.cache().join("kept").exists() && !place.is_lost());
        fs::write(place.cache().join("kept"), "x").unwrap();
        place.begin().unwrap();
        place.end().unwrap();
        drop(place);
        assert!(open(base.path()).cache().join("kept").exists());
    }

    #[test]
    fn an_old_place_says_what_it_holds_and_goes_whole() {
        let base = tempfile::tempdir().unwrap();
        let mut place = open(base.path());
        assert!(old(base.path()).is_none(), "a run has it");
        place.begin().unwrap();
        drop(place);
        assert_eq!(old(base.path()).unwrap().holds, Some(Holds::Line));

        let mut place = open(base.path());
        place.begin().unwrap();
        place.end().unwrap();
        drop(place);
        assert_eq!(old(base.path()).unwrap().holds, Some(Holds::Changes));

        let place = open(base.path());
        place.settle().unwrap();
        fs::write(place.cache().join("kept"), "x").unwrap();
        drop(place);
        let found = old(base.path()).unwrap();
        assert_eq!((found.server.as_deref(), found.holds), (Some("own"), None));
        assert_eq!(found.folder.as_deref(), Some(Path::new(HOST)));
        assert!(found.bytes() > 0 && found.used.elapsed().unwrap().as_secs() < 60);
        assert!(Place::open(base.path(), "own", HOST).is_err(), "it is held");
        found.remove().unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
        drop(open(base.path()));
    }

    #[test]
    fn what_was_given_up_is_found_and_nothing_else_is_looked_at() {
        let base = tempfile::tempdir().unwrap();
        assert!(Old::names(&base.path().join("none")).unwrap().is_empty());
        fs::create_dir_all(base.path().join(".lost-7-8/tree/deep")).unwrap();
        fs::create_dir(base.path().join("notes")).unwrap();
        std::os::unix::fs::symlink(base.path().join("notes"), base.path().join(".lost-9-9"))
            .unwrap();
        let found = old(base.path()).unwrap();
        assert_eq!((&found.server, &found.folder, found.holds), (&None, &None, None));
        found.remove().unwrap();
        assert!(base.path().join("notes").exists() && !base.path().join(".lost-7-8").exists());
    }
}
