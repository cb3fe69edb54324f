//! Citation: where a human's own line names a target.
//!
//! A warrant is worth what was typed: this finds a target among the words of one
//! line, whole, or says that it is not there. Where two readings are possible
//! there is none, since a model that was fooled chooses the target and a stranger
//! may have chosen the names of files.
//!
//! # Invariants
//! - I13: a span covers whole tokens of the line, and they name the target and
//!   nothing else.
//!
//! # Not here
//! Which lines are the human's, and what a citation still funds (`warrant`); the
//! walk of the mounts (the kernel's name index).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use synapse_abi::limits;

use crate::path::{NormalPath, decomposed};
use crate::protected::is_protected;
use crate::scope::Decimal;

/// What the kernel's index knows about names inside the granted mounts. One that
/// says no more knows of none.
pub trait Names {
    /// Whether the index has something at this normal guest path.
    fn exists(&self, _path: &str) -> bool {
        false
    }
    /// Who bears this bare name (NFD, case-folded).
    fn bearer(&self, _name: &str) -> Bearer<'_> {
        Bearer::Nobody
    }
    /// Guest root and host path of each mount, both absolute and normal; the host
    /// path is empty where the board has none.
    fn mounts(&self) -> &[(String, String)] {
        &[]
    }
}

/// Which granted files bear a bare name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearer<'a> {
    /// None does, or the index is not complete.
    Nobody,
    /// One does: its guest path.
    One(&'a str),
    /// More than one does.
    Several,
}

/// What a line is searched for.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// A file or a directory, or what the stars of a pattern behind it reach.
    Path(&'a NormalPath<'a>, &'a str),
    /// A canonical URL.
    Url(&'a str),
    /// A canonical host.
    Host(&'a str),
    /// A port.
    Port(u64),
    /// A number of the grammar, and what it is a number of: the name of its
    /// argument or field, each word of which is a noun. What separates thousands
    /// here is a point elsewhere, so `1,000` names no number.
    Number(&'a str, &'a str),
    /// Any other text, and what it is, for a text that is a short number.
    Text(&'a str, &'a str),
    /// One of these words. Whoever asks keeps it apart from the span of the target: a
    /// file may be called `delete`.
    Word(&'a [&'a str]),
}

/// The first place from a byte of the line on where it names what is wanted, in bytes;
/// `None` where it does not, or where a longer name that exists stands in the same
/// place. Nothing names a whole mount, or by a pattern what is protected.
pub fn cite(
    line: &str,
    from: usize,
    wanted: Wanted<'_>,
    names: &dyn Names,
) -> Option<Range<usize>> {
    let tokens: Vec<Token> = tokens(line).collect();
    let mut runs = runs(line, &tokens, wanted.width(names)).filter(|run| run.start >= from);
    runs.find(|run| wanted.is_named(line, run, names) && !is_outdone(line, &tokens, run, names))
}

/// Whether a mount is the path or lies below it.
#[must_use]
pub fn covers_mount(path: &NormalPath<'_>, names: &dyn Names) -> bool {
    names.mounts().iter().any(|(guest, _)| below(guest, path.as_str()).is_some())
}

impl Wanted<'_> {
    /// How many tokens may name it: more than one where it, or a host path, has blanks.
    fn width(self, names: &dyn Names) -> usize {
        let text = match self {
            Self::Path(path, _) => path.as_str(),
            Self::Text(text, _) => text,
            Self::Word(words) => {
                return words.iter().map(|word| word.split(' ').count()).max().unwrap_or(1);
            }
            Self::Url(_) | Self::Host(_) | Self::Port(_) | Self::Number(..) => return 1,
        };
        let words = |text: &str| text.split(char::is_whitespace).count();
        let hosts = names.mounts().iter().map(|(_, host)| words(host)).max();
        words(text).saturating_add(hosts.unwrap_or(0))
    }

    /// Whether a run of tokens names it.
    fn is_named(self, line: &str, run: &Range<usize>, names: &dyn Names) -> bool {
        let text = line.get(run.clone()).unwrap_or_default();
        let (before, after) = beside(line, run);
        let has_noun = |number, nouns: &str| {
            !is_short(number) || nouns.split(['_', '-', '.', ' ']).any(|noun| same(before, noun))
        };
        match self {
            Self::Path(path, stars) => {
                let text = text.strip_suffix(stars).unwrap_or(text);
                !covers_mount(path, names)
                    && (stars.is_empty() || !is_protected(path))
                    && has_noun(text, "file folder directory")
                    && meaning(text, names).as_deref() == Some(path.as_str())
            }
            Self::Url(url) => {
                let place = text.split('#').next().unwrap_or_default();
                (place.contains("://") || is_place(place))
                    && canonical(place) == url
                    && !is_name(text, names)
            }
            Self::Host(host) => {
                authority(text).0.eq_ignore_ascii_case(host) && !is_name(text, names)
            }
            Self::Port(port) => match authority(text) {
                (host, Some(digits)) => is_place(host) && *digits == port.to_string(),
                (text, None) => *text == port.to_string() && has_noun(text, "port"),
            },
            Self::Number(number, nouns) => {
                let plain = text.trim_matches(is_currency);
                let is_money = plain.len() < text.len() || is_money(before) || is_money(after);
                !plain.ends_with('.')
                    && Decimal::parse(plain).is_some_and(|it| Decimal::parse(number) == Some(it))
                    && (is_money || has_noun(number, nouns))
            }
            Self::Text(wanted, nouns) => same(text, wanted) && has_noun(wanted, nouns),
            Self::Word(words) => words.iter().any(|word| same(text, word)),
        }
    }
}

