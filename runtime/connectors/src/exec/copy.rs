//! The copy of a folder that a line is run in
//!
//! A copy stands in Synapse's own state, under a name that stays, so that what is built
//! from it need not be built again. Before each line it is made what the folder is; what
//! the last line left in it is known by marks that no program can set.
//!
//! # Invariants
//! - A copy holds what the call may read, and of a repository its history alone.
//! - What differs from what was put there, is put there anew or is a change.
//!
//! # Not here
//! Bringing changes back (`back`).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};
use synapse_abi::code::Fault;
use synapse_primitives::hex;
use synapse_primitives::platform::{Entry, Kind};
use synapse_primitives::tree::{PART, Tree};

use super::{Unfit, git};

/// Entries of a folder that is copied, and its levels.
const ENTRIES: usize = 200_000;
const LEVELS: usize = 100;

/// A copy, held by this run alone.
#[derive(Debug)]
pub(super) struct Copy {
    path: PathBuf,
    known: BTreeMap<String, Known>,
    _lock: File,
}

/// What was put into a copy under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) kind: Kind,
    pub(super) size: u64,
    modified_ms: u64,
    mark: Mark,
    /// Of a file's bytes.
    pub(super) digest: [u8; 32],
}

/// What a file in a copy is known by: the kernel alone writes the time of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What stands in a copy otherwise than it was put there.
#[derive(Debug)]
pub(super) struct Differs {
    /// Its path in the folder.
    pub(super) path: String,
    /// What stands there now.
    pub(super) now: Option<Kind>,
    /// What was put there.
    pub(super) before: Option<Known>,
}

impl Copy {
    /// The copy that a connector has of a folder of the host.
    pub(super) fn open(base: &Path, server: &str, host: &str) -> Result<Self, String> {
        let name = hex(&Sha256::digest(host));
        let path = base.join(format!("{server}-{}", name.get(..16).unwrap_or(&name)));
        let failed = |why: &io::Error| {
            format!("the copy of the folder cannot be made at {}: {why}", path.display())
        };
        let made = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made(&path).map_err(|why| failed(&why))?;
        let lock = File::create(path.join("lock")).map_err(|why| failed(&why))?;
        lock.try_lock().map_err(|_| {
            "another run works in a copy of this folder; wait until it has ended".to_owned()
        })?;
        let copy = Self { path: path.clone(), known: BTreeMap::new(), _lock: lock };
        for folder in [copy.folder(), copy.cache(), copy.home(), copy.spare()] {
            made(&folder).map_err(|why| failed(&why))?;
        }
        Ok(copy)
    }

