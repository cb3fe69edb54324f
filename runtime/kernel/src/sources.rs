//! Where each argument of a recorded call came from
//!
//! Three sources there are: the line that the human typed, a held value that an
//! earlier call brought, and the agent's own words. A record has the sentence
//! and the digests of what it named; the rest stands in the records before it.
//!
//! # Not here
//! The account that this is a part of (`account`). Citation by other names than
//! the whole path, which takes the names of the world (`synapse-boundary`).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use synapse_abi::registry::{Argument, Role};
use synapse_boundary::cite::{Bearer, Names, Wanted, cite};

use crate::record::{Kind, tag};
use crate::verify::Record;

/// An argument as its record has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Its name in the registry.
    pub name: &'static str,
    /// What it is for.
    pub role: Role,
    /// Its JSON; a long content is cut.
    pub value: &'a str,
    /// The held values that it names.
    pub held: Vec<Brought>,
    /// Where the human's line has the same words, in bytes.
    pub typed: Option<Range<usize>>,
}

/// A held value that a call named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// Its number.
    pub value: u64,
    /// The decision whose reply it is; none where the log does not tell.
    pub record: Option<u64>,
}

/// The arguments of a decision, with the records before it.
pub(crate) fn sources<'a>(decision: &Record<'a>, records: &[Record<'a>]) -> Vec<Source<'a>> {
    let sentence = decision.field(tag::SENTENCE).and_then(|bytes| str::from_utf8(bytes).ok());
    let (Some(sentence), Some(primitive)) = (sentence, decision.primitive) else {
        return Vec::new();
    };
    let line = line(decision.task, records);
    let named: Vec<u64> = held(sentence).collect();
    let source = |argument: &'static Argument| {
        let value = stands(sentence, argument.name)?;
        let mut held: Vec<_> = held(value).collect();
        if value.starts_with(CUT) {
            // The digests tell of what no longer stands in the sentence.
            held.extend(digests(decision).map(|(number, _)| number).filter(|n| !named.contains(n)));
        }
        Some(Source {
            name: argument.name,
            role: argument.role,
            value,
            held: held.into_iter().map(|value| brought(value, decision, records)).collect(),
            typed: line
                .as_deref()
                .and_then(|line| cite(line, 0, wanted(value, argument.name), &Nowhere)),
        })
    };
    primitive.row().arguments.iter().filter_map(source).collect()
}

/// What a line is searched for: a number, or a text as it stands in the sentence.
fn wanted<'a>(value: &'a str, noun: &'a str) -> Wanted<'a> {
    match value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => Wanted::Text(text, noun),
        None => Wanted::Number(value, noun),
    }
}

/// The JSON of the argument with this name.
pub(crate) fn stands<'a>(sentence: &'a str, name: &str) -> Option<&'a str> {
    let (_, mut rest) = sentence.split_once("\"arguments\":{")?;
    while let Some((key, after)) = rest.strip_prefix('"').and_then(|rest| rest.split_once("\":")) {
        let (value, after) = after.split_at_checked(width(after))?;
        if key == name {
            return Some(value);
        }
        rest = after.strip_prefix(',')?;
    }
    None
}

/// Bytes of the JSON value that a text begins with.
fn width(text: &str) -> usize {
    let (mut depth, mut inside, mut escaped) = (0u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => inside = !inside,
            _ if inside => {}
            b',' | b'}' | b']' if depth == 0 => return at,
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

/// The held values that a JSON value names. A quote inside a string is escaped,
/// so that no text looks like a reference.
fn held(value: &str) -> impl Iterator<Item = u64> {
    FORMS.into_iter().flat_map(move |form| {
        value.split(form).skip(1).filter_map(|rest| rest.split([',', '}']).next()?.parse().ok())
    })
}

/// Which decision a held value is the reply of: numbers are given in order, and
/// the digest tells where a reply found no room and got none.
fn brought(value: u64, decision: &Record<'_>, records: &[Record<'_>]) -> Brought {
    let digest = digests(decision).find(|(number, _)| *number == value).map(|(_, digest)| digest);
    let replies = records.iter().filter(|record| {
        record.kind == Kind::Outcome
            && record.task == decision.task
            && record.sequence < decision.sequence
            && cause(record, records).is_some_and(is_held)
    });
    let skipped = usize::try_from(value.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut candidates = replies.skip(skipped);
    let found = candidates.find(|outcome| {
        let told = outcome.field(tag::OUTCOME).and_then(|tail| tail.get(8..));
        digest.is_none() || told == digest
    });
    Brought { value, record: found.and_then(|outcome| outcome.cause) }
}

/// Number and digest of each held value that a decision was about.
fn digests<'a>(decision: &Record<'a>) -> impl Iterator<Item = (u64, &'a [u8])> {
    let held = decision.field(tag::HELD).unwrap_or_default().chunks_exact(40);
    let held = held.filter_map(|held| held.split_first_chunk::<8>());
    held.map(|(number, digest)| (u64::from_le_bytes(*number), digest))
}

fn cause<'r, 'a>(record: &Record<'a>, records: &'r [Record<'a>]) -> Option<&'r Record<'a>> {
    records.get(usize::try_from(record.cause?).ok()?)
}

/// Whether the reply stayed with the kernel.
pub(crate) const fn is_held(decision: &Record<'_>) -> bool {
    decision.class & HELD != 0
}

/// The line that the human typed for a task, as far as its start record has it. What a
/// parent says to a child is none.
fn line(task: u64, records: &[Record<'_>]) -> Option<String> {
    let start = start(task, records).filter(|start| start.cause.is_none())?;
    let text = str::from_utf8(start.field(tag::TEXT)?).ok()?;
    // Nothing but a key has its quotes bare.
    let (_, line) = text.rsplit_once(",\"task\":\"")?;
    Some(plain(line.strip_suffix("\"}")?))
}

/// What a task has of a grant, as its start record says.
pub(crate) fn grant<'a>(task: u64, records: &[Record<'a>]) -> Option<&'a str> {
    let text = str::from_utf8(start(task, records)?.field(tag::TEXT)?).ok()?;
    // An approval's is the digest of one.
    let at = text.find("\"grant\":{")?.checked_add("\"grant\":".len())?;
    let grant = text.get(at..)?;
    grant.get(..width(grant))
}

