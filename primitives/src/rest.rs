//! Labels at rest: what is known of a file's bytes and of its name.
//!
//! A label outlives the task that wrote the bytes, so it is kept beside the file,
//! with a print of the file that shows whether somebody else changed it since.
//! Compartments are kept by name: a bit means something to one grant alone.
//!
//! # Invariants
//! - I5, I15: what is read has at least the compartments that were kept for it, and
//!   an integrity above `Ingested` only where nothing but the runtime touched it.
//!
//! # Not here
//! Looking at files (`disk`, `memory`), keeping this between runs (`store`), which
//! compartments a path has by the grant's patterns (`execute`).

#[cfg(all(feature = "cap-std", target_os = "linux"))]
pub mod format;
mod index;
#[cfg(all(feature = "cap-std", target_os = "linux"))]
pub mod kept;

use alloc::{borrow::ToOwned, collections::BTreeSet, string::String};

use synapse_boundary::{Integrity, Label, Origin, Secrecy};

use crate::platform::Kind;
pub use index::{How, Index, Moving};

/// Names of compartments. Those that the kernel fills, which most files have, take
/// no memory of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// By their places in [`BUILT_IN`].
    built_in: u8,
    own: BTreeSet<String>,
}

/// Compartments that the kernel itself fills; the first stands for every one, where
/// nobody knows any more which.
const BUILT_IN: [(&str, Option<Secrecy>); 3] =
    [("*", None), ("files", Some(Secrecy::FILES)), ("prompt", Some(Secrecy::PROMPT))];

impl Names {
    /// No compartment.
    pub const NONE: Self = Self { built_in: 0, own: BTreeSet::new() };

    /// Every compartment: nobody knows which.
    #[must_use]
    pub const fn every() -> Self {
        Self { built_in: 0b001, own: BTreeSet::new() }
    }

    const fn files() -> Self {
        Self { built_in: 0b010, own: BTreeSet::new() }
    }

    /// The names of these bits, by the names that a grant gives to its own.
    #[must_use]
    pub fn of(secrecy: Secrecy, grant: &[String]) -> Self {
        let mut names = Self::NONE;
        let (mut left, mut number) = (secrecy.bits(), 0);
        while left != 0 {
            if left & 1 == 1 {
                let bit = Secrecy::bit(number);
                let built_in = BUILT_IN.iter().find(|(_, known)| known.is_some() && *known == bit);
                let place = number.checked_sub(Secrecy::NAMED);
                let own = place.and_then(|place| grant.get(usize::try_from(place).ok()?));
                names.add(
                    built_in.map(|(name, _)| *name).or(own.map(String::as_str)).unwrap_or("*"),
                );
            }
            left >>= 1;
            number = number.saturating_add(1);
        }
        names
    }

    /// Their bits. A name that the grant does not know may be any: it counts as
    /// `every` one that the grant names.
    #[must_use]
    pub fn bits(&self, grant: &[String], every: Secrecy) -> Secrecy {
        let own = |name: &String| {
            let place = grant.iter().position(|known| known == name);
            let place = place.and_then(|place| u32::try_from(place).ok());
            place.and_then(|place| Secrecy::bit(place.checked_add(Secrecy::NAMED)?))
        };
        let own = self.own.iter().map(|name| own(name).unwrap_or(every));
        let built_in = self.built_in().map(|(_, bit)| bit.unwrap_or(every));
        built_in.chain(own).fold(Secrecy::NONE, Secrecy::join)
    }

    /// Adds a name.
    pub fn add(&mut self, name: &str) {
        match BUILT_IN.iter().position(|(known, _)| *known == name) {
            Some(place) => self.built_in |= 1 << place,
            None if self.own.contains(name) => {}
            None => drop(self.own.insert(name.to_owned())),
        }
    }

    /// Adds all names of another set.
    pub fn join(&mut self, more: &Self) {
        self.built_in |= more.built_in;
        for name in &more.own {
            self.add(name);
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.built_in == 0 && self.own.is_empty()
    }

    /// The names, those that the kernel fills first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.built_in().map(|(name, _)| name).chain(self.own.iter().map(String::as_str))
    }