/// A word of a line. It may begin and end anywhere between its outer bounds and
/// its inner ones, which leave out quotes, brackets and stops around it.
#[derive(Clone, Debug)]
struct Token {
    outer: Range<usize>,
    inner: Range<usize>,
}

fn tokens(line: &str) -> impl Iterator<Item = Token> {
    let mut next = 0_usize;
    line.split_inclusive(char::is_whitespace).filter_map(move |piece| {
        let start = next;
        next = next.saturating_add(piece.len());
        let word = piece.trim_end();
        let tail = word.trim_start_matches(is_around);
        let begin = start.saturating_add(word.len().saturating_sub(tail.len()));
        let inner = begin..begin.saturating_add(tail.trim_end_matches(is_after).len());
        let outer = start..start.saturating_add(word.len());
        (!inner.is_empty()).then_some(Token { outer, inner })
    })
}

/// Every token of a line with each of its bounds.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let tokens: Vec<Token> = tokens(line).collect();
    runs(line, &tokens, 1).filter_map(|run| line.get(run)).collect()
}

/// Every run of at most `most` tokens, with each of its bounds.
fn runs(line: &str, tokens: &[Token], most: usize) -> impl Iterator<Item = Range<usize>> {
    let pairs = tokens.iter().enumerate().flat_map(move |(at, first)| {
        tokens.iter().skip(at).take(most).map(move |last| (first, last))
    });
    pairs
        .flat_map(|(first, last)| {
            let ends = last.inner.end..=last.outer.end;
            (first.outer.start..=first.inner.start)
                .flat_map(move |start| ends.clone().map(move |end| start..end))
        })
        .filter(|run| line.get(run.clone()).is_some())
}

/// Whether a name that exists, as long or longer, claims a part of the run.
fn is_outdone(line: &str, tokens: &[Token], run: &Range<usize>, names: &dyn Names) -> bool {
    let near = run.start.saturating_sub(limits::PATH)..run.end.saturating_add(limits::PATH);
    let near: Vec<Token> =
        tokens.iter().filter(|token| near.contains(&token.inner.start)).cloned().collect();
    runs(line, &near, near.len()).any(|other| {
        other != *run
            && (run.len()..=limits::PATH).contains(&other.len())
            && other.start < run.end
            && run.start < other.end
            && line.get(other).is_some_and(|text| is_name(text, names))
    })
}

/// The words before and after a run, where no stop but a colon stands between.
fn beside<'l>(line: &'l str, run: &Range<usize>) -> (&'l str, &'l str) {
    let blank = |char: char| char.is_whitespace() || is_around(char);
    let before = line.get(..run.start).unwrap_or_default();
    let before = before.trim_end_matches(|char| blank(char) || char == ':');
    let before = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let after = line.get(run.end..).unwrap_or_default().trim_start_matches(blank);
    let after = after.split(char::is_whitespace).next().unwrap_or_default();
    (before.trim_start_matches(is_around), after.trim_end_matches(is_after))
}

/// The one path that a text means: the only one that exists of those that it may
/// stand for, else the only file that bears it as its name, else the only one.
fn meaning(text: &str, names: &dyn Names) -> Option<String> {
    let mut paths = readings(text, names);
    if paths.iter().any(|path| names.exists(path)) {
        paths.retain(|path| names.exists(path));
    } else {
        match bearer(text, names) {
            Bearer::Nobody => {}
            Bearer::One(path) => {
                let name = path.rsplit('/').next().unwrap_or_default();
                return same(name, text).then(|| path.to_string());
            }
            Bearer::Several => return None,
        }
    }
    let path = paths.pop();
    path.filter(|_| paths.is_empty())
}

