//! Components compiled once: their machine code, kept and authenticated.
//!
//! Compiling is most of what a start takes, and its result is the same until the
//! component, the engine or the machine changes. But machine code that is loaded is
//! trusted like this program, so only what this program wrote itself is: each file
//! bears a code that nobody makes without this machine's key. A crate of its own,
//! because loading machine code is the one thing here that Rust cannot check.
//!
//! # Invariants
//! - No byte of a file reaches the engine unless the whole file verifies under the
//!   key, for this component, this version of the engine and these settings of it.
//! - A cache that fails costs time and nothing else.
//!
//! # Trust
//! Whoever can read the key or change this program is trusted with it: that is the
//! user, and no agent, because every run hides the folder of the key.
//!
//! # Not here
//! What may become a guest (`synapse_kernel::admit`); it is asked before, each time.

pub mod private;

use core::hash::{Hash as _, Hasher};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes of machine code that are kept; what was not used for longest goes first.
pub const ROOM: u64 = 512 << 20;

/// Machine code of components, in a folder.
pub struct Cache {
    dir: PathBuf,
    key: private::Key,
    room: u64,
}

impl Cache {
    /// The cache of this state folder. Its key is made if there is none that only
    /// its owner can read.
    ///
    /// # Errors
    /// What the host answered.
    pub fn open(state: &Path) -> io::Result<Self> {
        let dir = state.join("compiled");
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let key = private::key(&state.join("compiled.key"))?;
        Ok(Self { dir, key, room: ROOM })
    }

    /// A component, compiled unless its machine code is kept.
    ///
    /// # Errors
    /// The component cannot be compiled.
    pub fn load(&self, engine: &Engine, component: &[u8]) -> wasmtime::Result<Component> {
        let name = name(engine, component);
        if let Some(found) = self.find(engine, &name) {
            return Ok(found);
        }
        let compiled = Component::from_binary(engine, component)?;
        // Not kept is compiled again next time.
        let _ = self.keep(&name, &compiled.serialize()?);
        Ok(compiled)
    }

    /// What is kept under a name. A file that does not verify is removed.
    fn find(&self, engine: &Engine, name: &str) -> Option<Component> {
        let path = self.dir.join(name);
        let mut file = private::plain().read(true).open(&path).ok()?;
        let found = self.verified(&mut file, name).and_then(|code| deserialize(engine, &code));
        if found.is_none() {
            let _ = fs::remove_file(&path);
        }
        // Used last now: the last to go.
        let _ = file.set_modified(SystemTime::now());
        found
    }

    fn verified(&self, file: &mut File, name: &str) -> Option<Verified> {
        if file.metadata().ok()?.len() > self.room {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (code, tag) = bytes.split_last_chunk::<TAG>()?;
        self.mac(name, code)?.verify_slice(tag).ok()?;
        bytes.truncate(code.len());
        Some(Verified(bytes))
    }

    fn keep(&self, name: &str, code: &[u8]) -> io::Result<()> {
        let size = u64::try_from(code.len() + TAG).unwrap_or(u64::MAX);
        if size > self.room {
            return Ok(());
        }
        self.make_room(size)?;
        let tag = self.mac(name, code).ok_or(io::ErrorKind::InvalidData)?.finalize().into_bytes();
        private::write(&self.dir.join(name), &[code, &tag])
    }

    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let found = entry.metadata()?;
            kept.push((found.modified()?, found.len(), entry.path()));
        }
        kept.sort();
        let mut total = kept.iter().fold(size, |total, (_, length, _)| total + length);
        for (_, length, path) in kept {
            if total <= self.room {
                break;
            }
            fs::remove_file(path)?;
            total -= length;
        }
        Ok(())
    }

    /// The name is part of what is vouched for: code kept for one component is not
    /// taken for another's.
    fn mac(&self, name: &str, code: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(FORMAT);
        mac.update(name.as_bytes());
        mac.update(code);
        Some(mac)
    }
}

impl core::fmt::Debug for Cache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cache").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Machine code that bears a code made with this machine's key.
struct Verified(Vec<u8>);

