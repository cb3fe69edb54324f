//! Compartments: their names, their bits, and who is cleared for them.
//!
//! # Invariants
//! - One name has one bit, in the order: named ones, those of hosts, those of
//!   tools, each as the file has them.
//!
//! # Not here
//! What a clearance means for a call (gate 3).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use synapse_boundary::scope::{Pattern, Terms};
use synapse_boundary::{Scope, Secrecy};

use super::notes::{Notes, quoted};
use super::paths;
use super::shape::{Value, items, named, text};

/// Compartments that the kernel itself fills.
const BUILT_IN: [(&str, Secrecy); 2] = [("prompt", Secrecy::PROMPT), ("files", Secrecy::FILES)];

/// A named compartment.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    at: Range<usize>,
    pub(super) patterns: Vec<Pattern>,
}

/// Reads `[compartments]`.
pub(super) fn read(value: &Value<'_>, notes: &mut Notes) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (at, name, value) in named(value) {
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        };
        if name.is_empty() || !name.bytes().all(plain) {
            notes.mistake(
                &at,
                format!("compartment {} has no valid name", quoted(name)),
                "names consist of `a` to `z`, `0` to `9`, `_` and `-`",
                "rename it",
            );
        }
        if BUILT_IN.iter().any(|(known, _)| *known == name) {
            notes.mistake(
                &at,
                format!("compartment `{name}` is built in"),
                "the kernel alone says what it holds",
                "choose another name",
            );
        }
        let patterns = items(value).iter().filter_map(|item| paths::pattern(item, notes)).collect();
        entries.push(Entry { name: name.to_owned(), at, patterns });
    }
    entries
}

/// Names the entries' compartments.
pub(super) fn name(entries: &[Entry], names: &mut Names, notes: &mut Notes) {
    for entry in entries {
        names.add(&entry.at, &entry.name, notes);
    }
}

/// Puts the entries into the scope.
pub(super) fn compile(entries: &[Entry], names: &Names, scope: &mut Scope) {
    for entry in entries {
        let secrecy = names.get(&entry.name).unwrap_or_default();
        for pattern in &entry.patterns {
            scope.compartment(pattern, secrecy);
        }
    }
}

/// The compartments of a grant; the first has bit [`Secrecy::NAMED`].
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Those of a grant, by the same bits.
    pub(super) fn of(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    /// Adds a name unless it is there.
    pub(super) fn add(&mut self, at: &Range<usize>, name: &str, notes: &mut Notes) {
        if self.0.iter().any(|known| known == name) {
            return;
        }
        if self.next().is_none() {
            notes.mistake(
                at,
                format!("compartment {} is one too many", quoted(name)),
                "a grant has at most 56: named ones, one for each host that is not globally reachable \
                 or may be sent a secret, and one for each connector",
                "join some",
            );
        }
        self.0.push(name.to_owned());
    }

    /// What an entry with this clearance says of a place.
    pub(super) fn terms(&self, clear: &Clear, own: Option<&str>, notes: &mut Notes) -> Terms {
        let own = own.and_then(|own| self.get(own)).unwrap_or_default();
        let mut terms = Terms { clear: own, own, acts: 0 };
        for (at, name) in &clear.0 {
            let Some(secrecy) = self.get(name) else {
                let known = BUILT_IN.iter().map(|(name, _)| *name);
                let known = known.chain(self.0.iter().map(|name| &**name));
                notes.unknown(at, "compartment", name, known);
                continue;
            };
            terms.clear = terms.clear.join(secrecy);
        }
        terms
    }

    pub(super) fn finish(self) -> Vec<String> {
        self.0
    }

    /// The bit of a name.
    pub(super) fn get(&self, name: &str) -> Option<Secrecy> {
        if let Some((_, secrecy)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Some(*secrecy);
        }
        let place = self.0.iter().position(|known| known == name)?;
        Secrecy::bit(Secrecy::NAMED.checked_add(u32::try_from(place).ok()?)?)
    }

    fn next(&self) -> Option<Secrecy> {
        Secrecy::bit(Secrecy::NAMED.checked_add(u32::try_from(self.0.len()).ok()?)?)
    }
}

/// The compartments that a `clear` names, and where.
#[derive(Clone, Debug)]
pub(crate) struct Clear(Vec<(Range<usize>, String)>);

impl Clear {
    /// What stands there, or what holds where nothing does.
    pub(super) fn read(value: Option<&Value<'_>>) -> Self {
        let named = |item: &Value<'_>| (item.span(), text(item).to_owned());
        Self(match value {
            Some(value) => items(value).iter().map(named).collect(),
            None => [(0..0, "prompt".to_owned())].into(),
        })
    }

    /// Whether another names all of them.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.names().all(|name| other.names().any(|known| known == name))
    }

    /// Those that both name.
    pub(super) fn meet(&self, other: &Self) -> Self {
        self.filter(|name| other.names().any(|known| known == name))
    }

    pub(super) fn filter(&self, keep: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(_, name)| keep(name)).cloned().collect())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, name)| &**name)
    }
}
