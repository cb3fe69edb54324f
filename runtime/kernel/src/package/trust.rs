//! Whether a package is what it says: its publisher's, and the next version.
//!
//! # Invariants
//! - A publisher's key changes only where the person names the new one.
//! - What is installed is followed by a newer version of the same publisher, unless the person
//!   says otherwise.
//!
//! # Not here
//! Whether a signature holds (`layout`). What it may do (`consent`).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::installed::Installed;
use super::signature::Key;
use super::{Package, PackageError, look_alike};

/// What a person says about a publisher's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// It is the one that the publisher has, or the first.
    #[default]
    Keep,
    /// This one takes its place.
    New(Key),
    /// The publisher signs no more.
    Nobody,
}

/// Who stands behind a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vouched {
    /// Nobody signed it.
    Nobody,
    /// A key that its publisher has not been seen with before.
    First(Key),
    /// The publisher's key.
    Known(Key),
    /// A key that the person said takes the place of the publisher's.
    Renewed(Key),
}

impl Vouched {
    /// The key that signed it.
    #[must_use]
    pub const fn key(self) -> Option<Key> {
        match self {
            Self::Nobody => None,
            Self::First(key) | Self::Known(key) | Self::Renewed(key) => Some(key),
        }
    }
}

/// Who stands behind a package, whose publisher's key may be known.
///
/// # Errors
/// Its signature does not hold, or its key is not the one that its publisher has.
pub fn vouched(package: &Package, pinned: Option<Key>, pin: Pin) -> Result<Vouched, PackageError> {
    let (publisher, signer) = (&package.manifest.publisher, package.signer()?);
    let refused = |why: &str, todo: &str| {
        Err(PackageError::new(&format!("it is not taken for one of `{publisher}`"), why, todo))
    };
    match (signer, pinned, pin) {
        (None, None, Pin::Keep) | (None, _, Pin::Nobody) => Ok(Vouched::Nobody),
        (Some(key), None, Pin::Keep) => Ok(Vouched::First(key)),
        (Some(key), Some(known), Pin::Keep) if key == known => Ok(Vouched::Known(key)),
        (Some(key), _, Pin::New(new)) if key == new => Ok(Vouched::Renewed(key)),
        (Some(key), Some(known), Pin::Keep) => refused(
            &format!(
                "it is signed by {key}, and what you have of this publisher by {known}: \
                 either the publisher has a new key, or somebody else made this"
            ),
            &format!(
                "ask the publisher, not where the package came from; if the key is theirs: \
                 --new-key {key}"
            ),
        ),
        (None, Some(known), Pin::Keep) => refused(
            &format!(
                "it is not signed, and what you have of this publisher is, by {known}: \
                 anybody may have made it"
            ),
            "get a signed one; if it is your own, and is to stay unsigned: --new-key none",
        ),
        (_, _, Pin::New(new)) => refused(
            &format!("it is not signed by the key that you named, {new}"),
            "compare the key with what the publisher says",
        ),
        (Some(_), _, Pin::Nobody) => refused(
            "it is signed, and you said that its publisher signs no more",
            "leave out --new-key, or name its key",
        ),
    }
}

/// Why a person may take this package for another, or its publisher for another, where
/// these packages and publishers are known.
#[must_use]
pub fn look_alikes(package: &Package, names: &[String], publishers: &[String]) -> Vec<String> {
    let manifest = &package.manifest;
    let mut warnings = Vec::new();
    let known = names.iter().map(String::as_str).chain(STOCK);
    if let Some(other) = look_alike::of(&manifest.name, known) {
        warnings.push(format!("its name looks like `{other}`, and it is another package"));
    }
    if STOCK.contains(&&*manifest.name) && manifest.publisher != OURS {
        let name = &manifest.name;
        warnings.push(format!("`{name}` comes with Synapse, and this is somebody else's"));
    }
    let known = publishers.iter().map(String::as_str).chain([OURS]);
    if let Some(other) = look_alike::of(&manifest.publisher, known) {
        warnings.push(format!("its publisher's name looks like `{other}`, and is another"));
    }
    warnings
}

/// Whether this package may follow what is installed; nothing new is `false`.
///
/// # Errors
/// It is another's, older, or the same version with other bytes.
pub fn follows(
    package: &Package,
    installed: Option<&Installed>,
    backwards: bool,
) -> Result<bool, PackageError> {
    let Some(installed) = installed else { return Ok(true) };
    let (new, old) = (&package.manifest, &installed.package.manifest);
    let refused = |why: &str, todo: &str| {
        Err(PackageError::new(&format!("`{}` stays as it is", old.name), why, todo))
    };
    if new.publisher != old.publisher {
        return refused(
            &format!("it is of `{}`, and this one is of `{}`", old.publisher, new.publisher),
            "remove the installed one first, if you want this one",
        );
    }
    let same = package.write() == installed.package.write();
    match new.version.order(&old.version) {
        Ordering::Equal if same => Ok(false),
        Ordering::Equal if package.digest() == installed.package.digest() => Ok(true),
        Ordering::Greater => Ok(true),
        Ordering::Equal | Ordering::Less if backwards => Ok(true),
        Ordering::Equal => refused(
            &format!("this is {} too, with other bytes than the installed one", new.version),
            "a publisher gives each version its number; if you made both: --allow-downgrade",
        ),
        Ordering::Less => refused(
            &format!("{} is installed, and this is {}, older", old.version, new.version),
            "an older version may have faults that are known; if you want it: --allow-downgrade",
        ),
    }
}

/// Packages that come with Synapse, and who makes them.
const STOCK: [&str; 4] = ["librarian", "tidy", "courier", "steward"];
const OURS: &str = "synapse";
