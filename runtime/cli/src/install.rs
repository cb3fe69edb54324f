//! `synapse install` and `upgrade`: one question, then a package that can never do more
//!
//! # Not here
//! The question (`synapse_host::package`) and the dialogue (`consent`).

use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;
use synapse_host::log;
use synapse_host::package::{
    Authority, Consent, Digest, Installed, Key, Package, Pin, Source, Store, Vouched, follows,
};
use synapse_host::render;

use crate::{consent, package, stock};

/// Installs a package, after showing what it asks for.
///
/// You are shown who made it, whether its signature holds, and all that it could
/// ever do; each entry can be turned off or narrowed. What you agree to is bound to
/// every byte of the package. What is installed already is upgraded, and you are
/// asked only if it wants more than before.
///
/// It comes from a file or a folder, or is fetched: from `https://…`, or from a registry as
/// `oci://HOST/NAME:TAG`. Both may end in @sha256:… and the digest that it must have. A
/// download that broke off goes on where it ended.
///
/// Without a terminal, name what you agree to: `--accept` with the digest that
/// `synapse package inspect` shows, and `--grant` with what it is to get, at most
/// what `synapse package grant` prints.
///
/// Exit codes: 0 installed, 1 failed or not agreed to, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Install {
    /// A package's file or folder, `https://…`, `oci://HOST/NAME:TAG`, or the name of one
    /// that comes with Synapse.
    #[arg(value_parser = package::Named)]
    package: Source,

    #[command(flatten)]
    how: How,
}

/// Installs another version of an installed package.
///
/// One that asks for no more than before is installed at once, with what you agreed
/// to then. If it asks for more, you are shown that and asked.
///
/// Exit codes: 0 installed, 1 failed or not agreed to, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct Upgrade {
    /// The new version: a package's file or folder, `https://…`, or `oci://HOST/NAME:TAG`; or
    /// the name of an installed package, which is looked for where it came from.
    #[arg(value_parser = package::Named)]
    package: Source,

    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct How {
    /// The digest of the package that you agree to.
    #[arg(long, value_name = "sha256:…", requires = "grant", value_parser = digest)]
    accept: Option<Digest>,

    /// What it is to get.
    #[arg(long, value_name = "FILE", requires = "accept")]
    grant: Option<PathBuf>,

    /// The key that takes the place of its publisher's, as ed25519:…, or `none` if
    /// the publisher signs no more.
    #[arg(long, value_name = "KEY", value_parser = pin)]
    new_key: Option<Pin>,

    /// Ask in plain text, page by page, instead of on a whole screen. That is also
    /// how a small terminal is asked on.
    #[arg(long)]
    plain: bool,

    /// Install an older version than there is, or the same with other bytes.
    #[arg(long)]
    allow_downgrade: bool,
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "it is sha256: and 64 hex digits".to_owned())
}

fn pin(text: &str) -> Result<Pin, String> {
    if text == "none" {
        return Ok(Pin::Nobody);
    }
    let key = Key::parse(text).map(Pin::New);
    key.ok_or_else(|| "it is ed25519: and 64 hex digits, or none".to_owned())
}

impl Install {
    /// Installs what was named, if the person agrees.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let store = store()?;
        let source = stock::found(self.package);
        let package = package::open(&source)?;
        let installed = get(&store, &package.manifest.name)?;
        self.how.install(&store, &package, installed.as_ref(), &source)
    }
}

impl Upgrade {
    /// Upgrades what was named, if that is no more than was agreed to or the person agrees.
    pub(crate) fn run(self) -> Result<ExitCode, String> {
        let store = store()?;
        let source = again(&store, self.package)?;
        let package = package::open(&source)?;
        let name = &package.manifest.name;
        let installed = get(&store, name)?.ok_or_else(|| {
            format!("`{name}` is not installed\ninstall it with `synapse install`")
        })?;
        self.how.install(&store, &package, Some(&installed), &source)
    }
}

