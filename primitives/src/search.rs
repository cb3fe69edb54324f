//! Where a literal text stands in a file, or in the files below a directory.
//!
//! Built from the platform's `list` and `read`, so that a search sees exactly
//! what a guest could have listed and read call by call, on every board. A page
//! is bounded in hits, in bytes scanned and in bytes of the reply; it ends with
//! the position to go on from, which counts the bytes of the files before it.
//!
//! # Invariants
//! - A denied name is not shown, not entered and not counted, not even as bytes
//!   of the position.
//! - What was not searched though it was covered is counted in the reply.
//!
//! # Not here
//! Whether the root may be searched (gate 4), and who sees what (`execute`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::{self, Vec};
use core::fmt::Write as _;

use memchr::{memchr_iter, memmem, memrchr};
use synapse_reply::Fault;
use synapse_reply::limits;

use crate::execute::{escape, join};
use crate::platform::{Entry, Kind, Platform, WALK_ENTRIES, WALK_LEVELS, WHOLE_BYTES};
use crate::rest::Rest;

/// Bytes of files that one page reads before it ends.
const SCAN: u64 = WHOLE_BYTES;

/// Bytes of a reply after which a page ends, a hit of the longest kind to spare.
const REPLY: usize = limits::REPLY / 2;

/// Bytes of a line that a hit shows, before the text and from it on.
const SHOWN: (usize, usize) = (80, 160);

/// What a search may learn of a path below its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Not even that it is there.
    Hidden,
    /// That it is there, and what lies below it.
    Passed,
    /// What stands in it too.
    Read,
    /// No sentence can spell it, so nobody could have granted it.
    Unspelled,
}

/// Whose eyes a search has: the sight of every path below its root.
pub type Eyes<'e> = &'e (dyn Fn(&str) -> Sight + Sync);

/// One page of hits.
#[derive(Debug)]
pub struct Found {
    /// The page as JSON.
    pub json: String,
    /// What all that was looked at carries, with a hit in it or without.
    pub rest: Rest,
}

/// One page of hits, from a position on.
///
/// # Errors
/// `NoMatch` for an empty text, `TooLarge` for a file above [`WHOLE_BYTES`],
/// `TooMany`, and for the root what [`Platform::read`] and [`Platform::list`] answer.
pub async fn search<P: Platform>(
    platform: &P,
    root: &str,
    text: &[u8],
    from: u64,
    eyes: Eyes<'_>,
) -> Result<Found, Fault> {
    // Nothing stands everywhere, which is no place.
    if text.is_empty() {
        return Err(Fault::NoMatch);
    }
    let mut page = Page { finder: memmem::Finder::new(text), from, ..Page::default() };
    match platform.read(root, 0, 0).await {
        Ok(_) => {
            let own = platform.list(root, "", 1).await?.entries.pop().ok_or(Fault::Changed)?;
            page.rest.join(&own.rest);
            if own.size > WHOLE_BYTES {
                return Err(Fault::TooLarge);
            }
            page.file(platform, root, own.size).await?;
        }
        Err(Fault::NotAFile) => page.tree(platform, root, eyes).await?,
        Err(fault) => return Err(fault),
    }
    let rest = page.rest.clone();
    Ok(Found { json: page.json(), rest })
}

/// A directory on the way, and what of it is still to come.
struct Level {
    path: String,
    entries: vec::IntoIter<Entry>,
    /// The last name of this page, if others follow.
    next: Option<String>,
}

struct Page<'t> {
    finder: memmem::Finder<'t>,
    /// Where the page begins.
    from: u64,
    /// Bytes of the files before the one that is read.
    passed: u64,
    scanned: u64,
    hits: String,
    count: u64,
    /// Covered files and directories that were not searched.
    skipped: u64,
    /// Where the next page begins, once this one is full.
    next: Option<u64>,
    /// What all that was looked at carries.
    rest: Rest,
}

impl Default for Page<'_> {
    fn default() -> Self {
        Self {
            finder: memmem::Finder::new(b""),
            from: 0,
            passed: 0,
            scanned: 0,
            hits: String::new(),
            count: 0,
            skipped: 0,
            next: None,
            rest: Rest::SYSTEM,
        }
    }
}

