//! What a person gave a run beforehand, and what that has to do with a call
//!
//! An agent of a package is refused what nobody agreed to. Whether its manifest asks
//! for it at all is what tells its user whom to turn to.
//!
//! # Not here
//! The grant that refused it (the run's). Taking back, and agreeing (`installed`,
//! `install`).

use serde_json::Value;
use synapse_abi::registry::Role;
use synapse_boundary::Integrity;
use synapse_host::{log, render};
use synapse_kernel::account::Account;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Kind, tag};
use synapse_kernel::verify::Reader;
use synapse_kernel::words;

use crate::{check, install};

/// The file of warrants that a call rests on, or that it is a warrant of.
pub(crate) fn written(log: &[u8], account: &Account<'_>) -> Option<Value> {
    let file = about(log)?.get("warrants")?.clone();
    // They are the first decisions of the run.
    let lines = usize::try_from(file.get("lines")?.as_u64()?).ok()?;
    let decisions = Reader::new(log).flatten().filter(|record| record.kind == Kind::Decision);
    let is_meant = |number: u64| {
        account.decision.sequence == number
            || account.cause.is_some_and(|cause| cause.sequence == number)
    };
    decisions.take(lines).any(|record| is_meant(record.sequence)).then_some(file)
}

/// What the first record says of the run.
fn about(log: &[u8]) -> Option<Value> {
    let start = Reader::new(log).next()?.ok()?;
    serde_json::from_slice(start.field(tag::TEXT)?).ok()
}

/// The approval that bounds a run, as its first record names it.
pub(crate) struct Bound {
    pub(crate) approval: Value,
}

impl Bound {
    /// That of a log, if its agent came in a package.
    pub(crate) fn of(log: &[u8]) -> Option<Self> {
        Some(Self { approval: about(log)?.get("approval")?.clone() })
    }

    /// Which approval that is, in words.
    pub(crate) fn told(&self) -> String {
        let approved = self.approval.get("approved").and_then(Value::as_u64).unwrap_or_default();
        format!(
            "{} {}, approved {}, {}",
            self.text("package"),
            self.text("version"),
            log::date(approved / 1000),
            self.text("digest")
        )
    }

    /// For a call that was refused for lack of a capability or of an entry: what the manifest
    /// lacks, or that it does not.
    pub(crate) fn lacks(&self, account: &Account<'_>) -> Option<String> {
        let gate =
            synapse_reply::code::gate(account.code()).filter(|gate| matches!(gate, 2 | 4))?;
        let primitive = account.decision.primitive?.row().name;
        let Some(request) = self.request() else {
            return Some("not known: this version of the package is not installed any more".into());
        };
        let sentence = words::text(&account.decision)?;
        let findings = check::find(&request, sentence, Integrity::User);
        let found = findings.gates.get(usize::from(gate) - 1).copied().flatten()?;
        let targets = account.arguments.iter().filter(|source| source.role == Role::Target);
        let targets: Vec<String> = targets.map(|source| render::line(source.value, 200)).collect();
        Some(match (gate, found) {
            (_, Ok(())) => {
                "nothing: its manifest asks for this, and what you agreed to, or this run's \
                 --grant, leaves it out"
                    .into()
            }
            (2, Err(_)) => format!("a capability in its manifest: primitive = \"{primitive}\""),
            (_, Err(refusal)) => format!(
                "an entry in its manifest that lets {primitive} reach {}: {} [{}]",
                targets.join(" and "),
                synapse_reply::code::name(refusal),
                refusal.number()
            ),
        })
    }

    /// What the package asks for, if it is installed as it was then.
    fn request(&self) -> Option<Grant> {
        let name = self.approval.get("package")?.as_str()?;
        let installed = install::store().ok()?.get(name).ok()??;
        let same =
            installed.package.digest().to_string() == self.approval.get("digest")?.as_str()?;
        same.then(|| Grant::parse(&installed.package.manifest.request.text()).ok()).flatten()
    }

    fn text(&self, key: &str) -> String {
        render::line(self.approval.get(key).and_then(Value::as_str).unwrap_or_default(), 80)
    }
}
