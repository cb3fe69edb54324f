//! The `synapse` command
//!
//! Reads the command line and hands each subcommand to its module; a failure
//! is told in one form (what happened, why, what to do) and by the exit code.
//!
//! # Not here
//! Any decision about a call (`synapse-boundary`).

// First, for its macros.
#[macro_use]
mod output;

mod audit;
mod bench;
mod bound;
mod build;
mod cancel;
mod check;
mod confirm;
mod consent;
mod doctor;
mod firmware;
mod gc;
mod grant;
mod install;
mod installed;
mod label;
mod manual;
mod mount;
mod new;
mod package;
mod primitives;
mod progress;
mod ps;
mod redteam;
mod run;
mod secret;
mod sessions;
mod stock;
mod tools;
mod undo;
mod why;

use clap::{CommandFactory as _, Parser, Subcommand};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Synapse::parse().command {
        Command::New(new) => done(new.run()),
        Command::Package(package) => package.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Install(install) => install.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Upgrade(upgrade) => upgrade.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::List(list) => list.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Show(show) => show.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Revoke(revoke) => revoke.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Remove(remove) => remove.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Run(run) => run.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Tools(tools) => tools.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Confine(confine) => confine.run(),
        Command::Secret(secret) => secret.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Sessions(sessions) => sessions.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Build(build) => match build.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failed(&failure.to_string(), failure.exit_code()),
        },
        Command::Firmware(firmware) => firmware.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Primitives(primitives) => match primitives.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => output::told(&why).map_or(ExitCode::SUCCESS, |why| failed(&why, 1)),
        },
        Command::Undo(undo) => undo.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Ps(ps) => ps.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Cancel(cancel) => cancel.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Confirm(confirm) => confirm.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Label(label) => label.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Gc(gc) => gc.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Audit(audit) => read(audit.run()),
        Command::Why(why) => read(why.run().map(|()| ExitCode::SUCCESS)),
        Command::Check(check) => match check.run() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(6),
            Err(why) => failed(&why, 1),
        },
        Command::Grant(grant) => grant
            .run()
            .unwrap_or_else(|why| why.told().map_or(ExitCode::SUCCESS, |why| failed(&why, 1))),
        Command::Bench(bench) => done(bench.run()),
        Command::Redteam(redteam) => redteam.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Doctor(doctor) => doctor.run().unwrap_or_else(|why| failed(&why, 1)),
        Command::Completions(completions) => done(completions.run(Synapse::command())),
        Command::Man(man) => done(man.run(Synapse::command())),
    }
}

/// The end of a command that either does its work or says why not.
fn done(result: Result<(), String>) -> ExitCode {
    result.map_or_else(|why| failed(&why, 1), |()| ExitCode::SUCCESS)
}

/// The end of a command that reads a log.
fn read(result: Result<ExitCode, audit::AuditError>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(gone) if gone.is_reader_gone() => ExitCode::SUCCESS,
        Err(failure) => failed(&failure.to_string(), 1),
    }
}

fn failed(told: &str, code: u8) -> ExitCode {
    tell!("error: {told}");
    ExitCode::from(code)
}

/// Runs agents behind one door.
///
/// An agent is WebAssembly with one way out: a sentence, that names one of 26
/// primitives. Four gates read each sentence, every decision is recorded before
/// anything is done, and the record can be checked afterwards.
///
/// Exit codes: 0 done, 1 failed or not agreed to, 2 the command line is wrong, 3 the agent ended
/// without an answer, 4 something could not be undone, 5 no compiler for guests
/// is installed, 6 a gate refuses the checked sentence, 130 ended by
/// Ctrl-C or `synapse cancel`.
#[derive(Parser)]
#[command(version)]
struct Synapse {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(new::New),
    Run(run::Run),
    Sessions(sessions::Sessions),
    Build(build::Build),
    Package(package::Package),
    Install(install::Install),
    Upgrade(install::Upgrade),
    List(installed::List),
    Show(installed::Show),
    Revoke(installed::Revoke),
    Remove(installed::Remove),
    Firmware(firmware::Firmware),
    Primitives(primitives::Primitives),
    Audit(audit::Audit),
    Undo(undo::Undo),
    Ps(ps::Ps),
    Cancel(cancel::Cancel),
    Confirm(confirm::Confirm),
    Gc(gc::Gc),
    Label(label::Label),
    Grant(grant::Grant),
    Tools(tools::Tools),
    Secret(secret::Keep),
    #[command(hide = true)]
    Confine(tools::Confine),
    Why(why::Why),
    Check(check::Check),
    Bench(bench::Bench),
    Redteam(redteam::Redteam),
    Doctor(doctor::Doctor),
    Completions(manual::Completions),
    Man(manual::Man),
}
