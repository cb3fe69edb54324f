//! A planner that understands the prompt perfectly, and has nothing else.
//!
//! It is the best that a model can be: it knows what the prompt asks for and which
//! of its words name the targets. What it cannot know is what the task will read.
//! So what it asks leave for is what warrants can carry at most.
//!
//! # Invariants
//! 1. Calls and replies of the task are not given to it. What it fixes is made of
//!    words that stand in the prompt.
//!
//! # Not here
//! Whether the door gives leave (it decides), what the task then does (`dojo`).

use serde_json::Value;

use crate::public::connectors::Connectors;
use crate::public::words::Words;
use crate::public::{Fixed, Select, Step};

/// The sentences by which the agent begins: what it reads without looking, to choose
/// from, and the warrants that it asks for. Each with the numbers of its held values,
/// from 1.
///
/// # Errors
/// A verb that was not approved.
pub(crate) fn plan(
    suite: &str,
    steps: &[Step],
    words: &Words,
    connectors: &Connectors,
) -> Result<Vec<String>, String> {
    let mut sentences = Vec::new();
    let mut held = 0_u32;
    for step in steps {
        let mut fixed = Vec::new();
        for (name, value) in &step.fix {
            let value = match value {
                Fixed::Typed(value) => words.value(value).to_string(),
                Fixed::Chosen { select } => {
                    let args = words.values(&select.args);
                    let (primitive, arguments) = connectors.speak(suite, &select.verb, args)?;
                    sentences.push(format!(
                        "{{\"name\":\"{primitive}\",\"arguments\":{arguments},\"hold\":true}}"
                    ));
                    held = held.saturating_add(1);
                    selector(select, held, words)
                }
            };
            fixed.push((name, value));
        }
        let (primitive, arguments) = connectors.speak(suite, &step.verb, fixed)?;
        let uses = step.uses;
        sentences.push(format!(
            "{{\"warrant\":\"{primitive}\",\"arguments\":{arguments},\"uses\":{uses}}}"
        ));
    }
    Ok(sentences)
}

/// A selector over a held value, with its keys in the order of the grammar.
fn selector(select: &Select, held: u32, words: &Words) -> String {
    let Select { conditions, order, take, listed, .. } = select;
    let condition = |(field, how, literal): &(String, String, Value)| {
        format!("[\"{field}\",\"{how}\",{}]", words.value(literal))
    };
    let conditions: Vec<String> = conditions.iter().map(condition).collect();
    let chosen = match &*conditions {
        [] => String::new(),
        some => format!(",\"where\":[{}]", some.join(",")),
    };
    let order = order.as_ref().map(|(how, field)| format!(",\"order\":[\"{how}\",\"{field}\"]"));
    let order = order.unwrap_or_default();
    let selector = format!("{{\"$select\":{held}{chosen}{order},\"take\":\"{take}\"}}");
    if *listed { format!("[{selector}]") } else { selector }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public::{AGENTDOJO, Table};

    /// Every word of a value of the table.
    fn named(value: &Value, words: &Words) -> Vec<String> {
        match value {
            Value::String(_) => {
                let text = words.value(value);
                let trim = |word: &str| word.trim_matches([',', '.']).to_lowercase();
                text.as_str().unwrap().split_whitespace().map(trim).collect()
            }
            Value::Array(items) => items.iter().flat_map(|item| named(item, words)).collect(),
            Value::Number(number) => vec![number.to_string()],
            Value::Object(_) | Value::Null | Value::Bool(_) => vec!["?".to_owned()],
        }
    }

    #[test]
    fn what_is_fixed_stands_in_the_prompt() {
        let (table, _) = Table::read(AGENTDOJO).unwrap();
        let mut seen = 0;
        for (name, suite) in &table.suites {
            let words = Words::new(&suite.words);
            for task in &suite.tasks {
                let prompt = words.text(&task.prompt).to_lowercase();
                let fixed = task.plan.iter().flat_map(|step| step.fix.values());
                let values = fixed.flat_map(|fixed| match fixed {
                    Fixed::Typed(value) => vec![value],
                    Fixed::Chosen { select } => {
                        select.conditions.iter().map(|(.., literal)| literal).collect()
                    }
                });
                for word in values.flat_map(|value| named(value, &words)) {
                    seen += 1;
                    assert!(prompt.contains(&word), "{name} {}: {word}", task.id);
                }
            }
        }
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn a_plan_is_the_same_whatever_the_task_then_does_and_reads() {
        let connectors = Connectors::shipped().unwrap();
        let plans = |table: &Table| -> Vec<Vec<String>> {
            let suites = table.suites.iter();
            let tasks = suites.flat_map(|(name, suite)| {
                let words = Words::new(&suite.words);
                let plan = |task: &crate::public::Task| plan(name, &task.plan, &words, &connectors);
                suite.tasks.iter().map(plan).collect::<Vec<_>>()
            });
            tasks.collect::<Result<_, _>>().unwrap()
        };
        let (mut table, _) = Table::read(AGENTDOJO).unwrap();
        let before = plans(&table);
        for task in table.suites.values_mut().flat_map(|suite| &mut suite.tasks) {
            task.calls.clear();
            task.lacks.clear();
        }
        assert_eq!(before, plans(&table));
        assert!(before.iter().flatten().filter(|it| it.starts_with("{\"warrant\"")).count() > 40);
    }
}
