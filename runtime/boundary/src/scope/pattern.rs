//! Path patterns, and the table that finds those that reach a path.
//!
//! # Invariants
//! - I11: a pattern's literal part is a normal path.
//! - A lookup's cost follows the target's components, not the number of entries.
//!
//! # Not here
//! What a match means (`scope`).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use hashbrown::HashMap;
use synapse_abi::code::Refusal;

use crate::label::Secrecy;
use crate::path::NormalPath;
use crate::scope::Rights;

/// A path pattern: literal components, then nothing, `/*` or `/**`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    path: NormalPath<'static>,
    reach: Reach,
}

/// How far a pattern reaches below its literal part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The path alone.
    Exact,
    /// Its direct children.
    Children,
    /// Itself and everything below.
    Subtree,
}

impl Pattern {
    /// Reads `/a/b`, `/a/*` or `/a/**`.
    ///
    /// # Errors
    /// What is wrong with the literal part as a path; `BadName` where that has a `*` in
    /// it, or is not in its normal form.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let (literal, reach) = match (text.strip_suffix("/**"), text.strip_suffix("/*")) {
            (Some(literal), _) => (literal, Reach::Subtree),
            (None, Some(literal)) => (literal, Reach::Children),
            (None, None) => (text, Reach::Exact),
        };
        let literal = if literal.is_empty() && reach != Reach::Exact { "/" } else { literal };
        let path = NormalPath::parse(Cow::Owned(literal.to_string()))?;
        let is_one = path.as_str() == literal && !literal.contains('*');
        if is_one { Ok(Self { path, reach }) } else { Err(Refusal::BadName) }
    }

    /// The literal part.
    pub const fn path(&self) -> &NormalPath<'static> {
        &self.path
    }

    /// Whether it reaches a path, compared exactly.
    pub(crate) fn covers(&self, path: &NormalPath<'_>) -> bool {
        let [literal, path] = [&self.path, path].map(|it| it.as_str().trim_end_matches('/'));
        path.strip_prefix(literal).is_some_and(|rest| {
            (rest.is_empty() || rest.starts_with('/'))
                && self.reach.includes(depth(rest.as_bytes()))
        })
    }

    /// How far it reaches.
    pub const fn reach(&self) -> Reach {
        self.reach
    }
}

impl Reach {
    /// Whether it includes what lies so [`depth`] below the literal part.
    const fn includes(self, depth: usize) -> bool {
        match self {
            Self::Exact => depth == 0,
            Self::Children => depth == 1,
            Self::Subtree => true,
        }
    }
}

/// How many components follow a literal part, two standing for more.
fn depth(rest: &[u8]) -> usize {
    rest.iter().filter(|byte| **byte == b'/').take(2).count()
}

/// What the patterns say that reach a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ruling {
    /// What they allow.
    pub(super) rights: Rights,
    /// Whether one denies it.
    pub(super) denied: bool,
    /// The compartments that they put it into.
    pub(super) compartments: Secrecy,
}

impl Ruling {
    const fn join(self, other: Self) -> Self {
        Self {
            rights: self.rights.and(other.rights),
            denied: self.denied || other.denied,
            compartments: self.compartments.join(other.compartments),
        }
    }
}

/// Patterns by their literal part; that of the root is empty.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// What those with one literal part say together, by depth.
    said: HashMap<Box<[u8]>, [Ruling; 3]>,
    /// The lengths of literal parts that occur, in rising order.
    lengths: Vec<usize>,
}

impl Patterns {
    /// Adds a ruling where a pattern with this literal part reaches. One that allows
    /// nothing holds for all below that, too.
    pub(super) fn add(&mut self, literal: &str, reach: Reach, more: Ruling) {
        let literal = literal.trim_end_matches('/').as_bytes();
        if let Err(place) = self.lengths.binary_search(&literal.len()) {
            self.lengths.insert(place, literal.len());
        }
        for (depth, said) in self.said.entry(literal.into()).or_default().iter_mut().enumerate() {
            let from = if more.rights == Rights::NONE { 0 } else { depth };
            if (from..=depth).any(|depth| reach.includes(depth)) {
                *said = said.join(more);
            }
        }
    }

    /// What they say together of a path, spelled as they are.
    pub(super) fn rule(&self, path: &str) -> Ruling {
        let path = path.trim_end_matches('/').as_bytes();
        let mut sum = Ruling::default();
        for length in &self.lengths {
            let Some((literal, rest)) = path.split_at_checked(*length) else { break };
            if matches!(rest, [] | [b'/', ..])
                && let Some(said) = self.said.get(literal)
            {
                sum = said.get(depth(rest)).map_or(sum, |said| sum.join(*said));
            }
        }
        sum
    }
}
