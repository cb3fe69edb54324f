//! Host entries and host deny entries.
//!
//! # Invariants
//! - An entry that names addresses which are not globally reachable has a
//!   compartment of its own: what such a place says stays with it.
//! - An entry to listen by is loopback, or names its address by itself.
//!
//! # Not here
//! Comparing a target with them (`synapse_boundary::scope`); resolving names.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use synapse_boundary::Scope;
use synapse_boundary::scope::{Method, Net, Terms};
use synapse_boundary::secret::is_name;
use synapse_boundary::url::Url;
use toml::Spanned;
use toml::de::DeValue;

use super::compartments::{Clear, Names};
use super::notes::{Notes, quoted};
use super::places::{Index, Pattern};
use super::shape::{Value, flag, get, integer, items, text};

/// The words for methods, in the order in which a summary has them.
pub(super) const METHODS: [(&str, Method); 3] =
    [("GET", Method::Get), ("POST", Method::Post), ("LISTEN", Method::Listen)];

/// Entries of one host: a lookup goes through all of them.
const ENTRIES: usize = 64;

/// A `[[hosts]]` entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) pattern: Pattern,
    pub(super) methods: Vec<(Range<usize>, Method)>,
    pub(super) ports: Vec<RangeInclusive<u16>>,
    pub(crate) paths: Vec<String>,
    pub(crate) clear: Clear,
    /// Secrets that a request may carry there, and whether it only reads then.
    pub(crate) secrets: Vec<String>,
    pub(crate) reads: bool,
    /// The name of its own compartment.
    own: Option<String>,
}

/// Reads `[[hosts]]`.
pub(super) fn read(value: &Value<'_>, notes: &mut Notes) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for item in items(value) {
        let Some(pattern) = get(item, "host").and_then(|host| Pattern::read(host, notes)) else {
            continue;
        };
        let known = || entries.iter().filter(|known| known.pattern.host == pattern.host);
        if known().count() == ENTRIES {
            notes.mistake(
                &pattern.at,
                format!("host {} has too many entries", quoted(&pattern.text)),
                format!("one host has at most {ENTRIES}"),
                "join entries that differ in one thing only",
            );
        }
        // Two spellings of one network are one compartment.
        let name = known().next().map_or(&pattern.text, |known| &known.pattern.text);
        let secrets = secrets(get(item, "secrets"), notes);
        let reads = flag(get(item, "reads"));
        if reads && secrets.is_empty() {
            notes.warning(
                &pattern.at,
                format!("`reads` says nothing of host {}", quoted(&pattern.text)),
                "it is about requests that carry a secret, and the entry names none",
                "name them under `secrets`, or remove it",
            );
        }
        let is_apart = pattern.is_special() || !secrets.is_empty();
        let own = is_apart.then(|| format!("net:{name}"));
        let methods = methods(get(item, "methods"), &pattern.at);
        let listens = methods.iter().find(|(_, method)| *method == Method::Listen);
        if let Some((at, _)) = listens.filter(|_| !pattern.is_one_or_loopback()) {
            notes.mistake(
                at,
                format!("host {} cannot be listened at", quoted(&pattern.text)),
                "a listener has one address of this machine, which is loopback unless an entry \
                 names it by itself",
                "give LISTEN to an entry of its own, such as `127.0.0.1`, `[::1]` or the address \
                 meant; `0.0.0.0` is all of IPv4",
            );
        }
        entries.push(Entry {
            ports: ports(get(item, "ports"), notes),
            methods,
            paths: paths(get(item, "paths"), notes),
            clear: Clear::read(get(item, "clear")),
            secrets,
            reads,
            pattern,
            own,
        });
    }
    entries
}

/// Reads `deny_hosts`.
pub(super) fn deny(value: &Value<'_>, notes: &mut Notes) -> Vec<Pattern> {
    let mut denied: Vec<Pattern> = Vec::new();
    for item in items(value) {
        let Some(pattern) = Pattern::read(item, notes) else { continue };
        if denied.iter().any(|known| known.host == pattern.host) {
            notes.twice(&pattern.at, "deny entry", &pattern.text);
        }
        denied.push(pattern);
    }
    denied
}

/// Gives each entry that needs one its compartment.
pub(super) fn name(entries: &[Entry], names: &mut Names, notes: &mut Notes) {
    for entry in entries {
        if let Some(own) = &entry.own {
            names.add(&entry.pattern.at, own, notes);
        }
    }
}

