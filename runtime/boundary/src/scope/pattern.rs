//! Path patterns, and the tree that finds those that match.
//!
//! # Invariants
//! - I11: a pattern's literal part is a normal path.
//! - A lookup's cost follows the target's components, not the number of entries.
//!
//! # Not here
//! What a match means (`scope`).

use alloc::borrow::Cow;
use alloc::string::{String, ToString};

use hashbrown::HashMap;
use synapse_abi::code::Refusal;

use crate::path::NormalPath;

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
    #[must_use]
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
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }
}

/// How the names of a tree compare.
pub(super) type Key = fn(&str) -> Cow<'_, str>;

/// One component's place in a tree of patterns.
#[derive(Debug, Default)]
pub(super) struct Node<T> {
    children: HashMap<String, Node<T>>,
    exact: T,
    child: T,
    below: T,
}

impl<T: Copy + Default> Node<T> {
    /// Adds a value where the pattern reaches.
    pub(super) fn insert(&mut self, pattern: &Pattern, add: impl Fn(&mut T), key: Key) {
        let node = self.at(pattern.path(), key);
        match pattern.reach {
            Reach::Exact => add(&mut node.exact),
            Reach::Children => add(&mut node.child),
            Reach::Subtree => {
                add(&mut node.exact);
                add(&mut node.below);
            }
        }
    }

    /// Adds a value where the pattern reaches and everywhere below.
    pub(super) fn insert_deep(&mut self, pattern: &Pattern, add: impl Fn(&mut T), key: Key) {
        let node = self.at(pattern.path(), key);
        if pattern.reach != Reach::Children {
            add(&mut node.exact);
        }
        add(&mut node.below);
    }

    fn at(&mut self, path: &NormalPath<'_>, key: Key) -> &mut Self {
        let mut node = self;
        for component in path.components() {
            node = node.children.entry_ref(&*key(component)).or_default();
        }
        node
    }

    /// The sum of what matches along names, as the tree compares them.
    pub(super) fn sum(
        &self,
        names: impl Iterator<Item = impl AsRef<str>>,
        add: fn(T, T) -> T,
    ) -> T {
        let (mut sum, mut node, mut names) = (T::default(), self, names.peekable());
        while let Some(name) = names.next() {
            sum = add(sum, node.below);
            if names.peek().is_none() {
                sum = add(sum, node.child);
            }
            let Some(next) = node.children.get(name.as_ref()) else { return sum };
            node = next;
        }
        add(sum, node.exact)
    }
}
