//! What a code means for people: why it was given, and what would make it pass
//!
//! One text a code, the same on every board, so that an explanation is as
//! stable as the number that it explains.
//!
//! # Not here
//! Which code a call gets (`synapse-boundary`, `synapse-primitives`). Short
//! names ([`synapse_reply::code::name`], [`Fault::name`]).

use synapse_abi::code::Refusal;
use synapse_reply::Fault;

/// Why a code is given, and what would make the call pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What is the case.
    pub why: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

const fn advice(why: &'static str, remedy: &'static str) -> Advice {
    Advice { why, remedy }
}

/// The advice for a code of either kind; `None` for 0 and unknown numbers.
#[must_use]
pub fn code(number: u16) -> Option<Advice> {
    Refusal::from_number(number).map(refusal).or_else(|| Fault::from_number(number).map(fault))
}

/// The advice for a refusal.
#[must_use]
#[expect(clippy::too_many_lines, reason = "one text a code")]
pub const fn refusal(refusal: Refusal) -> Advice {
    match refusal {
        Refusal::Malformed => advice(
            "the bytes are not a sentence of the grammar",
            "write canonical JSON with the arguments in the order that `synapse primitives` shows",
        ),
        Refusal::TooLong => advice(
            "the sentence, or one of its parts, is over its limit",
            "split the content: write a part, then append, or pass it as a held value",
        ),
        Refusal::NoSuchPrimitive => advice(
            "no primitive has this name, and nothing can add one",
            "use one of the 26 that `synapse primitives` shows",
        ),
        Refusal::NotCanonical => advice(
            "the URL or host has another, canonical spelling",
            "lower-case the host, leave out the default port, user-info, fragment and dot segments",
        ),
        Refusal::NotGranted => advice(
            "the task's grant does not name this primitive",
            "add it to `primitives` in the grant, if the task needs it",
        ),
        Refusal::NoSuchHandle => advice(
            "the task holds no open handle or held value of this kind with this number",
            "use a number that an earlier reply of this task gave, before it is closed",
        ),
        Refusal::Budget => advice(
            "the task has made all the calls that its grant allows",
            "raise `calls` under `[budget]` in the grant",
        ),
        Refusal::Destructive => advice(
            "it cannot be taken back, and the task had read something from outside by then",
            "do it, or ask for a warrant, before anything is read; hold what is read, since what is \
             not released leaves no mark; run it where a human can say yes; or, for a GET that \
             carries a secret, say `reads = true` in its entry of the grant, if it only reads",
        ),
        Refusal::Protected => advice(
            "the name tells tools or agents what to do, and the task had read something from \
             outside by then",
            "write it before anything is read, or under another name; no warrant covers it, a \
             human's yes to its content does",
        ),
        Refusal::Irreversible => advice(
            "the journal has no room for what this would displace, so it could not be undone",
            "free the journal (`synapse gc`), or do it, or ask for a warrant, before anything is read",
        ),
        Refusal::NotCleared => advice(
            "it would carry compartments to a place that is not cleared for them",
            "add them to `clear` of that entry in the grant, if that place may know them; or ask for \
             a warrant before anything is read, which covers `prompt` and `files`",
        ),
        Refusal::Tainted => advice(
            "a warrant is minted only before anything from outside is read",
            "ask for it at the beginning of the turn; what must be looked at first, hold",
        ),
        Refusal::NotCited => advice(
            "no line that the human typed names the target, or, for a pattern or a selector, not \
             with its verb",
            "name it in the task by its whole path; a bare name only where one file bears it, and \
             `delete` or the like beside a pattern",
        ),
        Refusal::Spent => advice(
            "the words that name the target have paid for a warrant, or its uses are over; to a \
             child move only those that are left of a warrant of this turn",
            "type them again in a new line, or ask once for all the uses, at most 64",
        ),
        Refusal::Link => advice(
            "the text has a link that nobody vouched for",
            "send it without the link, type the link in the task, or pass whole a held value \
             whose source the task names",
        ),
        Refusal::Declined => advice(
            "the human said no or nothing, or was asked enough: about this call before, or about \
             five, in this turn",
            "leave it out, explain it to the human first, or name the target in the task, so that a \
             warrant covers it",
        ),
        Refusal::Unsupported => advice(
            "nothing says enough about what such a warrant would let happen, or a child was to get \
             one that selects from its parent's values",
            "select from one listing; of a connector's verb, name or limit every argument; use a \
             selector's warrant in the task that minted it",
        ),
        Refusal::OutOfScope => advice(
            "no entry of the grant covers the target with the rights that the call needs, or a child \
             was to have what its parent does not, or a warrant for what it may not do",
            "add an entry to the grant, if the task may go there",
        ),
        Refusal::Denied => advice(
            "a deny entry of the grant covers the target, and deny always wins",
            "remove the deny entry, if it was not meant for this",
        ),
        Refusal::NotAbsolute => {
            advice("a path begins with `/`", "write the whole path, as the agent sees it")
        }
        Refusal::AboveRoot => advice("its `..` lead above the root", "write the path without `..`"),
        Refusal::BadName => advice(
            "a part of the path is a name that some file system reads as another",
            "rename the file: no control or invisible characters, `:`, `\\`, last dot or space",
        ),
        Refusal::TooDeep => advice(
            "the path is too long, has too many parts, or one that is too long",
            "use a shorter path",
        ),
        Refusal::OverLimit => advice(
            "an argument is missing or outside the limit that the grant sets for it, a header is one \
             that no request may carry, or a child's grant cannot be read or wants more calls, \
             time or memory than its parent has",
            "stay inside the limit, widen it in the grant, or leave the header out",
        ),
        Refusal::NoPlace => advice(
            "the held value is no URL or host in its canonical spelling",
            "hold a value that is one, whole and by itself",
        ),
        Refusal::Secret => advice(
            "it asks for a secret as a part of a value, or for one that does not exist, is not for \
             this place, or is not named by the grant's entry for it",
            "write `{secret:NAME}` as a whole value; name the secret under `secrets` of the entry, \
             and the place with `synapse secret set NAME --for`",
        ),
        Refusal::Subtree => advice(
            "part of what lies below the target is out of scope",
            "name what is in scope, one by one",
        ),
    }
}

