//! Path patterns, and the table that finds those that reach a path.
//!
//! # Invariants
//! - I11: a pattern's literal part is a normal path.
//! - A lookup's cost follows the target's components, not the number of entries.
//!
//! # Not here
//! What a match means (`scope`).

use alloc::borrow::Cow;
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

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPattern {
    /// The literal part is no normal path; the refusal says why.
    Path(Refusal),
    /// A `*` stands elsewhere than in a last `/*` or `/**`.
    Star,
    /// The path is spelled in another way than its normal form.
    NotNormal,
}

impl Pattern {
    /// Reads `/a/b`, `/a/*` or `/a/**`.
    ///
    /// # Errors
    /// See [`BadPattern`].
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let (literal, reach) = [("/**", Reach::Subtree), ("/*", Reach::Children)]
            .into_iter()
            .find_map(|(stars, reach)| Some((text.strip_suffix(stars)?, reach)))
            .unwrap_or((text, Reach::Exact));
        let literal = if literal.is_empty() && reach != Reach::Exact { "/" } else { literal };
        if literal.contains('*') {
            return Err(BadPattern::Star);
        }
        let path = NormalPath::parse(Cow::Owned(literal.to_string())).map_err(BadPattern::Path)?;
        if path.as_str() != literal {
            return Err(BadPattern::NotNormal);
        }
        Ok(Self { path, reach })
    }

    /// The literal part.
    pub const fn path(&self) -> &NormalPath<'static> {
        &self.path
    }

    /// Whether it reaches a path, compared exactly.
    pub(crate) fn covers(&self, path: &NormalPath<'_>) -> bool {
        let mut rest = path.components();
        self.path.components().all(|name| rest.next() == Some(name))
            && match self.reach {
                Reach::Exact => rest.next().is_none(),
                Reach::Children => rest.next().is_some() && rest.next().is_none(),
                Reach::Subtree => true,
            }
    }

    /// How far it reaches.
    pub const fn reach(&self) -> Reach {
        self.reach
    }
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
    said: HashMap<Vec<u8>, Said>,
    /// The lengths of literal parts that occur, in rising order.
    lengths: Vec<usize>,
}

/// What the patterns with one literal part say of it, of its direct children and
/// of all below.
#[derive(Debug, Default)]
struct Said {
    exact: Ruling,
    child: Rights,
    below: Ruling,
}

impl Patterns {
    /// Adds a ruling where a pattern with this literal part reaches. One that allows
    /// nothing holds for all below that, too.
    pub(super) fn add(&mut self, literal: &str, reach: Reach, more: Ruling) {
        let literal = literal.trim_end_matches('/').as_bytes();
        if let Err(place) = self.lengths.binary_search(&literal.len()) {
            self.lengths.insert(place, literal.len());
        }
        let said = self.said.entry_ref(literal).or_default();
        if reach != Reach::Children {
            said.exact = said.exact.join(more);
        }
        if reach == Reach::Subtree || more.rights == Rights::NONE {
            said.below = said.below.join(more);
        } else if reach == Reach::Children {
            said.child = said.child.and(more.rights);
        }
    }

    /// What they say together of a path, spelled as they are.
    pub(super) fn rule(&self, path: &str) -> Ruling {
        let path = path.trim_end_matches('/').as_bytes();
        let mut sum = Ruling::default();
        for length in &self.lengths {
            let Some((literal, rest)) = path.split_at_checked(*length) else { break };
            let said = || self.said.get(literal);
            match rest {
                [] => sum = said().map_or(sum, |said| sum.join(said.exact)),
                [b'/', name @ ..] => {
                    let Some(Said { child, below, .. }) = said() else { continue };
                    sum = sum.join(*below);
                    if *child != Rights::NONE && !name.contains(&b'/') {
                        sum.rights = sum.rights.and(*child);
                    }
                }
                _ => {}
            }
        }
        sum
    }
}
