//! What was approved of each connector, and the grant that follows.
//!
//! # Invariants
//! 1. A verb that the list does not have cannot be granted.
//!
//! # Not here
//! What a connector answers (`dojo`).

use core::fmt::{Display, Write as _};
use std::collections::BTreeMap;

use serde::Deserialize;
use synapse_boundary::scope::day;
use synapse_kernel::grant::{Grant, Notice};
use synapse_kernel::manifest::Manifest;

use crate::play::TODAY;

/// Every connector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connectors {
    suites: BTreeMap<String, Vec<String>>,
    /// The day that each suite's clock shows.
    #[serde(default)]
    clock: BTreeMap<String, String>,
    services: BTreeMap<String, Service>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    about: String,
    clear: Vec<String>,
    verbs: BTreeMap<String, Verb>,
}

/// What was approved of one verb.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verb {
    pub(crate) effect: Does,
    #[serde(default)]
    pub(crate) says: Vec<String>,
    #[serde(default)]
    pub(crate) target: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) fixed: Vec<String>,
    #[serde(default)]
    pub(crate) open: Vec<String>,
    #[serde(default)]
    pub(crate) limits: BTreeMap<String, Limit>,
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) own: bool,
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Limit {
    /// A number, from 0 to this one.
    Most(u32),
    /// A date, from the first to the last day, counted from the clock's.
    Days { from: i64, to: i64 },
}

impl Limit {
    /// It as a manifest has it.
    fn write(self) -> String {
        match self {
            Self::Most(most) => most.to_string(),
            Self::Days { from, to } => format!("{{ from = \"{from:+}d\", to = \"{to:+}d\" }}"),
        }
    }
}

/// What a verb does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Does {
    Read,
    Fetch,
    Store,
    Send,
    Pay,
    Account,
    Destroy,
    Actuate,
    Execute,
}

impl Does {
    /// The word of a manifest for it.
    const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Fetch => "fetch",
            Self::Store => "store",
            Self::Send => "send",
            Self::Pay => "pay",
            Self::Account => "account",
            Self::Destroy => "destroy",
            Self::Actuate => "actuate",
            Self::Execute => "execute",
        }
    }
}

impl Connectors {
    /// Those that a list in TOML approves.
    ///
    /// # Errors
    /// The list is not of its format.
    pub(crate) fn read(list: &str) -> Result<Self, String> {
        toml::from_str(list).map_err(|why| format!("the list of connectors: {why}"))
    }

    /// Those of the suites that ship.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn shipped() -> Result<Self, String> {
        Self::read(include_str!("../../tables/connectors.toml"))
    }

    /// Those of the second benchmark.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn injecagent() -> Result<Self, String> {
        Self::read(include_str!("../../tables/injecagent.toml"))
    }

    /// Whether a suite is called so.
    pub(crate) fn has(&self, suite: &str) -> bool {
        self.suites.contains_key(suite)
    }

    /// The day that the clock of a suite shows.
    ///
    /// # Errors
    /// It is no day.
    pub(crate) fn today(&self, suite: &str) -> Result<i64, String> {
        let date = self.clock.get(suite).map(|date| (date, day(date)));
        date.map_or(Ok(TODAY), |(date, day)| day.ok_or_else(|| format!("{date} is no day")))
    }

    /// The connector of a verb in a suite, and what was approved of it.
    pub(crate) fn verb(&self, suite: &str, verb: &str) -> Result<(String, &Verb), String> {
        let services = self.suites.get(suite).into_iter().flatten();
        services
            .filter_map(|name| Some((name, self.services.get(name)?.verbs.get(verb)?)))
            .map(|(name, about)| (format!("{name}/{verb}"), about))
            .next()
            .ok_or_else(|| format!("{suite} has no approved verb {verb}"))
    }

    /// The other verbs of the suite with an effect.
    pub(crate) fn beside(&self, suite: &str, verb: &str) -> Vec<String> {
        let services = self.suites.get(suite).into_iter().flatten();
        let verbs = services.filter_map(|name| self.services.get(name)).flat_map(|it| &it.verbs);
        verbs
            .filter(|(name, about)| *name != verb && about.effect != Does::Read)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// What a verb acts upon.
    pub(crate) fn targets(&self, suite: &str, verb: &str) -> Vec<String> {
        self.verb(suite, verb)
            .map_or_else(|_| Vec::new(), |(_, it)| it.target.keys().cloned().collect())
    }

    /// The primitive that calls a verb, and what it is given: each argument in JSON.
    pub(crate) fn speak<T: Display>(
        &self,
        suite: &str,
        verb: &str,
        arguments: impl IntoIterator<Item = (impl Display, T)>,
    ) -> Result<(&'static str, String), String> {
        let (tool, about) = self.verb(suite, verb)?;
        let primitive = about.primitive();
        let members: Vec<String> =
            arguments.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let members = members.join(",");
        Ok((primitive, format!("{{\"tool\":\"{tool}\",\"arguments\":{{{members}}}}}")))
    }

    /// What an agent of a suite may do: every verb of its connectors.
    ///
    /// # Errors
    /// The list makes no manifest or no grant.
    pub(crate) fn grant(&self, suite: &str) -> Result<Grant, String> {
        let names = self.suites.get(suite).ok_or_else(|| format!("no suite is called {suite}"))?;
        let mut text = String::from(
            "version = 1\nprimitives = [\"console_write\", \"value_read\", \"tool_use\", \"tool_commit\"]\n",
        );
        let mut manifests = Vec::new();
        for name in names {
            let service =
                self.services.get(name).ok_or_else(|| format!("no service is called {name}"))?;
            for verb in service.verbs.keys() {
                let _ = write!(text, "\n[[tools]]\ntool = \"{name}/{verb}\"\n");
            }
            manifests.push(service.manifest(name, names)?);
        }
        Grant::parse_with(&text, &manifests).map_err(|why| format!("{suite}: {why}"))
    }
}

