//! SHA-256 of bytes, as registries and people write it
//!
//! # Not here
//! Which bytes are meant (`layout`, `store`).

use alloc::string::String;
use core::fmt;

use sha2::{Digest as _, Sha256};
use synapse_primitives::{hex, unhex};

/// A SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// That of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads `sha256:` and 64 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text.strip_prefix("sha256:")?).map(Self)
    }

    /// The digits alone.
    #[must_use]
    pub fn digits(&self) -> String {
        hex(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.digits())
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString as _;

    use super::Digest;

    #[test]
    fn it_has_one_spelling() {
        let digest = Digest::of(b"");
        let text = digest.to_string();
        assert!(text.starts_with("sha256:e3b0c44298fc1c149afbf4c8996fb924"), "{text}");
        assert_eq!(Digest::parse(&text), Some(digest));
        assert_eq!(Digest::parse(&text.to_uppercase()), None);
        assert_eq!(Digest::parse(text.trim_end_matches(|_| true)), None);
        assert_eq!(Digest::parse(&format!("{text}0")), None);
    }
}
