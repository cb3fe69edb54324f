//! The consent screen as plain text, page by page, on whatever terminal there is.
//!
//! # Invariants
//! - No answer agrees before the last line was shown.
//! - Nothing that was typed before a prompt is an answer to it: the board's part.
//!
//! # Not here
//! What is shown, and what an answer means (`consent`). Reading lines (boards).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Consent;
use crate::render;

/// Where a person reads and answers.
pub trait Terminal {
    /// Shows text.
    ///
    /// # Errors
    /// Why it cannot be shown.
    fn show(&mut self, text: &str) -> Result<(), String>;

    /// One line that was typed after this prompt was shown; none if there will be no more.
    ///
    /// # Errors
    /// Why nothing can be read.
    fn answer(&mut self, prompt: &str) -> Result<Option<String>, String>;
}

/// Shows the question on a screen of so many columns and rows, and takes the answers;
/// whether it was agreed to.
///
/// # Errors
/// The terminal failed.
pub fn ask(
    question: &mut Consent,
    (columns, rows): (usize, usize),
    terminal: &mut dyn Terminal,
) -> Result<bool, String> {
    if !pages(&question.screen(columns), rows, terminal)? {
        return Ok(false);
    }
    loop {
        terminal.show(MENU)?;
        let Some(line) = terminal.answer("> ")? else { return Ok(false) };
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let changed = match &*words {
            ["agree"] => return Ok(true),
            ["no"] => return Ok(false),
            ["show"] => {
                if !pages(&question.screen(columns), rows, terminal)? {
                    return Ok(false);
                }
                continue;
            }
            ["off", _] => question.turn(number, false),
            ["on", _] => question.turn(number, true),
            ["narrow", _, to @ ..] => question.narrow(number, to),
            _ => {
                let told = format!("`{}` is no answer\n", render::line(line.trim_end(), 60));
                terminal.show(&told)?;
                continue;
            }
        };
        let told = match changed {
            Ok(()) => format!("{}\n", question.entry(number, columns).join("\n")),
            Err(why) => format!("nothing is changed: {}\n", render::line(why, 400)),
        };
        terminal.show(&told)?;
    }
}

const MENU: &str = "\n\
    agree               installs it with what stands above\n\
    off N, on N         takes entry N away, or gives it back\n\
    narrow N TO         a folder: narrow 7 /data/notes/** list,read   a host: its name\n\
    \u{20}                   its use: calls, seconds and MiB\n\
    show                shows it all again\n\
    no                  installs nothing\n";

/// Shows all lines, and says whether the last one was shown.
fn pages(lines: &[String], rows: usize, terminal: &mut dyn Terminal) -> Result<bool, String> {
    let room = rows.saturating_sub(2).max(3);
    let mut pages = lines.chunks(room).peekable();
    let count = lines.len().div_ceil(room);
    for number in 1.. {
        let Some(page) = pages.next() else { break };
        terminal.show(&format!("{}\n", page.join("\n")))?;
        if pages.peek().is_none() {
            break;
        }
        loop {
            let prompt = format!("page {number} of {count}; Enter shows the next, no ends: ");
            match terminal.answer(&prompt)?.as_deref().map(str::trim) {
                Some("") => break,
                Some("no") | None => return Ok(false),
                Some(_) => terminal.show("not before you have seen it all\n")?,
            }
        }
    }
    Ok(true)
}
