//! One secret: its name, its value, where it may go
//!
//! # Invariants
//! - A value is one line of printable ASCII, long enough not to be found by guessing
//!   what gets masked, and can stand in a header as it is.
//!
//! # Not here
//! Keeping it (`vault`).

use core::fmt;

use synapse_boundary::secret::is_name;
use synapse_boundary::url::{Scheme, Url};
use zeroize::Zeroizing;

/// Bytes that a value has at least: masking tells whether a text holds it.
pub const SHORTEST: usize = 8;
/// Bytes that a value has at most.
pub const LONGEST: usize = 4096;
/// Destinations of one secret.
pub const DESTINATIONS: usize = 16;

/// What a person calls a secret, its value, and where it may go.
#[derive(Debug)]
pub struct Secret {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    /// What stands for `{secret:NAME}`.
    pub value: Value,
    /// Where it may go; nowhere else.
    pub destinations: Vec<Destination>,
}

/// Why something is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The name.
    Name,
    /// The value is empty.
    Empty,
    /// The value has fewer bytes than [`SHORTEST`].
    Short,
    /// The value has more bytes than [`LONGEST`].
    Long,
    /// The value has a line end or another control character.
    Control,
    /// The value is not ASCII.
    NotAscii,
    /// The value begins or ends with a space.
    Space,
    /// A destination.
    Destination,
    /// There is no destination, or there are too many.
    Destinations,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str(
                "the name is none; `{secret:NAME}` has to be read without doubt; use 1 to 64 \
                 letters, digits, `_` and `-`",
            ),
            Self::Empty => f.write_str("the value is empty; nothing was kept; give one"),
            Self::Short => write!(
                f,
                "the value has fewer than {SHORTEST} bytes; what gets masked would tell it to \
                 whoever tries them all; use a longer one"
            ),
            Self::Long => write!(f, "the value has more than {LONGEST} bytes; use a shorter one"),
            Self::Control => f.write_str(
                "the value has a line end or another control character inside; it could begin a \
                 header of its own; give one line",
            ),
            Self::NotAscii => f.write_str(
                "the value is not ASCII; no header carries it as it is; give it encoded as its \
                 receiver reads it",
            ),
            Self::Space => f.write_str(
                "the value begins or ends with a space; receivers would drop it; give it without",
            ),
            Self::Destination => f.write_str(
                "a destination is none; a secret goes to exact places only; write \
                 `https://api.example.com`, with `:PORT` unless it is 443, `tool:SERVER`, or \
                 `oci://registry.example.com`",
            ),
            Self::Destinations => write!(
                f,
                "a secret has 1 to {DESTINATIONS} destinations; it goes nowhere else; name them \
                 with `--for`"
            ),
        }
    }
}

impl core::error::Error for Bad {}

impl Secret {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with its name or its destinations.
    pub fn new(name: &str, value: Value, destinations: &[impl AsRef<str>]) -> Result<Self, Bad> {
        if !is_name(name) {
            return Err(Bad::Name);
        }
        let mut read: Vec<Destination> = Vec::new();
        for text in destinations {
            let destination = Destination::parse(text.as_ref()).ok_or(Bad::Destination)?;
            if !read.contains(&destination) {
                read.push(destination);
            }
        }
        if !(1..=DESTINATIONS).contains(&read.len()) {
            return Err(Bad::Destinations);
        }
        Ok(Self { name: name.to_owned(), value, destinations: read })
    }
}

/// The value of a secret, overwritten when it is dropped. It prints as nothing, and there
/// is one of it.
pub struct Value(Zeroizing<String>);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").finish_non_exhaustive()
    }
}

impl Value {
    /// Reads one.
    ///
    /// # Errors
    /// No header could carry it, or it could be guessed.
    pub fn parse(bytes: &[u8]) -> Result<Self, Bad> {
        if bytes.is_empty() {
            return Err(Bad::Empty);
        }
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(Bad::Control);
        }
        let text = str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
        let text = text.ok_or(Bad::NotAscii)?;
        match text.len() {
            _ if text.trim() != text => Err(Bad::Space),
            0..SHORTEST => Err(Bad::Short),
            SHORTEST..=LONGEST => Ok(Self(Zeroizing::new(text.to_owned()))),
            _ => Err(Bad::Long),
        }
    }

    /// The value itself, for a socket or a process and nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Where a secret may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A scheme, a host and a port, as a URL begins.
    Origin(String),
    /// A connector.
    Tool(String),
    /// A registry of packages, its host and its port; no agent's request goes there with it.
    Registry(String),
}

