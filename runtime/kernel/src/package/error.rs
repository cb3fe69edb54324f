//! What is wrong with a package, in one form
//!
//! # Not here
//! Showing it (the command line).

use alloc::format;
use alloc::string::String;
use core::error::Error;
use core::fmt;

use crate::render;

/// What happened, why, and what to do; text of the package stands in it escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageError(String);

impl PackageError {
    /// What happened, why, and what to do.
    #[must_use]
    pub fn new(what: &str, why: &str, todo: &str) -> Self {
        let part = |text: &str| render::line(text.as_bytes(), LONGEST);
        Self(format!("{}: {}\n{}", part(what), part(why), part(todo)))
    }
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for PackageError {}

/// Characters of a part.
const LONGEST: usize = 1000;
