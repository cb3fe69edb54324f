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

use synapse_boundary::scope::{Decimal, Effect, Limit, Tool, Verb};
use synapse_boundary::{Scope, Secrecy};

use super::compartments::{Clear, Names};
use super::notes::{Notes, quoted};
use super::shape::{Value, get, items, named, number, text};
use crate::manifest::{self, Manifest, Role};

/// The words for effects.
pub(super) const EFFECTS: [(&str, Effect); 4] = [
    ("read", Effect::Read),
    ("store", Effect::Store),
    ("free", Effect::Free),
    ("commit", Effect::Commit),
];

/// A `[[tools]]` entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) tool: String,
    pub(super) at: Range<usize>,
    pub(crate) effect: Effect,
    pub(crate) limits: Vec<(String, Bound)>,
    pub(crate) clear: Clear,
    /// What its connector's manifest says, if there is one.
    pub(super) said: Option<Said>,
}

/// What a manifest says of an entry's verb.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) about: String,
    pub(super) arguments: Vec<(String, Role)>,
    /// Whether the journal holds all that it does.
    pub(super) is_journaled: bool,
    clear: Vec<String>,
    is_confined: bool,
    let_out: bool,
    verb: Verb,
}

/// A limit, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// One of these texts.
    Like(Vec<String>),
    /// From the first to the second number.
    Within(String, String),
    /// From the first to the second day, counted from the clock's.
    Dated(i64, i64),
}

/// Reads `[[tools]]`.
pub(super) fn read(value: &Value<'_>, manifests: &[Manifest], notes: &mut Notes) -> Vec<Entry> {
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
        let written = get(item, "effect");
        let place = |word| EFFECTS.iter().position(|(known, _)| *known == word);
        let effect = place(written.map_or("commit", text));
        let effect = effect.and_then(|place| EFFECTS.get(place)).map_or(Effect::Commit, |it| it.1);
        let mut limits = get(item, "limits").map_or_else(Vec::new, |it| read_limits(it, notes));
        let mut entry = Entry {
            tool: name.to_owned(),
            at,
            effect,
            limits: Vec::new(),
            clear: Clear::read(get(item, "clear")),
            said: None,
        };
        if let Some((manifest, verb)) = said_of(&entry, manifests, notes) {
            let class = verb.class();
            match written {
                Some(written) if rank(entry.effect) < rank(class) => notes.mistake(
                    &written.span(),
                    format!("effect {} is milder than the manifest's", quoted(text(written))),
                    format!("it says `{}`, and a human approved that", word(class)),
                    "remove `effect` here",
                ),
                // Who grants it may want to be asked.
                Some(_) if (entry.effect, class) == (Effect::Store, Effect::Free) => {}
                _ => entry.effect = class,
            }
            limits.extend(verb.limits());
            // What the grant says of its clearance holds; else what the approval added.
            let adds = get(item, "clear").is_none();
            entry.said = Some(Said {
                about: verb.about.clone(),
                arguments: verb.arguments.iter().map(|it| (it.name.clone(), it.role)).collect(),
                is_journaled: manifest.start.lines,
                clear: if adds { manifest.clear.clone() } else { Vec::new() },
                is_confined: adds && manifest.start.is_confined(),
                let_out: manifest.let_out,
                verb: verb.warrants(),
            });
        }
        entries.push(Entry { limits, ..entry });
    }
    entries
}

fn read_limits(value: &Value<'_>, notes: &mut Notes) -> Vec<(String, Bound)> {
    let mut limits = Vec::new();
    for (_, argument, value) in named(value) {
        limits.push((argument.to_owned(), bound(argument, value, notes)));
    }
    limits
}

