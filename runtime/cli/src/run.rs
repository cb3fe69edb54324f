//! `synapse run`: one agent, one task, and every call told as it happens
//!
//! People read warnings, calls and the summary on standard error and what the agent says
//! on standard output; with `--json` standard output is for a program, one
//! object a line.
//!
//! # Not here
//! Running (`synapse_host::run`). Deciding (`synapse-boundary`).

use core::sync::atomic::{AtomicBool, Ordering};
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::thread;
use synapse_boundary::Integrity;
use synapse_host::console::PATIENCE;
use synapse_host::engine::Choice;
use synapse_host::package::{self, Store};
use synapse_host::render::{self, Stream};
use synapse_host::run::{self, Agent, Answer, Lines, MountOption, Options, Summary, Warning};
use synapse_host::session::{Kept, Place};
use synapse_host::{log, trust, typed};
use synapse_kernel::task::Crossing;
use synapse_kernel::words;
use synapse_reply::code;

use crate::grant::check;
use crate::{mount, output};

/// Runs an agent on a task, inside the folders and rights that it is given.
///
/// Each call is told as it happens: what was asked, and what came of it. Every
/// one is recorded before anything is done; read the records with `synapse
/// audit`. Ctrl-C ends the run, and a second one ends this program; `synapse
/// cancel` ends it from another terminal.
///
/// Exit codes: 0 the agent answered, 1 failed, 2 the command line is wrong,
/// 3 the agent ended without an answer, 130 ended by Ctrl-C or `synapse cancel`.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// The agent: the name of an installed package, or else a component, or a
    /// package's folder with `<name>.wasm` and `grant.toml`.
    agent: PathBuf,

    /// What it is to do.
    #[arg(default_value = "")]
    task: String,

    #[command(flatten)]
    manner: Manner,
}

/// How an agent is run.
#[derive(clap::Args)]
pub(crate) struct Manner {
    /// Ask for further lines at this terminal, and run a turn for each. Without a
    /// task the first line is asked for too. Nothing but what is typed starts a
    /// turn; what others wrote reaches it held.
    #[arg(long)]
    lines: bool,

    /// A folder that it sees, where, and whether it may only read it; may be
    /// given more than once. Without a guest path it is /data.
    #[arg(long = "dir", value_name = "HOST[=/GUEST[:ro]]", value_parser = mount::parse)]
    pub(crate) dirs: Vec<MountOption>,

    /// What it may do; by default the package's grant.toml. An installed package
    /// may do what this and its approval both allow.
    #[arg(long, value_name = "FILE")]
    pub(crate) grant: Option<PathBuf>,

    /// Warrants that you wrote for a run that nobody watches, one a line, as an agent
    /// would ask for them: `{"warrant":"fs_delete","arguments":{"path":"/data/tmp/**"},"uses":9}`.
    /// Empty lines and those that begin with # say nothing. They are good for the first
    /// turn, and never for more than the grant.
    #[arg(long, value_name = "FILE")]
    warrants: Option<PathBuf>,

    /// What becomes of a call that only a person can allow: after reading, what
    /// cannot be taken back. By default it is asked about where standard input
    /// and output are a terminal, else refused. With `ask` and no terminal a
    /// question waits for `synapse confirm`, five minutes at most.
    #[arg(long, value_enum)]
    confirm: Option<Confirm>,

    /// What runs its code; both give the same decisions.
    #[arg(long, value_enum, default_value_t)]
    engine: Engine,

    /// Print one JSON object a line: each warning about the grant, each call,
    /// then the summary.
    #[arg(long)]
    json: bool,

