//! What an entry lets an agent do, in a person's words, and how bad that can get.
//!
//! # Not here
//! Which entries there are (`consent`). Words of a running agent (`synapse_kernel::words`).

use synapse_kernel::render;

use super::entry::{Entry, Host, Place, Tool};
use super::{Authority, Budget};

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
        match entry {
            Entry::Primitive(name) => match &**name {
                "fs_delete" => Self::Delete,
                "net_http_get" | "net_http_post" | "net_listen" | "net_accept" => Self::Send,
                "tool_commit" => Self::Commit,
                "agent_spawn" | "agent_wait" | "channel_create" | "channel_write"
                | "channel_read" | "channel_close" | "channel_grant" => Self::Start,
                "fs_write" | "fs_edit" | "fs_move" => Self::Change,
                "fs_read" | "fs_list" | "fs_search" => Self::Read,
                "tool_use" => Self::Use,
                _ => Self::Talk,
            },
            Entry::Path(_) => Self::Where,
            Entry::Host(_) => Self::Reach,
            Entry::Tool(tool) if tool.effect == "commit" => Self::Commit,
            Entry::Tool(_) => Self::Use,
        }
    }
}

/// What an entry allows, in one line; nothing in it acts.
pub(super) fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Primitive(name) => format!("{} ({})", verb(name), render::escape(name)),
        Entry::Path(Place { path, rights }) => format!("{}: {}", place(path), list(rights)),
        Entry::Host(Host { host, ports, methods, paths, clear, secrets, reads }) => {
            let who = match host.strip_prefix("*.") {
                Some(suffix) => format!("every host below {}", render::escape(suffix)),
                None => render::escape(host),
            };
            let ports: Vec<String> =
                ports.iter().map(|ports| ports.to_string().replace('"', "")).collect();
            let ports = ports.join(", ");
            let below = if paths.iter().any(|path| path == "/") {
                String::new()
            } else {
                format!(", below {}", list(paths))
            };
            let carried = match (secrets.is_empty(), reads) {
                (true, _) => String::new(),
                (false, true) => format!("; with your secrets: {}, to read", list(secrets)),
                (false, false) => format!("; with your secrets: {}", list(secrets)),
            };
            let (listens, sends): (Vec<_>, Vec<_>) =
                methods.iter().cloned().partition(|method| method == "LISTEN");
            let mut does = Vec::new();
            if !sends.is_empty() {
                does.push(format!("{} on port {ports}{below}", list(&sends)));
            }
            if !listens.is_empty() {
                // All of 127.0.0.0/8, and nothing that begins so is a name.
                let whose = if host.starts_with("127.") || host == "[::1]" {
                    "programs of this machine alone"
                } else {
                    "other machines too"
                };
                does.push(format!("takes connections on port {ports}, of {whose}"));
            }
            format!("{who}: {}; it may be told: {}{carried}", does.join(", and "), told(clear))
        }
        Entry::Tool(Tool { tool, effect, limits, clear }) => {
            let effect = match &**effect {
                "read" => "reads",
                "store" => "stores what can be taken back",
                "free" => "stores without asking",
                _ => "cannot be taken back: it may send, pay or order",
            };
            let limits: Vec<String> = limits
                .iter()
                .map(|(name, limit)| render::escape(format!("; `{name}` only {limit}")))
                .collect();
            let told = told(clear);
            format!("{}: {effect}{}; it may be told: {told}", render::escape(tool), limits.concat())
        }
    }
}

/// How much it may use, in one line.
pub(super) fn budget(budget: &Budget) -> String {
    let Budget { calls, seconds, memory } = budget;
    let grouped = synapse_kernel::words::grouped;
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
        has(&|entry| matches!(entry, Entry::Primitive(_)) && Danger::of(entry) == danger)
    };
    let mut never = Vec::new();
    let mut unless = |held: bool, what| {
        if !held {
            never.push(what);
        }
    };
    unless(calls(Danger::Delete), "delete anything");
    unless(calls(Danger::Change), "change, move or overwrite a file");
    unless(calls(Danger::Read), "look at a file or a folder");
    unless(calls(Danger::Send), "reach any other machine");
    unless(calls(Danger::Commit), "pay, order or send through a connector");
    unless(calls(Danger::Start), "start other agents or hand them rights");
    never.extend([
        "get more than this, whatever it reads, says or is told",
        "see a folder that you do not show it with --dir",
        "run a program, or read or change its own grant, its package, its log",
        "delete after it has read what others wrote, unless you named that yourself or say yes to it",
    ]);
    never
}

fn verb(name: &str) -> &'static str {
    match name {
        "console_write" => "show you text, behind a bar",
        "console_ask" => "ask you questions",
        "clock_read" => "see the time",
        "fs_read" => "read files",
        "fs_write" => "write files, new ones and over old ones",
        "fs_edit" => "change parts of files",
        "fs_list" => "see which files there are",
        "fs_search" => "search files for a text",
        "fs_move" => "move and rename files and folders",
        "fs_delete" => "delete files, and folders with all in them",
        "value_read" => "look into what it held without reading",
        "value_pick" => "pick from what it held without reading",
        "model_generate" => "ask a language model",
        "agent_spawn" => "start other agents, with at most its own rights",
        "agent_wait" => "wait for agents that it started",
        "channel_create" => "make channels between agents",
        "channel_write" => "write to channels",
        "channel_read" => "read from channels",
        "channel_close" => "close channels and end agents that it started",
        "channel_grant" => "hand a channel to another agent",
        "net_listen" => "let others connect to it, at the addresses below",
        "net_accept" => "take the connections of those",
        "net_http_get" => "fetch pages; what it asks for is told to the host",
        "net_http_post" => "send to hosts",
        "tool_use" => "use connectors, to read and to store",
        "tool_commit" => "use connectors for what cannot be taken back",
        _ => "do what this version does not know",
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

fn told(clear: &[String]) -> String {
    if clear.is_empty() {
        "nothing of yours".to_owned()
    } else {
        let word = |name: &String| match &**name {
            "prompt" => "what you typed".to_owned(),
            "files" => "what stands in your files".to_owned(),
            other => format!("what is of `{}`", render::escape(other)),
        };
        clear.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

fn list(texts: &[String]) -> String {
    render::escape(texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::{Entry, entry};

    #[test]
    fn who_may_connect_is_said_in_words() {
        let words = |host: &str, more: &str| {
            let text = format!("host = \"{host}\"\nports = [8080]\n{more}");
            entry(&Entry::Host(toml::from_str(&text).unwrap()))
        };
        let listen = "methods = [\"LISTEN\"]\nclear = []";
        assert_eq!(
            words("127.0.0.1", listen),
            "127.0.0.1: takes connections on port 8080, of programs of this machine alone; \
             it may be told: nothing of yours"
        );
        assert_eq!(
            words("10.0.0.1", "methods = [\"GET\", \"LISTEN\"]"),
            "10.0.0.1: GET on port 8080, and takes connections on port 8080, of other machines \
             too; it may be told: what you typed"
        );
    }
}
