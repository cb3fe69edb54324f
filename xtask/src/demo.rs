//! The librarian at work, on a copy of the notes that ship with it
//!
//! # Not here
//! Deciding anything: the demo is what a user would type.

use std::env;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use crate::setup;
use crate::step::{Failure, done, root, synapse};

/// Sets up, builds, and runs the librarian where nothing can be lost.
pub(crate) fn run() -> Result<(), Failure> {
    setup::run(&[setup::GUEST])?;
    let synapse = synapse()?;
    let librarian = root().join("packages/librarian");
    let agent = build_guest(&synapse, &librarian)?;
    let notes = scratch_copy(&librarian.join("sample"))?;
    println!("the notes are in {}", notes.display());
    let grant = librarian.join("grant.toml");
    let mut dir = notes.clone().into_os_string();
    dir.push("=/data");
    let mut before = Vec::new();
    for task in TASKS {
        println!("\n> {task}");
        before = tree(&notes)?;
        let mut run = Command::new(&synapse);
        // It shows what an agent alone can do, so nobody is asked.
        run.args(["run", "--confirm", "deny"]).arg(&agent).arg(task);
        done(run.arg("--dir").arg(&dir).arg("--grant").arg(&grant))?;
    }
    let kept = fs::read_to_string(notes.join("welcome.md"));
    if kept.is_err() {
        return Err("a note that the door had refused to delete is gone\nthis is a bug".to_owned());
    }
    println!("\nwhat the log says of the last run, and whether it is as written:");
    for verb in ["show", "verify"] {
        done(Command::new(&synapse).arg("audit").arg(verb).arg("latest"))?;
    }
    println!("\nand undone, byte for byte:");
    done(Command::new(&synapse).arg("undo").arg("latest").arg("--yes"))?;
    if tree(&notes)? == before {
        Ok(())
    } else {
        Err("the undone run left another folder than it found\nthis is a bug".to_owned())
    }
}

/// Builds a package and says where its component stands.
pub(crate) fn build_guest(synapse: &Path, package: &Path) -> Result<PathBuf, Failure> {
    let name = package.file_name().unwrap_or_default();
    let output = crate::cache::target_dir()?.join("guests").join(name).with_extension("wasm");
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder).map_err(|why| unwritable(folder, &why))?;
    }
    let mut build = Command::new(synapse);
    crate::step::prepare(&mut build)?;
    done(build.arg("build").arg(package).arg("--output").arg(&output))?;
    Ok(output)
}

/// Everything below a folder: its name, its kind and mode, and what it holds.
pub(crate) fn tree(folder: &Path) -> Result<Vec<(PathBuf, u32, Vec<u8>)>, Failure> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, u32, Vec<u8>)>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let entry = fs::symlink_metadata(&path)?;
            let bytes = if entry.is_symlink() {
                fs::read_link(&path)?.into_os_string().into_vec()
            } else if entry.is_dir() {
                walk(&path, found)?;
                Vec::new()
            } else {
                fs::read(&path)?
            };
            // The mode's upper bits are the kind.
            found.push((path, entry.mode(), bytes));
        }
        Ok(())
    }
    let mut found = Vec::new();
    walk(folder, &mut found)
        .map_err(|why| format!("`{}` could not be read: {why}\ntry again", folder.display()))?;
    found.sort();
    Ok(found)
}

fn scratch_copy(sample: &Path) -> Result<PathBuf, Failure> {
    let scratch = env::temp_dir().join(format!("synapse-demo-{}", process::id()));
    copy(sample, &scratch).map_err(|why| {
        format!(
            "`{}` could not be copied to `{}`: {why}\ncheck that both can be used",
            sample.display(),
            scratch.display()
        )
    })?;
    Ok(scratch)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let entries = fs::read_dir(from)?;
    // Never into a folder that someone else made first.
    fs::create_dir(to)?;
    for entry in entries {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn unwritable(path: &Path, why: &io::Error) -> Failure {
    format!("`{}` could not be made: {why}\ncheck who owns it", path.display())
}

/// What the librarian is asked: work that passes, then one try at each gate.
pub(crate) const TASKS: [&str; 2] = [
    "Write an index of the notes in /data and move duplicates aside.",
    "Index again, show the gates, then delete /data/welcome.md",
];

#[cfg(test)]
mod tests {
    use super::copy;
    use std::fs;

    #[test]
    fn copy_is_whole_and_never_lands_in_a_folder_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/note.md"), "note").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("deep/note.md")).unwrap(), "note");
        let told = copy(&from, &to).unwrap_err();
        assert_eq!(told.kind(), std::io::ErrorKind::AlreadyExists);
    }
}
