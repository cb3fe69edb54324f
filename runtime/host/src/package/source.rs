//! Packages that are here: a file, or a folder that becomes one
//!
//! # Not here
//! Fetching them (`fetch`). What is in them (`synapse_kernel::package`). Building a component (`synapse build`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process;

use synapse_kernel::package::PACKAGE_MAX;

use super::{Package, PackageError, failed_with};

/// Reads the package at this path: its file, or a folder with its parts.
pub(super) fn open(path: &Path) -> Result<Package, PackageError> {
    if path.is_dir() { folder(path) } else { Package::read(&read(path)?) }
}

/// The package of a folder with `manifest.toml`, `<name>.wasm`, and what else it has of
/// `SOUL.md`, `README.md`, `LICENSE…` and `docs`.
fn folder(dir: &Path) -> Result<Package, PackageError> {
    let text = String::from_utf8(read(&dir.join("manifest.toml"))?).map_err(|_| {
        PackageError::new("manifest.toml is no manifest", "it is not UTF-8", "write it as a text")
    })?;
    let component = format!("{}.wasm", super::Manifest::parse(&text)?.name);
    let mut files = BTreeMap::new();
    for entry in listed(dir)? {
        let name = entry.to_string_lossy().into_owned();
        let wanted = name == component
            || matches!(&*name, "SOUL.md" | "README.md")
            || name.starts_with("LICENSE");
        if wanted {
            files.insert(name, read(&dir.join(entry))?);
        }
    }
    let docs = dir.join("docs");
    if docs.is_dir() {
        below(&docs, "docs", 0, &mut files)?;
    }
    Package::new(text, files)
}

fn below(
    dir: &Path,
    name: &str,
    depth: usize,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), PackageError> {
    for entry in listed(dir)? {
        let (path, name) = (dir.join(&entry), format!("{name}/{}", entry.to_string_lossy()));
        if path.is_dir() && !path.is_symlink() && depth < 8 {
            below(&path, &name, depth + 1, files)?;
        } else {
            files.insert(name, read(&path)?);
        }
    }
    Ok(())
}

fn listed(dir: &Path) -> Result<Vec<OsString>, PackageError> {
    let names = || -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    };
    names().map_err(|why| failed_with(&format!("`{}` cannot be listed", dir.display()), &why))
}

/// Reads a file that is no link and no larger than a package.
fn read(path: &Path) -> Result<Vec<u8>, PackageError> {
    let what = format!("`{}` cannot be read", path.display());
    let mut bytes = Vec::new();
    opened(path)
        .and_then(|file| file.take(PACKAGE_MAX as u64 + 1).read_to_end(&mut bytes))
        .map_err(|why| failed_with(&what, &why))?;
    if bytes.len() > PACKAGE_MAX {
        return Err(PackageError::new(&what, "it has more than 120 MiB", "name a package"));
    }
    Ok(bytes)
}

/// Reads a file that is its owner's alone.
pub(super) fn read_owned(path: &Path, what: &str) -> Result<Vec<u8>, PackageError> {
    let failed = |why| failed_with(&format!("{what} cannot be read"), &why);
    let file = opened(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        return Err(PackageError::new(
            &format!("{what} is not used"),
            "others may read or write its file",
            "take their rights with `chmod 600`; if others can log in here, make a new one",
        ));
    }
    let mut bytes = Vec::new();
    file.take(PACKAGE_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Opens a plain file, waiting for nothing.
fn opened(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
    }
}

/// Writes beside the file and renames, so that no reader meets half of it, also after the
/// power failed.
///
/// # Errors
/// What the host answered; the file is as it was.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    let failed = |why| failed_with(&format!("`{}` cannot be written", path.display()), &why);
    let Some((dir, name)) = path.parent().zip(path.file_name()) else {
        return Err(failed(io::ErrorKind::InvalidFilename.into()));
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", process::id()));
    let hidden = dir.join(hidden);
    let write = || -> io::Result<()> {
        let mut file = File::create(&hidden)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&hidden, path)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|why| {
        // The first failure is the one to tell.
        drop(fs::remove_file(&hidden));
        failed(why)
    })
}
