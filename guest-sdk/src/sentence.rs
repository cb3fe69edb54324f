//! Any call of the 26, and any warrant, as the door wants it written
//!
//! Arguments are named; the registry puts them in order. Nothing is checked
//! here beyond that: what the door would refuse is sent, and refused.
//!
//! # Not here
//! Functions with a signature for each primitive (`calls`).

use crate::{Error, Selector, Target, json};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use serde_json::Value;
use synapse_abi::registry::Primitive;
use synapse_reply::frame::{Form, HEADER, Mark, VERSION};

/// A held value: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held(pub u64);

/// One piece of a [`Content::Parts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text.
    Text(&'a str),
    /// All bytes of a held value.
    Held(Held),
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<Held> for Part<'_> {
    fn from(held: Held) -> Self {
        Self::Held(held)
    }
}

/// A path, a URL, a host or another text: spelled out, or held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the grammar has no third form")]
pub enum Text<'a> {
    /// As it stands.
    Literal(&'a str),
    /// The bytes of a held value.
    Held(Held),
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Literal(text)
    }
}

impl<'a> From<&'a String> for Text<'a> {
    fn from(text: &'a String) -> Self {
        Self::Literal(text)
    }
}

impl From<Held> for Text<'_> {
    fn from(held: Held) -> Self {
        Self::Held(held)
    }
}

/// Bytes that travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Text.
    Text(&'a str),
    /// All bytes of a held value.
    Held(Held),
    /// One piece after the other.
    Parts(&'a [Part<'a>]),
}

impl<'a> From<&'a str> for Content<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<Held> for Content<'_> {
    fn from(held: Held) -> Self {
        Self::Held(held)
    }
}

impl<'a> From<&'a [Part<'a>]> for Content<'a> {
    fn from(parts: &'a [Part<'a>]) -> Self {
        Self::Parts(parts)
    }
}

