//! `synapse list`, `show`, `revoke` and `remove`: what is installed, and taking it back
//!
//! # Not here
//! Installing (`install`).

use core::time::Duration;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;
use synapse_host::control::{self, Request};
use synapse_host::locks::Purpose;
use synapse_host::package::{Consent, Installed};
use synapse_host::{log, render};

use crate::{install, output, ps};

/// Lists the installed packages.
///
/// Exit codes: 0 listed, also if there is none; 1 failed; 2 the command line is
/// wrong.
#[derive(clap::Args)]
pub(crate) struct List {
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Shows what an installed package may do, and what of what it asks for it may not.
///
/// Exit codes: 0 shown, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Show {
    /// Its name.
    package: String,
    /// Print one JSON object, with the grant file in it.
    #[arg(long)]
    json: bool,
}

/// Takes back a part of what an installed package may do.
///
/// It holds for every run from now on. Runs of the package that go on have what they
/// began with, so they are ended, as by `synapse cancel`.
///
/// Exit codes: 0 taken back, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Revoke {
    /// Its name.
    package: String,
    /// What it is not to have any more: a primitive, a path, a host or a tool, as
    /// `synapse show` names it.
    #[arg(required = true)]
    parts: Vec<String>,
}

/// Removes an installed package, and ends its runs.
///
/// Its publisher's key stays known.
///
/// Exit codes: 0 removed, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Remove {
    /// Its name.
    package: String,
}

impl List {
    /// Prints a line about each.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let store = install::store()?;
        let names = store.names().map_err(|why| why.to_string())?;
        if names.is_empty() && !self.json {
            tell!("no package is installed");
        }
        for name in names {
            let told = match (store.get(&name), self.json) {
                (Ok(Some(installed)), true) => output::json(&object(&installed)),
                (Ok(Some(installed)), false) => line(&installed),
                (Ok(None), _) => continue,
                (Err(why), true) => output::json(&json!({"name": name, "error": why.to_string()})),
                (Err(why), false) => format!("{name}: {}", why.to_string().replace('\n', "; ")),
            };
            if let Err(why) = output::say(&told) {
                return output::told(&why).map_or(Ok(ExitCode::SUCCESS), Err);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    /// Prints what was agreed to.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let installed = find(&self.package)?;
        let told = if self.json {
            let mut object = object(&installed);
            if let Some(object) = object.as_object_mut() {
                object.insert("grant".to_owned(), Value::from(&*installed.text));
            }
            output::json(&object)
        } else {
            let mut lines = Consent::given(&installed).screen(WIDTH);
            lines.push(String::new());
            lines.push(format!("approved: {}", log::date(installed.approved / 1000)));
            lines.push(format!("from: {}", render::line(&installed.source, 200)));
            lines.push(format!("grant: {}", installed.approval().grant));
            lines.join("\n")
        };
        match output::say(&told) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(why) => output::told(&why).map_or(Ok(ExitCode::SUCCESS), Err),
        }
    }
}

impl Revoke {
    /// Takes the parts back, then ends what still runs with them.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let installed = find(&self.package)?;
        let store = install::store()?;
        store.revoke(&installed, &self.parts).map_err(|why| why.to_string())?;
        tell!("taken back from `{}`", self.package);
        end_runs(&self.package)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Remove {
    /// Removes it, then ends what still runs of it.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        // A damaged one can be removed too.
        if !install::store()?.remove(&self.package).map_err(|why| why.to_string())? {
            return Err(missing(&self.package));
        }
        tell!("removed `{}`", self.package);
        end_runs(&self.package)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Asks each live run of the package to end, and waits for that.
fn end_runs(package: &str) -> Result<(), String> {
    let runs = log::runs_dir().map_err(|why| format!("no run can be found: {why}"))?;
    let began = Instant::now();
    loop {
        let mut waiting = Vec::new();
        for holder in ps::live()?.into_iter().filter(|holder| holder.purpose == Purpose::Run) {
            let dir = runs.join(&holder.run);
            match control::ask(&dir, Request::Status) {
                Ok(status) if status.package.as_deref() != Some(package) => {}
                Ok(status) => {
                    if !status.cancelled {
                        tell!("ending its run {}", render::line(&holder.run, WIDTH));
                        // Whether it did is seen in the next round.
                        drop(control::ask(&dir, Request::Cancel));
                    }
                    waiting.push(holder.run);
                }
                // It may just have begun, or just be over.
                Err(_) => waiting.push(holder.run),
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            let waiting: Vec<String> = waiting.iter().map(|run| render::line(run, WIDTH)).collect();
            return Err(format!(
                "it holds for new runs, but these have not ended or do not answer: {}\nsee \
                 `synapse ps`",
                waiting.join(", ")
            ));
        }
        thread::sleep(PERIOD);
    }
}

fn find(name: &str) -> Result<Installed, String> {
    install::get(&install::store()?, name)?.ok_or_else(|| missing(name))
}

fn missing(name: &str) -> String {
    format!(
        "no package `{}` is installed\n`synapse list` has those that are",
        render::line(name, WIDTH)
    )
}

fn line(installed: &Installed) -> String {
    format!("{}  approved {}", installed.line(), log::date(installed.approved / 1000))
}

fn object(installed: &Installed) -> Value {
    let manifest = &installed.package.manifest;
    json!({
        "name": manifest.name,
        "version": manifest.version.to_string(),
        "publisher": manifest.publisher,
        "key": installed.key.map(|key| key.to_string()),
        "digest": installed.package.digest().to_string(),
        "approval": installed.approval().grant,
        "approved": installed.approved,
        "source": installed.source,
    })
}

const WIDTH: usize = 80;
const PATIENCE: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_millis(20);