/// Whether something that exists may be meant by a text.
fn is_name(text: &str, names: &dyn Names) -> bool {
    readings(text, names).iter().any(|path| names.exists(path))
        || bearer(text, names) != Bearer::Nobody
}

fn bearer<'n>(text: &str, names: &'n dyn Names) -> Bearer<'n> {
    if text.contains('/') { Bearer::Nobody } else { names.bearer(text) }
}

/// The guest paths that a text may stand for: guest form, host form, or relative
/// to the root of a mount. None climbs, since that would swallow the words before.
fn readings(text: &str, names: &dyn Names) -> Vec<String> {
    let normal = |path: String| Some(NormalPath::parse(path.into()).ok()?.as_str().to_string());
    if text.split('/').any(|component| component == "..") {
        return Vec::new();
    }
    let absolute = normal(text.to_string());
    let mut paths = Vec::new();
    for (guest, host) in names.mounts() {
        let rest = match &absolute {
            Some(path) => below(path, host).map(ToString::to_string),
            None => (!text.starts_with('/')).then(|| format!("/{text}")),
        };
        paths.extend(rest.and_then(|rest| normal(format!("{guest}{rest}"))));
    }
    let is_inside =
        |path: &str| names.mounts().iter().any(|(guest, _)| below(path, guest).is_some());
    paths.extend(absolute.filter(|path| paths.is_empty() || is_inside(path)));
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// What is left of a path below a root.
fn below<'p>(path: &'p str, root: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(root.trim_end_matches('/')).filter(|_| !root.is_empty())?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// A URL as people type it, in its canonical form, if it has one. It is `https`
/// where no scheme stands.
pub(crate) fn canonical(text: &str) -> String {
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let written = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
    let (scheme, rest) =
        written.unwrap_or_else(|| ("https", text.strip_prefix("//").unwrap_or(text)));
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (place, tail) = rest.split_at_checked(end).unwrap_or_default();
    let port = if scheme == "http" { ":80" } else { ":443" };
    let place = place.strip_suffix(port).unwrap_or(place).to_ascii_lowercase();
    let slash = if tail.starts_with('/') { "" } else { "/" };
    let mut escape = 0_u8;
    let tail = tail.chars().map(|char| {
        let is_escaped = escape > 0;
        escape = if char == '%' { 2 } else { escape.saturating_sub(1) };
        if is_escaped { char.to_ascii_uppercase() } else { char }
    });
    format!("{scheme}://{place}{slash}{}", tail.collect::<String>())
}

/// Whether a text without a scheme is meant as a place on the network.
fn is_place(text: &str) -> bool {
    let host = text.split(['/', '?']).next().unwrap_or_default();
    host.contains('.') || host.starts_with('[') || authority(host).0 == "localhost"
}

/// A host and what follows its last colon, if that is a port.
fn authority(text: &str) -> (&str, Option<&str>) {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match text.rsplit_once(':') {
        Some((host, port)) if is_port(port) => (host, Some(port)),
        _ => (text, None),
    }
}

/// Whether two texts are the same NFD and in lower case, one blank wherever the
/// first has some. No further folding: to `fold`, `ı` is an `i`.
fn same(typed: &str, wanted: &str) -> bool {
    let mut words = wanted.split(' ');
    let is = |word: &str, wanted: &str| {
        let [word, wanted] = [word, wanted].map(decomposed);
        word.chars().flat_map(char::to_lowercase).eq(wanted.chars().flat_map(char::to_lowercase))
    };
    let is_next = |word| words.next().is_some_and(|wanted| is(word, wanted));
    typed.split_whitespace().all(is_next) && words.next().is_none()
}

/// Whether a text is a number too short to mean anything by itself.
fn is_short(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits < 4 && Decimal::parse(text).is_some()
}

fn is_money(word: &str) -> bool {
    CURRENCIES.contains(&word) || (!word.is_empty() && word.chars().all(is_currency))
}

const CURRENCIES: &[&str] = &["AUD", "CAD", "CHF", "CNY", "EUR", "GBP", "INR", "JPY", "USD"];

const fn is_currency(char: char) -> bool {
    matches!(char, '$' | '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20cf}')
}

/// Quotes and brackets.
const fn is_around(char: char) -> bool {
    matches!(char, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>'
        | '\u{ab}' | '\u{bb}' | '\u{2018}'..='\u{201f}' | '\u{2039}' | '\u{203a}'
        | '\u{300c}'..='\u{300f}')
}

/// What may follow a token besides.
pub(crate) const fn is_after(char: char) -> bool {
    is_around(char) || matches!(char, '.' | ',' | ';' | ':' | '!' | '?')
}
