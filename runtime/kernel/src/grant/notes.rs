//! What a reader has to say of a grant or a manifest, and where.
//!
//! # Invariants
//! - A place lies inside the text, or at its end.
//! - Text of the file stands in a note with no character that acts.
//!
//! # Not here
//! What is a mistake (the modules that read). Showing it (the command line).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::ops::Range;

/// A mistake in a grant or a manifest, or a warning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// What kind of file it is.
    pub of: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// How many characters of the line it is about, at least 1.
    pub width: usize,
    /// What happened.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// What to do.
    pub help: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, line, column, what, why, help, .. } = self;
        write!(f, "{of} line {line}, column {column}: {what}; {why}; {help}")
    }
}

impl Error for Notice {}

/// A note, and the bytes that it is about.
#[derive(Debug)]
pub(crate) struct Note {
    at: Range<usize>,
    what: String,
    why: String,
    help: String,
}

/// What was found so far.
#[derive(Debug)]
pub(crate) struct Notes {
    /// What kind of file it is.
    of: &'static str,
    mistakes: Vec<Note>,
    warnings: Vec<Note>,
}

impl Notes {
    /// Nothing yet, of a file of this kind.
    pub(crate) const fn new(of: &'static str) -> Self {
        Self { of, mistakes: Vec::new(), warnings: Vec::new() }
    }

    /// Adds a mistake: the text is not what it has to be.
    pub(crate) fn mistake(
        &mut self,
        at: &Range<usize>,
        what: impl Into<String>,
        why: impl Into<String>,
        help: impl Into<String>,
    ) {
        let at = at.clone();
        self.mistakes.push(Note { at, what: what.into(), why: why.into(), help: help.into() });
    }

    /// How many mistakes there are.
    pub(crate) fn mistakes(&self) -> usize {
        self.mistakes.len()
    }

    /// Adds a warning: it is one, and probably not the one that was meant.
    pub(crate) fn warning(
        &mut self,
        at: &Range<usize>,
        what: impl Into<String>,
        why: impl Into<String>,
        help: impl Into<String>,
    ) {
        let at = at.clone();
        self.warnings.push(Note { at, what: what.into(), why: why.into(), help: help.into() });
    }

    /// One of a set that is there already.
    pub(crate) fn twice(&mut self, at: &Range<usize>, kind: &str, text: &str) {
        self.mistake(
            at,
            format!("{kind} {} stands twice", quoted(text)),
            "once is enough and two may disagree",
            "remove one",
        );
    }

    /// A word that is none of the known ones.
    pub(crate) fn unknown<'a>(
        &mut self,
        at: &Range<usize>,
        kind: &str,
        text: &str,
        known: impl Iterator<Item = &'a str>,
    ) {
        let known: Vec<&str> = known.collect();
        let near = known.iter().map(|name| (distance(text, name), name)).min();
        let help = match near {
            Some((distance, name)) if distance <= text.chars().count() / 2 => {
                format!("the nearest is `{name}`; use it or remove this")
            }
            _ if known.len() <= LISTED => format!("remove it, or use one of {}", known.join(", ")),
            _ => "remove it".to_owned(),
        };
        let why = format!("a {} has no such {kind}", self.of);
        self.mistake(at, format!("{kind} {} is unknown", quoted(text)), why, help);
    }

    /// The warnings, or all mistakes, both in the order of the text.
    pub(crate) fn finish(self, text: &str) -> Result<Vec<Notice>, Vec<Notice>> {
        let placed = |mut notes: Vec<Note>| -> Vec<Notice> {
            notes.sort_by_key(|note| note.at.start);
            notes.into_iter().map(|note| note.place(self.of, text)).collect()
        };
        if self.mistakes.is_empty() {
            Ok(placed(self.warnings))
        } else {
            Err(placed(self.mistakes))
        }
    }
}

/// Known words that are listed where none is near.
const LISTED: usize = 16;

impl Note {
    fn place(self, of: &'static str, text: &str) -> Notice {
        let Self { at, what, why, help } = self;
        let (before, rest) = text.split_at_checked(at.start).unwrap_or((text, ""));
        let line = before.rsplit('\n').next().unwrap_or(before);
        let about = rest.get(..at.len()).unwrap_or(rest);
        let about = about.lines().next().unwrap_or_default();
        Notice {
            of,
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            width: about.chars().count().max(1),
            what,
            why,
            help,
        }
    }
}

/// Text of the file in a note.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", text.escape_debug())
}

/// A message about the file that holds text of it.
pub(crate) fn harmless(text: &str) -> String {
    let plain = |char: char| char == '\'' || char == '"' || char == '\\';
    text.chars().fold(String::new(), |mut out, char| {
        if plain(char) {
            out.push(char);
        } else {
            out.extend(char.escape_debug());
        }
        out
    })
}

/// How many characters are to be inserted, removed or replaced between the two.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let (mut diagonal, mut left) = (i, i + 1);
        let Some((first, rest)) = row.split_first_mut() else { return 0 };
        *first = left;
        for (cell, y) in rest.iter_mut().zip(b.chars()) {
            let least = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = core::mem::replace(cell, least);
            left = least;
        }
    }
    row.last().copied().unwrap_or(0)
}
