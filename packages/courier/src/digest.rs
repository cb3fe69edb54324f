//! What has changed, page by page, in a few lines.
//!
//! # Not here
//! Where pages are kept and where the digest goes (`carry`).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A digest in the making.
pub(crate) struct Digest {
    heading: String,
    pages: Vec<Page>,
}

struct Page {
    /// What happened, in the courier's own words.
    told: String,
    is_changed: bool,
    /// Lines of the page that were not there before.
    lines: Vec<String>,
}

impl Digest {
    pub(crate) fn new(today: &str) -> Self {
        Self { heading: format!("# What has changed, {today}\n"), pages: Vec::new() }
    }

    /// A page that was fetched, and what it said the last time.
    pub(crate) fn page(&mut self, url: &str, before: Option<&[u8]>, now: &[u8]) {
        let size = now.len();
        let (is_changed, told) = match before {
            None => (true, format!("- {url}: new, {size} bytes\n")),
            Some(before) if before == now => (false, format!("- {url}: as before\n")),
            Some(_) => (true, format!("- {url}: changed, {size} bytes\n")),
        };
        let before = String::from_utf8_lossy(before.unwrap_or_default());
        let known: BTreeSet<&str> = before.lines().map(str::trim).collect();
        let now = String::from_utf8_lossy(now);
        let new = now.lines().map(str::trim).filter(|line| !line.is_empty());
        let new = new.filter(|line| is_changed && !known.contains(line));
        let lines = new.take(LINES).map(plain).collect();
        self.pages.push(Page { told, is_changed, lines });
    }

    /// A page that could not be had.
    pub(crate) fn failed(&mut self, url: &str, why: &str) {
        let told = format!("- {url}: could not be fetched: {why}\n");
        self.pages.push(Page { told, is_changed: false, lines: Vec::new() });
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.written(|page| &page.lines)
    }

    /// Without what the pages say.
    pub(crate) fn bare(&self) -> String {
        self.written(|_| &[])
    }

    /// How it went, in a few words.
    pub(crate) fn told(&self) -> String {
        let changed = self.pages.iter().filter(|page| page.is_changed).count();
        format!("{changed} of {} pages are new or changed", self.pages.len())
    }

    fn written<'a>(&'a self, lines: impl Fn(&'a Page) -> &'a [String]) -> String {
        let mut text = self.heading.clone();
        for page in &self.pages {
            text.push_str(&page.told);
            for line in lines(page) {
                text.push_str(&format!("  + {line}\n"));
            }
        }
        text
    }
}

/// What a page is kept as: no page can choose it.
pub(crate) fn name(url: &str) -> String {
    let hash = url.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The day of a time in milliseconds since 1970, as `2026-01-31`.
pub(crate) fn date(unix_ms: u64) -> String {
    let mut days = unix_ms / (24 * 60 * 60 * 1000);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

/// A text of strangers, on one line.
fn plain(text: &str) -> String {
    let shown = text.chars().take(WIDTH);
    shown.map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Lines of a page that the digest has.
const LINES: usize = 5;
/// Characters of a line.
const WIDTH: usize = 160;

#[cfg(test)]
mod tests {
    use super::{Digest, date, name};
    use crate::plan::{Plan, SAYS, parse};

    #[test]
    fn days_have_their_dates() {
        const DAY: u64 = 86_400_000;
        for (days, shown) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_484, "2026-01-31"),
            (20_485, "2026-02-01"),
            (20_818, "2026-12-31"),
        ] {
            assert_eq!(date(days * DAY + 1), shown);
        }
    }

    #[test]
    fn a_digest_has_what_is_new_and_can_leave_out_what_pages_say() {
        let mut digest = Digest::new("2026-01-31");
        digest.page("http://a/", None, b"one\n\x1b[31mtwo");
        digest.page("http://b/", Some(b"one\ntwo\n"), b"two\nthree\n");
        digest.page("http://c/", Some(b"same"), b"same");
        digest.failed("http://d/", "status 404");
        let own = "# What has changed, 2026-01-31\n\
             - http://a/: new, 12 bytes\n\
             - http://b/: changed, 10 bytes\n\
             - http://c/: as before\n\
             - http://d/: could not be fetched: status 404\n";
        assert_eq!(digest.bare(), own);
        let all = own
            .replace("12 bytes\n", "12 bytes\n  + one\n  + \u{fffd}[31mtwo\n")
            .replace("10 bytes\n", "10 bytes\n  + three\n");
        assert_eq!(digest.text(), all);
        assert_eq!(digest.told(), "2 of 4 pages are new or changed");
        assert_ne!(name("http://a/"), name("http://b/"));
    }

    #[test]
    fn the_line_names_pages_a_folder_and_an_address() {
        let plan = Plan {
            pages: ["https://a.example/", "https://b.example/news"].into(),
            folder: "/data/news",
            post: Some("https://c.example/in"),
        };
        assert_eq!(parse(SAYS), Some(plan));
        let kept = parse("fetch http://a/ and keep the digest in /data/").unwrap();
        assert_eq!((kept.folder, kept.post), ("/data", None));
        assert_eq!(parse("fetch http://a/"), None);
        assert_eq!(parse("keep the digest in /data"), None);
    }
}
