//! Whole files, directories and searches, in as many calls as they take
//!
//! A reply and a sentence have ceilings; what is larger goes in pieces. Each
//! piece is a call of its own: between two of them others may write.
//!
//! # Not here
//! Single calls ([`calls`](crate::calls)).

use crate::calls::{Entry, Mode, Page, fs_list, fs_read, fs_search, fs_write};
use crate::{Error, json};
use alloc::string::String;
use alloc::vec::Vec;
use synapse_abi::limits::SENTENCE;
use synapse_reply::Fault;
use synapse_reply::limits::{LIST, REPLY};

/// The most bytes that one read asks for.
pub const PIECE: u64 = REPLY as u64;

/// Bytes of an `fs_write` beside its path and its content, and some to spare.
const FRAME: usize = 256;

/// All bytes of a file, in memory.
///
/// # Errors
/// The kernel's.
pub fn read_all(path: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = fs_read(path, 0, PIECE)?;
    let mut piece = bytes.len() as u64;
    while piece >= PIECE {
        let more = fs_read(path, bytes.len() as u64, PIECE)?;
        piece = more.len() as u64;
        bytes.extend_from_slice(&more);
    }
    Ok(bytes)
}

/// All entries of a directory, in order of name.
///
/// Names can be too long for a page of the largest size; smaller pages follow.
///
/// # Errors
/// The kernel's.
pub fn list_all(path: &str) -> Result<Vec<Entry>, Error> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut limit = LIST;
    loop {
        let after = entries.last().map_or("", |entry| entry.name.as_str());
        match fs_list(path, after, limit) {
            Ok(page) => {
                let last = (page.len() as u64) < limit;
                entries.extend(page);
                if last {
                    return Ok(entries);
                }
            }
            Err(Error::Fault(Fault::ReplyTooLarge)) if limit > 1 => limit /= 2,
            Err(error) => return Err(error),
        }
    }
}

/// Everywhere a text stands in a file, or in the files below a directory, in
/// memory and as if on one page.
///
/// # Errors
/// The kernel's.
pub fn search_all(path: &str, text: &str) -> Result<Page, Error> {
    let mut found = fs_search(path, text, 0)?;
    while let Some(offset) = found.next {
        let Page { hits, next, skipped } = fs_search(path, text, offset)?;
        found.hits.extend(hits);
        // A later page counts what the former ones did.
        (found.next, found.skipped) = (next, skipped);
    }
    Ok(found)
}

/// Writes a text of any length: the first piece with `mode`, the rest appended.
///
/// # Errors
/// The kernel's, for the piece that failed; the pieces before it are written.
pub fn write_all(path: &str, text: &str, mode: Mode) -> Result<(), Error> {
    let mut escaped = String::new();
    json::string(&mut escaped, path);
    // A path that leaves no room is refused for its own length.
    let room = SENTENCE.saturating_sub(FRAME).saturating_sub(escaped.len()).max(6);
    let (mut piece, mut rest) = split(text, room);
    fs_write(path, piece, mode)?;
    while !rest.is_empty() {
        (piece, rest) = split(rest, room);
        fs_write(path, piece, Mode::Append)?;
    }
    Ok(())
}

