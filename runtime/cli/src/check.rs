//! `synapse check`: what each gate says of a sentence, with nothing executed
//!
//! # Not here
//! The gates (`synapse_boundary::examine`). What a call came to (`why`).

use serde_json::{Value, json};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use synapse_abi::code::Refusal;
use synapse_abi::limits;
use synapse_boundary::url::Url;
use synapse_boundary::{
    Facts, Findings, Held, Integrity, Label, Mark, Names, NormalPath, Origin, Request, Secrecy,
    Table, Warrants, examine,
};
use synapse_kernel::grant::Grant;
use synapse_kernel::{explain, words};
use synapse_reply::code;

use crate::audit::shown;
use crate::output;

/// Says what each gate would answer to a sentence, under a grant. Nothing is
/// executed, recorded or asked.
///
/// Each gate is asked by itself, twice: as if nothing from outside had been
/// read, and as if something had. A held value in the sentence does not exist
/// here, nor does a handle.
///
/// Exit codes: 0 each gate passes it in both cases, 1 failed, 2 the command line
/// is wrong, 6 a gate refuses it.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The sentence; `-` reads it from standard input.
    sentence: String,

    /// The grant, or a package's folder that has one.
    #[arg(long, value_name = "FILE")]
    grant: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Examines the sentence; whether every gate passes it.
    pub(crate) fn run(self) -> Result<bool, String> {
        let grant = read_grant(&self.grant)?;
        let sentence = if self.sentence == "-" { read_sentence()? } else { self.sentence.into() };
        let cases = [("before reading", Integrity::User), ("after reading", Integrity::Ingested)];
        let findings = cases.map(|(_, integrity)| find(&grant, &sentence, integrity));
        let text = if self.json {
            let case = |findings: &Findings| Value::Array(findings.gates.map(object).into());
            let [before, after] = &findings;
            output::json(&json!({ "before_reading": case(before), "after_reading": case(after) }))
        } else {
            let mut lines = vec![format!("{:<11}{:<34}{}", "gate", cases[0].0, cases[1].0)];
            let [before, after] = findings.map(|findings| findings.gates.map(word));
            for (name, (before, after)) in
                words::GATES.iter().skip(1).zip(before.iter().zip(&after))
            {
                lines.push(format!("{name:<11}{before:<34}{after}"));
            }
            for refusal in refusals(&findings) {
                let advice = explain::refusal(refusal);
                let name = code::name(refusal);
                lines.push(format!("\n{name}: {}\nto pass: {}", advice.why, advice.remedy));
            }
            lines.join("\n")
        };
        output::say(&text).or_else(|why| output::told(&why).map_or(Ok(()), Err))?;
        Ok(refusals(&findings).is_empty())
    }
}

/// What each gate says of a sentence, in a world that holds nothing.
pub(crate) fn find(grant: &Grant, sentence: &[u8], integrity: Integrity) -> Findings {
    let secrecy = match integrity {
        Integrity::System | Integrity::User => Secrecy::PROMPT,
        Integrity::Ingested => Secrecy::PROMPT.join(Secrecy::FILES),
    };
    let mark = Mark::new(Label::new(integrity, secrecy, Origin::NONE));
    let (table, scope) = (Table::new(grant.granted), &grant.scope);
    let request = Request {
        task: 0,
        mark: &mark,
        table: &table,
        scope,
        calls_left: grant.calls,
        warrants: &Warrants::default(),
        lines: &[],
    };
    examine(request, &Nothing, sentence)
}

/// Each refusal once, in the order of the gates.
fn refusals(findings: &[Findings]) -> Vec<Refusal> {
    let mut found = Vec::new();
    let all = findings.iter().flat_map(|findings| findings.gates).flatten();
    for refusal in all.filter_map(Result::err) {
        if !found.contains(&refusal) {
            found.push(refusal);
        }
    }
    found.sort_by_key(|refusal| refusal.number());
    found
}

fn word(finding: Option<Result<(), Refusal>>) -> String {
    match finding {
        None => "-".to_owned(),
        Some(Ok(())) => "passed".to_owned(),
        Some(Err(refusal)) => format!("{} [{}]", code::name(refusal), refusal.number()),
    }
}

fn object(finding: Option<Result<(), Refusal>>) -> Value {
    match finding {
        None => Value::Null,
        Some(Ok(())) => json!({ "passed": true }),
        Some(Err(refusal)) => {
            json!({ "passed": false, "code": refusal.number(), "name": code::name(refusal) })
        }
    }
}

fn read_grant(path: &Path) -> Result<Grant, String> {
    let path = if path.is_dir() { path.join("grant.toml") } else { path.to_owned() };
    let text = fs::read_to_string(&path).map_err(|why| {
        format!("the grant `{}` could not be read: {why}\nname a grant file", shown(&path))
    })?;
    Grant::parse(&text).map_err(|why| format!("{why}"))
}

/// Standard input, to one byte past what a sentence may have, less the line's end.
fn read_sentence() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limits::SENTENCE).unwrap_or(u64::MAX).saturating_add(2);
    let mut input = io::stdin().lock().take(most);
    input.read_to_end(&mut bytes).map_err(|why| {
        format!("standard input could not be read: {why}\ngive the sentence as an argument")
    })?;
    Ok(bytes.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(bytes))
}

/// Seconds of a day.
const DAY: u64 = 86_400;

/// A world that holds nothing and has room, today.
struct Nothing;

impl Names for Nothing {}

impl Facts for Nothing {
    fn held(&self, _: u64) -> Option<Held<'_>> {
        None
    }
    fn journal_room(&self) -> u64 {
        u64::MAX
    }
    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }
    fn serves(&self, _: &str, _: &Url<'_>) -> bool {
        // The grant is asked, not this machine.
        true
    }

    fn today(&self) -> Option<i64> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs() / DAY).ok()
    }
}
