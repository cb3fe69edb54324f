//! `synapse redteam`: attacks and everyday work, played through the real door
//!
//! # Not here
//! Cases, and how they are tried (`synapse-redteam`).

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use synapse_host::render;
use synapse_redteam::{Case, Outcome, corpus, parse, work};

use crate::output;

/// Attacks the door, and counts what it permits and when a human is asked.
///
/// Each attack is a script: the agent is taken to be persuaded of everything from
/// the first bytes on that carry the injection, and its calls are made in every
/// order that helps the attacker. Nothing is touched but a world in memory.
/// Everyday work is played beside it, to see when the human would be asked.
///
/// Exit codes: 0 nothing was permitted and nobody was asked, 1 otherwise.
#[derive(clap::Args)]
pub(crate) struct Redteam {
    /// `own` for what ships, or a folder of cases in TOML.
    #[arg(long, default_value = "own", value_name = "own|FOLDER")]
    corpus: PathBuf,
    /// Only cases whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Print one JSON object a case, then one with the counts.
    #[arg(long)]
    json: bool,
    /// Tell each case once it was tried.
    #[arg(long, short)]
    verbose: bool,
}

impl Redteam {
    /// Tries every case, and prints the table.
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let (attacks, work) = self.cases()?;
        if attacks.is_empty() && work.is_empty() {
            return Err("no case has such a name; leave `--filter` out to see all".to_owned());
        }
        let lively = !self.json && !self.verbose && io::stderr().is_terminal();
        let mut told = |number: usize, all: usize, trial: &synapse_redteam::Trial| {
            if self.verbose && !self.json {
                let outcome = match &trial.outcome {
                    Outcome::Stopped(gate) => format!("stopped by gate {gate}"),
                    Outcome::Permitted(_) => "PERMITTED".to_owned(),
                    Outcome::Done => "done".to_owned(),
                    Outcome::Interrupted(_) => "interrupted".to_owned(),
                    Outcome::Broken(_) => "BROKEN".to_owned(),
                };
                eprintln!("{} ({} orders): {outcome}", shown(&trial.case), trial.orders);
            } else if lively {
                eprint!("\r{number} of {all}");
                if number == all {
                    eprint!("\r\x1b[K");
                }
                // A screen that is gone is no reason to end.
                let _ = io::stderr().flush();
            }
        };
        let report = synapse_redteam::run(&attacks, &work, &mut told)?;
        let mut out = Vec::new();
        let wrote = if self.json { report.json(&mut out) } else { report.table(&mut out) };
        wrote
            .and_then(|()| io::stdout().lock().write_all(&out))
            .or_else(|why| output::told(&why).map_or(Ok(()), Err))?;
        let counts = report.counts();
        let good = counts.permitted + counts.asked + counts.broken == 0;
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn cases(&self) -> Result<(Vec<Case>, Vec<Case>), String> {
        let (mut attacks, mut work) = if self.corpus == Path::new("own") {
            let told = |why: synapse_redteam::BadCase| why.to_string();
            (corpus().map_err(told)?, work().map_err(told)?)
        } else {
            folder(&self.corpus)?.into_iter().partition(|case| case.goal.is_some())
        };
        let wanted = self.filter.as_deref().unwrap_or_default();
        attacks.retain(|case| case.name.contains(wanted));
        work.retain(|case| case.name.contains(wanted));
        Ok((attacks, work))
    }
}

/// The cases of a person's own folder, by name.
fn folder(path: &Path) -> Result<Vec<Case>, String> {
    let why = |path: &Path, why: &io::Error| {
        format!("{}: {why}\ngive a folder of cases, or `own`", shown(&path.to_string_lossy()))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| why(path, &error))? {
        let file = entry.map_err(|error| why(path, &error))?.path();
        if file.extension().is_some_and(|extension| extension == "toml") {
            files.push(file);
        }
    }
    files.sort();
    files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(file).map_err(|error| why(file, &error))?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            parse(&name, &text).map_err(|bad| shown(&bad.to_string()))
        })
        .collect()
}

fn shown(text: &str) -> String {
    render::line(text.as_bytes(), 2000)
}
