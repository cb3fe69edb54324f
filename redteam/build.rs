//! Assembles the guest that plays scripts, and lists the corpus, so that the
//! program carries both.

use core::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    println!("cargo::rerun-if-changed=player.wat");
    let output = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(output.join("player.wasm"), wat::parse_file("player.wat")?)?;
    for folder in ["corpus", "work", "grants"] {
        println!("cargo::rerun-if-changed={folder}");
        fs::write(output.join(folder).with_extension("rs"), list(folder)?)?;
    }
    Ok(())
}

/// The files of a folder with their names, as a constant slice.
fn list(folder: &str) -> Result<String, Box<dyn core::error::Error>> {
    let root = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join(folder);
    let mut files: Vec<_> = fs::read_dir(&root)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut code = String::from("&[\n");
    for file in files {
        let path = file.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let path = path.to_str().ok_or("the project's path is not UTF-8")?;
        writeln!(code, "    ({name:?}, include_str!({path:?})),")?;
    }
    code.push(']');
    Ok(code)
}
