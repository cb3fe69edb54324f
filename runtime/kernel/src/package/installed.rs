//! What is installed: a package's file, and a lock file that says what was agreed to.
//!
//! The lock file is the one thing that makes a package installed. The package's bytes are
//! compared with it before each run.
//!
//! # Invariants
//! - An approval is for one digest and one grant: other bytes are not run, and a grant that
//!   is more than the package asks for is not used.
//!
//! # Not here
//! What may be installed (`trust`). Asking the person (`consent`). Where both files are
//! (boards).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::signature::Key;
use super::trust::Vouched;
use super::{Digest, Package, PackageError, oci};
use crate::grant::shape::{get, integer, text};
use crate::grant::{Authority, Entry, quoted};
use crate::record::tag;
use crate::render;
use crate::run::Approval;
use crate::verify::Reader;

/// The version of the lock file.
const VERSION: i64 = 1;

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
}

/// A lock file.
struct Lock {
    name: String,
    digest: String,
    key: Option<String>,
    approved: u64,
    source: String,
    grant: String,
}

/// The digest of the package's file that a lock file is for.
#[must_use]
pub fn file_of(lock: &[u8]) -> Option<Digest> {
    oci::read(lock, |lock| Digest::parse(text(get(lock, "file")?)))
}

/// The approval that bounds a run, as the first record of its log names it.
#[must_use]
pub fn approval_of(log: &[u8]) -> Option<Approval> {
    let start = Reader::new(log).next()?.ok()?;
    oci::read(start.field(tag::TEXT)?, |about| {
        let approval = get(about, "approval")?;
        let word = |key| get(approval, key).map(|value| text(value).to_owned());
        Some(Approval {
            package: word("package")?,
            version: word("version")?,
            digest: word("digest")?,
            grant: word("grant")?,
            approved: u64::try_from(integer(get(approval, "approved")?)?).ok()?,
        })
    })
}

impl Lock {
    fn read(bytes: &[u8]) -> Option<Self> {
        oci::read(bytes, |lock| {
            let word = |key| get(lock, key).map(|value| text(value).to_owned());
            get(lock, "version").and_then(integer).filter(|version| *version == VERSION)?;
            Some(Self {
                name: word("name")?,
                digest: word("digest")?,
                key: word("key"),
                approved: u64::try_from(integer(get(lock, "approved")?)?).ok()?,
                source: word("source")?,
                grant: word("grant")?,
            })
        })
    }
}

impl Installed {
    /// A package that came from this source, with what was agreed to now.
    #[must_use]
    pub fn new(
        package: Package,
        grant: Authority,
        vouched: Vouched,
        source: &str,
        now_ms: u64,
    ) -> Self {
        let (text, source) = (grant.text(), source.to_owned());
        Self { package, grant, text, approved: now_ms, source, key: vouched.key() }
    }

    /// Reads what is kept under a name: a lock file and the package's file.
    ///
    /// # Errors
    /// The two are not as they were approved.
    pub fn read(name: &str, lock: &[u8], file: &[u8]) -> Result<Self, PackageError> {
        let changed = |why: &str| changed(name, why);
        let of = file_of(lock);
        let lock = Lock::read(lock).ok_or_else(|| {
            changed("its lock file is damaged, or of a version that this Synapse does not know")
        })?;
        if lock.name != name {
            return Err(changed("its lock file is another's, or damaged"));
        }
        if of != Some(Digest::of(file)) {
            return Err(changed("its bytes are others"));
        }
        let package = Package::read(file)?;
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
        let Lock { approved, source, grant: text, .. } = lock;
        Ok(Self { package, grant, text, approved, source, key })
    }

    /// Its lock file, where this is its package's file.
    #[must_use]
    pub fn lock(&self, file: &Digest) -> Vec<u8> {
        let manifest = &self.package.manifest;
        let mut lock = format!(
            "{{\n  \"version\": {VERSION},\n  \"approved\": {},\n  \"file\": \"{file}\"",
            self.approved
        );
        let key = self.key.map(|key| key.to_string());
        for (name, text) in [
            ("name", Some(manifest.name.clone())),
            ("package", Some(manifest.version.to_string())),
            ("digest", Some(self.package.digest().to_string())),
            ("publisher", Some(manifest.publisher.clone())),
            ("key", key),
            ("source", Some(self.source.clone())),
            ("grant", Some(self.text.clone())),
        ] {
            if let Some(text) = text {
                lock.push_str(&format!(",\n  \"{name}\": {}", quoted(&text)));
            }
        }
        lock.push_str("\n}\n");
        lock.into_bytes()
    }

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

    /// This, with parts of what was agreed to taken back now: primitives, paths, hosts and
    /// tools, as the grant has them.
    ///
    /// # Errors
    /// One is not in the grant.
    pub fn without(&self, parts: &[&str], now_ms: u64) -> Result<Self, PackageError> {
        let mut grant = self.grant.clone();
        for part in parts {
            let before = grant.entries.len();
            grant.entries.retain(|entry| entry.name() != *part);
            if grant.entries.len() == before {
                let known: Vec<&str> = grant.entries.iter().map(Entry::name).collect();
                return Err(PackageError::new(
                    &format!("`{part}` cannot be taken back"),
                    "the package was not given it",
                    &format!("name one of {}", known.join(", ")),
                ));
            }
        }
        let grant = grant.settled();
        if !self.grant.covers(&grant) {
            return Err(PackageError::new(
                &format!("`{}` keeps its grant", self.package.manifest.name),
                "what is left would be more",
                "install it anew to be asked",
            ));
        }
        Ok(Self { text: grant.text(), grant, approved: now_ms, ..self.clone() })
    }

    /// What it is and whose, in a line.
    #[must_use]
    pub fn line(&self) -> String {
        let manifest = &self.package.manifest;
        let signed = if self.key.is_some() { "signed" } else { "not signed" };
        format!(
            "{} {}  by {}, {signed}",
            render::escape(&manifest.name),
            manifest.version,
            render::escape(&manifest.publisher)
        )
    }
}

fn changed(name: &str, why: &str) -> PackageError {
    PackageError::new(
        &format!("`{name}` is not as it was approved"),
        why,
        "remove it and install it anew",
    )
}
