//! `synapse build`: a package's source becomes a component
//!
//! A guest is compiled for `wasm32-unknown-unknown` by whichever compiler of
//! this machine can, then wrapped into a component with one import and one
//! export. The same source and compiler give the same bytes, wherever they
//! stand: no path of this machine enters the file.
//!
//! # Not here
//! What makes a component a guest (`synapse-kernel`). Installing a
//! compiler (`cargo xtask setup`).

pub(crate) mod component;
mod error;
mod package;
pub(crate) mod toolchain;

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use synapse_kernel::admit::admit;

pub(crate) use error::INSTALL_TARGET;

use error::BuildError;
use package::Package;
use toolchain::Toolchain;

use synapse_primitives::hex;

/// Builds a guest package into a component.
///
/// Exit codes: 0 built, 1 failed, 2 the command line is wrong, 5 no compiler
/// for guests is installed.
#[derive(clap::Args)]
pub(crate) struct Build {
    /// Folder of the package: the one with its Cargo.toml.
    package: PathBuf,

    /// File to write; by default in the folder, named after the package.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Which installed compiler to use.
    #[arg(long, value_enum, default_value_t)]
    toolchain: toolchain::Choice,
}

impl Build {
    /// Builds, and says on standard output what was written.
    pub(crate) fn run(self) -> Result<(), BuildError> {
        let toolchain = Toolchain::find(self.toolchain, TARGET)
            .map_err(|lacks| BuildError::NoToolchain { lacks })?;
        let package = Package::read(&toolchain, &self.package)?;
        tell!("building {} with {toolchain}", package.name);
        let component = component::encode(&compile(&toolchain, &package)?)?;
        let admitted = admit(&component)
            .map_err(|refused| BuildError::Component { why: refused.to_string() })?;
        let output =
            self.output.unwrap_or_else(|| package.dir.join(format!("{}.wasm", package.name)));
        write_whole(&output, &component)?;
        let boards = match admitted.boards().firmware {
            Ok(()) => "fits the host and the firmware".to_owned(),
            Err(lacks) => format!("fits the host; {lacks}"),
        };
        let line = format!(
            "{}: {} bytes, sha256 {}\n{boards}\n",
            output.display(),
            component.len(),
            hex(&Sha256::digest(&component))
        );
        io::stdout()
            .write_all(line.as_bytes())
            .map_err(|why| BuildError::Output { path: "standard output".into(), why })
    }
}

/// Compiles the package to a core module and returns its bytes.
fn compile(toolchain: &Toolchain, package: &Package) -> Result<Vec<u8>, BuildError> {
    let target_dir = package.target_dir.join("guests").join(toolchain.name);
    let mut cargo = toolchain.build("rustc");
    cargo
        .args(["--lib", "--crate-type", "cdylib"])
        .args(["--profile", "guest", "--package", &package.name])
        .arg("--manifest-path")
        .arg(package.dir.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", remap_flags(toolchain, package));
    for setting in PROFILE {
        cargo.args(["--config", setting]);
    }
    // The colours and the progress of the child are the user's.
    match cargo.status() {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(BuildError::Compile { package: package.name.clone() }),
        Err(why) => return Err(BuildError::start(&cargo, why)),
    }
    let module = target_dir.join(TARGET).join("guest").join(format!("{}.wasm", package.lib));
    fs::read(&module).map_err(|why| BuildError::Input { path: module, why })
}

/// The flags that keep the folders of this machine out of the module.
///
/// A folder that stands inside another follows it: the last match counts.
fn remap_flags(toolchain: &Toolchain, package: &Package) -> OsString {
    let mut folders = package.sources.clone();
    folders.push((toolchain.sysroot.join("lib/rustlib/src/rust"), "rust".into()));
    folders.sort();
    let mut flags = OsString::new();
    for (folder, name) in folders {
        if !flags.is_empty() {
            flags.push("\u{1f}");
        }
        flags.push("--remap-path-prefix=");
        flags.push(folder);
        flags.push("=/");
        flags.push(name);
    }
    flags
}

/// Writes beside the file and renames, so that no reader meets half of it.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let failed = |why| BuildError::Output { path: path.to_path_buf(), why };
    let Some(name) = path.file_name() else {
        return Err(failed(io::ErrorKind::InvalidFilename.into()));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", process::id()));
    let hidden = path.with_file_name(hidden);
    let written = fs::write(&hidden, bytes).and_then(|()| fs::rename(&hidden, path));
    if written.is_err() {
        // The first failure is the one to tell.
        drop(fs::remove_file(&hidden));
    }
    written.map_err(failed)
}

/// A command as a person would type it.
fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// What guests are compiled for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The profile of guests: small, and a panic is a trap. Given on the command
/// line, so that a package outside of this workspace is built alike.
const PROFILE: [&str; 8] = [
    "profile.guest.inherits='release'",
    "profile.guest.opt-level='s'",
    "profile.guest.panic='abort'",
    "profile.guest.lto='fat'",
    "profile.guest.codegen-units=1",
    "profile.guest.strip=true",
    "profile.guest.debug=false",
    "profile.guest.overflow-checks=true",
];

#[cfg(test)]
mod tests {
    use super::write_whole;
    use std::fs;

    #[test]
    fn file_is_replaced_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guest.wasm");
        write_whole(&path, b"first").unwrap();
        write_whole(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn failed_write_leaves_nothing_and_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("guest.wasm");
        fs::create_dir(&taken).unwrap();
        let told = write_whole(&taken, b"bytes").unwrap_err().to_string();
        assert!(told.contains("guest.wasm"), "{told}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
