//! One entry of a grant: what it covers, and what it has in common with another.
//!
//! # Invariants
//! - Two patterns whose common part is hard to say have none.
//!
//! # Not here
//! Whole grants (`authority`). Words for people (`words`).

use std::collections::BTreeMap;

use serde::Deserialize;
use synapse_boundary::scope::{Pattern, Reach};

use super::authority::{array, limits, quoted};
use super::bounds::{Limit, Ports};

/// A primitive, a place, a host, or a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// What may be called.
    Primitive(String),
    /// Files and folders.
    Path(Place),
    /// A host.
    Host(Host),
    /// A verb of a connector.
    Tool(Tool),
}

/// Files and folders, and what may be done there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The pattern.
    pub path: String,
    /// `list`, `read`, `write`, `delete`.
    pub rights: Vec<String>,
}

/// A host, and how it may be reached.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A name, `*.suffix`, an address or a network.
    pub host: String,
    /// Ports.
    #[serde(default = "https")]
    pub ports: Vec<Ports>,
    /// `GET`, `POST`, `LISTEN`.
    #[serde(default = "get")]
    pub methods: Vec<String>,
    /// Prefixes of URL paths.
    #[serde(default = "root")]
    pub paths: Vec<String>,
    /// Compartments that may go there.
    #[serde(default = "prompt")]
    pub clear: Vec<String>,
    /// Secrets that a request may carry there.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Whether one that carries a secret only reads.
    #[serde(default)]
    pub reads: bool,
}

/// A verb of a connector, and what its arguments may be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// `server/verb`.
    pub tool: String,
    /// `read`, `store`, `free`, `commit`.
    #[serde(default = "commit")]
    pub effect: String,
    /// By argument.
    #[serde(default)]
    pub limits: BTreeMap<String, Limit>,
    /// Compartments that may go there.
    #[serde(default = "prompt")]
    pub clear: Vec<String>,
}

impl Entry {
    /// The table of a grant file that it stands in, and its keys there.
    pub(super) fn table(&self) -> Option<(&'static str, String)> {
        Some(match self {
            Self::Primitive(_) => return None,
            Self::Path(Place { path, rights }) => {
                ("paths", format!("path = {}\nrights = {}\n", quoted(path), array(rights)))
            }
            Self::Host(Host { host, ports, methods, paths, clear, secrets, reads }) => {
                let secrets = if secrets.is_empty() {
                    String::new()
                } else {
                    format!("secrets = {}\nreads = {reads}\n", array(secrets))
                };
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                let body = format!(
                    "host = {}\nports = [{}]\nmethods = {}\npaths = {}\nclear = {}\n{secrets}",
                    quoted(host),
                    ports.join(", "),
                    array(methods),
                    array(paths),
                    array(clear)
                );
                ("hosts", body)
            }
            Self::Tool(Tool { tool, effect, limits: bounds, clear }) => {
                let bounds = if bounds.is_empty() {
                    String::new()
                } else {
                    format!("limits = {}\n", limits(bounds))
                };
                let body = format!(
                    "tool = {}\neffect = {}\n{bounds}clear = {}\n",
                    quoted(tool),
                    quoted(effect),
                    array(clear)
                );
                ("tools", body)
            }
        })
    }

