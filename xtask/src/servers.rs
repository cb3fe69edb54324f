//! Well-known MCP servers and test runners, as they are published, and the tests with them
//!
//! They are installed into the build cache, each in one version, and nowhere else.
//!
//! # Not here
//! What the tests hold (the tests of the command).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache;
use crate::step::{Failure, cargo, done, output, there};

/// From npm, which keeps to the versions alone that stand here for what they need.
const NPM: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
];

/// From the Python package index.
const PYTHON: [&str; 4] = [
    "mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19",
    "mcp==2.3.0",
];

/// From there too, into a virtual environment of its own, as people have it.
const PYTEST: &str = "pytest==9.2.0";

/// What runs Python, and where its parts are.
const INTERPRETER: &str =
    "import os, sys; print(os.path.realpath(sys.executable)); print(sys.base_prefix)";

/// Installs them, if they are not there in these versions.
///
/// # Errors
/// What is missing, or why they could not be fetched.
pub(crate) fn install() -> Result<PathBuf, Failure> {
    for program in ["node", "npm", "python3", "git"] {
        if !there(Command::new(program)) {
            return Err(format!(
                "`{program}` is missing\ninstall Node.js with npm, Python with pip, and git"
            ));
        }
    }
    let folder = cache::target_dir()?.join("servers");
    let wanted = [&NPM[..], &PYTHON, &[PYTEST]].concat().join("\n");
    let marker = folder.join("installed");
    if fs::read_to_string(&marker).is_ok_and(|known| known == wanted) {
        return Ok(folder);
    }
    let failed = |path: &Path, why: std::io::Error| {
        format!("`{}` could not be written: {why}\ncheck who owns it", path.display())
    };
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|why| failed(&folder, why))?;
    }
    fs::create_dir_all(&folder).map_err(|why| failed(&folder, why))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    done(npm.arg(folder.join("npm")).args(NPM))?;
    let python = |arguments: &[&str]| {
        let mut python = Command::new("python3");
        python.arg("-m").args(arguments);
        python
    };
    let mut pip = python(&["pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
    done(pip.arg(folder.join("python")).args(PYTHON))?;
    let environment = folder.join("pytest");
    done(python(&["venv", "--without-pip"]).arg(&environment))?;
    let mut pip = python(&["pip", "--disable-pip-version-check", "--python"]);
    done(pip.arg(environment.join("bin/python3")).args(["install", "--quiet", PYTEST]))?;
    let interpreter = output(Command::new("python3").args(["-c", INTERPRETER]))?;
    for (name, text) in [("interpreter", &interpreter), ("installed", &wanted)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|why| failed(&path, why))?;
    }
    Ok(folder)
}

/// Runs the tests that need them.
pub(crate) fn test(folder: &Path) -> Result<(), Failure> {
    let mut tests = cargo(
        "test --locked --profile ci --package synapse --test it -- --ignored servers:: templates::",
    )?;
    done(tests.env("SYNAPSE_SERVERS", folder))
}
