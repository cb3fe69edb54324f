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

use alloc::{borrow::Cow, collections::BTreeSet, string::String};

use synapse_boundary::{Integrity, Label, Origin, Secrecy};

use crate::platform::Kind;
pub use index::{How, Index, Moving};

/// Names of compartments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(BTreeSet<Cow<'static, str>>);

/// Compartments that the kernel itself fills.
const BUILT_IN: [(&str, Secrecy); 2] = [("prompt", Secrecy::PROMPT), ("files", Secrecy::FILES)];

/// Stands for every compartment: nobody knows any more which ones.
const EVERY: &str = "*";

impl Names {
    /// No compartment.
    pub const NONE: Self = Self(BTreeSet::new());

    /// Every compartment: nobody knows which.
    #[must_use]
    pub fn every() -> Self {
        Self([Cow::Borrowed(EVERY)].into())
    }

    /// The names of these bits, by the names that a grant gives to its own.
    #[must_use]
    pub fn of(secrecy: Secrecy, grant: &[String]) -> Self {
        let mut names = BTreeSet::new();
        let (mut left, mut number) = (secrecy.bits(), 0);
        while left != 0 {
            if left & 1 == 1 {
                let bit = Secrecy::bit(number).unwrap_or_default();
                let built_in = BUILT_IN.iter().find(|(_, known)| *known == bit);
                let own = number.checked_sub(Secrecy::NAMED).and_then(|at| {
                    grant.get(usize::try_from(at).ok()?).map(|name| Cow::Owned(name.clone()))
                });
                names.insert(match built_in {
                    Some((name, _)) => Cow::Borrowed(*name),
                    None => own.unwrap_or(Cow::Borrowed(EVERY)),
                });
            }
            left >>= 1;
            number = number.saturating_add(1);
        }
        Self(names)
    }

    /// Their bits. A name that the grant does not know may be any: it counts as
    /// `every` one that the grant names.
    #[must_use]
    pub fn bits(&self, grant: &[String], every: Secrecy) -> Secrecy {
        let bit = |name: &str| {
            if let Some((_, bit)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
                return *bit;
            }
            let place = grant.iter().position(|known| known == name);
            let number = place.and_then(|place| u32::try_from(place).ok());
            let bit = number.and_then(|number| Secrecy::bit(number.checked_add(Secrecy::NAMED)?));
            bit.unwrap_or(every)
        };
        self.iter().fold(Secrecy::NONE, |bits, name| bits.join(bit(name)))
    }

    /// Adds a name.
    pub fn add(&mut self, name: impl Into<Cow<'static, str>>) {
        self.0.insert(name.into());
    }

    /// Adds all names of another set.
    pub fn join(&mut self, more: &Self) {
        if !more.0.is_subset(&self.0) {
            self.0.extend(more.0.iter().cloned());
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
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
    pub fn outside() -> Self {
        let files = Names([Cow::Borrowed("files")].into());
        Self { integrity: Integrity::Ingested, names: files }
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
