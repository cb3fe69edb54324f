//! One entry of a grant by itself: for a manifest, a consent and a grant file.
//!
//! # Invariants
//! - Which of two entries allows more is said by the code that bounds children.
//!
//! # Not here
//! Whole grants (`authority`). What is common to two entries (`paths`, `hosts`, `tools`).
//! Words for people (`package`).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::slice;

use synapse_abi::registry::Primitive;

use super::authority::{array, quoted};
use super::notes::Notes;
use super::shape::{Value, get, text};
use super::tools::{self, Bound};
use super::{hosts, paths};

/// A primitive, a place, a host, or a verb of a connector.
#[derive(Clone, Debug)]
pub struct Entry(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// What may be called.
    Primitive(Primitive),
    /// Files and folders.
    Path(paths::Entry),
    /// A host.
    Host(hosts::Entry),
    /// A verb of a connector.
    Tool(tools::Entry),
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.table() == other.table()
    }
}

impl Entry {
    /// Reads the one entry that a table is, whose keys were found sound.
    pub(crate) fn read(value: &Value<'_>, notes: &mut Notes) -> Option<Self> {
        let has = |key| get(value, key).is_some();
        let kind = if let Some(name) = get(value, "primitive") {
            Kind::Primitive(Primitive::from_name(text(name))?)
        } else if has("path") {
            Kind::Path(paths::read(value, notes).pop()?)
        } else if has("host") {
            Kind::Host(hosts::read(value, notes).pop()?)
        } else {
            Kind::Tool(tools::read(value, &[], notes).pop()?)
        };
        Some(Self(kind))
    }

    /// The table of a grant file that it stands in, and its keys there; a primitive is a
    /// word in a list.
    pub(super) fn table(&self) -> Option<(&'static str, String)> {
        Some(match &self.0 {
            Kind::Primitive(_) => return None,
            Kind::Path(entry) => {
                let (path, rights) = (quoted(&entry.text), array(entry.rights()));
                ("paths", format!("path = {path}\nrights = {rights}\n"))
            }
            Kind::Host(entry) => {
                let secrets = match &entry.secrets[..] {
                    [] => String::new(),
                    names => format!("secrets = {}\nreads = {}\n", array(names), entry.reads),
                };
                let body = format!(
                    "host = {}\nports = [{}]\nmethods = {}\npaths = {}\nclear = {}\n{secrets}",
                    quoted(&entry.pattern.text),
                    entry.ports().join(", "),
                    array(entry.methods()),
                    array(&entry.paths),
                    array(entry.clear.names())
                );
                ("hosts", body)
            }
            Kind::Tool(entry) => {
                let mut bounds = String::new();
                if !entry.limits.is_empty() {
                    let limit = |(name, bound): &(String, Bound)| {
                        format!("{} = {}", quoted(name), written(bound))
                    };
                    let all: Vec<String> = entry.limits.iter().map(limit).collect();
                    bounds = format!("limits = {{ {} }}\n", all.join(", "));
                }
                let body = format!(
                    "tool = {}\neffect = {}\n{bounds}clear = {}\n",
                    quoted(&entry.tool),
                    quoted(tools::word(entry.effect)),
                    array(entry.clear.names())
                );
                ("tools", body)
            }
        })
    }

    /// Whether it allows all that the other does.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Primitive(own), Kind::Primitive(other)) => own == other,
            (Kind::Path(own), Kind::Path(other)) => other.is_within(slice::from_ref(own)),
            (Kind::Host(own), Kind::Host(other)) => other.is_within(slice::from_ref(own)),
            (Kind::Tool(own), Kind::Tool(other)) => other.is_bounded_by(own),
            _ => false,
        }
    }

    /// What both allow.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let both = match (&self.0, &other.0) {
            (Kind::Primitive(own), Kind::Primitive(other)) => {
                (own == other).then_some(Kind::Primitive(*own))?
            }
            (Kind::Path(own), Kind::Path(other)) => Kind::Path(own.meet(other)?),
            (Kind::Host(own), Kind::Host(other)) => Kind::Host(own.meet(other)?),
            (Kind::Tool(own), Kind::Tool(other)) => Kind::Tool(own.meet(other)?),
            _ => return None,
        };
        Some(Self(both))
    }

    /// Whether a grant file takes only one of the two.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Path(own), Kind::Path(other)) => own.text == other.text,
            (Kind::Tool(own), Kind::Tool(other)) => own.tool == other.tool,
            _ => self == other,
        }
    }

    /// Adds what an entry that it excludes allows.
    pub(super) fn join(&mut self, other: Self) {
        match (&mut self.0, other.0) {
            (Kind::Path(own), Kind::Path(other)) => own.join(&other),
            // Of two that stand for one verb, the one that was asked for last.
            (own, other) => *own = other,
        }
    }

    /// What it is about, as a grant file has it.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Primitive(primitive) => primitive.row().name,
            Kind::Path(entry) => &entry.text,
            Kind::Host(entry) => &entry.pattern.text,
            Kind::Tool(entry) => &entry.tool,
        }
    }

    /// The compartment that comes with it.
    pub(super) fn compartment(&self) -> Option<String> {
        match &self.0 {
            Kind::Host(entry) => Some(format!("net:{}", entry.pattern.text)),
            Kind::Tool(entry) => Some(entry.own()),
            Kind::Primitive(_) | Kind::Path(_) => None,
        }
    }

    /// Forgets clearances for compartments that are not known.
    pub(super) fn forget(&mut self, known: &[String]) {
        if let Kind::Host(hosts::Entry { clear, .. }) | Kind::Tool(tools::Entry { clear, .. }) =
            &mut self.0
        {
            *clear = clear.filter(|name| known.iter().any(|known| known == name));
        }
    }

    /// The same for another path, with these rights if some are named, or for another host,
    /// if there is such a place.
    pub(crate) fn at(&self, name: &str, rights: &[&str]) -> Option<Self> {
        Some(Self(match &self.0 {
            Kind::Path(entry) => Kind::Path(entry.at(name, rights)?),
            Kind::Host(entry) if rights.is_empty() => Kind::Host(entry.at(name)?),
            Kind::Host(_) | Kind::Primitive(_) | Kind::Tool(_) => return None,
        }))
    }
}

/// A limit, as a grant file has it.
pub(crate) fn written(bound: &Bound) -> String {
    match bound {
        Bound::Like(texts) => array(texts),
        Bound::Within(min, max) => format!("{{ min = {min}, max = {max} }}"),
        Bound::Dated(from, to) => format!("{{ from = \"{from:+}d\", to = \"{to:+}d\" }}"),
    }
}