fn start<'r, 'a>(task: u64, records: &'r [Record<'a>]) -> Option<&'r Record<'a>> {
    records.iter().find(|record| record.kind == Kind::TaskStart && record.task == task)
}

/// A JSON string without its escapes; `\u` only spells controls here.
fn plain(escaped: &str) -> String {
    let mut text = String::with_capacity(escaped.len());
    let mut rest = escaped.chars();
    while let Some(char) = rest.next() {
        if char != '\\' {
            text.push(char);
            continue;
        }
        match rest.next() {
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                text.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            other => text.extend(other),
        }
    }
    text
}

/// A world of which nothing is known: words name what they spell.
struct Nowhere;

impl Names for Nowhere {
    fn exists(&self, _: &str) -> bool {
        false
    }

    fn bearer(&self, _: &str) -> Bearer<'_> {
        Bearer::Nobody
    }

    fn mounts(&self) -> &[(String, String)] {
        &[]
    }
}

impl Source<'_> {
    /// It in words, without its value.
    #[must_use]
    pub fn told(&self) -> String {
        if let Some(span) = &self.typed {
            return format!("the human's line, bytes {} to {}", span.start, span.end);
        }
        let values = self.held.iter().map(|held| match held.record {
            Some(record) => format!("held value {}, brought by #{record}", held.value),
            None => format!("held value {}", held.value),
        });
        let mut told: Vec<_> = values.collect();
        // A reference or a selector is nothing but held; all else has words of its own.
        if !FORMS.iter().any(|form| self.value.starts_with(form)) {
            told.push("the agent's own words".to_owned());
        }
        told.join("; ")
    }
}

/// The bit of a class that tells of a held reply.
const HELD: u8 = 4;
/// How a reference and a selector begin.
const FORMS: [&str; 2] = ["{\"$held\":", "{\"$select\":"];
/// How a content begins that its record has cut.
const CUT: &str = "{\"$cut\":";

#[cfg(test)]
mod tests {
    use super::{held, plain, stands};
    use alloc::vec::Vec;

    #[test]
    fn argument_stands_where_the_sentence_has_it() {
        let sentence = r#"{"name":"fs_write","arguments":{"path":"/a\",\"mode\":","content":{"parts":["}",{"$held":3}]},"mode":"create"},"hold":true}"#;
        assert_eq!(stands(sentence, "path"), Some(r#""/a\",\"mode\":""#));
        assert_eq!(stands(sentence, "content"), Some(r#"{"parts":["}",{"$held":3}]}"#));
        assert_eq!(stands(sentence, "mode"), Some(r#""create""#));
        assert_eq!(stands(sentence, "old"), None);
        assert_eq!(stands(r#"{"name":"clock_read","arguments":{}}"#, "path"), None);
        let cut = r#"{"name":"console_write","arguments":{"content":{"$cut":[99,"ab"]}}}"#;
        assert_eq!(stands(cut, "content"), Some(r#"{"$cut":[99,"ab"]}"#));
    }

    #[test]
    fn only_references_name_held_values() {
        let named = |value| held(value).collect::<Vec<_>>();
        assert_eq!(named(r#"{"parts":["{\"$held\":1}",{"$held":3},{"$held":5}]}"#), [3, 5]);
        assert_eq!(named(r#"{"$select":2,"take":"path"}"#), [2]);
        assert!(named(r#"{"$$held":2}"#).is_empty());
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(plain(r#"a\"\\\n\u001bé"#), "a\"\\\n\u{1b}é");
    }
}
