//! The acts: each is done, and says what it did.
//!
//! They may read: what they destroy was named before.
//!
//! # Not here
//! Leave for them (`prepare`).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use synapse_guest::abi::code::Refusal;
use synapse_guest::calls::{self, Entry, EntryKind, Mode};
use synapse_guest::reply::Fault;
use synapse_guest::{Error, Selector, files};

use crate::say;

/// Deletes a file or a folder.
pub(crate) fn delete(path: &str) -> Result<(), Error> {
    calls::fs_delete(path)?;
    say(&format!("deleted {path}"))
}

/// Deletes the largest file of a folder, and says its name without having seen it.
pub(crate) fn delete_largest(folder: &str, largest: &Selector) -> Result<(), Error> {
    let path = calls::value_pick(largest)?;
    match calls::fs_delete(path) {
        Ok(()) => calls::console_write(&["deleted ".into(), path.into(), "\n".into()]),
        // The leave is for the one that the selector finds.
        Err(why @ Error::Refused(Refusal::Destructive)) => say(&format!(
            "could not delete the largest file in {folder}: {why}; no single file is the largest"
        )),
        Err(why) => Err(why),
    }
}

/// Deletes the files that stand in a folder.
pub(crate) fn delete_files(folder: &str) -> Result<(), Error> {
    let told = each(folder, |_| true, |path, _| calls::fs_delete(path))?;
    say(&format!("deleted the files in {folder}: {told}"))
}

/// Moves a file or a folder into a folder.
pub(crate) fn archive(from: &str, into: &str) -> Result<(), Error> {
    let to = format!("{into}/{}", name(from));
    calls::fs_move(from, &to)?;
    say(&format!("moved {from} to {to}"))
}

/// Moves the files of a folder that were not changed for so many days.
pub(crate) fn archive_old(folder: &str, days: u64, into: &str) -> Result<(), Error> {
    let oldest = calls::clock_read()?.saturating_sub(days.saturating_mul(DAY));
    let old = |entry: &Entry| entry.modified < oldest;
    let told = each(folder, old, |path, name| calls::fs_move(path, &format!("{into}/{name}")))?;
    say(&format!("moved the old files of {folder} into {into}: {told}"))
}

/// Writes the first line of a file, or of each file of a folder.
pub(crate) fn summarise(from: &str, into: &str) -> Result<(), Error> {
    let mut summary = format!("# Summary of {from}\n\n");
    match first_line(from) {
        Ok(line) => summary.push_str(&format!("{line}\n")),
        Err(Error::Fault(Fault::NotAFile)) => {
            let told = each(
                from,
                |_| true,
                |path, name| {
                    if path == into {
                        return Ok(());
                    }
                    let line = first_line(path)?;
                    summary.push_str(&format!("- {}: {line}\n", plain(name)));
                    Ok(())
                },
            )?;
            summary.push_str(&format!("\n{told}\n"));
        }
        Err(why) => return Err(why),
    }
    files::write_all(into, &summary, Mode::Replace)?;
    say(&format!("wrote {into}"))
}

/// Does `act` with the path and the name of each file of a folder that is
/// `wanted`; how many that came to, and why others were left.
fn each(
    folder: &str,
    wanted: impl Fn(&Entry) -> bool,
    mut act: impl FnMut(&str, &str) -> Result<(), Error>,
) -> Result<String, Error> {
    let mut done = 0u64;
    let mut left = BTreeMap::<String, u64>::new();
    for entry in files::list_all(folder)? {
        if entry.kind != EntryKind::File || !wanted(&entry) {
            continue;
        }
        match act(&format!("{folder}/{}", entry.name), &entry.name) {
            Ok(()) => done = done.saturating_add(1),
            Err(why) => {
                let count = left.entry(why.to_string()).or_default();
                *count = count.saturating_add(1);
            }
        }
    }
    let mut told = format!("{done} {}", if done == 1 { "file" } else { "files" });
    for (why, count) in left {
        told.push_str(&format!(", {count} left: {why}"));
    }
    Ok(told)
}

/// The first line that says something, of the first bytes of a file.
fn first_line(path: &str) -> Result<String, Error> {
    let bytes = calls::fs_read(path, 0, HEAD)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    Ok(plain(lines.find(|line| !line.is_empty()).unwrap_or("(empty)")))
}

/// A text of strangers, on one line.
fn plain(text: &str) -> String {
    let shown = text.chars().take(WIDTH);
    shown.map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;
/// Bytes of a file that are looked at.
const HEAD: u64 = 4096;
/// Characters of a line or a name that are shown.
const WIDTH: usize = 120;
