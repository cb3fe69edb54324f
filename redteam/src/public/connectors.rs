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
use synapse_kernel::grant::Grant;

/// Every connector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connectors {
    suites: BTreeMap<String, Vec<String>>,
    services: BTreeMap<String, Service>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    #[expect(dead_code, reason = "told to whoever reads the file")]
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
    pub(crate) limits: BTreeMap<String, u64>,
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, String>,
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
    /// The word of a grant for it.
    pub(crate) const fn effect(self) -> &'static str {
        match self {
            Self::Read | Self::Fetch => "read",
            Self::Store => "store",
            Self::Send
            | Self::Pay
            | Self::Account
            | Self::Destroy
            | Self::Actuate
            | Self::Execute => "commit",
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
        let primitive = if about.effect.effect() == "commit" { "tool_commit" } else { "tool_use" };
        let members: Vec<String> =
            arguments.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let members = members.join(",");
        Ok((primitive, format!("{{\"tool\":\"{tool}\",\"arguments\":{{{members}}}}}")))
    }

    /// What an agent of a suite may do: every verb of its connectors.
    ///
    /// # Errors
    /// The list makes no grant.
    pub(crate) fn grant(&self, suite: &str) -> Result<Grant, String> {
        let names = self.suites.get(suite).ok_or_else(|| format!("no suite is called {suite}"))?;
        let mut text = String::from(
            "version = 1\nprimitives = [\"console_write\", \"value_read\", \"tool_use\", \"tool_commit\"]\n",
        );
        for name in names {
            let service =
                self.services.get(name).ok_or_else(|| format!("no service is called {name}"))?;
            let cleared = service.clear.iter().filter(|other| names.contains(other));
            let clear: String = cleared.map(|other| format!(", \"tool:{other}\"")).collect();
            for (verb, about) in &service.verbs {
                let effect = about.effect.effect();
                let limits: Vec<String> =
                    about.limits.iter().map(|(name, most)| format!("{name} = {most}")).collect();
                let _ = write!(
                    text,
                    "\n[[tools]]\ntool = \"{name}/{verb}\"\neffect = \"{effect}\"\nclear = [\"prompt\"{clear}]\nlimits = {{ {} }}\n",
                    limits.join(", ")
                );
            }
        }
        Grant::parse(&text).map_err(|why| format!("{suite}: {why}"))
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
