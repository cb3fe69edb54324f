//! Network entries: hosts, ports, methods, path prefixes, clearances.
//!
//! A name is looked up by its own text and that of each of its suffixes, an
//! address by each prefix length that occurs, so the cost follows the target.
//!
//! # Invariants
//! - A deny entry wins over every other.
//! - An address that is not globally reachable is covered only by an entry that
//!   names it, or a network inside the block that makes it special.
//! - IPv4 and its IPv4-mapped IPv6 form are one address.
//!
//! # Not here
//! Resolving names, connecting (the board).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::once;
use core::net::{IpAddr, Ipv6Addr};
use core::ops::RangeInclusive;

use hashbrown::HashMap;
use synapse_abi::code::Refusal;

use crate::label::Secrecy;
use crate::scope::Scope;
use crate::url::{Host, Url};

/// Bits by which an IPv4 address is preceded in its IPv4-mapped form.
const MAPPED: u8 = 96;

/// Which hosts an entry is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This name.
    Name(String),
    /// Every name below this one, not itself.
    Below(String),
    /// The addresses of a network.
    Network(Network),
}

/// An address, IPv4 in its IPv4-mapped form, with the bits that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    bits: u128,
    prefix: u8,
}

impl HostPattern {
    /// Reads a canonical host, `*.suffix`, or a network: `10.0.0.0/8`, `[fd00::]/8`.
    /// `None` for anything else, also where bits stand after the prefix.
    pub fn parse(text: &str) -> Option<Self> {
        let host = |text| Host::parse(text).ok();
        if let Some(suffix) = text.strip_prefix("*.") {
            let Host::Name(name) = host(suffix)? else { return None };
            return Some(Self::Below(name.as_str().into()));
        }
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let (address, before) = match host(address)? {
            Host::Name(name) if prefix.is_none() => return Some(Self::Name(name.as_str().into())),
            Host::Name(_) => return None,
            Host::V4(address) => (IpAddr::V4(address), MAPPED),
            Host::V6(address) => (IpAddr::V6(address), 0),
        };
        let prefix = match prefix {
            Some(digits) if digits.starts_with(['+', '0']) && digits != "0" => return None,
            Some(digits) => digits.parse::<u8>().ok()?.checked_add(before)?,
            None => 128,
        };
        let network = Network { bits: bits(address), prefix };
        (prefix <= 128 && masked(network.bits, prefix) == network.bits)
            .then_some(Self::Network(network))
    }
}

/// How a call uses the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `net_http_get`.
    Get,
    /// `net_http_post`.
    Post,
    /// `net_listen`.
    Listen,
}

/// What one entry allows, on the hosts of its pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Net {
    /// How.
    pub methods: Vec<Method>,
    /// On which ports.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Below which URL paths, whole segments; not compared for a listener.
    pub paths: Vec<String>,
    /// What the other end is cleared for.
    pub clear: Secrecy,
    /// The compartments of what comes from there.
    pub own: Secrecy,
    /// The secrets that a request may carry there.
    pub secrets: Vec<String>,
    /// Whether one that carries a secret only reads.
    pub reads: bool,
}

/// Where a call wants to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The host.
    pub host: Host<'a>,
    /// The port.
    pub port: u16,
    /// How.
    pub method: Method,
    /// The URL's path.
    pub path: Option<&'a str>,
    /// The names of the secrets that it carries.
    pub secrets: &'a [&'a str],
}

impl<'a> Place<'a> {
    /// The place that a URL names.
    pub fn of(url: &Url<'a>, method: Method) -> Self {
        Self { host: url.host(), port: url.port(), method, path: Some(url.path()), secrets: &[] }
    }
}

impl Net {
    fn covers(&self, place: &Place<'_>) -> bool {
        let below = |prefix: &String| {
            let rest = place.path.map_or(Some(""), |path| path.strip_prefix(&**prefix));
            let whole =
                |rest: &str| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/');
            rest.is_some_and(|rest| whole(rest) && (prefix == "/" || !climbs(rest)))
        };
        self.methods.contains(&place.method)
            && self.ports.iter().any(|ports| ports.contains(&place.port))
            && (place.path.is_none() || self.paths.iter().any(below))
            && place.secrets.iter().all(|name| self.secrets.iter().any(|known| known == name))
    }
}

/// Whether some server may read a path as one that climbs: it takes an escaped
/// separator for one, decodes twice, or cuts a segment at `;` or a zero byte.
fn climbs(path: &str) -> bool {
    let dots = |segment: &str| {
        let plain = segment.replacen("%2E", ".", 2);
        plain.strip_prefix("..").is_some_and(|rest| rest.starts_with([';', '%']))
    };
    ["%00", "%25", "%2F", "%5C"].iter().any(|escape| path.contains(escape))
        || path.split('/').any(dots)
}

