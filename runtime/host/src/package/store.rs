//! What is installed: a package's file, and a lock file that says what was agreed to.
//!
//! Each package has a folder in `$XDG_STATE_HOME/synapse/packages`. Its lock file is the
//! one thing that makes it installed: it is written last, by renaming, and read first. A
//! package's bytes are compared with it before each run.
//!
//! # Invariants
//! - An approval is for one digest and one grant: other bytes are not run, and a grant that
//!   is more than the package asks for is not used.
//! - Whenever a process or the power dies, what is installed is the old or the new, whole.
//!
//! # Not here
//! What may be installed (`trust`). Asking the person (`consent`, the command line). Running
//! (`run`).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use synapse_kernel::run::Approval;

use super::sign::Key;
use super::source::write_new;
use super::trust::Vouched;
use super::{Authority, Digest, Entry, Package, PackageError, is_name};

/// The version of the lock file.
const VERSION: u64 = 1;

/// An installed package, as it was approved.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The package.
    pub package: Package,
    /// What was agreed to.
    pub grant: Authority,
    /// That, as the grant file that was approved.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub approved: u64,
    /// Where it came from.
    pub source: String,
    /// The key that signed it.
    pub key: Option<Key>,
    /// Its folder and the files in it.
    pub own: Vec<PathBuf>,
}

impl Installed {
    /// What a run's first record says of it.
    #[must_use]
    pub fn approval(&self) -> Approval {
        let manifest = &self.package.manifest;
        Approval {
            package: manifest.name.clone(),
            version: manifest.version.to_string(),
            digest: self.package.digest().to_string(),
            grant: Digest::of(self.text.as_bytes()).to_string(),
            approved: self.approved,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    version: u64,
    name: String,
    package: String,
    /// The package's digest.
    digest: String,
    /// The digest of its file.
    file: String,
    publisher: String,
    key: Option<String>,
    approved: u64,
    source: String,
    grant: String,
}

/// The installed packages of one user.
#[derive(Debug)]
pub struct Store {
    pub(super) dir: PathBuf,
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
        let changed = |why: &str| {
            PackageError::new(
                &format!("`{name}` is not as it was approved"),
                why,
                "remove it and install it anew",
            )
        };
        let text = fs::read(dir.join(LOCK)).map_err(|why| failed(&dir, &why))?;
        let lock: Lock = serde_json::from_slice(&text).map_err(|_| {
            changed("its lock file is damaged, or of a version that this Synapse does not know")
        })?;
        let file =
            Digest::parse(&lock.file).map(|file| dir.join(format!("{}.synapse", file.digits())));
        let file = file.filter(|_| lock.version == VERSION && lock.name == name);
        let file = file.ok_or_else(|| changed("its lock file is another's, or damaged"))?;
        let bytes = fs::read(&file).map_err(|why| changed(&why.to_string()))?;
        if Digest::of(&bytes).to_string() != lock.file {
            return Err(changed("its bytes are others"));
        }
        let package = Package::read(&bytes)?;
        let key = package.signer()?;
        let as_locked = package.digest().to_string() == lock.digest
            && package.manifest.name == name
            && key.map(|key| key.to_string()) == lock.key;
        if !as_locked {
            return Err(changed("its lock file is of another package"));
        }
        let grant = Authority::read(&lock.grant).map_err(|why| changed(&why.to_string()))?;
        if !package.manifest.request.covers(&grant) {
            return Err(changed("its grant is more than the package asks for"));
        }
        let own = [self.dir.clone(), self.dir.join(KEYS), dir.clone(), dir.join(LOCK), file].into();
        Ok(Some(Installed {
            package,
            grant,
            text: lock.grant,
            approved: lock.approved,
            source: lock.source,
            key,
            own,
        }))
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
        let file = Digest::of(&bytes);
        let kept = format!("{}.synapse", file.digits());
        write_new(&dir.join(&kept), &bytes)?;
        let pin = self.dir.join(KEYS).join(&package.manifest.publisher);
        let key = match vouched {
            Vouched::Nobody => None,
            Vouched::First(key) | Vouched::Known(key) | Vouched::Renewed(key) => Some(key),
        };
        match key {
            Some(key) => write_new(&pin, format!("{key}\n").as_bytes())?,
            None if pin.exists() => fs::remove_file(&pin).map_err(|why| failed(&pin, &why))?,
            None => {}
        }
        self.lock(package, grant, key, source)?;
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
        let mut grant = installed.grant.clone();
        for part in parts {
            let before = grant.entries.len();
            grant.entries.retain(|entry| entry.name() != part);
            if grant.entries.len() == before {
                let known: Vec<&str> = grant.entries.iter().map(Entry::name).collect();
                return Err(PackageError::new(
                    &format!("`{part}` cannot be taken back"),
                    "the package was not given it",
                    &format!("name one of {}", known.join(", ")),
                ));
            }
        }
        self.narrow(installed, &grant.settled())
    }

    fn narrow(&self, installed: &Installed, grant: &Authority) -> Result<(), PackageError> {
        let _turn = self.turn()?;
        let name = &installed.package.manifest.name;
        if !installed.grant.covers(grant) {
            return Err(PackageError::new(
                &format!("`{name}` keeps its grant"),
                "what is left would be more",
                "install it anew to be asked",
            ));
        }
        self.lock(&installed.package, grant, installed.key, &installed.source)
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

    fn lock(
        &self,
        package: &Package,
        grant: &Authority,
        key: Option<Key>,
        source: &str,
    ) -> Result<(), PackageError> {
        let manifest = &package.manifest;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let lock = Lock {
            version: VERSION,
            name: manifest.name.clone(),
            package: manifest.version.to_string(),
            digest: package.digest().to_string(),
            file: Digest::of(&package.write()).to_string(),
            publisher: manifest.publisher.clone(),
            key: key.map(|key| key.to_string()),
            approved: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            source: source.to_owned(),
            grant: grant.text(),
        };
        let text = serde_json::to_vec_pretty(&lock).unwrap_or_default();
        write_new(&self.dir.join(&manifest.name).join(LOCK), &text)
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
    PackageError::host(&format!("`{}` cannot be used", path.display()), why)
}

const LOCK: &str = "lock.json";
pub(super) const KEYS: &str = ".publishers";
