//! Warrants: leave that is asked for before anything is read
//!
//! A task that has read something from outside can do nothing irreversible by
//! itself. What the human's own line names can be asked for beforehand, and done
//! afterwards: plan and mint first, then read, then act.
//!
//! ```
//! use synapse_guest::warrant;
//!
//! let warrant = warrant::fs_delete("/data/tmp/**").uses(3);
//! assert_eq!(
//!     warrant.text(),
//!     r#"{"warrant":"fs_delete","arguments":{"path":"/data/tmp/**"},"uses":3}"#
//! );
//! ```
//!
//! A warrant dies with its turn. The calls that it covers are made as others
//! are: the door knows that they are covered.
//!
//! # Not here
//! Whether a line names the target (`synapse-boundary`).

use crate::{Argument, Error, Sentence, Target};
use alloc::string::String;
use synapse_abi::registry::Primitive;
use synapse_reply::frame::Form;

/// A warrant in the making: for one call, unless it says otherwise.
#[derive(Clone, Debug)]
#[must_use = "nothing is minted before `mint`"]
pub struct Warrant {
    sentence: Sentence,
    uses: u64,
}

impl Warrant {
    /// For so many calls; 64 at most.
    pub const fn uses(mut self, uses: u64) -> Self {
        self.uses = uses;
        self
    }

    /// The sentence.
    #[must_use]
    pub fn text(&self) -> String {
        self.sentence.warrant(self.uses)
    }

    /// Asks for it.
    ///
    /// # Errors
    /// The kernel's: 305 after reading, 306 where no line of the human's names
    /// the target, 307 where that line has no use left.
    pub fn mint(&self) -> Result<(), Error> {
        Sentence::send(&self.text())?.of(Form::Nothing).map(drop)
    }

    const fn new(primitive: Primitive) -> Self {
        Self { sentence: Sentence::new(primitive), uses: 1 }
    }

    fn of(mut self, name: &'static str, argument: Argument<'_>) -> Self {
        self.sentence = self.sentence.set(name, argument);
        self
    }
}

/// To write a file.
pub fn fs_write<'a>(path: impl Into<Target<'a>>) -> Warrant {
    Warrant::new(Primitive::FsWrite).of("path", path.into().into())
}

/// To edit a file.
pub fn fs_edit<'a>(path: impl Into<Target<'a>>) -> Warrant {
    Warrant::new(Primitive::FsEdit).of("path", path.into().into())
}

/// To move a file or a directory.
pub fn fs_move<'a, 'b>(from: impl Into<Target<'a>>, to: impl Into<Target<'b>>) -> Warrant {
    let warrant = Warrant::new(Primitive::FsMove);
    warrant.of("from", from.into().into()).of("to", to.into().into())
}

/// To delete a file, or a directory and all below it.
pub fn fs_delete<'a>(path: impl Into<Target<'a>>) -> Warrant {
    Warrant::new(Primitive::FsDelete).of("path", path.into().into())
}

/// To take connections.
pub fn net_listen<'a>(host: impl Into<Target<'a>>, port: u16) -> Warrant {
    let warrant = Warrant::new(Primitive::NetListen).of("host", host.into().into());
    warrant.of("port", Argument::Uint(port.into()))
}

/// To fetch from a place that is not cleared for what was read.
pub fn net_http_get<'a>(url: impl Into<Target<'a>>) -> Warrant {
    Warrant::new(Primitive::NetHttpGet).of("url", url.into().into())
}

/// To send to a place.
pub fn net_http_post<'a>(url: impl Into<Target<'a>>) -> Warrant {
    Warrant::new(Primitive::NetHttpPost).of("url", url.into().into())
}

/// To use a connector's verb that reads or stores.
///
/// Arguments are those that the human's line names; a selector may stand among them.
pub fn tool_use(tool: &str, arguments: &[(&str, Argument<'_>)]) -> Warrant {
    Warrant::new(Primitive::ToolUse).tool(tool, arguments)
}

/// To use a connector's verb that sends, pays or destroys.
///
/// Arguments are those that the human's line names; a selector may stand among them.
pub fn tool_commit(tool: &str, arguments: &[(&str, Argument<'_>)]) -> Warrant {
    Warrant::new(Primitive::ToolCommit).tool(tool, arguments)
}

impl Warrant {
    fn tool(self, tool: &str, arguments: &[(&str, Argument<'_>)]) -> Self {
        self.of("tool", Argument::Text(tool)).of("arguments", Argument::Object(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with_door;
    use crate::{Held, Selector};
    use alloc::vec::Vec;
    use synapse_abi::code::Refusal;
    use synapse_reply::frame::{Mark, header};

    fn minted(answer: Result<Form, u32>) -> Result<(), Error> {
        let door = move |sentence: &[u8]| {
            let wanted = r#"{"warrant":"fs_delete","arguments":{"path":"/data/a"},"uses":2}"#;
            assert_eq!(str::from_utf8(sentence), Ok(wanted));
            answer.map(|form| Vec::from(header(form, Mark::User)))
        };
        with_door(door, || fs_delete("/data/a").uses(2).mint())
    }

    #[test]
    fn mint_is_answered_with_nothing_or_refused() {
        assert_eq!(minted(Ok(Form::Nothing)), Ok(()));
        assert_eq!(minted(Ok(Form::Bytes)), Err(Error::Frame));
        assert_eq!(minted(Err(306)), Err(Error::Refused(Refusal::NotCited)));
    }

    #[test]
    fn selectors_stand_where_targets_do_and_inside_a_tools_arguments() {
        let last = Selector::take(Held(4), "id").max("date");
        let moved = fs_move(&last, "/data/old").text();
        let wanted = r#"{"warrant":"fs_move","arguments":{"from":{"$select":4,"order":["max","date"],"take":"id"},"to":"/data/old"},"uses":1}"#;
        assert_eq!(moved, wanted);
        let sent = tool_commit(
            "mail/send",
            &[("$to", Argument::Selector(&last)), ("copies", Argument::Uint(2))],
        );
        let wanted = r#"{"warrant":"tool_commit","arguments":{"tool":"mail/send","arguments":{"$$to":{"$select":4,"order":["max","date"],"take":"id"},"copies":2}},"uses":1}"#;
        assert_eq!(sent.text(), wanted);
        let listen =
            r#"{"warrant":"net_listen","arguments":{"host":"127.0.0.1","port":80},"uses":1}"#;
        assert_eq!(net_listen("127.0.0.1", 80).text(), listen);
    }
}