    /// Whether it allows all that the other does.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Primitive(own), Self::Primitive(other)) => own == other,
            (Self::Path(own), Self::Path(other)) => {
                covers(&own.path, &other.path) && holds(&own.rights, &other.rights)
            }
            (Self::Host(own), Self::Host(other)) => {
                let port = |port: &Ports| {
                    own.ports.iter().any(|own| own.meet(port).as_ref() == Some(port))
                };
                let path = |path: &String| own.paths.iter().any(|own| below(own, path));
                host_covers(&own.host, &other.host)
                    && other.ports.iter().all(port)
                    && holds(&own.methods, &other.methods)
                    && other.paths.iter().all(path)
                    && holds(&own.clear, &other.clear)
                    && holds(&own.secrets, &other.secrets)
                    && (own.reads || !other.reads)
            }
            (Self::Tool(own), Self::Tool(other)) => {
                let limit = |(name, limit): (&String, &Limit)| {
                    other.limits.get(name).is_some_and(|other| limit.covers(other))
                };
                own.tool == other.tool
                    && own.effect == other.effect
                    && own.limits.iter().all(limit)
                    && holds(&own.clear, &other.clear)
            }
            _ => false,
        }
    }

    /// What both allow.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Primitive(own), Self::Primitive(other)) => (own == other).then(|| self.clone()),
            (Self::Path(own), Self::Path(other)) => {
                let path = narrower(&own.path, &other.path, covers)?;
                let rights = common(&own.rights, &other.rights);
                (!rights.is_empty()).then_some(Self::Path(Place { path, rights }))
            }
            (Self::Host(own), Self::Host(other)) => {
                let ports: Vec<Ports> = pairs(&own.ports, &other.ports, Ports::meet);
                let methods = common(&own.methods, &other.methods);
                let paths = pairs(&own.paths, &other.paths, |a, b| narrower(a, b, below));
                let host = narrower(&own.host, &other.host, host_covers)?;
                let clear = common(&own.clear, &other.clear);
                let some = !ports.is_empty() && !methods.is_empty() && !paths.is_empty();
                let secrets = common(&own.secrets, &other.secrets);
                let reads = own.reads && other.reads;
                let met = Host { host, ports, methods, paths, clear, secrets, reads };
                some.then_some(Self::Host(met))
            }
            (Self::Tool(own), Self::Tool(other)) => {
                if own.tool != other.tool || own.effect != other.effect {
                    return None;
                }
                let mut limits = own.limits.clone();
                for (name, limit) in &other.limits {
                    let both = match limits.get(name) {
                        Some(own) => own.meet(limit)?,
                        None => limit.clone(),
                    };
                    limits.insert(name.clone(), both);
                }
                let clear = common(&own.clear, &other.clear);
                Some(Self::Tool(Tool { limits, clear, ..own.clone() }))
            }
            _ => None,
        }
    }

    /// Adds what an entry of the same name allows, where the two are one entry.
    pub(super) fn join(&mut self, other: Self) {
        match (self, other) {
            (Self::Path(own), Self::Path(other)) => {
                own.rights.extend(
                    other
                        .rights
                        .into_iter()
                        .filter(|r| !own.rights.contains(r))
                        .collect::<Vec<_>>(),
                );
            }
            // Of two that stand for one verb, the one that was asked for last.
            (own, other) => *own = other,
        }
    }

    /// What it is about, as a grant file has it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Primitive(name) => name,
            Self::Path(place) => &place.path,
            Self::Host(host) => &host.host,
            Self::Tool(tool) => &tool.tool,
        }
    }

    /// The compartment that comes with it.
    pub(super) fn compartment(&self) -> Option<String> {
        match self {
            Self::Host(host) => Some(format!("net:{}", host.host)),
            Self::Tool(tool) => {
                tool.tool.split_once('/').map(|(server, _)| format!("tool:{server}"))
            }
            Self::Primitive(_) | Self::Path(_) => None,
        }
    }

    /// Forgets clearances for compartments that are not known.
    pub(super) fn forget(&mut self, known: &[String]) {
        if let Self::Host(Host { clear, .. }) | Self::Tool(Tool { clear, .. }) = self {
            clear.retain(|name| known.contains(name));
        }
    }
}

/// Whether a grant file takes only one of the two.
pub(super) fn names(own: &Entry, other: &Entry) -> bool {
    match (own, other) {
        (Entry::Path(own), Entry::Path(other)) => own.path == other.path,
        (Entry::Tool(own), Entry::Tool(other)) => own.tool == other.tool,
        _ => own == other,
    }
}

fn holds(own: &[String], other: &[String]) -> bool {
    other.iter().all(|text| own.contains(text))
}

fn common(own: &[String], other: &[String]) -> Vec<String> {
    own.iter().filter(|text| other.contains(text)).cloned().collect()
}

