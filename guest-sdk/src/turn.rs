//! What a turn starts with
//!
//! Messages of whoever may be trusted in the clear, everything else as a held
//! value, and what the task may do. Facts of the kernel only: a name or a size
//! of something from outside never stands here.
//!
//! # Not here
//! Releasing a held message ([`value_read`](crate::calls::value_read)).

use crate::Held;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::Deserialize;
use serde_json::Value;
use synapse_abi::registry::Primitive;
use synapse_reply::turn::{AGENT, HUMAN, PACKAGE, PARENT, VERSION, WORLD};

/// The input of a turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// What was said so far, oldest first.
    pub messages: Vec<Message>,
    /// Live handles.
    pub handles: Vec<Handle>,
    /// Unspent warrants.
    pub warrants: Vec<Value>,
    /// What the task may do.
    pub grant: Grant,
    /// What is left of the task's budget.
    pub budget: Budget,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Of somebody who is trusted.
    Clear {
        /// Who wrote it.
        from: Author,
        /// What it says.
        text: String,
    },
    /// Of anybody.
    Held {
        /// Who brought it.
        from: Author,
        /// Its bytes.
        value: Held,
        /// Which primitive answered with it.
        primitive: Option<Primitive>,
        /// Which record tells of it.
        record: u64,
    },
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The human: a console line, the task on the command line, a prompt file.
    Human,
    /// The package's approved texts.
    Package,
    /// The agent, in an earlier turn.
    Agent,
    /// The parent, in the task of a child.
    Parent,
    /// A primitive's reply, held.
    World,
}

/// A live handle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Handle {
    /// Its number.
    pub n: u64,
    /// What it stands for: `value`, `agent`, `channel`, `listener`.
    pub kind: String,
}

/// What the task may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Grant {
    /// Names of the granted primitives.
    #[serde(default)]
    pub primitives: Vec<String>,
    /// Granted paths.
    #[serde(default)]
    pub paths: Vec<PathGrant>,
}

/// A granted path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PathGrant {
    /// The pattern.
    pub path: String,
    /// What may be done below it: `list`, `read`, `write`, `delete`.
    pub rights: Vec<String>,
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Budget {
    /// Calls; `None` if they are not counted.
    #[serde(default)]
    pub calls: Option<u64>,
}

/// Why an input is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnError {
    /// Not JSON of the schema.
    Malformed,
    /// Of another version.
    Version(u64),
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the turn's input does not follow its schema"),
            Self::Version(v) => write!(f, "the turn's input has version {v}, not {VERSION}"),
        }
    }
}

impl core::error::Error for TurnError {}

impl Turn {
    /// Takes the input apart.
    ///
    /// # Errors
    /// [`TurnError`].
    pub fn parse(input: &[u8]) -> Result<Self, TurnError> {
        let Versioned { v } = serde_json::from_slice(input).map_err(|_| TurnError::Malformed)?;
        if v != VERSION {
            return Err(TurnError::Version(v));
        }
        let raw: Raw = serde_json::from_slice(input).map_err(|_| TurnError::Malformed)?;
        let Raw { messages, handles, warrants, grant, budget } = raw;
        let messages = messages.into_iter().map(Message::try_from).collect::<Result<_, _>>()?;
        Ok(Self { messages, handles, warrants, grant, budget })
    }

    /// What the parent asked for, if this is a child. In the clear, or held where
    /// something from outside may have led to it.
    #[must_use]
    pub fn errand(&self) -> Option<&Message> {
        self.messages.iter().find(|message| match message {
            Message::Clear { from, .. } | Message::Held { from, .. } => *from == Author::Parent,
        })
    }

    /// What the human asked for last; empty if the human said nothing.
    #[must_use]
    pub fn task(&self) -> &str {
        let mut said = self.messages.iter().rev().filter_map(|message| match message {
            Message::Clear { from: Author::Human, text } => Some(text.as_str()),
            Message::Clear { .. } | Message::Held { .. } => None,
        });
        said.next().unwrap_or("")
    }
}

