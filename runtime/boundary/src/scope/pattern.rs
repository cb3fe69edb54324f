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

use crate::path::{NormalPath, fold};

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
        path.below(&self.path).is_some_and(|mut below| match self.reach {
            Reach::Exact => below.is_empty(),
            Reach::Children => below.next().is_some() && below.is_empty(),
            Reach::Subtree => true,
        })
    }

    /// How far it reaches.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }
}

/// How the names of a tree compare.
pub(super) type Key = fn(&str) -> Cow<'_, str>;

/// Things by name.
#[derive(Debug, Default)]
pub(super) struct Named<T> {
    all: HashMap<String, T>,
    /// A bit for the first byte of each name: most that are absent are told by it.
    first: u64,
}

impl<T: Default> Named<T> {
    pub(super) fn entry(&mut self, name: &str) -> &mut T {
        self.first |= first_bit(name);
        self.all.entry_ref(name).or_default()
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        if self.first & first_bit(name) == 0 { None } else { self.all.get(name) }
    }
}

fn first_bit(name: &str) -> u64 {
    name.bytes().next().map_or(0, |byte| 1_u64.rotate_left(byte.into()))
}

/// One component's place in a tree of patterns.
#[derive(Debug, Default)]
pub(super) struct Node<T> {
    children: Named<Node<T>>,
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
            node = node.children.entry(&key(component));
        }
        node
    }
}

/// A walk along a path, and the sum of what matched on the way.
#[derive(Debug)]
pub(super) struct Walk<'a, T> {
    node: Option<&'a Node<T>>,
    sum: T,
    add: fn(T, T) -> T,
}

impl<'a, T: Copy + Default> Walk<'a, T> {
    pub(super) fn new(root: &'a Node<T>, add: fn(T, T) -> T) -> Self {
        Self { node: Some(root), sum: T::default(), add }
    }

    /// The sum along names that are compared folded.
    pub(super) fn along<'n>(
        root: &'a Node<T>,
        add: fn(T, T) -> T,
        names: impl Iterator<Item = &'n str>,
    ) -> T {
        let (mut walk, mut names) = (Self::new(root, add), names.peekable());
        while let Some(name) = names.next() {
            walk.step(&fold(name), names.peek().is_none());
        }
        walk.end()
    }

    /// Goes down to a component, as the tree compares it.
    pub(super) fn step(&mut self, name: &str, is_last: bool) {
        let Some(node) = self.node else { return };
        self.sum = (self.add)(self.sum, node.below);
        if is_last {
            self.sum = (self.add)(self.sum, node.child);
        }
        self.node = node.children.get(name);
    }

    /// The sum, at the path's end.
    pub(super) fn end(self) -> T {
        self.node.map_or(self.sum, |node| (self.add)(self.sum, node.exact))
    }
}
