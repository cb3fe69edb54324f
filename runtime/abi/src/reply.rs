//! The frame of a reply: four bytes, then the payload.
//!
//! A reply says what form its payload has and how far the caller's mark has
//! risen, so that an agent can plan without guessing; nothing else. A held
//! reply has the handle and no more: not even a length.
//!
//! # Not here
//! Labels: they stay with the kernel. Taking a frame apart (a guest's SDK).

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
pub const fn header(form: Form, mark: Mark) -> [u8; HEADER] {
    [VERSION, form.number(), mark.number(), 0]
}
