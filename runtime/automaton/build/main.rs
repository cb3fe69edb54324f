//! Writes the tables of `grammar.pest`, or fails and names the rule that forbids it.

mod nfa;
mod table;

use core::error::Error;
use core::fmt::Write as _;
use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use table::Table;

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
    let tables = source(&Table::new(&nfa)?)?;
    let folder = env::var_os("OUT_DIR").ok_or("Cargo gave no OUT_DIR; build with Cargo")?;
    Ok(fs::write(Path::new(&folder).join("tables.rs"), tables)?)
}

/// The constants that the library includes.
fn source(table: &Table) -> Result<String, Box<dyn Error>> {
    let Table { rows, start, complete } = table;
    let mut starts = vec![0];
    let mut ranges = String::new();
    let mut count = 0;
    for row in rows {
        row.iter().try_for_each(|range| write!(ranges, "{range:?},"))?;
        count += row.len();
        starts.push(count);
    }
    let places = starts.len();
    Ok(format!(
        "const FIRST: u16 = {start};
        const COMPLETE: u16 = {complete};
        static ROWS: [u32; {places}] = {starts:?};
        static RANGES: [(u8, u8, u16); {count}] = [{ranges}];"
    ))
}