    /// Where the line is run.
    pub(super) fn folder(&self) -> PathBuf {
        self.path.join("tree")
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

    /// Bytes of all that stands there.
    pub(super) fn size(&self) -> u64 {
        size(&self.path, 0)
    }

    /// Takes everything away that a line filled the disk with.
    pub(super) fn empty(&mut self) -> Result<(), String> {
        self.known.clear();
        [self.folder(), self.cache(), self.home(), self.spare()].iter().try_for_each(|it| clear(it))
    }

    /// Whether a file or directory stands at a path of the folder, and no link before it.
    pub(super) fn has(&self, path: &str) -> bool {
        let mut here = self.folder();
        path == "."
            || path.split('/').all(|part| {
                here.push(part);
                fs::symlink_metadata(&here).is_ok_and(|found| !found.is_symlink())
            })
    }

    /// The path in the copy.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// Makes the copy what the folder is, as far as the call may read it.
    pub(super) async fn follow(
        &mut self,
        tree: &dyn Tree,
        root: &str,
        most: u64,
        cancel: &AtomicBool,
    ) -> Result<(), Unfit> {
        clear(&self.spare())?;
        let wanted = wanted(tree, root, most).await?;
        for differs in self.differs()? {
            self.forget(&differs.path)?;
        }
        let stale = |(path, known): (&String, &Known)| {
            let same = wanted.get(path).is_some_and(|entry| {
                known.kind == entry.kind
                    && (known.kind == Kind::Directory
                        || (known.size, known.modified_ms) == (entry.size, entry.modified_ms))
            });
            (!same).then(|| path.clone())
        };
        for path in self.known.iter().filter_map(stale).collect::<Vec<_>>() {
            self.forget(&path)?;
        }
        for (path, entry) in &wanted {
            if cancel.load(Ordering::Relaxed) {
                return Err(Unfit::Fault(Fault::Cancelled));
            }
            if !self.known.contains_key(path) {
                let known = self.put(tree, root, path, entry).await?;
                self.known.extend(known.map(|known| (path.clone(), known)));
            }
        }
        if wanted.contains_key(git::FOLDER) {
            self.configure(tree, root).await?;
        }
        Ok(())
    }

    /// Takes away what stands at a path, whatever it is.
    fn forget(&mut self, path: &str) -> Result<(), String> {
        let inner = format!("{path}/");
        self.known.retain(|known, _| known != path && !known.starts_with(&inner));
        remove(&self.at(path))
    }

    async fn put(
        &self,
        tree: &dyn Tree,
        root: &str,
        path: &str,
        entry: &Entry,
    ) -> Result<Option<Known>, Unfit> {
        let (from, to) = (format!("{root}/{path}"), self.at(path));
        let mut known = Known {
            kind: entry.kind,
            size: entry.size,
            modified_ms: entry.modified_ms,
            mark: Mark::default(),
            digest: [0; 32],
        };
        match entry.kind {
            Kind::Directory => fs::create_dir(&to).map_err(|why| failed(&to, &why))?,
            Kind::File => {
                let Some(digest) = copied(tree, &from, &to, entry).await? else {
                    return Ok(None);
                };
                known.digest = digest;
            }
            Kind::Link => {
                let detail = tree.detail(&from).await.map_err(Unfit::Fault)?;
                let Some(link) = detail.link else { return Ok(None) };
                symlink(link, &to).map_err(|why| failed(&to, &why))?;
            }
            Kind::Other => return Ok(None),
        }
        known.mark = mark(&to, entry.kind).map_err(|why| failed(&to, &why))?;
        Ok(Some(known))
    }

    /// Gives the repository in the copy a configuration of ours.
    async fn configure(&mut self, tree: &dyn Tree, root: &str) -> Result<(), Unfit> {
        let path = format!("{}/config", git::FOLDER);
        if self.known.contains_key(&path) {
            return Ok(());
        }
        let found = tree.read(&format!("{root}/{path}"), 0).await.unwrap_or_default();
        let text = git::configuration(&String::from_utf8_lossy(&found));
        let to = self.at(&path);
        remove(&to)?;
        fs::write(&to, &text).map_err(|why| failed(&to, &why))?;
        let mark = mark(&to, Kind::File).map_err(|why| failed(&to, &why))?;
        let (size, digest) = (text.len() as u64, Sha256::digest(&text).into());
        let known = Known { kind: Kind::File, size, modified_ms: 0, mark, digest };
        self.known.insert(path, known);
        Ok(())
    }

    /// What stands there otherwise than it was put there; of what is inside of something
    /// new or gone, every entry.
    pub(super) fn differs(&self) -> Result<Vec<Differs>, String> {
        let mut found = BTreeMap::new();
        walk(&self.folder(), "", 0, &mut found)?;
        let mut differs = Vec::new();
        for (path, now) in &found {
            let before = self.known.get(path);
            let mark = || mark(&self.at(path), *now).unwrap_or_default();
            if before.is_none_or(|known| known.kind != *now || known.mark != mark()) {
                differs.push(Differs {
                    path: path.clone(),
                    now: Some(*now),
                    before: before.cloned(),
                });
            }
        }
        let gone = self.known.iter().filter(|(path, _)| !found.contains_key(*path));
        differs.extend(gone.map(|(path, known)| Differs {
            path: path.clone(),
            now: None,
            before: Some(known.clone()),
        }));
        Ok(differs)
    }
}

/// What of a folder is to be in its copy, by path, a directory before what is in it.
async fn wanted(tree: &dyn Tree, root: &str, most: u64) -> Result<BTreeMap<String, Entry>, Unfit> {
    let (mut wanted, mut left, mut bytes) = (BTreeMap::new(), vec![String::new()], 0_u64);
    while let Some(folder) = left.pop() {
        let path = if folder.is_empty() { root.to_owned() } else { format!("{root}/{folder}") };
        let entries = match tree.list(&path).await {
            Err(Fault::Subtree) if folder.is_empty() => {
                return Err(Unfit::Told(format!(
                    "the grant does not let {root} be listed; it is to have the right `list`, and \
                     `read` for what a line is to see"
                )));
            }
            Err(Fault::NotFound | Fault::NotAFile | Fault::Link) if folder.is_empty() => {
                return Err(Unfit::Told(format!(
                    "argument `tree` names no folder; {root} is not one, look with `fs_list`"
                )));
            }
            // On the way to what may be read, nothing need be.
            Err(Fault::Subtree | Fault::NotFound) => continue,
            entries => entries.map_err(Unfit::Fault)?,
        };
        for entry in entries {
            let inner = if folder.is_empty() {
                entry.name.clone()
            } else {
                format!("{folder}/{}", entry.name)
            };
            let repository = inner != git::FOLDER || entry.kind == Kind::Directory;
            if !git::is_copied(&inner) || !repository {
                continue;
            }
            bytes = bytes.saturating_add(entry.size);
            if wanted.len() >= ENTRIES || bytes > most || inner.split('/').count() > LEVELS {
                return Err(Unfit::Told(format!(
                    "the folder is too large to be copied; it has more than {ENTRIES} entries, \
                     {most} bytes (`disk` in the manifest) or {LEVELS} levels: name a smaller one"
                )));
            }
            if entry.kind == Kind::Directory {
                left.push(inner.clone());
            }
            wanted.insert(inner, entry);
        }
    }
    Ok(wanted)
}

/// Copies a file with its time, and says what its bytes are; none where it is gone by now.
async fn copied(
    tree: &dyn Tree,
    from: &str,
    to: &Path,
    entry: &Entry,
) -> Result<Option<[u8; 32]>, Unfit> {
    let detail = match tree.detail(from).await {
        Err(Fault::NotFound) => return Ok(None),
        detail => detail.map_err(Unfit::Fault)?,
    };
    let mut file = File::create_new(to).map_err(|why| failed(to, &why))?;
    let (mut digest, mut offset) = (Sha256::new(), 0);
    loop {
        let part = match tree.read(from, offset).await {
            // Nobody may read it on this machine, so no program may.
            Err(Fault::HostDenied) => break,
            part => part.map_err(Unfit::Fault)?,
        };
        digest.update(&part);
        file.write_all(&part).map_err(|why| failed(to, &why))?;
        offset = offset.saturating_add(part.len() as u64);
        if (part.len() as u64) < PART {
            break;
        }
    }
    let bits = if detail.executable { 0o755 } else { 0o644 };
    file.set_permissions(Permissions::from_mode(bits)).map_err(|why| failed(to, &why))?;
    let modified = UNIX_EPOCH + Duration::from_millis(entry.modified_ms);
    file.set_modified(modified).map_err(|why| failed(to, &why))?;
    Ok(Some(digest.finalize().into()))
}

fn failed(path: &Path, why: &io::Error) -> String {
    format!("the folder cannot be copied: {}: {why}; is the disk full?", path.display())
}

fn mark(path: &Path, kind: Kind) -> io::Result<Mark> {
    if kind == Kind::Directory {
        return Ok(Mark::default());
    }
    let found = fs::symlink_metadata(path)?;
    Ok(Mark {
        inode: found.ino(),
        size: found.size(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

/// Everything below a folder, by its path there; links are not followed.
fn walk(
    folder: &Path,
    inner: &str,
    level: usize,
    found: &mut BTreeMap<String, Kind>,
) -> Result<(), String> {
    let unread = |why: io::Error| format!("what the line left cannot be looked at: {why}");
    for entry in fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = if inner.is_empty() { name.into_owned() } else { format!("{inner}/{name}") };
        let kind = entry.file_type().map_err(unread)?;
        let kind = match kind {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        if kind == Kind::Directory && level < LEVELS.saturating_mul(2) {
            walk(&entry.path(), &path, level.saturating_add(1), found)?;
        }
        found.insert(path, kind);
        if found.len() > ENTRIES.saturating_mul(2) {
            return Err("the line left more files than can be looked at; they are not kept".into());
        }
    }
    Ok(())
}

fn size(path: &Path, level: usize) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    let own = found.blocks().saturating_mul(512);
    if !found.is_dir() || level > LEVELS.saturating_mul(2) {
        return own;
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let inner = entries.map(|entry| size(&entry.path(), level.saturating_add(1)));
    inner.fold(own, u64::saturating_add)
}

/// Takes away all that is in a folder.
fn clear(folder: &Path) -> Result<(), String> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        remove(&entry.path())?;
    }
    Ok(())
}

/// Takes away what stands at a path, if anything does.
fn remove(path: &Path) -> Result<(), String> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let gone = if found.is_dir() {
        fs::remove_dir_all(path).or_else(|_| {
            open(path);
            fs::remove_dir_all(path)
        })
    } else {
        fs::remove_file(path)
    };
    gone.map_err(|why| {
        format!("what a line left cannot be removed: {}: {why}; remove it by hand", path.display())
    })
}

/// Opens directories that a program closed.
fn open(path: &Path) {
    let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open(&entry.path());
        }
    }
}
