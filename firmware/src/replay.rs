//! The bundle's runs in a world that stands still: their logs, as digests
//!
//! Whoever made the bundle makes the same runs elsewhere and compares.
//!
//! # Not here
//! The world itself (`synapse_kernel::replay`).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use synapse_interpreter::{Interpreter, Time};
use synapse_kernel::replay::Replay;
use synapse_primitives::hex;

use crate::budget::Budget;
use crate::packages::Bundle;
use crate::{executor, println, weight};

/// Makes the runs that the bundle's file `replay` lists, one `AGENT TASK` a
/// line, and prints a digest of each log; of the one with a number, all of it.
pub(crate) fn run(bundle: &Bundle, budget: &Budget, only: &str) -> Result<(), String> {
    let list = bundle.text("replay").ok_or("the bundle has no file `replay`")??;
    let only: Option<u64> = match only {
        "" => None,
        number => Some(number.parse().map_err(|_| "say which run: `replay 12`".to_string())?),
    };
    // No clock: the deadline is counted in what the guest computes.
    let engine = Interpreter::new(Time::Fuel { per_second: 1 << 30 })
        .with_code_bytes(weight::bytes(budget.code));
    let files: Vec<(String, &[u8])> =
        bundle.below("files/").map(|(path, bytes)| (format!("/{path}"), bytes)).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (&**path, *bytes)).collect();
    let mut loaded = None;
    for (number, line) in (0..).zip(list.lines()) {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let (name, task) = line.split_once(' ').unwrap_or((line, ""));
        let (program, grant) = match loaded.take() {
            Some((held, program, grant)) if held == name => (program, grant),
            _ => bundle.load(name, &engine, budget)?,
        };
        let replay = Replay { number, task, grant: Arc::clone(&grant), files: &files };
        let replayed = executor::finish(replay.run(&engine, &program), || {})
            .ok_or("the bundle's files do not make a world: each stands below files/data")?;
        loaded = Some((name, program, grant));
        if only.is_some() {
            println!("{}", hex(&replayed.log));
        }
        let ended = match replayed.answer {
            Ok(answer) => format!("answered {}", hex(&Sha256::digest(answer))),
            Err(why) => format!("{why:?}"),
        };
        println!("replay {number} {} {ended}", hex(&Sha256::digest(&replayed.log)));
    }
    Ok(())
}