impl Destination {
    /// Reads `https://host`, with `:port` unless it is the scheme's own, `tool:server`, or
    /// `oci://host`; one `/` may stand after a host.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(server) = text.strip_prefix("tool:") {
            return is_name(server).then(|| Self::Tool(server.to_owned()));
        }
        let origin = text.strip_suffix('/').unwrap_or(text);
        let is_whole = |origin: &str| {
            Url::parse(&format!("{origin}/"))
                .is_ok_and(|url| url.path() == "/" && url.query().is_none())
        };
        if let Some(registry) = origin.strip_prefix("oci://") {
            let is_named = is_whole(&format!("https://{registry}"));
            return is_named.then(|| Self::Registry(registry.to_owned()));
        }
        is_whole(origin).then(|| Self::Origin(origin.to_owned()))
    }

    /// Whether a URL is at this place.
    #[must_use]
    pub fn covers(&self, url: &Url<'_>) -> bool {
        let Self::Origin(origin) = self else { return false };
        let place = |url: &Url<'_>| (url.scheme(), url.port());
        let own = format!("{origin}/");
        Url::parse(&own).is_ok_and(|own| own.host() == url.host() && place(&own) == place(url))
    }

    /// Whether what goes there is readable on its way.
    #[must_use]
    pub fn is_clear_text(&self) -> bool {
        let Self::Origin(origin) = self else { return false };
        Url::parse(&format!("{origin}/")).is_ok_and(|url| url.scheme() == Scheme::Http)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Origin(origin) => f.write_str(origin),
            Self::Tool(server) => write!(f, "tool:{server}"),
            Self::Registry(registry) => write!(f, "oci://{registry}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_line_that_a_header_carries() {
        let long = [b'x'; LONGEST + 1];
        for (bytes, why) in [
            (&b""[..], Bad::Empty),
            (b"1234567", Bad::Short),
            (&long, Bad::Long),
            (b"abcdefgh\r\nx: y", Bad::Control),
            (b"abcdefgh\n", Bad::Control),
            (b"abcd\0efgh", Bad::Control),
            (b"abcdefgh\x7f", Bad::Control),
            ("abcdefgh\u{e9}".as_bytes(), Bad::NotAscii),
            (b"abcdefgh\xff", Bad::NotAscii),
            (b" abcdefgh", Bad::Space),
            (b"abcdefgh ", Bad::Space),
        ] {
            assert_eq!(Value::parse(bytes).unwrap_err(), why, "{bytes:?}");
        }
        assert_eq!(Value::parse(b"abcd efgh").unwrap().expose(), "abcd efgh");
    }

    #[test]
    fn i17_a_value_prints_as_nothing() {
        let value = Value::parse(b"hunter2-hunter2").unwrap();
        let secret = Secret::new("a", value, &["tool:mail"]).unwrap();
        assert!(!format!("{secret:?} {secret:#?}").contains("hunter2"));
    }

    #[test]
    fn a_destination_is_one_exact_place() {
        for text in [
            "", "https://", "api.example.com", "https://api.example.com/v1", "https://a/?q",
            "https://*.example.com", "https://A.example.com", "https://u@a", "https://a:443",
            "ftp://a", "tool:", "tool:a/b", "tool:*", "*", "oci://", "oci://a/b", "oci://a:443",
            "oci://A", "oci://u@a", "oci://a?q", "oci:a",
        ] {
            assert_eq!(Destination::parse(text), None, "{text}");
        }
        let place = Destination::parse("https://api.example.com/").unwrap();
        assert_eq!(place.to_string(), "https://api.example.com");
        for (url, expected) in [
            ("https://api.example.com/v1?a=b", true),
            ("http://api.example.com/", false),
            ("https://api.example.com:8443/", false),
            ("https://x.api.example.com/", false),
            ("https://example.com/", false),
        ] {
            assert_eq!(place.covers(&Url::parse(url).unwrap()), expected, "{url}");
        }
        let local = Destination::parse("http://127.0.0.1:8080").unwrap();
        assert!(local.covers(&Url::parse("http://127.0.0.1:8080/x").unwrap()));
        assert!(local.is_clear_text() && !place.is_clear_text());
        for text in ["tool:a", "oci://a"] {
            let place = Destination::parse(text).unwrap();
            assert_eq!(place.to_string(), text);
            assert!(!place.covers(&Url::parse("https://a/").unwrap()), "{text}");
        }
        assert!(Destination::parse("oci://127.0.0.1:5000/").is_some());
    }

    #[test]
    fn a_secret_has_a_name_and_goes_somewhere() {
        let value = || Value::parse(b"12345678").unwrap();
        let bad = |name, places: &[&str]| Secret::new(name, value(), places).unwrap_err();
        assert_eq!(bad("a}b", &["tool:a"]), Bad::Name);
        assert_eq!(bad("", &["tool:a"]), Bad::Name);
        assert_eq!(bad("a", &[]), Bad::Destinations);
        assert_eq!(bad("a", &["tool:a", "https://A"]), Bad::Destination);
        let twice = Secret::new("a", value(), &["tool:a", "tool:a"]).unwrap();
        assert_eq!(twice.destinations.len(), 1);
    }
}
