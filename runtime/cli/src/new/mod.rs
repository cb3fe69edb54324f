//! `synapse new`: a guest project that builds
//!
//! The SDK's sources are in this program and are written into the project's
//! `vendor`, with the versions that this program was built with, so that who
//! has the program alone needs neither a clone nor a published SDK.
//!
//! # Invariants
//! The folder appears whole or not at all, and never in place of another.
//!
//! # Not here
//! Compiling (`build`). Which files of the SDK there are (the build script).

mod lock;
mod name;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use crate::audit::shown;
use crate::output;

/// Makes a guest project of your own, in a new folder of the same name.
///
/// It holds an agent that lists a folder, the grant for it, and the SDK that it
/// links. Nothing needs to be published or cloned for it to build.
///
/// Exit codes: 0 made, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(crate) struct New {
    /// Name of the project: small letters, digits and hyphens.
    #[arg(value_parser = name::parse)]
    name: String,
}

impl New {
    /// Makes the folder, and says what to do with it.
    pub(crate) fn run(self) -> Result<(), String> {
        let name = self.name;
        make(Path::new(&name), &project(&name))?;
        output::say(&format!(
            "made the project {name}\n\
             build it: synapse build {name}\n\
             run it:   synapse run {name} --dir FOLDER"
        ))
        .or_else(|why| output::told(&why).map_or(Ok(()), Err))
    }
}

/// Each file of a project, by its path.
fn project(name: &str) -> Vec<(PathBuf, String)> {
    let named = TEMPLATE.map(|(path, text)| (path.into(), text.replace("{name}", name)));
    let mut files: Vec<_> = named.into();
    let vendor = Path::new("vendor/synapse");
    files.push((vendor.join("Cargo.toml"), workspace(ROOT_MANIFEST)));
    files.extend(SDK.iter().map(|(path, text)| (vendor.join(path), (*text).to_owned())));
    files.push(("Cargo.lock".into(), lock::cut(LOCK, name)));
    files
}

/// The manifest of the three crates: the project's own, without what else it has.
fn workspace(root: &str) -> String {
    let start = root.find("[workspace.package]").unwrap_or_default();
    let tables = root.get(start..).unwrap_or_default();
    let tables = tables.split_once("[profile.").map_or(tables, |(tables, _)| tables);
    format!(
        "# The SDK of guests, as it was when this project was made. The tables are those of\n\
         # the project that it comes from; most of the dependencies are not used here.\n\
         [workspace]\nresolver = \"3\"\nmembers = [\"guest-sdk\", \"runtime/abi\", \"runtime/reply\"]\n\n{}\n",
        // What stands before the first profile may be a comment on it.
        tables.trim_end_matches(|last: char| last != '"' && last != ']').trim_end()
    )
}

/// Writes beside the folder and renames, so that nobody meets half of it.
fn make(folder: &Path, files: &[(PathBuf, String)]) -> Result<(), String> {
    if folder.symlink_metadata().is_ok() {
        return Err(taken(folder));
    }
    let hidden = PathBuf::from(format!(".{}.{}", folder.display(), process::id()));
    let made = write(&hidden, files).and_then(|()| {
        renameat_with(CWD, &hidden, CWD, folder, RenameFlags::NOREPLACE).map_err(io::Error::from)
    });
    made.map_err(|why| {
        // The first failure is the one to tell.
        drop(fs::remove_dir_all(&hidden));
        if why.raw_os_error() == Some(Errno::EXIST.raw_os_error()) {
            return taken(folder);
        }
        format!(
            "the project `{}` could not be made: {why}\ngo to a folder that takes new files",
            shown(folder)
        )
    })
}

fn taken(folder: &Path) -> String {
    format!("`{}` exists already, and nothing in it is touched\nchoose another name", shown(folder))
}

fn write(folder: &Path, files: &[(PathBuf, String)]) -> io::Result<()> {
    // A left-over of the same number would be someone else's.
    fs::create_dir(folder)?;
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

const TEMPLATE: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml")),
    ("src/lib.rs", include_str!("../../template/lib.rs")),
    ("grant.toml", include_str!("../../template/grant.toml")),
    ("manifest.toml", include_str!("../../template/manifest.toml")),
    ("SOUL.md", include_str!("../../template/SOUL.md")),
    (".gitignore", "/target\n/{name}.wasm\n"),
];
const SDK: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
const ROOT_MANIFEST: &str = include_str!("../../../../Cargo.toml");
const LOCK: &str = include_str!("../../../../Cargo.lock");

#[cfg(test)]
mod tests {
    use super::{make, project};
    use std::fs;
    use std::path::PathBuf;
    use synapse_kernel::grant::Grant;

    fn file(name: &str) -> String {
        let found = project("my-agent").into_iter().find(|(path, _)| path == &PathBuf::from(name));
        found.unwrap().1
    }

    #[test]
    fn the_grant_is_one_and_every_text_bears_the_name() {
        Grant::parse(&file("grant.toml")).unwrap();
        let own = project("my-agent").into_iter().filter(|(path, _)| !path.starts_with("vendor"));
        for (path, text) in own {
            assert!(!text.contains("{name}"), "{path:?}");
        }
        assert!(file("Cargo.toml").contains("name = \"my-agent\""));
        assert!(file(".gitignore").contains("/my-agent.wasm"));
    }

    #[test]
    fn the_sdk_has_its_tables_and_nothing_of_the_rest() {
        let manifest = file("vendor/synapse/Cargo.toml");
        for part in ["[workspace.package]", "\nserde_json = ", "[workspace.lints.clippy]"] {
            assert!(manifest.contains(part), "{part}: {manifest}");
        }
        assert!(!manifest.contains("[profile") && manifest.ends_with("\"\n"), "{manifest}");
        assert!(file("vendor/synapse/guest-sdk/src/lib.rs").contains("macro_rules! agent"));
        assert!(file("vendor/synapse/runtime/abi/src/registry.rs").contains("fs_list"));
        assert!(file("vendor/synapse/LICENSE-MIT").contains("MIT"));
    }

    #[test]
    fn what_cannot_be_written_whole_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("place");
        let inside = |name: &str| (PathBuf::from(name), String::new());
        fs::create_dir(&place).unwrap();
        let told = make(&place, &[inside("a")]).unwrap_err();
        assert!(told.contains("exists already"), "{told}");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }
}
