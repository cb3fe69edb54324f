//! `synapse sessions`: what runs said, and going on with it
//!
//! # Not here
//! How a session is kept (`synapse_host::session`). Running (`run`).

use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use synapse_host::session::{FILE, Holding, Kept, Said, What};
use synapse_host::{log, render};
use synapse_kernel::session::Author;
use synapse_primitives::rest::Rest;
use synapse_primitives::rest::format::{names, word};

use crate::{audit, output, run};

/// Lists and shows what runs said, and goes on with it.
///
/// At the end of each of its turns a run keeps what was said and what is held, with
/// its labels. Another run can go on from there: it begins with a new line, and reads
/// of the rest only what it releases.
#[derive(clap::Args)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    what: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(List),
    Show(Show),
    Resume(Box<Resume>),
}

/// Lists the runs that have a session, the oldest first.
///
/// Exit codes: 0 listed, also if there is none; 1 failed; 2 the command line is wrong.
#[derive(clap::Args)]
struct List {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Shows what was said and what is held, with the labels.
///
/// Exit codes: 0 shown; 1 there is no session, or it is not as it was written; 2 the
/// command line is wrong.
#[derive(clap::Args)]
struct Show {
    /// The name of a run, its directory, or `latest`.
    run: PathBuf,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Begins a run that goes on from another one.
///
/// It has the same agent, grant and folders unless others are given. What was said
/// keeps its labels, what is held its numbers; lines of earlier runs give no leave
/// for anything that is done now.
///
/// Exit codes: 0 the agent answered, the others as of `run`.
#[derive(clap::Args)]
struct Resume {
    /// The name of a run, its directory, or `latest`.
    run: PathBuf,

    /// Go on from the end of the turn of this line, the first being 1, and leave out what
    /// came later; the run itself stays as it is.
    #[arg(long, value_name = "LINE", value_parser = clap::value_parser!(u32).range(1..))]
    after: Option<u32>,

    /// Its next line.
    #[arg(default_value = "", required_unless_present = "lines")]
    line: String,

    #[command(flatten)]
    manner: run::Manner,
}

impl Sessions {
    /// Does what was asked for.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        match self.what {
            Command::List(List { json }) => list(json),
            Command::Show(Show { run, json }) => show(&load(&find(run)?)?, json),
            Command::Resume(resume) => {
                let Resume { run, after, line, mut manner } = *resume;
                let mut kept = load(&find(run)?)?;
                if let Some(after) = after {
                    let (all, lines) = (typed(&kept).len(), after.try_into().unwrap_or(usize::MAX));
                    kept = kept.cut(lines).ok_or_else(|| {
                        format!(
                            "the run has no line {after}, but {all}; `synapse sessions show` shows \
                             them"
                        )
                    })?;
                }
                if manner.dirs.is_empty() {
                    manner.dirs.clone_from(&kept.manner.mounts);
                }
                manner.grant = manner.grant.or_else(|| kept.manner.grant.clone());
                manner.run(run::of(&kept)?, line, Some(kept))
            }
        }
    }
}

/// The directory of what a person calls a run.
fn find(run: PathBuf) -> Result<PathBuf, String> {
    let run = audit::named(run).map_err(|why| why.to_string())?;
    if run.is_dir() { Ok(run) } else { Ok(runs()?.join(run)) }
}

fn runs() -> Result<PathBuf, String> {
    log::runs_dir().map_err(|why| format!("no run can be found: {why}"))
}

fn load(dir: &Path) -> Result<Kept, String> {
    let state = log::state_dir().map_err(|why| format!("no run can be found: {why}"))?;
    let dir = fs::canonicalize(dir)
        .map_err(|why| format!("{} cannot be opened: {why}\ncheck the run's name", path(dir)))?;
    Kept::load(&state, &dir).map_err(|why| format!("{}: {why}", path(&dir)))
}

