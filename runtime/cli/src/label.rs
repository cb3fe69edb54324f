//! `synapse label`: what files carry, and whom a person vouches for
//!
//! # Not here
//! What a label means for a call (the door). How it is kept (`synapse_primitives::rest`), how a
//! person is asked (`synapse_host::trust`).

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use synapse_host::console::PATIENCE;
use synapse_host::render::{Stream, Terminal};
use synapse_host::trust::Came;
use synapse_host::{log, render, store, trust};
use synapse_primitives::rest::Rest;
use synapse_primitives::rest::format::{names, word};

use crate::output;

/// Shows what a file carries, or endorses it.
#[derive(clap::Args)]
pub(crate) struct Label {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Show(Show),
    Trust(Trust),
}

/// Shows who wrote a file and which compartments it is in, as the runs that ended left it.
///
/// What the patterns of a grant give to its path comes on top. A file that nothing is
/// kept of counts as from outside.
///
/// Exit codes: 0 shown; 1 the file or the store cannot be read; 2 the command line is
/// wrong.
#[derive(clap::Args)]
struct Show {
    /// A file or a folder.
    path: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Endorses a file: it is shown to its end, and after a typed yes counts as written by you.
///
/// An agent that reads it may then still do what needs your own words, such as a deletion;
/// it names nothing for a warrant. The yes is for the bytes that were shown: once the file
/// changes outside of a run, it counts as from others again. It works at a terminal, while
/// no run holds the file's folder, and is recorded in the state folder.
///
/// Exit codes: 0 it counts as yours (or, with --revoke, no longer); 1 you did not say yes,
/// or it cannot be done; 2 the command line is wrong.
#[derive(clap::Args)]
struct Trust {
    /// A file.
    path: PathBuf,

    /// Count it as written by others from now on; nothing is asked.
    #[arg(long)]
    revoke: bool,
}

impl Label {
    /// Does what it says.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        match self.what {
            What::Show(show) => show.run(),
            What::Trust(trust) => trust.run(),
        }
    }
}

impl Trust {
    fn run(self) -> Result<ExitCode, String> {
        let (state, path) = find(&self.path)?;
        let shown = show(&path);
        if self.revoke {
            trust::revoke(&state, &path).map_err(|why| why.to_string())?;
            tell!("{shown} counts as written by others");
            return Ok(ExitCode::SUCCESS);
        }
        let came = trust::trust(&state, &path, Terminal::new(Stream::Output), PATIENCE);
        match came.map_err(|why| why.to_string())? {
            Came::Trusted => tell!("{shown} counts as written by you, until it changes"),
            Came::Already => tell!("{shown} counts as written by you already"),
            Came::Refused => {
                return Err(format!("{shown} still counts as written by others: nobody typed yes"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    /// Looks a path up and prints what is kept of it.
    fn run(self) -> Result<ExitCode, String> {
        let Self { path, json } = self;
        let (state, path) = find(&path)?;
        let shown = show(&path);
        let (content, name) = store::carries(&state, &path).map_err(|why| {
            format!("what {shown} carries cannot be read: {why}\nuse the version that wrote it")
        })?;
        let told = if json {
            output::json(&json!({"content": object(&content), "name": object(&name)}))
        } else {
            format!("content  {}\nname     {}", line(&content), line(&name))
        };
        match output::say(&told).err().and_then(|why| output::told(&why)) {
            Some(why) => Err(why),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

/// The state folder, and the path without links.
fn find(path: &Path) -> Result<(PathBuf, PathBuf), String> {
    let found = fs::canonicalize(path)
        .map_err(|why| format!("{} cannot be looked at: {why}\ncheck the path", show(path)))?;
    let state = log::state_dir().map_err(|why| format!("no store can be found: {why}"))?;
    Ok((state, found))
}

fn show(path: &Path) -> String {
    render::line(path.as_os_str().as_encoded_bytes(), WIDTH)
}

fn line(rest: &Rest) -> String {
    let all: Vec<String> =
        rest.names.iter().map(|name| render::line(name.as_bytes(), WIDTH)).collect();
    let all = if all.is_empty() { "no compartment".to_owned() } else { all.join(", ") };
    format!("{:<8}  {all}", word(rest.integrity))
}

fn object(rest: &Rest) -> Value {
    json!({"integrity": word(rest.integrity), "compartments": names(&rest.names)})
}

const WIDTH: usize = 160;
