//! Which hosts an entry is about, and which of two patterns holds the other
//!
//! # Not here
//! Comparing a target with them (`synapse_boundary::scope`).

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::successors;
use core::net::{IpAddr, Ipv4Addr};
use core::ops::Range;

use synapse_boundary::scope::{HostPattern, Method, Net, Place};
use synapse_boundary::url::Host;
use synapse_boundary::{Scope, Secrecy};
use synapse_primitives::host_of;

use super::notes::{Notes, quoted};
use super::shape::{Value, text};

/// A host, a suffix or a network, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(super) host: HostPattern,
    /// The network, where it is one.
    block: Option<Block>,
    pub(crate) text: String,
    pub(super) at: Range<usize>,
}

impl Pattern {
    /// Reads one.
    pub(super) fn read(value: &Value<'_>, notes: &mut Notes) -> Option<Self> {
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
    pub(super) fn covers(&self, other: &Self) -> bool {
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

    /// Whether it holds more than any one operator has: every name below a label
    /// of one, or a network wider than IPv4's `/8` or IPv6's `/16`.
    pub(super) fn is_vast(&self) -> bool {
        match (&self.host, self.block) {
            (HostPattern::Below(suffix), _) => !suffix.contains('.'),
            (_, Some(block)) => block.prefix < if block.is_v4() { 96 + 8 } else { 16 },
            (_, None) => false,
        }
    }

    /// Whether a listener may be at each place of it: it is loopback, or names one address.
    pub(super) fn is_one_or_loopback(&self) -> bool {
        const LOOPBACK: Block = Block { address: IpAddr::V4(Ipv4Addr::LOCALHOST), prefix: 96 + 8 };
        self.block.is_some_and(|block| block.prefix == 128 || LOOPBACK.contains(block))
    }

    /// Whether it names addresses that are not globally reachable. The monitor
    /// itself is asked: it alone knows which are, and what counts as naming.
    pub(super) fn is_special(&self) -> bool {
        let Some(block) = self.block else { return false };
        let host = host_of(block.address);
        let place = Place { host, port: 443, method: Method::Get, path: None, secrets: &[] };
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
                secrets: Vec::new(),
                reads: false,
            },
        );
        !global && alone.check_net(&place).is_ok()
    }
}

/// What may cover a host, found by its name; any network may hold another.
pub(super) struct Index<'a, T> {
    names: BTreeMap<&'a str, Vec<T>>,
    networks: Vec<T>,
}

impl<'a, T: Copy> Index<'a, T> {
    pub(super) fn new(items: impl Iterator<Item = (&'a Pattern, T)>) -> Self {
        let mut index = Self { names: BTreeMap::new(), networks: Vec::new() };
        for (pattern, item) in items {
            match pattern.block {
                Some(_) => index.networks.push(item),
                None => index.names.entry(&pattern.text).or_default().push(item),
            }
        }
        index
    }

    /// All that can cover this one, itself included.
    pub(super) fn around(&self, pattern: &Pattern) -> impl Iterator<Item = T> {
        let above = |name: &str| name.split_once('.').map(|(_, suffix)| suffix.to_owned());
        let name = pattern.block.is_none().then(|| pattern.text.clone());
        let suffixes = successors(name.as_deref().and_then(above), move |name| above(name));
        let names = name.into_iter().chain(suffixes.map(|suffix| format!("*.{suffix}")));
        let networks: &[T] = if pattern.block.is_some() { &self.networks } else { &[] };
        let found = names.filter_map(|name| self.names.get(&*name)).flatten();
        found.chain(networks).copied()
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

    fn is_v4(self) -> bool {
        self.bits() >> 32 == 0xffff
    }
}
