//! `synapse package`: making, reading, signing, checking and pushing packages' files
//!
//! # Not here
//! What a package is (`synapse_host::package`). Installing one (`install`).

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use synapse_host::package::{self, Secret, Source, write_new};
use synapse_host::{log, render};

use crate::progress::Bar;
use crate::{output, stock};

/// Makes, shows, signs, checks and pushes packages: an agent in one file, with what it
/// asks for.
#[derive(clap::Args)]
pub(crate) struct Package {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Make the package of a folder: its manifest.toml and NAME.wasm, and of
    /// SOUL.md, README.md, LICENSE files and docs what there is.
    ///
    /// The same folder gives the same bytes. Build the component first, with
    /// `synapse build`.
    ///
    /// Exit codes: 0 made, 1 failed, 2 the command line is wrong.
    Build {
        /// The folder.
        folder: PathBuf,
        /// File to write; by default NAME-VERSION.synapse.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show what is in a package and what it asks for; nothing is installed.
    ///
    /// Exit codes: 0 shown, 1 no package or unreadable, 2 the command line is
    /// wrong.
    Inspect {
        /// A package's file or folder, `https://…`, `oci://HOST/NAME:TAG`, or the name of one that comes with Synapse.
        #[arg(value_parser = Named)]
        package: Source,
    },
    /// Print the grant file that a package asks for.
    ///
    /// Exit codes: 0 printed, 1 no package or unreadable, 2 the command line is
    /// wrong.
    Grant {
        /// A package's file or folder, `https://…`, `oci://HOST/NAME:TAG`, or the name of one that comes with Synapse.
        #[arg(value_parser = Named)]
        package: Source,
    },
    /// Sign a package's file, in the place of whoever signed it before.
    ///
    /// Exit codes: 0 signed, 1 failed, 2 the command line is wrong.
    Sign {
        /// The file.
        package: PathBuf,
        /// The file that `synapse package keygen` wrote.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Check that a package's file is whole, and who signed it.
    ///
    /// Exit codes: 0 it is whole and signed, 1 it is not, 2 the command line is
    /// wrong.
    Verify {
        /// The file.
        package: PathBuf,
        /// The key that is to have signed it, as ed25519:…
        #[arg(long)]
        key: Option<String>,
    },
    /// Push a package's file to a registry, and print how it is named there for good.
    ///
    /// What is there already is not sent again; the tag is set last. A registry that wants
    /// a password gets the secret that is kept for it, as USER:PASSWORD: `synapse secret
    /// set NAME --for oci://HOST`.
    ///
    /// Exit codes: 0 pushed, 1 failed, 2 the command line is wrong.
    Push {
        /// The file.
        package: PathBuf,
        /// Where to: `oci://HOST/NAME:TAG`.
        #[arg(value_parser = Named)]
        to: Source,
    },
    /// Make a publisher's key, and print its public half.
    ///
    /// Whoever has the file can sign as you. Keep it, and a copy elsewhere.
    ///
    /// Exit codes: 0 made, 1 failed, 2 the command line is wrong.
    Keygen {
        /// The file to write; it must not exist.
        file: PathBuf,
    },
}

impl Package {
    /// Does what was asked.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let told = match self.action {
            Action::Build { folder, output } => {
                let made = local(&folder)?;
                let output = output.unwrap_or_else(|| made.file_name().into());
                let bytes = made.write();
                write_new(&output, &bytes).map_err(|why| why.to_string())?;
                format!("{}: {} bytes, {}", shown(&output), bytes.len(), made.digest())
            }
            Action::Inspect { package } => inspect(&open(&stock::found(package))?)?,
            Action::Grant { package } => {
                open(&stock::found(package))?.manifest.request.text().trim_end().to_owned()
            }
            Action::Sign { package: path, key } => {
                let secret = Secret::read(&key).map_err(|why| why.to_string())?;
                let mut made = file(&path)?;
                secret.sign(&mut made);
                write_new(&path, &made.write()).map_err(|why| why.to_string())?;
                format!("{}: {}, signed by {}", shown(&path), made.digest(), secret.key())
            }
            Action::Verify { package, key } => {
                let made = file(&package)?;
                let signer = made.signer().map_err(|why| why.to_string())?.ok_or_else(|| {
                    format!(
                        "{}: it is whole, {}, and not signed\nnobody vouches for it; ask its \
                         publisher for a signed one",
                        shown(&package),
                        made.digest()
                    )
                })?;
                if let Some(key) = key.filter(|key| *key != signer.to_string()) {
                    return Err(format!(
                        "{}: it is signed by {signer}, not by {}\ncompare the key with what its \
                         publisher says",
                        shown(&package),
                        render::line(key, 100)
                    ));
                }
                format!("{}: whole, {}, signed by {signer}", shown(&package), made.digest())
            }
            Action::Push { package, to } => push(&package, to)?,
            Action::Keygen { file } => {
                let secret = Secret::create(&file).map_err(|why| why.to_string())?;
                format!("{}", secret.key())
            }
        };
        match output::say(&told) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(why) => output::told(&why).map_or(Ok(ExitCode::SUCCESS), Err),
        }
    }
}

