//! Writing for people and for programs
//!
//! # Not here
//! Making what others wrote visible (`synapse_host::render`).

use core::fmt::{Arguments, Write as _};
use serde_json::Value;
use std::io::{self, Write as _};
use synapse_host::render;

/// Writes one line on standard output.
pub(crate) fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

/// Writes on standard error, in one write; nothing stops because nobody reads it.
pub(crate) fn tell(text: Arguments<'_>, end: &str) {
    drop(io::stderr().lock().write_all(format!("{text}{end}").as_bytes()));
}

/// Writes one line on standard error.
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::tell(format_args!($($text)*), "\n") };
}

/// Writes what stands in a line on standard error.
macro_rules! tell_part {
    ($($text:tt)*) => { $crate::output::tell(format_args!($($text)*), "") };
}

/// One line of JSON in which each hidden character is escaped, so that it stays
/// the same value for a program and is harmless on a screen.
pub(crate) fn json(value: &Value) -> String {
    let plain = value.to_string();
    let mut text = String::with_capacity(plain.len());
    for character in plain.chars() {
        // Outside of strings there is nothing hidden in a line of JSON.
        if render::is_hidden(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// What to tell of a failed write to standard output, if anything: a reader
/// that has seen enough is no failure.
pub(crate) fn told(why: &io::Error) -> Option<String> {
    (why.kind() != io::ErrorKind::BrokenPipe).then(|| {
        format!("standard output could not be written: {why}\nsend it somewhere with room")
    })
}

#[cfg(test)]
mod tests {
    use super::json;
    use serde_json::{Value, json as value};

    #[test]
    fn json_hides_nothing_and_loses_nothing() {
        let sent = value!({"text": "a\u{202e}b\u{e0041}\u{7f}\"é\n"});
        let text = json(&sent);
        assert!(!text.chars().any(synapse_host::render::is_hidden), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), sent);
    }
}
