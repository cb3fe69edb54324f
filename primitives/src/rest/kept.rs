//! Labels between runs: out of the store when a run begins, into it when it ends.
//!
//! While a run goes on its changes are in the lines of its journal, each on the disk
//! before its change. A run that did not come to its end is named in the store, and
//! the next one in one of its folders reads its journal: what it may have changed
//! gets what stood there and what was to stand there, both.
//!
//! # Invariants
//! - I15: no label is lost with a process. Where a journal cannot be read, all in
//!   the folders of its run carries every compartment.
//! - Keys are paths of the host, so that a run in a folder finds what another wrote
//!   in one inside or around it.
//!
//! # Not here
//! Who may work in a folder meanwhile (the board's locks).

use alloc::{
    borrow::ToOwned,
    format,
    string::{String, ToString},
    vec::Vec,
};

use serde_json::Value;

use super::{Index, Names, Print, Rest, format};
use crate::{
    journal::{Folder, Journal, Operation, State},
    mounts::below,
    store::{Change, Store, StoreError},
};

/// Before the path of a file.
const FILE: &str = "file:";
/// Before the path of a folder, for what holds at it and below.
const BELOW: &str = "below:";
/// Before the name of a run that has begun and not ended.
const RUN: &str = "run:";
/// Before the identity of a folder, for where it stood.
const FOLDER: &str = "folder:";

/// A run that begins, or that an undo takes back.
#[derive(Debug)]
pub struct Begun<'a> {
    /// Its name.
    pub run: &'a str,
    /// Its folders.
    pub folders: &'a [Folder],
    /// Those that it may change.
    pub writable: &'a [Folder],
}

/// Begins a run: what is known of its folders. `journal` reads that of a run that
/// did not come to its end.
///
/// # Errors
/// The store's own; nothing has begun then.
pub fn begin(
    store: &mut impl Store,
    begun: &Begun<'_>,
    journal: impl Fn(&str) -> Option<Journal>,
) -> Result<Index, StoreError> {
    for (key, value) in store.range(RUN)? {
        let run = key.strip_prefix(RUN).unwrap_or_default();
        let folders = parse(&value).and_then(|value| folders(&value));
        let folders = folders.ok_or_else(|| StoreError::Damaged(key.clone()))?;
        let shared = |one: &Folder| begun.folders.iter().any(|other| overlap(one, other));
        if run != begun.run && folders.iter().any(shared) {
            recover(store, run, &folders, journal(run).as_ref())?;
        }
    }
    let mut changes = Vec::new();
    for folder in begun.folders {
        follow(store, folder, &mut changes)?;
    }
    if !begun.writable.is_empty() {
        changes.push((
            format!("{RUN}{}", begun.run),
            Some(text(&begun.writable.iter().map(Folder::value).collect())),
        ));
    }
    if !changes.is_empty() {
        store.commit(&changes)?;
    }
    look(store, begun.folders)
}

/// Ends a run: keeps what it changed.
///
/// # Errors
/// The store's own. The run counts as one that did not end then.
pub fn end(
    store: &mut impl Store,
    run: &str,
    folders: &[Folder],
    index: &Index,
    now: u64,
) -> Result<(), StoreError> {
    let mut changes = changes(folders, index, now);
    changes.push((format!("{RUN}{run}"), None));
    store.commit(&changes)
}

/// Keeps what a run did that did not end.
///
/// # Errors
/// The store's own.
pub fn settle(
    store: &mut impl Store,
    run: &str,
    journal: Option<&Journal>,
) -> Result<(), StoreError> {
    let key = format!("{RUN}{run}");
    let Some(value) = store.get(&key)? else { return Ok(()) };
    let folders = parse(&value).and_then(|value| folders(&value));
    recover(store, run, &folders.ok_or(StoreError::Damaged(key))?, journal)
}

/// Says of a path of the host, and of all below it, that it may hold anything.
///
/// # Errors
/// The store's own.
pub fn lose(store: &mut impl Store, host: &str) -> Result<(), StoreError> {
    store.commit(&[(format!("{BELOW}{host}"), Some(text(&format::names(&Names::every()))))])
}

/// Forgets what was taken away before a time, in seconds since 1970; how much.
///
/// # Errors
/// The store's own.
pub fn prune(store: &mut impl Store, before: u64) -> Result<usize, StoreError> {
    let old = |value: &Value| {
        let at = value.get("at").and_then(Value::as_u64);
        value.get("gone") == Some(&Value::Bool(true)) && at.is_some_and(|at| at < before)
    };
    let kept = store.range(FILE)?.into_iter();
    let gone = kept.filter(|(_, value)| parse(value).as_ref().is_some_and(old));
    let changes: Vec<Change> = gone.map(|(key, _)| (key, None)).collect();
    store.commit(&changes)?;
    Ok(changes.len())
}

