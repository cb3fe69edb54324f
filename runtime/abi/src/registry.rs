//! The 26 primitives: names, arguments, roles, classes.
//!
//! Every effect of every agent is one of these. The table is data so that the
//! parser, the grammar, the sampler's mask and the documents are read off it,
//! and a constant so that no package, model or configuration can add a row.
//!
//! # Invariants
//! - I12: 26 rows, ids in order, 5 destructive; the assertions below fail the
//!   build otherwise.
//!
//! # Not here
//! What a class means for a call (gate 3), what a target may be (gate 4).

/// How many primitives there are.
pub const COUNT: usize = 26;
/// How many of them are destructive whatever their arguments.
pub const DESTRUCTIVE: usize = 5;

/// One of the 26 primitives; the discriminant is its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each row of REGISTRY says what its primitive does")]
pub enum Primitive {
    ConsoleWrite = 0,
    ConsoleAsk,
    ClockRead,
    FsRead,
    FsWrite,
    FsEdit,
    FsList,
    FsSearch,
    FsMove,
    FsDelete,
    ValueRead,
    ValuePick,
    ModelGenerate,
    AgentSpawn,
    AgentWait,
    ChannelCreate,
    ChannelWrite,
    ChannelRead,
    ChannelClose,
    ChannelGrant,
    NetListen,
    NetAccept,
    NetHttpGet,
    NetHttpPost,
    ToolUse,
    ToolCommit,
}

/// What an argument may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A string of at most [`crate::limits::TEXT`] bytes, or a held value.
    Text,
    /// A string that names a file, or a held value.
    Path,
    /// A canonical URL, or a held value.
    Url,
    /// A canonical host, or a held value.
    Host,
    /// 0 to 65535, written as a Uint.
    Port,
    /// 0, or 1 to 15 digits without a leading zero.
    Uint,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A held value for [`Kind::Value`], a handle's number for the others.
    Handle(Kind),
    /// A literal string: never held.
    Name,
    /// A JSON object of bounded depth in which held values may stand.
    Json,
    /// A literal JSON object of bounded depth: no held value.
    Literal,
    /// The unique result over a held value.
    Selector,
    /// A string, a held value, or parts of both.
    Content,
    /// An array of `{"role":…,"text":…}`, the text a Content.
    Prompt,
}

/// What a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A held value.
    Value,
    /// A child agent.
    Agent,
    /// One end of a channel, or an accepted connection.
    Channel,
    /// A listening socket.
    Listener,
    /// Any handle but a value's.
    Any,
}

/// What an argument is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Names what is acted upon; gate 4 checks it, warrants fix it.
    Target,
    /// Says how.
    Parameter,
    /// Bytes that travel.
    Content,
    /// Picks a result.
    Selector,
    /// Names something the task already holds.
    Handle,
}

/// One argument of a primitive.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its key in the sentence.
    pub name: &'static str,
    /// What it may hold.
    pub ty: Type,
    /// What it is for.
    pub role: Role,
}

/// Whether calling the primitive is destructive whatever its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Nothing is lost by it.
    None,
    /// It displaces what the journal can hold.
    Journaled,
    /// It may be irreversible.
    Destructive,
}

/// Whether bytes leave the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// They do not.
    Never,
    /// They do when the other end is off the machine.
    ByPeer,
    /// They do.
    Always,
}

/// Whether the reply shows bytes that others may have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingest {
    /// The kernel alone wrote it.
    No,
    /// Others may have.
    Yes,
}

/// What a successful reply's payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// No bytes.
    Nothing,
    /// Bytes as they are.
    Bytes,
    /// UTF-8 JSON of the schema in `docs/abi.md`.
    Json,
    /// The number of a handle: eight bytes, little-endian.
    Handle,
}

/// One row of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Which primitive.
    pub primitive: Primitive,
    /// Its name in a sentence.
    pub name: &'static str,
    /// What it does, for people.
    pub summary: &'static str,
    /// Its arguments, in the order in which a sentence has them.
    pub arguments: &'static [Argument],
    /// What it may destroy.
    pub harm: Harm,
    /// What may leave the machine.
    pub egress: Egress,
    /// What may come in.
    pub ingest: Ingest,
    /// What it answers.
    pub reply: Reply,
}

/// Milliseconds are written as a Uint.
const TIMEOUT: Argument = param("timeout", Type::Uint);

const fn arg(name: &'static str, ty: Type, role: Role) -> Argument {
    Argument { name, ty, role }
}
const fn target(name: &'static str, ty: Type) -> Argument {
    arg(name, ty, Role::Target)
}
const fn param(name: &'static str, ty: Type) -> Argument {
    arg(name, ty, Role::Parameter)
}
const fn content(name: &'static str, ty: Type) -> Argument {
    arg(name, ty, Role::Content)
}
const fn handle(name: &'static str, kind: Kind) -> Argument {
    arg(name, Type::Handle(kind), Role::Handle)
}

