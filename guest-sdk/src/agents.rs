//! Children, and channels between tasks
//!
//! A child is a package's agent with a part of what its parent may do. It begins with
//! its parent's next call that gives it no channel. What it reports, and what comes on
//! a channel, carries what was read over there: take it by [`hold`](crate::hold) to
//! pass it on unseen.
//!
//! # Not here
//! Which packages there are (the board).

use crate::warrant::Warrant;
use crate::{Argument, Content, Error, Sentence};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use serde::Deserialize;
use serde_json::Value;
use synapse_abi::registry::Primitive;
use synapse_reply::Fault;
use synapse_reply::frame::Form;

/// A child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent(pub u64);

/// One end of a channel: what is sent here is received at the other, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel(pub u64);

/// What a channel keeps of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// The bytes, without their bounds.
    Bytes,
    /// Whole messages.
    Messages,
}

impl Carries {
    const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Messages => "messages",
        }
    }
}

/// Starts a child. The grant is a grant file in JSON, without its version.
///
/// # Errors
/// The kernel's: `OutOfScope` where this task does not have what is asked for,
/// `OverLimit` where it has not as much left, or the grant cannot be read.
pub fn spawn<'a>(
    package: &str,
    task: impl Into<Content<'a>>,
    grant: &Value,
) -> Result<Agent, Error> {
    let reply = Sentence::new(Primitive::AgentSpawn)
        .set("package", Argument::Text(package))
        .set("task", Argument::Content(task.into()))
        .set("grant", Argument::Json(grant))
        .submit()?
        .of(Form::Handle)?;
    let number = reply.try_into().map_err(|_| Error::Frame)?;
    Ok(Agent(u64::from_le_bytes(number)))
}

/// Starts a child that gets uses of this task's warrants, which are this task's no more.
/// The grant is one as of [`spawn`].
///
/// # Errors
/// Those of [`spawn`]; the kernel's `Spent` where a warrant was not minted in this turn or
/// has not so many uses left, `Unsupported` for one that selects.
pub fn spawn_with<'a>(
    package: &str,
    task: impl Into<Content<'a>>,
    grant: &Value,
    warrants: &[Warrant],
) -> Result<Agent, Error> {
    let mut grant = grant.clone();
    if let Some(grant) = grant.as_object_mut() {
        let texts = warrants.iter().map(|warrant| Value::from(warrant.text()));
        grant.insert("warrants".to_string(), texts.collect());
    }
    spawn(package, task, &grant)
}

impl Agent {
    /// Waits for its report, at most so many milliseconds.
    ///
    /// # Errors
    /// The kernel's: `TimedOut`; `Closed` where it ended without a report.
    pub fn wait(self, timeout: u64) -> Result<Vec<u8>, Error> {
        self.waiting(timeout).submit()?.of(Form::Bytes)
    }

    /// The sentence of [`Agent::wait`], to be held or looked at.
    #[must_use]
    pub fn waiting(self, timeout: u64) -> Sentence {
        Sentence::new(Primitive::AgentWait)
            .set("agent", Argument::Uint(self.0))
            .set("timeout", Argument::Uint(timeout))
    }

    /// Moves an end of a channel to it.
    ///
    /// # Errors
    /// The kernel's: `Closed` where it has ended.
    pub fn give(self, end: Channel) -> Result<(), Error> {
        let sentence = Sentence::new(Primitive::ChannelGrant)
            .set("channel", Argument::Uint(end.0))
            .set("to", Argument::Uint(self.0));
        nothing(sentence)
    }

    /// Ends it where it stands.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(self) -> Result<(), Error> {
        close(self.0)
    }
}

/// Makes a channel: its two ends.
///
/// # Errors
/// The kernel's.
pub fn channel(carries: Carries) -> Result<(Channel, Channel), Error> {
    #[derive(Deserialize)]
    struct Ends {
        a: u64,
        b: u64,
    }
    let sentence =
        Sentence::new(Primitive::ChannelCreate).set("kind", Argument::Text(carries.name()));
    let json = sentence.submit()?.of(Form::Json)?;
    let Ends { a, b } = serde_json::from_slice(&json).map_err(|_| Error::Frame)?;
    Ok((Channel(a), Channel(b)))
}

