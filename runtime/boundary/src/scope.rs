//! Scope: which targets a grant covers, compiled when it is granted.
//!
//! A lookup follows the target, so its cost does not grow with the number of
//! entries. No entry means no; a deny entry always wins.
//!
//! # Invariants
//! - I9: a scope is only ever built from a grant; nothing adds to it later.
//! - I11: only normal paths, canonical hosts and literal tools are compared; deny
//!   entries and compartments compare folded, allow entries exactly.
//!
//! # Not here
//! Reading the grant file (`synapse-kernel`).

mod net;
mod pattern;
mod tools;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};
use synapse_abi::code::Refusal;
pub use synapse_abi::registry::Rights;

use crate::label::Secrecy;
use crate::path::{NormalPath, fold};
use net::Nets;
pub use net::{HostPattern, Method, Net, Network, Place, Terms};
pub use pattern::{Pattern, Reach};
use pattern::{Patterns, Ruling};
pub use tools::{Decimal, Effect, Limit, Tool, Verb, day};

/// Everything a grant lets its task name, ready to be looked up.
#[derive(Debug, Default)]
pub struct Scope {
    /// Compartments of connectors that a warrant lets out.
    pub let_out: Secrecy,
    /// Those that allow as they are spelled, the others folded.
    paths: Patterns,
    deny_names: HashSet<Vec<u8>>,
    /// The marks of those: few names of a path share one.
    deny_marks: u64,
    named: Secrecy,
    nets: Nets,
    tools: HashMap<String, Tool>,
}

impl Scope {
    /// Adds an allow entry.
    pub fn allow(&mut self, pattern: &Pattern, rights: Rights) {
        let ruling = Ruling { rights, ..Ruling::default() };
        self.paths.add(pattern.path().as_str(), pattern.reach(), ruling);
    }

    /// Adds a deny entry for what a pattern covers and all below it.
    pub fn deny(&mut self, pattern: &Pattern) {
        let ruling = Ruling { denied: true, ..Ruling::default() };
        self.paths.add(&fold(pattern.path().as_str()), pattern.reach(), ruling);
    }

    /// Adds a deny entry for a component's name, wherever it stands.
    pub fn deny_name(&mut self, name: &str) {
        let name = fold(name);
        self.deny_marks |= mark(name.as_bytes());
        self.deny_names.insert(name.as_bytes().into());
    }

    /// Puts what a pattern covers and all below it into a compartment.
    pub fn compartment(&mut self, pattern: &Pattern, compartment: Secrecy) {
        let ruling = Ruling { compartments: compartment, ..Ruling::default() };
        self.paths.add(&fold(pattern.path().as_str()), pattern.reach(), ruling);
        self.named = self.named.join(compartment);
    }

    /// Adds the entry of a verb, `server/verb`; a second one takes its place.
    pub fn tool(&mut self, name: &str, entry: Tool) {
        self.named = self.named.join(entry.terms.own);
        self.tools.insert(name.into(), entry);
    }

    /// Whether a path is covered with these rights.
    ///
    /// # Errors
    /// `Denied` where a deny entry covers it, else `OutOfScope`.
    pub fn check(&self, path: &NormalPath<'_>, needed: Rights) -> Result<(), Refusal> {
        let ruling = self.ruling(path.as_str());
        if ruling.denied {
            return Err(Refusal::Denied);
        }
        if ruling.rights.cover(needed) { Ok(()) } else { Err(Refusal::OutOfScope) }
    }

    /// Whether a deny entry covers an absolute path, also one that no sentence can
    /// spell.
    #[must_use]
    pub fn denies(&self, path: &str) -> bool {
        self.ruling(path).denied
    }

    fn ruling(&self, path: &str) -> Ruling {
        let exact = self.paths.rule(path);
        let folded = fold(path);
        // Most paths are their own fold.
        let is_same = matches!(folded, Cow::Borrowed(_));
        let rest = if is_same { exact } else { self.paths.rule(&folded) };
        let mut names = folded.as_bytes().split(|byte| *byte == b'/');
        let is_denied = |name| self.deny_marks & mark(name) != 0 && self.deny_names.contains(name);
        let has_name = names.any(is_denied);
        Ruling { rights: exact.rights, denied: rest.denied || has_name, ..rest }
    }

    /// The entry of a verb.
    pub fn entry(&self, tool: &str) -> Option<&Tool> {
        self.tools.get(tool)
    }

    /// The named compartments that a path's patterns put it into.
    pub fn compartments(&self, path: &NormalPath<'_>) -> Secrecy {
        self.ruling(path.as_str()).compartments
    }

    /// Every compartment that the grant names: what a file carries whose own
    /// history nobody kept.
    pub const fn named(&self) -> Secrecy {
        self.named
    }
}

/// One bit that a name's first and last byte choose.
fn mark(name: &[u8]) -> u64 {
    let ([first, ..], [.., last]) = (name, name) else { return 0 };
    1_u64.wrapping_shl(u32::from(first ^ last))
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
        assert_eq!(Pattern::parse("/a*/b"), Err(Refusal::BadName));
        assert_eq!(Pattern::parse("/a/**/b"), Err(Refusal::BadName));
        assert_eq!(Pattern::parse("/a//b"), Err(Refusal::BadName));
        assert_eq!(Pattern::parse("/a/../b/**"), Err(Refusal::BadName));
        assert_eq!(Pattern::parse("a/**"), Err(Refusal::NotAbsolute));
        assert_eq!(Pattern::parse(""), Err(Refusal::NotAbsolute));
    }
}
