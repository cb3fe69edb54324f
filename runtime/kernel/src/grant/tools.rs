//! Tool entries: verbs of connectors, with limits on their arguments.
//!
//! # Invariants
//! - A verb whose effect nobody said cannot be taken back.
//!
//! # Not here
//! Judging arguments (`synapse_boundary::scope`); calling the tool.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use synapse_boundary::Scope;
use synapse_boundary::scope::{Decimal, Effect, Limit, Tool};

use super::compartments::{Clear, Names};
use super::notes::{Notes, quoted};
use super::shape::{Value, get, items, named, number, text};

/// The words for effects.
pub(super) const EFFECTS: [(&str, Effect); 4] = [
    ("read", Effect::Read),
    ("store", Effect::Store),
    ("free", Effect::Free),
    ("commit", Effect::Commit),
];

/// A `[[tools]]` entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) tool: String,
    pub(super) at: Range<usize>,
    pub(super) effect: Effect,
    pub(super) limits: Vec<(String, Bound)>,
    pub(super) clear: Clear,
}

/// A limit, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// One of these texts.
    Like(Vec<String>),
    /// From the first to the second number.
    Within(String, String),
}

/// Reads `[[tools]]`.
pub(super) fn read(value: &Value<'_>, notes: &mut Notes) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for item in items(value) {
        let Some(tool) = get(item, "tool") else { continue };
        let (at, name) = (tool.span(), text(tool));
        let plain = |part: &str| {
            let letter = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
            };
            !part.is_empty() && part.bytes().all(letter)
        };
        if !name.split_once('/').is_some_and(|(server, verb)| plain(server) && plain(verb)) {
            notes.mistake(
                &at,
                format!("tool {} cannot be read", quoted(name)),
                "it is `server/verb`, each of `a` to `z`, `0` to `9`, `_` and `-`",
                "write it like `mail/send`",
            );
        }
        if entries.iter().any(|known| known.tool == name) {
            notes.twice(&at, "tool", name);
        }
        let said = get(item, "effect").map_or("commit", text);
        let effect = EFFECTS.iter().find(|(word, _)| *word == said);
        let limits = get(item, "limits").map_or_else(Vec::new, |limits| read_limits(limits, notes));
        entries.push(Entry {
            tool: name.to_owned(),
            at,
            effect: effect.map_or(Effect::Commit, |(_, effect)| *effect),
            limits,
            clear: Clear::read(get(item, "clear")),
        });
    }
    entries
}

fn read_limits(value: &Value<'_>, notes: &mut Notes) -> Vec<(String, Bound)> {
    let mut limits = Vec::new();
    for (_, argument, value) in named(value) {
        let range = match (number(value), get(value, "min"), get(value, "max")) {
            (Some(most), ..) => Some(("0".to_owned(), most)),
            (None, Some(min), Some(max)) => number(min).zip(number(max)),
            _ => None,
        };
        let bound = match range {
            Some((min, max)) => {
                if Decimal::parse(&min) > Decimal::parse(&max) {
                    notes.mistake(
                        &value.span(),
                        format!("limit {} admits nothing", quoted(argument)),
                        format!("no number is at least {min} and at most {max}"),
                        "write the least first",
                    );
                }
                Bound::Within(min, max)
            }
            None => Bound::Like(texts(value, notes)),
        };
        limits.push((argument.to_owned(), bound));
    }
    limits
}

fn texts(value: &Value<'_>, notes: &mut Notes) -> Vec<String> {
    let mut texts = Vec::new();
    for item in items(value) {
        if text(item).matches('*').count() > 1 {
            notes.mistake(
                &item.span(),
                format!("limit {} cannot be read", quoted(text(item))),
                "one `*` stands for a run of characters, a second one for itself",
                "write one `*` at most",
            );
        }
        texts.push(text(item).to_owned());
    }
    texts
}

/// Gives each connector its compartment.
pub(super) fn name(entries: &[Entry], names: &mut Names, notes: &mut Notes) {
    for entry in entries {
        names.add(&entry.at, &entry.own(), notes);
    }
}

/// Puts the entries into the scope.
pub(super) fn compile(entries: &[Entry], names: &Names, scope: &mut Scope, notes: &mut Notes) {
    for entry in entries {
        let terms = names.terms(&entry.clear, Some(&entry.own()), notes);
        let limit = |(argument, bound): &(String, Bound)| {
            let limit = match bound {
                Bound::Like(texts) => Limit::Like(texts.clone()),
                Bound::Within(min, max) => {
                    Limit::Within(Decimal::parse(min)?..=Decimal::parse(max)?)
                }
            };
            Some((argument.clone(), limit))
        };
        // A limit that is lost would be a hole: without all of them there is no entry.
        let limits: Option<Vec<_>> = entry.limits.iter().map(limit).collect();
        if let Some(limits) = limits {
            scope.tool(&entry.tool, Tool { effect: entry.effect, limits, terms });
        }
    }
}

impl Bound {
    /// Whether what it admits, the other is sure to admit.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Like(own), Self::Like(other)) => own.iter().all(|text| other.contains(text)),
            (Self::Within(a, b), Self::Within(c, d)) => {
                let [a, b, c, d] = [a, b, c, d].map(|number| Decimal::parse(number));
                c <= a && b <= d
            }
            (Self::Like(_), Self::Within(..)) | (Self::Within(..), Self::Like(_)) => false,
        }
    }
}

impl Entry {
    /// Whether an entry allows all that it asks for. A limit that it leaves out is the
    /// entry's.
    pub(super) fn is_within(&self, entries: &[Self]) -> bool {
        entries.iter().any(|entry| {
            let limit = |(name, bound): &(String, Bound)| {
                let mut same = entry.limits.iter().filter(|(known, _)| known == name);
                same.all(|(_, other)| bound.is_within(other))
            };
            entry.tool == self.tool
                && entry.effect == self.effect
                && self.limits.iter().all(limit)
                && self.clear.is_within(&entry.clear)
        })
    }

    /// What both allow: the limits of either hold.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let same = self.tool == other.tool && self.effect == other.effect;
        let new = other.limits.iter().filter(|limit| !self.limits.contains(limit));
        let limits = self.limits.iter().chain(new).cloned().collect();
        same.then(|| Self { limits, clear: self.clear.meet(&other.clear), ..self.clone() })
    }

    /// The name of its connector's compartment.
    fn own(&self) -> String {
        let server = self.tool.split_once('/').map_or(&*self.tool, |(server, _)| server);
        format!("tool:{server}")
    }
}
