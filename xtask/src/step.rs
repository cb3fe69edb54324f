//! Running a program, and saying clearly when it failed
//!
//! # Not here
//! Which programs, in which order (`ci`, `demo`, `setup`).

use std::env;
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

/// Builds the `synapse` command and says where it stands.
pub(crate) fn synapse() -> Result<PathBuf, Failure> {
    done(&mut cargo("build --profile ci --package synapse")?)?;
    Ok(cache::target_dir()?.join("ci/synapse"))
}

/// Runs a command to a good end.
pub(crate) fn done(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|why| {
        format!("`{}` did not start: {why}\ncheck that it is installed", shown(command))
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed ({status})\nthe reason is above", shown(command)))
    }
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
    use super::done;
    use std::process::Command;

    #[test]
    fn failure_names_the_command_and_its_end() {
        assert_eq!(done(&mut Command::new("true")), Ok(()));
        let told = done(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(told.contains("`sh -c exit 3` failed (exit status: 3)"), "{told}");
        let told = done(&mut Command::new("no-such-program")).unwrap_err();
        assert!(told.contains("`no-such-program` did not start"), "{told}");
    }
}
