//! What is kept of every path, and what it says of what stands there now.
//!
//! # Invariants
//! - A label is entered before its change is made, joined with what stood there;
//!   only what is looked at after the change is known to be the new thing alone.
//! - What is found under another name than it is kept under keeps its compartments.
//!
//! # Not here
//! When to call what (`disk`, `memory`).

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    vec::Vec,
};
use synapse_boundary::Integrity;

use super::{Creator, Entry, Names, Print, Rest, Seen, Stamp};
use crate::platform::Kind;

/// What a change does to the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The name was free.
    Create,
    /// None of the old ones stay.
    Replace,
    /// Some of the old ones stay.
    Keep,
}

/// The labels of the files under some mounts, by guest path.
#[derive(Debug, Default)]
pub struct Index {
    entries: BTreeMap<String, Entry>,
    /// Where the thing with this identity is kept under.
    things: BTreeMap<(u64, u64), String>,
    /// Compartments of a path and of all that is below it.
    below: BTreeMap<String, Names>,
    /// Paths whose entry or `below` changed.
    touched: BTreeSet<String>,
}

/// What a move entered, to be taken back where it fails.
#[derive(Debug)]
pub struct Moving {
    entered: Vec<(String, Option<Entry>)>,
    below: Vec<(String, Option<Names>)>,
}

impl Index {
    /// The label of the bytes that stand under a path. What is seen is looked at
    /// after they were read.
    #[must_use]
    pub fn content(&self, path: &str, seen: &Seen) -> Rest {
        self.read(path, seen, |entry| entry.content.clone())
    }

    /// The label of a path's name alone.
    #[must_use]
    pub fn name(&self, path: &str, seen: &Seen) -> Rest {
        self.read(path, seen, |entry| entry.name.clone())
    }

    /// The label of a path's name, size and times together.
    #[must_use]
    pub fn shown(&self, path: &str, seen: &Seen) -> Rest {
        self.read(path, seen, |entry| {
            let mut rest = entry.content.clone();
            rest.join(&entry.name);
            rest
        })
    }

    /// Whether this task made what is kept under a path, and every byte of it and of
    /// all that is kept below it since.
    #[must_use]
    pub fn is_own(&self, path: &str, creator: Creator) -> bool {
        let own = |entry: &Entry| entry.creator == Some(creator);
        self.entries.get(path).is_some_and(|entry| !entry.gone && own(entry))
            && self.inside(path).all(|(_, entry)| entry.gone || own(entry))
    }

    /// Whether what is seen is that, untouched.
    #[must_use]
    pub fn owns(&self, path: &str, seen: &Seen, creator: Creator) -> bool {
        self.entries.get(path).is_some_and(|entry| {
            !entry.gone && entry.creator == Some(creator) && entry.print.matches(seen)
        })
    }

    /// The entry of a path.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// Puts in what was kept since an earlier run.
    pub fn recall(&mut self, path: String, entry: Entry) {
        self.things.insert(entry.print.identity, path.clone());
        self.entries.insert(path, entry);
    }

    /// The same for what holds at a path and below it.
    pub fn recall_below(&mut self, path: String, names: &Names) {
        self.below.entry(path).or_default().join(names);
    }

    /// The paths whose entries changed, each with what is kept now.
    pub fn changes(&self) -> impl Iterator<Item = (&str, Option<&Entry>, Option<&Names>)> {
        self.touched
            .iter()
            .map(|path| (path.as_str(), self.entries.get(path), self.below.get(path)))
    }

    /// What a change will have kept for a path, once it was looked at.
    pub fn plan(&self, path: &str, before: Option<&Seen>, how: How, stamp: &Stamp) -> Entry {
        let here = self.entries.get(path);
        let mut entry = Entry {
            print: Print::NONE,
            content: stamp.rest.clone(),
            name: stamp.rest.clone(),
            creator: Some(stamp.creator),
            behind: here.map(Entry::all).unwrap_or_default(),
            gone: false,
        };
        if let Some(seen) = before {
            let content = self.content(path, seen);
            entry.behind.join(&content.names);
            entry.name = self.name(path, seen);
            entry.creator = Some(stamp.creator).filter(|mine| self.owns(path, seen, *mine));
            if how == How::Keep {
                entry.content.join(&content);
            }
        }
        entry
    }

    /// Enters what is planned; what was there, to be restored if it fails.
    pub fn enter(&mut self, path: &str, entry: Entry) -> Option<Entry> {
        self.touched.insert(path.to_owned());
        self.entries.insert(path.to_owned(), entry)
    }

