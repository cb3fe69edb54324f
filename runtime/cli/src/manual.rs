//! `synapse completions` and `synapse man`: what the shell and `man` show
//!
//! Both are made from the command line's own description, so that neither can
//! tell of an option that there is not.
//!
//! # Not here
//! The description (`main` and each command's module).

use clap_complete::{Shell, generate};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::audit::shown;
use crate::output;

/// Prints what a shell needs to complete this command.
///
/// Exit codes: 0 printed, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub(crate) fn run(self, mut command: clap::Command) -> Result<(), String> {
        let mut script = Vec::new();
        generate(self.shell, &mut command, "synapse", &mut script);
        print(&script)
    }
}

/// Prints the manual page, or writes one for each command.
///
/// Exit codes: 0 written, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Man {
    /// The folder to write the pages of all commands into, named
    /// `synapse-run.1` and so on; it is made if there is none. Without it the
    /// page of `synapse` is printed.
    folder: Option<PathBuf>,
}

impl Man {
    /// Prints or writes.
    pub(crate) fn run(self, command: clap::Command) -> Result<(), String> {
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command)
                .render(&mut page)
                .map_err(|why| format!("the page could not be made: {why}\nreport it"))?;
            return print(&page);
        };
        let failed = |why: io::Error| {
            let folder = shown(&folder);
            format!("`{folder}` took no pages: {why}\nname a folder that you may write")
        };
        fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(command, &folder).map_err(failed)?;
        tell(&folder)
    }
}

fn tell(folder: &Path) -> Result<(), String> {
    let text = format!("wrote the pages to {0}\nread one: man {0}/synapse.1", shown(folder));
    print(text.as_bytes())
}

fn print(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    output::say(text.trim_end_matches('\n')).or_else(|why| output::told(&why).map_or(Ok(()), Err))
}