impl Service {
    /// It as the kernel reads it, beside the other services of its suite.
    fn manifest(&self, name: &str, beside: &[String]) -> Result<Manifest, String> {
        let cleared = self.clear.iter().filter(|other| *other != name && beside.contains(other));
        let clear: Vec<String> = cleared.map(|other| format!("\"tool:{other}\"")).collect();
        let mut text = format!(
            "version = 1\nserver = \"{name}\"\ndescription = {:?}\nclear = [{}]\nstart = {{ url = \"https://{name}.example/mcp\" }}\n",
            self.about,
            clear.join(", ")
        );
        for (verb, about) in &self.verbs {
            about.write(&mut text, verb);
        }
        let told =
            |notices: Vec<Notice>| notices.first().map_or_else(String::new, ToString::to_string);
        Manifest::check(&text).map_err(|why| format!("{name}: {}", told(why)))
    }
}

impl Verb {
    fn write(&self, text: &mut String, name: &str) {
        let effect = self.effect.word();
        let _ = write!(
            text,
            "\n[verbs.{name}]\nabout = \"{name}\"\neffect = \"{effect}\"\nsays = {:?}\n",
            self.says
        );
        let fields: Vec<String> =
            self.fields.iter().map(|(field, ty)| format!("{field} = \"{ty}\"")).collect();
        if !fields.is_empty() {
            let _ = write!(text, "fields = {{ {} }}\nown = {}\n", fields.join(", "), self.own);
        }
        let _ = writeln!(text, "[verbs.{name}.arguments]");
        for (argument, ty) in &self.target {
            let _ = writeln!(text, "{argument} = {{ type = \"{ty}\" }}");
        }
        for argument in &self.fixed {
            let limit = self.limits.get(argument);
            let limit =
                limit.map_or_else(String::new, |limit| format!(", limit = {}", limit.write()));
            let _ = writeln!(text, "{argument} = {{ role = \"parameter\"{limit} }}");
        }
        for argument in &self.open {
            let _ = writeln!(text, "{argument} = {{ role = \"content\" }}");
        }
    }

    /// The primitive that calls it.
    fn primitive(&self) -> &'static str {
        let reaches = self.target.values().any(|ty| ty == "person");
        match self.effect {
            Does::Read | Does::Fetch => "tool_use",
            Does::Store if !reaches => "tool_use",
            _ => "tool_commit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_has_a_grant_and_every_argument_one_role() {
        let connectors = [Connectors::shipped().unwrap(), Connectors::injecagent().unwrap()];
        for connectors in &connectors {
            for suite in connectors.suites.keys() {
                connectors.grant(suite).unwrap();
            }
        }
        let services = connectors.iter().flat_map(|connectors| connectors.services.values());
        for verb in services.flat_map(|service| service.verbs.values()) {
            for name in verb.target.keys() {
                assert!(!verb.open.contains(name) && !verb.fixed.contains(name), "{name}");
            }
            let strict = matches!(verb.effect, Does::Pay | Does::Account);
            assert!(strict || verb.fixed.is_empty());
            assert!(verb.limits.keys().all(|name| verb.fixed.contains(name)));
            assert!(verb.fields.is_empty() || verb.effect == Does::Read);
            assert!(verb.effect == Does::Read || !verb.says.is_empty());
        }
        assert!(connectors[0].verb("slack", "send_money").is_err());
    }
}
