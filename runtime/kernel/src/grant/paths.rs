//! Path entries and path deny entries.
//!
//! # Not here
//! Comparing a target with them (`synapse_boundary::scope`).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use synapse_abi::code::Refusal;
use synapse_boundary::path::{NormalPath, fold};
use synapse_boundary::scope::{BadPattern, Pattern, Reach};
use synapse_boundary::{Rights, Scope};

use super::notes::{Notes, quoted};
use super::shape::{Value, get, items, text};

/// The words for rights, in the order in which a summary has them.
pub(super) const RIGHTS: [(&str, Rights); 4] = [
    ("list", Rights::LIST),
    ("read", Rights::READ),
    ("write", Rights::WRITE),
    ("delete", Rights::DELETE),
];

/// A `[[paths]]` entry.
#[derive(Debug)]
pub(super) struct Entry {
    pattern: Pattern,
    pub(super) text: String,
    at: Range<usize>,
    pub(super) rights: Rights,
    /// Where each right stands.
    pub(super) words: Vec<(Range<usize>, Rights)>,
}

/// A `deny` entry.
#[derive(Debug)]
pub(super) enum Deny {
    Pattern(Pattern),
    Name(String),
}

/// Reads `[[paths]]`.
pub(super) fn read(value: &Value<'_>, notes: &mut Notes) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for item in items(value) {
        let (Some(path), Some(rights)) = (get(item, "path"), get(item, "rights")) else { continue };
        let at = path.span();
        let Some(pattern) = pattern(path, notes) else { continue };
        if pattern.path().as_str() == "/" && pattern.reach() == Reach::Subtree {
            notes.mistake(
                &at,
                "path `/**` is over-broad",
                "it covers every folder, also those that are added later",
                "name the folders that the task needs",
            );
        }
        let words: Vec<_> = items(rights)
            .iter()
            .filter_map(|word| {
                let known = RIGHTS.iter().find(|(name, _)| *name == text(word));
                known.map(|(_, right)| (word.span(), *right))
            })
            .collect();
        let rights = words.iter().fold(Rights::NONE, |all, (_, right)| all.and(*right));
        if entries.iter().any(|known| known.pattern == pattern) {
            notes.twice(&at, "path", text(path));
        }
        entries.push(Entry { pattern, text: text(path).to_owned(), at, rights, words });
    }
    for (index, entry) in entries.iter().enumerate() {
        let others = entries.iter().enumerate().filter(|(other, _)| *other != index);
        let wider = |other: &Entry| {
            other.pattern != entry.pattern
                && includes(&other.pattern, &entry.pattern)
                && other.rights.cover(entry.rights)
        };
        if let Some((_, other)) = others.into_iter().find(|(_, other)| wider(other)) {
            notes.warning(
                &entry.at,
                format!("path {} adds nothing", quoted(&entry.text)),
                format!("{} covers it with at least its rights", quoted(&other.text)),
                "remove one, or narrow the other",
            );
        }
    }
    entries
}

/// Reads `deny`.
pub(super) fn deny(value: &Value<'_>, notes: &mut Notes) -> Vec<Deny> {
    let mut entries: Vec<Deny> = Vec::new();
    for item in items(value) {
        let entry = match text(item).strip_prefix("**/") {
            Some(name) => denied_name(item, name, notes).map(Deny::Name),
            None => pattern(item, notes).map(Deny::Pattern),
        };
        let Some(entry) = entry else { continue };
        if entries.iter().any(|known| known.same(&entry)) {
            notes.twice(&item.span(), "deny entry", text(item));
        }
        entries.push(entry);
    }
    entries
}

fn denied_name(item: &Value<'_>, name: &str, notes: &mut Notes) -> Option<String> {
    let path = match NormalPath::parse(Cow::Owned(format!("/{name}"))) {
        Ok(path) => path,
        Err(refusal) => {
            bad_path(item, refusal, notes);
            return None;
        }
    };
    let whole = path.as_str().strip_prefix('/') == Some(name) && !name.contains(['/', '*']);
    if name.is_empty() || !whole {
        notes.mistake(
            &item.span(),
            format!("deny entry {} names nothing", quoted(text(item))),
            "after `**/` stands one whole name",
            "write it like `**/.env`",
        );
        return None;
    }
    Some(fold(name).into_owned())
}

