//! `synapse doctor`: what this machine has, what it lacks, and what to do
//!
//! # Not here
//! Changing anything: a folder is made by the run that first needs it.

mod board;
mod disk;
mod engines;

use serde_json::{Value, json};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use synapse_host::render;

use crate::output;

/// Checks what this machine has for running, building and booting agents.
///
/// Nothing is set up and nothing is kept: into the folders of `--dir` and the
/// folder of the state two empty files are written, exchanged and removed. Both
/// engines run one small agent that asks for the time of a clock that stands still.
///
/// Exit codes: 0 `synapse run` would work, 1 it would not, 2 the command line is
/// wrong.
#[derive(clap::Args)]
pub(crate) struct Doctor {
    /// A folder that an agent is to see; may be given more than once.
    #[arg(long = "dir", value_name = "FOLDER")]
    dirs: Vec<PathBuf>,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Checks everything, and says whether a run would work.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let mut checks = disk::state();
        checks.extend(self.dirs.iter().flat_map(|dir| disk::folder(dir)));
        checks.extend(engines::all());
        checks.extend([
            board::compiler(),
            board::emulator(),
            board::kvm(),
            board::keyring(),
            terminal(),
        ]);
        let well = checks.iter().all(|check| !check.stops_a_run());
        for check in &checks {
            let text =
                if self.json { output::json(&check.object()) } else { check.lines().join("\n") };
            output::say(&text).or_else(|why| output::told(&why).map_or(Ok(()), Err))?;
        }
        if !self.json {
            let end =
                if well { "`synapse run` would work" } else { "`synapse run` would not work" };
            output::say(end).or_else(|why| output::told(&why).map_or(Ok(()), Err))?;
        }
        Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// One thing that a machine may have.
struct Check {
    /// What it is, in a word or two.
    name: &'static str,
    /// What was found, or why it was not.
    found: Result<String, String>,
    need: Need,
    /// Why it matters.
    why: &'static str,
    /// What to do where it is missing.
    todo: &'static str,
}

/// What does not work without it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// `synapse run`.
    Run,
    /// Something else, which `why` names.
    More,
}

impl Check {
    fn stops_a_run(&self) -> bool {
        self.need == Need::Run && self.found.is_err()
    }

    /// One line where it is there; where not, also why it matters and what to do.
    fn lines(&self) -> Vec<String> {
        let (word, found) = match &self.found {
            Ok(found) => ("ok", found),
            Err(why) => ("missing", why),
        };
        let found = render::escape(found.as_bytes());
        let mut lines = vec![format!("{word:<7}  {:<12}  {found}", self.name)];
        if self.found.is_err() {
            lines.push(format!("         matters: {}", self.why));
            lines.push(format!("         do: {}", self.todo));
        }
        lines
    }

    fn object(&self) -> Value {
        json!({
            "check": self.name,
            "ok": self.found.is_ok(),
            "needed": self.need == Need::Run,
            "found": self.found.as_ref().unwrap_or_else(|why| why),
            "why": self.why,
            "to_do": self.todo,
        })
    }
}

fn terminal() -> Check {
    let found = if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Ok("a person can be shown calls and can answer".to_owned())
    } else {
        Err("standard input or standard error is no terminal".to_owned())
    };
    Check {
        name: "terminal",
        found,
        need: Need::More,
        why: "only a person at a terminal can be asked; without one, what needs an answer is refused",
        todo: "start it in a terminal where you want to be asked",
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, Need};

    #[test]
    fn what_is_missing_says_why_it_matters_and_what_to_do() {
        let check = |found, need| Check { name: "thing", found, need, why: "w", todo: "t" };
        let there = check(Ok("a\u{1b}b".to_owned()), Need::Run);
        assert_eq!(there.lines(), ["ok       thing         a\\u{1b}b"]);
        assert!(!there.stops_a_run());
        let missing = check(Err("none".to_owned()), Need::Run);
        assert_eq!(
            missing.lines(),
            ["missing  thing         none", "         matters: w", "         do: t"]
        );
        assert!(missing.stops_a_run());
        assert!(!check(Err("none".to_owned()), Need::More).stops_a_run());
    }
}