/// What the entries that cover a place say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// What the other end is cleared for.
    pub clear: Secrecy,
    /// The compartments of what comes from there.
    pub own: Secrecy,
    /// How many secrets a request carries by which it may do more than read.
    pub acts: usize,
}

impl Terms {
    fn join(self, other: Self) -> Self {
        Self {
            clear: self.clear.join(other.clear),
            own: self.own.join(other.own),
            acts: self.acts.min(other.acts),
        }
    }
}

/// The network entries of a scope.
#[derive(Debug, Default)]
pub(super) struct Nets {
    /// By name, and by suffix with the dot before it.
    names: HashMap<String, Vec<Rule>>,
    networks: HashMap<Network, Vec<Rule>>,
    /// The prefix lengths that occur.
    prefixes: Vec<u8>,
}

#[derive(Debug)]
enum Rule {
    Deny,
    Allow(Net),
}

impl Scope {
    /// Adds a network entry.
    pub fn net(&mut self, pattern: HostPattern, entry: Net) {
        self.named = self.named.join(entry.own);
        self.nets.insert(pattern, Rule::Allow(entry));
    }

    /// Adds a deny entry for hosts.
    pub fn deny_host(&mut self, pattern: HostPattern) {
        self.nets.insert(pattern, Rule::Deny);
    }

    /// What the network entries that cover a place say.
    ///
    /// # Errors
    /// `Denied` where a deny entry covers it, else `OutOfScope`.
    pub fn check_net(&self, place: &Place<'_>) -> Result<Terms, Refusal> {
        match place.host {
            Host::Name(name) => {
                let dots = name.as_str().match_indices('.').map(|(at, _)| at);
                let keys = once(0).chain(dots).filter_map(|at| name.as_str().get(at..));
                let rules = keys.filter_map(|key| self.nets.names.get(key)).flatten();
                judge(rules.map(|rule| (rule, true)), place)
            }
            Host::V4(address) => self.nets.check(IpAddr::V4(address), place),
            Host::V6(address) => self.nets.check(IpAddr::V6(address), place),
        }
    }

    /// What covers a connection to a covered place at this address: the reply has
    /// the compartments of both, and both must be cleared for what is sent.
    ///
    /// # Errors
    /// `Denied` or `OutOfScope`; the fault is `Address`.
    pub fn check_resolved(&self, address: IpAddr, place: &Place<'_>) -> Result<Terms, Refusal> {
        let named = self.check_net(place)?;
        match self.nets.check(address, place) {
            Ok(Terms { clear, own, .. }) => {
                Ok(Terms { clear: named.clear.meet(clear), own: named.own.join(own), ..named })
            }
            Err(Refusal::OutOfScope) if special(bits(address)).is_none() => Ok(named),
            Err(refusal) => Err(refusal),
        }
    }
}

impl Nets {
    fn insert(&mut self, pattern: HostPattern, rule: Rule) {
        let rules = match pattern {
            HostPattern::Name(name) => self.names.entry(name).or_default(),
            HostPattern::Below(name) => self.names.entry(format!(".{name}")).or_default(),
            HostPattern::Network(network) => {
                if !self.prefixes.contains(&network.prefix) {
                    self.prefixes.push(network.prefix);
                }
                self.networks.entry(network).or_default()
            }
        };
        rules.push(rule);
    }

    /// What covers an address by itself.
    fn check(&self, address: IpAddr, place: &Place<'_>) -> Result<Terms, Refusal> {
        let bits = bits(address);
        let least = special(bits).unwrap_or(0);
        let rules = self.prefixes.iter().filter_map(|&prefix| {
            let network = Network { bits: masked(bits, prefix), prefix };
            Some((self.networks.get(&network)?, prefix >= least))
        });
        judge(rules.flat_map(|(rules, named)| rules.iter().map(move |rule| (rule, named))), place)
    }
}

