//! The account of one call: what its records say, put together
//!
//! A record is complete but terse. An account adds what led to it, the records
//! that raised the mark, and what came of it, so that a person sees why.
//!
//! # Not here
//! What a code means ([`explain`]). Where arguments came from (`sources`). Asking anew with today's grant
//! (`synapse_boundary::examine`).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Primitive, Role};
use synapse_boundary::{Said, Secrecy, parse};

use crate::grant::excess;
use crate::record::{Kind, tag};
use crate::sources::{Source, grant, is_held, sources, stands};
use crate::verify::{Broken, Reader, Record};
use crate::{explain, render, words};

/// A decision with the records that it hangs together with.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    /// The decision.
    pub decision: Record<'a>,
    /// What a human answered, if one was asked.
    pub answer: Option<Record<'a>>,
    /// What the call came to; none for a refusal, or where the run died before.
    pub outcome: Option<Record<'a>>,
    /// The decisions that brought in what justified it.
    pub origins: Vec<Record<'a>>,
    /// The warrant, the confirmation or the approval that covers it.
    pub cause: Option<Record<'a>>,
    /// Its arguments, in order.
    pub arguments: Vec<Source<'a>>,
    /// What a child was to have and its parent does not, where it was refused for that.
    pub excess: Vec<String>,
}

/// Why there is no account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAccount {
    /// The log is not as it was written.
    Broken(Broken),
    /// The log has this many records and none with that number.
    NoSuch(u64),
    /// The record is about no call.
    NoCall(Kind),
}

impl<'a> Account<'a> {
    /// Looks a call up by its decision's number, or by its outcome's.
    ///
    /// # Errors
    /// See [`NoAccount`]. The whole log is checked first.
    pub fn find(log: &'a [u8], number: u64) -> Result<Self, NoAccount> {
        let records: Vec<_> =
            Reader::new(log).collect::<Result<_, _>>().map_err(NoAccount::Broken)?;
        let get =
            |number: u64| usize::try_from(number).ok().and_then(|at| records.get(at)).copied();
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        let found = get(number).ok_or(NoAccount::NoSuch(count))?;
        let decision = match (found.kind, found.cause.and_then(get)) {
            (Kind::Decision, _) => found,
            (Kind::Outcome, Some(decision)) => decision,
            (Kind::Answer, _) => {
                // The decision that rests on it; none where the log ends before.
                let rests = |record: &&Record<'_>| {
                    record.kind == Kind::Decision && record.cause == Some(number)
                };
                let decision = records.iter().find(rests);
                *decision.ok_or(NoAccount::NoCall(Kind::Answer))?
            }
            (kind, _) => return Err(NoAccount::NoCall(kind)),
        };
        let follows = |record: &&Record<'_>| {
            record.kind == Kind::Outcome && record.cause == Some(decision.sequence)
        };
        let outcome = records.iter().find(follows).copied();
        let answer = decision.cause.and_then(get).filter(|cause| cause.kind == Kind::Answer);
        let origins = decision.field(tag::ORIGINS).unwrap_or_default();
        let origins = origins
            .chunks_exact(8)
            .filter_map(|bytes| get(u64::from_le_bytes(bytes.try_into().ok()?)));
        let (origins, cause) = (origins.collect(), decision.cause.and_then(get));
        let arguments = sources(&decision, &records);
        let excess = beyond(&decision, &records).unwrap_or_default();
        Ok(Self { decision, answer, outcome, origins, cause, arguments, excess })
    }

    /// What each gate said, 1 to 4.
    #[must_use]
    pub fn gates(&self) -> [Finding; 4] {
        let refusing = self.decision.gate;
        [1, 2, 3, 4].map(|gate| {
            if refusing == 0 || gate < refusing {
                Finding::Passed
            } else if gate == refusing {
                Finding::Refused
            } else {
                Finding::NotReached
            }
        })
    }

    /// Whether a human said yes to it.
    fn is_confirmed(&self) -> bool {
        let said = self.answer.as_ref().and_then(words::answer);
        said.is_some_and(|(said, _)| said == Said::Yes)
    }

    /// Whether nobody knows what the call did: permitted, not taken back by
    /// itself, and its outcome never written.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.decision.code == 0 && self.decision.class & 3 != 0 && self.outcome.is_none()
    }

    /// The code that the guest got, or 0.
    #[must_use]
    pub fn code(&self) -> u16 {
        let outcome = self.outcome.map_or(0, |record| record.code);
        if self.decision.code == 0 { outcome } else { self.decision.code }
    }

    /// The account, line by line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let record = &self.decision;
        let advice = explain::code(self.code());
        let mut lines = Vec::new();
        let mut say = |what: &str, text: &str| {
            lines.push(format!("{what:<9}{text}").trim_end().to_owned());
        };
        say("record", &format!("#{}: {}", record.sequence, words::verdict(record)));
        say("asked", &words::text(record).map(render::escape).unwrap_or_default());
        if let Some(target) = record.field(tag::TARGET) {
            say("target", &render::escape(target));
        }
        for (number, source) in self.arguments.iter().enumerate() {
            let told = format!("{}: {}", source.name, source.told());
            say(if number == 0 { "from" } else { "" }, &told);
        }
        let gates = words::GATES.iter().skip(1).zip(self.gates());
        for (number, (name, finding)) in gates.enumerate() {
            let told = match (finding, advice) {
                (Finding::Passed, _) if number == 2 && self.is_confirmed() => {
                    "passed, by the human's yes"
                }
                (Finding::Passed, _) => "passed",
                (Finding::NotReached, _) => "not reached",
                (Finding::Refused, advice) => advice.map_or("refused", |advice| advice.why),
            };
            say(if number == 0 { "gates" } else { "" }, &format!("{name:<11}{told}"));
        }
        if !self.excess.is_empty() {
            say("beyond", &render::escape(self.excess.join(", ")));
        }
        say("because", &label(record));
        for (number, origin) in self.origins.iter().enumerate() {
            say(if number == 0 { "read in" } else { "" }, &words::record(origin));
        }
        if let Some(answer) = &self.answer {
            say("answered", &words::record(answer));
        }
        if let Some(cause) = self.cause.filter(|cause| cause.kind != Kind::Answer) {
            say("rests on", &words::record(&cause));
        }
        match &self.outcome {
            Some(outcome) => say("came to", &words::record(outcome)),
            None if self.is_unknown() => {
                say("came to", "unknown: the run ended before its outcome was recorded");
            }
            None => {}
        }
        match advice {
            Some(advice) if record.code == 0 => {
                say("for", advice.why);
                say("to pass", advice.remedy);
            }
            Some(advice) => say("to pass", advice.remedy),
            None => {}
        }
        for way in self.ways() {
            say("", &way);
        }
        lines
    }

    /// What else would have made a refused call pass, with the records that it
    /// would have been about.
    #[must_use]
    pub fn ways(&self) -> Vec<String> {
        let mut ways = Vec::new();
        let Some(refusal) = Refusal::from_number(self.decision.code) else { return ways };
        let read = |record: &&Record<'_>| record.kind == Kind::Decision && !is_held(record);
        let first = self.origins.iter().find(read);
        let stopped = matches!(
            refusal,
            Refusal::Destructive | Refusal::Irreversible | Refusal::NotCleared | Refusal::Declined
        );
        if let Some(warrant) = self.warrant().filter(|_| stopped) {
            let before =
                first.map_or(String::new(), |record| format!(" before #{}", record.sequence));
            let warrant = render::escape(warrant);
            ways.push(format!("or ask{before}, if the human's line names the target: {warrant}"));
        }
        if let Some(first) = first.filter(|_| stopped || refusal == Refusal::Tainted) {
            let name = first.primitive.map_or("", |primitive| primitive.row().name);
            ways.push(format!(
                "or hold what #{} {name} brought, and pass it on unread",
                first.sequence
            ));
        }
        let pattern =
            |source: &Source<'_>| source.role == Role::Target && source.value.ends_with("*\"");
        if refusal == Refusal::NotCited && self.arguments.iter().any(pattern) {
            ways.push("or ask for one name that the line has, instead of a pattern".to_owned());
        }
        ways
    }

    /// The warrant that would cover the call; none where its primitive takes none or
    /// a target is not spelled out.
    fn warrant(&self) -> Option<String> {
        let row = self.decision.primitive?.row();
        let targets = self.arguments.iter().filter(|source| source.role == Role::Target);
        let targets: Vec<_> =
            targets.map(|source| format!("\"{}\":{}", source.name, source.value)).collect();
        let text = format!(
            "{{\"warrant\":\"{}\",\"arguments\":{{{}}},\"uses\":1}}",
            row.name,
            targets.join(",")
        );
        parse(text.as_bytes()).is_ok_and(|sentence| sentence.uses.is_some()).then_some(text)
    }
}