fn list(json: bool) -> Result<ExitCode, String> {
    let runs = runs()?;
    let mut dirs = Vec::new();
    match fs::read_dir(&runs) {
        Ok(entries) => dirs.extend(entries.flatten().map(|entry| entry.path())),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {}
        Err(why) => {
            return Err(format!("{} cannot be listed: {why}\ncheck its permissions", path(&runs)));
        }
    }
    dirs.retain(|dir| dir.join(FILE).exists());
    dirs.sort();
    if dirs.is_empty() && !json {
        tell!("no run has a session");
    }
    let told = dirs.iter().map(|dir| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        match (load(dir), json) {
            (Ok(kept), true) => output::json(&summary(&kept)),
            (Ok(kept), false) => line(&kept),
            (Err(why), true) => output::json(&json!({"run": name, "error": why})),
            (Err(why), false) => why,
        }
    });
    print(told)
}

fn line(kept: &Kept) -> String {
    let lines = typed(kept);
    let plural = if lines.len() == 1 { "line" } else { "lines" };
    format!(
        "{}  {} {plural}  {}: {}",
        render::line(&kept.run, WIDTH),
        lines.len(),
        render::line(kept.manner.agent.name().as_bytes(), WIDTH),
        render::line(lines.last().copied().unwrap_or_default(), WIDTH)
    )
}

fn summary(kept: &Kept) -> Value {
    json!({
        "run": kept.run,
        "agent": kept.manner.agent.name(),
        "lines": typed(kept),
        "held": kept.values.len(),
    })
}

fn typed(kept: &Kept) -> Vec<&str> {
    let human = kept.messages.iter().filter(|said| said.from == Author::Human);
    human
        .filter_map(|said| match &said.what {
            What::Clear(text, _) => Some(text.as_str()),
            What::Held(_) => None,
        })
        .collect()
}

fn show(kept: &Kept, json: bool) -> Result<ExitCode, String> {
    print(kept.messages.iter().map(|said| if json { object(kept, said) } else { text(kept, said) }))
}

fn text(kept: &Kept, Said { from, what }: &Said) -> String {
    let from = from.name();
    match what {
        What::Clear(text, rest) => {
            format!("{from}, {}:\n{}", label(rest), render::block(text).trim_end_matches('\n'))
        }
        What::Held(number) => {
            let Some(holding) = holding(kept, *number) else { return format!("{from}, held") };
            let head = format!("{from}, held value {number}, {}", label(&holding.rest));
            match (&holding.bytes, holding.primitive) {
                (Err(fault), _) => format!("{head}: fault {}", fault.number()),
                (Ok(bytes), Some(primitive)) => {
                    format!("{head}: {} bytes of {}", bytes.len(), primitive.row().name)
                }
                (Ok(answer), None) => {
                    format!("{head}:\n{}", render::block(answer).trim_end_matches('\n'))
                }
            }
        }
    }
}

fn object(kept: &Kept, Said { from, what }: &Said) -> String {
    let label = |rest: &Rest| json!({"integrity": word(rest.integrity), "compartments": names(&rest.names)});
    output::json(&match what {
        What::Clear(text, rest) => json!({"from": from.name(), "text": text, "label": label(rest)}),
        What::Held(number) => {
            let held = holding(kept, *number);
            json!({
                "from": from.name(),
                "value": number,
                "label": held.map(|holding| label(&holding.rest)),
                "primitive": held.and_then(|held| held.primitive).map(|held| held.row().name),
                "bytes": held.and_then(|held| held.bytes.as_ref().ok()).map(Vec::len),
                "fault": held.and_then(|held| held.bytes.as_ref().err()).map(|fault| fault.number()),
            })
        }
    })
}

fn holding(kept: &Kept, number: u64) -> Option<&Holding> {
    kept.values.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

fn label(rest: &Rest) -> String {
    let names: Vec<String> = rest.names.iter().map(|name| render::line(name, WIDTH)).collect();
    let names = if names.is_empty() { "no compartment".to_owned() } else { names.join(", ") };
    format!("{} ({names})", word(rest.integrity))
}

fn path(path: &Path) -> String {
    render::line(path.as_os_str().as_encoded_bytes(), WIDTH)
}

fn print(mut lines: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    match lines.try_for_each(|line| output::say(&line)).err().and_then(|why| output::told(&why)) {
        Some(why) => Err(why),
        None => Ok(ExitCode::SUCCESS),
    }
}

const WIDTH: usize = 120;
