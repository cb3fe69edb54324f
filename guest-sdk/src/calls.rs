//! Primitives with a signature of their own
//!
//! One function for one call: what it takes is what the registry declares, and
//! what it gives is the declared reply. A path is spelled out or held.
//!
//! # Not here
//! Whole files and whole directories ([`files`](crate::files)); replies that are
//! held ([`hold`](crate::hold)).

use crate::{Argument, Content, Error, Held, Reply, Selector, Sentence, Text};
use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use synapse_abi::registry::Primitive;
use synapse_reply::frame::Form;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A new file: a taken name is a fault.
    Create,
    /// The whole content of the file.
    Replace,
    /// The end of the file.
    Append,
}

impl Mode {
    const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Append => "append",
        }
    }
}

/// What an entry of a directory is; links are not followed to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, FIFO or socket.
    Other,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// Its name in the directory.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file; else 0.
    pub size: u64,
    /// Last change of the content, milliseconds since 1970.
    pub modified: u64,
}

/// One page of a search.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Page {
    /// Where the text stands, in order of path.
    pub hits: Vec<Hit>,
    /// The offset of the page that follows; `None` on the last.
    #[serde(deserialize_with = "Option::deserialize")]
    pub next: Option<u64>,
    /// What was listed and not searched, from the first page to the end of this.
    pub skipped: u64,
}

/// A place where a text stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The byte of the line, from 1.
    pub column: u64,
    /// What of the line lies around it.
    pub text: String,
}

/// Shows text to the human.
///
/// # Errors
/// The kernel's.
pub fn console_write<'a>(content: impl Into<Content<'a>>) -> Result<(), Error> {
    nothing(
        Sentence::new(Primitive::ConsoleWrite).set("content", Argument::Content(content.into())),
    )
}

/// Asks the human, and gives the line that was typed.
///
/// # Errors
/// The kernel's.
pub fn console_ask<'a>(question: impl Into<Content<'a>>) -> Result<String, Error> {
    let line = asking(question.into()).submit()?.of(Form::Bytes)?;
    String::from_utf8(line).map_err(|_| Error::Frame)
}

/// Milliseconds since 1970.
///
/// # Errors
/// The kernel's.
pub fn clock_read() -> Result<u64, Error> {
    #[derive(Deserialize)]
    struct Clock {
        unix_ms: u64,
    }
    let clock: Clock = json(Sentence::new(Primitive::ClockRead).submit()?)?;
    Ok(clock.unix_ms)
}

/// At most `length` bytes of a file from `offset`; fewer where it ends.
///
/// # Errors
/// The kernel's.
pub fn fs_read<'a>(path: impl Into<Text<'a>>, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    reading(path.into(), offset, length).submit()?.of(Form::Bytes)
}

/// At most `limit` entries of a directory with names greater than `after`, in
/// order of name. A page shorter than `limit` is the last.
///
/// # Errors
/// The kernel's.
pub fn fs_list<'a>(
    path: impl Into<Text<'a>>,
    after: &str,
    limit: u64,
) -> Result<Vec<Entry>, Error> {
    json(listing(path.into(), after, limit).submit()?)
}

/// Writes a file.
///
/// # Errors
/// The kernel's.
pub fn fs_write<'a, 'b>(
    path: impl Into<Text<'a>>,
    content: impl Into<Content<'b>>,
    mode: Mode,
) -> Result<(), Error> {
    nothing(
        Sentence::new(Primitive::FsWrite)
            .set("path", path.into().into())
            .set("content", Argument::Content(content.into()))
            .set("mode", Argument::Text(mode.name())),
    )
}

/// Puts `new` in the one place of a file where `old` stands.
///
/// # Errors
/// The kernel's.
pub fn fs_edit<'a, 'b, 'c>(
    path: impl Into<Text<'a>>,
    old: impl Into<Content<'b>>,
    new: impl Into<Content<'c>>,
) -> Result<(), Error> {
    nothing(
        Sentence::new(Primitive::FsEdit)
            .set("path", path.into().into())
            .set("old", Argument::Content(old.into()))
            .set("new", Argument::Content(new.into())),
    )
}

/// Where a text stands in a file, or in the files below a directory, from
/// `offset` on: 0 at first, then the [`next`](Page::next) of the page before.
///
/// # Errors
/// The kernel's.
pub fn fs_search<'a>(path: impl Into<Text<'a>>, text: &str, offset: u64) -> Result<Page, Error> {
    json(searching(path.into(), text, offset).submit()?)
}

