//! What Cargo knows about the package to build
//!
//! # Not here
//! The project's own `manifest.toml`, which a build does not need.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::BuildError;
use super::toolchain::Toolchain;

/// A package with a library, and where its sources stand.
#[derive(Debug)]
pub(crate) struct Package {
    /// The name in its Cargo.toml.
    pub(crate) name: String,
    /// File name of the compiled library, without the ending.
    pub(crate) lib: String,
    /// The folder, absolute and without links.
    pub(crate) dir: PathBuf,
    /// The target folder that Cargo would use.
    pub(crate) target_dir: PathBuf,
    /// The folder of every package in the build, and the name it goes by in
    /// the compiled module.
    pub(crate) sources: Vec<(PathBuf, String)>,
}

impl Package {
    /// Asks Cargo about the package in `dir`.
    pub(crate) fn read(toolchain: &Toolchain, dir: &Path) -> Result<Self, BuildError> {
        let failed = |why: &str, todo| BuildError::Package {
            dir: dir.to_path_buf(),
            why: why.to_owned(),
            todo,
        };
        let manifest = match fs::canonicalize(dir.join("Cargo.toml")) {
            Ok(manifest) => manifest,
            Err(why) => {
                return Err(failed(
                    &format!("its Cargo.toml cannot be read ({why})"),
                    "name the folder that holds the Cargo.toml of the guest",
                ));
            }
        };
        let mut cargo = toolchain.cargo("metadata");
        cargo.args(["--format-version", "1", "--manifest-path"]).arg(&manifest);
        let output = cargo.output().map_err(|why| BuildError::start(&cargo, why))?;
        if !output.status.success() {
            return Err(failed(
                String::from_utf8_lossy(&output.stderr).trim(),
                "correct what Cargo complains about",
            ));
        }
        parse(&output.stdout, &manifest).map_err(|why| {
            failed(why, "name the folder of a Rust library that calls `synapse_guest::agent!`")
        })
    }
}

fn parse(metadata: &[u8], manifest: &Path) -> Result<Package, &'static str> {
    let metadata: Value =
        serde_json::from_slice(metadata).map_err(|_| "Cargo described it in no known form")?;
    let packages =
        metadata.get("packages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let own = packages
        .iter()
        .find(|package| text(package, "manifest_path").map(Path::new) == Some(manifest))
        .ok_or("its Cargo.toml describes a workspace, not a package")?;
    let lib = own
        .get("targets")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|target| ["lib", "rlib", "cdylib"].iter().any(|kind| has_kind(target, kind)))
        .and_then(|target| text(target, "name"))
        .ok_or("it has no library")?;
    let unknown = "Cargo described it in no known form";
    Ok(Package {
        name: text(own, "name").ok_or(unknown)?.to_owned(),
        lib: lib.replace('-', "_"),
        dir: manifest.parent().ok_or(unknown)?.to_path_buf(),
        target_dir: text(&metadata, "target_directory").ok_or(unknown)?.into(),
        sources: packages.iter().map(source).collect::<Option<_>>().ok_or(unknown)?,
    })
}

fn source(package: &Value) -> Option<(PathBuf, String)> {
    let dir = Path::new(text(package, "manifest_path")?).parent()?;
    Some((dir.to_path_buf(), format!("{}-{}", text(package, "name")?, text(package, "version")?)))
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

fn has_kind(target: &Value, wanted: &str) -> bool {
    target
        .get("kind")
        .and_then(Value::as_array)
        .is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::path::{Path, PathBuf};

    const METADATA: &str = r#"{"target_directory":"/t","packages":[
        {"name":"dep","version":"2.0.0","manifest_path":"/r/dep/Cargo.toml","targets":[]},
        {"name":"my-agent","version":"0.1.0","manifest_path":"/p/Cargo.toml","targets":[
            {"kind":["custom-build"],"name":"build-script-build"},
            {"kind":["lib"],"name":"my-agent"}]}]}"#;

    #[test]
    fn package_is_found_by_its_manifest() {
        let package = parse(METADATA.as_bytes(), Path::new("/p/Cargo.toml")).unwrap();
        assert_eq!((package.name.as_str(), package.lib.as_str()), ("my-agent", "my_agent"));
        assert_eq!((package.dir, package.target_dir), ("/p".into(), "/t".into()));
        let sources: [(PathBuf, String); 2] =
            [("/r/dep".into(), "dep-2.0.0".to_owned()), ("/p".into(), "my-agent-0.1.0".to_owned())];
        assert_eq!(package.sources, sources);
    }

    #[test]
    fn what_is_no_guest_is_said() {
        let why = |metadata: &str, manifest| {
            parse(metadata.as_bytes(), Path::new(manifest)).map(|_| ()).unwrap_err()
        };
        assert_eq!(why("nonsense", "/p/Cargo.toml"), "Cargo described it in no known form");
        assert_eq!(
            why(METADATA, "/Cargo.toml"),
            "its Cargo.toml describes a workspace, not a package"
        );
        assert_eq!(why(METADATA, "/r/dep/Cargo.toml"), "it has no library");
    }
}
