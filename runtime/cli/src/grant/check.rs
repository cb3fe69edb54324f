//! Mistakes and warnings, each with its line of the file and a mark under it
//!
//! # Not here
//! Finding them (`synapse_kernel::grant`).

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use synapse_host::render;
use synapse_kernel::grant::{Grant, Notice};

use super::GrantError;
use crate::output;

/// Checks a file and prints what was found.
pub(super) fn run(file: &Path, json: bool) -> Result<ExitCode, GrantError> {
    let name = render::escape(file.as_os_str().as_encoded_bytes());
    let bytes = fs::read(file).map_err(|why| {
        GrantError::Told(format!("`{name}` could not be read: {why}\nname a grant file"))
    })?;
    let text = String::from_utf8(bytes).map_err(|why| {
        let at = why.utf8_error().valid_up_to();
        GrantError::Told(format!(
            "`{name}` is not UTF-8: byte {at} is not part of any character\nwrite it as a TOML text"
        ))
    })?;
    let read = Grant::check(&text);
    let (kind, notices) = match &read {
        Ok(grant) => ("warning", grant.warnings()),
        Err(mistakes) => ("error", &**mistakes),
    };
    for notice in notices {
        if json {
            output::say(&output::json(&object(kind, notice)))?;
        } else {
            output::say(&shown(kind, notice, &name, &text))?;
        }
    }
    let count = |of: &str| if of == kind { notices.len() } else { 0 };
    if json {
        output::say(&output::json(&json!({
            "type": "summary",
            "file": file.to_string_lossy(),
            "errors": count("error"),
            "warnings": count("warning"),
        })))?;
    } else {
        output::say(&format!("{name}: {}", summary(read.is_ok(), notices.len())))?;
    }
    Ok(if read.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn summary(sound: bool, count: usize) -> String {
    let many = if count == 1 { "" } else { "s" };
    match (sound, count) {
        (true, 0) => "a grant".to_owned(),
        (true, _) => format!("a grant, with {count} warning{many}"),
        (false, _) => format!("no grant, {count} mistake{many}"),
    }
}

/// A notice as programs read it.
pub(crate) fn object(kind: &str, notice: &Notice) -> Value {
    json!({
        "type": kind,
        "line": notice.line,
        "column": notice.column,
        "width": notice.width,
        "what": notice.what,
        "why": notice.why,
        "help": notice.help,
    })
}

/// A notice as people read it.
pub(crate) fn shown(kind: &str, notice: &Notice, name: &str, text: &str) -> String {
    let Notice { line, column, what, why, help, .. } = notice;
    let source = text.split('\n').nth(line - 1).unwrap_or_default().trim_end_matches('\r');
    let (source, before, width) = window(source, column - 1, notice.width);
    let mark = format!("{}{}", " ".repeat(before), "^".repeat(width));
    let number = line.to_string();
    let side = " ".repeat(number.len());
    let told = [what, why, help].map(render::escape);
    let [what, why, help] = &told;
    format!(
        "{kind}: {what}\n{side}--> {name}:{line}:{column}\n{side} |\n\
         {number} | {source}\n{side} | {mark}\n{side} = {why}\n{side} = {help}\n"
    )
}

/// The part of a line that holds the marked characters, how much of the screen
/// stands before them and how much they take.
fn window(line: &str, at: usize, width: usize) -> (String, usize, usize) {
    let from = if at + width > WINDOW { at.saturating_sub(WINDOW / 4) } else { 0 };
    let part = |from: usize, count: usize| -> String {
        render::escape(line.chars().skip(from).take(count).collect::<String>())
    };
    let dots = if from > 0 { "…" } else { "" };
    let rest = if line.chars().count() > from + WINDOW { "…" } else { "" };
    let before = format!("{dots}{}", part(from, at - from));
    let marked = part(at, width.min(WINDOW + from - at));
    let whole = format!("{dots}{}{rest}", part(from, WINDOW));
    (whole, before.chars().count(), marked.chars().count().max(1))
}

/// Characters of a line that are shown.
const WINDOW: usize = 72;

#[cfg(test)]
mod tests {
    use super::{shown, window};
    use synapse_kernel::grant::Grant;

    #[test]
    fn the_mark_stands_under_what_it_is_about() {
        let text = "version = 1\nprimitives = []\ndeny = [\"/a\"]\n\t[[paths]]\r\n\
                    path = \"/a/é\"\r\nrights = [\"read\"]";
        let notice = Grant::parse(text).unwrap_err();
        assert_eq!(
            shown("error", &notice, "g.toml", text),
            "error: path `/a/é` is unreachable: deny covers it\n --> g.toml:5:8\n  |\n\
             5 | path = \"/a/é\"\n  |        ^^^^^^\n  = a deny entry always wins\n  \
             = remove the path or narrow the deny entry\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark_and_nothing_in_it_acts() {
        let line = format!("{}\u{202e}{}", "a".repeat(200), "b".repeat(200));
        let (shown, before, width) = window(&line, 200, 1);
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(!shown.chars().any(synapse_host::render::is_hidden), "{shown}");
        let marked: String = shown.chars().skip(before).take(width).collect();
        assert!(marked.contains("202e"), "{marked}");
        let (_, before, width) = window("ab", 2, 1);
        assert_eq!((before, width), (2, 1), "past the end");
    }
}
