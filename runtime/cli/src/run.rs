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
use std::io;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::thread;
use synapse_abi::code;
use synapse_boundary::Integrity;
use synapse_host::engine::Choice;
use synapse_host::log;
use synapse_host::package::{self, Store};
use synapse_host::render::{self, Stream};
use synapse_host::run::{self, Agent, MountOption, Options, Summary, Warning};
use synapse_kernel::task::Crossing;
use synapse_kernel::words;

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

    /// A folder that it sees, where, and whether it may only read it; may be
    /// given more than once. Without a guest path it is /data.
    #[arg(long = "dir", value_name = "HOST[=/GUEST[:ro]]", value_parser = mount::parse)]
    dirs: Vec<MountOption>,

    /// What it may do; by default the package's grant.toml. An installed package
    /// may do what this and its approval both allow.
    #[arg(long, value_name = "FILE")]
    grant: Option<PathBuf>,

    /// What becomes of a call that only a person could allow. `deny` refuses
    /// it, and is all there is: no call is ever asked about.
    #[arg(long, value_name = "deny", default_value = "deny", value_parser = confirm)]
    confirm: Confirm,

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

/// The door refuses by itself what nobody confirmed, so that there is nothing to
/// hand on.
#[derive(Clone, Copy)]
enum Confirm {
    Deny,
}

fn confirm(text: &str) -> Result<Confirm, String> {
    match text {
        "deny" => Ok(Confirm::Deny),
        "ask" => Err("nobody can be asked yet: this version has no confirmations; \
                      leave it out, or write deny"
            .to_owned()),
        _ => Err("the one answer there is, is deny".to_owned()),
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
        let Confirm::Deny = self.confirm;
        let cancel = Arc::new(AtomicBool::new(false));
        watch_ctrl_c(Arc::clone(&cancel))
            .map_err(|why| format!("Ctrl-C cannot be watched for: {why}\ntry again"))?;
        let summary = run::run(Options {
            agent: agent(self.agent)?,
            task: self.task,
            mounts: self.dirs,
            grant: self.grant,
            engine: match self.engine {
                Engine::Wasmtime => Choice::Wasmtime,
                Engine::Wasmi => Choice::Wasmi,
            },
            screen: render::Terminal::new(if self.json { Stream::Error } else { Stream::Output }),
            warn: warner(self.json, self.quiet),
            report: reporter(self.json, self.quiet),
            cancel: Arc::clone(&cancel),
        })
        .map_err(|why| why.to_string())?;
        // An answer that was given before the signal arrived is an answer.
        let cancelled = cancel.load(Ordering::Relaxed) && summary.answer.is_err();
        let printed = if self.json {
            output::say(&output::json(&object(&summary, cancelled)))
        } else {
            tell(&summary, cancelled)
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

/// What was installed under a name goes before a folder that has it too: it is what was
/// agreed to.
fn agent(named: PathBuf) -> Result<Agent, String> {
    let Some(name) = named.to_str().filter(|name| package::is_name(name)) else {
        return Ok(Agent::Path(named));
    };
    // Where there is no state folder nothing is installed, and the run says so itself.
    let Ok(state) = log::state_dir() else { return Ok(Agent::Path(named)) };
    let store = Store::open(&state).map_err(|why| why.to_string())?;
    let Some(installed) = store.get(name).map_err(|why| why.to_string())? else {
        return Ok(Agent::Path(named));
    };
    if named.exists() {
        eprintln!("running the installed package `{name}`; write ./{name} for what stands here");
    }
    Ok(Agent::Installed(Box::new(installed)))
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
                eprintln!("ending the run; once more ends this program at once");
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
            eprintln!("{}", check::shown("warning", notice, &name, text));
        }),
    }
}

fn reporter(json: bool, quiet: bool) -> Box<dyn Fn(&Crossing<'_>) + Send + Sync> {
    match (quiet, json) {
        (true, _) => Box::new(|_| {}),
        // Nobody stops a run because its reader left: the log has it all.
        (false, true) => Box::new(|crossing| drop(output::say(&output::json(&call(crossing))))),
        (false, false) => Box::new(|crossing| eprintln!("{}", words::crossing(crossing))),
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
    })
}

fn tell(summary: &Summary, cancelled: bool) -> io::Result<()> {
    let refused: Vec<String> = summary
        .refused
        .iter()
        .zip(1..)
        .filter(|(count, _)| **count > 0)
        .map(|(count, gate)| format!("{} by gate {gate}", words::grouped(*count)))
        .collect();
    let refused = if refused.is_empty() { "0".to_owned() } else { refused.join(", ") };
    eprintln!(
        "{} calls, refused: {refused}, failed: {}, {} records",
        words::grouped(summary.calls),
        words::grouped(summary.faults),
        words::grouped(summary.records),
    );
    let dir = render::escape(summary.run_dir.as_os_str().as_encoded_bytes());
    eprintln!("run directory: {dir}");
    eprintln!("read it:  synapse audit show latest");
    eprintln!("check it: synapse audit verify latest");
    match &summary.answer {
        _ if cancelled => eprintln!("the run was ended before the agent answered"),
        Err(why) => eprintln!(
            "the agent ended without an answer: {}\n\
             the last records say what it was doing",
            render::escape(why)
        ),
        Ok(answer) if answer.is_empty() => eprintln!("the agent ended with an empty answer"),
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
        };
        assert_eq!(call(&refused)["gate"], 4);
    }
}
