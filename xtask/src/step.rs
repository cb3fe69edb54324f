//! Running a program, and saying clearly when it failed
//!
//! # Not here
//! Which programs, in which order (`ci`, `demo`, `setup`).

use serde_json::Value;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;

/// What happened, why, and what to do.
pub(crate) type Failure = String;

/// The root of the project.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// Cargo in the root, with the shared target folder; the subcommand's words
/// are separated by spaces.
pub(crate) fn cargo(words: &str) -> Result<Command, Failure> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split(' '));
    prepare(&mut command)?;
    Ok(command)
}

/// Puts a command into the root, with the shared target folder.
pub(crate) fn prepare(command: &mut Command) -> Result<(), Failure> {
    command.current_dir(root()).env("CARGO_TARGET_DIR", cache::target_dir()?);
    Ok(())
}

/// What Cargo says of every package of the lock file.
pub(crate) fn metadata() -> Result<Value, Failure> {
    serde_json::from_str(&output(&mut cargo("metadata --format-version 1 --locked")?)?)
        .map_err(|why| format!("cargo described the dependencies in no known form: {why}"))
}

/// A field as text; absent is empty, which no rule accepts.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Runs a command to a good end, and gives what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|why| unstarted(command, &why))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed ({})\n{}", shown(command), output.status, why.trim_end()));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` printed what is no text\nrun it by hand", shown(command)))
}

/// Builds the `synapse` command and says where it stands.
pub(crate) fn synapse() -> Result<PathBuf, Failure> {
    done(&mut cargo("build --profile ci --package synapse")?)?;
    Ok(cache::target_dir()?.join("ci/synapse"))
}

/// Runs a command to a good end.
pub(crate) fn done(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|why| unstarted(command, &why))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed ({status})\nthe reason is above", shown(command)))
    }
}

/// Whether a program is installed: it says its version.
pub(crate) fn there(mut program: Command) -> bool {
    program.arg("--version").output().is_ok_and(|version| version.status.success())
}

fn unstarted(command: &Command, why: &io::Error) -> Failure {
    format!("`{}` did not start: {why}\ncheck that it is installed", shown(command))
}

/// A command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{cargo, done, there};
    use std::process::Command;

    #[test]
    fn failure_names_the_command_and_its_end() {
        assert_eq!(done(&mut Command::new("true")), Ok(()));
        let told = done(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(told.contains("`sh -c exit 3` failed (exit status: 3)"), "{told}");
        let told = done(&mut Command::new("no-such-program")).unwrap_err();
        assert!(told.contains("`no-such-program` did not start"), "{told}");
    }

    #[test]
    fn program_is_there_if_it_says_its_version() {
        assert!(there(Command::new("true")));
        assert!(!there(cargo("no-such-word").unwrap()));
        assert!(!there(Command::new("no-such-program")));
    }
}
