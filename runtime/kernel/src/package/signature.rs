//! Publishers' keys and what they sign: the digest that covers every byte.
//!
//! # Invariants
//! - What is signed names its purpose, so that no other signature passes for it.
//! - A key or a signature with a second spelling is none.
//!
//! # Not here
//! Which key a publisher has (`trust`). Signing (the host).

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use ed25519_dalek::VerifyingKey;
use synapse_primitives::{hex, unhex};

use super::digest::Digest;

/// A publisher's public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// That of these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads `ed25519:` and 64 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        unhex(text.strip_prefix("ed25519:")?).map(Self)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ed25519:{}", hex(&self.0))
    }
}

/// A signature, and the key that it is to be checked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    key: Key,
    bytes: [u8; 64],
}

impl Signature {
    /// What the key's secret half made of [`signed`] bytes.
    #[must_use]
    pub const fn new(key: Key, bytes: [u8; 64]) -> Self {
        Self { key, bytes }
    }

    /// Its bytes in a package: the key, then the signature.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        [&self.key.0[..], &self.bytes[..]].concat()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk::<32>()?;
        Some(Self { key: Key(*key), bytes: rest.try_into().ok()? })
    }

    /// The key, if it signed this digest.
    #[must_use]
    pub fn verify(&self, digest: &Digest) -> Option<Key> {
        let key = VerifyingKey::from_bytes(&self.key.0).ok()?;
        let signature = ed25519_dalek::Signature::from_bytes(&self.bytes);
        key.verify_strict(&signed(digest), &signature).is_ok().then_some(self.key)
    }
}

/// What a publisher signs.
#[must_use]
pub fn signed(digest: &Digest) -> Vec<u8> {
    format!("synapse package 1\n{digest}\n").into_bytes()
}
