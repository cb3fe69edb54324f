//! How far a reader has to distrust what it has read.
//!
//! # Not here
//! The rest of a label (`synapse-boundary`).

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
