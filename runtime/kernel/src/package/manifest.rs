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

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use super::PackageError;
use crate::grant::keys::{self, Key, Shape, Unless, key};
use crate::grant::notes::Notes;
use crate::grant::shape::{self, Value, get, integer, items, text};
use crate::grant::{Authority, Budget, Entry, Kind};
use crate::render;

/// The version of the format.
const VERSION: i64 = 1;

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
#[derive(Clone, Debug)]
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

/// The whole file.
static FILE: [Key; 13] = [
    key("manifest", Shape::Integer(0, i64::MAX), Unless::Needed("manifest = 1"), ""),
    key("name", Shape::Text, Unless::Needed("name = \"reader\""), ""),
    key("version", Shape::Text, Unless::Needed("version = \"1.2.3\""), ""),
    key("publisher", Shape::Text, Unless::Needed("publisher = \"acme\""), ""),
    key("description", Shape::Text, Unless::Needed("description = \"Reads notes.\""), ""),
    key("licence", Shape::Text, Unless::Needed("licence = \"MIT\""), ""),
    key("capabilities", Shape::Entries(&CAPABILITY), Unless::Nothing, ""),
    key("connectors", Shape::Entries(&NEED), Unless::Nothing, ""),
    key("models", Shape::Entries(&NEED), Unless::Nothing, ""),
    key("deny", keys::TEXTS, Unless::Nothing, ""),
    key("deny_hosts", keys::TEXTS, Unless::Nothing, ""),
    key("compartments", keys::COMPARTMENTS, Unless::Nothing, ""),
    key("budget", keys::USE, Unless::Nothing, ""),
];

/// A `[[capabilities]]` entry: a reason, and the keys of one kind of a grant's entries.
static CAPABILITY: [Key; 14] = [
    REASON,
    key("primitive", keys::PRIMITIVE, Unless::Nothing, ""),
    key("path", Shape::Text, Unless::Nothing, ""),
    key("rights", keys::RIGHTS, Unless::Nothing, ""),
    key("host", Shape::Text, Unless::Nothing, ""),
    key("ports", keys::PORTS, Unless::Nothing, ""),
    key("methods", keys::METHODS, Unless::Nothing, ""),
    key("paths", Shape::Filled(&Shape::Text), Unless::Nothing, ""),
    key("secrets", keys::TEXTS, Unless::Nothing, ""),
    key("reads", Shape::Flag, Unless::Nothing, ""),
    key("tool", Shape::Text, Unless::Nothing, ""),
    key("effect", keys::EFFECT, Unless::Nothing, ""),
    key("limits", keys::LIMITS, Unless::Nothing, ""),
    key("clear", keys::TEXTS, Unless::Nothing, ""),
];

static NEED: [Key; 2] = [key("name", Shape::Text, Unless::Needed("name = \"mail\""), ""), REASON];

const REASON: Key =
    key("reason", Shape::Text, Unless::Needed("reason = \"To read your notes.\""), "");

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn parse(source: &str) -> Result<Self, PackageError> {
        if source.len() > MANIFEST_MAX {
            return Err(wrong("it has more than 64 KiB", "say less"));
        }
        let mut notes = Notes::new("manifest");
        let document = shape::document(source, &mut notes);
        let whole = document.filter(|document| {
            shape::sound(&Shape::Table(&FILE), document, "the file", &mut notes)
        });
        let Some(document) = whole else { return Err(first(notes, source)) };
        let word = |key| get(&document, key).map(text).unwrap_or_default();
        let entries = |key| get(&document, key).map(items).unwrap_or_default();
        let needs = |key| -> Vec<Need> {
            let said = |value, key| get(value, key).map(text).unwrap_or_default().to_owned();
            let need = |value| Need { name: said(value, "name"), reason: said(value, "reason") };
            entries(key).iter().map(need).collect()
        };
        check_version(get(&document, "manifest").and_then(integer).unwrap_or_default())?;
        check_names(word("name"), word("publisher"))?;
        let asked = entries("capabilities");
        let (connectors, models) = (needs("connectors"), needs("models"));
        check_counts([asked.len(), connectors.len(), models.len()])?;
        said("the description", word("description"))?;
        said("the licence", word("licence"))?;
        for capability in asked {
            said("a reason", get(capability, "reason").map(text).unwrap_or_default())?;
        }
        check_needs(&connectors, &models)?;
        let version = Version::parse(word("version")).ok_or_else(|| {
            wrong(
                &format!("version `{}` is none", word("version")),
                "write three numbers, like `version = \"1.2.3\"`",
            )
        })?;
        let mut capabilities = Vec::new();
        for (number, capability) in (1..).zip(asked) {
            let one = is_one(capability).then(|| Entry::read(capability, &mut notes)).flatten();
            if notes.mistakes() > 0 {
                return Err(first(notes, source));
            }
            let entry = one.ok_or_else(|| {
                wrong(
                    &format!("capability {number} is none"),
                    "name one `primitive`, `path` with `rights`, `host` or `tool`, and only keys \
                     that belong to it",
                )
            })?;
            let reason = get(capability, "reason").map(text).unwrap_or_default().to_owned();
            capabilities.push(Capability { entry, reason });
        }
        let usual = Budget::default();
        let most = |key, usual| {
            let said = get(&document, "budget").and_then(|budget| integer(get(budget, key)?));
            said.and_then(|most| u64::try_from(most).ok()).unwrap_or(usual)
        };
        let request = Authority {
            entries: capabilities.iter().map(|asked| asked.entry.clone()).collect(),
            budget: Budget {
                calls: most("calls", usual.calls),
                seconds: most("seconds", usual.seconds),
                memory: most("memory", usual.memory),
            },
            ..Authority::default()
        };
        let request = request.closed_as(&document);
        Authority::read(&request.text()).map_err(|notice| {
            wrong(
                &format!("what it asks for is no grant: {}; {}", notice.what, notice.why),
                &notice.help,
            )
        })?;
        check_connectors(&request, &connectors)?;
        Ok(Self {
            name: word("name").to_owned(),
            version,
            publisher: word("publisher").to_owned(),
            description: word("description").to_owned(),
            licence: word("licence").to_owned(),
            capabilities,
            connectors,
            models,
            request,
        })
    }
}