    /// Tell no warnings and no calls, only how it ended.
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Confirm {
    /// Asks, here and through `synapse confirm`
    Ask,
    /// Refuses it
    Deny,
}

impl Confirm {
    /// What is done where nothing was said.
    fn usual() -> Self {
        if is_at_a_terminal() { Self::Ask } else { Self::Deny }
    }
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Engine {
    /// Compiles it to machine code first
    #[default]
    Wasmtime,
    /// Interprets it, as the firmware does
    Wasmi,
}

impl Run {
    /// Runs to the end, and says how it went.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        self.manner.run(named(self.agent)?, self.task, None)
    }
}

impl Manner {
    /// Runs an agent, that may go on with a session, and says how it went.
    pub(crate) fn run(
        self,
        agent: Agent,
        task: String,
        session: Option<Kept>,
    ) -> Result<ExitCode, String> {
        let cancel = Arc::new(AtomicBool::new(false));
        watch_ctrl_c(Arc::clone(&cancel))
            .map_err(|why| format!("Ctrl-C cannot be watched for: {why}\ntry again"))?;
        if is_at_a_terminal() && !self.json && !self.quiet {
            offer(&self.dirs);
        }
        let screen = render::Terminal::new(if self.json { Stream::Error } else { Stream::Output });
        let task = if self.lines { first(task, screen, &cancel)? } else { Some(task) };
        let Some(task) = task else { return Ok(ExitCode::SUCCESS) };
        let summary = run::run(Options {
            agent,
            task,
            lines: if self.lines { Lines::Typed } else { Lines::One },
            session,
            mounts: self.dirs,
            grant: self.grant,
            warrants: self.warrants,
            engine: match self.engine {
                Engine::Wasmtime => Choice::Wasmtime,
                Engine::Wasmi => Choice::Wasmi,
            },
            screen,
            warn: warner(self.json, self.quiet),
            changed: changed(self.json, self.quiet),
            report: reporter(self.json, self.quiet),
            answered: answerer(self.lines, self.json),
            confirm: match self.confirm.unwrap_or_else(Confirm::usual) {
                Confirm::Ask => run::Confirm::Ask,
                Confirm::Deny => run::Confirm::Deny,
            },
            patience: PATIENCE,
            cancel: Arc::clone(&cancel),
        });
        let summary = match summary {
            Ok(summary) => summary,
            // Whatever it failed at, it was asked to.
            Err(why) if cancel.load(Ordering::Relaxed) => {
                tell!("{why}");
                return Ok(ExitCode::from(CANCELLED));
            }
            Err(why) => return Err(why.to_string()),
        };
        // An answer that was given before the signal arrived is an answer.
        let cancelled = cancel.load(Ordering::Relaxed) && summary.answer.is_err();
        let printed = if self.json {
            output::say(&output::json(&object(&summary, cancelled)))
        } else {
            tell(&summary, cancelled, self.lines)
        };
        if let Some(why) = printed.err().and_then(|why| output::told(&why)) {
            return Err(why);
        }
        Ok(match &summary.answer {
            _ if cancelled => ExitCode::from(CANCELLED),
            Ok(_) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(NO_ANSWER),
        })
    }
}

fn is_at_a_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Says, once for each folder, which of its files a person may want to endorse.
fn offer(dirs: &[MountOption]) {
    let folders = dirs.iter().map(|dir| dir.host.as_path());
    // Without a state folder no run begins, and says so.
    let Ok(state) = log::state_dir() else { return };
    match trust::offers(&state, folders) {
        Ok(offers) => {
            for path in offers {
                let path = render::escape(path.as_os_str().as_encoded_bytes());
                tell!(
                    "{path} counts as written by others; if you wrote it: synapse label trust {path}"
                );
            }
        }
        Err(why) => tell!("warning: {why}"),
    }
}

/// The first line, typed where none is given; nothing where nobody typed one.
fn first(
    task: String,
    screen: render::Terminal,
    cancel: &AtomicBool,
) -> Result<Option<String>, String> {
    if !typed::is_possible(screen) {
        return Err("there is no terminal, and only what a person types starts a turn\n\
                    give one line as the task, and go on with `synapse sessions resume`"
            .to_owned());
    }
    Ok(if task.is_empty() { typed::next(screen, cancel) } else { Some(task) })
}

/// Tells each turn's answer, where there may be several.
fn answerer(lines: bool, json: bool) -> Box<dyn Fn(Answer<'_>)> {
    Box::new(move |answer| match answer {
        _ if !lines => {}
        // Nobody stops a run because its reader left: the session has it all.
        _ if json => drop(output::say(&output::json(&json!({
            "type": "answer",
            "answer": answer.ok().map(String::from_utf8_lossy),
            "error": answer.err().map(|why| why.to_string()),
        })))),
        Ok(answer) => drop(output::say(render::block(answer).trim_end_matches('\n'))),
        Err(why) => tell!("no answer: {}", render::escape(why.to_string())),
    })
}

/// What was installed under a name goes before a folder that has it too: it is what was
/// agreed to.
fn named(agent: PathBuf) -> Result<Agent, String> {
    let installed = match agent.to_str().filter(|name| package::is_name(name)) {
        Some(name) => installed(name)?,
        None => None,
    };
    let Some(installed) = installed else { return Ok(Agent::Path(agent)) };
    if agent.exists() {
        let name = installed.name();
        tell!("running the installed package `{name}`; write ./{name} for what stands here");
    }
    Ok(installed)
}

/// The agent of a session that is gone on with.
pub(crate) fn of(session: &Kept) -> Result<Agent, String> {
    match &session.manner.agent {
        Place::Path(path) => Ok(Agent::Path(path.clone())),
        Place::Installed(name) => installed(name)?.ok_or_else(|| {
            format!(
                "`{name}`, which the session is with, is not installed\n\
                 install it with `synapse install`"
            )
        }),
    }
}

fn installed(name: &str) -> Result<Option<Agent>, String> {
    // Where there is no state folder nothing is installed, and the run says so itself.
    let Ok(state) = log::state_dir() else { return Ok(None) };
    let store = Store::open(&state).map_err(|why| why.to_string())?;
    let installed = store.get(name).map_err(|why| why.to_string())?;
    Ok(installed.map(|installed| Agent::Installed(Box::new(installed))))
}

/// The first Ctrl-C asks the run to end; the second does not ask.
fn watch_ctrl_c(cancel: Arc<AtomicBool>) -> io::Result<()> {
    let signals = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("ctrl-c".to_owned()).spawn(move || {
        signals.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if cancel.swap(true, Ordering::Relaxed) {
                    process::exit(CANCELLED.into());
                }
                tell!("ending the run; once more ends this program at once");
            }
        });
    })?;
    Ok(())
}