fn pairs<T: PartialEq>(own: &[T], other: &[T], meet: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    let mut all = Vec::new();
    for a in own {
        for both in other.iter().filter_map(|b| meet(a, b)) {
            if !all.contains(&both) {
                all.push(both);
            }
        }
    }
    all
}

fn narrower(a: &str, b: &str, covers: impl Fn(&str, &str) -> bool) -> Option<String> {
    if covers(a, b) { Some(b.to_owned()) } else { covers(b, a).then(|| a.to_owned()) }
}

/// Whether a path pattern matches all that another does.
fn covers(wide: &str, narrow: &str) -> bool {
    let (Ok(wide), Ok(narrow)) = (Pattern::parse(wide), Pattern::parse(narrow)) else {
        return false;
    };
    let (above, path) = (wide.path().as_str(), narrow.path().as_str());
    match wide.reach() {
        Reach::Exact => narrow.reach() == Reach::Exact && above == path,
        Reach::Children => match narrow.reach() {
            Reach::Exact => path.rsplit_once('/').is_some_and(|(folder, name)| {
                !name.is_empty() && (folder == above || (folder.is_empty() && above == "/"))
            }),
            Reach::Children => above == path,
            Reach::Subtree => false,
        },
        Reach::Subtree => below(above, path),
    }
}

/// Whether a path is another or stands below it, by whole names.
fn below(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

/// Whether a host pattern is sure to match all that another does.
fn host_covers(wide: &str, narrow: &str) -> bool {
    let below = |suffix: &str| {
        let name = narrow.strip_prefix("*.").unwrap_or(narrow);
        name.strip_suffix(suffix).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    };
    // The last label of a name has a letter; an address has no such label.
    let label = narrow.rsplit('.').next().unwrap_or_default();
    let named = label.bytes().any(|byte| byte.is_ascii_alphabetic());
    wide == narrow || (named && wide.strip_prefix("*.").is_some_and(below))
}

fn https() -> Vec<Ports> {
    [Ports::One(443)].into()
}

fn get() -> Vec<String> {
    ["GET".to_owned()].into()
}

fn root() -> Vec<String> {
    ["/".to_owned()].into()
}

fn prompt() -> Vec<String> {
    ["prompt".to_owned()].into()
}

fn commit() -> String {
    "commit".to_owned()
}

#[cfg(test)]
mod tests {
    use super::{covers, host_covers};

    #[test]
    fn a_pattern_covers_what_it_matches_all_of() {
        for (wide, narrow) in [
            ("/a/**", "/a"),
            ("/a/**", "/a/b/**"),
            ("/a/**", "/a/*"),
            ("/a/*", "/a/b"),
            ("/a/*", "/a/*"),
            ("/*", "/a"),
            ("/a", "/a"),
        ] {
            assert!(covers(wide, narrow), "{wide} {narrow}");
        }
        for (wide, narrow) in [
            ("/a/**", "/ab"),
            ("/a/*", "/a"),
            ("/a/*", "/a/b/c"),
            ("/a/*", "/a/**"),
            ("/a", "/a/*"),
            ("/a/b/**", "/a/**"),
            ("/*", "/"),
        ] {
            assert!(!covers(wide, narrow), "{wide} {narrow}");
        }
    }

    #[test]
    fn a_suffix_covers_what_stands_below_it() {
        for (wide, narrow) in
            [("*.a.org", "b.a.org"), ("*.a.org", "*.b.a.org"), ("*.a.org", "*.a.org")]
        {
            assert!(host_covers(wide, narrow), "{wide} {narrow}");
        }
        for (wide, narrow) in [
            ("*.a.org", "a.org"),
            ("*.a.org", "ba.org"),
            ("a.org", "b.a.org"),
            ("*.a.org", "*.org"),
            ("10.0.0.0/8", "10.0.0.1"),
            ("*.0.1", "10.0.0.1"),
        ] {
            assert!(!host_covers(wide, narrow), "{wide} {narrow}");
        }
    }
}
