//! URLs and hosts in their one canonical form
//!
//! Two spellings of one place would be two strings to a scope and one to the
//! network, so only one is read and the rest are refused; nothing is repaired.
//! The canonical form is what the URL standard's serialiser writes, less what a
//! request does not need.
//!
//! # Invariants
//! - I11: what [`Url::parse`] and [`Host::parse`] return compares by its bytes.
//!
//! # Not here
//! Which hosts are granted, which addresses are reachable (gate 4); making a URL
//! canonical (outside the door).

use alloc::format;
use alloc::string::ToString;
use core::net::{Ipv4Addr, Ipv6Addr};

use synapse_abi::code::Refusal;

/// A canonical URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'s> {
    scheme: Scheme,
    host: Host<'s>,
    port: u16,
    path: &'s str,
    query: Option<&'s str>,
}

synapse_abi::numbered! {
    /// How a URL is fetched; the number is its port where none is written.
    pub enum Scheme: u16 {
        /// In the clear.
        Http = 80,
        /// Over TLS.
        Https = 443,
    }
}

/// A canonical host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host<'s> {
    /// A name to be resolved.
    Name(HostName<'s>),
    /// An address in dotted decimal.
    V4(Ipv4Addr),
    /// An address in brackets, which says nothing on what it maps to.
    V6(Ipv6Addr),
}

/// Labels of lower-case letters, digits and inner hyphens, joined by dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostName<'s>(&'s str);

impl<'s> Url<'s> {
    /// Reads a canonical URL.
    ///
    /// # Errors
    /// [`Refusal::NotCanonical`] for every other string.
    pub fn parse(url: &'s str) -> Result<Self, Refusal> {
        Self::read(url).ok_or(Refusal::NotCanonical)
    }

    fn read(url: &'s str) -> Option<Self> {
        let (scheme, rest) = match url.strip_prefix("https://") {
            Some(rest) => (Scheme::Https, rest),
            None => (Scheme::Http, url.strip_prefix("http://")?),
        };
        let (authority, tail) = rest.split_at_checked(rest.find('/')?)?;
        // The last colon is the port's, unless it stands inside brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port_number(port, scheme)?),
            _ => (authority, scheme.number()),
        };
        let mut parts = tail.splitn(2, '?');
        let (path, query) = (parts.next()?, parts.next());
        let sound = path.split('/').all(|segment| spelled(segment, ":@") && !is_dots(segment))
            && query.is_none_or(|query| spelled(query, ":@/?"));
        let host = Host::read(host)?;
        sound.then_some(Self { scheme, host, port, path, query })
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host.
    pub fn host(&self) -> Host<'s> {
        self.host
    }

    /// The port, the scheme's own where none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, which begins with `/`.
    pub fn path(&self) -> &'s str {
        self.path
    }

    /// What follows the `?`.
    pub fn query(&self) -> Option<&'s str> {
        self.query
    }
}

impl<'s> Host<'s> {
    /// Reads a canonical host: a name, an IPv4 address, or an IPv6 address in
    /// brackets.
    ///
    /// # Errors
    /// [`Refusal::NotCanonical`] for every other string.
    pub fn parse(host: &'s str) -> Result<Self, Refusal> {
        Self::read(host).ok_or(Refusal::NotCanonical)
    }

    fn read(host: &'s str) -> Option<Self> {
        if let Some(rest) = host.strip_prefix('[') {
            return v6(rest.strip_suffix(']')?).map(Host::V6);
        }
        // Resolvers take a host whose last label is a number for an address, in
        // many spellings; only the plain one is an address here.
        let last = host.rsplit('.').next()?;
        let hex = last.strip_prefix("0x");
        let numeric = last.bytes().all(|byte| byte.is_ascii_digit())
            || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if numeric {
            return host.parse().ok().map(Host::V4);
        }
        let sound = host.len() <= 253 && host.split('.').all(is_label);
        sound.then_some(Host::Name(HostName(host)))
    }
}

impl<'s> HostName<'s> {
    /// The name.
    pub fn as_str(self) -> &'s str {
        self.0
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// An IPv6 address as RFC 5952 section 4 writes it: hexadecimal throughout, also
/// where it maps IPv4, as URLs have it.
fn v6(text: &str) -> Option<Ipv6Addr> {
    let address: Ipv6Addr = text.parse().ok()?;
    let [.., high, low] = address.segments();
    let written = match address.to_ipv4_mapped() {
        Some(_) => format!("::ffff:{high:x}:{low:x}"),
        None => address.to_string(),
    };
    (written == text).then_some(address)
}

/// A port that is not the scheme's own, 1 to 65535.
fn port_number(digits: &str, scheme: Scheme) -> Option<u16> {
    let port = digits.parse().ok()?;
    (port != scheme.number() && !digits.starts_with(['0', '+'])).then_some(port)
}

/// Whether a path segment or a query holds only what needs no escape, `extra`,
/// and escapes in upper case.
fn spelled(text: &str, extra: &str) -> bool {
    let plain = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=".contains(byte)
            || extra.as_bytes().contains(byte)
    };
    let mut pieces = text.as_bytes().split(|byte| *byte == b'%');
    let hex = |byte: &u8| b"0123456789ABCDEF".contains(byte);
    let escape = |piece: &[u8]| matches!(piece, [high, low, rest @ ..] if hex(high) && hex(low) && rest.iter().all(plain));
    pieces.next().is_some_and(|first| first.iter().all(plain)) && pieces.all(escape)
}

/// Whether a segment is `.` or `..`, each dot plain or `%2E`.
fn is_dots(segment: &str) -> bool {
    let dot = |text| str::strip_prefix(text, ".").or_else(|| str::strip_prefix(text, "%2E"));
    dot(segment).is_some_and(|rest| rest.is_empty() || dot(rest).is_some_and(str::is_empty))
}
