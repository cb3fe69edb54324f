//! Citation: where a human's own line names a target.
//!
//! A warrant is worth what was typed: this finds a target among the words of one
//! line, whole, or says that it is not there. Nothing is guessed, since a model
//! that has been fooled chooses the target and an attacker the names of files.
//!
//! # Invariants
//! - I13: a span covers whole tokens of the line, and they name the target.
//!
//! # Not here
//! Which lines are the human's, what a citation still funds (`warrant`); the walk
//! of the mounts (the kernel's name index).

use alloc::string::String;
use core::ops::Range;

use crate::path::NormalPath;

/// What the kernel's index knows about names inside the granted mounts.
pub trait Names {
    /// Whether the index has something at this normal guest path.
    fn exists(&self, path: &str) -> bool;
    /// The guest path of the one granted file that bears this bare name (NFC,
    /// case-folded); `None` where none or several do, or the index is not complete.
    fn bearer(&self, name: &str) -> Option<&str>;
    /// Guest root and host path of each mount.
    fn mounts(&self) -> &[(String, String)];
}

/// What a line is searched for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// A file or a directory.
    Path(&'a NormalPath<'a>),
    /// A path pattern, `/a/*` or `/a/**`.
    Pattern(&'a str),
    /// A canonical URL.
    Url(&'a str),
    /// A canonical host.
    Host(&'a str),
    /// A port.
    Port(u16),
    /// A number of the grammar.
    Number(&'a str),
    /// Any other text.
    Text(&'a str),
}

/// Where the line names what is wanted, in bytes; `None` where it does not.
#[must_use]
pub fn cite(
    _line: &str,
    _wanted: Wanted<'_>,
    _names: &(impl Names + ?Sized),
) -> Option<Range<usize>> {
    None
}

/// Where one of these words stands in the line as a whole token.
#[must_use]
pub fn verb_word(_line: &str, _says: &[&str]) -> Option<Range<usize>> {
    None
}