/// What a gate said of a recorded call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It had nothing against it.
    Passed,
    /// It refused it.
    Refused,
    /// An earlier gate refused it.
    NotReached,
}

impl Finding {
    /// Its name, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::NotReached => "not reached",
        }
    }
}

/// What the refused grant of a child has more than its parent's.
fn beyond(decision: &Record<'_>, records: &[Record<'_>]) -> Option<Vec<String>> {
    let asked = decision.primitive == Some(Primitive::AgentSpawn)
        && decision.code == Refusal::OutOfScope.number();
    let sentence = decision.field(tag::SENTENCE).filter(|_| asked)?;
    let request = stands(str::from_utf8(sentence).ok()?, "grant")?;
    Some(excess(grant(decision.task, records)?, request))
}

/// What justified the call, in words.
fn label(record: &Record<'_>) -> String {
    let who = match record.integrity {
        0 => "only the kernel's own words had been read",
        1 => "the human's words and nothing from outside had been read",
        _ => "something from outside had been read",
    };
    let named = compartments(record.secrecy).join(", ");
    if named.is_empty() { who.to_owned() } else { format!("{who}; it may tell of: {named}") }
}

/// The names of compartment bits; those of the grant by their number.
#[must_use]
pub fn compartments(bits: u64) -> Vec<String> {
    let name = |bit: u32| match Secrecy::bit(bit) {
        Some(Secrecy::PROMPT) => "prompt".to_owned(),
        Some(Secrecy::FILES) => "files".to_owned(),
        _ => format!("compartment {bit}"),
    };
    (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1).map(name).collect()
}

/// Why there is no account: what happened, and what to do.
impl core::fmt::Display for NoAccount {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Broken(Broken::Header) => {
                f.write_str("it is no log of this version; name one that this version wrote")
            }
            Self::Broken(Broken::Record(number)) => write!(
                f,
                "record {number} is not as it was written; trust the records before it alone"
            ),
            Self::Broken(Broken::Torn(number)) => {
                write!(f, "the log ends inside record {number}; trust the records before it alone")
            }
            Self::NoSuch(0) => f.write_str("the log has no records yet; run an agent first"),
            Self::NoSuch(count) => write!(
                f,
                "the log has no such record; its numbers go from 0 to {}",
                count.saturating_sub(1)
            ),
            Self::NoCall(kind) => write!(
                f,
                "it is about no call but a {}; name a decision or an outcome",
                words::kind(*kind)
            ),
        }
    }
}
