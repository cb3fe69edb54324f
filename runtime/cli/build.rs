//! Lists the SDK's files, which `synapse new` writes into every project
//!
//! # Not here
//! What is written beside them (`new`).

use core::error::Error;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("../..");
    let mut files = Vec::new();
    for part in PARTS {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
        collect(&root.join(part), &mut files)?;
    }
    files.sort();
    let mut list = String::from("[");
    for file in &files {
        let name = file.strip_prefix(root)?.to_str().ok_or("a file's name is no text")?;
        // Its text itself, not where it stands: two clones may share what they build.
        list += &format!("({name:?}, {:?}),\n", fs::read_to_string(file)?);
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("sdk.rs"), list)?;
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if path.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| collect(&entry?.path(), files))
    } else {
        files.push(path.to_path_buf());
        Ok(())
    }
}

/// Of the project's root: three crates, and the licences that they are under.
const PARTS: [&str; 9] = [
    "LICENSE-APACHE", "LICENSE-MIT", "guest-sdk/Cargo.toml", "guest-sdk/src", "guest-sdk/wit",
    "runtime/abi/Cargo.toml", "runtime/abi/src", "runtime/reply/Cargo.toml", "runtime/reply/src",
];
