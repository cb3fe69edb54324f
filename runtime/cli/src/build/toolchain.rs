//! Which compiler of this machine can build guests
//!
//! Two can: the ordinary one, once it has the WebAssembly target, and Debian's
//! `rustc-web`, which comes with the library's source and builds the part of
//! it that a guest needs. The first is asked first.
//!
//! # Not here
//! Installing either (`cargo xtask setup`).

use core::fmt;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::TARGET;
use super::error::BuildError;

/// Which compilers may be used.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum Choice {
    /// The first that is complete.
    #[default]
    Any,
    /// The ordinary compiler with its WebAssembly target.
    Target,
    /// Debian's rustc-web, cargo-web, rust-web-src and lld-19.
    Debian,
}

/// A compiler that can build guests.
#[derive(Debug)]
pub(crate) enum Toolchain {
    /// The ordinary compiler; `sysroot` holds the target.
    Target { cargo: OsString, sysroot: PathBuf },
    /// Debian's; `sysroot` holds the library's source.
    Debian { cargo: PathBuf, rustc: PathBuf, sysroot: PathBuf },
}

impl Toolchain {
    /// Finds a complete one, or says what each lacks.
    pub(crate) fn find(choice: Choice) -> Result<Self, BuildError> {
        let candidates: &[fn() -> Result<Self, String>] = match choice {
            Choice::Any => &[Self::target, Self::debian],
            Choice::Target => &[Self::target],
            Choice::Debian => &[Self::debian],
        };
        let mut lacks = Vec::new();
        for candidate in candidates {
            match candidate() {
                Ok(toolchain) => return Ok(toolchain),
                Err(lack) => lacks.push(lack),
            }
        }
        Err(BuildError::NoToolchain { lacks })
    }

    /// Cargo, for questions.
    pub(crate) fn cargo(&self) -> Command {
        match self {
            Self::Target { cargo, .. } => Command::new(cargo),
            Self::Debian { cargo, rustc, .. } => {
                let mut command = Command::new(cargo);
                command.env("RUSTC", rustc);
                command
            }
        }
    }

    /// Cargo, able to compile for WebAssembly; the subcommand is still to come.
    pub(crate) fn guest_cargo(&self) -> Command {
        let mut command = self.cargo();
        match self {
            Self::Target { .. } => {}
            Self::Debian { .. } => {
                command
                    .args(["-Z", "build-std=core,alloc"])
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER);
            }
        }
        command
    }

    /// Where the source of `core` and `alloc` stands, if it does.
    pub(crate) fn library_source(&self) -> PathBuf {
        let (Self::Target { sysroot, .. } | Self::Debian { sysroot, .. }) = self;
        sysroot.join("lib/rustlib/src/rust")
    }

    /// Name of the target folder, so that two compilers do not share one.
    pub(crate) fn dir_name(&self) -> &'static str {
        match self {
            Self::Target { .. } => "target",
            Self::Debian { .. } => "debian",
        }
    }

    fn target() -> Result<Self, String> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let Some(sysroot) = sysroot(Path::new(&rustc)) else {
            return Err(format!("`{}` does not run", Path::new(&rustc).display()));
        };
        if !sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
            return Err(format!("`{}` lacks the target {TARGET}", Path::new(&rustc).display()));
        }
        Ok(Self::Target { cargo: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), sysroot })
    }

    fn debian() -> Result<Self, String> {
        let rustc = packaged("rustc-web", "bin/rustc").ok_or("Debian's rustc-web is missing")?;
        let cargo = packaged("cargo-web", "bin/cargo").ok_or("Debian's cargo-web is missing")?;
        let sysroot = sysroot(&rustc).ok_or("Debian's rustc-web does not run")?;
        if !sysroot.join("lib/rustlib/src/rust/library/Cargo.lock").is_file() {
            return Err("Debian's rust-web-src is missing".to_owned());
        }
        if !Command::new(DEBIAN_LINKER)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            return Err("Debian's lld-19 is missing".to_owned());
        }
        Ok(Self::Debian { cargo, rustc, sysroot })
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { sysroot, .. } => write!(f, "the compiler in {}", sysroot.display()),
            Self::Debian { rustc, .. } => write!(f, "Debian's rustc-web ({})", rustc.display()),
        }
    }
}

/// The installation folder of a compiler that runs.
fn sysroot(rustc: &Path) -> Option<PathBuf> {
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())?
        .map(|path| path.trim_end().into())
}

/// The file of an installed Debian package whose path ends so.
fn packaged(package: &str, ending: &str) -> Option<PathBuf> {
    let output = Command::new("dpkg").args(["--listfiles", package]).output().ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    list.lines().map(PathBuf::from).find(|path| path.ends_with(ending) && path.is_file())
}

const DEBIAN_LINKER: &str = "wasm-ld-19";
