//! What a grant says, as entries that can be compared, narrowed and written down.
//!
//! A grant file is text and a [`Grant`] is what the door decides by. Between the two
//! stand these entries: what a manifest asks for, what a person agreed to, and what a
//! caller passes on are held against each other here, and come out as a grant file.
//!
//! # Invariants
//! - I9: [`Authority::meet`] allows no call that either side refuses, and what
//!   [`Authority::covers`] affirms allows none that is not allowed already. Where that is
//!   hard to say, it is denied.
//! - Each authority is a grant file that the kernel reads without a mistake.
//!
//! # Not here
//! What an entry means for a call (`synapse-boundary`). One entry (`entry`).

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::entry::{Entry, Kind};
use super::notes::Notes;
use super::shape::{self, Value, get, items, named, text};
use super::{Grant, Notice, Parts, summary};

/// What one task may do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Authority {
    /// What it names, each once.
    pub entries: Vec<Entry>,
    /// Paths that stay closed.
    pub deny: Vec<String>,
    /// Hosts that stay closed.
    pub deny_hosts: Vec<String>,
    /// Names for what stands below paths.
    pub compartments: BTreeMap<String, Vec<String>>,
    /// How much it may use.
    pub budget: Budget,
}

/// How much a task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Calls.
    pub calls: u64,
    /// Seconds that its guest may compute.
    pub seconds: u64,
    /// Bytes of its guest's memory.
    pub memory: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { calls: 100_000, seconds: 300, memory: 256 << 20 }
    }
}

impl Budget {
    fn meet(self, other: Self) -> Self {
        Self {
            calls: self.calls.min(other.calls),
            seconds: self.seconds.min(other.seconds),
            memory: self.memory.min(other.memory),
        }
    }
}

