//! Writes the tables of `grammar.pest`, or fails and names the rule that forbids it.

mod nfa;
mod table;

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("`{GRAMMAR}` has no automaton: {why}");
            ExitCode::FAILURE
        }
    }
}

/// From the crate's folder, where Cargo runs this.
const GRAMMAR: &str = "../../grammar.pest";

fn generate() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={GRAMMAR}");
    println!("cargo::rerun-if-changed=build");
    let nfa = nfa::compile(&fs::read_to_string(GRAMMAR)?)?;
    let tables = table::Table::new(&nfa)?.source()?;
    let folder = env::var_os("OUT_DIR").ok_or("Cargo gave no OUT_DIR; build with Cargo")?;
    Ok(fs::write(Path::new(&folder).join("tables.rs"), tables)?)
}
