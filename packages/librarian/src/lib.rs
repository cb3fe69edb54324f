//! The librarian: indexes a folder of notes, and moves duplicates aside.
//!
//! No model: the task line is read for a few fixed phrases. It is what an agent
//! looks like from above the door. It reads everything first, so from then on
//! the door treats it as one that strangers may have talked to.
//!
//! # Not here
//! Deciding what it may do: that is the door's, and the grant's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod index;
mod note;
mod shelf;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use synapse_guest::abi::registry::Primitive;
use synapse_guest::calls::{self, Mode};
use synapse_guest::{Argument, Error, Sentence, Turn, files};

use crate::shelf::{INDEX, ROOT, Shelf};

synapse_guest::agent!(turn);

/// What a turn answers when its input cannot be read.
const BAD_INPUT: u32 = 1;

/// Does what the task line asks and says on the console what came of it.
///
/// # Errors
/// The input is no turn, or the console is not granted.
pub fn turn(input: &[u8]) -> Result<Vec<u8>, u32> {
    let turn = Turn::parse(input).map_err(|_| BAD_INPUT)?;
    work(turn.task()).map(|_| Vec::new()).map_err(Error::number)
}

fn work(task: &str) -> Result<String, Error> {
    let words = task.to_lowercase();
    let mut shelf = match Shelf::walk() {
        Ok(shelf) => shelf,
        Err(why) => {
            let said = format!("could not list {ROOT}: {}; nothing was changed\n", told(why));
            calls::console_write(said.as_str())?;
            return Ok(said);
        }
    };
    if words.contains("move duplicates") || words.contains("remove duplicates") {
        shelf.move_duplicates();
    }
    let broken = shelf.broken();
    let mut summary = shelf.summary(broken.len());
    match files::write_all(INDEX, &index::render(&shelf, &broken), Mode::Replace) {
        Ok(()) => summary.push_str(&format!("wrote {INDEX}\n")),
        Err(why) => summary.push_str(&format!("could not write {INDEX}: {}\n", told(why))),
    }
    if let Some(path) = after_word(task, "delete") {
        summary.push_str(&delete(path));
    }
    if words.contains("show the gates") {
        summary.push_str(&gates(&shelf));
    }
    calls::console_write(summary.as_str())?;
    Ok(summary)
}

/// The word after `verb` that looks like a path.
fn after_word<'t>(task: &'t str, verb: &str) -> Option<&'t str> {
    let mut words = task.split_whitespace();
    words.find(|word| word.eq_ignore_ascii_case(verb))?;
    words.next().filter(|path| path.starts_with('/'))
}

fn delete(path: &str) -> String {
    match calls::fs_delete(path) {
        Ok(()) => format!("deleted {path}\n"),
        Err(why) => format!(
            "could not delete {path}: {}\n  I had read the folder by then, so anyone who wrote in it \
             could have asked for this.\n",
            told(why)
        ),
    }
}

/// Tries one thing at each gate that it stops.
fn gates(shelf: &Shelf) -> String {
    let malformed = synapse_guest::call(b"{\"name\":\"fs_read\"").err();
    let fetch = Sentence::new(Primitive::NetHttpGet)
        .set("url", Argument::Text("https://example.com/"))
        .set("headers", Argument::Raw("{}"));
    let note = shelf.notes.first().map_or("/data/none", |note| note.path.as_str());
    let tries = [
        ("an unfinished sentence", malformed),
        ("a fetch that is not granted", fetch.submit().err().map(Error::number)),
        ("a deletion after reading", calls::fs_delete(note).err().map(Error::number)),
        (
            "a path that climbs out",
            calls::fs_read("/data/../etc/passwd", 0, 1).err().map(Error::number),
        ),
    ];
    let mut out = String::from("what the door says to a fooled agent:\n");
    for (what, code) in tries {
        let said = code.map_or_else(|| "LET THROUGH".to_string(), number);
        out.push_str(&format!("  {what}: {said}\n"));
    }
    out
}

fn told(why: Error) -> String {
    number(why.number())
}

/// A code in words.
fn number(number: u32) -> String {
    use synapse_guest::abi::code::Refusal;
    use synapse_guest::reply::code::{self, Fault};
    let short = u16::try_from(number).unwrap_or(0);
    match (code::gate(short), Refusal::from_number(short), Fault::from_number(short)) {
        (Some(gate), Some(refusal), _) => {
            format!("refused by gate {gate}, {} [{number}]", code::name(refusal))
        }
        (_, _, Some(fault)) => format!("failed, {} [{number}]", fault.name()),
        _ => format!("failed [{number}]"),
    }
}

#[cfg(test)]
mod tests;
