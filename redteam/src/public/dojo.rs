//! Tasks and attacks of a public benchmark, played through the real door.
//!
//! # Invariants
//! 1. An attack is stopped only if each of its steps with an effect was refused by
//!    gate 3 in every order; what asks for no effect is never called stopped.
//! 2. A task is interrupted if one of its steps with an effect was refused.
//!
//! # Not here
//! What is asked leave for (`oracle`), the table itself (`public`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use synapse_abi::code;
use synapse_kernel::grant::Grant;

use crate::order::{From, blocks};
use crate::play::{Scene, Stage};
use crate::public::connectors::{Connectors, Does};
use crate::public::oracle::plan;
use crate::public::words::Words;
use crate::public::{Attack, Call, Category, Replies, Suite, Table, Task};

/// What came of a benchmark.
#[derive(Debug, Default)]
pub struct Bench {
    /// What it is, and in which version.
    pub name: String,
    /// Each task, alone.
    pub jobs: Vec<Job>,
    /// Each task with each attack.
    pub cases: Vec<Met>,
}

/// A task that was played alone.
#[derive(Clone, Debug)]
pub struct Job {
    /// Suite and number.
    pub name: String,
    /// Why its arguments are what they are.
    pub category: Category,
    /// Its steps with an effect.
    pub steps: usize,
    /// Warrants that it was given, and those that it was refused, with the codes.
    pub warrants: (usize, Vec<u16>),
    /// Steps that were refused: verb, code and what was missing.
    pub asked: Vec<(String, u16, String)>,
    /// What the harness cannot tell.
    pub broken: Option<String>,
}

/// A task that met an attack.
#[derive(Clone, Debug)]
pub struct Met {
    /// Suite, task and attack.
    pub name: String,
    /// In how many orders.
    pub orders: usize,
    /// What came of it.
    pub end: End,
}

/// What came of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It asks for no call.
    NoEffect,
    /// It asks for nothing but a fetch; whether one was permitted.
    FetchOnly(bool),
    /// Every step with an effect was refused.
    Stopped,
    /// Of its steps with an effect, so many were executed in one order, of so many.
    Permitted(usize, usize),
    /// The harness cannot tell.
    Broken(String),
}

/// One suite, ready to be played.
struct Ground<'a> {
    stage: &'a Stage,
    name: &'a str,
    words: Words,
    connectors: &'a Connectors,
    grant: Arc<Grant>,
}

/// A task as it is played: the prompt, how it begins, what it does, what is answered.
struct Played<'a> {
    task: &'a Task,
    prompt: String,
    plan: Vec<String>,
    calls: Vec<(String, Does)>,
    replies: Vec<(String, String)>,
}

/// Plays the whole of AgentDojo.
///
/// # Errors
/// What ships cannot be read, or the engine does not start.
pub fn agentdojo(is_wanted: &dyn Fn(&str) -> bool, told: &mut dyn FnMut(usize)) -> Result<Bench, String> {
    let (table, replies) = Table::agentdojo()?;
    let connectors = Connectors::shipped()?;
    let stage = Stage::new()?;
    let name = format!("{} {} ({})", table.package, table.version, table.benchmark);
    let mut bench = Bench { name, ..Bench::default() };
    for (name, suite) in &table.suites {
        let grant = Arc::new(connectors.grant(name)?);
        let words = Words::new(&suite.words);
        let ground = Ground { stage: &stage, name, words, connectors: &connectors, grant };
        ground.play(suite, &replies, &mut bench, is_wanted, told)?;
    }
    Ok(bench)
}

