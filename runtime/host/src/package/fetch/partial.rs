//! What has come of a download, kept in a file until it is whole
//!
//! # Invariants
//! - One command at a time fetches a thing.
//! - What is kept is never taken for whole: whoever asked for it checks it.
//!
//! # Not here
//! Fetching (`download`).

use core::time::Duration;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::super::source::write_new;
use super::super::store::failed;
use super::super::{PackageError, store::listed};

/// How long nobody may go on with something until it is thrown away.
const KEPT: Duration = Duration::from_hours(7 * 24);

/// Where downloads are kept that are not whole.
pub(super) struct Downloads {
    dir: PathBuf,
}

impl Downloads {
    /// Those of a state folder; old ones go.
    pub(super) fn open(state: &Path) -> Result<Self, PackageError> {
        let dir = state.join("packages").join(".downloads");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|why| failed(&dir, &why))?;
        for name in listed(&dir)? {
            let path = dir.join(name);
            let age = fs::metadata(&path).and_then(|found| found.modified());
            if age.is_ok_and(|age| age.elapsed().is_ok_and(|age| age > KEPT)) {
                // If it stays, it is only room.
                drop(fs::remove_file(path));
            }
        }
        Ok(Self { dir })
    }

    /// What there is of a thing.
    pub(super) fn partial(&self, key: &str) -> Result<Partial, PackageError> {
        let path = self.dir.join(key);
        let open = || {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).read(true).write(true).mode(0o600).open(&path)
        };
        let mut file = open().map_err(|why| failed(&path, &why))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(PackageError::new(
                    "it is not fetched",
                    "another command fetches it just now",
                    "wait for that one",
                ));
            }
            Err(TryLockError::Error(why)) => return Err(failed(&path, &why)),
        }
        let have = file.seek(SeekFrom::End(0)).map_err(|why| failed(&path, &why))?;
        Ok(Partial { file, path, have })
    }
}

/// The beginning of something.
pub(super) struct Partial {
    file: File,
    path: PathBuf,
    have: u64,
}

impl Partial {
    /// Bytes that are there.
    pub(super) fn have(&self) -> u64 {
        self.have
    }

    /// What its server called the version that it is of.
    pub(super) fn version(&self) -> Option<String> {
        fs::read_to_string(self.version_path()).ok()
    }

    /// Begins anew, with this version.
    pub(super) fn restart(&mut self, version: Option<&str>) -> Result<(), PackageError> {
        let mut clear = || -> io::Result<()> {
            self.file.set_len(0)?;
            self.file.rewind()
        };
        clear().map_err(|why| failed(&self.path, &why))?;
        self.have = 0;
        if let Some(version) = version {
            return write_new(&self.version_path(), version.as_bytes());
        }
        // Where there is nothing, no version is gone on with.
        drop(fs::remove_file(self.version_path()));
        Ok(())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), PackageError> {
        self.file.write_all(bytes).map_err(|why| failed(&self.path, &why))?;
        self.have += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn read(&mut self) -> Result<Vec<u8>, PackageError> {
        let mut bytes = Vec::new();
        let mut read = || -> io::Result<()> {
            self.file.rewind()?;
            self.file.read_to_end(&mut bytes).map(drop)
        };
        read().map_err(|why| failed(&self.path, &why))?;
        Ok(bytes)
    }

    /// Throws away what there is.
    pub(super) fn forget(self) {
        // If it stays, it is looked at anew, or thrown away later.
        drop(fs::remove_file(self.version_path()));
        drop(fs::remove_file(&self.path));
    }

    fn version_path(&self) -> PathBuf {
        self.path.with_extension("version")
    }
}
