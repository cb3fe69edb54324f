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
    of("Synapse grant", &FILE)
}

/// The schema of a file with these keys.
pub(crate) fn of(title: &str, keys: &'static [Key]) -> String {
    format!(
        "{{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"{title}\",{}}}",
        keywords(&Shape::Table(keys))
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
        Shape::Flag => "\"type\":\"boolean\"".into(),
        Shape::List(item) => list(item, 0),
        Shape::Filled(item) => list(item, 1),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;
    use toml::Spanned;
    use toml::de::{DeTable, DeValue};

    use super::*;
    use crate::grant::Grant;
    use crate::grant::notes::Notes;
    use crate::grant::shape::check_file;
    use crate::manifest::MANIFEST;

    fn parsed() -> Json {
        serde_json::from_str(&schema()).unwrap()
    }

    /// Whether a value is one of the schema's; an unknown keyword fails the test.
    fn valid(schema: &Json, value: &DeValue<'_>) -> bool {
        let integer = value.as_integer().and_then(|number| number.as_str().parse::<i64>().ok());
        schema.as_object().unwrap().iter().all(|(keyword, says)| match &**keyword {
            "$schema" | "title" | "description" | "default" => true,
            "const" => integer == says.as_i64(),
            "enum" => says.as_array().unwrap().iter().any(|word| word.as_str() == value.as_str()),
            "type" => match says.as_str().unwrap() {
                "string" => value.as_str().is_some(),
                "integer" => integer.is_some(),
                "number" => integer.is_some() || value.as_float().is_some(),
                "boolean" => value.as_bool().is_some(),
                "array" => value.as_array().is_some(),
                "object" => value.as_table().is_some(),
                other => panic!("{other}"),
            },
            "minimum" => integer >= says.as_i64(),
            "maximum" => integer.is_none() || integer <= says.as_i64(),
            "items" => array(value).iter().all(|item| valid(says, item.get_ref())),
            "minItems" => array(value).len() as u64 >= says.as_u64().unwrap(),
            "uniqueItems" => {
                let mut seen = Vec::new();
                array(value).iter().all(|item| {
                    let one = format!("{:?}", item.get_ref());
                    let new = !seen.contains(&one);
                    seen.push(one);
                    new
                })
            }
            "required" => says.as_array().unwrap().iter().all(|key| {
                value.as_table().is_some_and(|table| table.contains_key(key.as_str().unwrap()))
            }),
            "properties" => table(value)
                .all(|(key, value)| says.get(key).is_none_or(|schema| valid(schema, value))),
            "additionalProperties" => {
                let known = |key: &str| schema.get("properties").and_then(|all| all.get(key));
                table(value)
                    .filter(|(key, _)| known(key).is_none())
                    .all(|(_, value)| *says != Json::Bool(false) && valid(says, value))
            }
            "anyOf" => says.as_array().unwrap().iter().any(|schema| valid(schema, value)),
            other => panic!("{other}"),
        })
    }

    fn array<'a, 't>(value: &'a DeValue<'t>) -> &'a [Spanned<DeValue<'t>>] {
        value.as_array().map_or(&[], |array| array)
    }

    fn table<'a, 't>(value: &'a DeValue<'t>) -> impl Iterator<Item = (&'a str, &'a DeValue<'t>)> {
        let entries = value.as_table().into_iter().flat_map(|table| table.iter());
        entries.map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()))
    }

    /// Writes a value of the shape; the tape says which, and where another stands.
    fn write(shape: &Shape, tape: &mut impl Iterator<Item = u8>) -> String {
        let mut next = || usize::from(tape.next().unwrap_or(1));
        if next() % 16 == 0 {
            let other =
                ["true", "7", "-1", "70000", "\"x\"", "1.5", "[]", "[1, 1]", "{}", "{x = 1}"];
            return other[next() % other.len()].into();
        }
        match shape {
            Shape::Version => "1".into(),
            Shape::Text => format!("\"/{}\"", next() % 8),
            Shape::Word(_, words) => json(words[next() % words.len()]),
            Shape::Integer(least, most) => {
                format!("{}", if next() % 2 == 0 { least } else { most })
            }
            Shape::Number => ["0", "1.25", "-3"][next() % 3].into(),
            Shape::Flag => ["true", "false"][next() % 2].into(),
            Shape::List(item) | Shape::Filled(item) => {
                let count = next() % 3;
                super::array((0..count).map(|_| write(item, tape)))
            }
            Shape::Entries(keys) => {
                let count = next() % 3;
                super::array((0..count).map(|_| write(&Shape::Table(keys), tape)))
            }
            Shape::Table(keys) => format!("{{{}}}", write_keys(keys, tape).join(", ")),
            Shape::Named(item) => {
                let count = next() % 3;
                let named = (0..count).map(|n| format!("n{n} = {}", write(item, tape)));
                format!("{{{}}}", named.collect::<Vec<_>>().join(", "))
            }
            Shape::Either(shapes) => {
                let shape = &shapes[next() % shapes.len()];
                write(shape, tape)
            }
        }
    }

    fn write_keys(keys: &[Key], tape: &mut impl Iterator<Item = u8>) -> Vec<String> {
        let mut lines = Vec::new();
        for key in keys {
            let needed = matches!(key.unless, Unless::Needed(_));
            let rarely = tape.next().unwrap_or(1).is_multiple_of(if needed { 32 } else { 3 });
            if !rarely {
                lines.push(format!("{} = {}", key.name, write(&key.shape, tape)));
            }
        }
        if tape.next() == Some(0) {
            lines.push("other = 1".into());
        }
        lines
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

        #[test]
        fn the_schema_takes_what_the_reader_takes(tape: Vec<u8>) {
            for (keys, schema) in [(&FILE[..], schema()), (&MANIFEST, crate::manifest::schema())] {
                let text = write_keys(keys, &mut tape.iter().copied()).join("\n");
                let document = DeTable::parse(&text).unwrap();
                let span = document.span();
                let document = Spanned::new(span, DeValue::Table(document.into_inner()));
                let mut notes = Notes::new("file");
                check_file(keys, &document, &mut notes);
                let schema = serde_json::from_str(&schema).unwrap();
                prop_assert_eq!(notes.mistakes() == 0, valid(&schema, document.get_ref()), "{}", text);
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_reader() {
        let schema = parsed();
        let default = |list: &str, key: &str| {
            schema["properties"][list]["items"]["properties"][key]["default"].clone()
        };
        let grant = Grant::parse(
            "version = 1\nprimitives = []\n[[hosts]]\nhost = \"a.example\"\n[[tools]]\ntool = \"a/b\"",
        );
        let grant = grant.unwrap();
        let summary: Json = serde_json::from_str(grant.summary()).unwrap();
        for (list, keys) in [
            ("hosts", &["ports", "methods", "paths", "clear"][..]),
            ("tools", &["effect", "clear"]),
        ] {
            for key in keys {
                assert_eq!(summary[list][0][key], default(list, key), "{list} {key}");
            }
        }
        let budget = &schema["properties"]["budget"]["properties"];
        assert_eq!(budget["calls"]["default"], grant.calls);
        assert_eq!(budget["seconds"]["default"], grant.seconds);
        assert_eq!(budget["memory"]["default"], grant.memory);
    }
}
