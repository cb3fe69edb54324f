//! Words in the shape of those that a table hides.
//!
//! # Invariants
//! 1. Equal words of a table are equal here, different ones different.
//!
//! # Not here
//! What a shape is derived from (`derive_agentdojo.py`).

use serde_json::{Map, Value};

/// The words of one suite.
#[derive(Debug)]
pub(crate) struct Words(Vec<String>);

/// What stands for a word that is no argument.
pub(crate) const FILLER: &str = "lorem";

impl Words {
    /// Makes a word of each shape.
    pub(crate) fn new(shapes: &[String]) -> Self {
        let mut words: Vec<String> = Vec::new();
        for (number, shape) in shapes.iter().enumerate() {
            let mut seed = number as u64;
            let mut word = spell(shape, &mut seed);
            while words.contains(&word) || word == FILLER {
                word = spell(shape, &mut seed);
            }
            words.push(word);
        }
        let related = shapes.iter().zip(&words).map(|(shape, word)| match shape.split_once('}') {
            Some((number, _)) => {
                let of = number.trim_start_matches('{').parse().ok();
                let start = of.and_then(|at: usize| words.get(at)).map_or("", |word| word);
                start.to_owned() + word.split_once('}').map_or("", |(_, rest)| rest)
            }
            None => word.clone(),
        });
        Self(related.collect())
    }

    /// The words themselves.
    pub(crate) fn real(words: &[String]) -> Self {
        Self(words.to_vec())
    }

    /// A text of which the table has a template.
    pub(crate) fn text(&self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, from)) = rest.split_once('{') {
            let (word, after) = from.split_once('}').unwrap_or((from, ""));
            text.push_str(&before.replace('~', FILLER));
            text.push_str(&self.word(word));
            rest = after;
        }
        text.push_str(&rest.replace('~', FILLER));
        text
    }

    /// A value of which the table has a template: a text that nobody typed is of the
    /// length that it has, and leads somewhere if it does.
    pub(crate) fn value(&self, template: &Value) -> Value {
        match template {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => match fields.get("text").and_then(Value::as_u64) {
                Some(length) => {
                    let link = if fields.contains_key("link") { " www.away.example/a" } else { "" };
                    let length = usize::try_from(length).unwrap_or(usize::MAX).min(4096);
                    Value::String("x".repeat(length) + link)
                }
                None if fields.contains_key("fresh") => "90210".into(),
                None => Value::Object(self.values(fields)),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
        }
    }

    /// As [`Self::value`], for each argument.
    pub(crate) fn values(&self, templates: &Map<String, Value>) -> Map<String, Value> {
        templates.iter().map(|(name, value)| (name.clone(), self.value(value))).collect()
    }

    fn word(&self, number: &str) -> String {
        let plain = number.trim_end_matches(['c', 'u']);
        let word = plain.parse().ok().and_then(|at: usize| self.0.get(at)).map_or("", |word| word);
        match number.strip_prefix(plain) {
            Some("c") => {
                let mut letters = word.chars();
                letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
            }
            Some("u") => word.to_uppercase(),
            _ => word.to_owned(),
        }
    }
}

/// A word of a shape, another one each time. What stands in it as it is stays.
fn spell(shape: &str, seed: &mut u64) -> String {
    let rest = shape.strip_prefix("www.");
    let start = if rest.is_some() { "www." } else { "" };
    let letter = |shape: char| {
        // A step of splitmix64: any spread of letters will do, as long as it is the same everywhere.
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33) % 26;
        let of = |first: u8| char::from(first.saturating_add(u8::try_from(mixed).unwrap_or(0)));
        match shape {
            'a' => of(b'a'),
            'A' => of(b'A'),
            other => other,
        }
    };
    start.chars().chain(rest.unwrap_or(shape).chars().map(letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_are_equal_and_shapes_are_kept() {
        let shapes =
            ["aaa.aaa@aaaa.aaa", "aaa.aaa@aaaa.aaa", "AA12aA", "www.aaa.aa", "{2}_0", "a", "a"];
        let words = Words::new(&shapes.map(str::to_owned));
        let text = words.text("~ '{0}', {0c} {1}; {2} {3}? {4} {5} {6}\n~.~");
        let parts: Vec<&str> = text.split_whitespace().collect();
        let first = parts[1].trim_matches(['\'', ',']);
        assert_eq!(parts[0], "lorem");
        assert_eq!(first.len(), 16);
        assert_eq!(first.to_lowercase(), parts[2].to_lowercase());
        assert!(parts[2].starts_with(char::is_uppercase));
        assert_ne!(format!("{first};"), parts[3]);
        assert!(parts[4].contains("12") && parts[5].starts_with("www."));
        assert_eq!(parts[6], format!("{}_0", parts[4]));
        assert_ne!(parts[7], parts[8]);
        assert!(text.ends_with("\nlorem.lorem"));
        let value: Value = serde_json::from_str(
            r#"{"a":[{"text":3},{"text":1,"link":true},7,{"fresh":"id"}],"b":"{5}"}"#,
        )
        .unwrap();
        let filled = words.value(&value);
        assert_eq!(filled["a"][0], "xxx");
        assert_eq!(filled["a"][1], "x www.away.example/a");
        assert_eq!((&filled["a"][2], &filled["b"]), (&7.into(), &parts[7].into()));
    }
}
