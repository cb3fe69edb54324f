//! What a child does: it looks at the one folder that it may see, and deletes there
//! what its task names.
//!
//! # Not here
//! Who is told (`steward`).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_guest::calls::{self, EntryKind};
use synapse_guest::{Error, files};

/// A child's task: a folder, and what is to be deleted there, a line each.
pub(crate) fn task(folder: &str, doomed: &[&str]) -> String {
    [&[folder], doomed].concat().join("\n")
}

/// What stands in a folder: how much, and what each file begins with; and what was
/// deleted then.
pub(crate) fn report(task: &str) -> String {
    let mut lines = task.lines();
    let mut told = match told(lines.next().unwrap_or_default()) {
        Ok(told) => told,
        Err(why) => format!("could not be looked at: {why}\n"),
    };
    for path in lines {
        told.push_str(&match calls::fs_delete(path) {
            Ok(()) => format!("deleted {path}\n"),
            Err(why) => format!("did not delete {path}: {why}\n"),
        });
    }
    told
}

fn told(folder: &str) -> Result<String, Error> {
    let (mut folders, mut lines) = (Vec::from([String::from(folder)]), Vec::new());
    let (mut count, mut bytes, mut unread) = (0_u64, 0_u64, 0_u64);
    while let Some(folder) = folders.pop() {
        for entry in files::list_all(&folder)? {
            let path = format!("{folder}/{}", entry.name);
            match entry.kind {
                EntryKind::Directory => folders.push(path),
                EntryKind::File => {
                    count = count.saturating_add(1);
                    bytes = bytes.saturating_add(entry.size);
                    if lines.len() >= MOST {
                        continue;
                    }
                    match calls::fs_read(path.as_str(), 0, HEAD) {
                        Ok(head) => lines.push(format!("- {}: {}\n", plain(&path), first(&head))),
                        Err(_) => unread = unread.saturating_add(1),
                    }
                }
                EntryKind::Link | EntryKind::Other => {}
            }
        }
    }
    let mut told = format!("{count} files, {bytes} bytes, {unread} that could not be read\n");
    for line in &lines {
        told.push_str(line);
    }
    Ok(told)
}

/// The first line that says something.
fn first(head: &[u8]) -> String {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    plain(lines.find(|line| !line.is_empty()).unwrap_or("(empty)"))
}

/// A text of strangers, on one line.
fn plain(text: &str) -> String {
    let shown = text.chars().take(WIDTH);
    shown.map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Files whose first line is told.
const MOST: usize = 50;
/// Bytes of a file that are looked at.
const HEAD: u64 = 4096;
/// Characters of a line or a name that are shown.
const WIDTH: usize = 120;