fn warner(json: bool, quiet: bool) -> Box<dyn Fn(&Warning<'_>)> {
    match (quiet, json) {
        (true, _) => Box::new(|_| {}),
        // As for calls.
        (false, true) => Box::new(|warning| {
            drop(output::say(&output::json(&check::object("warning", warning.notice))));
        }),
        (false, false) => Box::new(|Warning { file, text, notice }| {
            let name = render::escape(file.as_os_str().as_encoded_bytes());
            tell!("{}", check::shown("warning", notice, &name, text));
        }),
    }
}

fn changed(json: bool, quiet: bool) -> Box<dyn Fn(&str)> {
    Box::new(move |what| match (quiet, json) {
        (true, _) => {}
        // As for calls.
        (false, true) => {
            drop(output::say(&output::json(&json!({"type": "changed", "what": what}))));
        }
        (false, false) => tell!(
            "warning: the {what} of this run and of the one that it goes on from differ; \
             what counts now is this run's"
        ),
    })
}

fn reporter(json: bool, quiet: bool) -> Arc<dyn Fn(&Crossing<'_>) + Send + Sync> {
    match (quiet, json) {
        (true, _) => Arc::new(|_| {}),
        // Nobody stops a run because its reader left: the log has it all.
        (false, true) => Arc::new(|crossing| drop(output::say(&output::json(&call(crossing))))),
        (false, false) => Arc::new(|crossing| tell!("{}", words::crossing(crossing))),
    }
}

fn call(crossing: &Crossing<'_>) -> Value {
    json!({
        "type": "call",
        "record": crossing.record,
        "primitive": crossing.primitive.map(|primitive| primitive.row().name),
        "target": crossing.target,
        "code": crossing.code,
        "name": words::code_name(crossing.code),
        "gate": code::gate(crossing.code).filter(|gate| *gate > 0),
        "bytes": crossing.bytes,
        "integrity": match crossing.mark {
            Integrity::System => "system",
            Integrity::User => "user",
            Integrity::Ingested => "ingested",
        },
        "held": crossing.held,
        "warrant": crossing.warrant,
    })
}

fn tell(summary: &Summary, cancelled: bool, told: bool) -> io::Result<()> {
    let refused: Vec<String> = summary
        .refused
        .iter()
        .zip(1..)
        .filter(|(count, _)| **count > 0)
        .map(|(count, gate)| format!("{} by gate {gate}", words::grouped(*count)))
        .collect();
    let refused = if refused.is_empty() { "0".to_owned() } else { refused.join(", ") };
    tell!(
        "{} calls, refused: {refused}, failed: {}, {} records",
        words::grouped(summary.calls),
        words::grouped(summary.faults),
        words::grouped(summary.records),
    );
    let dir = render::escape(summary.run_dir.as_os_str().as_encoded_bytes());
    tell!("run directory: {dir}");
    if let Some(why) = &summary.unkept {
        tell!("warning: {}", render::escape(why));
    }
    tell!("read it:  synapse audit show latest");
    tell!("check it: synapse audit verify latest");
    match &summary.answer {
        Ok(_) if told => {}
        _ if cancelled => tell!("the run was ended before the agent answered"),
        Err(why) => tell!(
            "the agent ended without an answer: {}\n\
             the last records say what it was doing",
            render::escape(why)
        ),
        Ok(answer) if answer.is_empty() => tell!("the agent ended with an empty answer"),
        Ok(answer) => output::say(render::block(answer).trim_end_matches('\n'))?,
    }
    Ok(())
}

fn object(summary: &Summary, cancelled: bool) -> Value {
    json!({
        "type": "summary",
        "run": summary.run_dir.to_string_lossy(),
        "calls": summary.calls,
        "refused": summary.refused,
        "faults": summary.faults,
        "records": summary.records,
        "answer": summary.answer.as_ref().ok().map(|answer| String::from_utf8_lossy(answer)),
        "error": summary.answer.as_ref().err(),
        "unkept": summary.unkept,
        "cancelled": cancelled,
    })
}

const NO_ANSWER: u8 = 3;
const CANCELLED: u8 = 130;

#[cfg(test)]
mod tests {
    use super::call;
    use synapse_abi::registry::Primitive;
    use synapse_boundary::Integrity;
    use synapse_kernel::task::Crossing;

    #[test]
    fn a_call_is_an_object_that_says_which_gate_refused() {
        let refused = Crossing {
            record: 12,
            primitive: Some(Primitive::FsRead),
            target: "/etc/passwd",
            code: 401,
            bytes: 0,
            mark: Integrity::User,
            held: false,
            warrant: false,
        };
        assert_eq!(call(&refused)["gate"], 4);
    }
}
