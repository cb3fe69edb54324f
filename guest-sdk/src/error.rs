//! Why a call came to nothing
//!
//! # Not here
//! Sentences about one particular call: the record has them, `synapse why`
//! writes them.

use core::fmt;
use synapse_abi::code::Refusal;
use synapse_reply::code::{self, Fault};

/// What stands in place of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a guest decides what each kind means for its task")]
pub enum Error {
    /// Policy said no.
    Refused(Refusal),
    /// The world said no.
    Fault(Fault),
    /// A number that this version does not know.
    Unknown(u32),
    /// The reply is not the one that the primitive declares.
    Frame,
}

impl Error {
    /// The stable number; 0 for [`Error::Frame`], which has none.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Refused(refusal) => u32::from(refusal.number()),
            Self::Fault(fault) => u32::from(fault.number()),
            Self::Unknown(number) => number,
            Self::Frame => 0,
        }
    }

    /// The gate that refused; `None` unless one did.
    #[must_use]
    pub fn gate(self) -> Option<u8> {
        match self {
            Self::Refused(refusal) => code::gate(refusal.number()),
            Self::Fault(_) | Self::Unknown(_) | Self::Frame => None,
        }
    }
}

impl From<u32> for Error {
    fn from(number: u32) -> Self {
        let Ok(short) = u16::try_from(number) else { return Self::Unknown(number) };
        if let Some(refusal) = Refusal::from_number(short) {
            Self::Refused(refusal)
        } else if let Some(fault) = Fault::from_number(short) {
            Self::Fault(fault)
        } else {
            Self::Unknown(number)
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => {
                write!(f, "refused with code {}: {}", refusal.number(), code::name(*refusal))
            }
            Self::Fault(fault) => write!(f, "fault {}: {}", fault.number(), fault.name()),
            Self::Unknown(number) => write!(f, "failed with code {number}, unknown here"),
            Self::Frame => f.write_str("the reply has another form than declared"),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_keeps_its_meaning() {
        for &refusal in Refusal::ALL {
            let error = Error::from(u32::from(refusal.number()));
            assert_eq!(error, Error::Refused(refusal));
            assert_eq!(error.gate(), code::gate(refusal.number()));
        }
        for &fault in Fault::ALL {
            let error = Error::from(u32::from(fault.number()));
            assert_eq!((error, error.gate()), (Error::Fault(fault), None));
        }
        for number in [0, 600, 65_536 + 301] {
            assert_eq!(Error::from(number), Error::Unknown(number));
            assert_eq!(Error::from(number).number(), number);
        }
    }
}