const fn row(
    primitive: Primitive,
    name: &'static str,
    summary: &'static str,
    arguments: &'static [Argument],
    flags: (Harm, Egress, Ingest, Reply),
) -> Row {
    let (harm, egress, ingest, reply) = flags;
    Row { primitive, name, summary, arguments, harm, egress, ingest, reply }
}

use Egress::{Always, ByPeer, Never};
use Harm::{Destructive, Journaled, None as Harmless};
use Ingest::{No, Yes};
use Reply::{Bytes, Handle as Number, Json, Nothing};

/// The registry, in order of id.
pub static REGISTRY: [Row; COUNT] = [
    row(
        Primitive::ConsoleWrite,
        "console_write",
        "show text to the human",
        &[content("content", Type::Content)],
        (Harmless, Never, No, Nothing),
    ),
    row(
        Primitive::ConsoleAsk,
        "console_ask",
        "ask the human one question",
        &[content("question", Type::Content)],
        (Harmless, Never, No, Bytes),
    ),
    row(Primitive::ClockRead, "clock_read", "read the clock", &[], (Harmless, Never, No, Json)),
    row(
        Primitive::FsRead,
        "fs_read",
        "read bytes of a file",
        &[target("path", Type::Path), param("offset", Type::Uint), param("length", Type::Uint)],
        (Harmless, Never, Yes, Bytes),
    ),
    row(
        Primitive::FsWrite,
        "fs_write",
        "write a whole file, or its end",
        &[
            target("path", Type::Path),
            content("content", Type::Content),
            param("mode", Type::Choice(&["create", "replace", "append"])),
        ],
        (Journaled, Never, No, Nothing),
    ),
    row(
        Primitive::FsEdit,
        "fs_edit",
        "replace the one place where a text stands",
        &[target("path", Type::Path), content("old", Type::Content), content("new", Type::Content)],
        (Journaled, Never, Yes, Nothing),
    ),
    row(
        Primitive::FsList,
        "fs_list",
        "list a directory",
        &[target("path", Type::Path), param("after", Type::Text), param("limit", Type::Uint)],
        (Harmless, Never, Yes, Json),
    ),
    row(
        Primitive::FsSearch,
        "fs_search",
        "find a literal text below a directory",
        &[target("path", Type::Path), param("text", Type::Text), param("offset", Type::Uint)],
        (Harmless, Never, Yes, Json),
    ),
    row(
        Primitive::FsMove,
        "fs_move",
        "move a file or a directory to a free name",
        &[target("from", Type::Path), target("to", Type::Path)],
        (Journaled, Never, No, Nothing),
    ),
    row(
        Primitive::FsDelete,
        "fs_delete",
        "delete a file, or a directory and all below it",
        &[target("path", Type::Path)],
        (Destructive, Never, No, Nothing),
    ),
    row(
        Primitive::ValueRead,
        "value_read",
        "release bytes of a held value",
        &[handle("value", Kind::Value), param("offset", Type::Uint), param("length", Type::Uint)],
        (Harmless, Never, Yes, Bytes),
    ),
    row(
        Primitive::ValuePick,
        "value_pick",
        "refine a held value without seeing it",
        &[handle("value", Kind::Value), arg("selector", Type::Selector, Role::Selector)],
        (Harmless, Never, No, Number),
    ),
    row(
        Primitive::ModelGenerate,
        "model_generate",
        "have a model continue a prompt",
        &[
            content("prompt", Type::Prompt),
            param("grammar", Type::Choice(&["text", "sentence", "json"])),
            param("max_tokens", Type::Uint),
        ],
        (Harmless, ByPeer, Yes, Bytes),
    ),
    row(
        Primitive::AgentSpawn,
        "agent_spawn",
        "start a child with less authority",
        &[
            target("package", Type::Name),
            content("task", Type::Content),
            param("grant", Type::Literal),
        ],
        (Harmless, Never, No, Number),
    ),
    row(
        Primitive::AgentWait,
        "agent_wait",
        "wait for a child's report",
        &[handle("agent", Kind::Agent), TIMEOUT],
        (Harmless, Never, Yes, Bytes),
    ),
    row(
        Primitive::ChannelCreate,
        "channel_create",
        "make two ends of a channel",
        &[param("kind", Type::Choice(&["bytes", "messages"]))],
        (Harmless, Never, No, Json),
    ),
    row(
        Primitive::ChannelWrite,
        "channel_write",
        "send on a channel",
        &[handle("channel", Kind::Channel), content("content", Type::Content)],
        (Harmless, ByPeer, No, Nothing),
    ),
    row(
        Primitive::ChannelRead,
        "channel_read",
        "receive from a channel",
        &[handle("channel", Kind::Channel), param("max", Type::Uint), TIMEOUT],
        (Harmless, Never, Yes, Bytes),
    ),
    row(
        Primitive::ChannelClose,
        "channel_close",
        "close a handle; on a child, end it",
        &[handle("channel", Kind::Any)],
        (Harmless, Never, No, Nothing),
    ),
    row(
        Primitive::ChannelGrant,
        "channel_grant",
        "move a channel end to a child",
        &[handle("channel", Kind::Channel), handle("to", Kind::Agent)],
        (Destructive, Never, No, Nothing),
    ),
    row(
        Primitive::NetListen,
        "net_listen",
        "listen for connections",
        &[target("host", Type::Host), target("port", Type::Port)],
        (Destructive, Never, No, Number),
    ),
    row(
        Primitive::NetAccept,
        "net_accept",
        "accept one connection",
        &[handle("listener", Kind::Listener), TIMEOUT],
        (Harmless, Never, No, Number),
    ),
    row(
        Primitive::NetHttpGet,
        "net_http_get",
        "fetch a URL",
        &[target("url", Type::Url), content("headers", Type::Json)],
        (Harmless, Always, Yes, Bytes),
    ),
    row(
        Primitive::NetHttpPost,
        "net_http_post",
        "send to a URL",
        &[
            target("url", Type::Url),
            content("headers", Type::Json),
            content("content", Type::Content),
        ],
        (Destructive, Always, Yes, Bytes),
    ),
    row(
        Primitive::ToolUse,
        "tool_use",
        "use a connector's verb that reads, fetches or stores",
        &[target("tool", Type::Name), param("arguments", Type::Json)],
        (Harmless, Always, Yes, Bytes),
    ),
    row(
        Primitive::ToolCommit,
        "tool_commit",
        "use a connector's verb that cannot be taken back",
        &[target("tool", Type::Name), param("arguments", Type::Json)],
        (Destructive, Always, Yes, Bytes),
    ),
];

