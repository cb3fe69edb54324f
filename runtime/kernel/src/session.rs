//! A session: what was said in its turns, and what of it a new turn is shown.
//!
//! The guest of a turn starts with nothing but its input. What the human typed and
//! what an untainted agent answered stands there in the clear; of everything else
//! the input tells that it is there, and the bytes stay held.
//!
//! # Invariants
//! - I6: a message has the label that it came with, and no way to another; a turn's
//!   mark is the join of all that its input may show, also where it is cut short.
//! - Nothing from outside stands in the clear.
//!
//! # Not here
//! What a line cites (the boundary): it does in the run in which it was typed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use synapse_boundary::{Integrity, Label};
use synapse_primitives::Labelled;
use synapse_primitives::execute::escape;
use synapse_reply::turn;

use crate::grant::Grant;
use crate::held::Value;

/// What a run goes on with; by default nothing.
#[derive(Debug, Default)]
pub struct Session {
    /// The name of the run that it goes on from.
    pub from: Option<String>,
    /// What was said, the first first.
    pub messages: Vec<Message>,
    /// The held values, by their numbers from 1.
    pub values: Vec<Value>,
}

/// One message. Nothing changes its label.
#[derive(Clone, Debug)]
pub struct Message {
    from: Author,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Clear(Labelled<String>),
    Held(u64),
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The human's line.
    Human,
    /// An agent's answer.
    Agent,
    /// A child's task.
    Parent,
    /// A reply that is held.
    World,
}

impl Author {
    /// Its name in a turn's input.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => turn::HUMAN,
            Self::Agent => turn::AGENT,
            Self::Parent => turn::PARENT,
            Self::World => turn::WORLD,
        }
    }
}

impl Message {
    /// A text that may stand in the clear; nothing, if it comes from outside.
    #[must_use]
    pub fn clear(from: Author, text: Labelled<String>) -> Option<Self> {
        let trusted = text.label().integrity != Integrity::Ingested;
        trusted.then_some(Self { from, body: Body::Clear(text) })
    }

    /// The held value with this number.
    #[must_use]
    pub const fn held(from: Author, value: u64) -> Self {
        Self { from, body: Body::Held(value) }
    }

    /// Whose it is.
    #[must_use]
    pub const fn from(&self) -> Author {
        self.from
    }

    /// Its text, if it stands in the clear.
    #[must_use]
    pub const fn text(&self) -> Option<&Labelled<String>> {
        match &self.body {
            Body::Clear(text) => Some(text),
            Body::Held(_) => None,
        }
    }

    /// The number of the value that is held in its place.
    #[must_use]
    pub const fn value(&self) -> Option<u64> {
        match self.body {
            Body::Clear(_) => None,
            Body::Held(number) => Some(number),
        }
    }

    fn json(&self, values: &[Value]) -> String {
        let from = self.from.name();
        match &self.body {
            Body::Clear(text) => said(from, text.value()),
            Body::Held(number) => {
                let index = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                let about = index.and_then(|index| values.get(index)).map(Value::about);
                let mut json = format!("{{\"from\":\"{from}\",\"value\":{number}");
                // Writing to a String cannot fail.
                if let Some(primitive) = about.and_then(|about| about.primitive) {
                    let _ = write!(json, ",\"primitive\":\"{}\"", primitive.row().name);
                }
                let _ = write!(json, ",\"record\":{}}}", about.map_or(0, |about| about.record));
                json
            }
        }
    }
}

/// The label of a turn that is shown these messages, and nothing more.
pub(crate) fn mark(messages: &[Message], start: Label) -> Label {
    messages.iter().filter_map(Message::text).fold(start, |mark, text| mark.join(text.label()))
}

