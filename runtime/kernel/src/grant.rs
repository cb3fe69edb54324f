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
//! `paths`, `hosts` with `places`, `tools`, `compartments`; then `advice`, `summary`, `schema`.
//!
//! # Not here
//! Comparing a target with the scope (`synapse_boundary::scope`). Attenuating a
//! grant for a child. Finding and reading the file (the host).

mod advice;
mod compartments;
mod hosts;
mod keys;
mod notes;
mod paths;
mod places;
mod schema;
mod shape;
mod summary;
mod tools;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::registry::Primitive;
use synapse_boundary::Scope;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::record::RECORD;
use notes::Notes;
pub use notes::Notice;
pub use schema::schema;
use shape::{Value, get, integer, items, text};

/// The version of the format that is read here.
const VERSION: i64 = 1;

/// Guest memory that may be granted at most: 1 GiB.
const MEMORY_MAX: i64 = 1 << 30;

/// Bytes of a summary at most: a run's first record holds it, beside its task line.
pub(crate) const SUMMARY_MAX: usize = RECORD - (9 << 10);

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
}

impl Grant {
    /// Reads a grant file.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Self, Notice> {
        Self::check(text).map_err(|mistakes| mistakes.into_iter().next().unwrap_or_default())
    }

    /// Reads a grant file to its end.
    ///
    /// # Errors
    /// All mistakes, with their places, in the order of the file.
    pub fn check(text: &str) -> Result<Self, Vec<Notice>> {
        let mut notes = Notes::default();
        let grant = document(text, &mut notes);
        let warnings = notes.finish(text)?;
        Ok(Self { warnings, ..grant })
    }

    /// What a turn's input says of it, as canonical JSON.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// What is legal and probably not meant, in the order of the file.
    #[must_use]
    pub fn warnings(&self) -> &[Notice] {
        &self.warnings
    }
}

fn document(text: &str, notes: &mut Notes) -> Grant {
    let document = match DeTable::parse(text) {
        Ok(document) => Spanned::new(document.span(), DeValue::Table(document.into_inner())),
        Err(error) => {
            let why = error.message().replace('\n', ", ");
            let at = error.span().unwrap_or(text.len()..text.len());
            notes.mistake(&at, "the file is not TOML", notes::harmless(&why), "correct it here");
            return Grant::default();
        }
    };
    let sound = shape::check_file(&document, notes);
    // What is not as it should be was noted; the rest is read to find more of it.
    let part = |name: &str| sound.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let granted = part("primitives").map_or_else(Vec::new, primitives);
    let denied = part("deny").map(|value| paths::deny(value, notes)).unwrap_or_default();
    let denied_hosts = part("deny_hosts").map_or_else(Vec::new, |value| hosts::deny(value, notes));
    let paths = part("paths").map_or_else(Vec::new, |value| paths::read(value, notes));
    let hosts = part("hosts").map_or_else(Vec::new, |value| hosts::read(value, notes));
    let tools = part("tools").map_or_else(Vec::new, |value| tools::read(value, notes));
    let named =
        part("compartments").map_or_else(Vec::new, |value| compartments::read(value, notes));

    if notes.mistakes() > 0 {
        // Held against each other, entries of which some were lost would look wrong.
        return Grant::default();
    }
    let mut known = compartments::Names::default();
    compartments::name(&named, &mut known, notes);
    hosts::name(&hosts, &mut known, notes);
    tools::name(&tools, &mut known, notes);

    let mut scope = Scope::default();
    paths::compile(&paths, &denied, &mut scope, notes);
    compartments::compile(&named, &known, &mut scope);
    hosts::compile(&hosts, denied_hosts, &known, &mut scope, notes);
    tools::compile(&tools, &known, &mut scope, notes);
    advice::warn(&granted, &paths, &hosts, &tools, notes);

    let budget = |key: &str, default: u64| {
        let given = part("budget").and_then(|budget| integer(get(budget, key)?));
        given.and_then(|given| u64::try_from(given).ok()).unwrap_or(default)
    };
    let bits = granted.iter().fold(0, |bits, (_, primitive)| bits | 1 << primitive.id());
    let summary = summary::summary(bits, &paths, &hosts, &tools);
    if summary.len() > SUMMARY_MAX {
        notes.mistake(
            &(0..text.len()),
            "the grant is too long",
            format!(
                "its entries take {} bytes of a run's first record, and {SUMMARY_MAX} are there",
                summary.len()
            ),
            "grant folders and patterns in place of single files and hosts",
        );
    }
    Grant {
        granted: bits,
        scope,
        calls: budget("calls", 100_000),
        seconds: budget("seconds", 300),
        memory: usize::try_from(budget("memory", 256 << 20)).unwrap_or(usize::MAX),
        summary,
        compartments: known.finish(),
        warnings: Vec::new(),
    }
}

fn primitives(value: &Value<'_>) -> Vec<advice::Granted> {
    let named = |item| Some((Spanned::span(item), Primitive::from_name(text(item))?));
    items(value).iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests;