    /// Takes an entry back.
    pub fn restore(&mut self, path: &str, before: Option<Entry>) {
        match before {
            Some(entry) => drop(self.entries.insert(path.to_owned(), entry)),
            None => drop(self.entries.remove(path)),
        }
    }

    /// Says what stands under a path after its change.
    pub fn settle(&mut self, path: &str, seen: &Seen) {
        if let Some(entry) = self.entries.get_mut(path) {
            entry.print = seen.print;
            self.things.insert(seen.print.identity, path.to_owned());
        }
    }

    /// A directory was made on the way.
    pub fn made(&mut self, path: &str, stamp: &Stamp) {
        let entry = self.plan(path, None, How::Create, stamp);
        self.enter(path, entry);
    }

    /// Enters a move before it is made: what is kept under and below `from` is kept
    /// for `to` too.
    pub fn moving(
        &mut self,
        (from, to): (&str, &str),
        seen: &Seen,
        stamp: &Stamp,
        carried: &Names,
    ) -> Moving {
        let valid = self.entries.get(from).filter(|entry| entry.print.matches(seen));
        let top = Entry {
            print: Print::NONE,
            content: self.content(from, seen),
            name: stamp.rest.clone(),
            creator: valid.and_then(|entry| entry.creator),
            behind: self.entries.get(to).map(Entry::all).unwrap_or_default(),
            gone: false,
        };
        let mut moved = Vec::from([(to.to_owned(), top)]);
        for (path, entry) in self.inside(from) {
            let inner = path.get(from.len()..).unwrap_or_default();
            let path = format!("{to}{inner}");
            let mut entry = entry.clone();
            if let Some(old) = self.entries.get(&path) {
                entry.behind.join(&old.all());
            }
            moved.push((path, entry));
        }
        let mut names = carried.clone();
        names.join(&self.along(from));
        let mut below = Vec::from([(to.to_owned(), names)]);
        for (path, names) in self.below.range(format!("{from}/")..format!("{from}0")) {
            let inner = path.get(from.len()..).unwrap_or_default();
            below.push((format!("{to}{inner}"), names.clone()));
        }
        let entered = moved.into_iter().map(|(path, entry)| {
            let old = self.enter(&path, entry);
            (path, old)
        });
        let entered = entered.collect();
        let below = below.into_iter().filter(|(_, names)| !names.is_empty());
        let below = below.map(|(path, names)| {
            let old = self.below.get(&path).cloned();
            self.touched.insert(path.clone());
            self.below.entry(path.clone()).or_default().join(&names);
            (path, old)
        });
        let below = below.collect();
        Moving { entered, below }
    }

    /// What was moved stands under its new name.
    pub fn moved(&mut self, (from, to): (&str, &str), seen: &Seen, rest: &Rest) {
        let inside: Vec<String> = self.inside(from).map(|(path, _)| path.to_owned()).collect();
        for path in inside.into_iter().chain([from.to_owned()]) {
            if let Some(entry) = self.entries.remove(&path) {
                let inner = path.get(from.len()..).unwrap_or_default();
                self.things.insert(entry.print.identity, format!("{to}{inner}"));
                self.touched.insert(path);
            }
        }
        self.settle(to, seen);
        self.left(from, rest);
    }

    /// What was to be moved was not.
    pub fn unmoved(&mut self, moving: Moving) {
        for (path, before) in moving.entered {
            self.restore(&path, before);
        }
        for (path, before) in moving.below {
            match before {
                Some(names) => drop(self.below.insert(path, names)),
                None => drop(self.below.remove(&path)),
            }
        }
    }

    /// What stood under a path, and all below it, was taken away.
    pub fn removed(&mut self, path: &str, rest: &Rest) {
        let inside: Vec<String> = self.inside(path).map(|(path, _)| path.to_owned()).collect();
        for path in inside.into_iter().chain([path.to_owned()]) {
            if let Some(entry) = self.entries.get_mut(&path) {
                entry.gone = true;
                entry.creator = None;
                self.touched.insert(path);
            }
        }
        self.left(path, rest);
    }

    /// That a name is missing tells of who took it away.
    fn left(&mut self, path: &str, rest: &Rest) {
        let Some((parent, _)) = path.rsplit_once('/') else { return };
        self.touched.insert(parent.to_owned());
        let unknown = || Entry {
            print: Print::NONE,
            content: rest.clone(),
            name: Rest::outside(),
            creator: None,
            behind: Names::NONE,
            gone: false,
        };
        let entry = self.entries.entry(parent.to_owned()).or_insert_with(unknown);
        entry.content.join(rest);
    }

