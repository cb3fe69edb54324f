//! The grant: what a human lets one task do, read from its file.
//!
//! A mistake in a grant is either a hole or a puzzle, so everything that is not
//! understood is refused with its place in the file: unknown keys and names,
//! entries given twice, entries that can never apply. What is legal and yet
//! probably not meant is a warning.
//!
//! # Invariants
//! - I9: a task's [`Scope`] is built here, once, from what the human approved.
//! - Whatever the file does not name is not granted; defaults narrow an entry or
//!   bound a budget, none adds one.
//!
//! # Reading order
//! `keys` (what may stand where) and `shape` (whether it does), then what it means:
//! `paths`, `hosts` with `places`, `tools`, `compartments`; then `within` (a child's
//! grant), `authority` with `entry` (a package's), `advice`, `summary`, `schema`.
//!
//! # Not here
//! Comparing a target with the scope (`synapse_boundary::scope`). Finding and
//! reading the file (the host).

mod advice;
mod authority;
mod compartments;
mod entry;
mod hosts;
pub(crate) mod keys;
pub(crate) mod notes;
mod paths;
mod places;
pub(crate) mod schema;
pub(crate) mod shape;
mod summary;
pub(crate) mod tools;
mod within;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::registry::Primitive;
use synapse_boundary::Scope;
use toml::Spanned;

use crate::manifest::Manifest;
use crate::record::RECORD;
pub(crate) use authority::quoted;
pub use authority::{Authority, Budget};
pub use entry::Entry;
pub(crate) use entry::{Kind, written};
use notes::Notes;
pub use notes::Notice;
pub use schema::schema;
use shape::{Value, get, integer, items, text};
pub(crate) use within::{equated, excess, moved};

/// The version of the format that is read here.
const VERSION: i64 = 1;

/// Guest memory that may be granted at most: 1 GiB.
const MEMORY_MAX: i64 = 1 << 30;

/// Bytes of a summary at most: a run's first record holds it, beside its task line.
pub(crate) const SUMMARY_MAX: usize = RECORD - (10 << 10);

/// What one task may do.
#[derive(Debug, Default)]
pub struct Grant {
    /// The granted primitives: bit n for the primitive with id n.
    pub granted: u32,
    /// The targets that they may name.
    pub scope: Scope,
    /// Names of the compartments, from bit [`synapse_boundary::Secrecy::NAMED`] on.
    pub compartments: Vec<String>,
    /// Calls of a task.
    pub calls: u64,
    /// Seconds that its guest may compute.
    pub seconds: u64,
    /// Bytes of its guest's memory.
    pub memory: usize,
    summary: String,
    warnings: Vec<Notice>,
    parts: Parts,
}

impl Grant {
    /// Reads a grant file.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Self, Notice> {
        Self::parse_with(text, &[])
    }

    /// Reads a grant file beside the manifests of the connectors that it may name.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse_with(text: &str, manifests: &[Manifest]) -> Result<Self, Notice> {
        Self::check_with(text, manifests)
            .map_err(|mistakes| mistakes.into_iter().next().unwrap_or_default())
    }

    /// Reads a grant file to its end.
    ///
    /// # Errors
    /// All mistakes, with their places, in the order of the file.
    pub fn check(text: &str) -> Result<Self, Vec<Notice>> {
        Self::check_with(text, &[])
    }

    /// Reads a grant file to its end, beside manifests.
    ///
    /// # Errors
    /// All mistakes, with their places, in the order of the file.
    pub fn check_with(text: &str, manifests: &[Manifest]) -> Result<Self, Vec<Notice>> {
        let mut notes = Notes::new("grant");
        let grant = document(text, manifests, &mut notes);
        let warnings = notes.finish(text)?;
        Ok(Self { warnings, ..grant })
    }

    /// What a turn's input says of it, as canonical JSON.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The secrets that its entries for hosts name.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.hosts.iter().flat_map(|entry| &entry.secrets).map(|name| &**name)
    }

    /// What is legal and probably not meant, in the order of the file.
    #[must_use]
    pub fn warnings(&self) -> &[Notice] {
        &self.warnings
    }
}

