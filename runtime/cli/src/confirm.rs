//! `synapse confirm`: answers a run's question from another terminal
//!
//! # Not here
//! What is shown and what counts as a yes (`synapse_host::elsewhere`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use synapse_host::control::{self, Request, Word};
use synapse_host::elsewhere::{self, Came};
use synapse_host::locks::{Holder, Purpose};
use synapse_host::log;
use synapse_host::render::{self, Stream, Terminal};

use crate::{audit, cancel, output, ps};

/// Answers the question that a run waits with, as at its own terminal.
///
/// Without a RUN, it lists the runs that wait with a question, and shows the
/// question if there is one only. It is shown to its end; then `yes` and Enter
/// allows that one call, once, and anything else does not. Whichever terminal
/// answers first counts.
///
/// Exit codes: 0 answered, or no run asks anything; 1 failed, or the question was
/// not answered here; 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Confirm {
    /// The name of a run, its directory, or `latest`: the one that began last of
    /// those that go on.
    run: Option<PathBuf>,
}

impl Confirm {
    /// Lists, shows and answers.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        if let Some(run) = &self.run {
            return answer(&cancel::find(ps::live()?, run)?);
        }
        let mut asking = Vec::new();
        for holder in ps::live()?.into_iter().filter(|holder| holder.purpose == Purpose::Run) {
            // Whoever does not answer is not waiting for one.
            let status = control::ask(&dir(&holder)?, Request::Status);
            if let Some(status) = status.ok().filter(|status| status.question.is_some()) {
                let show = |text: &str| render::line(text, WIDTH);
                let (agent, task) = (show(&status.agent), show(&status.task));
                let line = format!("{}  {agent}: {task}", show(&holder.run));
                if let Some(why) = output::say(&line).err().and_then(|why| output::told(&why)) {
                    return Err(why);
                }
                asking.push(holder);
            }
        }
        match &asking[..] {
            [] => {
                tell!("no run asks anything");
                Ok(ExitCode::SUCCESS)
            }
            [holder] => answer(holder),
            _ => {
                Err("several runs wait with a question\nname one: `synapse confirm RUN`".to_owned())
            }
        }
    }
}

fn answer(holder: &Holder) -> Result<ExitCode, String> {
    let run = audit::shown(Path::new(&holder.run));
    let came = elsewhere::answer(&dir(holder)?, Terminal::new(Stream::Output));
    match came.map_err(|why| format!("run {run} took no answer: {why}\n`synapse ps` lists the runs that go on"))? {
        Came::Answered(Word::Yes) => tell!("allowed once"),
        Came::Answered(Word::No | Word::Other) => tell!("not allowed"),
        Came::Nothing => tell!("run {run} asks nothing"),
        Came::Gone => return Err(format!("the question does not stand any longer\n`synapse why` says what came of it in run {run}")),
        Came::Unanswered => return Err("nobody answered here, so the question stands\na question is answered at a terminal, standard input and output".to_owned()),
    }
    Ok(ExitCode::SUCCESS)
}

fn dir(holder: &Holder) -> Result<PathBuf, String> {
    let runs = log::runs_dir().map_err(|why| format!("no run can be found: {why}"))?;
    Ok(runs.join(&holder.run))
}

const WIDTH: usize = 80;
