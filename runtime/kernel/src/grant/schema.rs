//! The JSON Schema of a grant file, for editors.
//!
//! # Invariants
//! - It is written from the table that the reader checks against.
//!
//! # Not here
//! What no schema can say: forms of names and patterns, entries that contradict
//! each other (the reader alone).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::VERSION;
use super::keys::{FILE, Key, Shape, Unless};
use super::summary::{array, json};

/// The schema, as JSON on one line.
#[must_use]
pub fn schema() -> String {
    format!(
        "{{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"Synapse grant\",{}}}",
        keywords(&Shape::Table(&FILE))
    )
}

/// The keywords that say what a value may be.
fn keywords(shape: &Shape) -> String {
    match shape {
        Shape::Version => format!("\"const\":{VERSION}"),
        Shape::Text => "\"type\":\"string\"".into(),
        Shape::Word(_, words) => {
            format!("\"enum\":{}", array(words.iter().copied().map(json)))
        }
        Shape::Integer(least, most) => {
            format!("\"type\":\"integer\",\"minimum\":{least},\"maximum\":{most}")
        }
        Shape::Number => "\"type\":\"number\"".into(),
        Shape::List(item) => list(item, 0),
        Shape::Some(item) => list(item, 1),
        Shape::Entries(keys) => {
            format!("\"type\":\"array\",\"items\":{{{}}}", keywords(&Shape::Table(keys)))
        }
        Shape::Table(keys) => table(keys),
        Shape::Named(item) => {
            format!("\"type\":\"object\",\"additionalProperties\":{{{}}}", keywords(item))
        }
        Shape::Either(shapes) => {
            let shapes = shapes.iter().map(|shape| format!("{{{}}}", keywords(shape)));
            format!("\"anyOf\":{}", array(shapes))
        }
    }
}

fn list(item: &Shape, least: usize) -> String {
    format!(
        "\"type\":\"array\",\"items\":{{{}}},\"minItems\":{least},\"uniqueItems\":true",
        keywords(item)
    )
}

fn table(keys: &[Key]) -> String {
    let properties: Vec<String> = keys
        .iter()
        .map(|key| {
            let default = match key.unless {
                Unless::Default(value) => format!(",\"default\":{value}"),
                Unless::Needed(_) | Unless::Nothing => String::new(),
            };
            format!(
                "{}:{{\"description\":{},{}{default}}}",
                json(key.name),
                json(key.about),
                keywords(&key.shape)
            )
        })
        .collect();
    let needed = keys.iter().filter(|key| matches!(key.unless, Unless::Needed(_)));
    format!(
        "\"type\":\"object\",\"additionalProperties\":false,\"required\":{},\"properties\":{{{}}}",
        array(needed.map(|key| json(key.name))),
        properties.join(",")
    )
}
