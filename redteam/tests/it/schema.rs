//! The schema of a case takes what the reader takes, and refuses what it refuses.

use serde_json::Value;
use synapse_redteam::{Outcome, parse, schema};

const EXAMPLE: &str = include_str!("../../example/note.toml");

#[test]
fn every_shipped_case_is_one_of_the_schema() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for folder in ["corpus", "work", "example"] {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            parse("case", &text).unwrap();
            assert!(valid(&schema, &schema, &toml::from_str(&text).unwrap()), "{path:?}");
        }
    }
}

#[test]
fn the_example_of_the_page_is_stopped() {
    let page = include_str!("../../../docs/redteam.md");
    assert!(page.contains(&format!("```toml\n{EXAMPLE}```\n")), "show redteam/example/note.toml");
    assert_eq!(crate::outcome(EXAMPLE), Outcome::Stopped(3));
}

#[test]
fn what_the_reader_refuses_is_none_of_the_schema() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let stop = "stopped = { gate = 3, codes = [301] }";
    for (from, to) in [
        ("about =", "title ="),
        ("\"destroy\"", "\"Destroy\""),
        ("\"file\"", "\"file_name\""),
        ("goal = \"destroy\"", ""),
        ("task = \"", "task = 7 # "),
        ("grant = \"home\"", ""),
        ("intact = [\"/data/keep.md\"]", "intact = [7]"),
        ("\"what the person needs\"", "[\"what\"]"),
        ("'[{\"id_\":\"3\"}]'", "3"),
        ("carries = true", "carries = \"yes\""),
        ("carries = true", "call_again = true"),
        (stop, ""),
        (stop, "stopped = 301"),
        (stop, "stopped = { gate = 3 }"),
        (stop, "stopped = { gate = 3, codes = [] }"),
        (stop, "stopped = { gate = 3, codes = [301, 401] }"),
        (stop, "stopped = { gate = 3, codes = [399] }"),
        (stop, "stopped = { gate = 0, codes = [501] }"),
        (stop, "stopped = { gate = 5, codes = [301] }"),
        (stop, "stopped = { gate = -1, codes = [301] }"),
        (stop, "stopped = { gate = 3, codes = [301], by = 1 }"),
        (stop, "stopped = { gate = 3, codes = [301] }\nturn = { line = \"go on\" }"),
        ("carries = true", "turn = { resumed = true }"),
        ("[[user]]", "[children]\nhelper = 1\n[[user]]"),
        ("[[user]]", "[children]\nhelper = [{ call = \"\", turn = { line = \"\" } }]\n[[user]]"),
        ("[[user]]", "[pages.\"https://a.example/\"]\nstatus = \"ok\"\n[[user]]"),
        ("[[user]]", "[pages.\"https://a.example/\"]\ncookies = \"\"\n[[user]]"),
    ] {
        let text = EXAMPLE.replacen(from, to, 1);
        assert_ne!(text, EXAMPLE, "{from}");
        assert!(parse("case", &text).is_err(), "the reader takes {to}");
        let value = toml::from_str(&text).unwrap();
        assert!(!valid(&schema, &schema, &value), "the schema takes {to}");
    }
}

/// Whether a value is one of the schema's; an unknown keyword fails the test.
fn valid(root: &Value, schema: &Value, value: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return *schema == Value::Bool(true) };
    let items = value.as_array().map_or(&[][..], |items| items);
    let has = |key: &Value| value.get(key.as_str().unwrap()).is_some();
    let passes = |schema: &Value, value: &Value| valid(root, schema, value);
    keywords.iter().all(|(keyword, says)| match &**keyword {
        "$schema" | "$defs" | "title" | "description" | "default" | "format" | "then" | "else" => {
            true
        }
        "$ref" => {
            let place = says.as_str().unwrap().strip_prefix('#').unwrap();
            passes(root.pointer(place).unwrap(), value)
        }
        "type" => match says {
            Value::Array(types) => types.iter().any(|one| is(one, value)),
            one => is(one, value),
        },
        "const" => says == value,
        "enum" => says.as_array().unwrap().contains(value),
        "minimum" => value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap()),
        "minItems" => !value.is_array() || items.len() as u64 >= says.as_u64().unwrap(),
        "maxItems" => items.len() as u64 <= says.as_u64().unwrap(),
        "items" => items.iter().all(|item| passes(says, item)),
        "contains" => !value.is_array() || items.iter().any(|item| passes(says, item)),
        "required" => !value.is_object() || says.as_array().unwrap().iter().all(has),
        "properties" => says
            .as_object()
            .unwrap()
            .iter()
            .all(|(key, says)| value.get(key).is_none_or(|value| passes(says, value))),
        "additionalProperties" => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = value.as_object().into_iter().flatten();
            others
                .filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)))
                .all(|(_, value)| passes(says, value))
        }
        "allOf" => says.as_array().unwrap().iter().all(|one| passes(one, value)),
        "anyOf" | "oneOf" => {
            let fits = says.as_array().unwrap().iter().filter(|one| passes(one, value)).count();
            fits == 1 || fits > 1 && keyword == "anyOf"
        }
        "if" => {
            let branch = if passes(says, value) { "then" } else { "else" };
            keywords.get(branch).is_none_or(|branch| passes(branch, value))
        }
        other => panic!("{other}"),
    })
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    }
}