/// Reads what an argument may be.
pub(crate) fn bound(argument: &str, value: &Value<'_>, notes: &mut Notes) -> Bound {
    if let (Some(first), Some(last)) = (get(value, "from"), get(value, "to")) {
        let (from, to) = (days(first, notes), days(last, notes));
        if from > to {
            notes.mistake(
                &value.span(),
                format!("limit {} admits nothing", quoted(argument)),
                format!("no day is from {} on and until {}", text(first), text(last)),
                "write the earlier one first",
            );
        }
        return Bound::Dated(from, to);
    }
    let range = match (number(value), get(value, "min"), get(value, "max")) {
        (Some(most), ..) => Some(("0".to_owned(), most)),
        (None, Some(min), Some(max)) => number(min).zip(number(max)),
        _ => None,
    };
    match range {
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
    }
}

/// How many days from the clock's: `-1d`, `+366d`, `0d`.
fn days(value: &Value<'_>, notes: &mut Notes) -> i64 {
    let written = text(value).strip_suffix('d');
    let digits = written.map(|days| days.strip_prefix(['-', '+']).unwrap_or(days));
    let plain = |digits: &str| digits.len() <= 5 && digits.bytes().all(|it| it.is_ascii_digit());
    let days = written.filter(|_| digits.is_some_and(plain)).and_then(|days| days.parse().ok());
    days.unwrap_or_else(|| {
        notes.mistake(
            &value.span(),
            format!("{} is no day", quoted(text(value))),
            "a date is limited by days counted from the clock's, at most 5 digits of them",
            "write it like `-1d` or `+366d`",
        );
        0
    })
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
        let mut terms = names.terms(&entry.clear, Some(&entry.own()), notes);
        let mut verb = Verb::default();
        if let Some(said) = &entry.said {
            let added = said.clear.iter().filter_map(|name| names.get(name));
            terms.clear = added.fold(terms.clear, Secrecy::join);
            if said.is_confined {
                terms.clear = Secrecy::from_bits(u64::MAX);
            }
            if said.let_out {
                scope.let_out = scope.let_out.join(terms.own);
            }
            verb = said.verb.clone();
        }
        let limit = |(argument, bound): &(String, Bound)| {
            let limit = match bound {
                Bound::Like(texts) => Limit::Like(texts.clone()),
                Bound::Within(min, max) => {
                    Limit::Within(Decimal::parse(min)?..=Decimal::parse(max)?)
                }
                Bound::Dated(from, to) => Limit::Dated(*from..=*to),
            };
            Some((argument.clone(), limit))
        };
        // A limit that is lost would be a hole: without all of them there is no entry.
        let limits: Option<Vec<_>> = entry.limits.iter().map(limit).collect();
        if let Some(limits) = limits {
            scope.tool(&entry.tool, Tool { effect: entry.effect, limits, terms, verb });
        }
    }
}

/// What a manifest says of an entry's verb.
fn said_of<'m>(
    entry: &Entry,
    manifests: &'m [Manifest],
    notes: &mut Notes,
) -> Option<(&'m Manifest, &'m manifest::Verb)> {
    let (server, name) = entry.tool.split_once('/')?;
    let manifest = manifests.iter().find(|manifest| manifest.server == server)?;
    let verb = manifest.verb(name);
    if verb.is_none() {
        notes.unknown(&entry.at, "verb", name, manifest.verbs.iter().map(|verb| &*verb.name));
    }
    Some((manifest, verb?))
}

/// How strict an effect is.
const fn rank(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0,
        Effect::Free => 1,
        Effect::Store => 2,
        Effect::Commit => 3,
    }
}

/// The word for an effect.
pub(super) fn word(effect: Effect) -> &'static str {
    EFFECTS.iter().find(|(_, known)| *known == effect).map_or("commit", |(word, _)| *word)
}

