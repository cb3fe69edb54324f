//! `synapse why`: the account of one call
//!
//! # Not here
//! What the account says (`synapse_kernel::account`). All records of a run
//! (`audit`).

use serde_json::{Value, json};
use std::path::PathBuf;
use synapse_host::render;
use synapse_kernel::account::{Account, Finding, compartments};
use synapse_kernel::explain;
use synapse_kernel::sources::Source;

use crate::audit::{AuditError, Found, object, shown};
use crate::bound::{self, Bound};
use crate::output;

/// Explains one call: what was asked, what each gate said, what had been read by
/// then and where it came from, what came of it, and what would have made it
/// pass. Of an installed package it names the approval that bounds the run, and what
/// the package's manifest lacks.
///
/// Exit codes: 0 explained, 1 unreadable, not as written or no such call, 2 the
/// command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Why {
    /// The number of the call's record, as `run` and `audit show` print it.
    #[arg(value_parser = record)]
    record: u64,

    /// A log, a run's directory, or `latest`.
    #[arg(long, default_value = "latest")]
    run: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A number, with or without `#` before it.
fn record(text: &str) -> Result<u64, String> {
    text.trim_start_matches('#').parse().map_err(|_| "a record has a number, like 17".to_owned())
}

impl Why {
    /// Prints the account.
    pub(crate) fn run(self) -> Result<(), AuditError> {
        let found = Found::find(self.run)?;
        let account = Account::find(&found.bytes, self.record).map_err(|why| {
            AuditError::Untold { told: format!("`{}`: {why}", shown(&found.path)) }
        })?;
        let approved = Bound::of(&found.bytes);
        let lacks = approved.as_ref().and_then(|bound| bound.lacks(&account));
        let written = bound::written(&found.bytes, &account);
        let text = if self.json {
            let advice = explain::code(account.code());
            output::json(&json!({
                "decision": object(&account.decision),
                "gates": account.gates().map(Finding::name),
                "compartments": compartments(account.decision.secrecy),
                "origins": account.origins.iter().map(object).collect::<Vec<_>>(),
                "answer": account.answer.as_ref().map(object),
                "outcome": account.outcome.as_ref().map(object),
                "arguments": account.arguments.iter().map(argument).collect::<Vec<_>>(),
                "cause": account.cause.as_ref().map(object),
                "unknown": account.is_unknown(),
                "why": advice.map(|advice| advice.why),
                "to_pass": advice.map(|advice| advice.remedy),
                "ways": account.ways(),
                "approval": approved.map(|bound| bound.approval),
                "lacks": lacks,
                "written": written,
            }))
        } else {
            let mut lines = account.lines();
            lines.extend(written.map(|file| {
                let file = file.get("file").and_then(Value::as_str).unwrap_or_default();
                format!("written  by you beforehand, in {}", render::line(file, 200))
            }));
            lines.extend(approved.map(|bound| format!("bound by {}", bound.told())));
            lines.extend(lacks.map(|lacks| format!("lacks    {lacks}")));
            lines.join("\n")
        };
        output::say(&text).map_err(|why| AuditError::Output { why })
    }
}

fn argument(source: &Source<'_>) -> Value {
    let held = source.held.iter();
    json!({
        "name": source.name,
        "value": source.value,
        "typed": source.typed.as_ref().map(|span| [span.start, span.end]),
        "held": held.map(|held| json!({"value": held.value, "record": held.record})).collect::<Vec<_>>(),
    })
}
