//! The librarian's work by the standard library alone, without a door
//!
//! It reads what the librarian reads and writes what it writes. What both make of the
//! bytes is the same code (`note`, `page`), compiled for this machine here.

use alloc::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::note::{broken, heading, is_text, links, mark};
use crate::page::render;
use crate::shelf::{Note, ROOT, Shelf};

/// Where the index goes.
const INDEX: &str = "/data/INDEX.md";
/// Bytes of a file that are looked at.
const HEAD: u64 = 1 << 20;

/// Writes the index of a folder.
pub(crate) fn index(folder: &Path) -> io::Result<()> {
    let mut notes = Vec::new();
    walk(folder, ROOT, &mut notes)?;
    notes.sort_by(|one: &Note, other| one.path.cmp(&other.path));
    let host = |path: &str| folder.join(path.trim_start_matches(ROOT).trim_start_matches('/'));
    let mut alike: BTreeMap<(u64, u64), Vec<usize>> = BTreeMap::new();
    for (at, note) in notes.iter_mut().enumerate() {
        let file = File::open(host(&note.path))?;
        note.size = file.metadata()?.len();
        let most = note.size.min(HEAD);
        let mut head = Vec::with_capacity(usize::try_from(most).unwrap_or(0));
        file.take(most).read_to_end(&mut head)?;
        if is_text(&head) {
            note.heading = heading(&head);
            note.links = links(&head);
        }
        if note.size > 0 {
            alike.entry((note.size, mark(&head))).or_default().push(at);
        }
    }
    for twins in alike.into_values().filter(|twins| twins.len() > 1) {
        let mut first = BTreeMap::new();
        for at in twins {
            let Some(note) = notes.get_mut(at) else { continue };
            let original = *first.entry(fs::read(host(&note.path))?).or_insert(at);
            note.copy_of = (original != at).then_some(original);
        }
    }
    let shelf = Shelf { notes };
    let linked = shelf.notes.iter().map(|note| (&*note.path, &*note.links));
    fs::write(host(INDEX), render(&shelf, &broken(linked.collect(), ROOT)))
}

fn walk(folder: &Path, path: &str, notes: &mut Vec<Note>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(title) = entry.file_name().into_string() else { continue };
        let path = format!("{path}/{title}");
        let kind = entry.file_type()?;
        if path == INDEX || title.starts_with('.') {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), &path, notes)?;
        } else if kind.is_file() {
            notes.push(Note { path, title, ..Note::default() });
        }
    }
    Ok(())
}