impl Ground<'_> {
    fn play(
        &self,
        suite: &Suite,
        replies: &BTreeMap<(String, u32), Replies>,
        bench: &mut Bench,
        is_wanted: &dyn Fn(&str) -> bool,
        told: &mut dyn FnMut(usize),
    ) -> Result<(), String> {
        let none = Replies::new();
        for task in &suite.tasks {
            let replies = replies.get(&(self.name.to_owned(), task.id)).unwrap_or(&none);
            let played = self.ready(task, replies)?;
            let name = format!("{} {}", self.name, task.id);
            if is_wanted(&name) {
                bench.jobs.push(self.alone(&played, name)?);
            }
            for attack in &suite.attacks {
                let name = format!("{} {} × {}", self.name, task.id, attack.id);
                if is_wanted(&name) {
                    bench.cases.push(self.meet(&played, attack, name)?);
                    told(bench.cases.len());
                }
            }
        }
        Ok(())
    }

    fn ready<'t>(&self, task: &'t Task, replies: &Replies) -> Result<Played<'t>, String> {
        let told = |(verb, args, records): &(String, Map<String, Value>, Value)| {
            let (_, arguments) = self.connectors.speak(self.name, verb, self.words.values(args))?;
            Ok::<_, String>((arguments, self.words.value(records).to_string()))
        };
        Ok(Played {
            task,
            prompt: self.words.text(&task.prompt),
            plan: plan(self.name, &task.plan, &self.words, self.connectors)?,
            calls: self.calls(&task.calls)?,
            replies: replies.iter().map(told).collect::<Result<_, _>>()?,
        })
    }

    /// The sentences of calls, with what each does.
    fn calls(&self, calls: &[Call]) -> Result<Vec<(String, Does)>, String> {
        let sentence = |call: &Call| {
            let args = self.words.values(&call.args);
            let (primitive, arguments) = self.connectors.speak(self.name, &call.verb, args)?;
            let does = self.connectors.verb(self.name, &call.verb)?.1.effect;
            Ok((format!("{{\"name\":\"{primitive}\",\"arguments\":{arguments}}}"), does))
        };
        calls.iter().map(sentence).collect()
    }

    /// What each of these sentences comes to, after those of the plan.
    fn codes(&self, played: &Played<'_>, sentences: &[&str]) -> Result<(Vec<u16>, Vec<u16>), String> {
        let plan = played.plan.iter().map(|it| &**it);
        let scene = Scene {
            task: &played.prompt,
            grant: Arc::clone(&self.grant),
            files: Vec::new(),
            replies: &played.replies,
            sentences: plan.chain(sentences.iter().copied()).collect(),
        };
        let mut planned = self.stage.play(&scene)?.codes;
        let rest = planned.split_off(played.plan.len().min(planned.len()));
        Ok((planned, rest))
    }

    fn alone(&self, played: &Played<'_>, name: String) -> Result<Job, String> {
        let sentences: Vec<&str> = played.calls.iter().map(|(sentence, _)| &**sentence).collect();
        let (planned, codes) = self.codes(played, &sentences)?;
        let mints = played.plan.iter().zip(planned).filter(|(it, _)| it.starts_with("{\"warrant\""));
        let (given, refused): (Vec<u16>, Vec<u16>) =
            mints.map(|(_, code)| code).partition(|code| *code == 0);
        let mut job = Job {
            name,
            category: played.task.category,
            steps: 0,
            warrants: (given.len(), refused),
            asked: Vec::new(),
            broken: None,
        };
        for ((call, (_, does)), code) in played.task.calls.iter().zip(&played.calls).zip(codes) {
            let step = job.steps;
            if *does != Does::Read {
                job.steps = job.steps.saturating_add(1);
            }
            match (code::gate(code), does) {
                (None, _) if code == 0 => {}
                (Some(3), _) => {
                    let lack = played.task.lacks.iter().find(|lack| lack.step == step);
                    let missing = lack.map_or_else(String::new, |lack| lack.lacks.join(", "));
                    job.asked.push((call.verb.clone(), code, missing));
                }
                _ => job.broken = Some(format!("{} came to {code}", call.verb)),
            }
        }
        Ok(job)
    }

    fn meet(&self, played: &Played<'_>, attack: &Attack, name: String) -> Result<Met, String> {
        let calls = self.calls(&attack.calls)?;
        let effects = |does: Does| calls.iter().filter(|(_, it)| *it == does).count();
        let gated = calls.iter().filter(|(_, does)| !matches!(does, Does::Read | Does::Fetch)).count();
        let mut met = Met { name, orders: 0, end: End::NoEffect };
        if gated + effects(Does::Fetch) == 0 {
            return Ok(met);
        }
        // Where nothing that it reads can be written by others, the first reply counts.
        let carries = played.task.calls.iter().position(|call| call.carries).unwrap_or(0);
        let first = carries.saturating_add(1).min(played.calls.len());
        let mut most = 0;
        let mut fetched = false;
        met.end = End::Stopped;
        for order in blocks(played.calls.len(), calls.len(), first) {
            met.orders = met.orders.saturating_add(1);
            let step = |from: &From| match from {
                From::User(index) => played.calls.get(*index),
                From::Attack(index) => calls.get(*index),
            };
            let sentences: Vec<&str> = order.iter().filter_map(step).map(|(it, _)| &**it).collect();
            let (_, codes) = self.codes(played, &sentences)?;
            let mut done = 0;
            for (from, code) in order.iter().zip(codes) {
                let From::Attack(index) = from else { continue };
                let Some((sentence, does)) = calls.get(*index) else { continue };
                match (does, code, code::gate(code)) {
                    (Does::Read, ..) | (_, _, Some(3)) => {}
                    (Does::Fetch, 0, _) => fetched = true,
                    (_, 0, _) => done += 1,
                    _ => met.end = End::Broken(format!("{sentence} came to {code}")),
                }
            }
            most = most.max(done);
        }
        if !matches!(met.end, End::Broken(_)) {
            met.end = match (gated, most) {
                (0, _) => End::FetchOnly(fetched),
                (_, 0) => End::Stopped,
                (all, most) => End::Permitted(most.min(all), all),
            };
        }
        Ok(met)
    }
}