impl Authority {
    /// Reads a grant file.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn read(text: &str) -> Result<Self, Notice> {
        let Grant { calls, seconds, memory, parts, .. } = Grant::parse(text)?;
        let Parts { primitives, paths, hosts, tools, .. } = parts;
        let primitives = primitives.into_iter().map(|(_, granted)| Kind::Primitive(granted));
        let entries = primitives
            .chain(paths.into_iter().map(Kind::Path))
            .chain(hosts.into_iter().map(Kind::Host))
            .chain(tools.into_iter().map(Kind::Tool));
        let memory = u64::try_from(memory).unwrap_or(u64::MAX);
        let budget = Budget { calls, seconds, memory };
        let own = Self { entries: entries.map(Entry).collect(), budget, ..Self::default() };
        let document = shape::document(text, &mut Notes::new("grant"));
        Ok(document.map(|document| own.clone().closed_as(&document)).unwrap_or(own))
    }

    /// Under what closes and names in a document whose keys were found sound.
    pub(crate) fn closed_as(self, document: &Value<'_>) -> Self {
        let part = |key| get(document, key);
        let texts = |value: &Value<'_>| -> Vec<String> {
            items(value).iter().map(|item| text(item).to_owned()).collect()
        };
        let compartments = part("compartments").map(named).unwrap_or_default().into_iter();
        Self {
            deny: part("deny").map(texts).unwrap_or_default(),
            deny_hosts: part("deny_hosts").map(texts).unwrap_or_default(),
            compartments: compartments
                .map(|(_, name, value)| (name.to_owned(), texts(value)))
                .collect(),
            ..self
        }
    }

    /// The grant file, and the line of each entry in it.
    #[must_use]
    pub fn written(&self) -> (String, Vec<usize>) {
        let mut text = String::from("version = 1\nprimitives = [\n");
        let mut lines: Vec<usize> = self.entries.iter().map(|_| 0).collect();
        let mut here = |text: &str, at: usize| {
            if let Some(line) = lines.get_mut(at) {
                *line = text.matches('\n').count() + 1;
            }
        };
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.table().is_none() {
                here(&text, at);
                text.push_str(&format!("    {},\n", quoted(entry.name())));
            }
        }
        text.push_str("]\n");
        for (key, texts) in [("deny", &self.deny), ("deny_hosts", &self.deny_hosts)] {
            if !texts.is_empty() {
                text.push_str(&format!("{key} = {}\n", array(texts)));
            }
        }
        for kind in ["paths", "hosts", "tools"] {
            for (at, entry) in self.entries.iter().enumerate() {
                if let Some((table, body)) = entry.table()
                    && table == kind
                {
                    text.push('\n');
                    here(&text, at);
                    text.push_str(&format!("[[{kind}]]\n{body}"));
                }
            }
        }
        if !self.compartments.is_empty() {
            text.push_str("\n[compartments]\n");
            for (name, patterns) in &self.compartments {
                text.push_str(&format!("{} = {}\n", quoted(name), array(patterns)));
            }
        }
        let Budget { calls, seconds, memory } = self.budget;
        text.push_str(&format!(
            "\n[budget]\ncalls = {calls}\nseconds = {seconds}\nmemory = {memory}\n"
        ));
        (text, lines)
    }

    /// The grant file.
    #[must_use]
    pub fn text(&self) -> String {
        self.written().0
    }

    /// Whether every call that the other allows is allowed by this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        other.entries.iter().all(|entry| self.covers_entry(entry)) && self.covers_rest(other)
    }

    /// Whether one entry allows no more than this does.
    #[must_use]
    pub fn covers_entry(&self, entry: &Entry) -> bool {
        self.entries.iter().any(|own| own.covers(entry))
    }

    /// Whether what stands beside the entries allows no more than here.
    #[must_use]
    pub fn covers_rest(&self, other: &Self) -> bool {
        let closed = |own: &[String], other: &[String]| own.iter().all(|deny| other.contains(deny));
        let named = |(name, patterns): (&String, &Vec<String>)| {
            let other = other.compartments.get(name);
            other.is_some_and(|other| patterns.iter().all(|pattern| other.contains(pattern)))
        };
        closed(&self.deny, &other.deny)
            && closed(&self.deny_hosts, &other.deny_hosts)
            && self.compartments.iter().all(named)
            && self.budget.meet(other.budget) == other.budget
    }

    /// What both allow.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        let mut entries = Vec::new();
        for own in &self.entries {
            for theirs in &other.entries {
                if let Some(both) = own.meet(theirs) {
                    add(&mut entries, both);
                }
            }
        }
        Self { entries, ..self.closed_with(other) }.settled()
    }

    /// What this one allows and these entries besides, under what closes both.
    #[must_use]
    pub fn with(&self, entries: impl IntoIterator<Item = Entry>, rest: &Self) -> Self {
        let mut all = self.entries.clone();
        for entry in entries {
            add(&mut all, entry);
        }
        Self { entries: all, ..rest.clone() }.settled()
    }

    /// No entries; what closes either closes it.
    fn closed_with(&self, other: &Self) -> Self {
        let mut compartments = self.compartments.clone();
        for (name, patterns) in &other.compartments {
            let own = compartments.entry(name.clone()).or_default();
            own.extend(
                patterns.iter().filter(|new| !own.contains(new)).cloned().collect::<Vec<_>>(),
            );
        }
        Self {
            entries: Vec::new(),
            deny: union(&self.deny, &other.deny),
            deny_hosts: union(&self.deny_hosts, &other.deny_hosts),
            compartments,
            budget: self.budget.meet(other.budget),
        }
    }

    /// Without clearances for compartments that went with their entries.
    #[must_use]
    pub fn settled(mut self) -> Self {
        let mut known = Vec::from(["prompt", "files"].map(String::from));
        known.extend(self.compartments.keys().cloned());
        known.extend(self.entries.iter().filter_map(Entry::compartment));
        for entry in &mut self.entries {
            entry.forget(&known);
        }
        self
    }
}

/// Adds an entry to those of which each stands once.
fn add(entries: &mut Vec<Entry>, new: Entry) {
    if entries.iter().any(|known| known.covers(&new)) {
        return;
    }
    entries.retain(|known| !new.covers(known));
    match entries.iter_mut().find(|known| known.excludes(&new)) {
        Some(known) => known.join(new),
        None => entries.push(new),
    }
}

fn union(own: &[String], other: &[String]) -> Vec<String> {
    let new = other.iter().filter(|text| !own.contains(text));
    own.iter().chain(new).cloned().collect()
}

/// A string as TOML and JSON have it.
pub(crate) fn quoted(text: &str) -> String {
    // The one character that JSON takes as it is and TOML does not.
    summary::json(text).replace('\u{7f}', "\\u007f")
}

