//! The librarian on 10,000 files, beside a plain program that does the same.
//!
//! `cargo bench --package synapse-bench --bench index -- SYNAPSE AGENT GRANT`, of which the
//! first is a command built for release and the second what `synapse build` made.
//!
//! Both write the same index, byte for byte, of the same bytes of the same files. They are
//! whole processes, taking turns; what is told is the processor time of all their threads,
//! since what else the machine does changes that least. At last the librarian moves the
//! duplicates too, and all of it is undone.
//!
//! # Not here
//! A single call (`table`).

extern crate alloc;

use core::error::Error;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

#[path = "index/corpus.rs"]
mod corpus;
#[path = "../../packages/librarian/src/note.rs"]
mod note;
#[path = "../../packages/librarian/src/index.rs"]
mod page;
#[path = "index/plain.rs"]
mod plain;
/// What a page is made of.
mod shelf {
    pub(crate) const ROOT: &str = "/data";

    #[derive(Default)]
    pub(crate) struct Note {
        pub(crate) path: String,
        pub(crate) size: u64,
        pub(crate) title: String,
        pub(crate) heading: String,
        pub(crate) links: Vec<String>,
        pub(crate) copy_of: Option<usize>,
    }

    pub(crate) struct Shelf {
        pub(crate) notes: Vec<Note>,
    }
}

/// How this program is started to be the plain one.
const PLAIN: &str = "plain";
/// Rounds that are counted.
const ROUNDS: u32 = 11;

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).filter(|all| all != "--bench").collect();
    let done = match arguments.as_slice() {
        [word, folder] if word == PLAIN => plain::index(Path::new(folder)).map_err(Failure::from),
        [synapse, agent, grant] => compare(&[synapse, agent, grant].map(PathBuf::from)),
        // `cargo bench` without a word more has nothing to compare.
        [] => {
            println!("not measured: say which `synapse`, which librarian and which grant");
            Ok(())
        }
        _ => Err("three paths are wanted: of `synapse`, of the librarian and of its grant".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn compare([synapse, agent, grant]: &[PathBuf; 3]) -> Result<(), Failure> {
    let scratch = tempfile::tempdir()?;
    let [one, other] = ["plain", "synapse"].map(|name| scratch.path().join(name));
    corpus::make(&one)?;
    corpus::make(&other)?;
    let this = env::current_exe()?;
    let plain = || {
        let mut command = Command::new(&this);
        command.arg(PLAIN).arg(&one);
        command
    };
    let ours = || {
        let mut command = Command::new(synapse);
        command.env("XDG_STATE_HOME", scratch.path().join("state"));
        command
    };
    let run = |line: &str| {
        let (mut command, mut dir) = (ours(), other.clone().into_os_string());
        dir.push("=/data");
        command.args(["run", "--confirm", "deny"]).arg(agent).arg(line);
        command.arg("--grant").arg(grant).arg("--dir").arg(dir);
        command
    };
    let line = "Write an index.";
    let [one_index, other_index] = [&one, &other].map(|folder| folder.join("INDEX.md"));
    let mut all = [Taken::default(), Taken::default()];
    for round in 0..=ROUNDS {
        let taken = [Taken::by(plain())?, Taken::by(run(line))?];
        if fs::read(&one_index)? != fs::read(&other_index)? {
            return Err("the two wrote different indexes".into());
        }
        fs::remove_file(&one_index)?;
        fs::remove_file(&other_index)?;
        // The first start compiles the agent, and is not counted.
        if round > 0 {
            for (all, taken) in all.iter_mut().zip(taken) {
                all.cpu += taken.cpu;
                all.wall += taken.wall;
            }
        }
    }
    let [bare, gated] = all;
    for (name, taken) in [("plain", &bare), ("librarian", &gated)] {
        let [cpu, wall] = [taken.cpu, taken.wall].map(|all| all / f64::from(ROUNDS) * 1e3);
        println!("{name:>10}: {cpu:4.0} ms of the processor, {wall:4.0} ms in all");
    }
    let [cpu, wall] = [gated.cpu / bare.cpu, gated.wall / bare.wall];
    println!("     ratio: {cpu:.2} of the processor, {wall:.2} in all");

    let before = tree(&other)?;
    Taken::by(run("Write an index and move duplicates."))?;
    let moved = tree(&other)?;
    let mut undo = ours();
    undo.args(["undo", "latest", "--yes"]);
    Taken::by(undo)?;
    if moved == before || tree(&other)? != before {
        return Err("an undone run left another folder than it found".into());
    }
    println!("      undo: {} files as they were", before.len());
    Ok(())
}

/// Seconds.
#[derive(Default)]
struct Taken {
    /// The processor's, by all threads.
    cpu: f64,
    wall: f64,
}

impl Taken {
    fn by(mut command: Command) -> Result<Self, Failure> {
        let (before, begun) = (children()?, Instant::now());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if !status.success() {
            return Err(format!("{command:?} ended with {status}").into());
        }
        Ok(Self { cpu: children()? - before, wall: begun.elapsed().as_secs_f64() })
    }
}

/// The processor's seconds that ended children have taken. The kernel counts them in
/// hundredths, without losing what is less.
fn children() -> Result<f64, Failure> {
    let told = fs::read_to_string("/proc/self/stat")?;
    let own = told.rsplit_once(')').map_or("", |(_, own)| own);
    let ticks = own.split_whitespace().skip(13).take(2).map(str::parse::<u32>);
    Ok(f64::from(ticks.sum::<Result<u32, _>>()?) / 100.0)
}

/// Every file below a folder, and its bytes.
fn tree(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Failure> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                let bytes = fs::read(&path)?;
                all.insert(path, bytes);
            }
        }
    }
    Ok(all)
}