/// What is kept of these folders now, without what runs do that go on.
///
/// # Errors
/// The store's own.
pub fn look(store: &impl Store, folders: &[Folder]) -> Result<Index, StoreError> {
    let mut index = Index::default();
    for folder in folders {
        let host = plain(&folder.host);
        let guest = |path: &str| {
            below(host, path).map(|inner| format!("{}{inner}", slashed(&folder.guest, inner)))
        };
        let own =
            store.get(&format!("{FILE}{host}"))?.map(|value| (format!("{FILE}{host}"), value));
        for (key, value) in own.into_iter().chain(store.range(&format!("{FILE}{host}/"))?) {
            let path = key.strip_prefix(FILE).and_then(guest);
            let entry =
                parse(&value).and_then(|value| format::parse_entry(&value, folder.identity.device));
            let (path, entry) = path.zip(entry).ok_or(StoreError::Damaged(key))?;
            index.recall(path, entry);
        }
        for (key, value) in store.range(BELOW)? {
            let path = key.strip_prefix(BELOW).unwrap_or_default();
            let names = parse(&value).and_then(|value| format::parse_names(&value));
            let names = names.ok_or_else(|| StoreError::Damaged(key.clone()))?;
            match guest(path) {
                Some(path) => index.recall_below(path, &names),
                None if below(path, host).is_some() => {
                    index.recall_below(folder.guest.clone(), &names);
                }
                None => {}
            }
        }
    }
    Ok(index)
}

fn changes(folders: &[Folder], index: &Index, now: u64) -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, entry, names) in index.changes() {
        let place = |folder: &Folder| {
            let inner = below(&folder.guest, path)?;
            let host = plain(&folder.host);
            Some((format!("{}{inner}", slashed(host, inner)), folder.identity.device))
        };
        let Some((host, device)) = folders.iter().find_map(place) else { continue };
        let entry = entry.map(|entry| {
            let mut value = format::entry(entry, device);
            if let Some(value) = value.as_object_mut() {
                value.insert("at".to_owned(), now.into());
            }
            text(&value)
        });
        changes.push((format!("{FILE}{host}"), entry));
        if let Some(names) = names {
            changes.push((format!("{BELOW}{host}"), Some(text(&format::names(names)))));
        }
    }
    changes
}

/// What a run may have done whose journal this is.
fn recover(
    store: &mut impl Store,
    run: &str,
    folders: &[Folder],
    journal: Option<&Journal>,
) -> Result<(), StoreError> {
    let mut index = look(store, folders)?;
    match journal {
        Some(journal) => suspect(&mut index, journal),
        None => {
            for folder in folders {
                index.lower(&folder.guest, &Names::every());
            }
        }
    }
    let mut changes = changes(folders, &index, 0);
    changes.push((format!("{RUN}{run}"), None));
    store.commit(&changes)
}

fn suspect(index: &mut Index, journal: &Journal) {
    for entry in &journal.entries {
        let unsaid = || {
            let mut rest = Rest::outside();
            rest.names.join(&Names::every());
            rest
        };
        let rest = entry.stamp.clone().unwrap_or_else(unsaid);
        let print = |state: &State| Print {
            identity: (state.identity.device, state.identity.inode),
            size: state.size,
            modified: state.modified,
            changed: None,
        };
        match (entry.operation, &entry.to) {
            (Operation::Make, _) => {
                for path in &entry.made {
                    index.suspect(path, &rest, None);
                }
            }
            (Operation::Move, Some(to)) => {
                index.suspect_move(&entry.path, to, &rest, entry.before.as_ref().map(print));
            }
            (Operation::Delete, _) => index.suspect_removal(&entry.path, &rest),
            (
                Operation::Create
                | Operation::Replace
                | Operation::Append
                | Operation::Edit
                | Operation::Move,
                _,
            ) => index.suspect(&entry.path, &rest, entry.after.as_ref().map(print)),
        }
    }
}

/// Where a folder stood before it was moved, what is kept of it is copied from.
fn follow(
    store: &impl Store,
    folder: &Folder,
    changes: &mut Vec<Change>,
) -> Result<(), StoreError> {
    let key = format!("{FOLDER}{}:{}", folder.identity.device, folder.identity.inode);
    let here = plain(&folder.host);
    let stood = store.get(&key)?.map(String::from_utf8);
    let stood = stood.transpose().map_err(|_| StoreError::Damaged(key.clone()))?;
    if stood.as_deref() == Some(here) {
        return Ok(());
    }
    if let Some(stood) = stood {
        for kind in [FILE, BELOW] {
            let own = store.get(&format!("{kind}{stood}"))?;
            let own = own.map(|value| (format!("{kind}{stood}"), value));
            for (key, value) in own.into_iter().chain(store.range(&format!("{kind}{stood}/"))?) {
                let inner = key.get(kind.len().saturating_add(stood.len())..).unwrap_or_default();
                changes.push((format!("{kind}{here}{inner}"), Some(value)));
            }
        }
    }
    changes.push((key, Some(here.as_bytes().to_vec())));
    Ok(())
}

fn overlap(one: &Folder, other: &Folder) -> bool {
    let (a, b) = (plain(&one.host), plain(&other.host));
    one.identity == other.identity || below(a, b).is_some() || below(b, a).is_some()
}

fn folders(value: &Value) -> Option<Vec<Folder>> {
    value.as_array()?.iter().map(Folder::parse).collect()
}

/// A path without a slash at its end: of the root, nothing.
fn plain(path: &str) -> &str {
    path.trim_end_matches('/')
}

/// A root before what lies below it.
fn slashed(root: &str, inner: &str) -> String {
    let slash = if inner.is_empty() { "" } else { "/" };
    format!("{root}{slash}")
}

fn parse(value: &[u8]) -> Option<Value> {
    serde_json::from_slice(value).ok()
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
