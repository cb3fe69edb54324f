//! Tidy: puts away what its task line names, and shows how to plan first.
//!
//! No model: the line is read for a few fixed phrases. From the line alone come
//! the plan and its warrants, while nothing from outside has been read; then the
//! folder is read, and what was asked for is done. No file, and no name of one,
//! can add to the plan, and what the human named needs no question any more.
//!
//! # Reading order
//! `plan`, `prepare`, `act`: the phrases, the leave for them, the deeds.
//!
//! # Not here
//! Deciding what it may do: that is the door's, and the grant's.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod act;
mod plan;
mod prepare;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_guest::abi::code::Refusal;
use synapse_guest::{Content, Error, Grant, Turn, calls};

use crate::plan::{PHRASES, parse};
use crate::prepare::prepare;

synapse_guest::agent!(turn);

/// What a turn answers when its input cannot be read.
const BAD_INPUT: u32 = 1;

/// Does what the task line asks, and says on the console what came of it.
///
/// # Errors
/// The input is no turn, or the console is not granted.
pub fn turn(input: &[u8]) -> Result<Vec<u8>, u32> {
    let turn = Turn::parse(input).map_err(|_| BAD_INPUT)?;
    work(turn.task(), root(&turn.grant)).map_err(Error::number)?;
    Ok(Vec::new())
}

fn work(line: &str, root: &str) -> Result<(), Error> {
    let steps = match parse(line, root) {
        Ok(steps) if !steps.is_empty() => steps,
        Ok(_) => return say(&format!("nothing was asked for; what can be:\n{PHRASES}")),
        Err(part) => {
            return say(&format!(
                "nothing was done: `{part}` is none of these, with `;` or `and then` between \
                 them:\n{PHRASES}"
            ));
        }
    };
    // All of them before any is done: the first act may read.
    let prepared: Vec<_> = steps.iter().map(prepare).collect();
    for (step, act) in steps.iter().zip(prepared) {
        if let Err(why) = act.and_then(|act| act()) {
            say(&format!("could not {step}: {why}{}", advice(why)))?;
        }
    }
    Ok(())
}

/// The first folder of the grant, without its pattern's end.
fn root(grant: &Grant) -> &str {
    let path = grant.paths.first().map_or("/data", |granted| granted.path.as_str());
    path.trim_end_matches('*').trim_end_matches('/')
}

/// What the human can do about a refusal.
const fn advice(why: Error) -> &'static str {
    match why {
        Error::Refused(Refusal::NotCited) => "; write its whole path, as I see it",
        Error::Refused(Refusal::Spent) => "; I was given leave for it before, once",
        Error::Refused(Refusal::Destructive) => {
            "; I had read by then, so anyone could have asked for this"
        }
        Error::Refused(Refusal::Irreversible) => "; the journal has no room, so no undo",
        Error::Refused(Refusal::Protected) => "; its name tells programs what to do",
        Error::Refused(Refusal::OutOfScope | Refusal::Denied) => "; my grant leaves it out",
        _ => "",
    }
}

fn say(line: &str) -> Result<(), Error> {
    let mut text = String::from(line);
    text.push('\n');
    calls::console_write(Content::Text(&text))
}

#[cfg(test)]
mod tests;
