//! Publishers' secret keys: making, keeping and signing with them.
//!
//! # Invariants
//! - A key file is its owner's alone (0600), and is never written over.
//!
//! # Not here
//! What is signed, and whether a signature holds (`synapse_kernel::package`).

use core::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use synapse_kernel::package::{Digest, Key, Package, PackageError, Signature, signed};

use super::failed_with;
use super::source::read_owned;

/// A publisher's secret key.
pub struct Secret(Ed25519KeyPair);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

impl Secret {
    /// Makes one and writes it to a new file.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, PackageError> {
        let failed = |why| failed_with("the key's file cannot be made", &why);
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| {
            PackageError::new("no key was made", "the system gave no randomness", "try again")
        })?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        file.write_all(made.as_ref()).and_then(|()| file.sync_all()).map_err(failed)?;
        Self::of(made.as_ref())
    }

    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read, is no key, or is open to others.
    pub fn read(path: &Path) -> Result<Self, PackageError> {
        let bytes = read_owned(path, "the key")?;
        Self::of(&bytes)
    }

    fn of(bytes: &[u8]) -> Result<Self, PackageError> {
        Ed25519KeyPair::from_pkcs8(bytes).map(Self).map_err(|_| {
            PackageError::new(
                "this is no key",
                "its bytes are no Ed25519 key that `synapse package keygen` wrote",
                "name the file that it wrote",
            )
        })
    }

    /// The public half.
    #[must_use]
    pub fn key(&self) -> Key {
        let mut key = [0; 32];
        for (place, byte) in key.iter_mut().zip(self.0.public_key().as_ref()) {
            *place = *byte;
        }
        Key::new(key)
    }

    /// Signs a package, in the place of whoever signed it before.
    pub fn sign(&self, package: &mut Package) {
        package.signed_by(self.sign_digest(&package.digest()));
    }

    /// Signs a package's digest.
    #[must_use]
    pub fn sign_digest(&self, digest: &Digest) -> Signature {
        let mut bytes = [0; 64];
        for (place, byte) in bytes.iter_mut().zip(self.0.sign(&signed(digest)).as_ref()) {
            *place = *byte;
        }
        Signature::new(self.key(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::{Digest, Key, Secret, Signature};

    #[test]
    fn a_signature_holds_for_one_digest_and_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let (path, digest) = (dir.path().join("key"), Digest::of(b"package"));
        let secret = Secret::create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(Secret::create(&path).is_err(), "a key is never written over");
        let signature = Secret::read(&path).unwrap().sign_digest(&digest);
        assert_eq!(signature.verify(&digest), Some(secret.key()));
        assert_eq!(signature.verify(&Digest::of(b"other")), None);
        let bytes = signature.to_bytes();
        assert_eq!(Signature::from_bytes(&bytes), Some(signature));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            let read = Signature::from_bytes(&other).unwrap();
            assert_eq!(read.verify(&digest), None, "byte {at}");
        }
        assert_eq!(Key::parse(&secret.key().to_string()), Some(secret.key()));
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        Secret::create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Secret::read(&path).unwrap_err().to_string().contains("others"));
    }
}