    fn read(&self, path: &str, seen: &Seen, valid: impl Fn(&Entry) -> Rest) -> Rest {
        let here = self.entries.get(path);
        let known = here.filter(|entry| !entry.gone && entry.print.matches(seen));
        let mut rest = known.map_or_else(|| self.unknown(here, seen), valid);
        if !self.below.is_empty() {
            rest.names.join(&self.along(path));
        }
        rest
    }

    /// What nobody vouches for, with the compartments of all that it may be.
    fn unknown(&self, here: Option<&Entry>, seen: &Seen) -> Rest {
        let mut rest = Rest::outside();
        let elsewhere = self.things.get(&seen.print.identity);
        let elsewhere = elsewhere.and_then(|path| self.entries.get(path));
        for entry in here.into_iter().chain(elsewhere) {
            rest.names.join(&entry.all());
        }
        // Somebody may have written it by another of its names.
        if seen.kind == Kind::File && seen.links > 1 {
            rest.names.join(&Names::every());
        }
        rest
    }

    /// What holds at a path because of what holds above it.
    fn along(&self, path: &str) -> Names {
        let mut names = Names::NONE;
        let mut at = Some(path);
        while let Some(path) = at.filter(|_| !self.below.is_empty()) {
            if let Some(more) = self.below.get(path) {
                names.join(more);
            }
            at = path.rsplit_once('/').map(|(above, _)| above);
        }
        names
    }

    fn inside(&self, path: &str) -> impl Iterator<Item = (&str, &Entry)> {
        // The byte after `/` ends all that begins with it.
        let range = self.entries.range(format!("{path}/")..format!("{path}0"));
        range.map(|(path, entry)| (path.as_str(), entry))
    }
}

/// Recovery of what a run did that did not end.
impl Index {
    /// A file or directory that may have been changed, or may not.
    pub fn suspect(&mut self, path: &str, rest: &Rest, print: Option<Print>) {
        let before = self.entries.get(path);
        let mut content = Rest::outside();
        content.names = rest.names.clone();
        let mut entry = Entry {
            print: print.unwrap_or(before.map_or(Print::NONE, |entry| entry.print)),
            name: content.clone(),
            content,
            creator: None,
            behind: before.map(Entry::all).unwrap_or_default(),
            gone: false,
        };
        entry.print.changed = None;
        self.things.insert(entry.print.identity, path.to_owned());
        self.enter(path, entry);
    }

    /// A move that may have been made, or may not.
    pub fn suspect_move(&mut self, from: &str, to: &str, rest: &Rest, print: Option<Print>) {
        let inside: Vec<(String, Entry)> = self
            .inside(from)
            .map(|(path, entry)| {
                (path.get(from.len()..).unwrap_or_default().to_owned(), entry.clone())
            })
            .collect();
        for (inner, entry) in inside {
            let path = format!("{to}{inner}");
            let behind = self.entries.get(&path).map(Entry::all).unwrap_or_default();
            let mut entry = entry;
            entry.behind.join(&behind);
            entry.creator = None;
            self.enter(&path, entry);
        }
        let mut names = self.along(from);
        names.join(&rest.names);
        names.join(&self.entries.get(from).map(Entry::all).unwrap_or_default());
        self.suspect(to, rest, print);
        self.lower(to, &names);
    }

    /// A removal that may have been made, or may not.
    pub fn suspect_removal(&mut self, path: &str, rest: &Rest) {
        let inside: Vec<String> = self.inside(path).map(|(path, _)| path.to_owned()).collect();
        for path in inside.into_iter().chain([path.to_owned()]) {
            if let Some(entry) = self.entries.get_mut(&path) {
                entry.creator = None;
                self.touched.insert(path);
            }
        }
        self.left(path, rest);
    }

    /// Gives compartments to a path and to all below it.
    pub fn lower(&mut self, path: &str, names: &Names) {
        self.touched.insert(path.to_owned());
        self.below.entry(path.to_owned()).or_default().join(names);
    }

    /// Puts a label on what stands under a path, because a human vouches for it.
    pub fn vouch(&mut self, path: &str, seen: &Seen, integrity: Integrity) {
        let entry = Entry {
            print: seen.print,
            content: Rest { integrity, ..self.content(path, seen) },
            name: self.name(path, seen),
            creator: None,
            behind: self.entries.get(path).map(Entry::all).unwrap_or_default(),
            gone: false,
        };
        self.things.insert(seen.print.identity, path.to_owned());
        self.enter(path, entry);
    }
}
