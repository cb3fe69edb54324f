//! The lines of the consent screen.
//!
//! # Invariants
//! - What the publisher wrote stands escaped, its sentences behind the column.
//! - No line of this program's is wider than the screen.
//!
//! # Not here
//! What is asked (`consent`). The words for entries (`words`). Pages (`dialogue`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::consent::Item;
use super::installed::Installed;
use super::trust::Vouched;
use super::{Package, words};
use crate::grant::Authority;
use crate::render;

/// The lines of an entry.
pub(super) fn shown(number: usize, item: &Item, columns: usize, lines: &mut Vec<String>) {
    let off = if item.on { "" } else { "OFF: " };
    let text = format!("[{number}] {off}{}", words::entry(&item.entry));
    fold(&text, "    ", columns, lines);
    if item.entry != item.asked {
        let text = format!("    narrowed by you; it asks for {}", words::entry(&item.asked));
        fold(&text, "    ", columns, lines);
    }
    for warning in &item.warnings {
        fold(&format!("  ! {}", render::escape(warning)), "    ", columns, lines);
    }
    lines.extend(render::wrapped(&item.reason, columns).lines().map(str::to_owned));
}

/// Who made it, and whether that is so.
pub(super) fn head(
    package: &Package,
    installed: Option<&Installed>,
    vouched: Vouched,
    warnings: &[String],
) -> Vec<String> {
    let manifest = &package.manifest;
    let mut head = vec![format!(
        "{} {}, by {}",
        render::escape(&manifest.name),
        manifest.version,
        render::escape(&manifest.publisher)
    )];
    head.push(format!("{}{}", render::COLUMN, render::escape(&manifest.description)));
    head.push(match vouched {
        Vouched::Nobody => {
            "signature: none. Nobody vouches for it, and anybody can write a name".to_owned()
        }
        Vouched::First(key) => format!(
            "signature: holds, by a key that is new here: {key}. From now on this publisher is \
             known by it"
        ),
        Vouched::Known(key) => format!("signature: holds, by the publisher's key {key}"),
        Vouched::Renewed(key) => format!(
            "signature: holds, by {key}, which takes the place of the key that this publisher had"
        ),
    });
    head.push(format!("digest: {}", package.digest()));
    head.push(format!("licence: {}", render::escape(&manifest.licence)));
    head.extend(warnings.iter().map(|warning| format!("! {}", render::escape(warning))));
    head.push(String::new());
    head.push(match installed {
        None => "It asks for this, and with your yes it can do this and never more:".to_owned(),
        Some(installed) => format!(
            "You agreed to {} before, and that stays as it is. New is:",
            installed.package.manifest.version
        ),
    });
    head
}

/// What it needs besides, and what it will never do.
pub(super) fn tail(package: &Package, request: &Authority) -> Vec<String> {
    let mut tail = Vec::new();
    let needs = [
        ("WHICH CONNECTORS IT NEEDS", &package.manifest.connectors),
        ("WHAT IT NEEDS OF A MODEL", &package.manifest.models),
    ];
    for (heading, needs) in needs {
        if !needs.is_empty() {
            tail.push(heading.to_owned());
            for need in needs {
                tail.push(format!("- {}:", render::escape(&need.name)));
                tail.push(format!("{}{}", render::COLUMN, render::escape(&need.reason)));
            }
            tail.push(String::new());
        }
    }
    if !request.deny.is_empty() || !request.deny_hosts.is_empty() {
        tail.push("CLOSED TO IT, WHATEVER STANDS ABOVE".to_owned());
        let closed = request.deny.iter().chain(&request.deny_hosts);
        tail.extend(closed.map(|text| format!("- {}", render::escape(text))));
        tail.push(String::new());
    }
    tail.push("IT WILL NEVER BE ABLE TO".to_owned());
    tail.extend(words::never(request).into_iter().map(|what| format!("- {what}")));
    tail
}

/// Breaks a line of this program's at the screen's edge.
pub(super) fn fold(text: &str, indent: &str, columns: usize, lines: &mut Vec<String>) {
    let room = columns.max(20);
    // What the publisher wrote stays behind the column, on each line.
    if let Some(words) = text.strip_prefix(render::COLUMN) {
        lines.extend(render::wrapped(words, room).lines().map(str::to_owned));
        return;
    }
    let (mut line, mut used) = (String::new(), 0);
    let mut begin = true;
    for word in text.split(' ') {
        let mut word = word;
        let mut width = word.chars().count();
        if !begin && used + 1 + width > room {
            lines.push(core::mem::take(&mut line));
            line.push_str(indent);
            used = indent.chars().count();
        } else if !begin {
            line.push(' ');
            used += 1;
        }
        while used + width > room {
            let at =
                word.char_indices().nth(room.saturating_sub(used)).map_or(word.len(), |(at, _)| at);
            let (now, later) = word.split_at_checked(at).unwrap_or((word, ""));
            line.push_str(now);
            lines.push(core::mem::take(&mut line));
            line.push_str(indent);
            used = indent.chars().count();
            word = later;
            width = word.chars().count();
        }
        line.push_str(word);
        used += width;
        begin = false;
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_at_words_and_loses_nothing() {
        for columns in [20, 30, 80] {
            let text =
                "[1] a line with  spaces and a-very-long-word-that-no-line-of-twenty-holds end";
            let mut lines = Vec::new();
            fold(text, "    ", columns, &mut lines);
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
            let plain = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(plain(&lines.concat()), plain(text));
        }
    }
}
