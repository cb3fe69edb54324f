//! The consent screen as plain text, page by page, on whatever terminal there is
//!
//! Nothing that was typed before a page was shown is an answer to it.
//!
//! # Not here
//! What is shown, and what an answer means (`synapse_host::package`).

use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, BufRead as _, Write as _};
use synapse_host::package::Consent;
use synapse_host::render;

/// Shows the question and reads the answers; nothing is a no.
pub(super) fn ask(
    question: &mut Consent,
    (columns, rows): (usize, usize),
) -> Result<Option<()>, String> {
    let lines = question.screen(columns);
    if !pages(&lines, rows)? {
        return Ok(None);
    }
    loop {
        say(MENU)?;
        let Some(line) = answer("> ")? else { return Ok(None) };
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let changed = match &*words {
            ["agree"] => return Ok(Some(())),
            ["no"] => return Ok(None),
            ["show"] => {
                if !pages(&question.screen(columns), rows)? {
                    return Ok(None);
                }
                continue;
            }
            ["off", _] => question.turn(number, false),
            ["on", _] => question.turn(number, true),
            ["narrow", _, to @ ..] => question.narrow(number, to),
            _ => {
                say(&format!("`{}` is no answer\n", render::line(line.trim_end(), 60)))?;
                continue;
            }
        };
        match changed {
            Ok(()) => say(&format!("{}\n", question.entry(number, columns).join("\n")))?,
            Err(why) => say(&format!("nothing is changed: {}\n", render::line(why, 400)))?,
        }
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
fn pages(lines: &[String], rows: usize) -> Result<bool, String> {
    let room = rows.saturating_sub(2).max(3);
    let mut pages = lines.chunks(room).peekable();
    let count = lines.len().div_ceil(room);
    for number in 1.. {
        let Some(page) = pages.next() else { break };
        say(&format!("{}\n", page.join("\n")))?;
        if pages.peek().is_none() {
            break;
        }
        loop {
            let prompt = format!("page {number} of {count}; Enter shows the next, no ends: ");
            match answer(&prompt)?.as_deref().map(str::trim) {
                Some("") => break,
                Some("no") | None => return Ok(false),
                Some(_) => say("not before you have seen it all\n")?,
            }
        }
    }
    Ok(true)
}

/// One line that was typed after this was shown; none at the end of input.
fn answer(prompt: &str) -> Result<Option<String>, String> {
    tcflush(io::stdin(), QueueSelector::IFlush)
        .map_err(|why| format!("the terminal does not answer: {why}\ntry another one"))?;
    say(prompt)?;
    let mut line = String::new();
    let got = io::stdin().lock().read_line(&mut line);
    // What is no text is no answer.
    Ok(got.ok().filter(|got| *got > 0).map(|_| line))
}

fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|why| format!("the terminal shows nothing: {why}\ntry another one"))
}
