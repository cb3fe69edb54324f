//! Faults (the world said no), and what numbers of failures say
//!
//! A failure crosses the door as one number, never as text: text from a failure
//! would be one more way for the outside to talk to a model. Numbers are stable;
//! later versions add.
//!
//! # Not here
//! Refusals (`synapse-abi`). Sentences for people: `synapse why` writes them from the
//! record.

use synapse_abi::code::Refusal;

macro_rules! codes {
    ($(#[$outer:meta])* $name:ident {
        $($(#[$meta:meta])* $variant:ident = $number:literal $text:literal,)*
    }) => {
        synapse_abi::numbered! {
            $(#[$outer])*
            pub enum $name: u16 { $($(#[$meta])* $variant = $number,)* }
        }

        impl $name {
            /// A short name, for people and for `--json`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// Why an admitted call came to nothing.
    Fault {
        /// This board has no such device.
        Unsupported = 501 "unsupported",
        /// Nothing has this name.
        NotFound = 502 "not found",
        /// The name is taken.
        Exists = 503 "exists",
        /// Not a regular file.
        NotAFile = 504 "not a file",
        /// Not a directory.
        NotADirectory = 505 "not a directory",
        /// Larger than the call can carry.
        TooLarge = 506 "too large",
        /// No space left on the device.
        NoSpace = 507 "no space",
        /// The folder or file system is read-only.
        ReadOnly = 508 "read-only",
        /// A symbolic link stands in the path.
        Link = 509 "symbolic link",
        /// A device, a FIFO or a socket.
        Special = 510 "special file",
        /// The target is not what it was when the call was decided.
        Changed = 511 "changed",
        /// The bytes are not UTF-8 text.
        NotText = 512 "not text",
        /// The device failed.
        Io = 513 "i/o error",
        /// The time allowed ran out.
        TimedOut = 514 "timed out",
        /// The other end is gone.
        Closed = 515 "closed",
        /// One of Synapse's own files.
        Reserved = 516 "reserved",
        /// Source and destination are not on one mount.
        CrossDevice = 517 "across devices",
        /// The call was cancelled.
        Cancelled = 518 "cancelled",
        /// Nothing matched.
        NoMatch = 519 "no match",
        /// More than one thing matched.
        Ambiguous = 520 "ambiguous",
        /// The host's own permissions forbid it.
        HostDenied = 521 "denied by the host",
        /// A subtree holds something the grant does not cover.
        Subtree = 522 "subtree out of scope",
        /// What would be displaced does not fit the journal.
        JournalFull = 523 "journal full",
        /// More than one call may touch.
        TooMany = 524 "too many",
        /// The log could not take the record; nothing was done.
        NoRecord = 525 "no record",
        /// A directory cannot go into itself; a mount's root cannot go at all.
        Immovable = 526 "immovable",
        /// The result was as it should be but the disk did not confirm it.
        NotDurable = 527 "not durable",
        /// The reply did not fit its frame.
        ReplyTooLarge = 528 "reply too large",
        /// The task's store of held values is full.
        NoRoom = 529 "no room for held values",
        /// A name below the target is not UTF-8.
        NameNotText = 530 "name is not text",
        /// The call was executed, but the log could not take what came of it.
        Unrecorded = 531 "done, not recorded",
        /// A name resolved to an address that the grant does not cover.
        Address = 532 "address out of scope",
        /// The other end did not prove that it is the named one.
        Unproven = 533 "not proven",
        /// What the other end answered is not what it must be.
        BadAnswer = 534 "bad answer",
    }
}

/// A short name of a refusal, for people and for `--json`.
pub const fn name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Malformed => "malformed",
        Refusal::TooLong => "too long",
        Refusal::NoSuchPrimitive => "no such primitive",
        Refusal::NotCanonical => "not canonical",
        Refusal::NotGranted => "not granted",
        Refusal::NoSuchHandle => "no such handle",
        Refusal::Budget => "budget spent",
        Refusal::Destructive => "destructive after reading",
        Refusal::Protected => "protected name",
        Refusal::Irreversible => "no room in the journal",
        Refusal::NotCleared => "destination not cleared",
        Refusal::Tainted => "warrant after reading",
        Refusal::NotCited => "not cited",
        Refusal::Spent => "spent",
        Refusal::Link => "link",
        Refusal::Declined => "declined",
        Refusal::Unsupported => "unsupported",
        Refusal::OutOfScope => "out of scope",
        Refusal::Denied => "denied",
        Refusal::NotAbsolute => "not absolute",
        Refusal::AboveRoot => "above the root",
        Refusal::BadName => "bad name",
        Refusal::TooDeep => "too deep",
        Refusal::OverLimit => "over the limit",
        Refusal::Subtree => "subtree out of scope",
        Refusal::NoPlace => "no canonical place",
        Refusal::Secret => "secret out of place",
    }
}

/// The number of the gate that a code names: 1 to 4 for a refusal, 0 for a
/// fault, `None` for a number that is neither.
pub const fn gate(number: u16) -> Option<u8> {
    match number {
        101..=199 => Some(1),
        201..=299 => Some(2),
        301..=399 => Some(3),
        401..=499 => Some(4),
        501..=599 => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_name_their_gate() {
        for &refusal in Refusal::ALL {
            assert_eq!(Refusal::from_number(refusal.number()), Some(refusal));
            assert!(matches!(gate(refusal.number()), Some(1..=4)), "{refusal:?}");
            assert_eq!(Fault::from_number(refusal.number()), None);
        }
        for &fault in Fault::ALL {
            assert_eq!(Fault::from_number(fault.number()), Some(fault));
            assert_eq!(gate(fault.number()), Some(0));
        }
        assert_eq!(gate(600), None);
    }

    #[test]
    fn no_two_codes_have_one_name() {
        let refusals = || Refusal::ALL.iter().map(|refusal| name(*refusal));
        for (place, one) in refusals().enumerate() {
            assert!(refusals().skip(place + 1).all(|other| other != one), "{one}");
        }
        for (place, one) in Fault::ALL.iter().enumerate() {
            assert!(Fault::ALL.iter().skip(place + 1).all(|other| other.name() != one.name()));
        }
    }
}
