//! `manifest.toml`: what a package is, and what it asks for, each with its reason.
//!
//! The one source of what an agent of a package may do: each capability is an entry of
//! a grant file with the sentence that is said for it, and the grant is derived from them.
//!
//! # Invariants
//! - What is not understood is refused, and so is a text with a character that acts on a
//!   screen or hides.
//! - The derived grant has no mistakes.
//!
//! # Not here
//! What a person makes of it (`consent`). The files beside it (`layout`).

use core::cmp::Ordering;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use synapse_kernel::render;

use super::PackageError;
use super::authority::{Authority, Budget, OneOrMany};
use super::bounds::{Limit, Ports};
use super::entry::{Entry, Host, Place, Tool};

/// The version of the format.
const VERSION: u64 = 1;

/// Bytes of a manifest.
pub(super) const MANIFEST_MAX: usize = 64 << 10;

/// Capabilities, connectors or models of one package: more is nothing that a person reads.
const COUNT_MAX: usize = 64;

/// Characters of a sentence.
const TEXT_MAX: usize = 200;

/// What a package says of itself.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Its name: small letters, digits, `-` and `_`.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Who made it, in the same letters and dots.
    pub publisher: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Under which terms, as SPDX has it.
    pub licence: String,
    /// What it asks for; the derived grant's entries are these, in this order.
    pub capabilities: Vec<Capability>,
    /// Connectors whose verbs it asks for.
    pub connectors: Vec<Need>,
    /// What it wants of a model.
    pub models: Vec<Need>,
    /// Capabilities and what bounds them, as one grant.
    pub request: Authority,
}

/// An entry, and why it is asked for.
#[derive(Clone, Debug)]
pub struct Capability {
    /// The entry.
    pub entry: Entry,
    /// The publisher's words.
    pub reason: String,
}

/// Something besides its grant that a package needs, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Its name.
    pub name: String,
    /// The publisher's words.
    pub reason: String,
}

/// Three numbers, as in 1.2.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version([u32; 3]);

impl Version {
    /// Reads `MAJOR.MINOR.PATCH`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = |part: &str| -> Option<u32> {
            let plain = part == "0" || !part.starts_with('0');
            let digits = part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
            (plain && digits).then(|| part.parse().ok())?
        };
        let parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
        parts.try_into().ok().map(Self)
    }

    /// How it compares with another.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    manifest: u64,
    name: String,
    version: String,
    publisher: String,
    description: String,
    licence: String,
    #[serde(default)]
    capabilities: Vec<Asked>,
    #[serde(default)]
    connectors: Vec<Need>,
    #[serde(default)]
    models: Vec<Need>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    deny_hosts: Vec<String>,
    #[serde(default)]
    compartments: BTreeMap<String, OneOrMany>,
    #[serde(default)]
    budget: Budget,
}

/// A `[[capabilities]]` entry: a reason, and the keys of one kind of a grant's entries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    reason: String,
    primitive: Option<String>,
    path: Option<String>,
    rights: Option<Vec<String>>,
    host: Option<String>,
    ports: Option<Vec<Ports>>,
    methods: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    secrets: Option<Vec<String>>,
    reads: Option<bool>,
    tool: Option<String>,
    effect: Option<String>,
    limits: Option<BTreeMap<String, Limit>>,
    clear: Option<Vec<String>>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn parse(text: &str) -> Result<Self, PackageError> {
        if text.len() > MANIFEST_MAX {
            return Err(wrong("it has more than 64 KiB", "say less"));
        }
        let file: File = toml::from_str(text).map_err(|why| {
            let at = why.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            wrong(
                &format!("line {line}: {}", why.message().replace('\n', ", ")),
                "correct it there",
            )
        })?;
        file.check()?;
        let version = Version::parse(&file.version).ok_or_else(|| {
            wrong(
                &format!("version `{}` is none", file.version),
                "write three numbers, like `version = \"1.2.3\"`",
            )
        })?;
        let mut capabilities = Vec::new();
        for (number, asked) in (1..).zip(file.capabilities) {
            let reason = asked.reason.clone();
            let entry = asked.entry().ok_or_else(|| {
                wrong(
                    &format!("capability {number} is none"),
                    "name one `primitive`, `path` with `rights`, `host` or `tool`, and only keys \
                     that belong to it",
                )
            })?;
            capabilities.push(Capability { entry, reason });
        }
        let request = Authority {
            entries: capabilities.iter().map(|asked| asked.entry.clone()).collect(),
            deny: file.deny,
            deny_hosts: file.deny_hosts,
            compartments: file.compartments.into_iter().map(|(k, v)| (k, v.into())).collect(),
            budget: file.budget,
        };
        Authority::read(&request.text()).map_err(|notice| {
            wrong(
                &format!("what it asks for is no grant: {}; {}", notice.what, notice.why),
                &notice.help,
            )
        })?;
        for entry in &request.entries {
            if let Entry::Tool(tool) = entry
                && let Some((server, _)) = tool.tool.split_once('/')
                && !file.connectors.iter().any(|known| known.name == server)
            {
                return Err(wrong(
                    &format!("tool `{}` is of a connector that it does not name", tool.tool),
                    &format!("add `[[connectors]]` with `name = \"{server}\"` and a reason"),
                ));
            }
        }
        Ok(Self {
            name: file.name,
            version,
            publisher: file.publisher,
            description: file.description,
            licence: file.licence,
            capabilities,
            connectors: file.connectors,
            models: file.models,
            request,
        })
    }
}