fn inspect(made: &package::Package) -> Result<String, String> {
    let signer = match made.signer().map_err(|why| why.to_string())? {
        Some(key) => format!("by {key}"),
        None => "none".to_owned(),
    };
    let manifest = &made.manifest;
    let mut told = format!(
        "{} {}, by {}\n{}digest: {}\nsignature: {signer}\nlicence: {}\n\nfiles:\n  manifest.toml, {} bytes\n",
        render::escape(&manifest.name),
        manifest.version,
        render::escape(&manifest.publisher),
        render::block(&manifest.description),
        made.digest(),
        render::escape(&manifest.licence),
        made.manifest_text().len(),
    );
    for (name, size) in made.files() {
        told.push_str(&format!("  {}, {size} bytes\n", render::escape(name)));
    }
    told.push_str("\nasks for, as a grant file:\n");
    told.push_str(&render::block(manifest.request.text()));
    if let Some(soul) = made.soul() {
        told.push_str("\nsays to its agent (SOUL.md):\n");
        told.push_str(&render::block(soul));
    }
    Ok(told.trim_end().to_owned())
}

/// Pushes a package's file, and says how it is named from then on.
fn push(path: &Path, to: Source) -> Result<String, String> {
    let Source::Registry(image) = &to else {
        return Err(format!(
            "{}: it is no image of a registry\nname one: oci://HOST/NAME:TAG",
            render::line(to.to_string(), 200)
        ));
    };
    let made = file(path)?;
    if made.signer().map_err(|why| why.to_string())?.is_none() {
        tell!(
            "warning: it is not signed, and nobody will vouch for it; `synapse package sign` does"
        );
    }
    let mut bar = Bar::new("pushing", &to);
    let state = state()?;
    let pushed = package::push(&made, image, &state, &mut |progress| bar.show(progress));
    bar.end();
    pushed.map_err(|why| why.to_string())?;
    Ok(image.pinned(made.digest()).to_string())
}

/// Where what comes and the secrets are kept.
fn state() -> Result<PathBuf, String> {
    log::state_dir().map_err(|why| format!("nothing can be fetched or pushed: {why}"))
}

/// The package at its source; what must be fetched is, and that is told.
pub(crate) fn open(source: &Source) -> Result<package::Package, String> {
    if let Some(missing) = stock::missing(source) {
        return Err(missing);
    }
    let state = state()?;
    let mut bar = Bar::new("fetching", source);
    let opened = package::open(source, &state, &mut |progress| bar.show(progress));
    bar.end();
    opened.map_err(|why| why.to_string())
}

/// The package of a path, whatever that looks like.
fn local(path: &Path) -> Result<package::Package, String> {
    open(&Source::Path(path.to_owned()))
}

/// The package of a file; a folder has no signature.
fn file(path: &Path) -> Result<package::Package, String> {
    if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        return Err(format!(
            "{}: it is a folder, and a package's file is signed\nmake it with `synapse package build`",
            shown(path)
        ));
    }
    local(path)
}

/// How a command line names a package.
#[derive(Clone)]
pub(crate) struct Named;

impl TypedValueParser for Named {
    type Value = Source;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Source, clap::Error> {
        let parser = OsStringValueParser::new();
        parser.try_map(|value: OsString| Source::parse(&value)).parse_ref(command, arg, value)
    }
}

/// A path for people.
pub(crate) fn shown(path: &Path) -> String {
    render::line(path.as_os_str().as_encoded_bytes(), 200)
}
