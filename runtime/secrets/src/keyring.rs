//! The desktop's keyring, where a session has one
//!
//! Spoken to through `secret-tool`, which ships with the library that every keyring of
//! a desktop serves: no code of ours reads its protocol, and none is linked. The kernel's
//! own keyring is no place for a key: it forgets at the next start.
//!
//! # Invariants
//! - A key is handed over by a pipe, never as an argument or a variable.
//! - Waiting for a keyring that asks its owner ends.
//!
//! # Not here
//! What the key is for (`vault`).

use core::time::Duration;
use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use zeroize::Zeroizing;

use crate::vault::KEY;

/// How long a person may take to unlock it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A keyring that can be asked.
#[derive(Clone, Debug)]
pub struct Keyring {
    program: PathBuf,
    patience: Duration,
}

impl Keyring {
    /// This session's keyring: none without a session bus, or without `secret-tool`.
    #[must_use]
    pub fn of_session() -> Option<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let runtime = || Some(Path::new(&variable("XDG_RUNTIME_DIR")?).join("bus").exists());
        let bus = variable("DBUS_SESSION_BUS_ADDRESS").is_some() || runtime() == Some(true);
        if bus { Self::on(&variable("PATH")?) } else { None }
    }

    /// The one whose program is on this path.
    #[must_use]
    pub fn on(path: &OsString) -> Option<Self> {
        let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        let program = folders.find_map(|folder| {
            let program = folder.join("secret-tool");
            program.is_file().then_some(program)
        })?;
        Some(Self { program, patience: PATIENCE })
    }

    /// Has it keep a key under this name.
    ///
    /// # Errors
    /// It cannot be asked, or does not.
    pub fn keep(&self, name: &str, key: &[u8; KEY]) -> io::Result<()> {
        let label = ["store", "--label=Synapse: the key of its secrets"];
        self.ask(&label, name, hex(key).as_bytes()).map(drop)
    }

    /// The key that it keeps under this name.
    ///
    /// # Errors
    /// It cannot be asked, or has none.
    pub fn key(&self, name: &str) -> io::Result<Zeroizing<[u8; KEY]>> {
        let text = self.ask(&["lookup"], name, b"")?;
        let key = str::from_utf8(&text).ok().and_then(digits);
        key.ok_or_else(|| io::Error::other("what the keyring has is no key"))
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// It cannot be asked, or does not.
    pub fn forget(&self, name: &str) -> io::Result<()> {
        self.ask(&["clear"], name, b"").map(drop)
    }

    fn ask(&self, verb: &[&str], name: &str, input: &[u8]) -> io::Result<Zeroizing<Vec<u8>>> {
        let mut process = Command::new(&self.program)
            .args(verb)
            .args(["application", "synapse", "vault", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut pipe) = process.stdin.take() {
            // What it did not read shows in how it ends.
            let _ = pipe.write_all(input);
        }
        let until = Instant::now() + self.patience;
        let status = loop {
            if let Some(status) = process.try_wait()? {
                break status;
            }
            if Instant::now() >= until {
                let _ = process.kill();
                let _ = process.wait();
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(Duration::from_millis(20));
        };
        let mut said = Zeroizing::new(Vec::with_capacity(256));
        if let Some(pipe) = process.stdout.take() {
            pipe.take(256).read_to_end(&mut said)?;
        }
        if status.success() { Ok(said) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> Zeroizing<String> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| DIGITS.get(usize::from(four)).copied().map_or('0', char::from);
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

/// The key that a text is.
pub(crate) fn digits(text: &str) -> Option<Zeroizing<[u8; KEY]>> {
    let digits = text.trim_end();
    let mut key = Zeroizing::new([0; KEY]);
    let sound = digits.len() == 2 * KEY && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    for (place, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    sound.then_some(key)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A keyring whose program keeps what it is given in a file beside it.
    pub(crate) fn keyring(folder: &Path, script: &str) -> Keyring {
        let program = folder.join("secret-tool");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Keyring { patience: Duration::from_secs(5), ..Keyring::on(&folder.into()).unwrap() }
    }

    pub(crate) const WORKS: &str = r#"
file="$(dirname "$0")/kept"
case "$1" in
store) cat > "$file" ;;
lookup) cat "$file" ;;
clear) rm "$file" ;;
esac"#;

    #[test]
    fn a_key_goes_there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let keyring = keyring(folder.path(), WORKS);
        let key = core::array::from_fn(|at| u8::try_from(at * 7).unwrap());
        assert!(keyring.key("a").is_err());
        keyring.keep("a", &key).unwrap();
        assert_eq!(*keyring.key("a").unwrap(), key);
        keyring.forget("a").unwrap();
        assert!(keyring.key("a").is_err());
    }

    #[test]
    fn a_keyring_that_fails_hangs_or_answers_nonsense_gives_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let failing = keyring(folder.path(), "exit 1");
        assert!(failing.keep("a", &[0; KEY]).is_err());
        let mut hanging = keyring(folder.path(), "exec sleep 60");
        hanging.patience = Duration::from_millis(100);
        assert_eq!(hanging.key("a").unwrap_err().kind(), io::ErrorKind::TimedOut);
        for nonsense in
            ["echo zz", "printf %0128d 0", "printf '%064s' x", "printf '%0.s\\303\\251' $(seq 32)"]
        {
            assert!(keyring(folder.path(), nonsense).key("a").is_err(), "{nonsense}");
        }
        assert!(Keyring::on(&OsString::from("/nowhere:relative")).is_none());
    }
}
