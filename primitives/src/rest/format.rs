//! Labels at rest as JSON: in the journal's lines and in the store.
//!
//! The format is `docs/abi.md`, "Labels at rest".
//!
//! # Invariants
//! - What this version did not write is not read.
//!
//! # Not here
//! Which file holds it (`journal`, `store`).

use alloc::vec::Vec;

use serde_json::{Value, json};
use synapse_boundary::Integrity;

use super::{Creator, Entry, Names, Print, Rest};
use crate::hex::{hex, unhex};

const INTEGRITIES: [(Integrity, &str); 3] =
    [(Integrity::System, "system"), (Integrity::User, "user"), (Integrity::Ingested, "ingested")];

/// The word of an integrity.
#[must_use]
pub fn word(integrity: Integrity) -> &'static str {
    INTEGRITIES.iter().find(|(known, _)| *known == integrity).map_or("", |(_, word)| word)
}

/// Names as a list.
#[must_use]
pub fn names(names: &Names) -> Value {
    names.iter().collect::<Vec<_>>().into()
}

/// Reads what [`names`] wrote.
#[must_use]
pub fn parse_names(value: &Value) -> Option<Names> {
    let mut names = Names::NONE;
    for name in value.as_array()? {
        names.add(name.as_str()?);
    }
    Some(names)
}

/// A label at rest.
#[must_use]
pub fn rest(rest: &Rest) -> Value {
    json!({ "integrity": word(rest.integrity), "compartments": names(&rest.names) })
}

/// Reads what [`rest`] wrote.
#[must_use]
pub fn parse_rest(value: &Value) -> Option<Rest> {
    let word = value.get("integrity")?.as_str()?;
    let integrity = INTEGRITIES.iter().find(|(_, known)| *known == word)?.0;
    Some(Rest { integrity, names: parse_names(value.get("compartments")?)? })
}

/// What is kept for a path whose folder is on this file system: the number of a
/// file system may be another one after a restart, so that it is written only
/// where it differs.
#[must_use]
pub fn entry(entry: &Entry, device: u64) -> Value {
    let print = &entry.print;
    json!({
        "device": Some(print.identity.0).filter(|own| *own != device),
        "inode": print.identity.1,
        "size": print.size,
        "modified": print.modified,
        "changed": print.changed,
        "content": rest(&entry.content),
        "name": rest(&entry.name),
        "run": entry.creator.map(|creator| hex(&creator.run)),
        "task": entry.creator.map(|creator| creator.task),
        "behind": names(&entry.behind),
        "gone": entry.gone,
    })
}

/// Reads what [`entry`] wrote.
#[must_use]
pub fn parse_entry(value: &Value, device: u64) -> Option<Entry> {
    let print = Print {
        identity: (value.get("device")?.as_u64().unwrap_or(device), value.get("inode")?.as_u64()?),
        size: value.get("size")?.as_u64()?,
        modified: time(value.get("modified")?)?,
        changed: time(value.get("changed")?),
    };
    let run = value.get("run")?.as_str().and_then(unhex);
    let task = value.get("task")?.as_u64();
    Some(Entry {
        print,
        content: parse_rest(value.get("content")?)?,
        name: parse_rest(value.get("name")?)?,
        creator: run.zip(task).map(|(run, task)| Creator { run, task }),
        behind: parse_names(value.get("behind")?)?,
        gone: value.get("gone")?.as_bool()?,
    })
}

fn time(value: &Value) -> Option<(i64, u64)> {
    let parts = value.as_array()?;
    Some((parts.first()?.as_i64()?, parts.get(1)?.as_u64()?))
}