#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

#[derive(Deserialize)]
struct Raw {
    messages: Vec<RawMessage>,
    #[serde(default)]
    handles: Vec<Handle>,
    #[serde(default)]
    warrants: Vec<Value>,
    #[serde(default)]
    grant: Grant,
    #[serde(default)]
    budget: Budget,
}

#[derive(Deserialize)]
struct RawMessage {
    from: String,
    text: Option<String>,
    value: Option<u64>,
    primitive: Option<String>,
    record: Option<u64>,
}

impl TryFrom<RawMessage> for Message {
    type Error = TurnError;

    fn try_from(raw: RawMessage) -> Result<Self, TurnError> {
        let from = match &*raw.from {
            HUMAN => Author::Human,
            PACKAGE => Author::Package,
            AGENT => Author::Agent,
            PARENT => Author::Parent,
            WORLD => Author::World,
            _ => return Err(TurnError::Malformed),
        };
        match (raw.text, raw.value, raw.record) {
            (Some(text), None, None) => Ok(Self::Clear { from, text }),
            (None, Some(value), Some(record)) => {
                let primitive = match raw.primitive {
                    Some(name) => Some(Primitive::from_name(&name).ok_or(TurnError::Malformed)?),
                    None => None,
                };
                Ok(Self::Held { from, value: Held(value), primitive, record })
            }
            _ => Err(TurnError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::vec;

    const INPUT: &str = r#"{"v":1,"messages":[{"from":"package","text":"soul"},{"from":"human","text":"first"},{"from":"world","value":3,"primitive":"fs_read","record":12},{"from":"human","text":"Index \"it\""},{"from":"agent","text":"done"}],"handles":[{"n":1,"kind":"channel"}],"warrants":[],"grant":{"primitives":["fs_read"],"paths":[{"path":"/data/**","rights":["read"]}]},"budget":{"calls":100000}}"#;

    #[test]
    fn input_is_taken_apart() {
        let turn = Turn::parse(INPUT.as_bytes()).unwrap();
        assert_eq!(turn.task(), "Index \"it\"");
        let held = Message::Held {
            from: Author::World,
            value: Held(3),
            primitive: Some(Primitive::FsRead),
            record: 12,
        };
        assert_eq!(turn.messages[2], held);
        assert_eq!(turn.handles, vec![Handle { n: 1, kind: "channel".to_owned() }]);
        assert_eq!(turn.grant.paths[0].rights, ["read"]);
        assert_eq!(turn.budget.calls, Some(100_000));
    }

    #[test]
    fn task_is_the_humans_only() {
        let input =
            br#"{"v":1,"messages":[{"from":"agent","text":"no"},{"from":"parent","text":"no"}]}"#;
        let turn = Turn::parse(input).unwrap();
        assert_eq!(turn.task(), "");
        let errand = Message::Clear { from: Author::Parent, text: "no".to_owned() };
        assert_eq!(turn.errand(), Some(&errand));
    }

    #[test]
    fn other_inputs_are_refused() {
        let other = |from: &str, to: &str| Turn::parse(INPUT.replace(from, to).as_bytes()).err();
        assert_eq!(other(r#""v":1"#, r#""v":2,"x":0"#), Some(TurnError::Version(2)));
        assert_eq!(other(r#""human""#, r#""devil""#), Some(TurnError::Malformed));
        assert_eq!(other("fs_read\",\"record", "fs_reads\",\"record"), Some(TurnError::Malformed));
        assert_eq!(other(r#","record":12"#, ""), Some(TurnError::Malformed));
        assert_eq!(other(r#""value":3,"#, r#""value":3,"text":"x","#), Some(TurnError::Malformed));
        assert_eq!(Turn::parse(b"again").err(), Some(TurnError::Malformed));
    }
}
