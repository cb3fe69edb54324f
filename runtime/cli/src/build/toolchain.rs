//! Which compiler of this machine can build for a target without an OS
//!
//! Two can: the ordinary one, once it has the target, and Debian's `rustc-web`,
//! which comes with the library's source and builds the part of it that is
//! needed. The first is asked first. `xtask` compiles this file too, so that
//! both look in the same places.
//!
//! # Not here
//! Installing either (`cargo xtask setup`).

use core::fmt;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which compilers may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Choice {
    /// The first that is complete.
    #[default]
    Any,
    /// The ordinary compiler with the target installed.
    Target,
    /// Debian's rustc-web, cargo-web, rust-web-src and lld-19.
    Debian,
}

/// A compiler that can build for its target.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// Name of a target folder, so that two compilers do not share one.
    pub(crate) name: &'static str,
    /// The installation folder: the target, or the library's source, is in it.
    pub(crate) sysroot: PathBuf,
    /// What it compiles for.
    target: &'static str,
    cargo: PathBuf,
    /// Debian's compiler, which Cargo has to be told of.
    rustc: Option<PathBuf>,
}

impl Toolchain {
    /// Finds a complete one, or says what each lacks.
    pub(crate) fn find(choice: Choice, target: &'static str) -> Result<Self, Vec<String>> {
        let mut lacks = Vec::new();
        for (kind, candidate) in CANDIDATES {
            if choice != Choice::Any && choice != kind {
                continue;
            }
            match candidate(target) {
                Ok(toolchain) => return Ok(toolchain),
                Err(lack) => lacks.push(lack),
            }
        }
        Err(lacks)
    }

    /// `cargo SUBCOMMAND`, with this compiler and for its target.
    pub(crate) fn build(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.args(["--target", self.target]);
        if self.rustc.is_some() {
            command
                .args(["-Z", "build-std=core,alloc"])
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER);
        }
        command
    }

    /// `cargo SUBCOMMAND`, with this compiler.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.cargo);
        command.arg(subcommand);
        if let Some(rustc) = &self.rustc {
            command.env("RUSTC", rustc);
        }
        command
    }

    fn ordinary(target: &'static str) -> Result<Self, String> {
        let rustc: PathBuf = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()).into();
        let Some(sysroot) = sysroot(&rustc) else {
            return Err(format!("`{}` does not run", rustc.display()));
        };
        if !sysroot.join("lib/rustlib").join(target).join("lib").is_dir() {
            return Err(format!("`{}` lacks the target {target}", rustc.display()));
        }
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into();
        Ok(Self { name: "target", sysroot, target, cargo, rustc: None })
    }

    fn debian(target: &'static str) -> Result<Self, String> {
        let rustc = packaged("rustc-web", "bin/rustc").ok_or("Debian's rustc-web is missing")?;
        let cargo = packaged("cargo-web", "bin/cargo").ok_or("Debian's cargo-web is missing")?;
        let sysroot = sysroot(&rustc).ok_or("Debian's rustc-web does not run")?;
        if !sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file() {
            return Err("Debian's rust-web-src is missing".to_owned());
        }
        let linker = Command::new(DEBIAN_LINKER).arg("--version").output();
        if !linker.is_ok_and(|output| output.status.success()) {
            return Err("Debian's lld-19 is missing".to_owned());
        }
        Ok(Self { name: "debian", sysroot, target, cargo, rustc: Some(rustc) })
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rustc {
            None => write!(f, "the compiler in {}", self.sysroot.display()),
            Some(rustc) => write!(f, "Debian's rustc-web ({})", rustc.display()),
        }
    }
}

/// The installation folder of a compiler that runs.
fn sysroot(rustc: &Path) -> Option<PathBuf> {
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| path.trim_end().into())
}

/// The file of an installed Debian package whose path ends so.
fn packaged(package: &str, ending: &str) -> Option<PathBuf> {
    let output = Command::new("dpkg").args(["--listfiles", package]).output().ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    list.lines().map(PathBuf::from).find(|path| path.ends_with(ending) && path.is_file())
}

type Candidate = fn(&'static str) -> Result<Toolchain, String>;

const CANDIDATES: [(Choice, Candidate); 2] =
    [(Choice::Target, Toolchain::ordinary), (Choice::Debian, Toolchain::debian)];
const DEBIAN_LINKER: &str = "wasm-ld-19";
