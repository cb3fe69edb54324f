//! `synapse ps`: the runs that go on
//!
//! # Not here
//! Who counts as alive (`synapse_host::locks`). Asking a run (`synapse_host::control`).

use serde_json::json;
use std::process::ExitCode;
use synapse_host::control::{self, Request};
use synapse_host::locks::{self, Holder, Purpose};
use synapse_host::{log, render};
use synapse_kernel::words;

use crate::output;

/// Lists the runs that go on, the oldest first, and undoing of runs.
///
/// Exit codes: 0 listed, also if there is none; 1 failed; 2 the command line is
/// wrong.
#[derive(clap::Args)]
pub(crate) struct Ps {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Ps {
    /// Asks each and prints a line about it.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let holders = live()?;
        if holders.is_empty() && !self.json {
            tell!("no run goes on");
        }
        for holder in holders {
            let told = if self.json { output::json(&object(&holder)?) } else { line(&holder)? };
            if let Err(why) = output::say(&told) {
                return output::told(&why).map_or(Ok(ExitCode::SUCCESS), Err);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What goes on now.
pub(crate) fn live() -> Result<Vec<Holder>, String> {
    let state = log::state_dir().map_err(|why| format!("no run can be found: {why}"))?;
    locks::live(&state).map_err(|why| why.to_string())
}

fn line(holder: &Holder) -> Result<String, String> {
    let show = |text: &str| render::line(text.as_bytes(), WIDTH);
    let (run, pid, since) = (show(&holder.run), holder.pid, log::date(holder.since));
    let what = match (holder.purpose, asked(holder)?) {
        (Purpose::Undo, _) => "is being undone".to_owned(),
        (Purpose::Label, _) => "of a file is being changed".to_owned(),
        (Purpose::Run, Err(why)) => format!("does not answer: {why}"),
        (Purpose::Run, Ok(status)) => {
            let plural = if status.calls == 1 { "call" } else { "calls" };
            let calls = words::grouped(status.calls);
            let ending = if status.cancelled { ", ending" } else { "" };
            let asks = if status.question.is_some() { ", waits for `synapse confirm`" } else { "" };
            format!(
                "{calls} {plural}{ending}{asks}, {}: {}",
                show(&status.agent),
                show(&status.task)
            )
        }
    };
    Ok(format!("{run}  process {pid}  since {since}  {what}"))
}

fn object(holder: &Holder) -> Result<serde_json::Value, String> {
    let status = asked(holder)?;
    let folders: Vec<_> = holder
        .folders
        .iter()
        .map(|folder| json!({"host": folder.host, "read_only": folder.read_only}))
        .collect();
    Ok(json!({
        "run": holder.run,
        "purpose": holder.purpose.name(),
        "pid": holder.pid,
        "since": holder.since,
        "folders": folders,
        "agent": status.as_ref().ok().map(|status| &status.agent),
        "task": status.as_ref().ok().map(|status| &status.task),
        "calls": status.as_ref().ok().map(|status| status.calls),
        "cancelled": status.as_ref().ok().map(|status| status.cancelled),
        "question": status.as_ref().ok().and_then(|status| status.question),
    }))
}

/// What the run itself says; the outer error is that nobody can be asked.
fn asked(holder: &Holder) -> Result<std::io::Result<control::Status>, String> {
    let runs = log::runs_dir().map_err(|why| format!("no run can be found: {why}"))?;
    Ok(control::ask(&runs.join(&holder.run), Request::Status))
}

const WIDTH: usize = 80;
