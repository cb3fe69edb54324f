//! What a server answers, as the bytes of a reply
//!
//! # Invariants
//! - Records are spelled as the door spells JSON, so that equal ones are equal bytes.
//!
//! # Not here
//! Its label (`synapse-primitives`); what a selector takes of it (the boundary).

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;
use synapse_abi::limits;
use synapse_boundary::scope::Decimal;
use synapse_primitives::execute::escape;
use synapse_reply::Fault;

/// What stands before what a verb says that failed.
const FAILED: &str = "{\"error\":true}\n";

/// The bytes of an answer, at most so many; of a verb with typed fields its records.
///
/// # Errors
/// `BadAnswer` where there are no records, `ReplyTooLarge`.
pub fn bytes(result: CallToolResult, has_records: bool, most: usize) -> Result<Vec<u8>, Fault> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let answer = if is_error == Some(true) {
        format!("{FAILED}{}", text(content, structured_content))
    } else if has_records {
        let parsed = structured_content
            .or_else(|| serde_json::from_str(&text(content, None)).ok())
            .ok_or(Fault::BadAnswer)?;
        records(&parsed)?
    } else {
        text(content, structured_content)
    };
    if answer.len() > most { Err(Fault::ReplyTooLarge) } else { Ok(answer.into_bytes()) }
}

/// Texts as they stand, all else as its JSON, a line each.
fn text(content: Vec<ContentBlock>, structured: Option<Value>) -> String {
    let mut blocks = content.into_iter().map(|block| match block {
        ContentBlock::Text(text) => text.text,
        other => serde_json::to_string(&other).unwrap_or_default(),
    });
    let Some(mut text) = blocks.next() else {
        return structured.map_or_else(String::new, |value| value.to_string());
    };
    for block in blocks {
        text.push('\n');
        text.push_str(&block);
    }
    text
}

/// The array of records that an answer is, or its only member.
fn records(answer: &Value) -> Result<String, Fault> {
    let records = match answer {
        Value::Object(object) if object.len() == 1 => object.values().next(),
        other => Some(other),
    };
    let Some(Value::Array(records)) = records else { return Err(Fault::BadAnswer) };
    let mut json = String::from("[");
    for (place, record) in records.iter().enumerate() {
        if !record.is_object() {
            return Err(Fault::BadAnswer);
        }
        if place > 0 {
            json.push(',');
        }
        write(&mut json, record, limits::JSON_DEPTH - 1);
    }
    json.push(']');
    Ok(json)
}

/// Writes a value with so many levels; what does not fit or has no spelling stands as
/// a string of itself.
fn write(json: &mut String, value: &Value, levels: usize) {
    match (value, levels.checked_sub(1)) {
        (Value::Null, _) => json.push_str("null"),
        (Value::Bool(value), _) => json.push_str(if *value { "true" } else { "false" }),
        (Value::Number(number), _) => match spelled(&number.to_string()) {
            Some(number) => json.push_str(&number),
            None => string(json, &number.to_string()),
        },
        (Value::String(text), _) => string(json, text),
        (Value::Array(items), Some(levels)) => {
            json.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    json.push(',');
                }
                write(json, item, levels);
            }
            json.push(']');
        }
        (Value::Object(members), Some(levels)) => {
            json.push('{');
            for (place, (key, value)) in members.iter().enumerate() {
                if place > 0 {
                    json.push(',');
                }
                // A `$` at the beginning of a key is the language's own.
                let key = if key.starts_with('$') { format!("${key}") } else { key.clone() };
                string(json, &key);
                json.push(':');
                write(json, value, levels);
            }
            json.push('}');
        }
        (Value::Array(_) | Value::Object(_), None) => string(json, &value.to_string()),
    }
}

fn string(json: &mut String, text: &str) {
    json.push('"');
    escape(json, text);
    json.push('"');
}

/// A number as the grammar writes it.
fn spelled(number: &str) -> Option<String> {
    Decimal::parse(number)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let spelled = format!("{whole}{point}{fraction}");
    Some(if spelled == "-0" { "0".to_owned() } else { spelled })
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;
    use synapse_boundary::select::{Taken, resolve};

    use super::*;

    fn answer(text: &str) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(text)])
    }

    #[test]
    fn records_are_what_a_selector_reads() {
        let text = r#"{"result": [ {"id": 7.50, "from": "Ä\u0001", "$k": 1e30, "deep": {"a": {"b": [1]}}},
            {"id": -0.0, "from": "b"} ]}"#;
        let bytes = bytes(answer(text), true, 1000).unwrap();
        let expected = r#"[{"$$k":"1e30","deep":{"a":{"b":"[1]"}},"from":"Ä\u0001","id":7.5},{"from":"b","id":0}]"#;
        assert_eq!(str::from_utf8(&bytes).unwrap().replace("1e+30", "1e30"), expected);
        let largest = r#"{"$select":1,"order":["max","id"],"take":"from"}"#;
        assert_eq!(resolve(largest, &bytes, None), Some(Taken::Text("Ä\u{1}".into())));
    }

    #[test]
    fn what_is_no_array_of_records_or_too_long_is_a_fault() {
        for text in ["", "7", "[1]", r#"{"a":[],"b":[]}"#, r#"{"a":{}}"#, "[{}"] {
            assert_eq!(bytes(answer(text), true, 99), Err(Fault::BadAnswer), "{text}");
            assert_eq!(bytes(answer(text), false, 99).unwrap(), text.as_bytes());
        }
        assert_eq!(bytes(answer("abc"), false, 2), Err(Fault::ReplyTooLarge));
        let failed = CallToolResult::error(vec![ContentBlock::text("no such mail")]);
        assert_eq!(bytes(failed, true, 99).unwrap(), b"{\"error\":true}\nno such mail");
    }
}