impl<'a, const N: usize> From<&'a [Part<'a>; N]> for Content<'a> {
    fn from(parts: &'a [Part<'a>; N]) -> Self {
        Self::Parts(parts)
    }
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A Text, Path, Url, Host, Choice or Name.
    Text(&'a str),
    /// A Uint or a Port, and a Handle of any kind but a value's.
    Uint(u64),
    /// A held value, where one may stand.
    Held(Held),
    /// A Content.
    Content(Content<'a>),
    /// A Prompt: roles and texts.
    Prompt(&'a [(&'a str, Content<'a>)]),
    /// A Selector.
    Selector(&'a Selector),
    /// A Json or a Literal, or a value inside one, that names nothing held.
    Json(&'a Value),
    /// A Json, member by member: held values and selectors can stand among them.
    Object(&'a [(&'a str, Argument<'a>)]),
    /// Canonical JSON as it is to stand.
    Raw(&'a str),
}

impl<'a> From<Text<'a>> for Argument<'a> {
    fn from(text: Text<'a>) -> Self {
        match text {
            Text::Literal(text) => Self::Text(text),
            Text::Held(held) => Self::Held(held),
        }
    }
}

impl<'a> From<Target<'a>> for Argument<'a> {
    fn from(target: Target<'a>) -> Self {
        match target {
            Target::Literal(text) => Self::Text(text),
            Target::Selected(selector) => Self::Selector(selector),
        }
    }
}

/// A sentence in the making.
///
/// ```
/// use synapse_guest::{Argument, Sentence, abi::registry::Primitive};
///
/// let sentence = Sentence::new(Primitive::FsList)
///     .set("limit", Argument::Uint(10))
///     .set("path", Argument::Text("/data"))
///     .set("after", Argument::Text(""));
/// assert_eq!(
///     sentence.text(),
///     r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":10}}"#
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Sentence {
    primitive: Primitive,
    /// Where each argument stands in `values`.
    arguments: Vec<(&'static str, Range<usize>)>,
    values: String,
    held: bool,
}

impl Sentence {
    /// A sentence about `primitive`, without arguments yet.
    #[must_use]
    pub const fn new(primitive: Primitive) -> Self {
        Self { primitive, arguments: Vec::new(), values: String::new(), held: false }
    }

    /// Gives the argument `name` a value; the last one given counts.
    ///
    /// A name that the registry does not give the primitive is written last.
    #[must_use]
    pub fn set(mut self, name: &'static str, argument: Argument<'_>) -> Self {
        self.arguments.retain(|(former, _)| *former != name);
        let start = self.values.len();
        argument.write(&mut self.values);
        self.arguments.push((name, start..self.values.len()));
        self
    }

    /// Asks that the reply be held.
    #[must_use]
    pub const fn hold(mut self) -> Self {
        self.held = true;
        self
    }

    /// The call.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.values.len().saturating_add(FRAME));
        out.push_str("{\"name\":");
        self.body(&mut out);
        out.push_str(if self.held { ",\"hold\":true}" } else { "}" });
        out
    }

    /// The warrant for `uses` such calls; arguments that are no targets are to
    /// be left out.
    #[must_use]
    pub fn warrant(&self, uses: u64) -> String {
        let mut out = String::from("{\"warrant\":");
        self.body(&mut out);
        json::display(&mut out, format_args!(",\"uses\":{uses}}}"));
        out
    }

    /// Submits the call.
    ///
    /// # Errors
    /// The kernel's, and [`Error::Frame`] if the reply is of another version.
    pub fn submit(&self) -> Result<Reply, Error> {
        Self::send(&self.text())
    }

    pub(crate) fn send(text: &str) -> Result<Reply, Error> {
        Reply::parse(crate::call(text.as_bytes()).map_err(Error::from)?)
    }

    fn body(&self, out: &mut String) {
        let row = self.primitive.row();
        json::string(out, row.name);
        out.push_str(",\"arguments\":{");
        let declared = row
            .arguments
            .iter()
            .filter_map(|declared| self.arguments.iter().find(|(name, _)| *name == declared.name));
        let others = self
            .arguments
            .iter()
            .filter(|(name, _)| row.arguments.iter().all(|declared| declared.name != *name));
        for (at, (name, value)) in declared.chain(others).enumerate() {
            if at > 0 {
                out.push(',');
            }
            json::string(out, name);
            out.push(':');
            out.push_str(self.values.get(value.clone()).unwrap_or_default());
        }
        out.push('}');
    }
}

/// Bytes that most calls have beside their arguments.
const FRAME: usize = 128;

impl Argument<'_> {
    fn write(self, out: &mut String) {
        match self {
            Self::Text(text) => json::string(out, text),
            Self::Uint(number) => json::display(out, format_args!("{number}")),
            Self::Held(held) => held.write(out),
            Self::Content(content) => content.write(out),
            Self::Selector(selector) => selector.write(out),
            Self::Json(document) => json::value(out, document),
            Self::Object(members) => {
                out.push('{');
                for (at, (key, member)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    json::key(out, key);
                    out.push(':');
                    member.write(out);
                }
                out.push('}');
            }
            Self::Raw(text) => out.push_str(text),
            Self::Prompt(messages) => {
                out.push('[');
                for (at, (role, text)) in messages.iter().enumerate() {
                    out.push_str(if at > 0 { ",{\"role\":" } else { "{\"role\":" });
                    json::string(out, role);
                    out.push_str(",\"text\":");
                    text.write(out);
                    out.push('}');
                }
                out.push(']');
            }
        }
    }
}

impl Content<'_> {
    fn write(self, out: &mut String) {
        match self {
            Self::Text(text) => json::string(out, text),
            Self::Held(held) => held.write(out),
            Self::Parts(parts) => {
                out.push_str("{\"parts\":[");
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    match *part {
                        Part::Text(text) => json::string(out, text),
                        Part::Held(held) => held.write(out),
                    }
                }
                out.push_str("]}");
            }
        }
    }
}

impl Held {
    fn write(self, out: &mut String) {
        json::display(out, format_args!("{{\"$held\":{}}}", self.0));
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What the payload is.
    pub form: Form,
    /// How far the task's mark has risen.
    pub mark: Mark,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Reply {
    /// Takes a framed reply apart.
    ///
    /// # Errors
    /// [`Error::Frame`].
    pub fn parse(mut bytes: Vec<u8>) -> Result<Self, Error> {
        let Some(&[VERSION, form, mark, 0]) = bytes.first_chunk::<HEADER>() else {
            return Err(Error::Frame);
        };
        let form = Form::from_number(form).ok_or(Error::Frame)?;
        let mark = Mark::from_number(mark).ok_or(Error::Frame)?;
        bytes.drain(..HEADER);
        Ok(Self { form, mark, payload: bytes })
    }

    /// The payload, if it has this form.
    ///
    /// # Errors
    /// [`Error::Frame`].
    pub fn of(self, form: Form) -> Result<Vec<u8>, Error> {
        if self.form == form { Ok(self.payload) } else { Err(Error::Frame) }
    }

    /// The held value.
    ///
    /// # Errors
    /// [`Error::Frame`] if the reply is not held.
    pub fn held(self) -> Result<Held, Error> {
        let bytes = self.of(Form::Held)?;
        let number = bytes.try_into().map_err(|_| Error::Frame)?;
        Ok(Held(u64::from_le_bytes(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use serde_json::json;
    use synapse_reply::frame::header;

    #[test]
    fn arguments_stand_in_the_order_of_the_registry() {
        for row in &synapse_abi::registry::REGISTRY {
            let mut sentence = Sentence::new(row.primitive);
            for argument in row.arguments.iter().rev() {
                sentence = sentence.set(argument.name, Argument::Uint(1));
            }
            let wanted: Vec<_> = row
                .arguments
                .iter()
                .map(|argument| alloc::format!("\"{}\":1", argument.name))
                .collect();
            let wanted = alloc::format!(
                "{{\"name\":\"{}\",\"arguments\":{{{}}}}}",
                row.name,
                wanted.join(",")
            );
            assert_eq!(sentence.text(), wanted);
        }
    }

    #[test]
    fn holds_warrants_and_strangers_have_their_places() {
        let delete = Sentence::new(Primitive::FsDelete)
            .set("why", Argument::Text("no such argument"))
            .set("path", Argument::Text("/data/y"))
            .set("path", Argument::Text("/data/x"));
        let wrong =
            r#"{"name":"fs_delete","arguments":{"path":"/data/x","why":"no such argument"}}"#;
        assert_eq!(delete.text(), wrong);
        let delete = Sentence::new(Primitive::FsDelete).set("path", Argument::Text("/data/x"));
        let warrant = r#"{"warrant":"fs_delete","arguments":{"path":"/data/x"},"uses":1}"#;
        assert_eq!(delete.warrant(1), warrant);
        let clock = Sentence::new(Primitive::ClockRead).hold();
        assert_eq!(clock.text(), r#"{"name":"clock_read","arguments":{},"hold":true}"#);
    }

    #[test]
    fn contents_prompts_and_documents_are_canonical() {
        let parts = [Part::Text("a\n"), Part::Held(Held(3))];
        let generate = Sentence::new(Primitive::ModelGenerate).set(
            "prompt",
            Argument::Prompt(&[("user", Content::Parts(&parts)), ("x", "y".into())]),
        );
        let wanted = r#"{"name":"model_generate","arguments":{"prompt":[{"role":"user","text":{"parts":["a\n",{"$held":3}]}},{"role":"x","text":"y"}]}}"#;
        assert_eq!(generate.text(), wanted);
        let get = Sentence::new(Primitive::NetHttpGet)
            .set("headers", Argument::Json(&json!({"$x": "y"})))
            .set("url", Argument::Held(Held(7)));
        let wanted =
            r#"{"name":"net_http_get","arguments":{"url":{"$held":7},"headers":{"$$x":"y"}}}"#;
        assert_eq!(get.text(), wanted);
    }

    #[test]
    fn replies_are_taken_apart_or_refused() {
        let mut framed = header(Form::Held, Mark::User).to_vec();
        framed.extend_from_slice(&9u64.to_le_bytes());
        let reply = Reply::parse(framed.clone()).unwrap();
        assert_eq!(reply.clone().held(), Ok(Held(9)));
        assert_eq!(reply.of(Form::Bytes), Err(Error::Frame));
        framed.truncate(8);
        assert_eq!(Reply::parse(framed).unwrap().held(), Err(Error::Frame));
        let header = header(Form::Held, Mark::User);
        assert_eq!(Reply::parse(header.to_vec()).map(|it| it.mark), Ok(Mark::User));
        for (at, wrong) in [(0, 2), (1, 5), (2, 3), (3, 1)] {
            let mut other = header.to_vec();
            other[at] = wrong;
            assert_eq!(Reply::parse(other), Err(Error::Frame), "byte {at}");
        }
        assert_eq!(Reply::parse(b"".to_vec()), Err(Error::Frame));
        assert_eq!("text".to_owned(), Content::from("text").plain());
    }

    impl Content<'_> {
        fn plain(self) -> String {
            let mut out = String::new();
            self.write(&mut out);
            serde_json::from_str(&out).unwrap()
        }
    }
}
