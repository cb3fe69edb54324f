//! What is wrong with a package, in one form
//!
//! # Not here
//! Showing it (the command line).

use core::error::Error;
use core::fmt;

use synapse_kernel::render;

/// What happened, why, and what to do; text of the package stands in it escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageError(String);

impl PackageError {
    pub(super) fn new(what: &str, why: &str, todo: &str) -> Self {
        let part = |text: &str| render::line(text.as_bytes(), LONGEST);
        Self(format!("{}: {}\n{}", part(what), part(why), part(todo)))
    }

    pub(super) fn host(what: &str, why: &std::io::Error) -> Self {
        Self::new(
            what,
            &why.to_string(),
            "check the path, its permissions and the room on the disk",
        )
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
