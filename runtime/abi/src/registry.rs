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
//! What a class means for a call (gate 3), what a target may be (gate 4). What comes
//! back (`synapse-reply`).

/// How many primitives there are.
pub const COUNT: usize = 26;

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
    /// Its name.
    pub name: &'static str,
    /// Its key as a sentence has it: the name in quotes, and a colon.
    pub key: &'static str,
    /// What it may hold.
    pub ty: Type,
    /// What it is for.
    pub role: Role,
    /// For a target path: what the grant must give.
    pub needs: Rights,
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
    /// The words with which people ask for it, in lower case. A warrant for a pattern, or
    /// for a selector without a literal, needs one of these in the human's line. What
    /// people say for a connector's verb is in its manifest.
    pub says: &'static [&'static str],
}

/// What a grant must give for a path that a call names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// See the names in a directory.
    pub const LIST: Self = Self(1);
    /// Read bytes.
    pub const READ: Self = Self(2);
    /// Make, change or receive a name.
    pub const WRITE: Self = Self(4);
    /// Take a name away.
    pub const DELETE: Self = Self(8);

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `needed` are here.
    #[must_use]
    pub const fn cover(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }
}

/// A line of documentation, `Primitive "name" [role argument: Type(of) RIGHTS, …] Harm Egress`,
/// and the words of [`Row::says`].
macro_rules! registry {
    ($(#[doc = $summary:literal] $primitive:ident $name:literal
        [$($role:ident $argument:ident: $ty:ident $(($($of:tt)+))? $($right:ident)?),*]
        $harm:ident $egress:ident $($says:literal)*;)*) => {
        /// One of the 26 primitives; the discriminant is its id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Primitive { $(#[doc = $summary] $primitive,)* }

        impl Primitive {
            /// The primitive with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$primitive),)* _ => None }
            }
        }

        /// The registry, in order of id.
        pub static REGISTRY: [Row; COUNT] = [$(Row {
            primitive: Primitive::$primitive,
            name: $name,
            summary: $summary.trim_ascii(),
            arguments: &[$(Argument {
                name: stringify!($argument),
                key: concat!("\"", stringify!($argument), "\":"),
                ty: Type::$ty $(($($of)+))?,
                role: Role::$role,
                needs: Rights::NONE $(.and(Rights::$right))?,
            }),*],
            harm: Harm::$harm,
            egress: Egress::$egress,
            says: &[$($says),*],
        },)*];
    };
}

