//! Selectors: the one record of a held reply that is meant.
//!
//! The human said which ("the largest"), the reply says what that is. It is
//! evaluated here, so that no model chooses among what strangers may have named.
//!
//! # Invariants
//! - Absent, tied, of mixed kinds or malformed selects nothing.
//! - Equal JSON is equal bytes: what is not spelled as the door spells it is
//!   malformed.
//!
//! # Not here
//! Whether the reply is complete and of a verb that may be selected from
//! (`warrant`); whether the result is in scope (gate 4).

use alloc::borrow::Cow;
use alloc::format;
use core::cmp::Ordering;
use core::mem::discriminant;

use crate::parse::{elements, is_json, members};
use crate::scope::Decimal;
use crate::sentence::Text;

/// What a selector takes from a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken<'r> {
    /// A text.
    Text(Cow<'r, str>),
    /// Anything else, a list whole, as its JSON.
    Json(&'r str),
}

/// What a selector of gate 1 takes from a complete reply, an array of objects;
/// `None` where no record is meant, or more than one. `directory` is that of an
/// `fs_list` reply: there `path` is the directory and the name.
#[must_use]
pub fn resolve<'r>(selector: &str, reply: &'r [u8], directory: Option<&str>) -> Option<Taken<'r>> {
    let reply = str::from_utf8(reply).ok().filter(|reply| is_json(reply))?;
    let mut records = elements(reply).filter(|record| {
        conditions(selector).all(|(name, how, literal)| {
            field(record, &name).is_some_and(|value| match how {
                // A quote ends a string, so what precedes the last one is its prefix.
                "\"prefix\"" => {
                    literal.strip_suffix('"').is_some_and(|prefix| value.starts_with(prefix))
                }
                _ => value == literal,
            })
        })
    });
    let record = match field(selector, "order") {
        Some(order) => foremost(order, records)?,
        None => records.next().filter(|_| records.next().is_none())?,
    };
    let take = text(field(selector, "take")?)?;
    if let (Some(directory), "path") = (directory, &*take) {
        let name = text(field(record, "name")?)?;
        return Some(Taken::Text(format!("{}/{name}", directory.trim_end_matches('/')).into()));
    }
    let value = field(record, &take)?;
    Some(text(value).map_or(Taken::Json(value), Taken::Text))
}

/// The field and the literal of each condition, the literal as JSON: what the
/// human's line has to name.
pub fn literals(selector: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    conditions(selector).map(|(name, _, literal)| (name, literal))
}

fn conditions(selector: &str) -> impl Iterator<Item = (Cow<'_, str>, &str, &str)> {
    elements(field(selector, "where").unwrap_or_default()).filter_map(|condition| {
        let mut parts = elements(condition);
        Some((text(parts.next()?)?, parts.next()?, parts.next()?))
    })
}

/// The one record that comes first in an order, `["max",field]` or `["min",field]`.
fn foremost<'r>(order: &str, records: impl Iterator<Item = &'r str>) -> Option<&'r str> {
    let mut parts = elements(order);
    let first = if parts.next()? == "\"max\"" { Ordering::Greater } else { Ordering::Less };
    let name = text(parts.next()?)?;
    let mut best: Option<(Key<'_>, Option<&str>)> = None;
    for record in records {
        let key = Key::of(field(record, &name)?)?;
        let place = best.as_ref().map_or(Some(first), |(top, _)| key.compare(top))?;
        if place == first {
            best = Some((key, Some(record)));
        } else if place == Ordering::Equal {
            best = Some((key, None));
        }
    }
    best?.1
}

/// What records are ordered by: numbers by value, texts by their bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'r> {
    Number(Decimal),
    Text(Cow<'r, str>),
}

impl<'r> Key<'r> {
    fn of(json: &'r str) -> Option<Self> {
        text(json).map(Self::Text).or_else(|| Decimal::parse(json).map(Self::Number))
    }

    fn compare(&self, other: &Self) -> Option<Ordering> {
        (discriminant(self) == discriminant(other)).then(|| self.cmp(other))
    }
}

/// The value of a key that stands once.
fn field<'j>(object: &'j str, name: &str) -> Option<&'j str> {
    let mut values = members(object).filter(|(key, _)| *key.decode() == *name);
    values.next().filter(|_| values.next().is_none()).map(|(_, value)| value)
}

/// What a JSON string says.
fn text(json: &str) -> Option<Cow<'_, str>> {
    Some(Text(json.strip_prefix('"')?.strip_suffix('"')?).decode())
}
