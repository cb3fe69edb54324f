//! `synapse grant`: writing, checking and describing grant files
//!
//! # Not here
//! What a grant means (`synapse_kernel::grant`).

mod answers;
pub(crate) mod check;
mod new;

use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use synapse_kernel::grant;

use crate::output;

/// Writes and checks grant files: what an agent may do.
#[derive(clap::Args)]
pub(crate) struct Grant {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Check a grant file, and show each mistake and warning where it stands.
    ///
    /// A mistake is what no run would start with. A warning is what is legal and
    /// probably not meant: entries that are very wide, that add nothing, or that
    /// no granted primitive uses.
    ///
    /// Exit codes: 0 a grant, with or without warnings, 1 no grant or
    /// unreadable, 2 the command line is wrong.
    Check {
        /// The file.
        #[arg(default_value = "grant.toml")]
        file: PathBuf,
        /// Print one JSON object a line: each mistake or warning, then the
        /// summary.
        #[arg(long)]
        json: bool,
    },
    New(new::New),
    /// Print the JSON Schema of grant files, for editors.
    ///
    /// Editors that know TOML complete and check with it; the reader is
    /// stricter, so check with `synapse grant check` as well.
    ///
    /// Exit codes: 0 printed, 1 failed, 2 the command line is wrong.
    Schema,
}

impl Grant {
    /// Does what was asked.
    pub(crate) fn run(self) -> Result<ExitCode, GrantError> {
        match self.action {
            Action::Check { file, json } => check::run(&file, json),
            Action::New(new) => new.run().map(|()| ExitCode::SUCCESS),
            Action::Schema => {
                let schema: Value = serde_json::from_str(&grant::schema()).unwrap_or_default();
                output::say(&format!("{schema:#}"))?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Why nothing came of it.
#[derive(Debug)]
pub(crate) enum GrantError {
    /// What happened; why; what to do.
    Told(String),
    /// Standard output took nothing.
    Output(io::Error),
}

impl From<io::Error> for GrantError {
    fn from(why: io::Error) -> Self {
        Self::Output(why)
    }
}

impl GrantError {
    /// What to tell of it, if anything.
    pub(crate) fn told(&self) -> Option<String> {
        match self {
            Self::Told(told) => Some(told.clone()),
            Self::Output(why) => output::told(why),
        }
    }
}
