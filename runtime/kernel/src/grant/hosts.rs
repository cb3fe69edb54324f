//! Host entries and host deny entries.
//!
//! # Invariants
//! - An entry that names addresses which are not globally reachable has a
//!   compartment of its own: what such a place says stays with it.
//!
//! # Not here
//! Comparing a target with them (`synapse_boundary::scope`); resolving names.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::{Range, RangeInclusive};

use synapse_boundary::scope::{HostPattern, Method, Net, Place, Terms};
use synapse_boundary::url::{Host, Url};
use synapse_boundary::{Scope, Secrecy};

use super::compartments::{Clear, Names};
use super::notes::{Notes, quoted};
use super::shape::{Value, get, integer, items, text};

/// The words for methods, in the order in which a summary has them.
pub(super) const METHODS: [(&str, Method); 3] =
    [("GET", Method::Get), ("POST", Method::Post), ("LISTEN", Method::Listen)];

/// Entries of one host: a lookup goes through all of them.
const ENTRIES: usize = 64;

/// A host, a suffix or a network, and where it stands.
#[derive(Debug)]
pub(super) struct Pattern {
    host: HostPattern,
    /// The network, where it is one.
    block: Option<Block>,
    pub(super) text: String,
    at: Range<usize>,
}

/// A `[[hosts]]` entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) pattern: Pattern,
    pub(super) methods: Vec<(Range<usize>, Method)>,
    pub(super) ports: Vec<RangeInclusive<u16>>,
    pub(super) paths: Vec<String>,
    pub(super) clear: Clear,
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
        let own = pattern.is_special().then(|| format!("net:{name}"));
        entries.push(Entry {
            ports: ports(get(item, "ports"), notes),
            methods: methods(get(item, "methods"), &pattern.at),
            paths: paths(get(item, "paths"), notes),
            clear: Clear::read(get(item, "clear")),
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
    let mut before: Vec<(&Entry, Terms)> = Vec::new();
    for entry in entries {
        let pattern = &entry.pattern;
        let terms = names.terms(&entry.clear, entry.own.as_deref(), notes);
        if let Some(deny) = denied.iter().find(|deny| deny.covers(pattern)) {
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

fn warn_broad(entry: &Entry, notes: &mut Notes) {
    let pattern = &entry.pattern;
    let single = match &pattern.host {
        HostPattern::Below(suffix) => !suffix.contains('.'),
        HostPattern::Name(_) | HostPattern::Network(_) => false,
    };
    if single || pattern.block.is_some_and(Block::is_vast) {
        notes.warning(
            &pattern.at,
            format!("host {} is over-broad", quoted(&pattern.text)),
            "anybody may have a place there, and be told what goes there",
            "name the hosts that the task needs",
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
    for (index, (entry, terms)) in entries.iter().enumerate() {
        let wider = |(other_index, (other, wide)): &(usize, &(&Entry, Terms))| {
            let same = other.includes(entry) && entry.includes(other) && wide == terms;
            other.includes(entry)
                && terms.clear.is_within(wide.clear)
                && terms.own.is_within(wide.own)
                && *other_index != index
                // Of two that are alike, the later one is too many.
                && !(same && index < *other_index)
        };
        if let Some((_, (other, _))) = entries.iter().enumerate().find(wider) {
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
    /// Whether this one covers each call that the other does.
    fn includes(&self, other: &Self) -> bool {
        let method = |(_, method): &(_, Method)| self.methods.iter().any(|(_, m)| m == method);
        let ports = |ports: &RangeInclusive<u16>| {
            let mut all = self.ports.iter();
            all.any(|mine| mine.contains(ports.start()) && mine.contains(ports.end()))
        };
        let path = |path: &String| {
            self.paths.iter().any(|prefix| {
                let rest = path.strip_prefix(&**prefix);
                let whole = |rest: &str| rest.is_empty() || rest.starts_with('/');
                rest.is_some_and(|rest| prefix.ends_with('/') || whole(rest))
            })
        };
        self.pattern.covers(&other.pattern)
            && other.methods.iter().all(method)
            && other.ports.iter().all(ports)
            && other.paths.iter().all(path)
    }
}

impl Pattern {
    fn read(value: &Value<'_>, notes: &mut Notes) -> Option<Self> {
        let (at, text) = (value.span(), text(value));
        let Some(host) = HostPattern::parse(text) else {
            notes.mistake(
                &at,
                format!("host {} cannot be read", quoted(text)),
                "it is a canonical name, `*.suffix`, an address or a network; IPv6 in brackets, \
                 and nothing set behind a network's prefix",
                "write it like `example.org`, `*.example.org`, `10.0.0.0/8` or `[fd00::]/8`",
            );
            return None;
        };
        Some(Self { host, block: Block::of(text), text: text.to_owned(), at })
    }

    /// Whether no target of the other escapes this one.
    fn covers(&self, other: &Self) -> bool {
        let below = |name: &str, suffix: &str| {
            name.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'))
        };
        match (&self.host, &other.host) {
            (HostPattern::Name(a), HostPattern::Name(b)) => a == b,
            (HostPattern::Below(a), HostPattern::Name(b)) => below(b, a),
            (HostPattern::Below(a), HostPattern::Below(b)) => a == b || below(b, a),
            _ => self.block.zip(other.block).is_some_and(|(a, b)| a.contains(b)),
        }
    }

    /// Whether it names addresses that are not globally reachable. The monitor
    /// itself is asked: it alone knows which are, and what counts as naming.
    fn is_special(&self) -> bool {
        let Some(block) = self.block else { return false };
        let host = match block.address {
            IpAddr::V4(address) => Host::V4(address),
            IpAddr::V6(address) => Host::V6(address),
        };
        let place = Place { host, port: 443, method: Method::Get, path: None };
        let mut alone = Scope::default();
        let global = alone.check_resolved(block.address, &place).is_ok();
        alone.net(
            self.host.clone(),
            Net {
                methods: [place.method].into(),
                ports: [place.port..=place.port].into(),
                paths: Vec::new(),
                clear: Secrecy::NONE,
                own: Secrecy::NONE,
            },
        );
        !global && alone.check_net(&place).is_ok()
    }
}

/// A network: its first address, and how many bits count in the IPv6 form.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: IpAddr,
    prefix: u32,
}

impl Block {
    /// The network of a pattern that was read.
    fn of(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let (address, before) = match Host::parse(address).ok()? {
            Host::V4(address) => (IpAddr::V4(address), 96),
            Host::V6(address) => (IpAddr::V6(address), 0),
            Host::Name(_) => return None,
        };
        Some(Self { address, prefix: prefix.map_or(128, |prefix| before + prefix) })
    }

    fn bits(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    fn contains(self, other: Self) -> bool {
        let differ = self.bits() ^ other.bits();
        let rest = 128_u32.saturating_sub(self.prefix);
        self.prefix <= other.prefix && differ.checked_shr(rest).unwrap_or(0) == 0
    }

    /// Whether it holds more than any one operator: wider than IPv4's `/8`, or
    /// IPv6's `/16`.
    fn is_vast(self) -> bool {
        let mapped = matches!(self.address, IpAddr::V4(_)) || self.bits() >> 32 == 0xffff;
        self.prefix < if mapped { 96 + 8 } else { 16 }
    }
}
