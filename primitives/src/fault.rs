//! How the world says no: one number per reason, no text.
//!
//! Text from the world would be a channel into the guest that nobody labelled,
//! so a fault is a number whose meaning was fixed before the call was made.
//!
//! # Invariants
//! - A number is never given to a second meaning.
//!
//! # Not here
//! Refusals, which policy says (the boundary), and traps (the engine).

/// Why the world did not do what the door had admitted.
///
/// Exhaustive on purpose: a new reason must break every match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Fault {
    /// This board or this file system cannot do it at all.
    Unsupported = 501,
    /// Nothing stands at the path.
    NotFound = 502,
    /// Something stands where a new name was to be made.
    Exists = 503,
    /// A directory, or a mount's root, where a file was asked for.
    NotAFile = 504,
    /// A file in the middle of the path.
    NotADirectory = 505,
    /// A file, name or tree beyond what the board handles.
    TooLarge = 506,
    /// The disk or the quota is full.
    NoSpace = 507,
    /// The mount or its file system is read-only.
    ReadOnly = 508,
    /// A symbolic link stands in the path.
    Link = 509,
    /// A device, FIFO or socket.
    Special = 510,
    /// The target is no longer what it was when the call began.
    Changed = 511,
    /// The content is not UTF-8 text.
    NotText = 512,
    /// The device failed.
    Io = 513,
    /// The wait ended first.
    TimedOut = 514,
    /// The other end is gone.
    Closed = 515,
    /// Synapse's own file or directory.
    Reserved = 516,
    /// Source and target, or parts of one tree, lie on different mounts.
    CrossDevice = 517,
    /// The wait was cancelled.
    Cancelled = 518,
    /// The text to find is not there.
    NoMatch = 519,
    /// The text to find is there more than once.
    Ambiguous = 520,
    /// The host's own permissions forbid it.
    NotAllowedByHost = 521,
    /// The directory is not empty.
    NotEmpty = 522,
    /// A name in the tree is not UTF-8, so no gate can judge it.
    NameNotText = 523,
    /// Part of the tree, or the name of a mount itself, lies outside the grant.
    Outside = 524,
    /// The journal has no room for what would be displaced.
    JournalFull = 525,
    /// More entries than one call may touch.
    TooMany = 526,
}

impl Fault {
    /// The stable number, 501 to 526.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }
}