impl Channel {
    /// Sends, once there is room.
    ///
    /// # Errors
    /// The kernel's: `Closed` where nobody can receive it, `TooLarge`, `TimedOut`.
    pub fn send<'a>(self, content: impl Into<Content<'a>>) -> Result<(), Error> {
        let sentence = Sentence::new(Primitive::ChannelWrite)
            .set("channel", Argument::Uint(self.0))
            .set("content", Argument::Content(content.into()));
        nothing(sentence)
    }

    /// Receives at most so many bytes, waiting at most so many milliseconds; nothing
    /// where nothing will come any more.
    ///
    /// # Errors
    /// The kernel's: `TimedOut`, `TooLarge` for a whole message.
    pub fn receive(self, max: u64, timeout: u64) -> Result<Option<Vec<u8>>, Error> {
        match self.receiving(max, timeout).submit() {
            Ok(reply) => reply.of(Form::Bytes).map(Some),
            Err(Error::Fault(Fault::Closed)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// The sentence of [`Channel::receive`], to be held or looked at.
    #[must_use]
    pub fn receiving(self, max: u64, timeout: u64) -> Sentence {
        Sentence::new(Primitive::ChannelRead)
            .set("channel", Argument::Uint(self.0))
            .set("max", Argument::Uint(max))
            .set("timeout", Argument::Uint(timeout))
    }

    /// Closes it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close(self) -> Result<(), Error> {
        close(self.0)
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent {}", self.0)
    }
}

pub(crate) fn close(handle: u64) -> Result<(), Error> {
    nothing(Sentence::new(Primitive::ChannelClose).set("channel", Argument::Uint(handle)))
}

fn nothing(sentence: Sentence) -> Result<(), Error> {
    sentence.submit()?.of(Form::Nothing).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_door;
    use alloc::rc::Rc;
    use alloc::string::String;
    use alloc::vec;
    use core::cell::RefCell;
    use serde_json::json;
    use synapse_abi::code::Refusal;
    use synapse_reply::frame::{Mark, header};

    /// Answers in this order; what was said comes back.
    fn said<T>(
        answers: &[Result<(Form, &[u8]), u32>],
        body: impl FnOnce() -> T,
    ) -> (T, Vec<String>) {
        let framed =
            |(form, payload): (Form, &[u8])| [&header(form, Mark::User)[..], payload].concat();
        let answers: Vec<_> = answers.iter().map(|answer| answer.map(framed)).collect();
        let (mut answers, heard) = (answers.into_iter(), Rc::new(RefCell::new(Vec::new())));
        let told = Rc::clone(&heard);
        let door = move |bytes: &[u8]| {
            told.borrow_mut().push(String::from_utf8(bytes.to_vec()).unwrap());
            answers.next().unwrap()
        };
        let came = with_door(door, body);
        let heard = heard.borrow().clone();
        (came, heard)
    }

    #[test]
    fn a_child_is_started_given_to_waited_for_and_ended() {
        let number = 7_u64.to_le_bytes();
        let answers = [
            Ok((Form::Json, &br#"{"a":1,"b":2}"#[..])),
            Ok((Form::Handle, &number[..])),
            Ok((Form::Nothing, b"")),
            Ok((Form::Bytes, b"done")),
            Ok((Form::Nothing, b"")),
        ];
        let (report, heard) = said(&answers, || {
            let (_, end) = channel(Carries::Messages).unwrap();
            let child = spawn("a", "look", &json!({"primitives":["fs_read"]})).unwrap();
            child.give(end).unwrap();
            let report = child.wait(5).unwrap();
            child.end().unwrap();
            report
        });
        assert_eq!(report, b"done");
        assert_eq!(
            heard,
            vec![
                r#"{"name":"channel_create","arguments":{"kind":"messages"}}"#,
                r#"{"name":"agent_spawn","arguments":{"package":"a","task":"look","grant":{"primitives":["fs_read"]}}}"#,
                r#"{"name":"channel_grant","arguments":{"channel":2,"to":7}}"#,
                r#"{"name":"agent_wait","arguments":{"agent":7,"timeout":5}}"#,
                r#"{"name":"channel_close","arguments":{"channel":7}}"#,
            ]
        );
    }

    #[test]
    fn a_child_is_given_uses_by_the_warrants_sentence() {
        let number = 7_u64.to_le_bytes();
        let (child, heard) = said(&[Ok((Form::Handle, &number[..]))], || {
            let warrant = crate::warrant::fs_delete("/data/a").uses(2);
            spawn_with("a", "look", &json!({"primitives":["fs_delete"]}), &[warrant]).unwrap()
        });
        assert_eq!(child, Agent(7));
        assert_eq!(
            heard,
            vec![concat!(
                r#"{"name":"agent_spawn","arguments":{"package":"a","task":"look","#,
                r#""grant":{"primitives":["fs_delete"],"warrants":["{\"warrant\":\"fs_delete\","#,
                r#"\"arguments\":{\"path\":\"/data/a\"},\"uses\":2}"]}}}"#
            )]
        );
    }

    #[test]
    fn a_channel_that_is_closed_has_come_to_its_end() {
        let answers =
            [Ok((Form::Nothing, &b""[..])), Ok((Form::Bytes, b"x")), Err(515), Err(514), Err(401)];
        let (came, heard) = said(&answers, || {
            let end = Channel(3);
            end.send("y").unwrap();
            (end.receive(9, 5), end.receive(9, 5), end.receive(9, 5), spawn("a", "", &json!({})))
        });
        assert_eq!(came.0, Ok(Some(b"x".to_vec())));
        assert_eq!((came.1, came.2), (Ok(None), Err(Error::Fault(Fault::TimedOut))));
        assert_eq!(came.3, Err(Error::Refused(Refusal::OutOfScope)));
        assert_eq!(heard[0], r#"{"name":"channel_write","arguments":{"channel":3,"content":"y"}}"#);
        assert_eq!(
            heard[1],
            r#"{"name":"channel_read","arguments":{"channel":3,"max":9,"timeout":5}}"#
        );
    }
}
