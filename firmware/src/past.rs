//! What is left of runs: their records, and what can be put back of them
//!
//! # Not here
//! Asking the human (`shell`). How something is put back (`synapse_store::undo`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use synapse_kernel::account::Account;
use synapse_kernel::package::approval_of;
use synapse_kernel::run::Approval;
use synapse_kernel::verify::{Broken, Reader};
use synapse_kernel::{render, words};
use synapse_primitives::{Fault, hex};
use synapse_store::undo::{Entry, Operation, Undone};
use synapse_store::{Past, Shelf};

use crate::{clock, println};

/// The last run, or the one with this number.
pub(crate) fn find(shelf: &Shelf, number: &str) -> Result<Past, String> {
    let mut runs = shelf.runs();
    if number.is_empty() {
        return runs.pop().ok_or_else(|| "nothing was run yet".to_string());
    }
    let named = |run: &Past| number.parse() == Ok(run.number);
    runs.into_iter()
        .find(named)
        .ok_or_else(|| format!("no run is called {}", render::line(number, 40)))
}

/// A record of a run, with what came of it.
pub(crate) fn why(shelf: &Shelf, words: &str) -> Result<(), String> {
    let (number, run) = words.split_once(' ').unwrap_or((words, ""));
    let number = number.trim_start_matches('#');
    let wanted: u64 = number.parse().map_err(|_| "say which record: `why 12`".to_string())?;
    let log = log(shelf, &find(shelf, run)?)?;
    let account = Account::find(&log, wanted).map_err(|why| why.to_string())?;
    for line in account.lines() {
        println!("{line}");
    }
    if let Some(Approval { package, version, digest, grant, .. }) = approval_of(&log) {
        let [package, version, digest, grant] =
            [package, version, digest, grant].map(|text| render::line(text, 80));
        println!("bound by {package} {version}, {digest}, by the grant {grant}");
    }
    Ok(())
}

/// The records of a run, or whether they are as they were written.
pub(crate) fn audit(shelf: &Shelf, words: &str) -> Result<(), String> {
    let (verb, number) = words.split_once(' ').unwrap_or((words, ""));
    let run = find(shelf, number)?;
    let log = log(shelf, &run)?;
    let mut reader = Reader::new(&log);
    let mut count = 0_u64;
    for record in reader.by_ref() {
        let record = record.map_err(broken)?;
        if verb == "show" {
            println!("{}", words::record(&record));
        }
        count += 1;
    }
    let chain = hex(&Reader::chain(&reader));
    match verb {
        "show" => Ok(()),
        "verify" => {
            println!("run {}: {} records, chain {chain}", run.number, words::grouped(count));
            Ok(())
        }
        _ => Err("say `audit show` or `audit verify`".to_string()),
    }
}

/// What a run changed and what is not put back yet, the last change first.
pub(crate) fn changes(shelf: &Shelf, run: u64) -> Result<Vec<(u32, Entry)>, String> {
    shelf.journal(run).map_err(|fault| format!("the journal of run {run}: {}", fault.name()))
}

/// What putting a change back would come to.
pub(crate) fn planned(entry: &Entry) -> String {
    let path = shown(&entry.path);
    let what = match (entry.operation, &entry.to) {
        (Operation::Create, _) => format!("{path} was made, and goes"),
        (Operation::Replace, _) => format!("{path} gets its old content back"),
        (Operation::Append, _) => format!("{path} loses what was added"),
        (Operation::Move, Some(to)) => format!("{} goes back to {path}", shown(to)),
        (Operation::Move | Operation::Delete, _) => format!("{path} comes back"),
    };
    format!("#{} {what}", entry.record)
}

/// Puts changes back, in their order, and tells of those that could not be.
pub(crate) fn put_back(shelf: &Shelf, run: u64, changes: &[(u32, Entry)]) -> Result<(), String> {
    let mut restored = 0;
    for (place, entry) in changes {
        let path = shown(&entry.path);
        match shelf.undo(run, *place, entry, clock::now_ms()) {
            Ok(Undone::Restored) => restored += 1,
            Ok(Undone::Beside(beside)) => {
                println!(
                    "#{} {path} was changed since, and stays; what was there is {}",
                    entry.record,
                    shown(&beside)
                );
            }
            Ok(Undone::Left) => {
                println!("#{} {path} was changed since, and stays", entry.record);
            }
            Err(fault) => {
                return Err(format!("#{} {path} stays: {}", entry.record, fault.name()));
            }
        }
    }
    println!("{} put back", counted(restored));
    Ok(())
}

/// So many changes, in words.
pub(crate) fn counted(changes: usize) -> String {
    let s = if changes == 1 { "" } else { "s" };
    format!("{changes} change{s}")
}

fn log(shelf: &Shelf, run: &Past) -> Result<Vec<u8>, String> {
    shelf.log(run.number).map_err(|fault| match fault {
        Fault::NoSpace => {
            format!("the log of run {} is longer than the memory has room for", run.number)
        }
        fault => format!("the log of run {}: {}", run.number, fault.name()),
    })
}

fn broken(what: Broken) -> String {
    match what {
        Broken::Header => "the log has no header: nothing of it was recorded".to_string(),
        Broken::Record(number) => format!("record {number} is not as it was written"),
        Broken::Torn(number) => format!("the log ends inside record {number}"),
    }
}

fn shown(path: &str) -> String {
    render::line(path, 200)
}
