//! Secrets at rest: one encrypted file
//!
//! Its key is with the session's keyring where there is one, else in a file beside it,
//! which keeps a secret from whoever has a copy of the one file, and from nobody who can
//! read the folder. [`Keeper`] says which, so that a person can be told.
//!
//! # Invariants
//! - The file begins with its format's version; one that is not known, and one of which
//!   a byte was changed, is refused and left as it is.
//! - A change is whole or not made; files are readable by their owner only.
//! - No key is made anew for a file that is there.
//!
//! # Not here
//! Which run gets which (`given`).

use core::fmt;
use core::mem::take;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::rand::{GetRandomFlags, getrandom};
use synapse_boundary::secret::is_name;
use zeroize::Zeroizing;

use crate::keyring::{Keyring, digits, hex};
use crate::secret::{Secret, Value};

/// Bytes of a key.
pub const KEY: usize = 32;
/// Secrets that are kept.
pub const MOST: usize = 1000;

const VERSION: &str = "synapse secrets 1 ";
const IN_FILE: &str = "file";
const IN_KEYRING: &str = "keyring:";
/// Longer than the longest file of so many secrets.
const LARGEST: u64 = 16 << 20;

/// Where the secrets of a person are kept.
#[derive(Clone, Debug)]
pub struct Vault {
    folder: PathBuf,
    keyring: Option<Keyring>,
}

/// Who has the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// The session's keyring, under this name.
    Keyring(String),
    /// A file beside the secrets.
    File,
}

/// Why secrets cannot be had or kept.
#[derive(Debug)]
pub enum VaultError {
    /// A file cannot be read or written.
    Io(PathBuf, io::Error),
    /// Its format is of another version.
    Version(PathBuf),
    /// It was changed, or the key is another's.
    Tampered(PathBuf),
    /// There is no key any more.
    NoKey(PathBuf),
    /// The keyring that has the key does not give it.
    Locked(io::Error),
    /// No more are kept.
    Full,
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, why) => write!(
                f,
                "{}: {why}; secrets are kept there; check its permissions and the disk",
                path.display()
            ),
            Self::Version(path) => write!(
                f,
                "{}: these secrets were kept by another version, whose format is not known here; \
                 nothing was changed; use that version",
                path.display()
            ),
            Self::Tampered(path) => write!(
                f,
                "{}: the secrets were changed, or are not this key's; none is used; put back a \
                 copy of the folder, or remove it and set them again",
                path.display()
            ),
            Self::NoKey(path) => write!(
                f,
                "{}: the key of the secrets is gone, and nothing reads them without it; put it \
                 back, or remove the folder and set them again",
                path.display()
            ),
            Self::Locked(why) => write!(
                f,
                "the session's keyring has the key of the secrets and does not give it ({why}); \
                 they cannot be read without; unlock it, or start this in the desktop's session"
            ),
            Self::Full => write!(f, "there are {MOST} secrets; no more are kept; remove some"),
        }
    }
}

impl core::error::Error for VaultError {}

