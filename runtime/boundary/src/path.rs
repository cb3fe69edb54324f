//! Paths in their one normal form, or with the defect that spoils them.
//!
//! Two spellings of one file must never be two targets: a path is reduced to
//! its normal form before anything compares it, and a name that some file
//! system reads as another name is refused outright.
//!
//! # Invariants
//! - I11: what gate 4 compares is a [`NormalPath`]; it has one spelling.
//!
//! # Not here
//! Whether the path is in scope (`scope`). Links (the platform follows none).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::limits::{PATH, PATH_DEPTH};
use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

use crate::words::{HIGH, below, is, words};

/// Bytes of one component.
const COMPONENT: usize = 255;

/// An absolute path without `.`, `..`, empty components or a trailing `/`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NormalPath<'s>(Cow<'s, str>);

impl<'s> NormalPath<'s> {
    /// Normalises a path.
    ///
    /// # Errors
    /// `NotAbsolute`, `AboveRoot`, `BadName`, `TooDeep`: the defect that gate 4
    /// reports.
    #[inline]
    pub fn parse(path: Cow<'s, str>) -> Result<Self, Refusal> {
        if is_plain(path.as_bytes()) { Ok(Self(path)) } else { Self::reduce(&path) }
    }

    /// Apart from what has nothing to be reduced, so that the latter stays small.
    #[cold]
    fn reduce(path: &str) -> Result<Self, Refusal> {
        let rest = path.strip_prefix('/').ok_or(Refusal::NotAbsolute)?;
        if path.len() > PATH {
            return Err(Refusal::TooDeep);
        }
        let mut names = Vec::new();
        for component in rest.split('/') {
            match component {
                "" | "." => {}
                ".." => drop(names.pop().ok_or(Refusal::AboveRoot)?),
                name => names.push(check(name)?),
            }
            if names.len() > PATH_DEPTH {
                return Err(Refusal::TooDeep);
            }
        }
        Ok(Self(Cow::Owned(format!("/{}", names.join("/")))))
    }

    /// One that is normal at a glance; there is no escape in it, either.
    pub(crate) fn plain(path: &'s str) -> Option<Self> {
        is_plain(path.as_bytes()).then_some(Self(Cow::Borrowed(path)))
    }

    /// Its one spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its components; none for the root.
    pub fn components(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The same path, independent of the sentence it stood in.
    pub fn into_owned(self) -> NormalPath<'static> {
        NormalPath(Cow::Owned(self.0.into_owned()))
    }
}

/// A name as protected names and deny entries compare it: NFD, case-folded.
/// Names of plain lower-case ASCII are their own fold.
pub fn fold(name: &str) -> Cow<'_, str> {
    // Without a branch, as most are.
    if name.bytes().fold(true, |all, byte| all & byte.is_ascii() & !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    if name.is_ascii() {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    // By way of upper case, which maps both `ß` and `ſ` to what `SS` and `S` fold to; lower case
    // first, since `ẞ` is its own upper case.
    let name = decomposed(name);
    let upper = name.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase);
    let lower = upper.flat_map(char::to_lowercase);
    Cow::Owned(decomposed(&lower.collect::<String>()).into_owned())
}

/// A text in NFD, in which one that is spelled otherwise is the same.
pub(crate) fn decomposed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut parts = Vec::with_capacity(text.len());
    for char in text.chars() {
        decompose_canonical(char, |part| parts.push((canonical_combining_class(part), part)));
    }
    // What combines stands in the order of its classes.
    for marks in parts.chunk_by_mut(|_, (class, _)| *class != 0) {
        marks.sort_by_key(|(class, _)| *class);
    }
    Cow::Owned(parts.into_iter().map(|(_, part)| part).collect())
}

fn check(name: &str) -> Result<&str, Refusal> {
    if name.len() > COMPONENT {
        return Err(Refusal::TooDeep);
    }
    let odd =
        |char: char| char.is_control() || matches!(char, ':' | '\\') || is_default_ignorable(char);
    let bad = name.ends_with(['.', ' ']) || name.chars().any(odd) || is_short_name(name);
    if bad { Err(Refusal::BadName) } else { Ok(name) }
}

