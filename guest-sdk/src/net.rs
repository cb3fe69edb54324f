//! Requests to the network and their answers, and connections from there
//!
//! A URL is handed over as it is, and the door takes only the canonical spelling.
//! No redirect is followed: [`Answer::header`] of `location` says where to.
//!
//! # Not here
//! Held replies and held headers ([`Sentence`]).

use crate::agents::{Channel, close};
use crate::{Argument, Content, Error, Sentence};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Deserialize;
use serde_json::Value;
use synapse_abi::registry::Primitive;
use synapse_reply::frame::Form;

/// What a place answered, of whatever status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The values of each header, by its name in lower case.
    pub headers: BTreeMap<String, Vec<String>>,
    /// Its body, packed where `content-encoding` says so.
    pub body: Vec<u8>,
}

impl Answer {
    /// Takes a reply apart, also one that was held and then read whole.
    ///
    /// # Errors
    /// `Frame`: it is no reply of a request.
    pub fn parse(mut reply: Vec<u8>) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Line {
            status: u16,
            headers: BTreeMap<String, Vec<String>>,
        }
        let end = reply.iter().position(|byte| *byte == b'\n').ok_or(Error::Frame)?;
        let body = reply.split_off(end.saturating_add(1));
        let line: Line = serde_json::from_slice(&reply).map_err(|_| Error::Frame)?;
        Ok(Self { status: line.status, headers: line.headers, body })
    }

    /// The first value of a header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.first().map(String::as_str)
    }
}

/// Fetches a URL.
///
/// # Errors
/// The kernel's.
pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<Answer, Error> {
    asked(Sentence::new(Primitive::NetHttpGet), url, headers)
}

/// Sends a content to a URL.
///
/// # Errors
/// The kernel's.
pub fn post<'a>(
    url: &str,
    headers: &[(&str, &str)],
    content: impl Into<Content<'a>>,
) -> Result<Answer, Error> {
    let sentence =
        Sentence::new(Primitive::NetHttpPost).set("content", Argument::Content(content.into()));
    asked(sentence, url, headers)
}

/// What listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener(pub u64);

/// Listens at an address of this machine. It is destructive: listen, or mint a warrant
/// for it, before anything is read.
///
/// # Errors
/// The kernel's: `Exists` where something listens already, `NotFound` for an address
/// that this machine does not have.
pub fn listen(host: &str, port: u16) -> Result<Listener, Error> {
    let sentence = Sentence::new(Primitive::NetListen)
        .set("host", Argument::Text(host))
        .set("port", Argument::Uint(port.into()));
    number(&sentence).map(Listener)
}

impl Listener {
    /// Takes the next connection, waiting at most so many milliseconds. What is sent
    /// there leaves the machine; what is received was written by others.
    ///
    /// # Errors
    /// The kernel's: `TimedOut`, `TooMany`.
    pub fn accept(self, timeout: u64) -> Result<Channel, Error> {
        let sentence = Sentence::new(Primitive::NetAccept)
            .set("listener", Argument::Uint(self.0))
            .set("timeout", Argument::Uint(timeout));
        number(&sentence).map(Channel)
    }

    /// Closes it; what it accepted stays open.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close(self) -> Result<(), Error> {
        close(self.0)
    }
}

fn number(sentence: &Sentence) -> Result<u64, Error> {
    let handle = sentence.submit()?.of(Form::Handle)?;
    handle.try_into().map(u64::from_le_bytes).map_err(|_| Error::Frame)
}

fn asked(sentence: Sentence, url: &str, headers: &[(&str, &str)]) -> Result<Answer, Error> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_string(), Value::from(*value)));
    let sentence = sentence
        .set("url", Argument::Text(url))
        .set("headers", Argument::Json(&Value::Object(headers.collect())));
    Answer::parse(sentence.submit()?.of(Form::Bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_door;
    use alloc::vec;
    use synapse_abi::code::Refusal;
    use synapse_reply::frame::{Mark, header};

    fn answering<T>(
        wanted: &'static str,
        answer: Result<&'static str, u32>,
        body: impl FnOnce() -> T,
    ) -> T {
        let door = move |bytes: &[u8]| {
            assert_eq!(str::from_utf8(bytes).unwrap(), wanted);
            let mut framed = header(Form::Bytes, Mark::Ingested).to_vec();
            framed.extend_from_slice(answer?.as_bytes());
            Ok(framed)
        };
        with_door(door, body)
    }

    #[test]
    fn an_answer_is_taken_apart() {
        let said = r#"{"name":"net_http_get","arguments":{"url":"https://a.example/","headers":{"accept":"text/html"}}}"#;
        let fetch = || get("https://a.example/", &[("accept", "text/html")]);
        let moved =
            "{\"status\":301,\"headers\":{\"location\":[\"/b\"],\"x\":[\"1\",\"2\"]}}\na\nb";
        let answer = answering(said, Ok(moved), fetch).unwrap();
        assert_eq!((answer.status, answer.header("location")), (301, Some("/b")));
        assert_eq!(answer.headers["x"], vec!["1", "2"]);
        assert_eq!((answer.header("y"), &*answer.body), (None, &b"a\nb"[..]));
        assert_eq!(answering(said, Err(401), fetch), Err(Error::Refused(Refusal::OutOfScope)));
        for wrong in ["", "{}\n", "{\"status\":200,\"headers\":{}}"] {
            assert_eq!(answering(said, Ok(wrong), fetch), Err(Error::Frame));
        }
    }

    #[test]
    fn a_listener_is_asked_for_and_accepts() {
        let handle = |wanted: &'static str, number: u64| {
            move |bytes: &[u8]| {
                assert_eq!(str::from_utf8(bytes).unwrap(), wanted);
                Ok([&header(Form::Handle, Mark::User)[..], &number.to_le_bytes()].concat())
            }
        };
        let wanted = r#"{"name":"net_listen","arguments":{"host":"127.0.0.1","port":8080}}"#;
        let listener = with_door(handle(wanted, 3), || listen("127.0.0.1", 8080));
        assert_eq!(listener, Ok(Listener(3)));
        let wanted = r#"{"name":"net_accept","arguments":{"listener":3,"timeout":5}}"#;
        let line = with_door(handle(wanted, 4), || Listener(3).accept(5));
        assert_eq!(line, Ok(Channel(4)));
    }

    #[test]
    fn a_post_says_its_content_last() {
        let said = r#"{"name":"net_http_post","arguments":{"url":"https://a.example/","headers":{},"content":"x"}}"#;
        let sent = || post("https://a.example/", &[], "x").map(|answer| answer.status);
        assert_eq!(answering(said, Ok("{\"status\":204,\"headers\":{}}\n"), sent), Ok(204));
    }
}