// Time-outs are in milliseconds.
registry! {
    /// show text to the human
    ConsoleWrite "console_write" [Content content: Content] None Never;
    /// ask the human one question
    ConsoleAsk "console_ask" [Content question: Content] None Never;
    /// read the clock
    ClockRead "clock_read" [] None Never;
    /// read bytes of a file
    FsRead "fs_read" [Target path: Path READ, Parameter offset: Uint, Parameter length: Uint] None Never;
    /// write a whole file, or its end
    FsWrite "fs_write"
        [Target path: Path WRITE, Content content: Content, Parameter mode: Choice(&["create", "replace", "append"])]
        Journaled Never "write" "save" "create" "overwrite" "replace" "append" "update";
    /// replace the one place where a text stands
    FsEdit "fs_edit" [Target path: Path WRITE, Content old: Content, Content new: Content]
        Journaled Never "edit" "change" "correct" "fix" "replace" "rewrite" "update";
    /// list a directory
    FsList "fs_list" [Target path: Path LIST, Parameter after: Text, Parameter limit: Uint] None Never;
    /// find a literal text below a directory
    FsSearch "fs_search" [Target path: Path READ, Parameter text: Text, Parameter offset: Uint] None Never;
    /// move a file or a directory to a free name
    FsMove "fs_move" [Target from: Path DELETE, Target to: Path WRITE]
        Journaled Never "move" "rename" "archive" "mv";
    /// delete a file, or a directory and all below it
    FsDelete "fs_delete" [Target path: Path DELETE]
        Destructive Never "delete" "remove" "erase" "discard" "purge" "rm";
    /// release bytes of a held value
    ValueRead "value_read" [Handle value: Handle(Kind::Value), Parameter offset: Uint, Parameter length: Uint]
        None Never;
    /// refine a held value without seeing it
    ValuePick "value_pick" [Handle value: Handle(Kind::Value), Selector selector: Selector] None Never;
    /// have a model continue a prompt
    ModelGenerate "model_generate"
        [Content prompt: Prompt, Parameter grammar: Choice(&["text", "sentence", "json"]), Parameter max_tokens: Uint]
        None ByPeer;
    /// start a child with less authority
    AgentSpawn "agent_spawn" [Target package: Name, Content task: Content, Parameter grant: Literal] None Never;
    /// wait for a child's report
    AgentWait "agent_wait" [Handle agent: Handle(Kind::Agent), Parameter timeout: Uint] None Never;
    /// make two ends of a channel
    ChannelCreate "channel_create" [Parameter kind: Choice(&["bytes", "messages"])] None Never;
    /// send on a channel
    ChannelWrite "channel_write" [Handle channel: Handle(Kind::Channel), Content content: Content] None ByPeer;
    /// receive from a channel
    ChannelRead "channel_read"
        [Handle channel: Handle(Kind::Channel), Parameter max: Uint, Parameter timeout: Uint] None Never;
    /// close a handle; on a child, end it
    ChannelClose "channel_close" [Handle channel: Handle(Kind::Any)] None Never;
    /// move a channel end to a child
    ChannelGrant "channel_grant" [Handle channel: Handle(Kind::Channel), Handle to: Handle(Kind::Agent)]
        Destructive Never;
    /// listen for connections
    NetListen "net_listen" [Target host: Host, Target port: Port] Destructive Never "listen" "serve";
    /// accept one connection
    NetAccept "net_accept" [Handle listener: Handle(Kind::Listener), Parameter timeout: Uint] None Never;
    /// fetch a URL
    NetHttpGet "net_http_get" [Target url: Url, Content headers: Json] None Always "get" "fetch" "download";
    /// send to a URL
    NetHttpPost "net_http_post" [Target url: Url, Content headers: Json, Content content: Content]
        Destructive Always "post" "send" "submit" "upload";
    /// use a connector's verb that reads, fetches or stores
    ToolUse "tool_use" [Target tool: Name, Parameter arguments: Json] None Always;
    /// use a connector's verb that cannot be taken back
    ToolCommit "tool_commit" [Target tool: Name, Parameter arguments: Json] Destructive Always;
}

#[expect(clippy::indexing_slicing, reason = "an index out of range fails the build")]
const _: () = {
    let mut id = 0;
    let mut destructive = 0;
    while id < COUNT {
        assert!(REGISTRY[id].primitive as usize == id, "ids are in order");
        assert!(REGISTRY[id].arguments.len() <= MAX_ARGUMENTS, "room for the arguments");
        if let Harm::Destructive = REGISTRY[id].harm {
            destructive += 1;
        }
        id += 1;
    }
    assert!(Primitive::ToolCommit as usize + 1 == COUNT, "one row for each primitive");
    assert!(destructive == 5, "five are destructive");
};

/// The most arguments that any primitive has.
pub const MAX_ARGUMENTS: usize = 3;

impl Primitive {
    /// This primitive's row.
    #[expect(clippy::indexing_slicing, reason = "the assertion above: every id has a row")]
    pub fn row(self) -> &'static Row {
        &REGISTRY[self as usize]
    }

    /// The primitive with this id.
    pub fn from_id(id: u8) -> Option<Self> {
        REGISTRY.get(usize::from(id)).map(|row| row.primitive)
    }

    /// Its id: what a record holds.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Whether a warrant may name it: it has a target and an effect that gate 3
    /// may refuse.
    #[must_use]
    pub fn takes_warrant(self) -> bool {
        let row = self.row();
        let effect = row.harm != Harm::None || row.egress == Egress::Always;
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
        let destructive: [bool; COUNT] = REGISTRY.map(|row| row.harm == Harm::Destructive);
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
            "fs_write", "fs_edit", "fs_move", "fs_delete", "net_listen", "net_http_get",
            "net_http_post", "tool_use", "tool_commit",
        ];
        assert!(taking.map(|row| row.name).eq(expected));
    }

    #[test]
    fn what_takes_a_warrant_has_words_or_a_manifest_that_does() {
        for row in &REGISTRY {
            let verb = matches!(row.primitive, Primitive::ToolUse | Primitive::ToolCommit);
            assert_eq!(
                !row.says.is_empty(),
                row.primitive.takes_warrant() && !verb,
                "{}",
                row.name
            );
            for word in row.says {
                assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
            }
        }
    }
}