impl Page<'_> {
    /// Walks depth first and in byte order, so that a position stays where it was.
    async fn tree<P: Platform>(
        &mut self,
        platform: &P,
        root: &str,
        eyes: Eyes<'_>,
    ) -> Result<(), Fault> {
        let mut levels = Vec::from([self.open(platform, root, "").await?]);
        let mut seen = 0_usize;
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.next() else {
                let following = match level.next.take() {
                    Some(after) => Some(self.open(platform, &level.path, &after).await?),
                    None => None,
                };
                levels.pop();
                levels.extend(following);
                continue;
            };
            seen = seen.saturating_add(1);
            if seen > WALK_ENTRIES || levels.len() > WALK_LEVELS {
                return Err(Fault::TooMany);
            }
            let path = join(levels.last().map_or(root, |level| &level.path), &entry.name);
            let sight = eyes(&path);
            if sight != Sight::Hidden {
                self.rest.join(&entry.rest);
            }
            let searched = match (entry.kind, sight) {
                // A link leads out of the tree, and a device holds no text.
                (_, Sight::Hidden)
                | (Kind::Link | Kind::Other, _)
                | (Kind::File, Sight::Passed) => Ok(()),
                (Kind::File | Kind::Directory, Sight::Unspelled) => Err(Fault::NameNotText),
                (Kind::File, Sight::Read) if entry.size > WHOLE_BYTES => Err(Fault::TooLarge),
                (Kind::File, Sight::Read) => self.file(platform, &path, entry.size).await,
                (Kind::Directory, Sight::Passed | Sight::Read) => {
                    self.open(platform, &path, "").await.map(|level| levels.push(level))
                }
            };
            match searched {
                Ok(()) | Err(Fault::NotFound | Fault::Reserved) => {}
                Err(_) => self.skipped = self.skipped.saturating_add(1),
            }
            if self.next.is_some() {
                break;
            }
        }
        Ok(())
    }

    async fn file<P: Platform>(
        &mut self,
        platform: &P,
        path: &str,
        size: u64,
    ) -> Result<(), Fault> {
        let end = self.passed.saturating_add(size);
        if end > self.from {
            // What was appended since is for the next search.
            let read = platform.read(path, 0, size).await?;
            self.rest.join(&read.rest);
            self.lines(path, &read.bytes);
            self.scanned = self.scanned.saturating_add(size);
        }
        self.passed = end;
        if self.next.is_none() && self.scanned >= SCAN {
            self.next = Some(end);
        }
        Ok(())
    }

    fn lines(&mut self, path: &str, bytes: &[u8]) {
        let (mut line, mut counted) = (1_usize, 0_usize);
        let finder = self.finder.clone();
        for at in finder.find_iter(bytes) {
            let position = self.passed.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
            if position < self.from {
                continue;
            }
            if self.count >= limits::SEARCH || self.hits.len() >= REPLY {
                self.next = Some(position);
                return;
            }
            let before = bytes.get(..at).unwrap_or_default();
            line = line.saturating_add(
                memchr_iter(b'\n', before.get(counted..).unwrap_or_default()).count(),
            );
            counted = at;
            let start = memrchr(b'\n', before).map_or(0, |newline| newline.saturating_add(1));
            let column = at.saturating_sub(start).saturating_add(1);
            self.hit(path, line, column, &shown(bytes, start, at));
        }
    }

    fn hit(&mut self, path: &str, line: usize, column: usize, text: &str) {
        if self.count > 0 {
            self.hits.push(',');
        }
        self.count = self.count.saturating_add(1);
        self.hits.push_str("{\"path\":\"");
        escape(&mut self.hits, path);
        // Writing to a String cannot fail.
        let _ = write!(self.hits, "\",\"line\":{line},\"column\":{column},\"text\":\"");
        escape(&mut self.hits, text);
        self.hits.push_str("\"}");
    }

    async fn open<P: Platform>(
        &mut self,
        platform: &P,
        path: &str,
        after: &str,
    ) -> Result<Level, Fault> {
        let page = platform.list(path, after, limits::LIST).await?;
        self.rest.join(&page.rest);
        let next = page.entries.last().filter(|_| page.more).map(|last| last.name.clone());
        Ok(Level { path: path.to_owned(), entries: page.entries.into_iter(), next })
    }

    fn json(self) -> String {
        let next = self.next.map_or_else(|| "null".to_owned(), |next| format!("{next}"));
        format!("{{\"hits\":[{}],\"next\":{next},\"skipped\":{}}}", self.hits, self.skipped)
    }
}

/// The part of a line around a hit, with no character cut in two.
fn shown(bytes: &[u8], start: usize, at: usize) -> String {
    let is_inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let from = start.max(at.saturating_sub(SHOWN.0));
    let from = (from..at).find(|at| !is_inside(at)).unwrap_or(at);
    let most = at.saturating_add(SHOWN.1).min(bytes.len());
    let most = (at..most.saturating_add(1)).rev().find(|at| !is_inside(at)).unwrap_or(most);
    let line = bytes.get(from..most).unwrap_or_default();
    let end = line
        .get(at.saturating_sub(from)..)
        .and_then(|rest| memchr_iter(b'\n', rest).next())
        .map_or(line.len(), |newline| at.saturating_sub(from).saturating_add(newline));
    String::from_utf8_lossy(line.get(..end).unwrap_or_default()).into_owned()
}
