//! `synapse cancel`: ends a run from another terminal
//!
//! # Not here
//! How a run ends, and that its log is complete then (the kernel).

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;
use synapse_host::control::{self, Request};
use synapse_host::locks::{Holder, Purpose};
use synapse_host::log;

use crate::{audit, ps};

/// Ends a run that goes on, as Ctrl-C does, and waits until it has ended.
///
/// Its log is complete then, and what it did can be undone. `synapse ps` lists the
/// runs that go on.
///
/// Exit codes: 0 ended; 1 there is no such run, or it has not ended after 10
/// seconds; 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Cancel {
    /// The name of a run, its directory, or `latest`: the one that began last of
    /// those that go on.
    run: PathBuf,
}

impl Cancel {
    /// Tells the run and waits for its end.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let runs = log::runs_dir().map_err(|why| format!("no run can be found: {why}"))?;
        let holder = find(ps::live()?, &self.run)?;
        let (shown, pid) = (audit::shown(Path::new(&holder.run)), holder.pid);
        let began = Instant::now();
        let mut told = Err("it was not asked".to_owned());
        // Asked again while it is silent: it may just have begun.
        while ps::live()?.contains(&holder) {
            if told.is_err() {
                let answer = control::ask(&runs.join(&holder.run), Request::Cancel);
                told = answer.map_err(|why| why.to_string());
            }
            if began.elapsed() > PATIENCE {
                return Err(match told {
                    Ok(_) => format!(
                        "run {shown} was told to end and has not ended yet\nsee `synapse ps`; its \
                         process is {pid}"
                    ),
                    Err(why) => format!(
                        "run {shown} does not answer: {why}\nits process is {pid}; end it with \
                         `kill {pid}`, then its log has no end"
                    ),
                });
            }
            thread::sleep(PERIOD);
        }
        tell!("run {shown} has ended");
        Ok(ExitCode::SUCCESS)
    }
}

/// The live run that a person means.
pub(crate) fn find(live: Vec<Holder>, wanted: &Path) -> Result<Holder, String> {
    let name = wanted.file_name().unwrap_or_default();
    let mut runs = live.into_iter().rev().filter(|holder| holder.purpose == Purpose::Run);
    runs.find(|holder| name == "latest" || name == holder.run.as_str()).ok_or_else(|| {
        format!("no run `{}` goes on\n`synapse ps` lists those that do", audit::shown(wanted))
    })
}

const PATIENCE: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_millis(20);
