//! The manifests that ship: lines for cargo, npm, pytest and git
//!
//! A template is a manifest with the places of this machine's programs left open. What
//! comes of it is approved like any other.
//!
//! # Not here
//! What a manifest means (the kernel); showing it and asking (the command line).

use core::fmt::Write as _;
use std::env;
use std::path::{Path, PathBuf};

use crate::list::quoted;

/// The templates, by name.
pub const TEMPLATES: [(&str, &str); 4] = [
    ("cargo", include_str!("templates/cargo.toml")),
    ("git", include_str!("templates/git.toml")),
    ("npm", include_str!("templates/npm.toml")),
    ("pytest", include_str!("templates/pytest.toml")),
];

/// Folders that every program may read anyway.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/lib"];

/// A template's manifest on this machine, for a connector of this name. `read` are
/// folders besides those that it finds itself.
///
/// # Errors
/// There is no such template, or a program of it is not here; in words.
pub fn fill(template: &str, server: &str, read: &[String]) -> Result<String, String> {
    let text = TEMPLATES.iter().find(|(name, _)| *name == template).map(|(_, text)| *text);
    let text = text.ok_or_else(|| {
        let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
        format!("there is no template `{template}`; there are {}", names.join(", "))
    })?;
    let mut folders = read.to_vec();
    let mut filled = String::new();
    let mut parts = text.split('@');
    while let Some(plain) = parts.next() {
        filled.push_str(plain);
        let Some(place) = parts.next() else { break };
        match place.split_once(' ') {
            Some(("program", name)) => filled.push_str(&quoted(&program(name, &mut folders)?)),
            Some(("home", name)) => {
                let home = home(name)?;
                for inner in KEPT.iter().filter(|(of, _)| *of == name) {
                    let folder = home.join(inner.1);
                    folders.extend(folder.exists().then(|| text_of(&folder)));
                }
                filled.push_str(&quoted(&text_of(&home)));
            }
            _ if place == "server" => filled.push_str(&quoted(server)),
            // Once all of them are known.
            _ => filled.push_str(READ),
        }
    }
    folders.sort();
    folders.dedup();
    let mut list = String::new();
    for (place, folder) in folders.iter().enumerate() {
        let _ = write!(list, "{}{}", if place == 0 { "" } else { ", " }, quoted(folder));
    }
    Ok(filled.replace(READ, &list))
}

/// Where the folders go; no manifest holds it.
const READ: &str = "\u{1}";

/// What of a toolchain's home is needed: never the whole, which holds credentials.
const KEPT: [(&str, &str); 7] = [
    ("CARGO_HOME", "bin"),
    ("CARGO_HOME", "registry"),
    ("CARGO_HOME", "git"),
    ("CARGO_HOME", "config.toml"),
    ("RUSTUP_HOME", "toolchains"),
    ("RUSTUP_HOME", "settings.toml"),
    ("RUSTUP_HOME", "update-hashes"),
];

/// A program on the path, and the folder of it, where it stands outside of the system's.
fn program(name: &str, folders: &mut Vec<String>) -> Result<String, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = places.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()));
    let found = found.ok_or_else(|| {
        format!("there is no program `{name}` on PATH; install it, or put its folder into PATH")
    })?;
    let real = std::fs::canonicalize(&found).unwrap_or_else(|_| found.clone());
    let above = real.parent().and_then(Path::parent);
    let is_system = SYSTEM.iter().any(|system| real.starts_with(system));
    // A toolchain of its own: `bin` beside what it needs.
    let own = real.parent().is_some_and(|folder| folder.ends_with("bin"));
    let deep = above.is_some_and(|above| above.components().count() > 3);
    let home = KEPT.iter().any(|(home, _)| self::home(home).is_ok_and(|it| real.starts_with(it)));
    if !is_system && own && deep && !home {
        folders.extend(above.map(text_of));
    }
    Ok(text_of(&found))
}

/// A toolchain's home: what its variable says, or where it is by default.
fn home(name: &str) -> Result<PathBuf, String> {
    let default = if name == "CARGO_HOME" { ".cargo" } else { ".rustup" };
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(name)
        .or_else(|| absolute("HOME").map(|home| home.join(default)))
        .ok_or_else(|| format!("neither {name} nor HOME is an absolute path; set one of them"))
}

fn text_of(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use synapse_boundary::scope::Effect;
    use synapse_kernel::manifest::Manifest;

    #[test]
    fn every_template_is_a_manifest_whose_lines_need_no_question() {
        for (name, text) in TEMPLATES {
            let plain = text
                .split('@')
                .enumerate()
                .map(|(place, part)| match (place % 2, part) {
                    (0, part) => part,
                    (_, "read") => "\"/opt/x\"",
                    (_, "server") => "\"x\"",
                    _ => "\"/usr/bin/x\"",
                })
                .collect::<String>();
            let manifest = Manifest::check(&plain).unwrap_or_else(|all| panic!("{name}: {all:?}"));
            assert!(manifest.start.lines && manifest.warnings().is_empty(), "{name}");
            for verb in &manifest.verbs {
                assert!(
                    matches!(verb.class(), Effect::Read | Effect::Free),
                    "{name} {}",
                    verb.name
                );
                let words = ["push", "fetch", "publish", "install", "clone", "remote", "pull"];
                assert!(!verb.line.iter().any(|word| words.contains(&&**word)), "{name}");
            }
        }
    }

    #[test]
    fn the_lines_that_ship_are_the_ones_that_may_change_a_history() {
        let filled = fill("git", "git", &[]).unwrap();
        let manifest = Manifest::check(&filled).unwrap();
        let shipped =
            |name: &str| super::super::git::is_shipped(&manifest.verb(name).unwrap().line);
        assert!(shipped("add") && shipped("commit"));
        assert!(manifest.verbs.iter().filter(|verb| shipped(&verb.name)).count() == 2);
    }

    #[test]
    fn what_is_not_here_is_told() {
        let told = fill("make", "x", &[]).unwrap_err();
        assert!(told.contains("there are cargo, git, npm, pytest"), "{told}");
        let told = program("no-such-program", &mut Vec::new()).unwrap_err();
        assert!(told.contains("there is no program `no-such-program` on PATH"), "{told}");
    }
}