fn document(text: &str, manifests: &[Manifest], notes: &mut Notes) -> Grant {
    let Some(document) = shape::document(text, notes) else { return Grant::default() };
    let parts = Parts::read(&document, manifests, notes);
    if notes.mistakes() > 0 {
        // Held against each other, entries of which some were lost would look wrong.
        return Grant::default();
    }
    let mut known = compartments::Names::default();
    compartments::name(&parts.named, &mut known, notes);
    hosts::name(&parts.hosts, &mut known, notes);
    tools::name(&parts.tools, &mut known, notes);
    let grant = parts.compile(known, notes);
    let Parts { primitives, paths, hosts, tools, .. } = &grant.parts;
    advice::warn(primitives, paths, hosts, tools, notes);
    if grant.summary.len() > SUMMARY_MAX {
        notes.mistake(
            &(0..text.len()),
            "the grant is too long",
            format!(
                "its entries take {} bytes of a run's first record, and {SUMMARY_MAX} are there",
                grant.summary.len()
            ),
            "grant folders and patterns in place of single files and hosts",
        );
    }
    grant
}

/// What stands in a grant, each part by itself.
#[derive(Clone, Debug, Default)]
struct Parts {
    primitives: Vec<advice::Granted>,
    denied: paths::Denied,
    denied_hosts: Vec<places::Pattern>,
    paths: Vec<paths::Entry>,
    hosts: Vec<hosts::Entry>,
    tools: Vec<tools::Entry>,
    named: Vec<compartments::Entry>,
    budget: Bounds,
}

/// How much may be used, as far as it is said.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    calls: Option<u64>,
    seconds: Option<u64>,
    memory: Option<u64>,
}

impl Parts {
    /// Reads a document; what is not as it should be is noted, and the rest read to
    /// find more of it.
    fn read(document: &Value<'_>, manifests: &[Manifest], notes: &mut Notes) -> Self {
        let sound = shape::check_file(&keys::FILE, document, notes);
        let part = |name: &str| sound.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let budget = |key: &str| {
            let given = part("budget").and_then(|budget| integer(get(budget, key)?));
            given.and_then(|given| u64::try_from(given).ok())
        };
        Self {
            primitives: part("primitives").map_or_else(Vec::new, primitives),
            denied: part("deny").map(|value| paths::deny(value, notes)).unwrap_or_default(),
            denied_hosts: part("deny_hosts").map_or_else(Vec::new, |it| hosts::deny(it, notes)),
            paths: part("paths").map_or_else(Vec::new, |value| paths::read(value, notes)),
            hosts: part("hosts").map_or_else(Vec::new, |value| hosts::read(value, notes)),
            tools: part("tools")
                .map_or_else(Vec::new, |value| tools::read(value, manifests, notes)),
            named: part("compartments")
                .map_or_else(Vec::new, |value| compartments::read(value, notes)),
            budget: Bounds {
                calls: budget("calls"),
                seconds: budget("seconds"),
                memory: budget("memory"),
            },
        }
    }

    /// Makes a grant of it, with compartments by these names.
    fn compile(self, known: compartments::Names, notes: &mut Notes) -> Grant {
        let Self { denied, denied_hosts, paths, hosts, tools, named, .. } = &self;
        let mut scope = Scope::default();
        paths::compile(paths, denied, &mut scope, notes);
        compartments::compile(named, &known, &mut scope);
        hosts::compile(hosts, denied_hosts.clone(), &known, &mut scope, notes);
        tools::compile(tools, &known, &mut scope, notes);
        let bits = self.primitives.iter().fold(0, |bits, (_, granted)| bits | 1 << granted.id());
        let Bounds { calls, seconds, memory } = self.budget;
        let usual = Budget::default();
        Grant {
            granted: bits,
            scope,
            calls: calls.unwrap_or(usual.calls),
            seconds: seconds.unwrap_or(usual.seconds),
            memory: usize::try_from(memory.unwrap_or(usual.memory)).unwrap_or(usize::MAX),
            summary: summary::summary(bits, paths, hosts, tools),
            compartments: known.finish(),
            warnings: Vec::new(),
            parts: self,
        }
    }
}

fn primitives(value: &Value<'_>) -> Vec<advice::Granted> {
    let named = |item| Some((Spanned::span(item), Primitive::from_name(text(item))?));
    items(value).iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests;
