//! Holds a document against the table of keys.
//!
//! # Invariants
//! - A value that is [`sound`] has its shape down to its last part, so that
//!   who reads it finds what the table says.
//!
//! # Not here
//! The table (`keys`).

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::VERSION;
use super::keys::{Key, Shape, Unless};
use super::notes::{Notes, harmless, quoted};

pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A file as TOML, if it is.
pub(crate) fn document<'t>(text: &'t str, notes: &mut Notes) -> Option<Value<'t>> {
    match DeTable::parse(text) {
        Ok(document) => Some(Spanned::new(document.span(), DeValue::Table(document.into_inner()))),
        Err(error) => {
            let why = error.message().replace('\n', ", ");
            let at = error.span().unwrap_or(text.len()..text.len());
            notes.mistake(&at, "the file is not TOML", harmless(&why), "correct it here");
            None
        }
    }
}

/// Whether a value has its shape; what it lacks is noted.
pub(crate) fn sound(shape: &Shape, value: &Value<'_>, name: &str, notes: &mut Notes) -> bool {
    let before = notes.mistakes();
    check(shape, value, name, notes);
    notes.mistakes() == before
}

/// Notes what a value lacks of its shape.
fn check(shape: &Shape, value: &Value<'_>, name: &str, notes: &mut Notes) {
    let at = value.span();
    if !fits(shape, value.get_ref()) {
        let (expected, help) = form(shape, name);
        notes.mistake(&at, format!("{name} has the wrong type"), format!("it is {expected}"), help);
        return;
    }
    match shape {
        Shape::Text | Shape::Number | Shape::Flag => {}
        Shape::Version if integer(value) == Some(VERSION) => {}
        Shape::Version => notes.mistake(
            &at,
            format!("version {} is unknown", integer(value).unwrap_or_default()),
            format!("this Synapse reads version {VERSION}"),
            format!("write `version = {VERSION}` or use the Synapse it was written for"),
        ),
        Shape::Word(_, words) if words.contains(&text(value)) => {}
        Shape::Word(kind, words) => notes.unknown(&at, kind, text(value), words.iter().copied()),
        Shape::Integer(least, most) => {
            let number = integer(value).unwrap_or_default();
            if !(*least..=*most).contains(&number) {
                notes.mistake(
                    &at,
                    format!("{name} is {number}"),
                    format!("it is at least {least} and at most {most}"),
                    "write a number between them",
                );
            }
        }
        Shape::Filled(_) if items(value).is_empty() => notes.mistake(
            &at,
            format!("{name} is empty"),
            "such an entry grants nothing",
            "write what it is about or remove the entry",
        ),
        Shape::List(item) | Shape::Filled(item) => {
            let name = format!("an entry of {name}");
            for value in items(value) {
                check(item, value, &name, notes);
            }
            unique(items(value), &name, notes);
        }
        Shape::Entries(keys) => {
            let name = format!("an entry of {name}");
            for value in items(value) {
                check(&Shape::Table(keys), value, &name, notes);
            }
        }
        Shape::Table(keys) => {
            if let Some(table) = value.get_ref().as_table() {
                check_keys(keys, table, &at, notes);
            }
        }
        Shape::Named(shape) => {
            for (_, name, value) in named(value) {
                check(shape, value, &quoted(name), notes);
            }
        }
        Shape::Either(shapes) => {
            // Of several tables, the one that has a key of this one.
            let has = |shape: &&Shape| match shape {
                Shape::Table(keys) => keys.iter().any(|key| get(value, key.name).is_some()),
                _ => true,
            };
            let mut fitting = shapes.iter().filter(|shape| fits(shape, value.get_ref()));
            if let Some(shape) = fitting.clone().find(has).or_else(|| fitting.next()) {
                check(shape, value, name, notes);
            }
        }
    }
}

/// The parts of a file that are sound, by their keys; what the others lack is noted.
pub(crate) fn check_file<'a, 't>(
    keys: &[Key],
    file: &'a Value<'t>,
    notes: &mut Notes,
) -> Vec<(&'a str, &'a Value<'t>)> {
    let Some(table) = file.get_ref().as_table() else { return Vec::new() };
    if let Some(version) = get(file, "version")
        && !sound(&Shape::Version, version, "`version`", notes)
    {
        // Another version may have other keys.
        return Vec::new();
    }
    check_keys(keys, table, &(0..0), notes)
}

/// Looks for the keys that a table needs and those that it cannot have, and
/// returns those whose value is sound.
fn check_keys<'a, 't>(
    keys: &[Key],
    table: &'a DeTable<'t>,
    at: &Range<usize>,
    notes: &mut Notes,
) -> Vec<(&'a str, &'a Value<'t>)> {
    let mut parts = Vec::new();
    for (at, name, value) in in_order(table) {
        match keys.iter().find(|key| key.name == name) {
            Some(key) if sound(&key.shape, value, &format!("`{name}`"), notes) => {
                parts.push((name, value));
            }
            Some(_) => {}
            None => notes.unknown(&at, "key", name, keys.iter().map(|key| key.name)),
        }
    }
    for key in keys {
        if let Unless::Needed(example) = key.unless
            && !table.contains_key(key.name)
        {
            notes.mistake(
                at,
                format!("`{}` is missing", key.name),
                "it has no default",
                format!("add `{example}`"),
            );
        }
    }
    parts
}

