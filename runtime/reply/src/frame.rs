//! The frame of a reply: four bytes, then the payload.
//!
//! A reply says what form its payload has and how far the caller's mark has
//! risen, so that an agent can plan without guessing; nothing else. A held
//! reply has the handle and no more: not even a length.
//!
//! # Not here
//! Whose bytes a reply shows: its label says that (`synapse-kernel`).

pub use synapse_abi::mark::Mark;
use synapse_abi::registry::Primitive;

/// Version of the frame.
pub const VERSION: u8 = 1;
/// Bytes before the payload.
pub const HEADER: usize = 4;

synapse_abi::numbered! {
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

/// The four bytes that stand before a payload.
pub const fn header(form: Form, mark: Mark) -> [u8; HEADER] {
    [VERSION, form.number(), mark.number(), 0]
}

/// What the payload of a primitive's reply is.
pub const fn form(primitive: Primitive) -> Form {
    match primitive {
        Primitive::ConsoleWrite
        | Primitive::FsWrite
        | Primitive::FsEdit
        | Primitive::FsMove
        | Primitive::FsDelete
        | Primitive::ChannelWrite
        | Primitive::ChannelClose
        | Primitive::ChannelGrant => Form::Nothing,
        Primitive::ConsoleAsk
        | Primitive::FsRead
        | Primitive::ValueRead
        | Primitive::ModelGenerate
        | Primitive::AgentWait
        | Primitive::ChannelRead
        | Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit => Form::Bytes,
        Primitive::ClockRead
        | Primitive::FsList
        | Primitive::FsSearch
        | Primitive::ChannelCreate => Form::Json,
        Primitive::AgentSpawn | Primitive::NetListen | Primitive::NetAccept => Form::Handle,
        Primitive::ValuePick => Form::Held,
    }
}

/// Whether the reply shows bytes that others than the kernel may have written.
pub const fn ingests(primitive: Primitive) -> bool {
    matches!(
        primitive,
        Primitive::FsRead
            | Primitive::FsEdit
            | Primitive::FsList
            | Primitive::FsSearch
            | Primitive::ValueRead
            | Primitive::ModelGenerate
            | Primitive::AgentWait
            | Primitive::ChannelRead
            | Primitive::NetHttpGet
            | Primitive::NetHttpPost
            | Primitive::ToolUse
            | Primitive::ToolCommit
    )
}
