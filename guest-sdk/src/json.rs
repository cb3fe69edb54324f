//! The one spelling of JSON that the door takes
//!
//! No white space, one escape for each character that needs one, numbers
//! without exponent. A general serializer differs in the details (`\b`, a raw
//! delete character, `1e30`), and the door refuses every other spelling.
//!
//! # Not here
//! The order of arguments (`sentence`).

use alloc::string::String;
use core::fmt::Write;
use serde_json::Value;

/// Appends `text` as a JSON string.
pub(crate) fn string(out: &mut String, text: &str) {
    out.push('"');
    // What needs no escape is copied in one piece, up to the next byte that does.
    let mut plain = 0_usize;
    let odd = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f);
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| odd(*byte)) {
        out.push_str(text.get(plain..at).unwrap_or_default());
        plain = at.saturating_add(1);
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ => display(out, format_args!("\\u{byte:04x}")),
        }
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out.push('"');
}

/// Bytes that a byte of a text takes inside a string.
pub(crate) fn width(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 | 0x7f => 6,
        _ => 1,
    }
}

/// Appends a key; one that begins with `$` gets one more, so that it is not
/// taken for a reserved one.
pub(crate) fn key(out: &mut String, key: &str) {
    let start = out.len();
    string(out, key);
    if key.starts_with('$') {
        out.insert(start.saturating_add(1), '$');
    }
}

/// Appends a JSON document.
pub(crate) fn value(out: &mut String, document: &Value) {
    match document {
        Value::Null => out.push_str("null"),
        Value::Bool(yes) => display(out, format_args!("{yes}")),
        Value::Number(number) => match number.as_f64() {
            // `Display` of a float has neither exponent nor trailing zero.
            Some(float) if number.is_f64() => display(out, format_args!("{float}")),
            _ => display(out, format_args!("{number}")),
        },
        Value::String(text) => string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                value(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (key, item)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                self::key(out, key);
                out.push(':');
                value(out, item);
            }
            out.push('}');
        }
    }
}

/// Appends formatted text.
pub(crate) fn display(out: &mut String, text: core::fmt::Arguments<'_>) {
    // A String takes everything: its `write_fmt` has no error to report.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(text: &str) -> String {
        let mut out = String::new();
        string(&mut out, text);
        out
    }

    #[test]
    fn escapes_have_one_spelling() {
        assert_eq!(written("a\"\\\n\r\t"), r#""a\"\\\n\r\t""#);
        assert_eq!(written("\0\u{8}\u{c}\u{1f}\u{7f}"), r#""\u0000\u0008\u000c\u001f\u007f""#);
        assert_eq!(written("/é\u{80}\u{202e}🦀"), "\"/é\u{80}\u{202e}🦀\"");
    }

    #[test]
    fn width_is_what_is_written() {
        for c in ('\0'..='\u{ff}').chain(['🦀', '\u{2028}']) {
            let mut text = String::new();
            text.push(c);
            let width: usize = text.bytes().map(width).sum();
            assert_eq!(width, written(&text).len() - 2, "{c:?}");
            assert_eq!(serde_json::from_str::<String>(&written(&text)).unwrap(), text);
        }
    }

    #[test]
    fn documents_have_no_exponent_and_no_reserved_key() {
        let mut out = String::new();
        value(&mut out, &json!({"$held": [1, -2, 1.0, 2.5, 1e21, true, null], "b": {"c": "\t"}}));
        let expected = r#"{"$$held":[1,-2,1,2.5,1000000000000000000000,true,null],"b":{"c":"\t"}}"#;
        assert_eq!(out, expected);
    }
}