/// Joins the entries that cover a place; an allowing one counts where it `names` it.
fn judge<'a>(
    rules: impl Iterator<Item = (&'a Rule, bool)>,
    place: &Place<'_>,
) -> Result<Terms, Refusal> {
    let mut terms: Result<Terms, _> = Err(Refusal::OutOfScope);
    for (rule, names) in rules {
        match rule {
            Rule::Deny => return Err(Refusal::Denied),
            Rule::Allow(net) if names && net.covers(place) => {
                let acts = if net.reads { 0 } else { place.secrets.len() };
                let more = Terms { clear: net.clear, own: net.own, acts };
                terms = Ok(terms.map_or(more, |terms| terms.join(more)));
            }
            Rule::Allow(_) => {}
        }
    }
    terms
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn masked(bits: u128, prefix: u8) -> u128 {
    let rest = 128_u32.saturating_sub(prefix.into());
    bits & u128::MAX.checked_shl(rest).unwrap_or(0)
}

/// The prefix length of the block that makes an address not globally reachable
/// (IANA, IPv4 and IPv6 Special-Purpose Address Registries, and multicast);
/// `None` for one that is.
fn special(address: u128) -> Option<u8> {
    match Ipv6Addr::from_bits(address).segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => {
            let [[a, b], [c, _]] = [high.to_be_bytes(), low.to_be_bytes()];
            special_v4([a, b, c]).map(|prefix| prefix.saturating_add(MAPPED))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(96),
        [0x64, 0xff9b, 1, ..] => Some(48),
        [0x2001, 0..0x200, ..] => Some(23),
        [0x2001, 0xdb8, ..] => Some(32),
        [0x2002, ..] => Some(16),
        [0x3fff, 0..0x1000, ..] => Some(20),
        [0x2000..0x4000, ..] => None,
        [0xfc00..0xfe00, ..] => Some(7),
        [0xfe80..0xfec0, ..] => Some(10),
        [0xff00..=0xffff, ..] => Some(8),
        // Outside of 2000::/3 nothing is, and only an address by itself is named.
        _ => Some(128),
    }
}

fn special_v4(address: [u8; 3]) -> Option<u8> {
    match address {
        [0 | 10 | 127, ..] => Some(8),
        [100, 64..128, _] => Some(10),
        [172, 16..32, _] => Some(12),
        [198, 18..20, _] => Some(15),
        [169, 254, _] | [192, 168, _] => Some(16),
        [192, 0, 0 | 2] | [192, 88, 99] | [198, 51, 100] | [203, 0, 113] => Some(24),
        [224..=255, ..] => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net() -> Net {
        Net {
            methods: [Method::Get].into(),
            ports: [443..=443, 8000..=8010].into(),
            paths: ["/".into()].into(),
            clear: Secrecy::PROMPT,
            own: Secrecy::NONE,
            secrets: [].into(),
            reads: false,
        }
    }

    fn nets(allow: &[&str], deny: &[&str]) -> Scope {
        let mut nets = Scope::default();
        for text in allow {
            nets.net(HostPattern::parse(text).unwrap(), net());
        }
        for text in deny {
            nets.deny_host(HostPattern::parse(text).unwrap());
        }
        nets
    }

    fn check(nets: &Scope, url: &str) -> Result<(), Refusal> {
        nets.check_net(&Place::of(&Url::parse(url).unwrap(), Method::Get)).map(|_| ())
    }

    #[test]
    fn no_entry_means_no_and_deny_wins() {
        let nets = nets(
            &["a.example", "*.b.example", "203.0.114.0/24", "10.1.0.0/16", "0.0.0.0/0", "[::1]"],
            &["no.b.example", "203.0.114.7"],
        );
        let (out, denied) = (Err(Refusal::OutOfScope), Err(Refusal::Denied));
        for (url, expected) in [
            ("https://a.example/", Ok(())),
            ("https://x.a.example/", out),
            ("https://xa.example/", out),
            ("https://b.example/", out),
            ("https://x.b.example/", Ok(())),
            ("https://x.y.b.example/", Ok(())),
            ("https://xb.example/", out),
            ("https://no.b.example/", denied),
            ("https://x.no.b.example/", Ok(())),
            ("https://203.0.114.6/", Ok(())),
            ("https://203.0.114.7/", denied),
            ("https://[::ffff:cb00:7207]/", denied),
            ("https://[::ffff:cb00:7206]/", Ok(())),
            ("https://8.8.8.8/", Ok(())),
            ("https://10.1.2.3/", Ok(())),
            ("https://10.2.2.3/", out),
            ("https://127.0.0.1/", out),
            ("https://169.254.169.254/", out),
            ("https://[64:ff9b::a01:203]/", out),
            ("https://[2002:a01:203::1]/", out),
            ("https://[::1]/", Ok(())),
            ("https://[::2]/", out),
            ("https://a.example:8005/", Ok(())),
            ("https://a.example:8011/", out),
            ("http://a.example/", out),
            // An entry names ports, not schemes.
            ("http://a.example:443/", Ok(())),
            ("https://a.example:80/", out),
        ] {
            assert_eq!(check(&nets, url), expected, "{url}");
        }
    }

    #[test]
    fn paths_are_prefixes_of_whole_segments_and_methods_are_named() {
        let mut nets = Scope::default();
        let paths = ["/v1".into(), "/open/".into()].into();
        let name = HostPattern::parse("a.example").unwrap();
        nets.net(name, Net { paths, ..net() });
        for (path, inside) in [
            ("/v1", true),
            ("/v1/x", true),
            ("/v1?q", true),
            ("/v1x", false),
            ("/", false),
            ("/open/x", true),
            ("/open", false),
            ("/v1%2Fx", false),
            ("/v1/..%2Fx", false),
            ("/v1/..%5Cx", false),
            ("/v1/..;/x", false),
            ("/v1/..;a=1/x", false),
            ("/v1/%2E.;/x", false),
            ("/v1/..%3B/x", false),
            ("/v1/%252E%252E%252Fx", false),
            ("/v1/..%00/x", false),
            ("/v1/a;b=1/x", true),
        ] {
            let url = alloc::format!("https://a.example{path}");
            assert_eq!(check(&nets, &url).is_ok(), inside, "{path}");
        }
        let place = Place::of(&Url::parse("https://a.example/v1").unwrap(), Method::Post);
        assert_eq!(nets.check_net(&place), Err(Refusal::OutOfScope));
    }

    #[test]
    fn what_a_name_resolves_to_is_judged_by_the_same_entries() {
        let nets = nets(&["a.example", "10.1.0.0/16"], &["8.8.8.8"]);
        let url = Url::parse("https://a.example/").unwrap();
        let place = Place::of(&url, Method::Get);
        for (address, expected) in [
            ("9.9.9.9", Ok(())),
            ("8.8.8.8", Err(Refusal::Denied)),
            ("::ffff:8.8.8.8", Err(Refusal::Denied)),
            ("10.1.0.1", Ok(())),
            ("10.2.0.1", Err(Refusal::OutOfScope)),
            ("127.0.0.1", Err(Refusal::OutOfScope)),
            ("100.64.0.1", Err(Refusal::OutOfScope)),
            ("172.31.255.255", Err(Refusal::OutOfScope)),
            ("172.32.0.1", Ok(())),
            ("0.0.0.0", Err(Refusal::OutOfScope)),
            ("224.0.0.1", Err(Refusal::OutOfScope)),
            ("255.255.255.255", Err(Refusal::OutOfScope)),
            ("192.88.99.1", Err(Refusal::OutOfScope)),
            ("::", Err(Refusal::OutOfScope)),
            ("::1", Err(Refusal::OutOfScope)),
            ("::ffff:127.0.0.1", Err(Refusal::OutOfScope)),
            ("64:ff9b::7f00:1", Err(Refusal::OutOfScope)),
            ("64:ff9b:1::1", Err(Refusal::OutOfScope)),
            ("2001::1", Err(Refusal::OutOfScope)),
            ("2002:7f00:1::", Err(Refusal::OutOfScope)),
            ("2001:db8::1", Err(Refusal::OutOfScope)),
            ("fd00::1", Err(Refusal::OutOfScope)),
            ("fe80::1", Err(Refusal::OutOfScope)),
            ("ff02::1", Err(Refusal::OutOfScope)),
            ("4000::1", Err(Refusal::OutOfScope)),
            ("2606:4700::1111", Ok(())),
        ] {
            let got = nets.check_resolved(address.parse().unwrap(), &place).map(|_| ());
            assert_eq!(got, expected, "{address}");
        }
    }

    #[test]
    fn host_patterns_have_one_spelling() {
        for text in ["a.example", "*.example", "10.0.0.0/8", "10.0.0.1", "[fd00::]/8", "0.0.0.0/0"]
        {
            assert!(HostPattern::parse(text).is_some(), "{text}");
        }
        for text in [
            "", "*", "*.", "A.example", "a.example/8", "*.10.0.0.1", "10.0.0.1/8", "10.0.0.0/33",
            "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/", "10/8", "fd00::/8", "[fd00::]/129", "*.*.a",
            "a.*",
        ] {
            assert_eq!(HostPattern::parse(text), None, "{text}");
        }
        let mapped = HostPattern::parse("[::ffff:a00:0]/104");
        assert_eq!(mapped, HostPattern::parse("10.0.0.0/8"));
    }

    #[test]
    fn blocks_that_are_not_globally_reachable_are_known_from_end_to_end() {
        let blocks = [
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
            "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            "[64:ff9b::]/96", "[64:ff9b:1::]/48", "[2001::]/23", "[2001:db8::]/32", "[2002::]/16",
            "[3fff::]/20", "[fc00::]/7", "[fe80::]/10", "[ff00::]/8",
        ];
        let blocks = blocks.map(|text| match HostPattern::parse(text) {
            Some(HostPattern::Network(network)) => network,
            _ => panic!("{text} is no network"),
        });
        let last = |block: &Network| block.bits | !masked(u128::MAX, block.prefix);
        for block in &blocks {
            assert_eq!(
                [block.bits, last(block)].map(special),
                [Some(block.prefix); 2],
                "{block:?}"
            );
            for beside in [block.bits.wrapping_sub(1), last(block).wrapping_add(1)] {
                let known = blocks.iter().find(|other| masked(beside, other.prefix) == other.bits);
                let found = special(beside).filter(|prefix| *prefix != 128);
                assert_eq!(found, known.map(|other| other.prefix), "beside {block:?}");
            }
        }
    }
}