/// Puts the entries into the scope; one that can never apply is a mistake.
pub(super) fn compile(
    entries: &[Entry],
    denied: Vec<Pattern>,
    names: &Names,
    scope: &mut Scope,
    notes: &mut Notes,
) {
    let closed = Index::new(denied.iter().map(|deny| (deny, deny)));
    let mut before: Vec<(&Entry, Terms)> = Vec::new();
    for entry in entries {
        let pattern = &entry.pattern;
        let terms = names.terms(&entry.clear, entry.own.as_deref(), notes);
        if let Some(deny) = closed.around(pattern).find(|deny| deny.covers(pattern)) {
            notes.mistake(
                &pattern.at,
                format!(
                    "host {} is unreachable: deny_hosts covers it with {}",
                    quoted(&pattern.text),
                    quoted(&deny.text)
                ),
                "a deny entry always wins",
                "remove the host or narrow the deny entry",
            );
        }
        warn_broad(entry, notes);
        before.push((entry, terms));
        scope.net(
            pattern.host.clone(),
            Net {
                methods: entry.methods.iter().map(|(_, method)| *method).collect(),
                ports: entry.ports.clone(),
                paths: entry.paths.clone(),
                clear: terms.clear,
                own: terms.own,
                secrets: entry.secrets.clone(),
                reads: entry.reads,
            },
        );
    }
    warn_redundant(&before, notes);
    for pattern in denied {
        scope.deny_host(pattern.host);
    }
}

fn methods(value: Option<&Value<'_>>, at: &Range<usize>) -> Vec<(Range<usize>, Method)> {
    let Some(value) = value else { return [(at.clone(), Method::Get)].into() };
    let known = |word: &Value<'_>| {
        let known = METHODS.iter().find(|(name, _)| *name == text(word));
        known.map(|(_, method)| (word.span(), *method))
    };
    items(value).iter().filter_map(known).collect()
}

fn ports(value: Option<&Value<'_>>, notes: &mut Notes) -> Vec<RangeInclusive<u16>> {
    let Some(value) = value else { return [443..=443].into() };
    let mut ports = Vec::new();
    for item in items(value) {
        let range = match integer(item) {
            Some(port) => u16::try_from(port).ok().map(|port| port..=port),
            None => range(text(item)),
        };
        match range {
            Some(range) => ports.push(range),
            None => notes.mistake(
                &item.span(),
                format!("ports {} cannot be read", quoted(text(item))),
                "a range is two ports from 1 to 65535 in rising order",
                "write it like `\"8000-8010\"`",
            ),
        }
    }
    ports
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let port = |digits: &str| -> Option<u16> {
        (!digits.starts_with(['0', '+'])).then(|| digits.parse().ok())?
    };
    let (first, last) = text.split_once('-')?;
    let (first, last) = (port(first)?, port(last)?);
    (first < last).then_some(first..=last)
}

fn paths(value: Option<&Value<'_>>, notes: &mut Notes) -> Vec<String> {
    let Some(value) = value else { return ["/".to_owned()].into() };
    for item in items(value) {
        let url = format!("https://a{}", text(item));
        if !Url::parse(&url).is_ok_and(|url| url.path() == text(item)) {
            notes.mistake(
                &item.span(),
                format!("path {} is no canonical URL path", quoted(text(item))),
                "it is compared with canonical URLs only, so nothing would match it",
                "write it from `/` on, without `?`, `#` and dot segments, escapes as `%2F`",
            );
        }
    }
    items(value).iter().map(|item| text(item).to_owned()).collect()
}

fn secrets(value: Option<&Value<'_>>, notes: &mut Notes) -> Vec<String> {
    let named = value.map_or(&[][..], |value| items(value));
    for item in named.iter().filter(|item| !is_name(text(item))) {
        notes.mistake(
            &item.span(),
            format!("secret {} has no valid name", quoted(text(item))),
            "`{secret:NAME}` has to be read without doubt",
            "use 1 to 64 letters, digits, `_` and `-`",
        );
    }
    named.iter().map(|item| text(item).to_owned()).collect()
}

fn warn_broad(entry: &Entry, notes: &mut Notes) {
    let pattern = &entry.pattern;
    if pattern.is_vast() {
        notes.warning(
            &pattern.at,
            format!("host {} is over-broad", quoted(&pattern.text)),
            "anybody may have a place there, and be told what goes there",
            "name the hosts that the task needs",
        );
    }
    let listens = entry.methods.iter().find(|(_, method)| *method == Method::Listen);
    if let Some((at, _)) = listens.filter(|_| matches!(&*pattern.text, "0.0.0.0" | "[::]")) {
        notes.warning(
            at,
            format!("host {} is each address of this machine", quoted(&pattern.text)),
            "whoever reaches this machine by any of them may connect",
            "name the address that is meant, or loopback",
        );
    }
    if entry.ports.iter().any(|ports| ports.contains(&1) && ports.contains(&u16::MAX)) {
        notes.warning(
            &pattern.at,
            format!("host {} has all ports", quoted(&pattern.text)),
            "other services may listen there",
            "name the ports that the task needs",
        );
    }
}

