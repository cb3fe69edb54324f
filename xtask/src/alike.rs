//! The librarian on each engine: the same decisions and files, and all undone
//!
//! Every run gets a fresh copy of the sample notes, filled in another order and
//! in memory where the host has a place for that: a file system in memory lists
//! by age, and so in another order too.
//!
//! # Not here
//! Guests that reach the corners of an engine: the host's tests have them.

use core::time::Duration;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::SystemTime;

use serde_json::Value;

use crate::demo::{TASKS, build_guest, tree};
use crate::step::{Failure, done, root, shown, synapse};

/// Runs the librarian, compares what it asked for and what it left, and undoes it.
pub(crate) fn run() -> Result<(), Failure> {
    let synapse = synapse()?;
    let librarian = root().join("packages/librarian");
    let agent = build_guest(&synapse, &librarian)?;
    let (mut runs, mut listings) = (Vec::new(), Vec::new());
    for (engine, order) in
        [("wasmtime", Order::Forward), ("wasmtime", Order::Backward), ("wasmi", Order::Backward)]
    {
        let notes = memory().join(format!("synapse-alike-{}-{}", process::id(), runs.len()));
        let failed = |why| format!("`{}` could not be used: {why}", notes.display());
        copy(&librarian.join("sample"), &notes, order).map_err(failed)?;
        listings.push(listing(&notes).map_err(failed)?);
        // On one file system with the notes, nothing that is kept of them stays beside them.
        let state = notes.with_extension("state");
        let mut dir = notes.clone().into_os_string();
        dir.push("=/data");
        let mut command = Command::new(&synapse);
        command.arg("run").arg(&agent).arg(TASKS.join(" ")).args(["--json", "--engine", engine]);
        command.arg("--dir").arg(dir).arg("--grant").arg(librarian.join("grant.toml"));
        command.env("XDG_STATE_HOME", &state);
        let before = tree(&notes)?;
        let (calls, run) = calls(&mut command)?;
        let mut files = BTreeMap::new();
        read(&notes, &mut PathBuf::new(), &mut files).map_err(failed)?;
        let mut undo = Command::new(&synapse);
        done(undo.arg("undo").arg(run).arg("--yes").env("XDG_STATE_HOME", &state))?;
        if tree(&notes)? != before {
            return Err(
                "the undone run left another folder than it found\nthis is a bug".to_owned()
            );
        }
        fs::remove_dir_all(&notes).and_then(|()| fs::remove_dir_all(&state)).map_err(failed)?;
        println!("{engine}: {} calls, {} files", calls.len(), files.len());
        runs.push((calls, files));
    }
    if memory() != env::temp_dir()
        && listings.windows(2).all(|pair| matches!(pair, [one, other] if one == other))
    {
        return Err("no copy of the notes is listed in another order, so nothing is shown\n\
                    fill them in another order"
            .to_owned());
    }
    if runs.windows(2).all(|pair| matches!(pair, [one, other] if one == other)) {
        return Ok(());
    }
    Err("the librarian decided or left something else on another engine or copy\n\
         this is a bug: compare what `synapse run --json` tells of each"
        .to_owned())
}

/// Where files live in memory; else where temporary files do.
fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { env::temp_dir() }
}

/// The names in a folder, as its file system lists them.
fn listing(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

#[derive(Clone, Copy)]
enum Order {
    Forward,
    Backward,
}

/// The calls of a run, as they are told, and the run's directory.
fn calls(command: &mut Command) -> Result<(Vec<String>, String), Failure> {
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
    let summary = told.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let run = summary.as_ref().and_then(|summary| summary.get("run")).and_then(Value::as_str);
    let run = run.ok_or_else(|| format!("`{}` did not tell its directory", shown(command)))?;
    Ok((calls, run.to_owned()))
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
