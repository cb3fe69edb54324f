//! What stands where: the first byte of a key says what it is of.
//!
//! Numbers in keys are big-endian, so that their order is that of the keys; in
//! values they are little-endian.
//!
//! | key | value |
//! |--|--|
//! | `v` | the version of this format |
//! | `c` | the next number that is free |
//! | `l` parent, name | the number of the node it leads to |
//! | `n` node | what it is: see `tree` |
//! | `m` node | its label: see `labels`; without one it is from outside |
//! | `b` node, place | a part of a file's content |
//! | `j` run, place | an entry of a run's journal: see `undo` |
//! | `q` | the last number that a run had |
//! | `r` run | what is known of a run: see `runs` |
//! | `t` run, place | a part of a run's log |
//! | `p` name | what was agreed to for a package: see `packages` |
//! | `f` name | a package's file |
//! | `k` name | a publisher's key |

use alloc::vec::Vec;

pub(crate) const VERSION: u8 = b'v';
pub(crate) const NEXT: u8 = b'c';
pub(crate) const LINK: u8 = b'l';
pub(crate) const NODE: u8 = b'n';
pub(crate) const LABEL: u8 = b'm';
pub(crate) const BYTES: u8 = b'b';
pub(crate) const JOURNAL: u8 = b'j';
pub(crate) const LAST: u8 = b'q';
pub(crate) const RUN: u8 = b'r';
pub(crate) const TAPE: u8 = b't';
pub(crate) const LOCK: u8 = b'p';
pub(crate) const PACKAGE: u8 = b'f';
pub(crate) const PUBLISHER: u8 = b'k';

/// The key of a thing with one number.
pub(crate) fn of(what: u8, number: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(9);
    key.push(what);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The key of a thing with a name.
pub(crate) fn name(what: u8, name: &str) -> Vec<u8> {
    let mut key = Vec::from([what]);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The key of a thing with a number, and a place below it.
pub(crate) fn at(what: u8, number: u64, place: u32) -> Vec<u8> {
    let mut key = of(what, number);
    key.extend_from_slice(&place.to_be_bytes());
    key
}

/// The key of a name in a directory.
pub(crate) fn link(parent: u64, name: &str) -> Vec<u8> {
    let mut key = of(LINK, parent);
    key.extend_from_slice(name.as_bytes());
    key
}

/// The number of a key, and what follows it.
pub(crate) fn split(key: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = key.get(1..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), rest))
}

/// The place that follows the number of a key.
pub(crate) fn place(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*split(key)?.1.first_chunk()?))
}

/// Fields of a value, one after the other.
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }
}

/// Appends a text or bytes as [`Fields::bytes`] reads them.
pub(crate) fn write(value: &mut Vec<u8>, bytes: &[u8]) {
    value.extend_from_slice(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
    value.extend_from_slice(bytes);
}
