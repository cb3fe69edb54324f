//! Links in a text that leaves under a warrant.
//!
//! A link lets a reader be led, and a fetch tell, somewhere that nobody chose:
//! it travels only where the human typed it or it leads back to the destination.
//!
//! # Invariants
//! - Content is read here only to refuse, never to permit.
//!
//! # Not here
//! Held values that are passed whole (`warrant`).

use synapse_abi::code::Refusal;

/// Whether every link in the text is the human's own or leads to the destination.
///
/// # Errors
/// [`Refusal::Link`] where one does not.
pub fn vouched(
    _text: &str,
    _destination_host: Option<&str>,
    _lines: &[&str],
) -> Result<(), Refusal> {
    Err(Refusal::Link)
}
