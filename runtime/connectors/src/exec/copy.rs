//! The copy of a folder that a line is run in
//!
//! Before each line a copy is made what the folder is; what the last line left in it is
//! known by marks that no program can set.
//!
//! # Invariants
//! - A copy holds what the call may read, and of a repository its history alone.
//! - What differs from what was put there, is put there anew or is a change.
//!
//! # Not here
//! Where it stands (`place`); bringing changes back (`back`).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};
use synapse_primitives::platform::{Entry, Kind};
use synapse_primitives::tree::{PART, Tree};
use synapse_reply::Fault;

use super::inside::{Inside, Mark};
use super::place::{Place, clear, unremoved};
use super::{Unfit, git};

/// Entries of a folder that is copied, and its levels.
const ENTRIES: usize = 200_000;
const LEVELS: usize = 100;

/// Beside what lines may write: every file that was ever put here since it was empty.
const SEEN: &str = "seen";

/// A copy, held by this run alone.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) place: Place,
    tree: Inside,
    /// For what is kept of it.
    seen: BTreeSet<String>,
    known: BTreeMap<String, Known>,
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

/// All that does.
#[derive(Debug)]
pub(super) struct Different {
    pub(super) named: Vec<Differs>,
    /// Paths that are no text: nothing of the folder is one.
    pub(super) nameless: Vec<PathBuf>,
}

impl Copy {
    /// The copy that a connector has of a folder of the host.
    pub(super) fn open(base: &Path, server: &str, host: &str) -> Result<Self, String> {
        let place = Place::open(base, server, host)?;
        let tree = Inside::open(&place.tree()).map_err(|why| failed(&place.tree(), &why))?;
        let seen = fs::read(place.own(SEEN)).map(|text| serde_json::from_slice(&text));
        let mut copy = Self { place, tree, seen: BTreeSet::new(), known: BTreeMap::new() };
        match seen {
            Ok(Ok(seen)) => copy.seen = seen,
            Ok(Err(_)) | Err(_) => copy.empty()?,
        }
        Ok(copy)
    }

    /// Takes everything away that lines left.
    pub(super) fn empty(&mut self) -> Result<(), String> {
        self.known.clear();
        self.place.empty()?;
        self.seen.clear();
        self.keep_seen()
    }

    fn keep_seen(&self) -> Result<(), String> {
        let path = self.place.own(SEEN);
        let text = serde_json::to_vec(&self.seen).map_err(|why| why.to_string())?;
        fs::write(&path, text).map_err(|why| failed(&path, &why))
    }

    /// Whether a file or directory stands at a path of the folder, and no link before it.
    pub(super) fn has(&self, path: &str) -> bool {
        self.tree.has(Path::new(path))
    }

    /// A plain file of the folder.
    pub(super) fn file(&self, path: &str) -> io::Result<File> {
        self.tree.file(Path::new(path))
    }

