//! One target folder for every clone, outside of them, kept below a size
//!
//! # Not here
//! A folder that the user named by `CARGO_TARGET_DIR`: it is used, never pruned,
//! unless it is the one this module would have chosen.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::step::{Failure, root};

/// The target folder of every Cargo that this program starts.
pub(crate) fn target_dir() -> Result<PathBuf, Failure> {
    match env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        // Cargo reads it from where it runs, and so that is the root.
        Some(dir) => Ok(root().join(dir)),
        None => Ok(shared()?.join(format!("{PREFIX}{}", rustc_version()?))),
    }
}

/// Removes the target folders used longest ago until the rest fits.
pub(crate) fn prune() -> Result<(), Failure> {
    let Ok(shared) = shared() else {
        // Without a cache folder there is nothing to keep small.
        return Ok(());
    };
    if shared.is_dir() {
        prune_to(&shared, LIMIT).map_err(|why| {
            format!("`{}` could not be pruned: {why}\ncheck who owns it", shared.display())
        })?;
    }
    Ok(())
}

fn prune_to(shared: &Path, limit: u64) -> io::Result<()> {
    let mut folders: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(shared)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with(PREFIX) {
            folders.push((entry.metadata()?.modified()?, entry.path(), size(&entry.path())?));
        }
    }
    folders.sort();
    let mut total: u64 = folders.iter().map(|(_, _, size)| size).sum();
    for (_, path, size) in folders {
        if total <= limit {
            break;
        }
        eprintln!("removing {} to keep the build cache small", path.display());
        fs::remove_dir_all(path)?;
        total -= size;
    }
    Ok(())
}

/// Bytes on disk; a file that vanishes meanwhile counts nothing.
fn size(dir: &Path) -> io::Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(found) if found.is_dir() => total += size(&entry.path())?,
            Ok(found) => total += found.blocks() * 512,
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
    }
    Ok(total)
}

fn shared() -> Result<PathBuf, Failure> {
    let set = |name| env::var_os(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("synapse"))
        .ok_or_else(|| "there is no place for a build cache: HOME is not set\nset it".to_owned())
}

fn rustc_version() -> Result<String, Failure> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().ok();
    output
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .and_then(|text| text.split(' ').nth(1).map(str::to_owned))
        .ok_or_else(|| "`rustc --version` said nothing useful\ninstall Rust".to_owned())
}

const PREFIX: &str = "target-";
const LIMIT: u64 = 25 << 30;

#[cfg(test)]
mod tests {
    use super::prune_to;
    use core::time::Duration;
    use std::fs;
    use std::time::SystemTime;

    #[test]
    fn oldest_target_folder_goes_first_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for (name, age) in [("target-old", 3), ("target-new", 1), ("other", 9)] {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("file"), vec![1; 1 << 16]).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age * 3600);
            fs::File::open(&folder).unwrap().set_modified(then).unwrap();
        }
        let there = |name: &str| dir.path().join(name).exists();
        prune_to(dir.path(), 1 << 30).unwrap();
        assert!(there("target-old") && there("target-new"));
        prune_to(dir.path(), 100_000).unwrap();
        assert!(!there("target-old") && there("target-new"));
        prune_to(dir.path(), 0).unwrap();
        assert!(!there("target-new") && there("other"));
    }
}
