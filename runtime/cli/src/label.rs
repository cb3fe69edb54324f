//! `synapse label`: what files carry
//!
//! # Not here
//! What a label means for a call (the door). How it is kept (`synapse_primitives::rest`).

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use synapse_host::{log, render, store};
use synapse_primitives::rest::Rest;
use synapse_primitives::rest::format::{names, word};

use crate::output;

/// Shows what a file carries.
#[derive(clap::Args)]
pub(crate) struct Label {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Show(Show),
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

impl Label {
    /// Looks a path up and prints what is kept of it.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let What::Show(Show { path, json }) = self.what;
        let shown = render::line(path.as_os_str().as_encoded_bytes(), WIDTH);
        let path = fs::canonicalize(&path)
            .map_err(|why| format!("{shown} cannot be looked at: {why}\ncheck the path"))?;
        let state = log::state_dir().map_err(|why| format!("no store can be found: {why}"))?;
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