/// The advice for a fault.
#[must_use]
pub const fn fault(fault: Fault) -> Advice {
    match fault {
        Fault::Unsupported => advice(
            "this board has no device for it, or this version does not execute it yet",
            "run it on a board that does",
        ),
        Fault::NotFound => advice(
            "nothing has this name, or this machine not this address",
            "list the folder it should stand in; listen at an address that is here",
        ),
        Fault::Exists => advice(
            "the name is taken, or something listens there already",
            "choose another, or say `replace`",
        ),
        Fault::NotAFile => advice("it is no regular file", "name a file"),
        Fault::NotADirectory => advice("it is no directory", "name a directory"),
        Fault::TooLarge => advice("it is larger than one call can carry", "read or write parts"),
        Fault::NoSpace => advice("the device is full", "free space on it"),
        Fault::ReadOnly => {
            advice("the folder was given read-only, or its file system is", "give it for writing")
        }
        Fault::Link => advice(
            "a symbolic link stands in the path, and none is followed",
            "name the file that the link points to",
        ),
        Fault::Special => advice("it is a device, a FIFO or a socket", "name a regular file"),
        Fault::Changed => {
            advice("it changed between the decision and the effect", "look at it again, then retry")
        }
        Fault::NotText => advice("the bytes are not UTF-8", "hold the value and pass it whole"),
        Fault::Io => advice("the device failed", "look at the system's own log"),
        Fault::TimedOut => advice("the time allowed ran out", "allow more, or ask for less"),
        Fault::Closed => advice(
            "the other end is gone, or the child ended without a report",
            "open it again; of a child, look at how its own turn ended",
        ),
        Fault::Reserved => advice("it is one of Synapse's own files", "leave it alone"),
        Fault::CrossDevice => {
            advice("source and destination are not on one mount", "copy it, then delete it")
        }
        Fault::Cancelled => advice("the call was cancelled", "run it again"),
        Fault::NoMatch => advice("nothing matched", "look at what is there"),
        Fault::Ambiguous => advice("more than one thing matched", "say more of it"),
        Fault::HostDenied => {
            advice("the host's own permissions forbid it", "change them, or who runs this")
        }
        Fault::Subtree => advice(
            "something below the target is not covered by the grant",
            "name what is covered, one by one",
        ),
        Fault::JournalFull => {
            advice("what it would displace does not fit the journal", "free the journal")
        }
        Fault::TooMany => advice(
            "it is more than one call may touch, or more handles, connections, agents or levels of \
             them than there may be",
            "do it in parts; close what is done with",
        ),
        Fault::NoRecord => advice(
            "the log could not take the record",
            "free space where the log is; the run can go no further",
        ),
        Fault::Immovable => advice(
            "a directory cannot go into itself, and a mount's root cannot go at all",
            "choose another destination",
        ),
        Fault::NotDurable => {
            advice("it was done, but the disk did not confirm it", "check the disk")
        }
        Fault::ReplyTooLarge => advice("the reply does not fit its frame", "ask for less at once"),
        Fault::NoRoom => {
            advice("the task's store of held values is full", "hold less, in this task")
        }
        Fault::NameNotText => advice("a name below the target is not UTF-8", "rename it outside"),
        Fault::Unrecorded => advice(
            "it was done, but the log could not take what came of it",
            "free space where the log is; look at what was done before it is tried again",
        ),
        Fault::Address => advice(
            "the name resolved to an address that the grant does not cover",
            "name the address or its network in `hosts`, cleared for what is sent, if it is meant",
        ),
        Fault::Unproven => advice(
            "the other end did not prove that it is the host of the URL",
            "check the host's certificate; there is no way around it",
        ),
        Fault::BadAnswer => advice(
            "the other end's answer is not whole, or not what its protocol says",
            "ask who runs it; nothing of the answer was kept",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_own_reason() {
        let refusals = Refusal::ALL.iter().map(|refusal| refusal.number());
        let numbers = refusals.chain(Fault::ALL.iter().map(|fault| fault.number()));
        let reasons: alloc::collections::BTreeSet<_> =
            numbers.map(|number| code(number).unwrap().why).collect();
        assert_eq!(reasons.len(), Refusal::ALL.len() + Fault::ALL.len());
        assert_eq!((code(0), code(600)), (None, None));
    }
}
