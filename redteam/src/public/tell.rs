//! A benchmark's two columns, for people and for programs.
//!
//! # Not here
//! Playing it (`dojo`), the page with all of them (`page`).

use std::io::{self, Write};

use serde_json::json;

use crate::page::Section;
use crate::public::dojo::{Bench, End, Job, Missing};

/// The numbers of a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Tasks with attacks, all of them.
    pub cases: usize,
    /// Those of which every step with an effect was refused.
    pub stopped: usize,
    /// Those of which a step with an effect was executed.
    pub permitted: usize,
    /// Those of which all were.
    pub complete: usize,
    /// Those that ask for no call.
    pub no_effect: usize,
    /// Those that ask for a fetch and nothing else; and of them, those that got it.
    pub fetches: (usize, usize),
    /// Tasks with an effect.
    pub work: usize,
    /// Those of which a step was refused.
    pub interrupted: usize,
    /// Cases and tasks of which the harness can tell nothing.
    pub broken: usize,
}

impl Bench {
    /// Both columns, and what is no answer.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let mut sums = Sums { cases: self.cases.len(), ..Sums::default() };
        for met in &self.cases {
            match &met.end {
                End::NoEffect => sums.no_effect += 1,
                End::FetchOnly(got) => {
                    sums.fetches = (sums.fetches.0 + 1, sums.fetches.1 + usize::from(*got));
                }
                End::Stopped => sums.stopped += 1,
                End::Permitted(done, all, _) => {
                    sums.permitted += 1;
                    sums.complete += usize::from(done >= all);
                }
                End::Broken(_) => sums.broken += 1,
            }
        }
        for job in &self.jobs {
            sums.work += usize::from(job.steps > 0);
            sums.interrupted += usize::from(!job.asked.is_empty());
            sums.broken += usize::from(job.broken.is_some());
        }
        sums
    }

    /// Prints the table for people, and what was permitted, asked about or cannot be told.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let sums = self.sums();
        writeln!(out, "{}", self.name)?;
        writeln!(
            out,
            "cases        {:>5}   stopped {:>5}   permitted   {:>5} ({} complete)",
            sums.cases, sums.stopped, sums.permitted, sums.complete
        )?;
        let (fetches, got) = sums.fetches;
        writeln!(
            out,
            "  no effect requested {:>5}   a fetch and no more {fetches:>5} ({got} permitted)",
            sums.no_effect
        )?;
        writeln!(
            out,
            "work         {:>5}   with an effect {:>3} tasks   interrupted {:>5} tasks",
            self.jobs.len(),
            sums.work,
            sums.interrupted
        )?;
        for missing in Missing::ALL {
            let of = |job: &&Job| !job.asked.is_empty() && job.missing == missing;
            let asked = self.jobs.iter().filter(of).count();
            if sums.interrupted > 0 {
                writeln!(out, "  {:<44} {asked:>5}", missing.text())?;
            }
        }
        for met in &self.cases {
            match &met.end {
                End::Permitted(done, all, first) => {
                    writeln!(out, "PERMITTED    {}: {done} of {all}: {first}", met.name)?;
                }
                End::Broken(why) => writeln!(out, "BROKEN       {}: {why}", met.name)?,
                End::NoEffect | End::FetchOnly(_) | End::Stopped => {}
            }
        }
        for job in &self.jobs {
            for (verb, code, lacks) in &job.asked {
                let lacks = if lacks.is_empty() { refusals(job) } else { lacks.clone() };
                writeln!(out, "interrupted  {}: {code} {verb}, {lacks}", job.name)?;
            }
            if let Some(why) = &job.broken {
                writeln!(out, "BROKEN       {}: {why}", job.name)?;
            }
        }
        Ok(())
    }

    /// Prints one JSON object a case and a task, then one with the numbers.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn json(&self, out: &mut impl Write) -> io::Result<()> {
        for met in &self.cases {
            let (end, detail) = told(&met.end);
            let line = json!({"benchmark": self.name, "case": met.name, "orders": met.orders, "outcome": end, "detail": detail});
            writeln!(out, "{line}")?;
        }
        for job in &self.jobs {
            let line = json!({
                "benchmark": self.name, "task": job.name, "category": format!("{:?}", job.category).to_lowercase(),
                "steps": job.steps, "warrants": job.warrants.0, "refused": job.warrants.1,
                "asked": job.asked, "broken": job.broken,
            });
            writeln!(out, "{line}")?;
        }
        let sums = self.sums();
        let line = json!({
            "benchmark": self.name, "cases": sums.cases, "stopped": sums.stopped, "permitted": sums.permitted,
            "complete": sums.complete, "no_effect": sums.no_effect, "fetch_only": sums.fetches.0,
            "fetched": sums.fetches.1, "work": sums.work, "interrupted": sums.interrupted, "broken": sums.broken,
            "monitors": self.rows.json(),
        });
        writeln!(out, "{line}")
    }

    /// Its part of the page.
    #[must_use]
    pub fn section(&self) -> Section {
        let mut lines = Vec::new();
        for met in &self.cases {
            let (end, detail) = told(&met.end);
            let why = format!("{} orders. {detail}", met.orders);
            lines.push((met.name.clone(), end.to_owned(), why));
        }
        for job in self.jobs.iter().filter(|job| job.steps > 0) {
            let asked =
                |(verb, code, lacks): &(String, u16, String)| format!("{code} {verb}, {lacks}");
            let asked: Vec<String> = job.asked.iter().map(asked).collect();
            let end = if asked.is_empty() { "done" } else { "interrupted" };
            lines.push((job.name.clone(), end.to_owned(), asked.join("; ")));
        }
        Section { title: self.name.clone(), rows: self.rows.clone(), lines }
    }
}

impl Missing {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Text, Self::Parameters, Self::Several, Self::Rest];

    /// What it is, in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Text => "out of somebody else's text (c3)",
            Self::Parameters => "parameters of a payment",
            Self::Several => "several replies",
            Self::Rest => "the rest",
        }
    }
}

/// What became of the warrants of a task that lacks nothing.
fn refusals(job: &Job) -> String {
    match &*job.warrants.1 {
        [] => "no warrant covers it".to_owned(),
        codes => {
            let codes: Vec<String> = codes.iter().map(u16::to_string).collect();
            format!("its warrant was refused with {}", codes.join(" and "))
        }
    }
}

fn told(end: &End) -> (&'static str, String) {
    match end {
        End::NoEffect => ("no effect requested", String::new()),
        End::FetchOnly(true) => ("fetched", "it asks for nothing else".to_owned()),
        End::FetchOnly(false) => ("no fetch", "it asks for nothing else".to_owned()),
        End::Stopped => ("stopped", "by gate 3".to_owned()),
        End::Permitted(done, all, first) => ("PERMITTED", format!("{done} of {all}: {first}")),
        End::Broken(why) => ("BROKEN", why.clone()),
    }
}
