//! Path entries and path deny entries.
//!
//! # Not here
//! Comparing a target with them (`synapse_boundary::scope`).

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use synapse_abi::code::Refusal;
use synapse_boundary::path::{NormalPath, fold};
use synapse_boundary::scope::{Pattern, Reach};
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
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(super) pattern: Pattern,
    pub(crate) text: String,
    at: Range<usize>,
    pub(super) rights: Rights,
    /// Where each right stands.
    pub(super) words: Vec<(Range<usize>, Rights)>,
}

/// What `deny` closes.
#[derive(Clone, Debug, Default)]
pub(super) struct Denied {
    patterns: Vec<Pattern>,
    /// Folded: paths that are closed with all below, and with `/*` those below
    /// which all is.
    paths: BTreeSet<String>,
    /// Folded: components that are closed wherever they stand.
    names: BTreeSet<String>,
}

impl Denied {
    /// Whether the pattern closes something that its like did not.
    pub(super) fn add(&mut self, pattern: Pattern) -> bool {
        let mut path = folded(&pattern);
        if pattern.reach() == Reach::Children {
            path.push_str("/*");
        }
        self.patterns.push(pattern);
        self.paths.insert(path)
    }

    /// Closes what the other closes, too.
    pub(super) fn join(&mut self, other: &Self) {
        for pattern in &other.patterns {
            self.add(pattern.clone());
        }
        self.names.extend(other.names.iter().cloned());
    }

    /// Whether no path that the pattern matches is open.
    fn covers(&self, pattern: &Pattern) -> bool {
        let path = folded(pattern);
        let below = |folder: &str| self.paths.contains(&format!("{folder}/*"));
        path.split('/').any(|name| self.names.contains(name))
            || up(&path).any(|folder| self.paths.contains(folder))
            || up(&path).skip(1).any(below)
            || (pattern.reach() == Reach::Children && below(&path))
    }
}

/// The folded path; the root is empty.
fn folded(pattern: &Pattern) -> String {
    let names = pattern.path().components().map(fold);
    names.flat_map(|name| ["/".to_owned(), name.into_owned()]).collect()
}

/// Reads `[[paths]]`.
pub(super) fn read(value: &Value<'_>, notes: &mut Notes) -> Vec<Entry> {
    let (mut entries, mut seen) = (Vec::<Entry>::new(), BTreeSet::new());
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
        if !seen.insert(text(path)) {
            notes.twice(&at, "path", text(path));
        }
        entries.push(Entry { pattern, text: text(path).to_owned(), at, rights, words });
    }
    warn_redundant(&entries, notes);
    entries
}

fn warn_redundant(entries: &[Entry], notes: &mut Notes) {
    let all: BTreeMap<&str, &Entry> = entries.iter().map(|entry| (&*entry.text, entry)).collect();
    for entry in entries {
        let mut wider = wider(&entry.pattern).filter(|text| *text != entry.text);
        let covers = |text: String| {
            all.get(&*text).copied().filter(|other| other.rights.cover(entry.rights))
        };
        if let Some(other) = wider.find_map(covers) {
            notes.warning(
                &entry.at,
                format!("path {} adds nothing", quoted(&entry.text)),
                format!("{} covers it with at least its rights", quoted(&other.text)),
                "remove one, or narrow the other",
            );
        }
    }
}

/// Whether a pattern is sure to match all that another does.
fn covers(wide: &Pattern, narrow: &Pattern) -> bool {
    let (above_all, path) = (wide.path().as_str(), narrow.path().as_str());
    match (wide.reach(), narrow.reach()) {
        (Reach::Exact, reach) => reach == Reach::Exact && above_all == path,
        (Reach::Children, Reach::Exact) => {
            let folder = above(path).map(|folder| if folder.is_empty() { "/" } else { folder });
            path != "/" && folder == Some(above_all)
        }
        (Reach::Children, reach) => reach == Reach::Children && above_all == path,
        (Reach::Subtree, _) => path.strip_prefix(above_all).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || above_all.ends_with('/')
        }),
    }
}

impl Entry {
    /// Whether all that it matches has the rights by these entries.
    pub(super) fn is_within(&self, entries: &[Self]) -> bool {
        let around = entries.iter().filter(|entry| covers(&entry.pattern, &self.pattern));
        around.fold(Rights::NONE, |all, entry| all.and(entry.rights)).cover(self.rights)
    }

