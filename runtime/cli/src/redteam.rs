//! `synapse redteam`: attacks and everyday work, played through the real door
//!
//! # Not here
//! Cases, and how they are tried (`synapse-redteam`).

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use synapse_host::render;
use synapse_redteam::{Case, Outcome, Public, Report, census, corpus, page, parse, schema, work};

use crate::output;

/// Attacks the door, and counts what it permits and when a human is asked.
///
/// Each attack is a script: the agent is taken to be persuaded of everything from
/// the first bytes on that carry the injection, and its calls are made in every
/// order that helps the attacker. Nothing is touched but a world in memory.
/// Everyday work is played beside it, to see when the human would be asked.
///
/// Exit codes: 0 nothing was permitted and nobody was asked more than is known, 1
/// otherwise.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Redteam {
    /// `own` for what was written for this door, `agentdojo`, `injecagent`, `all`, or
    /// a folder of cases in TOML.
    #[arg(long, default_value = "own", value_name = "NAME|FOLDER")]
    corpus: PathBuf,
    /// Of `agentdojo`, only the attacks that its first version had.
    #[arg(long, value_name = "v1|v1.2.2", default_value = "v1.2.2", value_parser = ["v1", "v1.2.2"])]
    benchmark: String,
    /// Of `agentdojo`, the texts of the benchmark itself, as `derive_agentdojo.py --text`
    /// writes them; made-up words of the same shape otherwise.
    #[arg(long, value_name = "FILE")]
    with_text: Option<PathBuf>,
    /// Only cases whose name holds this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Search for what gets through besides, in so many plays; `all` does in 2,000.
    #[arg(long, value_name = "PLAYS")]
    search: Option<usize>,
    /// Where the search's numbers come from.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// Print what is enumerated from the registry instead of played: words, origins and
    /// what a child may have.
    #[arg(long, exclusive = true)]
    census: bool,
    /// Print the JSON Schema of a case, and nothing else.
    #[arg(long, exclusive = true)]
    schema: bool,
    /// Print one JSON object a case, then one with the counts.
    #[arg(long)]
    json: bool,
    /// Write a page with tables, a plot and every case to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Tell each case once it was tried.
    #[arg(long, short)]
    verbose: bool,
}

impl Redteam {
    /// Tries every case, and prints the table.
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        if self.schema {
            let said = output::say(&schema());
            return said
                .or_else(|why| output::told(&why).map_or(Ok(()), Err))
                .map(|()| ExitCode::SUCCESS);
        }
        if self.census {
            let lines = census()?;
            let wrong = lines.iter().any(|line| line.must != line.came);
            let line = |line: &synapse_redteam::Line| {
                let mark = if line.must == line.came { "" } else { "   MUST BE " };
                let must = if mark.is_empty() { "" } else { line.must };
                format!("{:<12} {:<28} {}{mark}{must}", line.census, line.what, line.came)
            };
            let text: Vec<String> = lines.iter().map(line).collect();
            output::say(&text.join("\n")).or_else(|why| output::told(&why).map_or(Ok(()), Err))?;
            return Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        let is = |name: &str| self.corpus == Path::new(name);
        let mut out = Vec::new();
        let mut sections = Vec::new();
        let (mut good, mut played) = (true, 0);
        if !is("agentdojo") && !is("injecagent") {
            let (attacks, work) = self.cases()?;
            played += attacks.len() + work.len();
            if played > 0 {
                let report = self.own(&attacks, &work)?;
                let wrote = if self.json { report.json(&mut out) } else { report.table(&mut out) };
                wrote.map_err(|why| why.to_string())?;
                let counts = report.counts();
                good &= counts.permitted + counts.broken == 0
                    && (counts.asked == 0 || counts.asked <= self.known("own")?);
                sections.push(report.section());
            }
        }
        let texts = self.with_text.as_ref().map(|path| {
            fs::read_to_string(path).map_err(|why| {
                let path = shown(&path.to_string_lossy());
                format!("{path}: {why}\ngive what `derive_agentdojo.py --text FILE` wrote")
            })
        });
        let texts = texts.transpose()?;
        let agentdojo =
            if self.benchmark == "v1" { Public::AgentDojoFirst } else { Public::AgentDojo };
        for (name, public) in [("agentdojo", agentdojo), ("injecagent", Public::InjecAgent)] {
            if !is(name) && !is("all") {
                continue;
            }
            let wanted = self.filter.as_deref().unwrap_or_default();
            let lively = !self.json && io::stderr().is_terminal();
            let texts = texts.as_deref().filter(|_| name == "agentdojo");
            let mut told = |number: usize| {
                if lively && number.is_multiple_of(25) {
                    tell_part!("\r\x1b[K{name}: {number} cases");
                }
            };
            let bench =
                synapse_redteam::play(public, texts, &|case| case.contains(wanted), &mut told)?;
            if lively {
                tell_part!("\r\x1b[K");
            }
            played += bench.cases.len() + bench.jobs.len();
            let wrote = if self.json { bench.json(&mut out) } else { bench.table(&mut out) };
            wrote.map_err(|why| why.to_string())?;
            let sums = bench.sums();
            good &= sums.permitted + sums.broken == 0 && sums.interrupted <= self.known(name)?;
            sections.push(bench.section());
        }
        if let Some(budget) = self.search.or_else(|| is("all").then_some(SEARCH)) {
            let found = synapse_redteam::search(self.seed, budget)?;
            let wrote = if self.json { found.json(&mut out) } else { found.table(&mut out) };
            wrote.map_err(|why| why.to_string())?;
            good &= found.finds.is_empty();
        }
        if played == 0 {
            return Err("no case has such a name; leave `--filter` out to see all".to_owned());
        }
        if !self.json {
            for section in &sections {
                let lines = section.rows.lines();
                let _ = writeln!(out, "\n{}\n{}", section.title, lines.join("\n"));
            }
        }
        io::stdout()
            .lock()
            .write_all(&out)
            .or_else(|why| output::told(&why).map_or(Ok(()), Err))?;
        if let Some(path) = &self.html {
            fs::write(path, page(&sections)).map_err(|why| {
                format!(
                    "{}: {why}\ngive a file that can be written",
                    shown(&path.to_string_lossy())
                )
            })?;
        }
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Plays cases of our own form.
    fn own(&self, attacks: &[Case], work: &[Case]) -> Result<Report, String> {
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
                tell!("{} ({} orders): {outcome}", shown(&trial.case), trial.orders);
            } else if lively {
                tell_part!("\r{number} of {all}");
                if number == all {
                    tell_part!("\r\x1b[K");
                }
            }
        };
        synapse_redteam::run(attacks, work, &mut told)
    }

    /// How many pieces of work of a corpus are known to be interrupted.
    fn known(&self, corpus: &str) -> Result<usize, String> {
        let is_ours = !self.corpus.is_dir();
        if is_ours { synapse_redteam::baseline(corpus) } else { Ok(0) }
    }

    fn cases(&self) -> Result<(Vec<Case>, Vec<Case>), String> {
        let (mut attacks, mut work) =
            if ["own", "all"].iter().any(|name| self.corpus == Path::new(name)) {
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

/// Plays of a search where nobody says how many.
const SEARCH: usize = 2000;

/// The cases of a person's own folder, by name.
fn folder(path: &Path) -> Result<Vec<Case>, String> {
    let why = |path: &Path, why: &io::Error| {
        format!(
            "{}: {why}\ngive a folder of cases, or one of `own`, `agentdojo`, `injecagent` and `all`",
            shown(&path.to_string_lossy())
        )
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