/// The first mistake that was noted.
fn first(notes: Notes, source: &str) -> PackageError {
    let notice = notes.finish(source).err().and_then(|all| all.into_iter().next());
    let notice = notice.unwrap_or_default();
    wrong(&format!("line {}: {}; {}", notice.line, notice.what, notice.why), &notice.help)
}

fn check_version(version: i64) -> Result<(), PackageError> {
    if version == VERSION {
        return Ok(());
    }
    Err(wrong(
        &format!("version {version} of the format is unknown"),
        "write `manifest = 1`, or use the Synapse it was written for",
    ))
}

fn check_names(name: &str, publisher: &str) -> Result<(), PackageError> {
    if !is_name(name) {
        return Err(wrong(
            &format!("`{name}` is no name for a package"),
            "use 1 to 40 of `a` to `z`, `0` to `9`, `-` and `_`, a letter first",
        ));
    }
    if !is_publisher(publisher) {
        return Err(wrong(
            &format!("`{publisher}` is no name for a publisher"),
            "use 1 to 40 of `a` to `z`, `0` to `9`, `-`, `_` and `.`, a letter first",
        ));
    }
    Ok(())
}

fn check_counts(counts: [usize; 3]) -> Result<(), PackageError> {
    if counts.iter().all(|count| *count <= COUNT_MAX) {
        return Ok(());
    }
    Err(wrong(
        &format!("it has {} capabilities, connectors or models", counts.iter().sum::<usize>()),
        "ask for at most 64 of each, so that a person can read them",
    ))
}

fn check_needs(connectors: &[Need], models: &[Need]) -> Result<(), PackageError> {
    let mut seen = BTreeSet::new();
    for need in connectors.iter().chain(models) {
        said("a name", &need.name)?;
        said("a reason", &need.reason)?;
        if !seen.insert(&need.name) {
            return Err(wrong("a connector or model stands twice", "remove one"));
        }
    }
    Ok(())
}

/// Whether each verb that is asked for is of a connector that is named.
fn check_connectors(request: &Authority, connectors: &[Need]) -> Result<(), PackageError> {
    for entry in &request.entries {
        if let Kind::Tool(tool) = &entry.0
            && let Some((server, _)) = tool.tool.split_once('/')
            && !connectors.iter().any(|known| known.name == server)
        {
            return Err(wrong(
                &format!("tool `{}` is of a connector that it does not name", tool.tool),
                &format!("add `[[connectors]]` with `name = \"{server}\"` and a reason"),
            ));
        }
    }
    Ok(())
}

/// The keys of a host.
const HOST: [&str; 6] = ["host", "ports", "methods", "paths", "secrets", "reads"];

/// Whether a capability has what one kind of entry needs, and nothing of another.
fn is_one(capability: &Value<'_>) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| get(capability, key).is_some());
    let kinds = [
        (has(&["primitive"]), has(&["primitive"])),
        (has(&["path", "rights"]), has(&["path"]) && has(&["rights"])),
        (has(&HOST), has(&["host"])),
        (has(&["tool", "effect", "limits"]), has(&["tool"])),
    ];
    let [primitive, place, ..] = kinds.map(|(some, _)| some);
    kinds.iter().filter(|(some, _)| *some).count() == 1
        && kinds.iter().all(|(some, whole)| some == whole)
        && !(has(&["clear"]) && (primitive || place))
}

/// Whether a package may be called this.
#[must_use]
pub fn is_name(text: &str) -> bool {
    is_publisher(text) && !text.contains('.')
}

/// Whether a publisher may be called this.
#[must_use]
pub fn is_publisher(text: &str) -> bool {
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
    use alloc::string::{String, ToString as _};

    use super::*;

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
            matches!(&manifest.request.entries[2].0, Kind::Host(host) if host.methods() == ["GET"])
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
            (HEAD.replace("licence", "license"), "`licence` is missing"),
            (format!("{HEAD}license = \"MIT\"\n"), "`license`"),
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