impl Vault {
    /// That of a state folder, with the session's keyring if it has one.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self::with(state, Keyring::of_session())
    }

    /// That of a state folder, with this keyring.
    #[must_use]
    pub fn with(state: &Path, keyring: Option<Keyring>) -> Self {
        Self { folder: state.join("secrets"), keyring }
    }

    /// Who has the key; nobody where nothing is kept yet.
    ///
    /// # Errors
    /// The file cannot be read, or is of another version.
    pub fn keeper(&self) -> Result<Option<Keeper>, VaultError> {
        self.bytes()?.map(|bytes| Ok(self.parts(&bytes)?.0)).transpose()
    }

    /// All secrets, by their names.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read(&self) -> Result<Vec<Secret>, VaultError> {
        let Some(bytes) = self.bytes()? else { return Ok(Vec::new()) };
        let (keeper, head, sealed) = self.parts(&bytes)?;
        self.open(&*self.key(&keeper)?, head, sealed)
    }

    /// Changes what is kept; while one does, no other can.
    ///
    /// # Errors
    /// It cannot be read or written; nothing was changed.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<Secret>) -> T) -> Result<T, VaultError> {
        let _lock = self.lock()?;
        let mut secrets = self.read()?;
        let done = change(&mut secrets);
        if secrets.len() > MOST {
            return Err(VaultError::Full);
        }
        secrets.sort_by(|one, other| one.name.cmp(&other.name));
        let (keeper, key) = match self.keeper()? {
            Some(keeper) => {
                let key = self.key(&keeper)?;
                (keeper, key)
            }
            None => self.begin()?,
        };
        let head = match &keeper {
            Keeper::File => format!("{VERSION}{IN_FILE}\n"),
            Keeper::Keyring(name) => format!("{VERSION}{IN_KEYRING}{name}\n"),
        };
        self.write("vault", &self.seal(&key, head.as_bytes(), &secrets)?)?;
        Ok(done)
    }

    /// The first key: with the keyring if it works, there and back.
    fn begin(&self) -> Result<(Keeper, Zeroizing<[u8; KEY]>), VaultError> {
        let mut key = Zeroizing::new([0; KEY]);
        self.random(&mut *key)?;
        let mut name = [0; 8];
        self.random(&mut name)?;
        let name = hex(&name);
        if let Some(keyring) = &self.keyring {
            let kept = keyring.keep(&name, &key).and_then(|()| keyring.key(&name));
            if kept.is_ok_and(|kept| kept == key) {
                return Ok((Keeper::Keyring(name.to_string()), key));
            }
        }
        self.write("key", hex(&*key).as_bytes())?;
        Ok((Keeper::File, key))
    }

    fn key(&self, keeper: &Keeper) -> Result<Zeroizing<[u8; KEY]>, VaultError> {
        let path = self.folder.join("key");
        let name = match keeper {
            Keeper::File => {
                let text = match fs::read_to_string(&path).map(Zeroizing::new) {
                    Err(why) if why.kind() == io::ErrorKind::NotFound => {
                        return Err(VaultError::NoKey(path));
                    }
                    text => text.map_err(|why| VaultError::Io(path.clone(), why))?,
                };
                return digits(&text).ok_or(VaultError::Tampered(path));
            }
            Keeper::Keyring(name) => name,
        };
        let keyring = self.keyring.as_ref().ok_or_else(|| io::Error::other("it is not there"));
        keyring.and_then(|keyring| keyring.key(name)).map_err(VaultError::Locked)
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, VaultError> {
        let path = self.folder.join("vault");
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(Some(bytes)),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(why) => Err(VaultError::Io(path, why)),
        }
    }

    /// Who has the key, the first line, and what is sealed.
    fn parts<'b>(&self, bytes: &'b [u8]) -> Result<(Keeper, &'b [u8], &'b [u8]), VaultError> {
        let other = || VaultError::Version(self.folder.join("vault"));
        let end = bytes.iter().take(200).position(|byte| *byte == b'\n').ok_or_else(other)?;
        let (head, sealed) = bytes.split_at_checked(end + 1).ok_or_else(other)?;
        let line = str::from_utf8(head).ok().and_then(|head| head.trim_end().strip_prefix(VERSION));
        let keeper = match line.ok_or_else(other)? {
            IN_FILE => Keeper::File,
            line => {
                let name = line.strip_prefix(IN_KEYRING).filter(|name| is_name(name));
                Keeper::Keyring(name.ok_or_else(other)?.to_owned())
            }
        };
        Ok((keeper, head, sealed))
    }

    fn open(&self, key: &[u8; KEY], head: &[u8], bytes: &[u8]) -> Result<Vec<Secret>, VaultError> {
        leave_no_dump().map_err(|why| VaultError::Io(self.folder.clone(), why))?;
        let tampered = || VaultError::Tampered(self.folder.join("vault"));
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>().ok_or_else(tampered)?;
        let mut sealed = Zeroizing::new(sealed.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = cipher(key)
            .and_then(|key| key.open_in_place(nonce, Aad::from(head), &mut sealed).ok())
            .ok_or_else(tampered)?;
        let lines = opened.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| line_of(line).ok_or_else(tampered)).collect()
    }

    fn seal(
        &self,
        key: &[u8; KEY],
        head: &[u8],
        secrets: &[Secret],
    ) -> Result<Vec<u8>, VaultError> {
        // Of one size from the start: growing would leave copies behind.
        let size = secrets.iter().map(|secret| secret.value.expose().len() + 8192).sum();
        let mut text = Zeroizing::new(Vec::with_capacity(size));
        for secret in secrets {
            let places: Vec<String> = secret.destinations.iter().map(ToString::to_string).collect();
            for part in [&secret.name, " ", &places.join(","), " ", secret.value.expose(), "\n"] {
                text.extend_from_slice(part.as_bytes());
            }
        }
        let mut nonce = [0; NONCE_LEN];
        self.random(&mut nonce)?;
        let unique = Nonce::assume_unique_for_key(nonce);
        let sealed = cipher(key)
            .and_then(|key| key.seal_in_place_append_tag(unique, Aad::from(head), &mut *text).ok());
        sealed.ok_or_else(|| VaultError::Tampered(self.folder.join("vault")))?;
        Ok([head, &nonce, &take(&mut *text)].concat())
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), VaultError> {
        let read = getrandom(&mut *bytes, GetRandomFlags::empty());
        match read.map_err(io::Error::from) {
            Ok(length) if length == bytes.len() => Ok(()),
            Ok(_) => Err(VaultError::Io(self.folder.clone(), io::ErrorKind::UnexpectedEof.into())),
            Err(why) => Err(VaultError::Io(self.folder.clone(), why)),
        }
    }

    /// Makes the folder, and waits until nobody else changes what is in it.
    fn lock(&self) -> Result<File, VaultError> {
        let path = self.folder.join("lock");
        let lock = || {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let mut options = OpenOptions::new();
            let lock = options.create(true).append(true).mode(0o600).open(&path)?;
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok(lock)
        };
        lock().map_err(|why| VaultError::Io(path.clone(), why))
    }

    /// Puts a file in place of what is there, whole and on the disk.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), VaultError> {
        let path = self.folder.join(name);
        let new = self.folder.join(format!("{name}.new"));
        let write = || {
            // What was left by one that did not end.
            let _ = fs::remove_file(&new);
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|why| VaultError::Io(path.clone(), why))
    }
}

/// From here on this process leaves no image of its memory, and no other process of this
/// user may look into it.
///
/// # Errors
/// What the system answers.
pub fn leave_no_dump() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let now = getrlimit(Resource::Core);
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), ..now })?)
}

fn cipher(key: &[u8; KEY]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new)
}

/// One secret, as a line has it: name, destinations, value.
fn line_of(line: &[u8]) -> Option<Secret> {
    let mut parts = str::from_utf8(line).ok()?.splitn(3, ' ');
    let (name, places, value) = (parts.next()?, parts.next()?, parts.next()?);
    let places: Vec<&str> = places.split(',').collect();
    Secret::new(name, Value::parse(value.as_bytes()).ok()?, &places).ok()
}

#[cfg(test)]
mod tests;
