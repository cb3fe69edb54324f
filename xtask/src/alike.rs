//! The librarian on each engine: the same task, the same decisions and files
//!
//! Every run gets a fresh copy of the sample notes, filled in another order,
//! so that a file system that lists by age lists them in another order too.
//!
//! # Not here
//! Guests that reach the corners of an engine: the host's tests have them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::SystemTime;

use crate::demo::{TASKS, build_guest};
use crate::step::{Failure, root, shown, synapse};

/// Runs the librarian, and compares what it asked for and what it left.
pub(crate) fn run() -> Result<(), Failure> {
    let synapse = synapse()?;
    let librarian = root().join("packages/librarian");
    let agent = build_guest(&synapse, &librarian)?;
    let mut runs = Vec::new();
    for (engine, order) in
        [("wasmtime", Order::Forward), ("wasmtime", Order::Backward), ("wasmi", Order::Backward)]
    {
        let notes = env::temp_dir().join(format!("synapse-alike-{}-{}", process::id(), runs.len()));
        let failed = |why| format!("`{}` could not be used: {why}", notes.display());
        copy(&librarian.join("sample"), &notes, order).map_err(failed)?;
        let mut dir = notes.clone().into_os_string();
        dir.push("=/data");
        let mut command = Command::new(&synapse);
        command.arg("run").arg(&agent).args(TASKS.last()).args(["--json", "--engine", engine]);
        command.arg("--dir").arg(dir).arg("--grant").arg(librarian.join("grant.toml"));
        let calls = calls(&mut command)?;
        let mut files = BTreeMap::new();
        read(&notes, &mut PathBuf::new(), &mut files).map_err(failed)?;
        fs::remove_dir_all(&notes).map_err(failed)?;
        println!("{engine}: {} calls, {} files", calls.len(), files.len());
        runs.push((calls, files));
    }
    if runs.windows(2).all(|pair| matches!(pair, [one, other] if one == other)) {
        return Ok(());
    }
    Err("the librarian decided or left something else on another engine or copy\n\
         this is a bug: compare what `synapse run --json` tells of each"
        .to_owned())
}

#[derive(Clone, Copy)]
enum Order {
    Forward,
    Backward,
}

/// The calls of a run, as they are told.
fn calls(command: &mut Command) -> Result<Vec<String>, Failure> {
    let ran = command.output().map_err(|why| format!("`{}`: {why}", shown(command)))?;
    if !ran.status.success() {
        let why = String::from_utf8_lossy(&ran.stderr);
        return Err(format!("`{}` failed ({})\n{why}", shown(command), ran.status));
    }
    let told = String::from_utf8_lossy(&ran.stdout);
    let calls = told.lines().filter(|line| line.contains(r#""type":"call""#));
    let calls: Vec<_> = calls.map(str::to_owned).collect();
    if calls.is_empty() {
        return Err(format!("`{}` told of no call, so nothing can be compared", shown(command)));
    }
    Ok(calls)
}

/// Copies a folder's files in this order, each as old as the others.
fn copy(from: &Path, to: &Path, order: Order) -> io::Result<()> {
    fs::create_dir(to)?;
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(DirEntry::file_name);
    if matches!(order, Order::Backward) {
        entries.reverse();
    }
    for entry in entries {
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to, order)?;
        } else {
            fs::copy(entry.path(), &to)?;
            let age = SystemTime::UNIX_EPOCH + Duration::from_hours(400_000);
            File::options().write(true).open(&to)?.set_modified(age)?;
        }
    }
    Ok(())
}

/// Every file below a folder, by its path in it.
fn read(
    root: &Path,
    below: &mut PathBuf,
    files: &mut BTreeMap<PathBuf, Vec<u8>>,
) -> io::Result<()> {
    for entry in fs::read_dir(root.join(&*below))? {
        let entry = entry?;
        below.push(entry.file_name());
        if entry.file_type()?.is_dir() {
            read(root, below, files)?;
        } else {
            files.insert(below.clone(), fs::read(entry.path())?);
        }
        below.pop();
    }
    Ok(())
}
