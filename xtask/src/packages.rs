//! The packages that come with Synapse, made and put where `synapse install` looks
//!
//! # Not here
//! What a package is, and asking the person (`synapse`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;
use crate::step::{Failure, done, prepare, root, synapse};

/// Builds every package of this project into a folder, or into the user's.
pub(crate) fn run(output: Option<PathBuf>) -> Result<(), Failure> {
    setup::run(&[setup::GUEST])?;
    let output = output.map_or_else(own, Ok)?;
    let synapse = synapse()?;
    let failed = |at: &Path, why| format!("`{}`: {why}\ncheck its permissions", at.display());
    fs::create_dir_all(&output).map_err(|why| failed(&output, why))?;
    // The build is run from the project's root.
    let output = fs::canonicalize(&output).map_err(|why| failed(&output, why))?;
    let packages = root().join("packages");
    let folders = fs::read_dir(&packages).map_err(|why| failed(&packages, why))?;
    for folder in folders {
        let folder = folder.map_err(|why| failed(&packages, why))?.path();
        let Some(name) = folder.file_name().filter(|_| folder.join("manifest.toml").exists())
        else {
            continue;
        };
        let file = output.join(name).with_extension("synapse");
        let mut build = Command::new(&synapse);
        prepare(&mut build)?;
        done(build.arg("build").arg(&folder))?;
        done(Command::new(&synapse).args(["package", "build"]).arg(&folder).arg("-o").arg(file))?;
    }
    println!("`synapse install NAME` finds them by their names");
    Ok(())
}

/// Where a user's own programs keep what they read.
fn own() -> Result<PathBuf, Failure> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .ok_or("neither XDG_DATA_HOME nor HOME is an absolute path\nname a folder with --output")?;
    Ok(data.join("synapse/packages"))
}
