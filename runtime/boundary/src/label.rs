//! Labels: where bytes came from and who may learn them.
//!
//! A label is set by which primitive read which source, never by looking at the
//! bytes. Joining is the only way two labels become one, and it only rises.
//!
//! # Invariants
//! - I5, I6: a join is at least each of its parts, in every component.
//!
//! # Not here
//! Which source has which label (the kernel). What a label forbids (`gates`).

use core::num::NonZeroU64;

use synapse_abi::limits::ORIGINS;
/// Who wrote the bytes.
pub use synapse_abi::reply::Mark as Integrity;

/// A set of up to 64 compartments; bit numbers are the grant's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Secrecy(u64);

impl Secrecy {
    /// No compartment: anybody may learn it.
    pub const NONE: Self = Self(0);
    /// What the human typed.
    pub const PROMPT: Self = Self(1);
    /// What stood in granted folders before the task.
    pub const FILES: Self = Self(2);
    /// The first bit that a grant may name.
    pub const NAMED: u32 = 8;

    /// The compartment with this bit number; none past the last.
    #[must_use]
    pub fn bit(number: u32) -> Option<Self> {
        1u64.checked_shl(number).map(Self)
    }

    /// The set with these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits, as a record holds them.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What the other set has not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What both sets have.
    #[must_use]
    pub const fn meet(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether every compartment of this set is in `cleared`.
    #[must_use]
    pub const fn is_within(self, cleared: Self) -> bool {
        self.0 & !cleared.0 == 0
    }
}

/// Up to eight records that explain a label, in rising order. It explains and
/// never decides; past eight the latest are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// One more than each record's number, so that nothing takes no room.
    records: [Option<NonZeroU64>; ORIGINS],
}

impl Origin {
    /// Nothing to point at.
    pub const NONE: Self = Self { records: [None; ORIGINS] };

    /// One record.
    #[must_use]
    pub const fn record(number: u64) -> Self {
        let mut records = [None; ORIGINS];
        records[0] = NonZeroU64::new(number.saturating_add(1));
        Self { records }
    }

    /// The records, in rising order.
    pub fn records(&self) -> impl Iterator<Item = u64> + '_ {
        self.records.iter().flatten().map(|record| record.get().saturating_sub(1))
    }

    fn join(mut self, other: Self) -> Self {
        if other.records[0].is_none() || self == other {
            return self;
        }
        for mut record in other.records.into_iter().flatten().map(Some) {
            for slot in &mut self.records {
                if *slot == record {
                    break;
                }
                if slot.is_none() || *slot > record {
                    core::mem::swap(slot, &mut record);
                }
            }
        }
        self
    }
}

/// Integrity, secrecy and origin together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Who wrote it.
    pub integrity: Integrity,
    /// Who may learn it.
    pub secrecy: Secrecy,
    /// Which records explain it.
    pub origin: Origin,
}

impl Label {
    /// The kernel's own words.
    pub const SYSTEM: Self =
        Self { integrity: Integrity::System, secrecy: Secrecy::NONE, origin: Origin::NONE };

    /// A label of these parts.
    #[must_use]
    pub const fn new(integrity: Integrity, secrecy: Secrecy, origin: Origin) -> Self {
        Self { integrity, secrecy, origin }
    }

    /// The least label that is at least both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            integrity: self.integrity.join(other.integrity),
            secrecy: self.secrecy.join(other.secrecy),
            origin: self.origin.join(other.origin),
        }
    }
}

/// The join of everything released into a task's memory: what justifies its calls.
/// A copy of it would stay behind when it rises.
///
/// ```compile_fail,E0599
/// let mark = synapse_boundary::Mark::new(synapse_boundary::Label::SYSTEM);
/// let (a, b) = (mark.clone(), mark);
/// ```
/// ```
/// let mark = synapse_boundary::Mark::new(synapse_boundary::Label::SYSTEM);
/// let (a, b) = (mark.label(), mark);
/// ```
#[derive(Debug)]
pub struct Mark(Label);

impl Mark {
    /// The mark that a task or a turn starts with.
    #[must_use]
    pub const fn new(label: Label) -> Self {
        Self(label)
    }

    /// How far it has risen.
    #[must_use]
    pub const fn label(&self) -> Label {
        self.0
    }

    /// Raises it. Nothing lowers it.
    pub fn absorb(&mut self, label: Label) {
        self.0 = self.0.join(label);
    }
}
