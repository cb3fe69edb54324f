//! What a decision costs in instructions, held against `bench/instructions.toml`
//!
//! A clock on a shared machine says little, so a check counts. Valgrind counts
//! the same on every machine that has the same compiler, because it hides what
//! the processor has beyond the ordinary.
//!
//! # Invariants
//! - Counts of another compiler are compared with nothing.
//!
//! # Not here
//! How long it takes, and beside what else (`synapse bench`).

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup;
use crate::step::{Failure, cargo, output, root, text};

/// What became of a comparison.
pub(crate) enum Counted {
    /// All is as it was.
    Same,
    /// Nothing can be said here.
    Not(String),
}

/// Counts every row, and writes the file or compares with it.
pub(crate) fn run(bless: bool) -> Result<Counted, Failure> {
    if let Err(why) = setup::counter() {
        return Ok(Counted::Not(why));
    }
    let path = root().join(FILE);
    let compiler = compiler()?;
    if bless {
        let rows = count(&program()?)?;
        fs::write(&path, written(&compiler, &rows))
            .map_err(|why| format!("{FILE} could not be written: {why}\ncheck who owns it"))?;
        println!("{FILE} is written; look at what changed before you commit it");
        return Ok(Counted::Same);
    }
    let known: toml::Table = fs::read_to_string(&path)
        .map_err(|why| why.to_string())
        .and_then(|text| toml::from_str(&text).map_err(|why| why.to_string()))
        .map_err(|why| format!("{FILE} cannot be used: {why}\n{BLESS}"))?;
    let counted_by = known.get("compiler").and_then(toml::Value::as_str).unwrap_or_default();
    if counted_by != compiler {
        let why = format!("{FILE} was counted with {counted_by}, and this is {compiler}\n{BLESS}");
        return Ok(Counted::Not(why));
    }
    compare(&count(&program()?)?, known.get("rows").and_then(toml::Value::as_table))?;
    Ok(Counted::Same)
}

/// A row, and the instructions that one sentence of it takes.
type Row = (String, i64);

fn compare(rows: &[Row], known: Option<&toml::Table>) -> Result<(), Failure> {
    let known = known.ok_or_else(|| format!("{FILE} has no rows\n{BLESS}"))?;
    let mut breaches = Vec::new();
    for (name, count) in rows {
        match known.get(name).and_then(toml::Value::as_integer) {
            Some(before) if (count - before).abs() * 100 <= before * PERCENT => {}
            Some(before) => breaches.push(format!("{name}: {count} instructions, not {before}")),
            None => breaches.push(format!("{name}: {count} instructions, not known before")),
        }
    }
    for name in known.keys().filter(|name| rows.iter().all(|(row, _)| row != *name)) {
        breaches.push(format!("{name}: no longer counted"));
    }
    if breaches.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a sentence at the door costs what it did not before\n{}\n\
         look for the reason; if it is meant, {BLESS}",
        breaches.join("\n")
    ))
}

fn written(compiler: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "# Instructions that one sentence takes at the door, in the profile `ci`.\n\
         # Written by `cargo xtask instructions --bless`.\n\
         compiler = \"{compiler}\"\n\n[rows]\n"
    );
    for (name, count) in rows {
        text.push_str(&format!("\"{name}\" = {count}\n"));
    }
    text
}

fn compiler() -> Result<String, Failure> {
    let told = output(Command::new("rustc").arg("-vV"))?;
    let line = |key| told.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    Ok(format!("rustc {} for {}", line("release: "), line("host: ")))
}

/// Builds what is counted, and says where it stands.
fn program() -> Result<PathBuf, Failure> {
    let messages = output(&mut cargo(
        "bench --locked --profile ci --workspace --bench instructions --no-run --message-format json",
    )?)?;
    let mut built = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let named = text(message.get("target")?, "name") == "instructions";
        named.then(|| PathBuf::from(text(&message, "executable")))
    });
    built.next_back().ok_or_else(|| "cargo did not say what it built\nrun it by hand".to_owned())
}

fn count(program: &Path) -> Result<Vec<Row>, Failure> {
    let names = output(&mut Command::new(program))?;
    let mut rows = Vec::new();
    for name in names.lines() {
        // What is done once, whatever is done then, is in both.
        let [once, again] =
            [instructions(program, name, PASS)?, instructions(program, name, 2 * PASS)?];
        let count = again.saturating_sub(once) / i64::from(PASS);
        println!("{count:>8}  {name}");
        rows.push((name.to_owned(), count));
    }
    Ok(rows)
}

fn instructions(program: &Path, row: &str, times: u32) -> Result<i64, Failure> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-fd=1"]);
    command.arg(program).args([row, &times.to_string()]);
    let told = output(&mut command)?;
    counted(&told).ok_or_else(|| format!("valgrind did not say what it counted:\n{told}"))
}

/// From `==12== Collected : 34567`.
fn counted(told: &str) -> Option<i64> {
    told.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

const FILE: &str = "bench/instructions.toml";
const BLESS: &str = "run: cargo xtask instructions --bless";
/// Every sentence once.
const PASS: u32 = 4096;
/// How far a count may move before it is told.
const PERCENT: i64 = 5;

#[cfg(test)]
mod tests {
    use super::{compare, counted, written};

    #[test]
    fn count_is_found_in_what_valgrind_says() {
        let told = "==7== Events    : Ir\n==7== Collected : 160302891\n==7==\n";
        assert_eq!(counted(told), Some(160_302_891));
        assert_eq!(counted("==7== Events    : Ir\n"), None);
    }

    #[test]
    fn count_that_moved_is_told_with_what_it_was() {
        let rows = |first, second| {
            [("all \"four\"".replace('"', "'"), first), ("parse".to_owned(), second)]
        };
        let text = written("rustc 1.0.0 for moon", &rows(1000, 200));
        let file: toml::Table = toml::from_str(&text).unwrap();
        let known = file["rows"].as_table();
        assert_eq!(file["compiler"].as_str(), Some("rustc 1.0.0 for moon"));
        for same in [rows(1000, 200), rows(1050, 190)] {
            assert_eq!(compare(&same, known), Ok(()));
        }
        for (moved, told) in [
            (rows(1051, 200), "all 'four': 1051 instructions, not 1000"),
            (rows(1000, 189), "parse: 189 instructions, not 200"),
        ] {
            assert!(compare(&moved, known).unwrap_err().contains(told), "{told}");
        }
        let [first, second] = rows(1000, 200);
        assert!(compare(&[first], known).unwrap_err().contains("parse: no longer counted"));
        let new = ("new".to_owned(), 1);
        assert!(
            compare(&[second, new], known).unwrap_err().contains("new: 1 instructions, not known")
        );
        assert!(compare(&[], None).unwrap_err().contains("--bless"));
    }
}
