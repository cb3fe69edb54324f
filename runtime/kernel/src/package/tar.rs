//! The one form of tar that a package is: plain files, in order, nothing else.
//!
//! Headers are written in one way only, and a header that is read must be the one
//! that would have been written for its name and size: so there is no second
//! reading of a file, and none of tar's links, devices, sparse files or long names.
//!
//! # Invariants
//! - What [`read`] takes, [`write()`] gives back byte for byte.
//! - Nothing is unpacked: a name is a key, never a path.
//!
//! # Not here
//! Which names a package has (`layout`).

use alloc::format;
use alloc::vec::Vec;

use super::PackageError;

const BLOCK: usize = 512;

/// Bytes that a file's name may have.
const NAME_MAX: usize = 100;

/// A file's name and its bytes.
pub type File<'a> = (&'a str, &'a [u8]);

/// Writes files, which must be in the order of their names.
#[must_use]
pub fn write<'a>(files: impl IntoIterator<Item = File<'a>>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        out.extend_from_slice(&header(name, bytes.len()));
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    out
}

/// Reads the files of a tar that [`write()`] could have made.
///
/// # Errors
/// It is not such a tar.
pub fn read(bytes: &[u8]) -> Result<Vec<File<'_>>, PackageError> {
    let (mut files, mut rest) = (Vec::<File<'_>>::new(), bytes);
    loop {
        let (head, after) = rest.split_first_chunk::<BLOCK>().ok_or_else(cut)?;
        if head.iter().all(|byte| *byte == 0) {
            return if after.len() == BLOCK && after.iter().all(|byte| *byte == 0) {
                Ok(files)
            } else {
                Err(broken("something stands behind its end"))
            };
        }
        let (name, size) = named(head)?;
        if let Some((before, _)) = files.last()
            && *before >= name
        {
            return Err(broken("a name stands twice, or names are not in order"));
        }
        let content = after.get(..size).ok_or_else(cut)?;
        let padding = after.get(size..size.next_multiple_of(BLOCK)).ok_or_else(cut)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(broken("bytes stand between its files"));
        }
        files.push((name, content));
        rest = after.get(size + padding.len()..).ok_or_else(cut)?;
    }
}

/// The name and the size in a header, which is as it would be written.
fn named(head: &[u8; BLOCK]) -> Result<(&str, usize), PackageError> {
    match head.get(TYPE) {
        Some(b'0') => {}
        Some(b'1' | b'2') => return Err(broken("it holds a link")),
        _ => return Err(broken("it holds something that is no plain file")),
    }
    let field = head.get(..NAME_MAX).unwrap_or_default();
    let name = field.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = str::from_utf8(name).map_err(|_| broken("a file's name is no text"))?;
    let climbs = name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if climbs {
        return Err(broken("a file's name leads out of it"));
    }
    let size = head.get(SIZE..SIZE + 11).and_then(|digits| str::from_utf8(digits).ok());
    let size = size.and_then(|digits| usize::from_str_radix(digits, 8).ok());
    let size = size.ok_or_else(|| broken("a file's size is no number"))?;
    if header(name, size) != *head {
        return Err(broken("a header is not the one that Synapse writes"));
    }
    Ok((name, size))
}

const SIZE: usize = 124;
const TYPE: usize = 156;

fn header(name: &str, size: usize) -> [u8; BLOCK] {
    let mut head = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        for (place, byte) in head.iter_mut().skip(at).zip(text.bytes()) {
            *place = byte;
        }
    };
    put(0, name);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(SIZE, &format!("{size:011o}"));
    put(136, "00000000000");
    // The sum counts its own field as blanks.
    put(148, "        ");
    put(TYPE, "0");
    put(257, "ustar\u{0}00");
    put(329, "0000000");
    put(337, "0000000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in head.iter_mut().skip(148).zip(format!("{sum:06o}\u{0} ").bytes()) {
        *place = byte;
    }
    head
}

fn cut() -> PackageError {
    broken("it ends in the middle of a file")
}

fn broken(why: &str) -> PackageError {
    PackageError::new("this is no package", why, "ask its publisher for a whole one")
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString as _};

    use super::{read, write};

    fn why(bytes: &[u8]) -> String {
        read(bytes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let files = [("a", &b"one"[..]), ("b/c", &[7; 512]), ("d", b"")];
        let tar = write(files);
        assert_eq!(read(&tar).unwrap(), files);
        for at in 0..tar.len() {
            let mut other = tar.clone();
            other[at] ^= 1;
            if let Ok(found) = read(&other) {
                assert_eq!(write(found), other, "byte {at}");
            }
        }
        for length in 0..tar.len() {
            assert!(read(&tar[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn hostile_headers_are_told() {
        let tar = write([("a", &b""[..])]);
        let mut with = tar.clone();
        with.push(0);
        assert!(why(&with).contains("behind its end"));
        for (kind, told) in [(b'2', "link"), (b'1', "link"), (b'5', "no plain"), (b'S', "no plain")]
        {
            let mut other = tar.clone();
            other[super::TYPE] = kind;
            assert!(why(&other).contains(told), "{}", why(&other));
        }
        for name in ["../a", "/a", "a/../b", "a//b", "."] {
            assert!(why(&write([(name, &b""[..])])).contains("leads out"), "{name}");
        }
        assert!(why(&write([("a", &b"x"[..]), ("a", b"y")])).contains("twice"));
        // A size that is far beyond the file takes no memory.
        let mut other = tar;
        other[super::SIZE..super::SIZE + 11].copy_from_slice(b"77777777777");
        assert!(why(&other).contains("not the one"), "{}", why(&other));
    }
}