/// A turn's input, as `docs/abi.md` has it. Of a long session it has the end.
pub(crate) fn input(
    texts: &[String],
    messages: &[Message],
    values: &[Value],
    handles: impl Iterator<Item = (u64, &'static str)>,
    warrants: &[String],
    (grant, calls): (&Grant, u64),
) -> String {
    let (mut room, mut shown) = (SHOWN, Vec::new());
    for message in messages.iter().rev() {
        let message = message.json(values);
        match room.checked_sub(message.len()) {
            Some(left) => room = left,
            // Its own line is what a turn is about.
            None if shown.is_empty() => room = 0,
            None => break,
        }
        shown.push(message);
    }
    let package = texts.iter().map(|text| said(turn::PACKAGE, text));
    let messages: Vec<String> = package.chain(shown.into_iter().rev()).collect();
    let handle = |(number, kind)| format!("{{\"n\":{number},\"kind\":\"{kind}\"}}");
    let handles: Vec<String> = handles.map(handle).collect();
    format!(
        "{{\"v\":{},\"messages\":[{}],\"handles\":[{}],\"warrants\":[{}],\"grant\":{},\"budget\":{{\"calls\":{calls}}}}}",
        turn::VERSION,
        messages.join(","),
        handles.join(","),
        warrants.join(","),
        grant.summary(),
    )
}

fn said(from: &str, text: &str) -> String {
    let mut json = format!("{{\"from\":\"{from}\",\"text\":\"");
    escape(&mut json, text);
    json.push_str("\"}");
    json
}

/// Bytes of a session's messages that one input has at most.
const SHOWN: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use core::iter::empty;

    use synapse_boundary::{Integrity, Label, Origin, Secrecy};
    use synapse_primitives::Labelled;

    use super::{Author, Message, SHOWN, input, mark};
    use crate::grant::Grant;

    const GRANT: &str = "version = 1\nprimitives = [\"clock_read\"]\n[budget]\ncalls = 7\n";

    fn typed(text: &str) -> Message {
        let label = Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE);
        Message::clear(Author::Human, Labelled::new(text.to_string(), label)).unwrap()
    }

    #[test]
    fn input_is_what_the_abi_says() {
        let grant = Grant::parse(GRANT).unwrap();
        let messages = [typed("say \"a\\b\"\n"), Message::held(Author::Agent, 3)];
        assert_eq!(
            input(
                &["be brief".to_string()],
                &messages,
                &[],
                [(3, "channel"), (4, "agent")].into_iter(),
                &[],
                (&grant, 7)
            ),
            "{\"v\":1,\"messages\":[{\"from\":\"package\",\"text\":\"be brief\"},{\"from\":\"human\",\"text\":\"say \\\"a\\\\b\\\"\\n\"},\
             {\"from\":\"agent\",\"value\":3,\"record\":0}],\
             \"handles\":[{\"n\":3,\"kind\":\"channel\"},{\"n\":4,\"kind\":\"agent\"}],\"warrants\":[],\
             \"grant\":{\"primitives\":[\"clock_read\"],\"paths\":[],\"hosts\":[],\"tools\":[]},\"budget\":{\"calls\":7}}"
        );
    }

    #[test]
    fn i6_what_comes_from_outside_never_stands_in_the_clear() {
        let label = Label::new(Integrity::Ingested, Secrecy::NONE, Origin::NONE);
        assert!(Message::clear(Author::Agent, Labelled::new(String::new(), label)).is_none());
    }

    #[test]
    fn i6_a_message_that_is_cut_off_is_in_the_mark_still() {
        let grant = Grant::parse(GRANT).unwrap();
        let label = Label::new(Integrity::User, Secrecy::FILES, Origin::NONE);
        let long = Labelled::new("x".repeat(SHOWN), label);
        let messages = [Message::clear(Author::Agent, long).unwrap(), typed("go on")];
        assert!(input(&[], &messages, &[], empty(), &[], (&grant, 7)).len() < 400);
        assert_eq!(mark(&messages, Label::SYSTEM).secrecy, Secrecy::PROMPT.join(Secrecy::FILES));
        // Its own line is shown, however long it is.
        let line = typed(&"y".repeat(SHOWN));
        assert!(input(&[], &[line], &[], empty(), &[], (&grant, 7)).len() > SHOWN);
    }
}
