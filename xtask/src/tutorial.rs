//! The tutorial, followed to the letter
//!
//! Its `sh` blocks are one script, run in a new folder; each line of its `text`
//! blocks must be in what the script prints.
//!
//! # Not here
//! Installing what the tutorial asks for first (`setup`, `step::synapse`).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};

use crate::setup;
use crate::step::{Failure, root, shown, synapse};

/// Runs the script, and compares what it prints.
pub(crate) fn run() -> Result<(), Failure> {
    setup::run(&[setup::GUEST])?;
    let path = root().join("docs/tutorial.md");
    let text = fs::read_to_string(&path)
        .map_err(|why| format!("`{}` could not be read: {why}", path.display()))?;
    let scratch = env::temp_dir().join(format!("synapse-tutorial-{}", process::id()));
    fs::create_dir(&scratch)
        .map_err(|why| format!("`{}` could not be made: {why}", scratch.display()))?;
    let printed = follow(&blocks(&text, "sh").concat(), &synapse()?, &scratch)?;
    for line in blocks(&text, "text").concat().lines().filter(|line| !line.is_empty()) {
        if !printed.contains(line) {
            return Err(format!(
                "the tutorial promises a line that was not printed: {line}\n\
                 correct docs/tutorial.md, or what it runs; its folder is {}",
                scratch.display()
            ));
        }
    }
    fs::remove_dir_all(&scratch)
        .map_err(|why| format!("`{}` could not be removed: {why}", scratch.display()))
}

/// Runs the script as a newcomer would: own folders, and no build of before.
fn follow(script: &str, synapse: &Path, scratch: &Path) -> Result<String, Failure> {
    let mut path = OsString::from(synapse.parent().unwrap_or(synapse));
    if let Some(others) = env::var_os("PATH") {
        path.push(":");
        path.push(others);
    }
    let mut sh = Command::new("sh");
    sh.args(["-eu", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(scratch)
        .env("PATH", path)
        .env("XDG_STATE_HOME", scratch.join("state"))
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null());
    let output = sh.output().map_err(|why| format!("`{}` did not start: {why}", shown(&sh)))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{printed}");
    if !output.status.success() {
        return Err(format!(
            "a command of the tutorial failed ({})\nwhat it printed is above; its folder is {}",
            output.status,
            scratch.display()
        ));
    }
    Ok(printed)
}

/// The fenced blocks of a kind, in order.
fn blocks(text: &str, kind: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut inside: Option<bool> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(opened), None) => {
                inside = Some(opened == kind);
                if opened == kind {
                    blocks.push(String::new());
                }
            }
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) => {
                if let Some(block) = blocks.last_mut() {
                    block.push_str(line);
                    block.push('\n');
                }
            }
            (None, Some(false) | None) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::{blocks, follow};
    use std::path::Path;

    #[test]
    fn blocks_are_told_apart_by_their_kind() {
        let text =
            "a\n```sh\none\ntwo\n```\n```\nplain\n```\n```text\nout\n```\n```sh\nthree\n```\n";
        assert_eq!(blocks(text, "sh"), ["one\ntwo\n", "three\n"]);
        assert_eq!(blocks(text, "text"), ["out\n"]);
    }

    #[test]
    fn the_first_command_that_fails_ends_it() {
        let dir = tempfile::tempdir().unwrap();
        let told = follow("echo before\nfalse\necho after\n", Path::new("/bin"), dir.path());
        assert!(told.unwrap_err().contains("a command of the tutorial failed"));
        assert_eq!(follow("echo one >&2", Path::new("/bin"), dir.path()).as_deref(), Ok("one\n"));
    }
}