/// Whether a value is of the shape's type.
fn fits(shape: &Shape, value: &DeValue<'_>) -> bool {
    match shape {
        Shape::Version | Shape::Integer(..) => integer_of(value).is_some(),
        Shape::Number => number_of(value).is_some(),
        Shape::Flag => value.as_bool().is_some(),
        Shape::Text | Shape::Word(..) => value.as_str().is_some(),
        Shape::List(_) | Shape::Filled(_) | Shape::Entries(_) => value.as_array().is_some(),
        Shape::Table(_) | Shape::Named(_) => value.as_table().is_some(),
        Shape::Either(shapes) => shapes.iter().any(|shape| fits(shape, value)),
    }
}

/// What a shape is called, and how it is written.
fn form(shape: &Shape, name: &str) -> (String, String) {
    let bare = name.trim_matches('`');
    let (expected, help) = match shape {
        Shape::Version | Shape::Integer(..) => ("an integer of 64 bits", "write a whole number"),
        Shape::Number => {
            ("a number of at most 15 digits on either side of the point", "write it in full")
        }
        Shape::Text | Shape::Word(..) => ("a string", "put it in quotes"),
        Shape::Flag => ("`true` or `false`", "write one of them, without quotes"),
        Shape::List(_) | Shape::Filled(_) => ("an array", "put it in `[` and `]`"),
        Shape::Entries(_) => {
            return ("an array of tables".into(), format!("write it as `[[{bare}]]`"));
        }
        Shape::Table(_) | Shape::Named(_) => {
            return ("a table".into(), "write it in `{` and `}`, or as a section".into());
        }
        Shape::Either(shapes) => {
            let names: Vec<String> = shapes.iter().map(|shape| form(shape, name).0).collect();
            return (names.join(", or "), "write it as one of these".into());
        }
    };
    (expected.into(), help.into())
}

fn unique(items: &[Value<'_>], name: &str, notes: &mut Notes) {
    let mut before = BTreeSet::new();
    for value in items {
        let (word, number) = (value.get_ref().as_str(), number(value));
        let written = word.map(String::from).or_else(|| number.clone());
        // What is neither was found wrong already.
        if let Some(written) = written
            && !before.insert((word, number))
        {
            notes.twice(&value.span(), name, &written);
        }
    }
}

/// A table's entries as the file has them.
pub(crate) fn in_order<'a, 't>(
    table: &'a DeTable<'t>,
) -> Vec<(Range<usize>, &'a str, &'a Value<'t>)> {
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.span(), key.get_ref().as_ref(), value)).collect();
    entries.sort_by_key(|(at, ..)| at.start);
    entries
}

/// The entries of a table with names; none of anything else.
pub(crate) fn named<'a, 't>(value: &'a Value<'t>) -> Vec<(Range<usize>, &'a str, &'a Value<'t>)> {
    value.get_ref().as_table().map_or_else(Vec::new, in_order)
}

/// What stands under a key.
pub(crate) fn get<'a, 't>(value: &'a Value<'t>, key: &str) -> Option<&'a Value<'t>> {
    value.get_ref().as_table()?.get(key)
}

/// The items of an array; of anything else, itself.
pub(crate) fn items<'a, 't>(value: &'a Value<'t>) -> &'a [Value<'t>] {
    value.get_ref().as_array().map_or(core::slice::from_ref(value), |array| array)
}

/// The text of a string; of anything else, none.
pub(crate) fn text<'a>(value: &'a Value<'_>) -> &'a str {
    value.get_ref().as_str().unwrap_or_default()
}

/// An integer of 64 bits.
pub(crate) fn integer(value: &Value<'_>) -> Option<i64> {
    integer_of(value.get_ref())
}

/// Whether it is `true`.
pub(crate) fn flag(value: Option<&Value<'_>>) -> bool {
    value.and_then(|value| value.get_ref().as_bool()).unwrap_or_default()
}

/// A number as the grammar writes it, of at most 15 digits on either side.
pub(crate) fn number(value: &Value<'_>) -> Option<String> {
    number_of(value.get_ref())
}

fn integer_of(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn number_of(value: &DeValue<'_>) -> Option<String> {
    let written = match value {
        DeValue::Float(number) => String::from(number.as_str()),
        _ => format!("{}", integer_of(value)?),
    };
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", written.strip_prefix('+').unwrap_or(&written)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let plain = |part: &str| part.len() <= 15 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) {
        return None;
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if whole == "0" && fraction.is_empty() { "" } else { sign };
    Some(format!("{sign}{whole}{point}{fraction}"))
}