    /// Makes the copy what the folder is, as far as the call may read it.
    pub(super) async fn follow(
        &mut self,
        tree: &dyn Tree,
        root: &str,
        most: u64,
        cancel: &AtomicBool,
    ) -> Result<(), Unfit> {
        let wanted = wanted(tree, root, most).await?;
        // What was kept of a file that this call may not read is in any of the folders.
        let mut narrower = false;
        for path in self.seen.iter().filter(|path| !wanted.contains_key(*path)) {
            narrower |= tree.detail(&format!("{root}/{path}")).await == Err(Fault::Subtree);
        }
        if narrower || clear(&self.place.spare()).and_then(|()| self.restore()).is_err() {
            self.empty()?;
        }
        let files = wanted.iter().filter(|(_, entry)| entry.kind != Kind::Directory);
        let before = self.seen.len();
        self.seen.extend(files.map(|(path, _)| path.clone()));
        if self.seen.len() != before {
            self.keep_seen()?;
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

    /// Takes away what a line changed.
    fn restore(&mut self) -> Result<(), String> {
        let different = self.differs()?;
        for path in &different.nameless {
            self.remove(path)?;
        }
        different.named.iter().try_for_each(|differs| self.forget(&differs.path))?;
        self.place.settle()
    }

    /// Takes away what stands at a path, whatever it is.
    fn forget(&mut self, path: &str) -> Result<(), String> {
        let inner = format!("{path}/");
        self.known.retain(|known, _| known != path && !known.starts_with(&inner));
        self.remove(Path::new(path))
    }

    fn remove(&self, path: &Path) -> Result<(), String> {
        self.tree.remove(path).map_err(|why| unremoved(&self.place.tree().join(path), &why))
    }

    async fn put(
        &self,
        tree: &dyn Tree,
        root: &str,
        path: &str,
        entry: &Entry,
    ) -> Result<Option<Known>, Unfit> {
        let (from, to) = (format!("{root}/{path}"), Path::new(path));
        let mut known = Known {
            kind: entry.kind,
            size: entry.size,
            modified_ms: entry.modified_ms,
            mark: Mark::default(),
            digest: [0; 32],
        };
        match entry.kind {
            Kind::Directory => self.tree.new_folder(to).map_err(|why| failed(to, &why))?,
            Kind::File => {
                let Some(digest) = copied(tree, &from, (&self.tree, to), entry).await? else {
                    return Ok(None);
                };
                known.digest = digest;
            }
            Kind::Link => {
                let detail = tree.detail(&from).await.map_err(Unfit::Fault)?;
                let Some(link) = detail.link else { return Ok(None) };
                self.tree.new_link(to, &link).map_err(|why| failed(to, &why))?;
            }
            Kind::Other => return Ok(None),
        }
        known.mark = self.tree.mark(to).map_err(|why| failed(to, &why))?;
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
        let to = Path::new(&path);
        self.remove(to)?;
        let mark = self
            .tree
            .new_file(to)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| self.tree.mark(to))
            .map_err(|why| failed(to, &why))?;
        let (size, digest) = (text.len() as u64, Sha256::digest(&text).into());
        let known = Known { kind: Kind::File, size, modified_ms: 0, mark, digest };
        self.known.insert(path, known);
        Ok(())
    }

    /// What stands there otherwise than it was put there; of what is inside of something
    /// new or gone, every entry.
    pub(super) fn differs(&self) -> Result<Different, String> {
        let found = self.tree.all().map_err(|why| {
            format!("what the line left cannot be looked at, and is not kept: {why}")
        })?;
        let mut differs = Vec::new();
        for (path, (now, mark)) in &found.named {
            let before = self.known.get(path);
            if before.is_none_or(|known| known.kind != *now || known.mark != *mark) {
                differs.push(Differs {
                    path: path.clone(),
                    now: Some(*now),
                    before: before.cloned(),
                });
            }
        }
        let gone = self.known.iter().filter(|(path, _)| !found.named.contains_key(*path));
        differs.extend(gone.map(|(path, known)| Differs {
            path: path.clone(),
            now: None,
            before: Some(known.clone()),
        }));
        Ok(Different { named: differs, nameless: found.nameless })
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
    (inside, to): (&Inside, &Path),
    entry: &Entry,
) -> Result<Option<[u8; 32]>, Unfit> {
    let detail = match tree.detail(from).await {
        Err(Fault::NotFound) => return Ok(None),
        detail => detail.map_err(Unfit::Fault)?,
    };
    let mut file = inside.new_file(to).map_err(|why| failed(to, &why))?;
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

#[cfg(test)]
mod tests {
    use core::future::ready;

    use super::*;
    use synapse_primitives::platform::Detail;
    use synapse_primitives::rest::{Names, Rest};
    use synapse_primitives::tree::{Change, Unmade, Waiting};

    /// Two files of one letter, of which the second may be denied.
    #[derive(Debug)]
    struct Two {
        denied: bool,
    }

    impl Tree for Two {
        fn list<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Vec<Entry>, Fault>> {
            let names = if self.denied { &["a"][..] } else { &["a", "b"] };
            let entry = |name: &&str| Entry {
                name: (*name).to_owned(),
                kind: Kind::File,
                size: 1,
                modified_ms: 1_000,
                rest: Rest::outside(),
            };
            Box::pin(ready(Ok(names.iter().map(entry).collect())))
        }

        fn detail<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<Detail, Fault>> {
            let denied = self.denied && path.ends_with("/b");
            Box::pin(ready(if denied { Err(Fault::Subtree) } else { Ok(Detail::default()) }))
        }

        fn read<'a>(&'a self, _: &'a str, _: u64) -> Waiting<'a, Result<Vec<u8>, Fault>> {
            Box::pin(ready(Ok(b"x".to_vec())))
        }

        fn change<'a>(&'a self, _: Change<'a>) -> Waiting<'a, Result<(), Unmade>> {
            Box::pin(ready(Err(Unmade::OutOfScope)))
        }

        fn shown(&self) -> Names {
            Names::NONE
        }

        fn room(&self) -> u64 {
            0
        }

        fn host(&self, _: &str) -> Option<String> {
            None
        }
    }

    fn follow(copy: &mut Copy, denied: bool) {
        let cancel = AtomicBool::new(false);
        let tree = Two { denied };
        let followed = copy.follow(&tree, "/data", 1 << 20, &cancel);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert!(runtime.block_on(followed).is_ok());
    }

    #[test]
    fn what_was_kept_of_a_file_goes_once_it_may_not_be_read() {
        let base = tempfile::tempdir().unwrap();
        let open = || Copy::open(base.path(), "own", "/host").unwrap();
        let mut copy = open();
        follow(&mut copy, false);
        assert!(copy.has("a") && copy.has("b") && copy.differs().unwrap().named.is_empty());
        fs::write(copy.place.cache().join("of b"), "x").unwrap();
        follow(&mut copy, false);
        assert!(copy.place.cache().join("of b").exists());
        drop(copy);
        let mut copy = open();
        follow(&mut copy, true);
        assert!(copy.has("a") && !copy.has("b") && !copy.place.cache().join("of b").exists());
    }

    #[test]
    fn what_cannot_be_looked_at_is_emptied() {
        let base = tempfile::tempdir().unwrap();
        let mut copy = Copy::open(base.path(), "own", "/host").unwrap();
        follow(&mut copy, false);
        let mut here = copy.place.tree();
        for _ in 0..300 {
            here.push("d");
            fs::create_dir(&here).unwrap();
        }
        assert!(copy.differs().is_err());
        follow(&mut copy, false);
        assert!(copy.has("a") && copy.differs().unwrap().named.is_empty());
    }
}