impl File {
    fn check(&self) -> Result<(), PackageError> {
        if self.manifest != VERSION {
            return Err(wrong(
                &format!("version {} of the format is unknown", self.manifest),
                "write `manifest = 1`, or use the Synapse it was written for",
            ));
        }
        if !is_name(&self.name) {
            return Err(wrong(
                &format!("`{}` is no name for a package", self.name),
                "use 1 to 40 of `a` to `z`, `0` to `9`, `-` and `_`, a letter first",
            ));
        }
        if !is_publisher(&self.publisher) {
            return Err(wrong(
                &format!("`{}` is no name for a publisher", self.publisher),
                "use 1 to 40 of `a` to `z`, `0` to `9`, `-`, `_` and `.`, a letter first",
            ));
        }
        let counts = [self.capabilities.len(), self.connectors.len(), self.models.len()];
        if counts.iter().any(|count| *count > COUNT_MAX) {
            return Err(wrong(
                &format!(
                    "it has {} capabilities, connectors or models",
                    counts.iter().sum::<usize>()
                ),
                "ask for at most 64 of each, so that a person can read them",
            ));
        }
        let reasons = self.capabilities.iter().map(|asked| ("a reason", &asked.reason));
        let needs = self.connectors.iter().chain(&self.models);
        let needs = needs.flat_map(|need| [("a name", &need.name), ("a reason", &need.reason)]);
        let own = [("the description", &self.description), ("the licence", &self.licence)];
        for (what, text) in own.into_iter().chain(reasons).chain(needs) {
            said(what, text)?;
        }
        let mut seen = BTreeSet::new();
        for need in self.connectors.iter().chain(&self.models) {
            if !seen.insert(&need.name) {
                return Err(wrong("a connector or model stands twice", "remove one"));
            }
        }
        Ok(())
    }
}

impl Asked {
    fn entry(self) -> Option<Entry> {
        let Self {
            reason: _,
            primitive,
            path,
            rights,
            host,
            ports,
            methods,
            paths,
            secrets,
            reads,
            tool,
            effect,
            limits,
            clear,
        } = self;
        let place = path.is_some() || rights.is_some();
        let carries = secrets.is_some() || reads.is_some();
        let reached = ports.is_some() || methods.is_some() || paths.is_some();
        let net = host.is_some() || reached || carries;
        let verb = tool.is_some() || effect.is_some() || limits.is_some();
        let kinds = [primitive.is_some(), place, net, verb];
        if kinds.iter().filter(|kind| **kind).count() != 1 || (clear.is_some() && !net && !verb) {
            return None;
        }
        // What is left out is what a grant file has then.
        let defaults = |kind: &str, body: &str| -> Option<Entry> {
            match kind {
                "hosts" => toml::from_str(body).ok().map(Entry::Host),
                _ => toml::from_str(body).ok().map(Entry::Tool),
            }
        };
        if let Some(name) = primitive {
            return Some(Entry::Primitive(name));
        }
        if place {
            return Some(Entry::Path(Place { path: path?, rights: rights? }));
        }
        if net {
            let Entry::Host(usual) = defaults("hosts", "host = \"\"")? else { return None };
            return Some(Entry::Host(Host {
                host: host?,
                ports: ports.unwrap_or(usual.ports),
                methods: methods.unwrap_or(usual.methods),
                paths: paths.unwrap_or(usual.paths),
                clear: clear.unwrap_or(usual.clear),
                secrets: secrets.unwrap_or(usual.secrets),
                reads: reads.unwrap_or(usual.reads),
            }));
        }
        let Entry::Tool(usual) = defaults("tools", "tool = \"\"")? else { return None };
        Some(Entry::Tool(Tool {
            tool: tool?,
            effect: effect.unwrap_or(usual.effect),
            limits: limits.unwrap_or(usual.limits),
            clear: clear.unwrap_or(usual.clear),
        }))
    }
}

/// Whether a package may be called this.
#[must_use]
pub fn is_name(text: &str) -> bool {
    is_publisher(text) && !text.contains('.')
}

/// Whether a publisher may be called this.
pub(super) fn is_publisher(text: &str) -> bool {
    let letter = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
    };
    text.len() <= 40
        && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && text.bytes().all(letter)
}

/// A sentence for people: one line, that shows all that it holds.
fn said(what: &str, text: &str) -> Result<(), PackageError> {
    if let Some(hidden) = text.chars().find(|c| render::is_hidden(*c) || c.is_control()) {
        return Err(wrong(
            &format!("{what} holds a character that acts or hides, U+{:04X}", u32::from(hidden)),
            "write it without",
        ));
    }
    if text.trim().is_empty() || text.chars().count() > TEXT_MAX {
        return Err(wrong(
            &format!("{what} is empty or has more than {TEXT_MAX} characters"),
            "write a short sentence",
        ));
    }
    Ok(())
}

