//! Files for their owner alone, and the keys of this machine and user among them
//!
//! # Not here
//! What a key vouches for (who asks for it).

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process;

/// A key that only this machine and user have.
pub type Key = [u8; KEY];

/// The key in this file, or a new one if there is none that only its owner could
/// have read or written.
///
/// # Errors
/// What the host answered.
pub fn key(path: &Path) -> io::Result<Key> {
    if let Some(key) = find(path) {
        return Ok(key);
    }
    let mut key = [0; KEY];
    let mut rest: &mut [u8] = &mut key;
    while !rest.is_empty() {
        let read = rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty())?;
        rest = rest.get_mut(read..).unwrap_or_default();
    }
    write(path, &[&key])?;
    Ok(key)
}

/// The key in this file, if nobody but its owner could have read or written it.
#[must_use]
pub fn find(path: &Path) -> Option<Key> {
    let mut file = plain().read(true).open(path).ok()?;
    let found = file.metadata().ok()?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !own || !found.is_file() || found.mode() & 0o077 != 0 || found.len() != KEY as u64 {
        return None;
    }
    let mut key = [0; KEY];
    file.read_exact(&mut key).ok()?;
    Some(key)
}

/// Writes a file beside its name and gives it that name when it is whole.
///
/// # Errors
/// What the host answered; nothing has the name then that had not before.
pub fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.part", process::id()));
    let mut file = plain().write(true).create(true).truncate(true).open(&beside)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    let written = written.and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// Opens what is a file itself, made for its owner alone.
pub(crate) fn plain() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

const KEY: usize = 32;