/// Whether a path is one of many that are normal at a glance: short, printable ASCII,
/// nothing in it that another rule is about.
fn is_plain(path: &[u8]) -> bool {
    let ([b'/', rest @ ..], [before @ .., last]) = (path, path) else { return false };
    let is_bad = |(word, before)| {
        let ends = is(before, b'/') | is(before, b'.') | is(before, b' ');
        let odd = is(word, b':') | is(word, b'\\') | is(word, b'~') | is(word, 0x7f);
        (word & HIGH) | below(word, b' ') | odd | (is(word, b'/') & ends) != 0
    };
    // So short a path cannot be too deep.
    rest.len() < 2 * PATH_DEPTH
        && !matches!(last, b'/' | b'.' | b' ')
        && !words(rest).zip(words(before)).any(is_bad)
}

/// The form in which file systems abbreviate long names: `GIT~1`, `PROGRA~1.TXT`.
fn is_short_name(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let Some((head, digits)) = stem.rsplit_once('~') else { return false };
    stem.len() <= 8
        && extension.len() <= 3
        && !extension.contains('.')
        && !head.is_empty()
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `Default_Ignorable_Code_Point` of the Unicode Character Database
/// (`DerivedCoreProperties.txt`, version 16).
pub(crate) const fn is_default_ignorable(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization as _;

    #[test]
    fn i11_every_spelling_has_one_normal_form_or_a_defect() {
        let long = "a".repeat(256);
        let deep = "/d".repeat(65);
        let edge = "/d".repeat(64);
        let table: &[(&str, Result<&str, Refusal>)] = &[
            ("/", Ok("/")),
            ("//", Ok("/")),
            ("/.", Ok("/")),
            ("/./", Ok("/")),
            ("/data", Ok("/data")),
            ("/data/", Ok("/data")),
            ("/data//", Ok("/data")),
            ("//data", Ok("/data")),
            ("/data//a", Ok("/data/a")),
            ("/data/./a", Ok("/data/a")),
            ("/./data/a/.", Ok("/data/a")),
            ("/data/b/../a", Ok("/data/a")),
            ("/data/../etc/passwd", Ok("/etc/passwd")),
            ("/data/a/../../etc", Ok("/etc")),
            ("/data/..", Ok("/")),
            ("/a/b/c/../../..", Ok("/")),
            ("/..", Err(Refusal::AboveRoot)),
            ("/../etc", Err(Refusal::AboveRoot)),
            ("/data/../../etc", Err(Refusal::AboveRoot)),
            ("/./../x", Err(Refusal::AboveRoot)),
            ("", Err(Refusal::NotAbsolute)),
            ("data/a", Err(Refusal::NotAbsolute)),
            ("./a", Err(Refusal::NotAbsolute)),
            ("../a", Err(Refusal::NotAbsolute)),
            ("~/a", Err(Refusal::NotAbsolute)),
            ("C:/a", Err(Refusal::NotAbsolute)),
            ("\\data", Err(Refusal::NotAbsolute)),
            ("/data/a\0", Err(Refusal::BadName)),
            ("/data/\0/a", Err(Refusal::BadName)),
            ("/data/a\n", Err(Refusal::BadName)),
            ("/data/a\tb", Err(Refusal::BadName)),
            ("/data/\u{7f}", Err(Refusal::BadName)),
            ("/data/\u{85}", Err(Refusal::BadName)),
            ("/data/\u{1b}[0m", Err(Refusal::BadName)),
            ("/data/a.", Err(Refusal::BadName)),
            ("/data/a..", Err(Refusal::BadName)),
            ("/data/...", Err(Refusal::BadName)),
            ("/data/a ", Err(Refusal::BadName)),
            ("/data/ ", Err(Refusal::BadName)),
            ("/data/.. /a", Err(Refusal::BadName)),
            ("/data/a./b", Err(Refusal::BadName)),
            ("/data/a:b", Err(Refusal::BadName)),
            ("/data/a::$DATA", Err(Refusal::BadName)),
            ("/data/a\\b", Err(Refusal::BadName)),
            ("/data\\..\\etc", Err(Refusal::BadName)),
            ("/data/GIT~1", Err(Refusal::BadName)),
            ("/data/git~1/config", Err(Refusal::BadName)),
            ("/data/PROGRA~1.TXT", Err(Refusal::BadName)),
            ("/data/a~12", Err(Refusal::BadName)),
            ("/data/a~", Ok("/data/a~")),
            ("/data/notes~old.txt", Ok("/data/notes~old.txt")),
            ("/data/a~1b", Ok("/data/a~1b")),
            ("/data/longname~1", Ok("/data/longname~1")),
            ("/data/%2e%2e/a", Ok("/data/%2e%2e/a")),
            ("/data/%2E", Ok("/data/%2E")),
            ("/data/%00", Ok("/data/%00")),
            ("/data/.git", Ok("/data/.git")),
            ("/data/.gi\u{200c}t", Err(Refusal::BadName)),
            ("/data/SOUL\u{ad}.md", Err(Refusal::BadName)),
            ("/data/a\u{202e}b", Err(Refusal::BadName)),
            ("/data/a\u{feff}", Err(Refusal::BadName)),
            ("/data/a\u{e0041}", Err(Refusal::BadName)),
            ("/data/\u{fe0f}", Err(Refusal::BadName)),
            ("/data/e\u{301}", Ok("/data/e\u{301}")),
            ("/data/\u{e9}", Ok("/data/\u{e9}")),
            ("/data/\u{ff0e}\u{ff0e}/a", Ok("/data/\u{ff0e}\u{ff0e}/a")),
            ("/data/a\u{2215}b", Ok("/data/a\u{2215}b")),
            ("/data/ a", Ok("/data/ a")),
            ("/data/.hidden", Ok("/data/.hidden")),
            ("/data/a..b", Ok("/data/a..b")),
            (&edge, Ok(&edge)),
            (&deep, Err(Refusal::TooDeep)),
        ];
        assert!(table.len() >= 60);
        for (path, expected) in table {
            let got = NormalPath::parse(Cow::Borrowed(path));
            assert_eq!(got.as_ref().map(NormalPath::as_str).map_err(|e| *e), *expected, "{path:?}");
            if let Ok(normal) = got {
                let again = NormalPath::parse(Cow::Borrowed(normal.as_str()));
                assert_eq!(again.as_ref(), Ok(&normal), "normal forms are fixed points");
            }
        }
        let path = alloc::format!("/{long}");
        assert_eq!(NormalPath::parse(path.into()), Err(Refusal::TooDeep));
        let path = "/a/..".repeat(1000);
        assert_eq!(NormalPath::parse(path.into()), Err(Refusal::TooDeep));
    }

    #[test]
    fn folding_meets_what_file_systems_and_people_confuse() {
        for (a, b) in [
            ("SOUL.md", "soul.MD"),
            (".GIT", ".git"),
            ("E\u{301}", "\u{e9}"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{212a}ey", "key"),
            ("file\u{17f}", "FILES"),
            ("\u{3a3}", "\u{3c2}"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        assert_ne!(fold("a"), fold("b"));
    }

    #[test]
    fn what_is_folded_is_its_own_fold() {
        for char in '\0'..=char::MAX {
            let once = fold(&String::from(char)).into_owned();
            assert_eq!(fold(&once), once, "{char:?}");
        }
        assert_eq!(fold("STRA\u{1e9e}E.txt"), "strasse.txt");
    }

    #[test]
    fn decomposing_is_what_the_standard_says() {
        let marks = "e\u{301}\u{323}\u{315}\u{30c}o\u{323}\u{301}\u{1e69}\u{d4db}\u{345}\u{300}";
        assert_eq!(decomposed(marks), marks.nfd().collect::<String>());
        for char in '\0'..=char::MAX {
            let text = String::from_iter(['\u{301}', char, '\u{323}', char]);
            assert_eq!(decomposed(&text), text.nfd().collect::<String>(), "{char:?}");
        }
    }
}
