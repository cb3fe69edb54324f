//! The files that an image of the firmware is started with
//!
//! A bundle is a cpio archive in the `newc` format, which boot loaders carry as
//! an initial RAM disk and common tools can write and list. What stands where
//! in it:
//!
//! - `packages/NAME/NAME.wasm`, `packages/NAME/grant.toml`: agents
//! - `packages/NAME.synapse`: packages that can be installed
//! - `files/…`: what guests see, `files/data/a.md` as `/data/a.md`
//! - `start`: lines typed at the console when the image has started
//!
//! # Invariants
//! - The input is hostile: every length is checked before it is used.
//!
//! # Not here
//! What the files mean to a board (the firmware). Collecting them from a disk
//! (`synapse firmware`).
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

/// One file of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Its path, without a leading `/`.
    pub path: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// The regular files of a bundle, in its order. After an error there is nothing
/// more; what is no regular file is left out.
#[must_use]
pub const fn read(bundle: &[u8]) -> Files<'_> {
    Files { bundle, at: 0, ended: false }
}

/// See [`read`].
#[derive(Clone, Debug)]
pub struct Files<'a> {
    bundle: &'a [u8],
    at: usize,
    ended: bool,
}

impl<'a> Iterator for Files<'a> {
    type Item = Result<File<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let at = self.at;
            match self.entry() {
                Some((END, ..)) => self.ended = true,
                Some((path, mode, bytes)) if mode & TYPE == REGULAR => {
                    return Some(Ok(File { path, bytes }));
                }
                Some(_) => {}
                None => {
                    self.ended = true;
                    return Some(Err(Malformed { at }));
                }
            }
        }
        None
    }
}

impl<'a> Files<'a> {
    /// The next entry: its path, its mode and its bytes.
    fn entry(&mut self) -> Option<(&'a str, u32, &'a [u8])> {
        let header: &[u8; HEADER] = self.take(HEADER)?.first_chunk()?;
        let (magic, fields) = header.split_first_chunk::<6>()?;
        let (fields, []) = fields.as_chunks::<8>() else { return None };
        let field = |index: usize| {
            let digits = str::from_utf8(fields.get(index)?).ok()?;
            u32::from_str_radix(digits, 16).ok()
        };
        if magic != MAGIC {
            return None;
        }
        let (mode, size, name) = (field(1)?, field(6)?, field(11)?);
        let name = self.take(usize::try_from(name).ok()?)?.strip_suffix(b"\0")?;
        self.align()?;
        let bytes = self.take(usize::try_from(size).ok()?)?;
        self.align()?;
        Some((str::from_utf8(name).ok()?, mode, bytes))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bundle.get(self.at..)?.get(..length)?;
        self.at = self.at.checked_add(length)?;
        Some(taken)
    }

    fn align(&mut self) -> Option<()> {
        self.at = self.at.checked_next_multiple_of(4)?;
        Some(())
    }
}

/// The bundle is no bundle, or was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where the first entry begins that cannot be read.
    pub at: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the bundle cannot be read from byte {}: no cpio entry (newc) begins there, or it is \
             cut off; make it again with `synapse firmware build`",
            self.at
        )
    }
}

impl Error for Malformed {}

/// Writes a bundle, file by file.
#[derive(Debug, Default)]
pub struct Writer {
    bundle: Vec<u8>,
    files: u32,
}

impl Writer {
    /// Adds a file. `false` if it has 4 GiB or more, which the format cannot say.
    #[must_use]
    pub fn add(&mut self, file: File<'_>) -> bool {
        self.files = self.files.saturating_add(1);
        self.entry(file.path, REGULAR | 0o644, self.files, file.bytes).is_some()
    }

    /// The whole bundle.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        // An entry without bytes always fits.
        let _ = self.entry(END, 0, 0, &[]);
        self.bundle
    }

    fn entry(&mut self, path: &str, mode: u32, number: u32, bytes: &[u8]) -> Option<()> {
        let size = u32::try_from(bytes.len()).ok()?;
        let name = u32::try_from(path.len()).ok()?.checked_add(1)?;
        self.bundle.extend_from_slice(MAGIC);
        // Number, mode, owner, group, links, time, size, four device numbers,
        // length of the name, and a sum that this variant does not use.
        for field in [number, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0] {
            self.bundle.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bundle.extend_from_slice(path.as_bytes());
        self.bundle.push(0);
        self.align();
        self.bundle.extend_from_slice(bytes);
        self.align();
        Some(())
    }

    fn align(&mut self) {
        self.bundle.resize(self.bundle.len().next_multiple_of(4), 0);
    }
}

const MAGIC: &[u8; 6] = b"070701";
const HEADER: usize = 6 + 13 * 8;
/// The name of the entry after the last one.
const END: &str = "TRAILER!!!";
/// The bits of a mode that say what it is, and what they are for a file.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{File, Malformed, Writer, read};

    fn bundle(files: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut writer = Writer::default();
        for (path, bytes) in files {
            assert!(writer.add(File { path, bytes }));
        }
        writer.finish()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            files in proptest::collection::vec(("[a-z/.]{1,20}", proptest::collection::vec(any::<u8>(), 0..50)), 0..5),
            cut in 0_usize..2000,
        ) {
            let bytes = bundle(&files);
            let found: Result<Vec<_>, _> = read(&bytes).collect();
            let expected: Vec<_> =
                files.iter().map(|(path, bytes)| File { path, bytes }).collect();
            prop_assert_eq!(found, Ok(expected));
            // Cut anywhere, it gives the files before the cut and then an error.
            let cut = cut % bytes.len();
            let part: Vec<_> = read(&bytes[..cut]).collect();
            let last = part.last().unwrap();
            prop_assert!(last.is_err() || bytes.len() - cut <= 4);
        }

        #[test]
        fn nothing_breaks_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0_usize..300) {
            let mut whole = bundle(&[("start".into(), b"help\n".to_vec())]);
            let at = at % whole.len();
            let end = whole.len().min(at + bytes.len());
            whole.splice(at..end, bytes);
            assert!(read(&whole).count() <= whole.len());
        }
    }

    #[test]
    fn a_bundle_of_others_is_told_from_a_bundle() {
        assert_eq!(read(b"070702").next(), Some(Err(Malformed { at: 0 })));
        assert_eq!(read(&[]).next(), Some(Err(Malformed { at: 0 })));
    }
}
