//! What an entry lets an agent do, in a person's words, and how bad that can get.
//!
//! # Not here
//! Which entries there are (`consent`). Words of a running agent (`crate::words`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::registry::Primitive;
use synapse_boundary::scope::Effect;

use crate::grant::{Authority, Budget, Entry, Kind, written};
use crate::render;

/// What an entry is listed under, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Danger {
    /// It removes what is there.
    Delete,
    /// It says something to somebody.
    Send,
    /// It pays, orders or does what cannot be taken back.
    Commit,
    /// It hands work and rights to others.
    Start,
    /// It changes files.
    Change,
    /// It reads files.
    Read,
    /// Where all that applies.
    Where,
    /// Hosts.
    Reach,
    /// Connectors.
    Use,
    /// It does what can do no harm by itself.
    Talk,
}

impl Danger {
    /// All, the worst first.
    pub const ALL: [Self; 10] = [
        Self::Delete,
        Self::Send,
        Self::Commit,
        Self::Start,
        Self::Change,
        Self::Read,
        Self::Where,
        Self::Reach,
        Self::Use,
        Self::Talk,
    ];

    /// The line above its entries.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Delete => "IT CAN DELETE",
            Self::Send => "IT CAN SEND AND FETCH",
            Self::Commit => "IT CAN SPEND, AND DO WHAT CANNOT BE TAKEN BACK",
            Self::Start => "IT CAN START OTHERS AND HAND ON RIGHTS",
            Self::Change => "IT CAN CHANGE FILES",
            Self::Read => "IT CAN READ FILES",
            Self::Where => "IN THESE FOLDERS, AS FAR AS YOU SHOW THEM WITH --dir",
            Self::Reach => "IT CAN TALK TO THESE HOSTS",
            Self::Use => "IT CAN USE THESE CONNECTORS",
            Self::Talk => "IT CAN ALSO",
        }
    }

    /// What an entry is listed under.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        match &entry.0 {
            Kind::Primitive(primitive) => match primitive {
                Primitive::FsDelete => Self::Delete,
                Primitive::NetHttpGet
                | Primitive::NetHttpPost
                | Primitive::NetListen
                | Primitive::NetAccept => Self::Send,
                Primitive::ToolCommit => Self::Commit,
                Primitive::AgentSpawn
                | Primitive::AgentWait
                | Primitive::ChannelCreate
                | Primitive::ChannelWrite
                | Primitive::ChannelRead
                | Primitive::ChannelClose
                | Primitive::ChannelGrant => Self::Start,
                Primitive::FsWrite | Primitive::FsEdit | Primitive::FsMove => Self::Change,
                Primitive::FsRead | Primitive::FsList | Primitive::FsSearch => Self::Read,
                Primitive::ToolUse => Self::Use,
                Primitive::ConsoleWrite
                | Primitive::ConsoleAsk
                | Primitive::ClockRead
                | Primitive::ValueRead
                | Primitive::ValuePick
                | Primitive::ModelGenerate => Self::Talk,
            },
            Kind::Path(_) => Self::Where,
            Kind::Host(_) => Self::Reach,
            Kind::Tool(tool) if tool.effect == Effect::Commit => Self::Commit,
            Kind::Tool(_) => Self::Use,
        }
    }
}