/// Moves a file or a directory to a free name.
///
/// # Errors
/// The kernel's.
pub fn fs_move<'a, 'b>(from: impl Into<Text<'a>>, to: impl Into<Text<'b>>) -> Result<(), Error> {
    nothing(
        Sentence::new(Primitive::FsMove)
            .set("from", from.into().into())
            .set("to", to.into().into()),
    )
}

/// Deletes a file, or a directory and all below it.
///
/// # Errors
/// The kernel's.
pub fn fs_delete<'a>(path: impl Into<Text<'a>>) -> Result<(), Error> {
    nothing(Sentence::new(Primitive::FsDelete).set("path", path.into().into()))
}

/// Releases bytes of a held value: the task's mark rises to its label.
///
/// # Errors
/// The kernel's.
pub fn value_read(value: Held, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    let sentence = Sentence::new(Primitive::ValueRead)
        .set("value", Argument::Held(value))
        .set("offset", Argument::Uint(offset))
        .set("length", Argument::Uint(length));
    sentence.submit()?.of(Form::Bytes)
}

/// Takes what the selector means out of its held value. That there is no such
/// thing shows where the new value is used.
///
/// # Errors
/// The kernel's.
pub fn value_pick(selector: &Selector) -> Result<Held, Error> {
    let sentence = Sentence::new(Primitive::ValuePick)
        .set("value", Argument::Held(selector.value()))
        .set("selector", Argument::Selector(selector));
    sentence.submit()?.held()
}

pub(crate) fn asking(question: Content<'_>) -> Sentence {
    Sentence::new(Primitive::ConsoleAsk).set("question", Argument::Content(question))
}

pub(crate) fn reading(path: Text<'_>, offset: u64, length: u64) -> Sentence {
    Sentence::new(Primitive::FsRead)
        .set("path", path.into())
        .set("offset", Argument::Uint(offset))
        .set("length", Argument::Uint(length))
}

pub(crate) fn listing(path: Text<'_>, after: &str, limit: u64) -> Sentence {
    Sentence::new(Primitive::FsList)
        .set("path", path.into())
        .set("after", Argument::Text(after))
        .set("limit", Argument::Uint(limit))
}

pub(crate) fn searching(path: Text<'_>, text: &str, offset: u64) -> Sentence {
    Sentence::new(Primitive::FsSearch)
        .set("path", path.into())
        .set("text", Argument::Text(text))
        .set("offset", Argument::Uint(offset))
}

fn nothing(sentence: Sentence) -> Result<(), Error> {
    sentence.submit()?.of(Form::Nothing).map(drop)
}