impl How {
    fn install(
        &self,
        store: &Store,
        package: &Package,
        installed: Option<&Installed>,
        source: &Source,
    ) -> Result<ExitCode, String> {
        let told = |why: synapse_host::package::PackageError| why.to_string();
        let (name, version) = (&package.manifest.name, package.manifest.version);
        let vouched = store.vouched(package, self.new_key.unwrap_or_default()).map_err(told)?;
        if !follows(package, installed, self.allow_downgrade).map_err(told)? {
            tell!("{name} {version} is installed already");
            return Ok(ExitCode::SUCCESS);
        }
        let warnings = store.look_alikes(package).map_err(told)?;
        let mut question = Consent::new(package, installed, vouched, &warnings);
        let grant = match (&self.accept, &self.grant) {
            (Some(accept), Some(grant)) => {
                for warning in &warnings {
                    tell!("warning: {}", render::escape(warning));
                }
                accepted(package, accept, grant)?
            }
            _ if installed.is_some() && question.is_quiet() => {
                let key = if let Vouched::First(key) = vouched {
                    format!("; from now on its publisher is known by {key}")
                } else {
                    String::new()
                };
                tell!("it asks for no more than you agreed to{key}");
                question.grant().map_err(told)?
            }
            _ => {
                let Some(()) =
                    consent::ask(&mut question, self.plain, name, &refused(package, source))?
                else {
                    tell!("{name} {version} is not installed; nothing was changed");
                    return Ok(ExitCode::FAILURE);
                };
                question.grant().map_err(told)?
            }
        };
        store.install(package, installed, &grant, vouched, &from(source)).map_err(told)?;
        tell!(
            "installed {name} {version}, {}\nsee what it may do: synapse show {name}\n\
             run it:             synapse run {name} \"…\" --dir …",
            package.digest()
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// For the name of what is installed, where that came from.
fn again(store: &Store, source: Source) -> Result<Source, String> {
    let installed = stock::bare(&source).map(|name| get(store, name)).transpose()?.flatten();
    match installed {
        Some(installed) => Source::parse(installed.source.as_ref()).map_err(|why| why.to_string()),
        None => Ok(stock::found(source)),
    }
}

/// Where it came from, as it can be found from everywhere.
fn from(source: &Source) -> String {
    match source {
        Source::Path(path) => path::absolute(path)
            .map_or_else(|_| source.to_string(), |path| path.display().to_string()),
        Source::Web { .. } | Source::Registry(_) => source.to_string(),
    }
}

/// What the person wrote down that they agree to.
fn accepted(package: &Package, accept: &Digest, grant: &Path) -> Result<Authority, String> {
    if *accept != package.digest() {
        return Err(format!(
            "you agreed to {accept}, and this package is {}\nlook at this one with `synapse package \
             inspect`",
            package.digest()
        ));
    }
    let file = package::shown(grant);
    let text = fs::read_to_string(grant)
        .map_err(|why| format!("`{file}` could not be read: {why}\nname a grant file"))?;
    let grant = Authority::read(&text).map_err(|why| format!("{file}: {why}"))?;
    if !package.manifest.request.covers(&grant) {
        return Err(format!(
            "{file}: it is more than the package asks for\nbegin with what `synapse package grant` \
             prints, and take away from it"
        ));
    }
    Ok(grant)
}

/// What to do where nobody can be asked.
fn refused(package: &Package, source: &Source) -> String {
    let source = render::line(source.to_string(), 200);
    format!(
        "it asks for what nobody agreed to, and without a terminal nobody can be asked\nlook at it \
         with `synapse package inspect {source}`, write what it is to get with `synapse package \
         grant {source} > grant.toml`, and name both: --accept {} --grant grant.toml",
        package.digest()
    )
}

/// The installed packages of this user.
pub(crate) fn store() -> Result<Store, String> {
    let state = log::state_dir().map_err(|why| format!("nothing can be installed: {why}"))?;
    Store::open(&state).map_err(|why| why.to_string())
}

/// An installed package.
pub(crate) fn get(store: &Store, name: &str) -> Result<Option<Installed>, String> {
    store.get(name).map_err(|why| why.to_string())
}
