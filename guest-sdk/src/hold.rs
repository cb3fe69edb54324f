//! The calls of [`calls`](crate::calls) that bring bytes, with the reply held
//!
//! The kernel keeps the bytes and gives a number: the task has read nothing, so
//! its mark does not move, and the number can stand in other calls. A fault of
//! the world is held too, and shows where the value is used.
//!
//! # Not here
//! Releasing a held value ([`value_read`](crate::calls::value_read)); holding any
//! other call ([`Sentence::hold`](crate::Sentence::hold)).

use crate::calls::{asking, listing, reading, searching};
use crate::{Content, Error, Held, Text};

/// As [`calls::console_ask`](crate::calls::console_ask).
///
/// # Errors
/// The kernel's.
pub fn console_ask<'a>(question: impl Into<Content<'a>>) -> Result<Held, Error> {
    asking(question.into()).hold().submit()?.held()
}

/// As [`calls::fs_read`](crate::calls::fs_read).
///
/// # Errors
/// The kernel's.
pub fn fs_read<'a>(path: impl Into<Text<'a>>, offset: u64, length: u64) -> Result<Held, Error> {
    reading(path.into(), offset, length).hold().submit()?.held()
}

/// As [`calls::fs_list`](crate::calls::fs_list). A selector takes from it what is
/// meant, if the page is the last.
///
/// # Errors
/// The kernel's.
pub fn fs_list<'a>(path: impl Into<Text<'a>>, after: &str, limit: u64) -> Result<Held, Error> {
    listing(path.into(), after, limit).hold().submit()?.held()
}

/// As [`calls::fs_search`](crate::calls::fs_search).
///
/// # Errors
/// The kernel's.
pub fn fs_search<'a>(path: impl Into<Text<'a>>, text: &str, offset: u64) -> Result<Held, Error> {
    searching(path.into(), text, offset).hold().submit()?.held()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_door;
    use alloc::vec::Vec;
    use synapse_reply::frame::{Form, Mark, header};

    #[test]
    fn each_asks_that_its_reply_be_held_and_gives_its_number() {
        type Call = fn() -> Result<Held, Error>;
        let calls: [(&str, Call); 4] = [
            (r#"{"name":"console_ask","arguments":{"question":"Which?"}"#, || {
                console_ask("Which?")
            }),
            (r#"{"name":"fs_read","arguments":{"path":{"$held":2},"offset":0,"length":1}"#, || {
                fs_read(Held(2), 0, 1)
            }),
            (r#"{"name":"fs_list","arguments":{"path":"/a","after":"","limit":9}"#, || {
                fs_list("/a", "", 9)
            }),
            (r#"{"name":"fs_search","arguments":{"path":"/a","text":"t","offset":0}"#, || {
                fs_search("/a", "t", 0)
            }),
        ];
        for (sentence, call) in calls {
            let door = move |bytes: &[u8]| {
                let said = str::from_utf8(bytes).unwrap();
                assert_eq!(said.strip_suffix(r#","hold":true}"#), Some(sentence));
                let mut framed = Vec::from(header(Form::Held, Mark::User));
                framed.extend_from_slice(&5u64.to_le_bytes());
                Ok(framed)
            };
            assert_eq!(with_door(door, call), Ok(Held(5)));
        }
    }
}
