//! `synapse undo`: shows what would be put back, asks, and puts it back
//!
//! # Not here
//! How a change is undone (`synapse_host::undo`).

use serde_json::{Value, json};
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use synapse_host::render;
use synapse_host::undo::{Comes, Lasting, Outcome, Past, Step, Which};
use synapse_kernel::words;
use synapse_primitives::disk::Undone;
use synapse_primitives::journal::Operation;

use crate::{audit, output};

/// Puts back what a run changed in its folders, the last change first.
///
/// Shows what would come of it and asks. What you changed since stays as it is,
/// and what was there before is put beside it. Nothing is thrown away: what an
/// undo takes out of a folder is kept in the run's journal. If it is interrupted,
/// the same command goes on where it ended.
///
/// Exit codes: 0 undone, or nothing to undo; 1 failed or declined; 2 the command
/// line is wrong; 4 something could not be undone, which is told.
#[derive(clap::Args)]
pub(crate) struct Undo {
    /// A run's directory or `latest`; with #N, only what record N did. N alone is
    /// a record of the latest run.
    #[arg(value_name = "RUN[#N]|N", default_value = "latest")]
    what: String,

    /// Do not ask; needed where nobody can be asked.
    #[arg(long)]
    yes: bool,

    /// Show what would come of it, and change nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Print one JSON object a line: each step, then the summary.
    #[arg(long)]
    json: bool,
}

impl Undo {
    /// Shows, asks and undoes.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let (run, which) = parse(&self.what);
        let run_dir = audit::named(run).map_err(|why| why.to_string())?;
        let past = Past::open(&run_dir).map_err(|why| why.to_string())?;
        let plan = past.look(which);
        let count = plan.iter().filter(|step| is_told(step)).count();
        if !self.json || self.dry_run {
            for step in &plan {
                self.tell(step)?;
            }
        }
        let lasting: &[Lasting] = if which == Which::All { past.lasting() } else { &[] };
        for last in lasting {
            self.lasts(*last)?;
        }
        if count == 0 || self.dry_run {
            return self.done(&plan, lasting);
        }
        if !self.yes && !ask(count)? {
            tell!("nothing was undone");
            return Ok(ExitCode::FAILURE);
        }
        let (mut taken, mut told) = (Vec::new(), Ok(()));
        past.undo(which, |step| {
            // What differs from the plan, or was not in it, is news.
            let news = self.json || !plan.contains(step);
            if news && told.is_ok() {
                told = self.tell(step);
            }
            taken.push(step.clone());
        });
        told?;
        self.done(&taken, lasting)
    }

    fn tell(&self, step: &Step) -> Result<(), String> {
        if self.json {
            return say(&output::json(&object(step)));
        }
        if is_told(step) { say(&line(step)) } else { Ok(()) }
    }

    fn lasts(&self, last: Lasting) -> Result<(), String> {
        let (record, name) = (last.record, last.primitive.row().name);
        let known = match last.outcome {
            Outcome::Done => "was done",
            Outcome::Unknown => "may have been done: its outcome is not recorded",
        };
        if self.json {
            let object = json!({
                "type": "lasting", "record": record, "primitive": name,
                "outcome": if last.outcome == Outcome::Done { "done" } else { "unknown" },
            });
            return say(&output::json(&object));
        }
        say(&format!("#{record} {name} {known}, and cannot be undone: no journal holds it"))
    }

    fn done(&self, steps: &[Step], lasting: &[Lasting]) -> Result<ExitCode, String> {
        let undone = steps.iter().filter(|step| is_told(step) && !is_failure(step)).count();
        let failed = steps.iter().filter(|step| is_failure(step)).count();
        if self.json {
            let object = json!({
                "type": "summary", "undone": undone, "failed": failed,
                "lasting": lasting.len(), "dry_run": self.dry_run,
            });
            say(&output::json(&object))?;
        } else if undone + failed == 0 {
            say("there is nothing to undo")?;
        } else {
            let verb = if self.dry_run { "would be " } else { "" };
            say(&format!("{} {verb}undone, {failed} cannot be", words::grouped(undone)))?;
        }
        Ok(ExitCode::from(if failed + lasting.len() == 0 { 0 } else { PARTLY }))
    }
}

/// The run, and which part of it.
fn parse(what: &str) -> (PathBuf, Which) {
    let number = |text: &str| text.parse().ok().map(Which::Record);
    let latest = || PathBuf::from("latest");
    if let Some(record) = number(what) {
        return (latest(), record);
    }
    match what.rsplit_once('#').map(|(run, record)| (run, number(record))) {
        Some(("", Some(record))) => (latest(), record),
        Some((run, Some(record))) => (PathBuf::from(run), record),
        Some((_, None)) | None => (PathBuf::from(what), Which::All),
    }
}