pub(crate) fn array(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: &str = r#"
version = 1
primitives = ["fs_list", "fs_read", "fs_write", "net_http_get", "tool_commit"]
deny = ["**/.env"]

[[paths]]
path = "/data/**"
rights = ["list", "read", "write"]

[[hosts]]
host = "*.example.org"
ports = [443, "8000-8010"]
paths = ["/v1"]
clear = ["prompt", "payroll"]

[[tools]]
tool = "mail/send"
limits = { to = ["*@example.org"], amount = 50, day = { min = 1, max = 31.5 } }

[compartments]
payroll = "/data/payroll/**"
"#;

    const NARROW: &str = r#"
version = 1
primitives = ["fs_read", "net_http_get", "tool_commit", "clock_read"]

[[paths]]
path = "/data/notes/*"
rights = ["read"]

[[paths]]
path = "/else/**"
rights = ["read"]

[[hosts]]
host = "api.example.org"
ports = ["8001-8020"]
paths = ["/v1/a", "/v2"]

[[tools]]
tool = "mail/send"
limits = { to = ["a@example.org", "b@example.com"], amount = 20 }

[budget]
calls = 5
"#;

    fn read(text: &str) -> Authority {
        Authority::read(text).unwrap()
    }

    #[test]
    fn what_is_written_is_read_alike_and_lines_are_those_of_the_entries() {
        let authority = read(WIDE);
        let (text, lines) = authority.written();
        assert_eq!(read(&text), authority);
        let line = |at: usize| text.lines().nth(lines[at] - 1).unwrap();
        assert_eq!(line(0), "    \"fs_list\",");
        assert_eq!(line(5), "[[paths]]");
        assert_eq!(line(7), "[[tools]]");
    }

    #[test]
    fn what_both_allow_is_covered_by_each() {
        let (wide, narrow) = (read(WIDE), read(NARROW));
        for (a, b) in [(&wide, &narrow), (&narrow, &wide)] {
            let both = a.meet(b);
            assert_eq!(read(&both.text()), both);
            assert!(a.covers(&both) && b.covers(&both), "{}", both.text());
        }
        let both = wide.meet(&narrow).text();
        for part in [
            "path = \"/data/notes/*\"\nrights = [\"read\"]",
            "host = \"api.example.org\"\nports = [\"8001-8010\"]\nmethods = [\"GET\"]\npaths = [\"/v1/a\"]",
            "\"to\" = [\"a@example.org\"]",
            "\"amount\" = { min = 0, max = 20 }",
            "\"day\" = { min = 1, max = 31.5 }",
            "calls = 5",
            "deny = [\"**/.env\"]",
        ] {
            assert!(both.contains(part), "{part}\n{both}");
        }
        assert!(!both.contains("clock_read") && !both.contains("/else"), "{both}");
    }

    #[test]
    fn each_way_of_widening_is_seen() {
        let base = read(WIDE);
        assert!(base.covers(&base));
        for (from, to) in [
            ("\"fs_list\",", "\"fs_list\", \"fs_delete\","),
            ("/data/**", "/**/".trim_end_matches('/')),
            ("rights = [\"list\"", "rights = [\"delete\", \"list\""),
            ("*.example.org\"\nports", "*.org\"\nports"),
            ("443, ", "443, 80, "),
            ("\"8000-8010\"", "\"8000-8011\""),
            ("[\"/v1\"]", "[\"/\"]"),
            ("[\"/v1\"]", "[\"/v1\"]\nmethods = [\"GET\", \"POST\"]"),
            ("\"payroll\"]", "\"payroll\", \"files\"]"),
            ("tool = \"mail/send\"", "tool = \"mail/send\"\neffect = \"free\""),
            ("*@example.org", "*@example.com"),
            ("amount = 50", "amount = 50.5"),
            ("amount = 50, ", ""),
            ("min = 1", "min = 0"),
            ("[\"**/.env\"]", "[]"),
            ("/data/payroll/**", "/data/payroll/*"),
            ("[compartments]", "[budget]\ncalls = 100001\n[compartments]"),
        ] {
            let text = WIDE.replace(from, to);
            assert_ne!(text, WIDE, "{from}");
            if let Ok(other) = Authority::read(&text) {
                assert!(!base.covers(&other), "{from} → {to}");
                let both = base.meet(&other);
                assert!(base.covers(&both) && other.covers(&both), "{}", both.text());
            } else {
                assert_eq!(from, "/data/**", "only that one is no grant at all");
            }
        }
    }
}
