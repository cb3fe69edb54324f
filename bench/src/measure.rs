//! Rows measured in turns, and what is told of them
//!
//! # Invariants
//! - The rows of a group take turns, sample by sample, so that whatever else the
//!   machine does in that time it does to all of them.
//! - A ratio is the median of the ratios within the rounds, not of the medians.
//!
//! # Not here
//! What is measured (the rows).

use core::fmt;
use core::time::Duration;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Instant;

use crate::Failure;

/// One thing to measure.
pub struct Row {
    name: &'static str,
    work: Work,
}

type Work = Box<dyn FnMut(u32) -> Result<(), Failure>>;

impl Row {
    /// A row of this name; `work` does the thing as often as it is told, or says
    /// why it cannot.
    pub fn new(name: &'static str, work: impl FnMut(u32) -> Result<(), Failure> + 'static) -> Self {
        Self { name, work: Box::new(work) }
    }

    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Does the thing so many times.
    ///
    /// # Errors
    /// It cannot.
    pub fn run(&mut self, times: u32) -> Result<(), Failure> {
        (self.work)(times).map_err(|why| format!("{}: {why}", self.name))
    }

    fn time(&mut self, times: u32) -> Result<Duration, Failure> {
        let start = Instant::now();
        let done = self.run(times);
        let time = start.elapsed();
        done.map(|()| time)
    }

    /// How often the thing is to be done in one sample. It is warm then.
    fn batch(&mut self) -> Result<u32, Failure> {
        let mut times = 1;
        while self.time(times)? < SAMPLE && times < MOST {
            times *= 2;
        }
        Ok(times)
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Rows that are compared with the first of them.
#[derive(Debug)]
pub struct Group {
    /// What they have in common.
    pub title: &'static str,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Group {
    /// Measures every row.
    ///
    /// # Errors
    /// A row cannot do its thing.
    pub fn measure(&mut self) -> Result<Vec<Figure>, Failure> {
        let batches: Vec<u32> = self.rows.iter_mut().map(Row::batch).collect::<Result<_, _>>()?;
        let mut samples = vec![Vec::with_capacity(ROUNDS); self.rows.len()];
        for _ in 0..ROUNDS {
            for ((row, batch), samples) in self.rows.iter_mut().zip(&batches).zip(&mut samples) {
                samples.push(row.time(*batch)?.as_secs_f64() * 1e9 / f64::from(*batch));
            }
        }
        let first = samples.first().cloned().unwrap_or_default();
        let figure = |(row, samples): (&Row, Vec<f64>)| Figure {
            name: row.name,
            ratio: Spread::of(samples.iter().zip(&first).map(|(own, first)| own / first).collect()),
            nanoseconds: Spread::of(samples),
        };
        Ok(self.rows.iter().zip(samples).map(figure).collect())
    }
}

/// What was found of one row.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The row.
    pub name: &'static str,
    /// How long the thing takes.
    pub nanoseconds: Spread,
    /// How many times as long as the first row of its group.
    pub ratio: Spread,
}

/// Half of the samples lie between the quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter is below.
    pub low: f64,
    /// Half is below.
    pub median: f64,
    /// A quarter is above.
    pub high: f64,
}

impl Spread {
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |quarter| samples.get(samples.len() * quarter / 4).copied().unwrap_or(f64::NAN);
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

/// Measures group after group and writes each when it is done: a table, or one
/// JSON object a row.
///
/// # Errors
/// A row cannot do its thing, or nobody reads.
pub fn run(groups: &mut [Group], out: &mut impl Write, as_json: bool) -> Result<(), Stopped> {
    for group in groups {
        if !as_json {
            writeln!(out, "{}", group.title)?;
            // It takes a moment until the first row of it.
            out.flush()?;
        }
        for figure in group.measure().map_err(Stopped::Row)? {
            if as_json {
                writeln!(out, "{}", object(group.title, &figure))?;
            } else {
                writeln!(out, "{}", line(&figure))?;
            }
        }
    }
    if !as_json {
        writeln!(out, "{LEGEND}")?;
    }
    Ok(())
}

/// Why there is not the whole table.
#[derive(Debug)]
pub enum Stopped {
    /// What a row said.
    Row(Failure),
    /// What writing answered.
    Output(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(why: io::Error) -> Self {
        Self::Output(why)
    }
}

fn line(figure: &Figure) -> String {
    let Figure { name, nanoseconds: time, ratio } = figure;
    let between = format!("({} to {})", duration(time.low), duration(time.high));
    let ratios = format!("x {:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high);
    format!("  {name:<34} {:>9}  {between:<24} {ratios}", duration(time.median))
}

fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ..1e3 => format!("{nanoseconds:.1} ns"),
        1e3..1e6 => format!("{:.2} µs", nanoseconds / 1e3),
        _ => format!("{:.2} ms", nanoseconds / 1e6),
    }
}

fn object(title: &str, figure: &Figure) -> Value {
    let spread =
        |spread: &Spread| json!({"low": spread.low, "median": spread.median, "high": spread.high});
    json!({
        "group": title,
        "row": figure.name,
        "nanoseconds": spread(&figure.nanoseconds),
        "ratio": spread(&figure.ratio),
    })
}

/// The shortest sample: long enough that reading the clock is nothing, and shorter than
/// what other programs get of a core at a time, which would else fall on the same row.
const SAMPLE: Duration = Duration::from_micros(200);
/// The most that one sample does, whatever it takes.
const MOST: u32 = 1 << 24;
/// Samples of each row.
const ROUNDS: usize = 1001;
const LEGEND: &str =
    "Medians, half of the samples in parentheses; x: times the first row, measured in turns.";

#[cfg(test)]
mod tests {
    use super::{Group, Row, Spread, duration, run};
    use core::time::Duration;
    use std::thread::sleep;

    fn naps() -> Group {
        let nap = |name, micros| {
            Row::new(name, move |times| {
                sleep(Duration::from_micros(micros) * times);
                Ok(())
            })
        };
        Group { title: "naps", rows: vec![nap("short", 100), nap("long", 300)] }
    }

    #[test]
    fn what_takes_three_times_as_long_is_found_to() {
        let figures = naps().measure().unwrap();
        let [short, long] = figures.as_slice() else { unreachable!("two rows") };
        assert!((short.ratio.median - 1.0).abs() < 1e-9);
        assert!((2.0..4.0).contains(&long.ratio.median), "{long:?}");
        assert!((1e5..1e6).contains(&short.nanoseconds.median), "{short:?}");
    }

    #[test]
    fn every_row_is_told_in_both_forms() {
        let told = |as_json| {
            let mut out = Vec::new();
            run(&mut [naps()], &mut out, as_json).unwrap();
            String::from_utf8(out).unwrap()
        };
        let table = told(false);
        assert!(table.starts_with("naps\n  short ") && table.contains("\n  long "), "{table}");
        let lines = told(true);
        for (line, name) in lines.lines().zip(["short", "long"]) {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&row["group"], &row["row"]), (&"naps".into(), &name.into()));
            assert!(row["nanoseconds"]["median"].as_f64().unwrap() > 0.0);
            assert!(row["ratio"]["low"].as_f64() <= row["ratio"]["high"].as_f64());
        }
    }

    #[test]
    fn quartiles_are_those_of_the_samples() {
        let spread = Spread::of(vec![5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 4.0 });
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        for (nanoseconds, text) in [
            (99.94, "99.9 ns"),
            (1234.0, "1.23 µs"),
            (5_000_000.0, "5.00 ms"),
            (1e10, "10000.00 ms"),
        ] {
            assert_eq!(duration(nanoseconds), text);
        }
    }
}
