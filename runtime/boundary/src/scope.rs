//! Scope: which targets a grant covers, compiled when it is granted.
//!
//! A lookup walks the target's components once, so its cost follows the target
//! and not the number of entries. No entry means no; a deny entry always wins.
//!
//! # Invariants
//! - I9: a scope is only ever built from a grant; nothing adds to it later.
//! - I11: only normal paths are compared; deny entries and compartments compare
//!   folded, allow entries exactly.
//!
//! # Not here
//! Reading the grant file (`synapse-kernel`).

use alloc::borrow::Cow;
use alloc::string::{String, ToString};

use hashbrown::{HashMap, HashSet};
use synapse_abi::code::Refusal;

use crate::label::Secrecy;
use crate::path::{NormalPath, fold};

/// What may be done to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// See the names in a directory.
    pub const LIST: Self = Self(1);
    /// Read bytes.
    pub const READ: Self = Self(2);
    /// Make, change or receive a name.
    pub const WRITE: Self = Self(4);
    /// Take a name away.
    pub const DELETE: Self = Self(8);

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `needed` are here.
    #[must_use]
    pub const fn cover(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }
}

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
        let (literal, reach) = if let Some(head) = text.strip_suffix("/**") {
            (head, Reach::Subtree)
        } else if let Some(head) = text.strip_suffix("/*") {
            (head, Reach::Children)
        } else {
            (text, Reach::Exact)
        };
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

    /// How far it reaches.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }
}

/// Everything a grant lets its task name, ready to be looked up.
#[derive(Debug, Default)]
pub struct Scope {
    allow: Node<Rights>,
    deny: Node<bool>,
    deny_names: HashSet<String>,
    compartments: Node<Secrecy>,
    named: Secrecy,
}

impl Scope {
    /// Adds an allow entry.
    pub fn allow(&mut self, pattern: &Pattern, rights: Rights) {
        let at = self.allow.at(pattern, exactly);
        *at = at.and(rights);
    }

    /// Adds a deny entry for a pattern.
    pub fn deny(&mut self, pattern: &Pattern) {
        *self.deny.at(pattern, fold) = true;
    }

    /// Adds a deny entry for a component's name, wherever it stands.
    pub fn deny_name(&mut self, name: &str) {
        self.deny_names.insert(fold(name).into_owned());
    }

    /// Puts what a pattern covers into a compartment.
    pub fn compartment(&mut self, pattern: &Pattern, compartment: Secrecy) {
        let at = self.compartments.at(pattern, fold);
        *at = at.join(compartment);
        self.named = self.named.join(compartment);
    }

    /// Whether a path is covered with these rights.
    ///
    /// # Errors
    /// `Denied` where a deny entry covers it, else `OutOfScope`.
    pub fn check(&self, path: &NormalPath<'_>, needed: Rights) -> Result<(), Refusal> {
        let denied_name = |name: &str| self.deny_names.contains(&*fold(name));
        if (!self.deny_names.is_empty() && path.components().any(denied_name))
            || self.deny.sum(path, false, |a, b| a || *b, fold)
        {
            return Err(Refusal::Denied);
        }
        let rights = self.allow.sum(path, Rights::NONE, |a, b| a.and(*b), exactly);
        if rights.cover(needed) { Ok(()) } else { Err(Refusal::OutOfScope) }
    }

    /// The named compartments that a path's patterns put it into.
    #[must_use]
    pub fn compartments(&self, path: &NormalPath<'_>) -> Secrecy {
        self.compartments.sum(path, Secrecy::NONE, |a, b| a.join(*b), fold)
    }

    /// Every compartment that the grant names: what a file carries whose own
    /// history nobody kept.
    #[must_use]
    pub const fn named(&self) -> Secrecy {
        self.named
    }
}

/// How allow entries compare.
fn exactly(name: &str) -> Cow<'_, str> {
    Cow::Borrowed(name)
}

/// One component's place in a tree of patterns.
#[derive(Debug, Default)]
struct Node<T> {
    children: HashMap<String, Node<T>>,
    exact: T,
    each_child: T,
    subtree: T,
}

impl<T: Copy + Default> Node<T> {
    fn at(&mut self, pattern: &Pattern, key: fn(&str) -> Cow<'_, str>) -> &mut T {
        let mut node = self;
        for component in pattern.path.components() {
            node = node.children.entry_ref(&*key(component)).or_default();
        }
        match pattern.reach {
            Reach::Exact => &mut node.exact,
            Reach::Children => &mut node.each_child,
            Reach::Subtree => &mut node.subtree,
        }
    }