impl Bound {
    /// Whether what it admits, the other is sure to admit.
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Like(own), Self::Like(other)) => own.iter().all(|text| is_like(text, other)),
            (Self::Within(a, b), Self::Within(c, d)) => {
                let [a, b, c, d] = [a, b, c, d].map(|number| Decimal::parse(number));
                c <= a && b <= d
            }
            (Self::Dated(a, b), Self::Dated(c, d)) => c <= a && b <= d,
            (Self::Like(_) | Self::Within(..) | Self::Dated(..), _) => false,
        }
    }

    /// What both admit, where that is easy to say and not nothing.
    fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Like(own), Self::Like(theirs)) => {
                let new = theirs.iter().filter(|text| !own.contains(text) && is_like(text, own));
                let both = own.iter().filter(|text| is_like(text, theirs)).chain(new);
                let both: Vec<String> = both.cloned().collect();
                (!both.is_empty()).then_some(Self::Like(both))
            }
            (Self::Within(a, b), Self::Within(c, d)) => {
                let [low, high] = [(a, c), (b, d)]
                    .map(|(own, other)| (Decimal::parse(own) < Decimal::parse(other), own, other));
                let min = if low.0 { low.2 } else { low.1 };
                let max = if high.0 { high.1 } else { high.2 };
                let some = Decimal::parse(min) <= Decimal::parse(max);
                some.then(|| Self::Within(min.clone(), max.clone()))
            }
            (Self::Dated(a, b), Self::Dated(c, d)) => {
                let (from, to) = (*a.max(c), *b.min(d));
                (from <= to).then_some(Self::Dated(from, to))
            }
            (Self::Like(_) | Self::Within(..) | Self::Dated(..), _) => None,
        }
    }
}

/// Whether what a text or a pattern admits, one of these is sure to admit.
fn is_like(text: &str, patterns: &[String]) -> bool {
    // With a star of its own it is a pattern, and only the same one is sure to admit as much.
    let plain = |rest: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-');
        !rest.is_empty() && rest.bytes().all(letter)
    };
    let matches = |pattern: &String| {
        let (head, tail) = pattern.split_once('*')?;
        Some(text.strip_prefix(head)?.strip_suffix(tail).is_some_and(plain))
    };
    let admits = |pattern| matches(pattern).unwrap_or_default() && !text.contains('*');
    patterns.iter().any(|pattern| pattern == text || admits(pattern))
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
                && self.clear.names().all(|name| entry.clears(name))
        })
    }

    /// Whether an entry allows all that this one does, which is limited by nothing but
    /// what stands in it.
    pub(super) fn is_bounded_by(&self, wide: &Self) -> bool {
        let bounds = |(name, bound): &(String, Bound)| {
            self.limits.iter().any(|(known, own)| known == name && own.is_within(bound))
        };
        self.is_within(core::slice::from_ref(wide)) && wide.limits.iter().all(bounds)
    }

    /// What both allow: the limits of either hold. Two whose common part is hard to say
    /// allow nothing together.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let same = self.tool == other.tool && self.effect == other.effect;
        let mut limits = self.limits.clone();
        for (name, bound) in &other.limits {
            match limits.iter_mut().find(|(known, _)| known == name) {
                Some((_, own)) => *own = own.meet(bound)?,
                None => limits.push((name.clone(), bound.clone())),
            }
        }
        let clear = self.clear.filter(|name| other.clears(name));
        let said = self.said.clone().map(|said| Said {
            clear: said.clear.into_iter().filter(|name| other.clears(name)).collect(),
            is_confined: said.is_confined && other.said.as_ref().is_some_and(|it| it.is_confined),
            ..said
        });
        same.then(|| Self { limits, clear, said, ..self.clone() })
    }

    /// Whether what is of this compartment may be told, by what stands here or by what
    /// its manifest adds.
    fn clears(&self, name: &str) -> bool {
        let adds = |said: &Said| said.is_confined || said.clear.iter().any(|known| known == name);
        self.clear.names().any(|known| known == name) || self.said.as_ref().is_some_and(adds)
    }

    /// The name of its connector's compartment.
    pub(super) fn own(&self) -> String {
        let server = self.tool.split_once('/').map_or(&*self.tool, |(server, _)| server);
        format!("tool:{server}")
    }
}