/// What an entry allows, in one line; nothing in it acts.
pub(super) fn entry(entry: &Entry) -> String {
    match &entry.0 {
        Kind::Primitive(primitive) => format!("{} ({})", verb(*primitive), entry.name()),
        Kind::Path(own) => format!("{}: {}", place(&own.text), own.rights().join(", ")),
        Kind::Host(own) => {
            let who = match entry.name().strip_prefix("*.") {
                Some(suffix) => format!("every host below {}", render::escape(suffix)),
                None => render::escape(entry.name()),
            };
            let ports = own.ports().join(", ").replace('"', "");
            let below = if own.paths.iter().any(|path| path == "/") {
                String::new()
            } else {
                format!(", below {}", render::escape(own.paths.join(", ")))
            };
            let secrets = render::escape(own.secrets.join(", "));
            let carried = match (own.secrets.is_empty(), own.reads) {
                (true, _) => String::new(),
                (false, true) => format!("; with your secrets: {secrets}, to read"),
                (false, false) => format!("; with your secrets: {secrets}"),
            };
            let (listens, sends): (Vec<_>, Vec<_>) =
                own.methods().into_iter().partition(|method| *method == "LISTEN");
            let mut does = Vec::new();
            if !sends.is_empty() {
                does.push(format!("{} on port {ports}{below}", sends.join(", ")));
            }
            if !listens.is_empty() {
                // All of 127.0.0.0/8, and nothing that begins so is a name.
                let whose = if entry.name().starts_with("127.") || entry.name() == "[::1]" {
                    "programs of this machine alone"
                } else {
                    "other machines too"
                };
                does.push(format!("takes connections on port {ports}, of {whose}"));
            }
            let told = told(own.clear.names());
            format!("{who}: {}; it may be told: {told}{carried}", does.join(", and "))
        }
        Kind::Tool(own) => {
            let effect = match own.effect {
                Effect::Read => "reads",
                Effect::Store => "stores what can be taken back",
                Effect::Free => "stores without asking",
                Effect::Commit => "cannot be taken back: it may send, pay or order",
            };
            let mut limits = String::new();
            for (name, bound) in &own.limits {
                limits.push_str(&render::escape(format!("; `{name}` only {}", written(bound))));
            }
            let told = told(own.clear.names());
            format!("{}: {effect}{limits}; it may be told: {told}", render::escape(&own.tool))
        }
    }
}

/// How much it may use, in one line.
pub(super) fn budget(budget: &Budget) -> String {
    let Budget { calls, seconds, memory } = budget;
    let grouped = crate::words::grouped;
    format!(
        "{} calls a run, {} seconds of computing, {} MiB of memory",
        grouped(*calls),
        grouped(*seconds),
        grouped(memory >> 20)
    )
}

/// What nothing lets a package with this authority do.
pub(super) fn never(authority: &Authority) -> Vec<&'static str> {
    let has = |wanted: &dyn Fn(&Entry) -> bool| authority.entries.iter().any(wanted);
    let calls = |danger: Danger| {
        has(&|entry| matches!(entry.0, Kind::Primitive(_)) && Danger::of(entry) == danger)
    };
    let one_of = |wanted: &[Primitive]| {
        has(&|entry| matches!(&entry.0, Kind::Primitive(own) if wanted.contains(own)))
    };
    // A connector's verb may be a program that is run in a folder.
    let runs = one_of(&[Primitive::ToolUse, Primitive::ToolCommit]);
    // And who is at the other end of these, somebody else decides.
    let talks =
        one_of(&[Primitive::ModelGenerate, Primitive::ChannelRead, Primitive::ChannelWrite]);
    let mut never = Vec::new();
    let mut unless = |held: bool, what| {
        if !held {
            never.push(what);
        }
    };
    unless(calls(Danger::Delete) || runs, "delete anything");
    unless(calls(Danger::Change) || runs, "change, move or overwrite a file");
    unless(calls(Danger::Read) || runs, "look at a file or a folder");
    unless(calls(Danger::Send) || runs || talks, "reach any other machine");
    unless(calls(Danger::Commit), "pay, order or send through a connector");
    unless(calls(Danger::Start), "start other agents or hand them rights");
    never.extend([
        "get more than this, whatever it reads, says or is told",
        "see a folder that you do not show it with --dir",
        if runs {
            "read or change its own grant, its package, its log"
        } else {
            "run a program, or read or change its own grant, its package, its log"
        },
        "delete after it has read what others wrote, unless you named that yourself or say yes to it",
    ]);
    never
}