#[expect(
    unsafe_code,
    reason = "Rust cannot check machine code; its type says that it was authenticated"
)]
fn deserialize(engine: &Engine, code: &Verified) -> Option<Component> {
    // SAFETY: these bytes were made by `Component::serialize` in this program: they
    // verified under a key that only this user reads, and `keep` is what signs with
    // it. They are in this process's memory, where nobody changes them after that.
    // Code for another version, setting or machine is refused by the engine itself.
    unsafe { Component::deserialize(engine, &code.0) }.ok()
}

/// What stands for this component on this version of the engine, with its settings.
fn name(engine: &Engine, component: &[u8]) -> String {
    let mut settings = Settings(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut settings);
    let mut all = Sha256::new();
    all.update(FORMAT);
    all.update(settings.0.finalize());
    all.update(Sha256::digest(component));
    all.finalize().iter().fold(String::new(), |mut name, byte| {
        name.push_str(&format!("{byte:02x}"));
        name
    })
}

/// Takes what `Hash` gives and keeps all of it.
struct Settings(Sha256);

impl Hasher for Settings {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }
}

const TAG: usize = 32;
/// What is hashed and vouched for begins with this; another format has another.
const FORMAT: &[u8] = b"synapse compiled component 1\n";

#[cfg(test)]
mod tests {
    use super::{Cache, name};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use wasmtime::{Config, Engine};

    fn component(number: u32) -> Vec<u8> {
        wat::parse_str(format!(
            r#"(component (core module (func (export "f") (result i32) i32.const {number})))"#
        ))
        .unwrap()
    }

    fn open(state: &Path) -> Cache {
        Cache::open(state).unwrap()
    }

    #[test]
    fn what_was_kept_is_found_by_who_has_the_key() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let name = name(&engine, &component(1));
        assert!(open(state.path()).find(&engine, &name).is_none());
        open(state.path()).load(&engine, &component(1)).unwrap();
        assert!(open(state.path()).find(&engine, &name).is_some());
        let key = state.path().join("compiled.key");
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        let before = fs::read(&key).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(open(state.path()).find(&engine, &name).is_none(), "others could read the key");
        assert_ne!(fs::read(&key).unwrap(), before);
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_was_touched_anywhere_is_removed_and_not_loaded() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let cache = open(state.path());
        cache.load(&engine, &component(1)).unwrap();
        let name = name(&engine, &component(1));
        let path = cache.dir.join(&name);
        let whole = fs::read(&path).unwrap();
        for at in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 33, whole.len() - 1] {
            let mut touched = whole.clone();
            touched[at] ^= 1;
            fs::write(&path, touched).unwrap();
            assert!(cache.find(&engine, &name).is_none(), "byte {at}");
            assert!(!path.exists());
        }
        for length in [0, 31, 32, 100, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(cache.find(&engine, &name).is_none(), "{length} bytes");
        }
        fs::write(&path, &whole).unwrap();
        assert!(cache.find(&engine, &name).is_some());
    }

    #[test]
    fn code_of_another_component_or_other_settings_is_not_taken() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let other = Engine::new(Config::new().epoch_interruption(true)).unwrap();
        let cache = open(state.path());
        cache.load(&engine, &component(1)).unwrap();
        let [one, two, set] = [
            name(&engine, &component(1)),
            name(&engine, &component(2)),
            name(&other, &component(1)),
        ];
        assert!(one != two && one != set);
        for wrong in [&two, &set] {
            fs::copy(cache.dir.join(&one), cache.dir.join(wrong)).unwrap();
            assert!(cache.find(&other, wrong).is_none());
        }
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let state = tempfile::tempdir().unwrap();
        let mut cache = open(state.path());
        let size = |length: usize| u64::try_from(length + super::TAG).unwrap();
        cache.room = 2 * size(100);
        for name in ["a", "b"] {
            cache.keep(name, &[7; 100]).unwrap();
        }
        let old = std::time::SystemTime::UNIX_EPOCH;
        fs::File::open(cache.dir.join("b")).unwrap().set_modified(old).unwrap();
        cache.keep("c", &[7; 100]).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&cache.dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "c"]);
        cache.keep("large", &[7; 1000]).unwrap();
        assert!(!cache.dir.join("large").exists());
    }
}
