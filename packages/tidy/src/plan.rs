//! The plan: what the task line asks for, in fixed phrases.
//!
//! Several stand behind one another with `;` or `and then` between them. Their
//! words may be in upper case; a name with a separator in it stands in quotes. A
//! line is understood whole or not at all.
//!
//! # Not here
//! Leave for it (`prepare`), and doing it (`act`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// What can be asked for, as it is told to people.
pub(crate) const PHRASES: &str = "\
delete X
delete the largest file in F
delete the files in F
archive X into G
archive F older than N days into G
summarise F into G";

/// One thing to do; paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file, or a folder with all below it.
    Delete(String),
    /// The one file of the folder with the most bytes.
    DeleteLargest(String),
    /// Every file that stands in the folder itself.
    DeleteFiles(String),
    /// A file or a folder, moved into a folder.
    Archive { from: String, into: String },
    /// The files of a folder that were not changed for so many days.
    ArchiveOld { folder: String, days: u64, into: String },
    /// The first line of a file, or of each file of a folder, into a file.
    Summarise { from: String, into: String },
}

/// It as a phrase.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete(path) => write!(f, "delete {path}"),
            Self::DeleteLargest(folder) => write!(f, "delete the largest file in {folder}"),
            Self::DeleteFiles(folder) => write!(f, "delete the files in {folder}"),
            Self::Archive { from, into } => write!(f, "archive {from} into {into}"),
            Self::ArchiveOld { folder, days, into } => {
                write!(f, "archive {folder} older than {days} days into {into}")
            }
            Self::Summarise { from, into } => write!(f, "summarise {from} into {into}"),
        }
    }
}

/// The steps that a line asks for, names without a leading `/` standing below
/// `root`.
///
/// # Errors
/// The part of the line that is none of the phrases.
pub(crate) fn parse<'t>(line: &'t str, root: &str) -> Result<Vec<Step>, &'t str> {
    let parts = split(line).into_iter().filter(|part| !part.is_empty());
    parts.map(|part| step(part, root).ok_or(part)).collect()
}

fn step(part: &str, root: &str) -> Option<Step> {
    let path = |name: &str| path(name, root);
    if let Some(rest) = after(part, "delete ") {
        return Some(if let Some(folder) = after(rest, "the largest file in ") {
            Step::DeleteLargest(path(folder)?)
        } else if let Some(folder) = after(rest, "the files in ") {
            Step::DeleteFiles(path(folder)?)
        } else {
            Step::Delete(path(rest)?)
        });
    }
    let words = |verb: &str| after(part, verb).and_then(|rest| around(rest, " into "));
    if let Some((from, into)) = words("archive ") {
        let into = path(into)?;
        let Some((folder, age)) = around(from, " older than ") else {
            return Some(Step::Archive { from: path(from)?, into });
        };
        let (days, unit) = age.trim().split_once(' ')?;
        let days = days.parse().ok()?;
        let known = ["day", "days"].iter().any(|known| unit.trim().eq_ignore_ascii_case(known));
        return known.then_some(Step::ArchiveOld { folder: path(folder)?, days, into });
    }
    let (from, into) = words("summarise ").or_else(|| words("summarize "))?;
    Some(Step::Summarise { from: path(from)?, into: path(into)? })
}

/// The whole path of what a phrase names; `None` where it names nothing.
fn path(name: &str, root: &str) -> Option<String> {
    let name = name.trim().trim_end_matches(['.', ',', ':', '!', '?']).trim_end();
    let quoted = QUOTES.iter().find_map(|quote| name.strip_prefix(*quote)?.strip_suffix(*quote));
    let name = quoted.unwrap_or(name).trim_end_matches('/');
    match name {
        "" => None,
        _ if name.starts_with('/') => Some(name.to_string()),
        _ => Some(format!("{root}/{name}")),
    }
}

/// The line's parts, cut at each separator that stands in no quotes.
fn split(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some((part, after)) =
        [";", " and then "].iter().filter_map(|cut| around(rest, cut)).min_by_key(|cut| cut.0.len())
    {
        parts.push(part.trim());
        rest = after;
    }
    parts.push(rest.trim());
    parts
}

/// What follows these words at the start.
fn after<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(words.len())?;
    start.eq_ignore_ascii_case(words).then(|| rest.trim_start())
}

/// What stands before and after these words, where they first stand in no quotes.
fn around<'t>(text: &'t str, words: &str) -> Option<(&'t str, &'t str)> {
    let mut open = None;
    for (at, c) in text.char_indices() {
        match open {
            None if QUOTES.contains(&c) => open = Some(c),
            Some(quote) if quote == c => open = None,
            None => {
                let (before, rest) = text.split_at_checked(at)?;
                if let Some(rest) = after(rest, words) {
                    return Some((before, rest));
                }
            }
            Some(_) => {}
        }
    }
    None
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

#[cfg(test)]
mod tests {
    use super::{Step, parse};
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn each_phrase_is_a_step() {
        let line = "Delete a.md; delete THE largest file in /data/logs/ and then delete the files \
                    in tmp; archive 'a; b.md' into old, and then archive inbox older than 30 days \
                    into old; summarise inbox into \"my into notes.md\".";
        let data = |name: &str| alloc::format!("/data/{name}");
        let steps = vec![
            Step::Delete(data("a.md")),
            Step::DeleteLargest(data("logs")),
            Step::DeleteFiles(data("tmp")),
            Step::Archive { from: data("a; b.md"), into: data("old") },
            Step::ArchiveOld { folder: data("inbox"), days: 30, into: data("old") },
            Step::Summarise { from: data("inbox"), into: data("my into notes.md") },
        ];
        assert_eq!(parse(line, "/data"), Ok(steps));
        assert_eq!(parse(" ; ", "/data"), Ok(vec![]));
        let delete = Step::Delete("/data/Ärger über etwas.md".to_string());
        assert_eq!(parse("delete Ärger über etwas.md", "/data"), Ok(vec![delete]));
    }

    #[test]
    fn a_line_is_understood_whole_or_not_at_all() {
        for (line, part) in [
            ("delete a.md; be nice", "be nice"),
            ("delete", "delete"),
            ("delete /", "delete /"),
            ("delete ''", "delete ''"),
            ("deletea", "deletea"),
            ("archive a", "archive a"),
            ("archive a older than many days into b", "archive a older than many days into b"),
            ("archive a older than 3 moons into b", "archive a older than 3 moons into b"),
            ("summarise a", "summarise a"),
            ("summarise  into b", "summarise  into b"),
            ("ß", "ß"),
        ] {
            assert_eq!(parse(line, "/data"), Err(part), "{line}");
        }
    }
}
