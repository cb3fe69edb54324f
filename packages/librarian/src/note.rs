//! What a note says: its heading, and where its links lead.
//!
//! Notes come in many encodings, so that they are looked at as bytes: what matters is
//! ASCII in nearly all of them. Only what is kept has to be UTF-8.
//!
//! # Not here
//! Reading notes (`shelf`), making their texts harmless (`index`).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use memchr::{memchr, memchr_iter};

/// Whether this is text: what is not has a byte of zero soon.
pub(crate) fn is_text(note: &[u8]) -> bool {
    memchr(0, note.get(..8000).unwrap_or(note)).is_none()
}

/// The first line that is a heading, without its marks.
pub(crate) fn heading(note: &[u8]) -> String {
    let begins = |at: &usize| at.checked_sub(1).is_none_or(|at| note.get(at) == Some(&b'\n'));
    let at = memchr_iter(b'#', note).find(begins).unwrap_or(note.len());
    let line = note.get(at..).and_then(|rest| rest.split(|byte| *byte == b'\n').next());
    let mut line = line.unwrap_or_default();
    while let Some(rest) = line.strip_prefix(b"#") {
        line = rest;
    }
    let line = line.trim_ascii_start();
    // As many bytes as the characters have at most.
    let line = String::from_utf8_lossy(line.get(..4 * HEADING).unwrap_or(line));
    line.trim().chars().take(HEADING).collect()
}

/// Targets of Markdown links to other files: no scheme, no bare anchor.
pub(crate) fn links(note: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    let opened = memchr_iter(b']', note).filter_map(|at| note.get(at..)?.strip_prefix(b"]("));
    let mut opened = opened.take(LINKS).peekable();
    while let Some(rest) = opened.next() {
        // An end is looked for no further than to where the next link begins.
        let own = opened.peek().and_then(|next| rest.get(..rest.len().checked_sub(next.len())?));
        let own = own.unwrap_or(rest);
        let Some(target) = memchr(b')', own).and_then(|end| own.get(..end)) else { continue };
        let target = target.split(|byte| matches!(byte, b'#' | b' ')).next().unwrap_or_default();
        let foreign = target.iter().any(|byte| matches!(byte, b':' | b'\n'));
        if foreign || target.is_empty() || target.len() > 500 {
            continue;
        }
        out.extend(str::from_utf8(target).map(ToString::to_string));
    }
    out
}

/// Of notes, by path, with their links: each link that leads to none of them.
pub(crate) fn broken<'n>(
    notes: Vec<(&'n str, &'n [String])>,
    root: &str,
) -> Vec<(&'n str, &'n str)> {
    let mut known: Vec<&str> = notes.iter().map(|(path, _)| *path).collect();
    known.sort_unstable();
    let mut out = Vec::new();
    for (note, links) in notes {
        for link in links {
            let path = resolve(note, root, link);
            if path.is_none_or(|path| known.binary_search(&&*path).is_err()) {
                out.push((note, &**link));
            }
        }
    }
    out
}

/// The path that a link in a note names; `None` above the folder.
fn resolve(note: &str, root: &str, link: &str) -> Option<String> {
    let from = if link.starts_with('/') { root } else { note.rsplit_once('/')?.0 };
    let mut path = from.to_string();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => path.truncate(path.rfind('/')?),
            name => {
                path.push('/');
                path.push_str(name);
            }
        }
    }
    Some(path)
}

/// A number that is seldom the same for two heads, and quickly found: of what they
/// begin and end with.
pub(crate) fn mark(head: &[u8]) -> u64 {
    let (start, rest) = head.split_at_checked(EDGE).unwrap_or((head, &[]));
    let end = rest.get(rest.len().saturating_sub(EDGE)..).unwrap_or_default();
    [start, end].into_iter().fold(0, |mark, edge| {
        let (words, tail) = edge.as_chunks::<8>();
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(tail) {
            *to = *from;
        }
        words.iter().chain([&last]).fold(mark, |mark, word| {
            // An odd number loses nothing, and the turn brings high bits down.
            (mark ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        })
    })
}

/// Characters of a heading that are kept.
const HEADING: usize = 200;
/// Links of a note that are looked at.
const LINKS: usize = 1000;
/// Bytes at either end.
const EDGE: usize = 4096;