/// Puts the entries into the scope; one that can never apply is a mistake.
pub(super) fn compile(entries: &[Entry], denied: &[Deny], scope: &mut Scope, notes: &mut Notes) {
    for entry in entries {
        if denied.iter().any(|deny| deny.covers(&entry.pattern)) {
            notes.mistake(
                &entry.at,
                format!("path {} is unreachable: deny covers it", quoted(&entry.text)),
                "a deny entry always wins",
                "remove the path or narrow the deny entry",
            );
        }
        scope.allow(&entry.pattern, entry.rights);
    }
    for entry in denied {
        match entry {
            Deny::Pattern(pattern) => scope.deny(pattern),
            Deny::Name(name) => scope.deny_name(name),
        }
    }
}

/// Reads a path pattern.
pub(super) fn pattern(value: &Value<'_>, notes: &mut Notes) -> Option<Pattern> {
    let (what, why, help) = match Pattern::parse(text(value)) {
        Ok(pattern) => return Some(pattern),
        Err(BadPattern::Path(refusal)) => {
            bad_path(value, refusal, notes);
            return None;
        }
        Err(BadPattern::Star) => (
            "cannot be read",
            "`*` stands only in a last `/*` or `/**`",
            "name the folder and end with one of them",
        ),
        Err(BadPattern::NotNormal) => (
            "is not in normal form",
            "one path has one spelling",
            "write it without `.`, `..`, empty names and a last `/`",
        ),
    };
    notes.mistake(&value.span(), format!("pattern {} {what}", quoted(text(value))), why, help);
    None
}

fn bad_path(value: &Value<'_>, refusal: Refusal, notes: &mut Notes) {
    let (why, help) = match refusal {
        Refusal::NotAbsolute => ("it does not start with `/`", "write it from `/` on"),
        Refusal::AboveRoot => ("its `..` lead above the root", "write it without `..`"),
        Refusal::TooDeep => ("it is too long or too deep", "name a folder above it"),
        _ => (
            "a name in it ends in a dot or a space, or has a character that file systems read \
             differently",
            "rename the file",
        ),
    };
    let what = format!("path {} names no file", quoted(text(value)));
    notes.mistake(&value.span(), what, why, help);
}

/// Whether the first covers all that the second does.
fn includes(wide: &Pattern, narrow: &Pattern) -> bool {
    let names = |pattern: &Pattern| -> Vec<String> {
        pattern.path().components().map(String::from).collect()
    };
    let (above, below) = (names(wide), names(narrow));
    match (wide.reach(), narrow.reach()) {
        (Reach::Subtree, _) => below.starts_with(&above),
        (Reach::Children, Reach::Exact) => {
            below.split_last().is_some_and(|(_, parent)| parent == above)
        }
        (a, b) => a == b && above == below,
    }
}

impl Deny {
    /// Whether no path that the pattern matches escapes this entry.
    fn covers(&self, pattern: &Pattern) -> bool {
        let below = folded(pattern);
        match self {
            Self::Name(name) => below.contains(name),
            Self::Pattern(deny) => {
                let above = folded(deny);
                // `/a/*` leaves `/a` itself open, and closes all below it.
                let strict = deny.reach() == Reach::Children && pattern.reach() != Reach::Children;
                below.starts_with(&above) && !(strict && above == below)
            }
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(a), Self::Name(b)) => a == b,
            (Self::Pattern(a), Self::Pattern(b)) => {
                let inside = |pattern: &Pattern| pattern.reach() == Reach::Children;
                inside(a) == inside(b) && folded(a) == folded(b)
            }
            (Self::Name(_), Self::Pattern(_)) | (Self::Pattern(_), Self::Name(_)) => false,
        }
    }
}

fn folded(pattern: &Pattern) -> Vec<String> {
    pattern.path().components().map(|name| fold(name).into_owned()).collect()
}
