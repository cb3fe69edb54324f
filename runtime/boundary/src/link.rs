//! Links in a text that leaves under a warrant.
//!
//! A link lets a reader be led, and what opens it tell, somewhere that nobody
//! chose: it travels only where the human typed it or it leads back to the
//! destination. What only may be a link is one.
//!
//! # Invariants
//! - Content is read here only to refuse, never to permit.
//!
//! # Not here
//! Held values that are passed whole (`warrant`).

use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::limits;
use unicode_normalization::char::is_combining_mark;

use crate::cite::{canonical, is_after, words};
use crate::path::is_default_ignorable;
use crate::url::{Host, Url};

/// Whether every link in a text is one that a line of the human's has, or leads
/// to the destination's host.
///
/// # Errors
/// [`Refusal::Link`] where one does not.
pub fn vouched(
    text: &str,
    destination: Option<Host<'_>>,
    lines: &[impl AsRef<str>],
) -> Result<(), Refusal> {
    let words = || lines.iter().flat_map(|line| words(line.as_ref()));
    if words().any(|word| word == text) {
        return Ok(());
    }
    let typed: Vec<String> = words().filter(|word| begins("", word)).map(canonical).collect();
    let leads_back = |url: &str| Url::parse(url).is_ok_and(|url| Some(url.host()) == destination);
    // As it stands, and as a browser would read it.
    for text in [text, &decoded(text)] {
        let mut next = 0;
        for (at, _) in text.char_indices() {
            let (before, rest) = text.split_at_checked(at).unwrap_or_default();
            if at < next || !begins(before, rest) {
                continue;
            }
            let link = extent(rest);
            if link.len() > limits::URL {
                return Err(Refusal::Link);
            }
            let url = canonical(link);
            if typed.contains(&url) {
                next = at.saturating_add(link.len());
            } else if !link.is_empty() && !leads_back(&url) {
                return Err(Refusal::Link);
            }
        }
    }
    Ok(())
}

/// Whether a link begins between these two texts.
fn begins(before: &str, rest: &str) -> bool {
    if slashes(rest).is_some_and(|rest| rest.starts_with(|char| is_word(char) || char == '[')) {
        // Unless a scheme began it already.
        return !before.strip_suffix(':').is_some_and(|scheme| scheme.ends_with(is_word));
    }
    is_target(before, rest) || (!before.ends_with(is_word) && is_place(rest))
}

/// Whether a text begins with a scheme, `www.`, or a dotted name with what makes
/// a link of it.
fn is_place(text: &str) -> bool {
    let end = text.find(|char| !is_word(char)).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or_default();
    let plain = word.trim_start_matches(|char: char| !char.is_alphanumeric());
    let starts =
        |start: &str| plain.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    let port = rest.strip_prefix(':').unwrap_or_default();
    let query = rest.strip_prefix('?').unwrap_or_default();
    let name = word.strip_suffix(DOTS).unwrap_or(word);
    let is_dotted = name.rsplit_once(DOTS).is_some_and(|(_, last)| {
        last.starts_with(|char: char| is_word(char) && !char.is_numeric())
    });
    starts("www.")
        || slashes(port).is_some()
        || (starts("http") && port.starts_with(|char: char| !char.is_whitespace()))
        || (is_dotted
            && (rest.starts_with('/')
                || port.starts_with(|char: char| char.is_ascii_digit())
                || query
                    .starts_with(|char: char| !char.is_whitespace() && !"\"<>)]".contains(char))))
}

/// Whether the target of a Markdown or HTML link begins here.
fn is_target(before: &str, rest: &str) -> bool {
    let is_blank = |char: char| char.is_whitespace() || matches!(char, '<' | '"' | '\'' | '`');
    if rest.starts_with(is_blank) {
        return false;
    }
    let head = before.trim_end_matches(is_blank);
    let attribute = head.strip_suffix('=').unwrap_or_default().trim_end();
    let name =
        attribute.rsplit(|char: char| !char.is_ascii_alphabetic()).next().unwrap_or_default();
    head.ends_with("](") || TARGETS.iter().any(|target| target.eq_ignore_ascii_case(name))
}

/// What follows two slashes.
fn slashes(text: &str) -> Option<&str> {
    text.strip_prefix(SLASHES)?.strip_prefix(SLASHES)
}

/// A link, from its beginning to its end, less what only follows it.
fn extent(text: &str) -> &str {
    let is_end = |(at, char): &(usize, char)| {
        char.is_whitespace()
            || matches!(char, '"' | '<' | '>')
            || text.get(*at..).is_some_and(|rest| rest.starts_with("]("))
    };
    let end = text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at);
    let link = text.get(..end).unwrap_or_default();
    link.trim_end_matches(|char| is_after(char) || matches!(char, '*' | '|'))
}

/// A text with the references by which HTML spells characters replaced.
fn decoded(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut decoded = String::from(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (char, rest) = reference(piece).unwrap_or(('&', piece));
        decoded.push(char);
        decoded.push_str(rest);
    }
    decoded
}

/// The character that a reference stands for, and what follows it.
fn reference(text: &str) -> Option<(char, &str)> {
    let Some(number) = text.strip_prefix('#') else {
        return NAMED.iter().find_map(|(name, char)| Some((*char, text.strip_prefix(name)?)));
    };
    let hex = number.strip_prefix(['x', 'X']);
    let (digits, radix) = hex.map_or((number, 10), |hex| (hex, 16));
    let end = digits.find(|char: char| !char.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    let char = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    Some((char, rest.strip_prefix(';').unwrap_or(rest)))
}

/// What browsers take for a slash.
const SLASHES: [char; 2] = ['/', '\\'];
/// What they take for the dot of a name.
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];
/// Attributes that hold a link.
const TARGETS: &[&str] = &["href", "src", "srcset", "action", "background", "poster", "url"];
/// References by name to what makes a link.
const NAMED: &[(&str, char)] =
    &[("colon;", ':'), ("sol;", '/'), ("bsol;", '\\'), ("period;", '.'), ("quest;", '?')];

/// Also what stands on letters, or is not seen between them.
fn is_word(char: char) -> bool {
    char.is_alphanumeric()
        || matches!(char, '-' | '_')
        || DOTS.contains(&char)
        || is_combining_mark(char)
        || is_default_ignorable(char)
}
