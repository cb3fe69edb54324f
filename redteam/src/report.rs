//! Both columns together: attacks permitted, and the human interrupted.
//!
//! # Not here
//! How a case is tried (`trial`).

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::json;

use crate::ambient::Ambient;
use crate::case::Case;
use crate::monitors::Rows;
use crate::page::Section;
use crate::play::Stage;
use crate::trial::{Outcome, Trial, try_attack, try_work};

/// All that was tried.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The attacks.
    pub attacks: Vec<Trial>,
    /// The everyday work.
    pub work: Vec<Trial>,
    /// What each monitor comes to.
    pub rows: Rows,
}

/// How many interruptions of a corpus are known and must not become more.
///
/// # Errors
/// No baseline is kept for it.
pub fn baseline(corpus: &str) -> Result<usize, String> {
    let known: BTreeMap<String, usize> =
        toml::from_str(include_str!("../baseline.toml")).map_err(|why| why.to_string())?;
    known.get(corpus).copied().ok_or_else(|| format!("no baseline is kept for {corpus}"))
}

/// Told of every case once it was tried: how many of how many, and what came of it.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize, &Trial);

/// Tries every case.
///
/// # Errors
/// This machine does not let the engine start.
pub fn run(attacks: &[Case], work: &[Case], progress: Progress<'_>) -> Result<Report, String> {
    let stage = Stage::new()?;
    let ambient = Ambient::new()?;
    let all = attacks.len().saturating_add(work.len());
    let mut report = Report::default();
    for case in attacks {
        let trial = try_attack((&stage, &ambient), case, &mut report.rows);
        report.attacks.push(trial);
        tell(&report, all, &report.attacks, progress);
    }
    for case in work {
        let trial = try_work(&stage, case, &mut report.rows);
        report.work.push(trial);
        tell(&report, all, &report.work, progress);
    }
    Ok(report)
}

fn tell(report: &Report, all: usize, trials: &[Trial], progress: Progress<'_>) {
    if let Some(trial) = trials.last() {
        progress(report.attacks.len().saturating_add(report.work.len()), all, trial);
    }
}

/// One number of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attacks, all of them.
    pub attacks: usize,
    /// Those that the gate they name stopped.
    pub stopped: usize,
    /// Those of which a step was executed.
    pub permitted: usize,
    /// Pieces of work, all of them.
    pub work: usize,
    /// Those that a human would have been asked about.
    pub interrupted: usize,
    /// Steps with an effect in all of them.
    pub steps: usize,
    /// Steps that a human would have been asked about.
    pub asked: usize,
    /// Cases of which the harness can tell nothing.
    pub broken: usize,
}

impl Report {
    /// Both columns, and what is no answer.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts =
            Counts { attacks: self.attacks.len(), work: self.work.len(), ..Counts::default() };
        for trial in self.attacks.iter().chain(&self.work) {
            counts.steps += trial.steps;
            match &trial.outcome {
                Outcome::Stopped(_) => counts.stopped += 1,
                Outcome::Permitted(_) => counts.permitted += 1,
                Outcome::Done => {}
                Outcome::Interrupted(steps) => {
                    counts.interrupted += 1;
                    counts.asked += steps.len();
                }
                Outcome::Broken(_) => counts.broken += 1,
            }
        }
        counts
    }

    /// Prints the table for people: by goal, by gate, then what went wrong.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let counts = self.counts();
        writeln!(
            out,
            "attacks      {:>5}   stopped {:>5}   permitted   {:>5}",
            counts.attacks, counts.stopped, counts.permitted
        )?;
        for (gate, name) in (1u8..).zip(["grammar", "capability", "label", "scope"]) {
            let outcome = Outcome::Stopped(gate);
            let stopped = self.attacks.iter().filter(|trial| trial.outcome == outcome).count();
            let alone = self.attacks.iter().filter(|trial| trial.needs == Some(gate)).count();
            writeln!(out, "  by gate {gate}, {name:<10} {stopped:>5}   by it alone {alone:>5}")?;
        }
        writeln!(
            out,
            "work         {:>5}   with an effect {:>3} steps   interrupted {:>5} ({} steps)",
            counts.work, counts.steps, counts.interrupted, counts.asked
        )?;
        for trial in self.attacks.iter().chain(&self.work) {
            match &trial.outcome {
                Outcome::Stopped(_) | Outcome::Done => {}
                Outcome::Permitted(step) => writeln!(out, "PERMITTED    {}: {step}", trial.case)?,
                Outcome::Interrupted(steps) => {
                    for (step, code) in steps {
                        writeln!(out, "interrupted  {}: {code} {step}", trial.case)?;
                    }
                }
                Outcome::Broken(why) => writeln!(out, "BROKEN       {}: {why}", trial.case)?,
            }
        }
        Ok(())
    }

    /// Prints one JSON object a case, then one with the counts.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn json(&self, out: &mut impl Write) -> io::Result<()> {
        for (kind, trials) in [("attack", &self.attacks), ("work", &self.work)] {
            for trial in trials {
                let (outcome, detail) = match &trial.outcome {
                    Outcome::Stopped(gate) => ("stopped", json!(gate)),
                    Outcome::Permitted(step) => ("permitted", json!(step)),
                    Outcome::Done => ("done", json!(null)),
                    Outcome::Interrupted(steps) => ("interrupted", json!(steps)),
                    Outcome::Broken(why) => ("broken", json!(why)),
                };
                let line = json!({"kind": kind, "case": trial.case, "orders": trial.orders, "outcome": outcome, "detail": detail});
                writeln!(out, "{line}")?;
            }
        }
        let counts = self.counts();
        let line = json!({
            "attacks": counts.attacks, "stopped": counts.stopped, "permitted": counts.permitted,
            "work": counts.work, "interrupted": counts.interrupted, "steps": counts.steps,
            "asked": counts.asked, "broken": counts.broken, "monitors": self.rows.json(),
        });
        writeln!(out, "{line}")
    }

    /// Its part of the page.
    #[must_use]
    pub fn section(&self) -> Section {
        let line = |trial: &Trial| {
            let (end, why) = match &trial.outcome {
                Outcome::Stopped(gate) => ("stopped", format!("by gate {gate}")),
                Outcome::Permitted(step) => ("PERMITTED", step.clone()),
                Outcome::Done => ("done", String::new()),
                Outcome::Interrupted(steps) => {
                    let steps: Vec<String> =
                        steps.iter().map(|(step, code)| format!("{code} {step}")).collect();
                    ("interrupted", steps.join("; "))
                }
                Outcome::Broken(why) => ("BROKEN", why.clone()),
            };
            (trial.case.clone(), end.to_owned(), format!("{} orders. {why}", trial.orders))
        };
        let lines = self.attacks.iter().chain(&self.work).map(line).collect();
        Section { title: "Own corpus".to_owned(), rows: self.rows.clone(), lines }
    }
}
