//! What a sentence asks of a guest on WASI.
//!
//! Read as leniently as an agent would that makes the calls itself: no grammar, no
//! grant, no label.
//!
//! # Not here
//! Doing it (`ambient`).

use core::fmt::Write as _;

use serde_json::{Map, Value};

/// One act; paths begin without a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Bytes that the agent has already.
    Held(Vec<u8>),
    Read(String),
    List(String),
    Create(String, Vec<u8>),
    Replace(String, Vec<u8>),
    Append(String, Vec<u8>),
    Edit(String, Vec<u8>, Vec<u8>),
    Move(String, String),
    Delete(String),
    /// A request, as it goes over the wire.
    Send(Vec<u8>),
}

/// What the guest is told to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    Read,
    Replace,
    Create,
    RemoveFile,
    RemoveFolder,
    Rename,
    MakeFolder,
    List,
    Send,
}

impl Verb {
    /// Its number in `ambient.wat`.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Replace => 1,
            Self::Create => 2,
            Self::RemoveFile => 3,
            Self::RemoveFolder => 4,
            Self::Rename => 5,
            Self::MakeFolder => 6,
            Self::List => 7,
            Self::Send => 8,
        }
    }
}

impl Act {
    /// The act of a sentence, if WASI has one, and whether its reply is held.
    pub(super) fn read(sentence: &str, held: &[Option<Vec<u8>>]) -> (Option<Self>, bool) {
        let said: Value = serde_json::from_str(sentence).unwrap_or_default();
        let keeps = said.get("hold") == Some(&Value::Bool(true));
        let given = said.get("arguments").and_then(Value::as_object);
        let name = said.get("name").and_then(Value::as_str);
        (name.zip(given).and_then(|(name, given)| Self::of(name, &Given { given, held })), keeps)
    }

    fn of(name: &str, given: &Given<'_>) -> Option<Self> {
        Some(match name {
            "fs_read" => Self::Read(given.path("path")?),
            "fs_list" => Self::List(given.path("path")?),
            "fs_write" => {
                let (path, content) = (given.path("path")?, given.bytes("content")?);
                match given.text("mode")?.as_str() {
                    "create" => Self::Create(path, content),
                    "replace" => Self::Replace(path, content),
                    "append" => Self::Append(path, content),
                    _ => return None,
                }
            }
            "fs_edit" => Self::Edit(given.path("path")?, given.bytes("old")?, given.bytes("new")?),
            "fs_move" => Self::Move(given.path("from")?, given.path("to")?),
            "fs_delete" => Self::Delete(given.path("path")?),
            "value_read" => Self::Held(given.value(given.given.get("value")?)?),
            "net_http_get" => Self::Send(given.request("GET", b"")?),
            "net_http_post" => Self::Send(given.request("POST", &given.bytes("content")?)?),
            _ => return None,
        })
    }
}

struct Given<'a> {
    given: &'a Map<String, Value>,
    held: &'a [Option<Vec<u8>>],
}

impl Given<'_> {
    fn path(&self, name: &str) -> Option<String> {
        let path = self.text(name)?;
        Some(path.trim_matches('/').to_owned())
    }

    fn text(&self, name: &str) -> Option<String> {
        String::from_utf8(self.bytes(name)?).ok()
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.value(self.given.get(name)?)
    }

    /// The bytes of a text, of a held value, or of parts of both.
    fn value(&self, value: &Value) -> Option<Vec<u8>> {
        if let Some(text) = value.as_str() {
            return Some(text.as_bytes().to_vec());
        }
        if let Some(number) = value.get("$held").unwrap_or(value).as_u64() {
            let index = usize::try_from(number).ok()?.checked_sub(1)?;
            return self.held.get(index)?.clone();
        }
        let parts = value.get("parts")?.as_array()?;
        let parts: Option<Vec<_>> = parts.iter().map(|part| self.value(part)).collect();
        Some(parts?.concat())
    }

    fn request(&self, method: &str, content: &[u8]) -> Option<Vec<u8>> {
        let url = self.text("url")?;
        let (_, rest) = url.split_once("://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let path = if path.is_empty() { "/" } else { path };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n");
        for (name, value) in self.given.get("headers")?.as_object()? {
            let value = String::from_utf8(self.value(value)?).ok()?;
            // Writing to a String cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "content-length: {}\r\n\r\n", content.len());
        Some([head.as_bytes(), content].concat())
    }
}
