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

use synapse_abi::limits::ORIGINS;
/// Who wrote the bytes.
pub use synapse_abi::mark::Mark as Integrity;

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
    pub fn bit(number: u32) -> Option<Self> {
        1u64.checked_shl(number).map(Self)
    }

    /// The set with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Its bits, as a record holds them.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin([u64; ORIGINS]);

impl Origin {
    /// Nothing to point at.
    pub const NONE: Self = Self([NOTHING; ORIGINS]);

    /// One record.
    pub const fn record(number: u64) -> Self {
        let mut records = [NOTHING; ORIGINS];
        records[0] = number;
        Self(records)
    }

    /// The records, in rising order.
    pub fn records(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.into_iter().take_while(|record| *record != NOTHING)
    }

    fn join(mut self, other: Self) -> Self {
        for mut record in other.records() {
            for slot in &mut self.0 {
                if *slot == record {
                    break;
                }
                if *slot > record {
                    core::mem::swap(slot, &mut record);
                }
            }
        }
        self
    }
}

/// After the last record; no log has so many.
const NOTHING: u64 = u64::MAX;

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
    pub const fn new(label: Label) -> Self {
        Self(label)
    }

    /// How far it has risen.
    pub const fn label(&self) -> Label {
        self.0
    }

    /// Raises it. Nothing lowers it.
    pub fn absorb(&mut self, label: Label) {
        self.0 = self.0.join(label);
    }
}