/// Splits where the text before takes at most `room` bytes in a sentence.
fn split(text: &str, room: usize) -> (&str, &str) {
    let mut width = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        width = width.saturating_add(json::width(byte));
        if width > room {
            let at = text.floor_char_boundary(at);
            return text.split_at_checked(at).unwrap_or((text, ""));
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_door;
    use alloc::rc::Rc;
    use alloc::string::ToString;
    use alloc::vec;
    use core::cell::RefCell;
    use serde_json::{Value, json};
    use synapse_reply::frame::{Form, Mark, header};

    fn framed(form: Form, payload: &[u8]) -> Vec<u8> {
        let mut framed = header(form, Mark::Ingested).to_vec();
        framed.extend_from_slice(payload);
        framed
    }

    #[test]
    fn file_is_read_in_pieces_to_its_end() {
        for length in [0, 5, REPLY - 1, REPLY, REPLY + 1, 3 * REPLY] {
            let file: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let content = file.clone();
            let door = move |sentence: &[u8]| {
                let call: Value = serde_json::from_slice(sentence).unwrap();
                let number =
                    |key: &str| usize::try_from(call["arguments"][key].as_u64().unwrap()).unwrap();
                let start = number("offset").min(content.len());
                let end = (start + number("length")).min(content.len());
                Ok(framed(Form::Bytes, &content[start..end]))
            };
            assert!(with_door(door, || read_all("/data/a")).unwrap() == file, "{length}");
        }
    }

    #[test]
    fn directory_is_listed_in_pages_that_fit() {
        let names: Vec<String> = (0..2500).map(|n| alloc::format!("{n:05}")).collect();
        let all = names.clone();
        let door = move |sentence: &[u8]| {
            let call: Value = serde_json::from_slice(sentence).unwrap();
            let limit = usize::try_from(call["arguments"]["limit"].as_u64().unwrap()).unwrap();
            if limit > 300 {
                return Err(528);
            }
            let after = call["arguments"]["after"].as_str().unwrap();
            let page = all.iter().filter(|name| name.as_str() > after).take(limit);
            let entry = |name| json!({"name": name, "kind": "file", "size": 1, "modified": 0});
            Ok(framed(Form::Json, page.map(entry).collect::<Value>().to_string().as_bytes()))
        };
        let entries = with_door(door, || list_all("/data")).unwrap();
        assert!(entries.iter().map(|entry| &entry.name).eq(&names));
    }

    #[test]
    fn search_is_paged_to_its_end() {
        let door = |sentence: &[u8]| {
            let call: Value = serde_json::from_slice(sentence).unwrap();
            let (line, next, skipped) = match call["arguments"]["offset"].as_u64().unwrap() {
                0 => (1, Some(70), 1),
                70 => (2, Some(95), 1),
                95 => (3, None, 3),
                other => unreachable!("no page told of {other}"),
            };
            let hit = json!({"path": "/data/a", "line": line, "column": 1, "text": "x"});
            let page = json!({"hits": [hit], "next": next, "skipped": skipped});
            Ok(framed(Form::Json, page.to_string().as_bytes()))
        };
        let found = with_door(door, || search_all("/data", "x")).unwrap();
        assert!(found.hits.iter().map(|hit| hit.line).eq([1, 2, 3]));
        assert_eq!((found.next, found.skipped), (None, 3));
    }

    #[test]
    fn text_is_written_in_sentences_that_fit() {
        let text = "é\u{1}\"x".repeat(400_000);
        let written = Rc::new(RefCell::new((String::new(), vec![])));
        let log = Rc::clone(&written);
        let door = move |sentence: &[u8]| {
            assert!(sentence.len() <= SENTENCE);
            let call: Value = serde_json::from_slice(sentence).unwrap();
            let (text, modes) = &mut *log.borrow_mut();
            text.push_str(call["arguments"]["content"].as_str().unwrap());
            modes.push(call["arguments"]["mode"].as_str().unwrap().chars().next().unwrap());
            Ok(framed(Form::Nothing, b""))
        };
        with_door(door, || write_all("/data/\n", &text, Mode::Replace)).unwrap();
        let (back, modes) = &*written.borrow();
        assert!(*back == text);
        assert_eq!(modes.iter().collect::<String>(), "raaaa");
    }

    #[test]
    fn empty_text_is_one_sentence() {
        let door = |sentence: &[u8]| {
            assert!(sentence.ends_with(br#""content":"","mode":"create"}}"#));
            Ok(framed(Form::Nothing, b""))
        };
        assert_eq!(with_door(door, || write_all("/data/a", "", Mode::Create)), Ok(()));
    }
}
