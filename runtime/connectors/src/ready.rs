//! What the verbs of well-known servers do, written once for everybody
//!
//! A person still approves it, as any manifest. A verb that the server has and this
//! does not stays out.
//!
//! # Not here
//! Where a server's program is, and which folders it is given (whoever adds it).

use std::path::Path;

use synapse_kernel::manifest::Start;

use crate::list::{List, head};

/// What is known of one server.
#[derive(Debug)]
pub struct Ready {
    /// What it is asked for by.
    pub name: &'static str,
    /// One line for people.
    about: &'static str,
    /// What it reads besides, where it is there.
    read: &'static [&'static str],
    /// Variables that it needs.
    environment: &'static [&'static str],
    /// Whether it needs the network.
    network: bool,
    /// Bytes of its memory: some runtimes reserve far more than they use.
    memory: u64,
    verbs: &'static str,
}

/// Those that there are.
pub static READY: [Ready; 5] = [
    Ready {
        name: "fetch",
        about: "Pages of the web",
        read: &[],
        environment: &[],
        network: true,
        memory: 2 << 30,
        verbs: include_str!("../ready/fetch.toml"),
    },
    Ready {
        name: "filesystem",
        about: "Files of some folders",
        read: &[],
        environment: &[],
        network: false,
        memory: 64 << 30,
        verbs: include_str!("../ready/filesystem.toml"),
    },
    Ready {
        name: "git",
        about: "Local repositories",
        read: &["/etc/gitconfig"],
        environment: &[],
        network: false,
        memory: 2 << 30,
        verbs: include_str!("../ready/git.toml"),
    },
    Ready {
        name: "memory",
        about: "Notes that stay",
        read: &[],
        environment: &["MEMORY_FILE_PATH"],
        network: false,
        memory: 64 << 30,
        verbs: include_str!("../ready/memory.toml"),
    },
    Ready {
        name: "time",
        about: "The clock, in any zone",
        read: &[],
        environment: &[],
        network: false,
        memory: 2 << 30,
        verbs: include_str!("../ready/time.toml"),
    },
];

impl Ready {
    /// The one that is asked for so.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        READY.iter().find(|ready| ready.name == name)
    }

    /// What it needs to begin, beside its program and its folders.
    #[must_use]
    pub fn start(&self, start: Start) -> Start {
        let there = self.read.iter().filter(|path| Path::new(path).exists());
        let read = start.read.into_iter().chain(there.map(|path| (*path).to_owned())).collect();
        let environment = self.environment.iter().map(|name| (*name).to_owned()).collect();
        Start { read, environment, network: self.network, memory: self.memory, ..start }
    }

    /// The manifest of a server that is started so.
    #[must_use]
    pub fn manifest(&self, server: &str, start: &Start) -> String {
        format!("{}\n{}", head(server, self.about, start), self.verbs)
    }

    /// Verbs of the manifest that a server with this list has not.
    pub fn lacking<'l>(&self, list: &'l List) -> impl Iterator<Item = &'static str> + use<'l> {
        let names = self.verbs.lines().filter_map(|line| line.strip_prefix("[verbs."));
        let names = names.filter_map(|name| name.strip_suffix(']'));
        names.filter(|name| !list.tools.iter().any(|tool| tool.name == *name))
    }
}

#[cfg(test)]
mod tests {
    use synapse_kernel::manifest::{Manifest, Role};

    use super::*;

    #[test]
    fn every_one_is_a_manifest_without_a_warning() {
        for ready in &READY {
            let command = vec!["/bin/server".to_owned()];
            let (server, disk) = ("x".to_owned(), 4 << 30);
            let start = Start { server, command, seconds: 60, reply: 1, disk, ..Start::default() };
            let start = ready.start(start);
            let text = ready.manifest("x", &start);
            let manifest = Manifest::check(&text).unwrap();
            assert_eq!(manifest.start, start, "{}", ready.name);
            assert!(manifest.warnings().is_empty(), "{:?}", manifest.warnings());
            for verb in &manifest.verbs {
                assert_eq!(verb.tool, verb.name);
                let reads = verb.class() == synapse_boundary::scope::Effect::Read;
                let aims = verb.arguments.iter().any(|it| it.role == Role::Target);
                assert!(reads || !verb.says.is_empty(), "{}", verb.name);
                assert!(reads || verb.free || aims, "{}", verb.name);
            }
            let all: Vec<_> = ready.lacking(&List::default()).collect();
            assert_eq!(all.len(), manifest.verbs.len());
        }
    }
}
