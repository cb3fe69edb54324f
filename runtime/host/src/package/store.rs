//! What is installed: a package's file, and a lock file that says what was agreed to.
//!
//! Each package has a folder in `$XDG_STATE_HOME/synapse/packages`. Its lock file is the
//! one thing that makes it installed: it is written last, by renaming, and read first. A
//! package's bytes are compared with it before each run.
//!
//! # Invariants
//! - Whenever a process or the power dies, what is installed is the old or the new, whole.
//!
//! # Not here
//! What may be installed, what a lock file says, and asking the person
//! (`synapse_kernel::package`). Running (`run`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use synapse_kernel::package::{file_of, is_publisher, look_alikes, vouched};

use super::source::write_new;
use super::{
    Authority, Digest, Installed, Key, Package, PackageError, Pin, Vouched, failed_with, is_name,
};

/// The installed packages of one user.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// That of a state folder, which is made.
    ///
    /// # Errors
    /// What the host answered.
    pub fn open(state: &Path) -> Result<Self, PackageError> {
        let dir = state.join("packages");
        let make = |dir: &Path| DirBuilder::new().recursive(true).mode(0o700).create(dir);
        make(&dir.join(KEYS)).map_err(|why| failed(&dir, &why))?;
        Ok(Self { dir })
    }

    /// The names of what is installed.
    ///
    /// # Errors
    /// What the host answered.
    pub fn names(&self) -> Result<Vec<String>, PackageError> {
        let mut names = listed(&self.dir)?;
        names.retain(|name| is_name(name) && self.dir.join(name).join(LOCK).is_file());
        Ok(names)
    }

    /// An installed package.
    ///
    /// # Errors
    /// It is there and not as it was approved.
    pub fn get(&self, name: &str) -> Result<Option<Installed>, PackageError> {
        let dir = self.dir.join(name);
        if !is_name(name) || !dir.join(LOCK).is_file() {
            return Ok(None);
        }
        let lock = fs::read(dir.join(LOCK)).map_err(|why| failed(&dir, &why))?;
        let file = match file_of(&lock) {
            Some(file) => {
                let file = dir.join(kept(&file));
                fs::read(&file).map_err(|why| failed(&file, &why))?
            }
            // What is wrong with it is told below.
            None => Vec::new(),
        };
        Installed::read(name, &lock, &file).map(Some)
    }

    /// The folders and files that an installed package is, and what stands around it.
    #[must_use]
    pub fn own(&self, installed: &Installed) -> Vec<PathBuf> {
        let dir = self.dir.join(&installed.package.manifest.name);
        let file = Digest::of(&installed.package.write());
        let (lock, file) = (dir.join(LOCK), dir.join(kept(&file)));
        [self.dir.clone(), self.dir.join(KEYS), dir, lock, file].into()
    }

    /// Installs a package, which came from this source, with what was agreed to.
    ///
    /// # Errors
    /// Something else was installed meanwhile, or what the host answered. What is installed
    /// is what was before.
    pub fn install(
        &self,
        package: &Package,
        before: Option<&Installed>,
        grant: &Authority,
        vouched: Vouched,
        source: &str,
    ) -> Result<(), PackageError> {
        let _turn = self.turn()?;
        let name = &package.manifest.name;
        let now = self.get(name)?;
        let same = now.as_ref().map(Installed::approval) == before.map(Installed::approval);
        if !same {
            return Err(PackageError::new(
                &format!("`{name}` is not installed"),
                "another version of it was installed while you were asked",
                "ask again",
            ));
        }
        let dir = self.dir.join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|why| failed(&dir, &why))?;
        let bytes = package.write();
        let kept = kept(&Digest::of(&bytes));
        write_new(&dir.join(&kept), &bytes)?;
        let pin = self.dir.join(KEYS).join(&package.manifest.publisher);
        match vouched.key() {
            Some(key) => write_new(&pin, format!("{key}\n").as_bytes())?,
            None if pin.exists() => fs::remove_file(&pin).map_err(|why| failed(&pin, &why))?,
            None => {}
        }
        let installed = Installed::new(package.clone(), grant.clone(), vouched, source, now_ms());
        self.lock(&installed)?;
        // What the lock file does not name is nothing any more.
        for left in listed(&dir)? {
            if left != kept && left != LOCK {
                let _ = fs::remove_file(dir.join(left));
            }
        }
        Ok(())
    }

    /// Takes back parts of what was agreed to: primitives, paths, hosts and tools, as the
    /// grant has them.
    ///
    /// # Errors
    /// One is not in the grant, or what the host answered.
    pub fn revoke(&self, installed: &Installed, parts: &[String]) -> Result<(), PackageError> {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let _turn = self.turn()?;
        self.lock(&installed.without(&parts, now_ms())?)
    }

    /// Removes a package. Its publisher's key stays known.
    ///
    /// # Errors
    /// What the host answered.
    pub fn remove(&self, name: &str) -> Result<bool, PackageError> {
        let _turn = self.turn()?;
        let dir = self.dir.join(name);
        if !is_name(name) || !dir.join(LOCK).exists() {
            return Ok(false);
        }
        let gone = || -> io::Result<()> {
            // Without its lock file it is not installed; the rest is only room.
            fs::remove_file(dir.join(LOCK))?;
            File::open(&dir)?.sync_all()?;
            fs::remove_dir_all(&dir)
        };
        gone().map_err(|why| failed(&dir, &why))?;
        Ok(true)
    }

    /// Who stands behind a package.
    ///
    /// # Errors
    /// Its signature does not hold, or its key is not the one that its publisher has.
    pub fn vouched(&self, package: &Package, pin: Pin) -> Result<Vouched, PackageError> {
        vouched(package, self.pinned(&package.manifest.publisher)?, pin)
    }

    /// Why a person may take this package for another, or its publisher for another.
    ///
    /// # Errors
    /// What the host answered.
    pub fn look_alikes(&self, package: &Package) -> Result<Vec<String>, PackageError> {
        let mut publishers = listed(&self.dir.join(KEYS))?;
        publishers.retain(|name| is_publisher(name));
        Ok(look_alikes(package, &self.names()?, &publishers))
    }

    fn pinned(&self, publisher: &str) -> Result<Option<Key>, PackageError> {
        let path = self.dir.join(KEYS).join(publisher);
        if !is_publisher(publisher) || !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(|why| failed(&path, &why))?;
        Key::parse(text.trim_end()).map(Some).ok_or_else(|| {
            PackageError::new(
                &format!("the key of `{publisher}` is not known"),
                &format!("`{}` is damaged", path.display()),
                "compare the key with what the publisher says and write it there, as ed25519:…",
            )
        })
    }

    fn lock(&self, installed: &Installed) -> Result<(), PackageError> {
        let file = Digest::of(&installed.package.write());
        let dir = self.dir.join(&installed.package.manifest.name);
        write_new(&dir.join(LOCK), &installed.lock(&file))
    }

    /// One at a time changes what is installed.
    fn turn(&self) -> Result<File, PackageError> {
        let path = self.dir.join(".turn");
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(|why| failed(&path, &why))?;
        file.lock().map_err(|why| failed(&path, &why))?;
        Ok(file)
    }
}

/// The names in a folder, in their order.
pub(super) fn listed(dir: &Path) -> Result<Vec<String>, PackageError> {
    let list = || -> io::Result<Vec<String>> {
        let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        let mut names = names.filter_map(Result::transpose).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    };
    list().map_err(|why| failed(dir, &why))
}

pub(super) fn failed(path: &Path, why: &io::Error) -> PackageError {
    failed_with(&format!("`{}` cannot be used", path.display()), why)
}

/// The name of a package's file in its folder.
fn kept(file: &Digest) -> String {
    format!("{}.synapse", file.digits())
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

const LOCK: &str = "lock.json";
const KEYS: &str = ".publishers";