    fn built_in(&self) -> impl Iterator<Item = (&'static str, Option<Secrecy>)> + use<> {
        let own = self.built_in;
        BUILT_IN
            .into_iter()
            .zip(0..)
            .filter(move |(_, place)| own >> place & 1 == 1)
            .map(|(one, _)| one)
    }
}

/// A label at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    /// Who wrote it.
    pub integrity: Integrity,
    /// Who may learn it.
    pub names: Names,
}

impl Rest {
    /// The kernel's own words.
    pub const SYSTEM: Self = Self { integrity: Integrity::System, names: Names::NONE };

    /// What stood there, from whomever.
    #[must_use]
    pub const fn outside() -> Self {
        Self { integrity: Integrity::Ingested, names: Names::files() }
    }

    /// A label, by the names that a grant gives to its compartments.
    #[must_use]
    pub fn of(label: Label, grant: &[String]) -> Self {
        Self { integrity: label.integrity, names: Names::of(label.secrecy, grant) }
    }

    /// The label it is under a grant, that names `every` compartment.
    #[must_use]
    pub fn label(&self, grant: &[String], every: Secrecy) -> Label {
        Label::new(self.integrity, self.names.bits(grant, every), Origin::NONE)
    }

    /// Raises it to both.
    pub fn join(&mut self, more: &Self) {
        self.integrity = self.integrity.join(more.integrity);
        self.names.join(&more.names);
    }
}

/// Who made a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creator {
    /// The log's number of its run.
    pub run: [u8; 32],
    /// Its task there.
    pub task: u64,
}

impl Creator {
    /// Who made what no task made by itself: it is nobody's own creation.
    pub const NOBODY: Self = Self { run: [0; 32], task: u64::MAX };
}

/// What a change leaves on what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The label of what is written, and of the name that is given.
    pub rest: Rest,
    /// Whose change it is.
    pub creator: Creator,
    /// The compartments that patterns give to what a move takes with it.
    pub carried: Names,
    /// Whose the thing must be that is removed.
    pub owner: Owner,
}

/// Whose a thing must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Anybody's.
    Anyone,
    /// The one's whose change it is: they made the name and every byte since.
    Creator,
}

/// How to know a file again, and that nobody changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Print {
    /// Its file system and its number there.
    pub identity: (u64, u64),
    /// Its bytes; 0 for a directory.
    pub size: u64,
    /// When its bytes were changed, for a file.
    pub modified: (i64, u64),
    /// When anything of it was, for a file; `None` where nobody looked since.
    pub changed: Option<(i64, u64)>,
}

/// What stands under a name now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// What it is.
    pub kind: Kind,
    /// Its print.
    pub print: Print,
    /// Names that lead to it.
    pub links: u64,
}

impl Print {
    /// Of nothing that was looked at.
    pub const NONE: Self = Self { identity: (0, 0), size: 0, modified: (0, 0), changed: None };

    /// A directory's: what is in it has its own.
    #[must_use]
    pub const fn directory(identity: (u64, u64)) -> Self {
        Self { identity, size: 0, modified: (0, 0), changed: Some((0, 0)) }
    }

    /// Whether this is what stood there, untouched.
    #[must_use]
    pub fn matches(&self, seen: &Seen) -> bool {
        self.changed.is_some()
            && *self == seen.print
            && (seen.links == 1 || seen.kind == Kind::Directory)
    }
}

/// What is kept for a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What stood there.
    pub print: Print,
    /// The label of its bytes; of a directory, that of what is gone from it.
    pub content: Rest,
    /// The label of its name.
    pub name: Rest,
    /// Who made it, if every byte since came from them.
    pub creator: Option<Creator>,
    /// Compartments of what stood under this name before, and may again.
    pub behind: Names,
    /// Whether it was taken away.
    pub gone: bool,
}

impl Entry {
    /// Everything that it may be known to have.
    pub(crate) fn all(&self) -> Names {
        let mut all = self.behind.clone();
        all.join(&self.content.names);
        all.join(&self.name.names);
        all
    }
}
