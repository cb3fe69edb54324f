//! Names of primitives, found by one look into a table
//!
//! The table is computed from the registry at build time; a collision would
//! fail the build. The name found is compared whole.
//!
//! # Not here
//! The registry.

use synapse_abi::registry::{COUNT, Primitive, REGISTRY};

/// The primitive with this name.
pub(super) fn primitive(name: &str) -> Option<Primitive> {
    let id = *SLOTS.get(usize::from(slot(name.as_bytes())?))?;
    let row = REGISTRY.get(usize::from(id))?;
    (row.name == name).then_some(row.primitive)
}

/// Length, fourth byte and last byte but one tell the 26 names apart.
const fn slot(name: &[u8]) -> Option<u8> {
    if let ([_, _, _, fourth, ..], [.., last_but_one, _]) = (name, name) {
        let [length, ..] = name.len().to_le_bytes();
        Some(length.wrapping_add(*fourth).wrapping_add(last_but_one.wrapping_mul(28)) % 64)
    } else {
        None
    }
}

/// No primitive's id.
const EMPTY: u8 = u8::MAX;

/// The id in each slot, or [`EMPTY`].
#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "computed by the compiler, where a mistake fails the build"
)]
const SLOTS: [u8; 64] = {
    let mut slots = [EMPTY; 64];
    let mut id = 0;
    while id < COUNT {
        let Some(slot) = slot(REGISTRY[id].name.as_bytes()) else { panic!("four bytes or more") };
        assert!(slots[slot as usize] == EMPTY, "one name for each slot");
        slots[slot as usize] = REGISTRY[id].primitive as u8;
        id += 1;
    }
    slots
};