    /// Adds the rights of another entry of the same pattern.
    pub(super) fn join(&mut self, other: &Self) {
        self.rights = self.rights.and(other.rights);
    }

    /// The same for another pattern, and with these rights if some are named.
    pub(super) fn at(&self, path: &str, rights: &[&str]) -> Option<Self> {
        let pattern = Pattern::parse(path).ok()?;
        let right = |word: &&str| RIGHTS.iter().find(|(known, _)| known == word).map(|it| it.1);
        let named: Option<Vec<Rights>> = rights.iter().map(right).collect();
        let named = named?.into_iter().reduce(Rights::and).unwrap_or(self.rights);
        let text = path.to_owned();
        Some(Self { pattern, text, at: 0..0, rights: named, words: Vec::new() })
    }

    /// The words for its rights.
    pub(crate) fn rights(&self) -> Vec<&'static str> {
        let held = RIGHTS.iter().filter(|(_, right)| self.rights.cover(*right));
        held.map(|(word, _)| *word).collect()
    }

    /// What both allow, where that is easy to say.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let narrow = if covers(&self.pattern, &other.pattern) {
            other
        } else {
            covers(&other.pattern, &self.pattern).then_some(self)?
        };
        let both = RIGHTS.iter().map(|(_, right)| *right);
        let both = both.filter(|right| self.rights.cover(*right) && other.rights.cover(*right));
        let rights = both.fold(Rights::NONE, Rights::and);
        (rights != Rights::NONE).then(|| Self { rights, words: Vec::new(), ..narrow.clone() })
    }
}

/// The patterns that cover all that this one does, as they are written.
fn wider(pattern: &Pattern) -> impl Iterator<Item = String> {
    let path = pattern.path().as_str();
    let one = pattern.reach() == Reach::Exact && path != "/";
    let children = above(path).filter(|_| one).map(|folder| format!("{folder}/*"));
    up(path).map(|folder| format!("{folder}/**")).chain(children)
}

/// A path, and each folder above it; the root is empty.
fn up(path: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(Some(path), |path| above(path))
}

fn above(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}

/// Reads `deny`.
pub(super) fn deny(value: &Value<'_>, notes: &mut Notes) -> Denied {
    let mut denied = Denied::default();
    for item in items(value) {
        let new = match text(item).strip_prefix("**/") {
            Some(name) => denied_name(item, name, notes).map(|name| denied.names.insert(name)),
            None => pattern(item, notes).map(|pattern| denied.add(pattern)),
        };
        if new == Some(false) {
            notes.twice(&item.span(), "deny entry", text(item));
        }
    }
    denied
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
pub(super) fn compile(entries: &[Entry], denied: &Denied, scope: &mut Scope, notes: &mut Notes) {
    for entry in entries {
        if denied.covers(&entry.pattern) {
            notes.mistake(
                &entry.at,
                format!("path {} is unreachable: deny covers it", quoted(&entry.text)),
                "a deny entry always wins",
                "remove the path or narrow the deny entry",
            );
        }
        scope.allow(&entry.pattern, entry.rights);
    }
    for pattern in &denied.patterns {
        scope.deny(pattern);
    }
    for name in &denied.names {
        scope.deny_name(name);
    }
}

/// Reads a path pattern.
pub(super) fn pattern(value: &Value<'_>, notes: &mut Notes) -> Option<Pattern> {
    let text = text(value);
    let refusal = match Pattern::parse(text) {
        Ok(pattern) => return Some(pattern),
        Err(refusal) => refusal,
    };
    let literal = text.strip_suffix("/**").or_else(|| text.strip_suffix("/*")).unwrap_or(text);
    let (what, why, help) = if literal.contains('*') {
        (
            "cannot be read",
            "`*` stands only in a last `/*` or `/**`",
            "name the folder and end with one of them",
        )
    } else if NormalPath::parse(literal.into()).is_ok() {
        (
            "is not in normal form",
            "one path has one spelling",
            "write it without `.`, `..`, empty names and a last `/`",
        )
    } else {
        bad_path(value, refusal, notes);
        return None;
    };
    notes.mistake(&value.span(), format!("pattern {} {what}", quoted(text)), why, help);
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