fn warn_redundant(entries: &[(&Entry, Terms)], notes: &mut Notes) {
    let all = entries.iter().enumerate().map(|(place, item)| (&item.0.pattern, (place, item)));
    let all = Index::new(all);
    for (index, (entry, terms)) in entries.iter().enumerate() {
        let wider = |(place, (other, wide)): &(usize, &(&Entry, Terms))| {
            *place != index
                && other.includes(entry)
                && terms.clear.is_within(wide.clear)
                && terms.own.is_within(wide.own)
                // Of two that are alike, the later one is too many.
                && (*place < index || !entry.includes(other) || wide != terms)
        };
        if let Some((_, (other, _))) = all.around(&entry.pattern).find(wider) {
            notes.warning(
                &entry.pattern.at,
                format!("host {} adds nothing", quoted(&entry.pattern.text)),
                format!("an entry of {} covers all of it", quoted(&other.pattern.text)),
                "remove one, or narrow the other",
            );
        }
    }
}

impl Entry {
    /// Whether one entry allows all that it asks for.
    pub(super) fn is_within(&self, entries: &[Self]) -> bool {
        entries.iter().any(|entry| entry.includes(self) && self.clear.is_within(&entry.clear))
    }

    /// The same for another host.
    pub(super) fn at(&self, host: &str) -> Option<Self> {
        let host = Spanned::new(0..0, DeValue::String(host.into()));
        let pattern = Pattern::read(&host, &mut Notes::new("grant"))?;
        Some(Self { pattern, ..self.clone() })
    }

    /// Its ports, as a grant file has them.
    pub(crate) fn ports(&self) -> Vec<String> {
        self.ports.iter().map(super::summary::port).collect()
    }

    /// The words for its methods.
    pub(crate) fn methods(&self) -> Vec<&'static str> {
        let given = |method| self.methods.iter().any(|(_, given)| *given == method);
        METHODS.iter().filter(|(_, method)| given(*method)).map(|(word, _)| *word).collect()
    }

    /// What both allow, where that is easy to say; what comes from there stays with
    /// this entry's compartment.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let pattern = if self.pattern.covers(&other.pattern) {
            &other.pattern
        } else {
            other.pattern.covers(&self.pattern).then_some(&self.pattern)?
        };
        let given = |(_, method): &&(Range<usize>, Method)| {
            other.methods.iter().any(|(_, other)| other == method)
        };
        let methods: Vec<_> = self.methods.iter().filter(given).cloned().collect();
        let ports: Vec<_> = pairs(&self.ports, &other.ports, |a, b| {
            let (first, last) = (*a.start().max(b.start()), *a.end().min(b.end()));
            (first <= last).then_some(first..=last)
        });
        let paths: Vec<_> = pairs(&self.paths, &other.paths, |a, b| {
            if is_below(a, b) { Some(b.clone()) } else { is_below(b, a).then(|| a.clone()) }
        });
        let common = |name: &&String| other.secrets.contains(*name);
        let secrets = self.secrets.iter().filter(common).cloned().collect();
        if methods.is_empty() || ports.is_empty() || paths.is_empty() {
            return None;
        }
        let (clear, own) = (self.clear.meet(&other.clear), self.own.clone());
        let (pattern, reads) = (pattern.clone(), self.reads && other.reads);
        Some(Self { pattern, methods, ports, paths, clear, secrets, reads, own })
    }

    /// Whether this one covers each call that the other does.
    fn includes(&self, other: &Self) -> bool {
        let method = |(_, method): &(_, Method)| self.methods.iter().any(|(_, m)| m == method);
        let ports = |ports: &RangeInclusive<u16>| {
            let mut all = self.ports.iter();
            all.any(|mine| mine.contains(ports.start()) && mine.contains(ports.end()))
        };
        let path = |path: &String| self.paths.iter().any(|prefix| is_below(prefix, path));
        self.pattern.covers(&other.pattern)
            && other.methods.iter().all(method)
            && other.ports.iter().all(ports)
            && other.paths.iter().all(path)
            && other.secrets.iter().all(|name| self.secrets.contains(name))
            && (self.reads || !other.reads)
    }
}

/// Whether a URL path is another or stands below it, by whole segments.
fn is_below(prefix: &str, path: &str) -> bool {
    let whole = |rest: &str| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/');
    path.strip_prefix(prefix).is_some_and(whole)
}

fn pairs<T>(own: &[T], other: &[T], meet: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    own.iter().flat_map(|a| other.iter().filter_map(|b| meet(a, b)).collect::<Vec<_>>()).collect()
}