fn wrong(why: &str, todo: &str) -> PackageError {
    PackageError::new("manifest.toml is no manifest", why, todo)
}

#[cfg(test)]
mod tests {
    use core::cmp::Ordering;

    use super::{Manifest, Version};
    use crate::package::entry::Entry;

    const HEAD: &str = "manifest = 1\nname = \"reader\"\nversion = \"1.2.3\"\npublisher = \"acme\"\n\
                        description = \"Reads\"\nlicence = \"MIT\"\n";

    fn why(text: &str) -> String {
        Manifest::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn capabilities_are_the_entries_of_a_grant() {
        let text = format!(
            "{HEAD}deny = [\"**/.env\"]\n[[capabilities]]\nprimitive = \"fs_read\"\nreason = \"To read.\"\n\
             [[capabilities]]\npath = \"/data/**\"\nrights = [\"read\"]\nreason = \"Notes.\"\n\
             [[capabilities]]\nhost = \"example.org\"\nreason = \"News.\"\n\
             [[capabilities]]\ntool = \"mail/send\"\nreason = \"To answer.\"\n\
             [[connectors]]\nname = \"mail\"\nreason = \"Your mail.\"\n[budget]\ncalls = 9\n"
        );
        let manifest = Manifest::parse(&text).unwrap();
        assert_eq!(manifest.capabilities[1].reason, "Notes.");
        let grant = manifest.request.text();
        for part in [
            "\"fs_read\"", "path = \"/data/**\"", "ports = [443]", "effect = \"commit\"",
            "calls = 9",
        ] {
            assert!(grant.contains(part), "{part}\n{grant}");
        }
        assert!(
            matches!(&manifest.request.entries[2], Entry::Host(host) if host.methods == ["GET"])
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        let asked = |keys: &str| format!("{HEAD}[[capabilities]]\nreason = \"R.\"\n{keys}\n");
        for (text, part) in [
            (HEAD.replace("reader", "Reader"), "no name for a package"),
            (HEAD.replace("reader", "re\u{430}der"), "no name for a package"),
            (HEAD.replace("acme", "../acme"), "no name for a publisher"),
            (HEAD.replace("1.2.3", "1.2"), "is none"),
            (HEAD.replace("manifest = 1", "manifest = 2"), "unknown"),
            (HEAD.replace("licence", "license"), "license"),
            (HEAD.replace("Reads", "Re\\u202eads"), "U+202E"),
            (HEAD.replace("Reads", "Re\\u001b[2Jads"), "U+001B"),
            (HEAD.replace("MIT", "M\\u200bIT"), "U+200B"),
            (HEAD.replace("Reads", ""), "empty"),
            (asked("primitive = \"fs_raed\""), "fs_read"),
            (asked("primitive = \"fs_read\"\npath = \"/a\"\nrights = [\"read\"]"), "capability 1"),
            (asked("path = \"/a\""), "capability 1"),
            (asked("primitive = \"fs_read\"\nclear = []"), "capability 1"),
            (asked("path = \"/**\"\nrights = [\"read\"]"), "over-broad"),
            (asked("path = \"/a/../b\"\nrights = [\"read\"]"), "normal form"),
            (asked("path = \"/a\\u202e\"\nrights = [\"read\"]"), "no file"),
            (asked("tool = \"mail/send\""), "connector"),
            (asked("primitive = \"fs_read\"\nsecret = 1"), "secret"),
        ] {
            assert!(why(&text).contains(part), "{part}\n{}", why(&text));
        }
        assert!(Manifest::parse(HEAD).is_ok());
    }

    #[test]
    fn a_reason_that_hides_and_too_many_capabilities_are_refused() {
        let one = "[[capabilities]]\nprimitive = \"fs_read\"\nreason = \"To \\u2066read.\"\n";
        assert!(why(&format!("{HEAD}{one}")).contains("U+2066"));
        let many = "[[capabilities]]\npath = \"/a\"\nrights = [\"read\"]\nreason = \"R.\"\n";
        assert!(why(&format!("{HEAD}{}", many.repeat(65))).contains("at most 64"));
        assert!(why(&format!("{HEAD}{}", many.repeat(10_000))).contains("64 KiB"));
    }

    #[test]
    fn versions_compare_as_numbers() {
        let order = |a, b| Version::parse(a).unwrap().order(&Version::parse(b).unwrap());
        assert_eq!(order("1.10.0", "1.9.9"), Ordering::Greater);
        assert_eq!(order("0.0.1", "0.0.1"), Ordering::Equal);
        for bad in ["1", "1.2.3.4", "01.2.3", "1.2.3-a", "1.-2.3", "1.2.+3", "9999999999.0.0"] {
            assert_eq!(Version::parse(bad), None, "{bad}");
        }
    }
}
