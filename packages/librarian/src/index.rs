//! The index as Markdown. Strangers' text is escaped, so that no title can
//! break out of its cell.

use alloc::format;
use alloc::string::String;

use crate::shelf::{ROOT, Shelf};

/// The whole of `INDEX.md`.
pub(crate) fn render(shelf: &Shelf) -> String {
    let mut out = String::from(
        "# Index\n\n| Note | Title | Bytes | First heading | Links |\n|---|---|--:|---|---|\n",
    );
    for note in &shelf.notes {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            escape(relative(&note.path)),
            escape(&note.title),
            note.size,
            escape(&note.heading),
            escape(&note.links.join(", ")),
        ));
    }
    out.push_str("\n## Broken links\n\n");
    for (note, link) in shelf.broken() {
        out.push_str(&format!("- {}: {}\n", escape(relative(note)), escape(link)));
    }
    out.push_str("\n## Exact duplicates\n\n");
    for note in &shelf.notes {
        if let Some(first) = note.copy_of.and_then(|first| shelf.notes.get(first)) {
            let (copy, first) = (relative(&note.path), relative(&first.path));
            out.push_str(&format!("- {} is a copy of {}\n", escape(copy), escape(first)));
        }
    }
    out
}

fn relative(path: &str) -> &str {
    path.strip_prefix(ROOT).unwrap_or(path).trim_start_matches('/')
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars().take(500) {
        match char {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '!' => {
                out.push('\\');
                out.push(char);
            }
            control if control.is_control() => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
