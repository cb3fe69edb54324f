//! The frame of a reply: four bytes, then the payload.
//!
//! A reply says what form its payload has and how far the caller's mark has
//! risen, so that an agent can plan without guessing; nothing else. A held
//! reply has the handle and no more: not even a length.
//!
//! # Not here
//! Labels: they stay with the kernel.

/// Version of the frame.
pub const VERSION: u8 = 1;
/// Bytes before the payload.
pub const HEADER: usize = 4;

crate::numbered! {
    /// What the payload is.
    pub enum Form: u8 {
        /// No bytes.
        Nothing = 0,
        /// Bytes as they are.
        Bytes = 1,
        /// UTF-8 JSON of the schema in `docs/abi.md`.
        Json = 2,
        /// The number of a handle: eight bytes, little-endian.
        Handle = 3,
        /// The number of a held value: eight bytes, little-endian.
        Held = 4,
    }
}

crate::numbered! {
    /// Who wrote the bytes, and so how far a mark has risen that has seen them.
    /// There is no order on the type: use [`Mark::join`].
    pub enum Mark: u8 {
        /// The kernel alone.
        System = 0,
        /// The human.
        User = 1,
        /// Somebody outside, or nobody knows.
        Ingested = 2,
    }
}

impl Mark {
    /// The less trustworthy of the two.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ingested, _) | (_, Self::Ingested) => Self::Ingested,
            (Self::User, _) | (_, Self::User) => Self::User,
            (Self::System, Self::System) => Self::System,
        }
    }
}

/// The four bytes that stand before a payload.
#[must_use]
pub const fn header(form: Form, mark: Mark) -> [u8; HEADER] {
    [VERSION, form.number(), mark.number(), 0]
}

/// A reply taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the payload is.
    pub form: Form,
    /// How far the mark has risen.
    pub mark: Mark,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Takes a framed reply apart; `None` if it is not one of this version.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&[VERSION, form, mark, 0], payload) = bytes.split_first_chunk::<HEADER>()? else {
            return None;
        };
        Some(Self { form: Form::from_number(form)?, mark: Mark::from_number(mark)?, payload })
    }

    /// The number of a handle or of a held value.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.form {
            Form::Handle | Form::Held => Some(u64::from_le_bytes(self.payload.try_into().ok()?)),
            Form::Nothing | Form::Bytes | Form::Json => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_and_others_are_refused() {
        let mut bytes = [0; HEADER + 8];
        bytes[..HEADER].copy_from_slice(&header(Form::Held, Mark::User));
        bytes[HEADER] = 7;
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!((frame.form, frame.mark, frame.number()), (Form::Held, Mark::User, Some(7)));
        for (at, wrong) in [(0, 2), (1, 5), (2, 3), (3, 1)] {
            let mut other = bytes;
            other[at] = wrong;
            assert_eq!(Frame::parse(&other), None, "byte {at}");
        }
        assert_eq!(Frame::parse(&bytes[..3]), None);
    }
}
