//! What an entry says of ports and of a tool's arguments.
//!
//! # Invariants
//! - Two limits whose common part is hard to say have none.
//!
//! # Not here
//! Judging an argument (`synapse_boundary::scope`).

use core::fmt;

use serde::Deserialize;

use super::authority::{array, quoted};

/// A port, or a range of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Ports {
    /// One.
    One(u16),
    /// `first-last`.
    Range(String),
}

impl Ports {
    fn new(first: u16, last: u16) -> Self {
        if first == last { Self::One(first) } else { Self::Range(format!("{first}-{last}")) }
    }

    fn ends(&self) -> Option<(u16, u16)> {
        match self {
            Self::One(port) => Some((*port, *port)),
            Self::Range(text) => {
                let (first, last) = text.split_once('-')?;
                Some((first.parse().ok()?, last.parse().ok()?))
            }
        }
    }

    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let ((a, b), (c, d)) = (self.ends()?, other.ends()?);
        let (first, last) = (a.max(c), b.min(d));
        (first <= last).then(|| Self::new(first, last))
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(port) => write!(f, "{port}"),
            Self::Range(text) => f.write_str(&quoted(text)),
        }
    }
}

/// What an argument may be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Written")]
pub enum Limit {
    /// One of these texts, each with at most one `*`.
    Like(Vec<String>),
    /// From the first to the last number.
    Within(f64, f64),
}

/// A limit, as a file has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Like(Vec<String>),
    Most(f64),
    Range { min: f64, max: f64 },
}

impl From<Written> for Limit {
    fn from(written: Written) -> Self {
        match written {
            Written::Like(texts) => Self::Like(texts),
            Written::Most(max) => Self::Within(0.0, max),
            Written::Range { min, max } => Self::Within(min, max),
        }
    }
}

impl Limit {
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Like(own), Self::Like(theirs)) => {
                let like = |text: &String, patterns: &[String]| {
                    patterns.iter().any(|pattern| pattern == text || matches(pattern, text))
                };
                let new = theirs.iter().filter(|text| !own.contains(text) && like(text, own));
                let both: Vec<String> =
                    own.iter().filter(|text| like(text, theirs)).chain(new).cloned().collect();
                (!both.is_empty()).then_some(Self::Like(both))
            }
            (Self::Within(a, b), Self::Within(c, d)) => {
                let (min, max) = (a.max(*c), b.min(*d));
                (min <= max).then_some(Self::Within(min, max))
            }
            _ => None,
        }
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self.meet(other), other) {
            (Some(Self::Like(both)), Self::Like(texts)) => {
                texts.iter().all(|text| both.contains(text))
            }
            (Some(both), Self::Within(..)) => both == *other,
            _ => false,
        }
    }
}

/// Whether the pattern is sure to admit this text, which has no `*` itself.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else { return false };
    let rest = text.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
    let plain = |rest: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-');
        !rest.is_empty() && rest.bytes().all(letter)
    };
    !text.contains('*') && rest.is_some_and(plain)
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Like(texts) => f.write_str(&array(texts)),
            Self::Within(min, max) => write!(f, "{{ min = {min}, max = {max} }}"),
        }
    }
}
