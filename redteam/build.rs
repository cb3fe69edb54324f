//! Assembles the guests that play scripts, and lists the corpus, so that the
//! program carries both.

use core::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let output = PathBuf::from(std::env::var("OUT_DIR")?);
    for guest in ["player", "ambient"] {
        println!("cargo::rerun-if-changed={guest}.wat");
        let component = wat::parse_file(format!("{guest}.wat"))?;
        fs::write(output.join(guest).with_extension("wasm"), component)?;
    }
    for folder in ["corpus", "work", "grants"] {
        println!("cargo::rerun-if-changed={folder}");
        fs::write(output.join(folder).with_extension("rs"), list(folder)?)?;
    }
    Ok(())
}

/// The files of a folder with their names, as a constant slice. Their text itself, not where
/// it stands: two clones may share what they build.
fn list(folder: &str) -> Result<String, Box<dyn core::error::Error>> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut code = String::from("&[\n");
    for file in files {
        let path = file.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        writeln!(code, "    ({name:?}, {:?}),", fs::read_to_string(&path)?)?;
    }
    code.push(']');
    Ok(code)
}