/// Asks at the terminal. Anything but `yes` is no.
fn ask(count: usize) -> Result<bool, String> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err("nobody can be asked here: this is no terminal\n\
             add --yes to undo without being asked, or --dry-run to only look"
            .to_owned());
    }
    let plural = if count == 1 { "this change" } else { "these changes" };
    tell_part!("undo {plural}? yes or no: ");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|why| format!("the answer could not be read: {why}\ntry again"))?;
    Ok(answer.trim() == "yes")
}

/// What was undone before is not worth a line.
fn is_told(step: &Step) -> bool {
    step.comes != Comes::To(Undone::Nothing)
}

fn is_failure(step: &Step) -> bool {
    matches!(step.comes, Comes::NoFolder | Comes::Fault(_))
}

fn line(step: &Step) -> String {
    let path = render::line(&step.path, WIDTH);
    let to = step.to.as_ref().map(|to| render::line(to, WIDTH)).unwrap_or_default();
    let what = match step.operation {
        Operation::Make => format!("folders were made for {path}, and go again"),
        Operation::Create => format!("{path} was made, and is taken away"),
        Operation::Replace | Operation::Edit => format!("{path} is again as it was"),
        Operation::Append => format!("{path} ends again where it did"),
        Operation::Move => format!("{to} goes back to {path}"),
        Operation::Delete => format!("{path} comes back"),
    };
    let comes = match &step.comes {
        Comes::To(Undone::Restored | Undone::Nothing) => what,
        Comes::After(record) => format!("{what} (after #{record})"),
        Comes::To(Undone::Beside(beside)) => {
            let beside = render::line(beside, WIDTH);
            format!("{path} is another now and stays; what was there comes to {beside}")
        }
        Comes::To(Undone::Left) if step.operation == Operation::Move => {
            format!("{to} is not what was moved there, and stays")
        }
        Comes::To(Undone::Left) if step.operation == Operation::Make => {
            format!("folders were made for {path}, hold something else now, and stay")
        }
        Comes::To(Undone::Left) => format!("{path} was changed since, and stays"),
        Comes::NoFolder => {
            format!("{path} cannot be put back: its folder is gone or is another one")
        }
        Comes::Fault(fault) => {
            format!("{path} cannot be put back: {} [{}]", fault.name(), fault.number())
        }
    };
    format!("#{} {comes}", step.record)
}

fn object(step: &Step) -> Value {
    let (comes, beside, code) = match &step.comes {
        Comes::To(Undone::Restored) => ("restored", None, None),
        Comes::To(Undone::Beside(path)) => ("beside", Some(path), None),
        Comes::To(Undone::Left) => ("left", None, None),
        Comes::To(Undone::Nothing) => ("nothing", None, None),
        Comes::After(_) => ("after", None, None),
        Comes::NoFolder => ("no folder", None, None),
        Comes::Fault(fault) => ("failed", None, Some(fault.number())),
    };
    json!({
        "type": "step",
        "record": step.record,
        "operation": step.operation.name(),
        "path": step.path,
        "to": step.to,
        "comes": comes,
        "beside": beside,
        "after": if let Comes::After(record) = step.comes { Some(record) } else { None },
        "code": code,
    })
}

/// A reader that left stops no undo.
fn say(text: &str) -> Result<(), String> {
    output::say(text).or_else(|why| output::told(&why).map_or(Ok(()), Err))
}

const PARTLY: u8 = 4;
const WIDTH: usize = 160;

#[cfg(test)]
mod tests {
    use super::{line, parse};
    use std::path::PathBuf;
    use synapse_host::undo::{Comes, Step, Which};
    use synapse_primitives::disk::Undone;
    use synapse_primitives::journal::Operation;

    #[test]
    fn what_is_named_is_a_run_a_record_or_both() {
        for (what, run, which) in [
            ("latest", "latest", Which::All),
            ("12", "latest", Which::Record(12)),
            ("#12", "latest", Which::Record(12)),
            ("/runs/a#b", "/runs/a#b", Which::All),
            ("/runs/a#7", "/runs/a", Which::Record(7)),
        ] {
            assert_eq!(parse(what), (PathBuf::from(run), which), "{what}");
        }
    }

    #[test]
    fn a_step_is_one_line_and_shows_hidden_characters() {
        let step = |operation, comes| Step {
            record: 3,
            operation,
            path: "/data/a\u{202e}\n.md".to_owned(),
            to: Some("/data/b".to_owned()),
            comes,
        };
        let beside = Comes::To(Undone::Beside("/data/a (before record 3).md".to_owned()));
        assert_eq!(
            line(&step(Operation::Delete, beside)),
            "#3 /data/a\\u{202e}\\u{a}.md is another now and stays; \
             what was there comes to /data/a (before record 3).md"
        );
        assert_eq!(
            line(&step(Operation::Move, Comes::After(5))),
            "#3 /data/b goes back to /data/a\\u{202e}\\u{a}.md (after #5)"
        );
    }
}