const fn verb(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::ConsoleWrite => "show you text, behind a bar",
        Primitive::ConsoleAsk => "ask you questions",
        Primitive::ClockRead => "see the time",
        Primitive::FsRead => "read files",
        Primitive::FsWrite => "write files, new ones and over old ones",
        Primitive::FsEdit => "change parts of files",
        Primitive::FsList => "see which files there are",
        Primitive::FsSearch => "search files for a text",
        Primitive::FsMove => "move and rename files and folders",
        Primitive::FsDelete => "delete files, and folders with all in them",
        Primitive::ValueRead => "look into what it held without reading",
        Primitive::ValuePick => "pick from what it held without reading",
        Primitive::ModelGenerate => "ask a language model",
        Primitive::AgentSpawn => "start other agents, with at most its own rights",
        Primitive::AgentWait => "wait for agents that it started",
        Primitive::ChannelCreate => "make channels between agents",
        Primitive::ChannelWrite => "write to channels",
        Primitive::ChannelRead => "read from channels",
        Primitive::ChannelClose => "close channels and end agents that it started",
        Primitive::ChannelGrant => "hand a channel to another agent",
        Primitive::NetListen => "let others connect to it, at the addresses below",
        Primitive::NetAccept => "take the connections of those",
        Primitive::NetHttpGet => "fetch pages; what it asks for is told to the host",
        Primitive::NetHttpPost => "send to hosts",
        Primitive::ToolUse => "use connectors, to read and to store",
        Primitive::ToolCommit => "use connectors for what cannot be taken back",
    }
}

fn place(path: &str) -> String {
    if let Some(folder) = path.strip_suffix("/**") {
        format!("{} and everything below it", render::escape(folder))
    } else if let Some(folder) = path.strip_suffix("/*") {
        format!(
            "what stands directly in {}",
            render::escape(if folder.is_empty() { "/" } else { folder })
        )
    } else {
        render::escape(path)
    }
}

fn told<'a>(clear: impl Iterator<Item = &'a str>) -> String {
    let word = |name: &str| match name {
        "prompt" => "what you typed".to_owned(),
        "files" => "what stands in your files".to_owned(),
        other => format!("what is of `{}`", render::escape(other)),
    };
    let words: Vec<String> = clear.map(word).collect();
    if words.is_empty() { "nothing of yours".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::{entry, never};
    use crate::package::Manifest;

    #[test]
    fn a_connector_may_be_a_program_and_a_channel_a_connection() {
        let never = |primitive: &str| {
            let text = format!(
                "manifest = 1\nname = \"a\"\nversion = \"1.0.0\"\npublisher = \"b\"\n\
                 description = \"D.\"\nlicence = \"MIT\"\n[[capabilities]]\nreason = \"R.\"\n\
                 primitive = \"{primitive}\"\n"
            );
            never(&Manifest::parse(&text).unwrap().request).join("; ")
        };
        for said in ["delete anything", "look at a file", "reach any", "run a program"] {
            assert!(never("clock_read").contains(said), "{said}");
            assert!(!never("tool_use").contains(said), "{said}");
        }
        assert!(!never("channel_write").contains("reach any"));
        assert!(never("channel_write").contains("delete anything"));
    }

    #[test]
    fn who_may_connect_and_what_is_carried_is_said_in_words() {
        let words = |host: &str, more: &str| {
            let text = format!(
                "manifest = 1\nname = \"a\"\nversion = \"1.0.0\"\npublisher = \"b\"\n\
                 description = \"D.\"\nlicence = \"MIT\"\n[[capabilities]]\nreason = \"R.\"\n\
                 host = \"{host}\"\nports = [8080]\n{more}\n"
            );
            Manifest::parse(&text).unwrap().request.entries.iter().map(entry).collect::<Vec<_>>()
        };
        assert_eq!(
            words("127.0.0.1", "methods = [\"LISTEN\"]\nclear = []"),
            ["127.0.0.1: takes connections on port 8080, of programs of this machine alone; \
             it may be told: nothing of yours"]
        );
        assert_eq!(
            words("10.0.0.1", "methods = [\"GET\", \"LISTEN\"]"),
            ["10.0.0.1: GET on port 8080, and takes connections on port 8080, of other machines \
             too; it may be told: what you typed"]
        );
        assert_eq!(
            words("api.example", "secrets = [\"key\"]\nreads = true"),
            ["api.example: GET on port 8080; it may be told: what you typed; with your secrets: \
             key, to read"]
        );
    }
}
