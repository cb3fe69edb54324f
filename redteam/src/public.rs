//! Public benchmarks: their structure, without a word of their texts.
//!
//! A benchmark brings tasks and attacks that others wrote, so that nobody can say
//! we wrote what we pass. What ships is a table of facts: which verbs are called,
//! and which words of the prompt each argument consists of. Words are made up in
//! the shape that they have, the same wherever the same one stands.
//!
//! # Invariants
//! 1. What plans is given the prompt and what a perfect reader understands of it;
//!    calls and replies of the task have other types and other owners.
//!
//! # Not here
//! Deriving the table (`derive_agentdojo.py`), playing it (`dojo`).

pub(crate) mod connectors;
pub(crate) mod dojo;
pub(crate) mod oracle;
pub(crate) mod search;
pub(crate) mod tell;
pub(crate) mod words;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// All that is known of one benchmark.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) benchmark: String,
    pub(crate) suites: BTreeMap<String, Suite>,
}

/// Tasks and attacks over the same connectors: each task meets each attack.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    /// The shape of each word.
    pub(crate) words: Vec<String>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) attacks: Vec<Attack>,
}

/// What one user wants, and the calls that do it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) id: u32,
    pub(crate) category: Category,
    pub(crate) prompt: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) plan: Vec<Step>,
    /// Whether no single reply says what it acts upon.
    #[serde(default)]
    pub(crate) several: bool,
    #[serde(default)]
    pub(crate) lacks: Vec<Lack>,
}

/// Why the arguments of a task's effects are what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Nothing but reading.
    A,
    /// All typed.
    B,
    /// The target typed, content not.
    D1,
    /// The target typed, an amount or a time not.
    D2,
    /// A record that the prompt names.
    C1,
    /// One that it picks by a condition.
    C2,
    /// Out of somebody else's text.
    C3,
}

/// One call of a verb.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) verb: String,
    pub(crate) args: Map<String, Value>,
    /// Whether its reply shows what an attacker can write.
    #[serde(default)]
    pub(crate) carries: bool,
    /// Whether the attack's text says one of its targets letter by letter.
    #[serde(default)]
    pub(crate) told: bool,
    /// Whether what it passes on is what the attack's calls before it read.
    #[serde(default)]
    pub(crate) takes: bool,
}

/// What the attacker wants done.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attack {
    pub(crate) id: u32,
    /// Whether the benchmark's first version has it.
    pub(crate) first: bool,
    pub(crate) calls: Vec<Call>,
}

/// What a perfect reader of the prompt would ask leave for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) verb: String,
    pub(crate) fix: BTreeMap<String, Fixed>,
    pub(crate) uses: u8,
}

/// An argument that is fixed before anything is read.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Fixed {
    /// By a selector.
    Chosen {
        /// The selector.
        select: Select,
    },
    /// By words of the prompt.
    Typed(Value),
}

impl Fixed {
    /// Whether a selector says what it is.
    pub(crate) const fn is_chosen(&self) -> bool {
        matches!(self, Self::Chosen { .. })
    }
}

/// Which record of a reply is meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Select {
    pub(crate) verb: String,
    pub(crate) args: Map<String, Value>,
    #[serde(rename = "where")]
    pub(crate) conditions: Vec<(String, String, Value)>,
    pub(crate) order: Option<(String, String)>,
    pub(crate) take: String,
    /// Whether the argument is a list of it.
    #[serde(default)]
    pub(crate) listed: bool,
    /// Taken away by [`Table::read`], before anything plans.
    #[serde(default)]
    records: Vec<Value>,
}

/// A step of the task that the prompt alone does not determine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lack {
    /// Which of the steps with an effect.
    pub(crate) step: usize,
    pub(crate) verb: String,
    /// The arguments that are not typed.
    pub(crate) lacks: Vec<String>,
}

/// What a connector answers in one task: verb, arguments, records.
pub(crate) type Replies = Vec<(String, Map<String, Value>, Value)>;

/// What connectors answer, by suite and task.
pub(crate) type Answers = BTreeMap<(String, u32), Replies>;

/// The texts of a benchmark, which do not ship.
#[derive(Debug, Deserialize)]
pub(crate) struct Texts(BTreeMap<String, Real>);

/// The texts of one suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Real {
    /// In the order of their shapes.
    pub(crate) words: Vec<String>,
    /// By the numbers of their tasks.
    pub(crate) prompts: BTreeMap<String, String>,
}

impl Texts {
    /// Reads what the script writes.
    ///
    /// # Errors
    /// It is not of its format.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|why| format!("the texts: {why}"))
    }

    /// Those of a suite, which has so many words.
    pub(crate) fn of(&self, suite: &str, words: usize) -> Result<&Real, String> {
        self.0.get(suite).filter(|real| real.words.len() == words).ok_or_else(|| {
            format!(
                "the texts are not those of {suite}; write them with `derive_agentdojo.py --text`"
            )
        })
    }
}

impl Table {
    /// A table, and what connectors answer, by suite and task.
    ///
    /// # Errors
    /// It is not of its format.
    pub(crate) fn read(text: &str) -> Result<(Self, Answers), String> {
        let mut table: Self = serde_json::from_str(text).map_err(|why| why.to_string())?;
        let mut replies = Answers::new();
        for (name, suite) in &mut table.suites {
            for task in &mut suite.tasks {
                let chosen = task.plan.iter_mut().flat_map(|step| step.fix.values_mut());
                for fixed in chosen {
                    let Fixed::Chosen { select } = fixed else { continue };
                    let records = Value::Array(core::mem::take(&mut select.records));
                    let reply = (select.verb.clone(), select.args.clone(), records);
                    replies.entry((name.clone(), task.id)).or_default().push(reply);
                }
            }
        }
        Ok((table, replies))
    }
}

pub(crate) const AGENTDOJO: &str = include_str!("../tables/agentdojo.json");
pub(crate) const INJECAGENT: &str = include_str!("../tables/injecagent.json");
