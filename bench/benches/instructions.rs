//! Does what a row of the door does, so many times, and nothing else: to be
//! counted, where a clock would only say how busy the machine is.
//!
//! `instructions ROW TIMES`; without a row, the names of all.

use std::process::ExitCode;

use synapse_bench::{Failure, door};

fn main() -> ExitCode {
    // Cargo tells a benchmark that it is one.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut rows = door::group()?.rows;
    match arguments {
        [] => {
            for row in &rows {
                println!("{}", row.name());
            }
            Ok(())
        }
        [name, times] => {
            let times = times.parse().map_err(|why| format!("`{times}` is no number: {why}"))?;
            let row = rows.iter_mut().find(|row| row.name() == name);
            row.ok_or_else(|| format!("the door has no row `{name}`"))?.run(times)
        }
        _ => Err("give a row and how often, or nothing to see the rows".to_owned()),
    }
}