fn json<T: DeserializeOwned>(reply: Reply) -> Result<T, Error> {
    serde_json::from_slice(&reply.of(Form::Json)?).map_err(|_| Error::Frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_door;
    use alloc::borrow::ToOwned;
    use alloc::vec;
    use core::fmt::Debug;
    use synapse_abi::code::Refusal;
    use synapse_reply::Fault;
    use synapse_reply::frame::{Mark, header};

    /// Runs `body` with a door that takes one sentence and gives one answer.
    fn exchange<T: Debug>(
        sentence: &'static str,
        answer: Result<(Form, &'static [u8]), u32>,
        body: impl FnOnce() -> T,
    ) -> T {
        let door = move |bytes: &[u8]| {
            assert_eq!(str::from_utf8(bytes).unwrap(), sentence);
            let (form, payload) = answer?;
            let mut framed = header(form, Mark::Ingested).to_vec();
            framed.extend_from_slice(payload);
            Ok(framed)
        };
        with_door(door, body)
    }

    #[test]
    fn each_function_is_one_sentence() {
        let none = Ok((Form::Nothing, b"".as_slice()));
        let said = r#"{"name":"console_write","arguments":{"content":"a \"b\""}}"#;
        assert_eq!(exchange(said, none, || console_write("a \"b\"")), Ok(()));
        let said = r#"{"name":"console_write","arguments":{"content":{"$held":4}}}"#;
        assert_eq!(exchange(said, none, || console_write(Held(4))), Ok(()));
        let said =
            r#"{"name":"fs_write","arguments":{"path":"/data/a","content":"x","mode":"append"}}"#;
        assert_eq!(exchange(said, none, || fs_write("/data/a", "x", Mode::Append)), Ok(()));
        let said =
            r#"{"name":"fs_edit","arguments":{"path":"/data/a","old":{"$held":4},"new":"x"}}"#;
        assert_eq!(exchange(said, none, || fs_edit("/data/a", Held(4), "x")), Ok(()));
        let said = r#"{"name":"fs_move","arguments":{"from":"/data/a","to":"/data/b"}}"#;
        assert_eq!(exchange(said, none, || fs_move("/data/a", "/data/b")), Ok(()));
        let said =
            r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":65536}}"#;
        let bytes = Ok((Form::Bytes, b"\xff".as_slice()));
        assert_eq!(exchange(said, bytes, || fs_read("/data/a.md", 0, 65536)), Ok(vec![255]));
        let said = r#"{"name":"value_pick","arguments":{"value":{"$held":1},"selector":{"$select":1,"take":"path"}}}"#;
        let held = Ok((Form::Held, b"\x05\0\0\0\0\0\0\0".as_slice()));
        let only = Selector::take(Held(1), "path");
        assert_eq!(exchange(said, held, || value_pick(&only)), Ok(Held(5)));
        let said = r#"{"name":"fs_move","arguments":{"from":{"$held":5},"to":"/data/b"}}"#;
        let to = "/data/b".to_owned();
        assert_eq!(exchange(said, none, || fs_move(Held(5), &to)), Ok(()));
        let said =
            r#"{"name":"value_read","arguments":{"value":{"$held":5},"offset":1,"length":2}}"#;
        assert_eq!(exchange(said, bytes, || value_read(Held(5), 1, 2)), Ok(vec![255]));
        let said = r#"{"name":"clock_read","arguments":{}}"#;
        let clock = Ok((Form::Json, br#"{"unix_ms":1764500000000}"#.as_slice()));
        assert_eq!(exchange(said, clock, clock_read), Ok(1_764_500_000_000));
    }

    #[test]
    fn listing_is_an_array_of_entries() {
        let said = r#"{"name":"fs_list","arguments":{"path":"/data","after":"a","limit":2}}"#;
        let page = br#"[{"name":"b\n","kind":"directory","size":0,"modified":1},{"name":"c","kind":"link","size":0,"modified":2}]"#;
        let entries =
            exchange(said, Ok((Form::Json, page.as_slice())), || fs_list("/data", "a", 2));
        let wanted = vec![
            Entry { name: "b\n".to_owned(), kind: EntryKind::Directory, size: 0, modified: 1 },
            Entry { name: "c".to_owned(), kind: EntryKind::Link, size: 0, modified: 2 },
        ];
        assert_eq!(entries, Ok(wanted));
        for wrong in [b"{}".as_slice(), b"[{}]", b""] {
            let entries = exchange(said, Ok((Form::Json, wrong)), || fs_list("/data", "a", 2));
            assert_eq!(entries, Err(Error::Frame));
        }
    }

    #[test]
    fn question_is_answered_with_a_line() {
        let said = r#"{"name":"console_ask","arguments":{"question":"Which?"}}"#;
        let answered = |bytes: &'static [u8]| {
            exchange(said, Ok((Form::Bytes, bytes)), || console_ask("Which?"))
        };
        assert_eq!(answered("die größte".as_bytes()), Ok("die größte".to_owned()));
        assert_eq!(answered(b"\xff"), Err(Error::Frame));
    }

    #[test]
    fn page_of_a_search_says_whether_it_is_the_last() {
        let said =
            r#"{"name":"fs_search","arguments":{"path":"/data","text":"a \"b\"","offset":70}}"#;
        let searched = |page: &'static str| {
            exchange(said, Ok((Form::Json, page.as_bytes())), || fs_search("/data", "a \"b\"", 70))
        };
        let hit = Hit { path: "/data/é".to_owned(), line: 3, column: 9, text: "x\n".to_owned() };
        let page = r#"{"hits":[{"path":"/data/é","line":3,"column":9,"text":"x\n"}],"next":95,"skipped":2}"#;
        assert_eq!(searched(page), Ok(Page { hits: vec![hit], next: Some(95), skipped: 2 }));
        let last = Page { hits: vec![], next: None, skipped: 0 };
        assert_eq!(searched(r#"{"hits":[],"next":null,"skipped":0}"#), Ok(last));
        for wrong in [r#"{"hits":[],"skipped":0}"#, r#"{"hits":[{}],"next":null,"skipped":0}"#] {
            assert_eq!(searched(wrong), Err(Error::Frame));
        }
    }

    #[test]
    fn failures_keep_their_kind() {
        let said = r#"{"name":"fs_delete","arguments":{"path":"/data/x"}}"#;
        let delete = || fs_delete("/data/x");
        let refused = Err(Error::Refused(Refusal::Destructive));
        assert_eq!(exchange(said, Err(301), delete), refused);
        assert_eq!(exchange(said, Err(502), delete), Err(Error::Fault(Fault::NotFound)));
        assert_eq!(exchange(said, Err(9), delete), Err(Error::Unknown(9)));
        assert_eq!(exchange(said, Ok((Form::Bytes, b"")), delete), Err(Error::Frame));
    }
}
