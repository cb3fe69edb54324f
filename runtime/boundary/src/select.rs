//! Selectors: the one record of a held reply that is meant.
//!
//! The human said which ("the largest"), the reply says what that is. It is
//! evaluated here, so that no model chooses among what it was shown.
//!
//! # Invariants
//! - Absent, tied or malformed selects nothing.
//!
//! # Not here
//! Whether the reply is complete and of a verb that may be selected from
//! (`warrant`); whether the result is in scope (gate 4).

use alloc::string::String;

use synapse_abi::code::Refusal;

/// The text that a selector takes from a complete reply; `directory` is that of an
/// `fs_list` reply. A list is taken whole, as its JSON.
///
/// # Errors
/// [`Refusal::NotCited`] where the reply has no such record or several.
pub fn resolve(
    _selector: &str,
    _reply: &[u8],
    _directory: Option<&str>,
) -> Result<String, Refusal> {
    Err(Refusal::NotCited)
}

/// The literals that narrow a selector, as JSON: what the human's line must name.
pub fn literals(_selector: &str) -> impl Iterator<Item = &str> {
    core::iter::empty()
}
