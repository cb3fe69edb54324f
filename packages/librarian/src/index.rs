//! The index as Markdown. Strangers' text is escaped, so that no title can
//! break out of its cell, lead out of the folder, or look like another.

use alloc::format;
use alloc::string::String;

use crate::shelf::{ROOT, Shelf};

/// The whole of `INDEX.md`.
pub(crate) fn render(shelf: &Shelf, broken: &[(&str, &str)]) -> String {
    let mut out = String::from(
        "# Index\n\n| Note | Title | Bytes | First heading | Links |\n|---|---|--:|---|---|\n",
    );
    for note in &shelf.notes {
        out.push_str("| ");
        escape(&mut out, relative(&note.path));
        out.push_str(" | ");
        escape(&mut out, &note.title);
        out.push_str(&format!(" | {} | ", note.size));
        escape(&mut out, &note.heading);
        out.push_str(" | ");
        escape(&mut out, &note.links.join(", "));
        out.push_str(" |\n");
    }
    out.push_str("\n## Broken links\n\n");
    for (note, link) in broken {
        line(&mut out, relative(note), ": ", link);
    }
    out.push_str("\n## Exact duplicates\n\n");
    for note in &shelf.notes {
        if let Some(first) = note.copy_of.and_then(|first| shelf.notes.get(first)) {
            line(&mut out, relative(&note.path), " is a copy of ", relative(&first.path));
        }
    }
    out
}

fn line(out: &mut String, of: &str, said: &str, what: &str) {
    out.push_str("- ");
    escape(out, of);
    out.push_str(said);
    escape(out, what);
    out.push('\n');
}

fn relative(path: &str) -> &str {
    path.strip_prefix(ROOT).unwrap_or(path).trim_start_matches('/')
}

fn escape(out: &mut String, text: &str) {
    let mut rest = text.chars();
    for _ in 0..500 {
        let Some(char) = rest.next() else { break };
        let escaped = match char {
            // As most are.
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' => {
                out.push(char);
                continue;
            }
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '!' | '@' => true,
            // Some readers make a link of what only looks like an address.
            ':' => rest.as_str().starts_with("//"),
            '.' => ends_with_www(out),
            _ => false,
        };
        if escaped {
            out.push('\\');
        }
        out.push(if is_unseen(char) { char::REPLACEMENT_CHARACTER } else { char });
    }
}

fn ends_with_www(text: &str) -> bool {
    let last = text.len().checked_sub(3).and_then(|from| text.get(from..));
    last.is_some_and(|last| last.eq_ignore_ascii_case("www"))
}

/// Whether it is no sign, but turns, hides or breaks the signs around it.
fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            // Soft hyphen, joiners and fillers without width.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
            // Direction marks, embeddings, overrides, isolates; two more line ends.
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{206f}'
            // Tags, which spell what nobody sees.
            | '\u{e0000}'..='\u{e0fff}'
        )
}