    fn sum(
        &self,
        path: &NormalPath<'_>,
        start: T,
        add: impl Fn(T, &T) -> T,
        key: fn(&str) -> Cow<'_, str>,
    ) -> T {
        let mut node = self;
        let mut sum = add(start, &node.subtree);
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            if components.peek().is_none() {
                sum = add(sum, &node.each_child);
            }
            let Some(next) = node.children.get(&*key(component)) else { return sum };
            node = next;
            sum = add(sum, &node.subtree);
        }
        add(sum, &node.exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> NormalPath<'_> {
        NormalPath::parse(text.into()).unwrap()
    }

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    #[test]
    fn no_entry_means_no_and_deny_wins() {
        let mut scope = Scope::default();
        assert_eq!(scope.check(&path("/data/a"), Rights::NONE), Ok(()));
        assert_eq!(scope.check(&path("/data/a"), Rights::READ), Err(Refusal::OutOfScope));
        scope.allow(&pattern("/data/**"), Rights::READ.and(Rights::LIST));
        scope.allow(&pattern("/data/out/*"), Rights::WRITE);
        scope.allow(&pattern("/data/one"), Rights::DELETE);
        scope.deny(&pattern("/data/Private/**"));
        scope.deny_name(".env");
        let table = [
            ("/data", Rights::READ, Ok(())),
            ("/data/a/b", Rights::READ, Ok(())),
            ("/data/a/b", Rights::WRITE, Err(Refusal::OutOfScope)),
            ("/data/out", Rights::WRITE, Err(Refusal::OutOfScope)),
            ("/data/out/a", Rights::WRITE, Ok(())),
            ("/data/out/a", Rights::WRITE.and(Rights::READ), Ok(())),
            ("/data/out/a/b", Rights::WRITE, Err(Refusal::OutOfScope)),
            ("/data/one", Rights::DELETE, Ok(())),
            ("/data/one/a", Rights::DELETE, Err(Refusal::OutOfScope)),
            ("/database", Rights::READ, Err(Refusal::OutOfScope)),
            ("/", Rights::LIST, Err(Refusal::OutOfScope)),
            ("/data/../etc/passwd", Rights::READ, Err(Refusal::OutOfScope)),
            ("/data/private", Rights::READ, Err(Refusal::Denied)),
            ("/data/PRIVATE/x", Rights::READ, Err(Refusal::Denied)),
            ("/data/a/.ENV", Rights::READ, Err(Refusal::Denied)),
            ("/DATA/a", Rights::READ, Err(Refusal::OutOfScope)),
        ];
        for (target, rights, expected) in table {
            assert_eq!(scope.check(&path(target), rights), expected, "{target} {rights:?}");
        }
    }

    #[test]
    fn compartments_join_along_the_path_and_compare_folded() {
        let mut scope = Scope::default();
        let (pay, all) = (Secrecy::from_bits(1 << 8), Secrecy::from_bits(1 << 9));
        scope.compartment(&pattern("/data/payroll/**"), pay);
        scope.compartment(&pattern("/data/**"), all);
        assert_eq!(scope.compartments(&path("/data/Payroll/x")), pay.join(all));
        assert_eq!(scope.compartments(&path("/data/x")), all);
        assert_eq!(scope.compartments(&path("/x")), Secrecy::NONE);
        assert_eq!(scope.named(), pay.join(all));
    }

    #[test]
    fn patterns_are_normal_and_their_stars_stand_last() {
        assert_eq!(pattern("/**").reach(), Reach::Subtree);
        assert_eq!(pattern("/*").path().as_str(), "/");
        assert_eq!(Pattern::parse("/a*/b"), Err(BadPattern::Star));
        assert_eq!(Pattern::parse("/a/**/b"), Err(BadPattern::Star));
        assert_eq!(Pattern::parse("/a//b"), Err(BadPattern::NotNormal));
        assert_eq!(Pattern::parse("/a/../b/**"), Err(BadPattern::NotNormal));
        assert_eq!(Pattern::parse("a/**"), Err(BadPattern::Path(Refusal::NotAbsolute)));
        assert_eq!(Pattern::parse(""), Err(BadPattern::Path(Refusal::NotAbsolute)));
    }
}
