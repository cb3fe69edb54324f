//! What stands in the folder: notes, sizes, links, digests, duplicates.
//!
//! # Not here
//! What a note says (`note`), how it is written down (`index`).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use synapse_guest::calls::{self, EntryKind};
use synapse_guest::{Error, files};

use crate::note::{broken, heading, is_text, links, mark};

/// The folder.
pub(crate) const ROOT: &str = "/data";
/// Where the index goes.
pub(crate) const INDEX: &str = "/data/INDEX.md";
/// Where duplicates go.
pub(crate) const DUPLICATES: &str = "/data/duplicates";
/// Bytes of a file that are looked at for its heading and links.
const HEAD: u64 = 1 << 20;
/// Files up to this size are compared byte for byte, by digest.
const COMPARED: u64 = 64 << 20;
/// Bytes of files that are compared as they are, all in memory, not by their digests.
const TOGETHER: u64 = 16 << 20;
/// The code of a spent budget: nothing more can be read.
const SPENT: u32 = 203;

/// One file.
pub(crate) struct Note {
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) title: String,
    pub(crate) heading: String,
    pub(crate) links: Vec<String>,
    /// Tells most files of one size apart; of the rest digests are compared.
    mark: u64,
    /// The first file with the same bytes.
    pub(crate) copy_of: Option<usize>,
}

/// All of the folder.
pub(crate) struct Shelf {
    pub(crate) notes: Vec<Note>,
    /// How many entries were passed over, and why.
    pub(crate) skipped: BTreeMap<String, u64>,
    pub(crate) moved: u64,
}

impl Shelf {
    /// Reads the folder, in order of path.
    ///
    /// # Errors
    /// The folder itself cannot be listed: what is in it is unknown, and an
    /// index of nothing would be wrong.
    pub(crate) fn walk() -> Result<Self, Error> {
        let mut shelf = Self { notes: Vec::new(), skipped: BTreeMap::new(), moved: 0 };
        let mut folders = Vec::new();
        shelf.take_all(&mut folders, ROOT, files::list_all(ROOT)?);
        while let Some(folder) = folders.pop() {
            match files::list_all(&folder) {
                Ok(entries) => shelf.take_all(&mut folders, &folder, entries),
                Err(why) => shelf.skip("folder", why),
            }
        }
        shelf.notes.sort_by(|a, b| a.path.cmp(&b.path));
        let read = (0..shelf.notes.len()).take_while(|at| shelf.read(*at)).count();
        shelf.pair(read);
        Ok(shelf)
    }

    fn take_all(&mut self, folders: &mut Vec<String>, folder: &str, entries: Vec<calls::Entry>) {
        for entry in entries {
            self.take(folders, format!("{folder}/{}", entry.name), &entry);
        }
    }

    fn take(&mut self, folders: &mut Vec<String>, path: String, entry: &calls::Entry) {
        if path == INDEX || path == DUPLICATES {
            return;
        }
        if entry.name.starts_with('.') {
            return self.count("hidden");
        }
        match entry.kind {
            EntryKind::Directory => folders.push(path),
            EntryKind::File => {
                let title = entry.name.clone();
                let size = entry.size;
                self.notes.push(Note {
                    path,
                    size,
                    title,
                    heading: String::new(),
                    links: Vec::new(),
                    mark: 0,
                    copy_of: None,
                });
            }
            EntryKind::Link => self.count("symbolic link"),
            EntryKind::Other => self.count("special file"),
        }
    }

    /// Reads one file; `false` once the budget is spent.
    fn read(&mut self, at: usize) -> bool {
        let Some(note) = self.notes.get_mut(at) else { return true };
        let head = match calls::fs_read(&note.path, 0, HEAD) {
            Ok(head) => head,
            Err(why) => {
                self.skip("file", why);
                return why.number() != SPENT;
            }
        };
        if is_text(&head) {
            note.heading = heading(&head);
            note.links = links(&head);
        }
        note.mark = mark(&head);
        true
    }

    /// Finds the copies among the first so many notes.
    fn pair(&mut self, read: usize) {
        let mut alike: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
        for (at, note) in self.notes.iter().enumerate().take(read) {
            if (1..=COMPARED).contains(&note.size) {
                alike.entry((note.size, note.mark)).or_default().push(at);
            }
        }
        for ((size, _), twins) in alike.into_iter().filter(|(_, twins)| twins.len() > 1) {
            let few = size.saturating_mul(twins.len() as u64) <= TOGETHER;
            let mut first = BTreeMap::new();
            for at in twins {
                let Some(note) = self.notes.get_mut(at) else { continue };
                let own = if few { files::read_all(&note.path) } else { digest(&note.path, size) };
                if let Ok(own) = own {
                    let original = *first.entry(own).or_insert(at);
                    note.copy_of = (original != at).then_some(original);
                }
            }
        }
    }

    /// Moves every later copy aside, under its own relative path.
    pub(crate) fn move_duplicates(&mut self) {
        let mut failed = Vec::new();
        for note in &mut self.notes {
            if note.copy_of.is_none() {
                continue;
            }
            let relative = note.path.strip_prefix(ROOT).unwrap_or(&note.path);
            let aside = format!("{DUPLICATES}{relative}");
            match calls::fs_move(&note.path, &aside) {
                Ok(()) => {
                    note.path = aside;
                    self.moved += 1;
                }
                Err(why) => failed.push(why),
            }
        }
        for why in failed {
            self.skip("move", why);
        }
    }

    /// Links whose target is not on the shelf: note, link.
    pub(crate) fn broken(&self) -> Vec<(&str, &str)> {
        let notes = self.notes.iter().map(|note| (&*note.path, &*note.links));
        broken(notes.collect(), ROOT)
    }

    /// What was found, for people.
    pub(crate) fn summary(&self, broken: usize) -> String {
        let copies = self.notes.iter().filter(|note| note.copy_of.is_some()).count();
        let mut out = format!(
            "{} files, {copies} exact duplicates ({} moved aside), {} broken links\n",
            self.notes.len(),
            self.moved,
            broken
        );
        for (why, count) in &self.skipped {
            out.push_str(&format!("passed over: {count} × {why}\n"));
        }
        out
    }

    fn count(&mut self, why: &str) {
        *self.skipped.entry(why.to_string()).or_insert(0) += 1;
    }

    fn skip(&mut self, what: &str, why: Error) {
        let why = format!("{what} {}", crate::told(why));
        *self.skipped.entry(why).or_insert(0) += 1;
    }
}

fn digest(path: &str, size: u64) -> Result<Vec<u8>, Error> {
    let mut hash = Sha256::new();
    let mut read = 0;
    while read < size {
        let piece = calls::fs_read(path, read, HEAD)?;
        if piece.is_empty() {
            break;
        }
        read += piece.len() as u64;
        hash.update(piece);
    }
    Ok(hash.finalize().to_vec())
}
