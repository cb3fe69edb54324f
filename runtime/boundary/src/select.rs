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
use alloc::vec::Vec;

use crate::parse::{elements, is_json, values};
use crate::scope::Decimal;
use crate::sentence::string as text;

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

/// The field, the comparison and the literal of each condition, the last two as JSON:
/// what the human's line has to name.
pub fn conditions(selector: &str) -> impl Iterator<Item = (Cow<'_, str>, &str, &str)> {
    elements(field(selector, "where").unwrap_or_default()).filter_map(|condition| {
        let mut parts = elements(condition);
        Some((text(parts.next()?)?, parts.next()?, parts.next()?))
    })
}

/// The one record that comes first in an order, `["max",field]` or `["min",field]`.
fn foremost<'r>(order: &str, records: impl Iterator<Item = &'r str>) -> Option<&'r str> {
    let mut parts = elements(order);
    let (which, name) = (parts.next()?, text(parts.next()?)?);
    // A number is ordered by its value, a text by its bytes.
    let mut keyed = Vec::new();
    for record in records {
        let value = field(record, &name)?;
        let key = Decimal::parse(value).map(Ok).or_else(|| Some(Err(text(value)?)))?;
        keyed.try_reserve(1).ok()?;
        keyed.push((key, record));
    }
    keyed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let is_mixed = keyed.first()?.0.is_ok() != keyed.last()?.0.is_ok();
    if which == "\"max\"" {
        keyed.reverse();
    }
    let (top, record) = keyed.first()?;
    let is_tied = keyed.get(1).is_some_and(|(next, _)| next == top);
    (!is_mixed && !is_tied).then_some(*record)
}

/// The value of a key that stands once.
pub(crate) fn field<'j>(object: &'j str, name: &str) -> Option<&'j str> {
    let mut values = values(object, name);
    values.next().filter(|_| values.next().is_none())
}