#[expect(clippy::indexing_slicing, reason = "an index out of range fails the build")]
const _: () = {
    let mut id = 0;
    let mut destructive = 0;
    while id < COUNT {
        assert!(REGISTRY[id].primitive as usize == id, "ids are in order");
        assert!(REGISTRY[id].arguments.len() <= MAX_ARGUMENTS, "room for the arguments");
        if let Destructive = REGISTRY[id].harm {
            destructive += 1;
        }
        id += 1;
    }
    assert!(Primitive::ToolCommit as usize + 1 == COUNT, "one row for each primitive");
    assert!(destructive == DESTRUCTIVE, "five are destructive");
};

/// The most arguments that any primitive has.
pub const MAX_ARGUMENTS: usize = 3;

impl Primitive {
    /// This primitive's row.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the assertion above: every id has a row")]
    pub fn row(self) -> &'static Row {
        &REGISTRY[self as usize]
    }

    /// The primitive with this id.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        REGISTRY.get(usize::from(id)).map(|row| row.primitive)
    }

    /// The primitive with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        REGISTRY.iter().find(|row| row.name == name).map(|row| row.primitive)
    }

    /// Its id: what a record holds.
    #[must_use]
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Whether a warrant may name it: it has a target and an effect that gate 3
    /// may refuse.
    #[must_use]
    pub fn takes_warrant(self) -> bool {
        let row = self.row();
        let effect = row.harm != Harm::None || row.egress == Always;
        effect && row.arguments.iter().any(|argument| argument.role == Role::Target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i12_the_registry_is_the_constant_of_the_design() {
        let names: [&str; COUNT] = REGISTRY.map(|row| row.name);
        for (id, name) in names.iter().enumerate() {
            let primitive = Primitive::from_name(name).unwrap();
            assert_eq!(usize::from(primitive.id()), id);
            assert_eq!(Primitive::from_id(primitive.id()), Some(primitive));
        }
        let destructive: [bool; COUNT] = REGISTRY.map(|row| row.harm == Destructive);
        let expected = ["fs_delete", "channel_grant", "net_listen", "net_http_post", "tool_commit"];
        for (name, is) in names.iter().zip(destructive) {
            assert_eq!(expected.contains(name), is, "{name}");
        }
        assert_eq!(Primitive::from_id(26), None);
        assert_eq!(Primitive::from_name("fs_reads"), None);
    }

    #[test]
    fn warrants_are_for_effects_with_a_target() {
        let taking = REGISTRY.iter().filter(|row| row.primitive.takes_warrant());
        let expected = [
            "fs_write",
            "fs_edit",
            "fs_move",
            "fs_delete",
            "net_listen",
            "net_http_get",
            "net_http_post",
            "tool_use",
            "tool_commit",
        ];
        assert!(taking.map(|row| row.name).eq(expected));
    }
}
