//! `decide` and the naive model say the same of a million worlds and sentences.

use std::collections::HashMap;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Primitive, REGISTRY};
use synapse_boundary::gates::Question;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::{
    Decided, Entry, Facts, Integrity, Label, Mark, Opened, Recorder, Said, commit, decide, examine,
};
use synapse_reply::code;

use crate::leave::{Leave, mint};
use crate::model::{grammar, judge};
use crate::sentences::Random;
use crate::world::{Form, Outcome, Sentence, Stamp, World};

/// How many worlds one test goes through; four tests make a million.
const WORLDS: usize = 250_000;

/// Counts records and keeps what the last one told.
#[derive(Default)]
pub(crate) struct Tape {
    records: u64,
    cause: Option<u64>,
    told: Option<(Option<Refusal>, Label)>,
}

impl Recorder for Tape {
    fn record(&mut self, entry: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        self.records += 1;
        self.told = Some((entry.refusal, entry.justification));
        self.cause = entry.cause;
        Ok(self.records)
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        unreachable!("nobody answers here")
    }
}

/// What `decide` and `commit` come to, and the label that goes with it.
pub(crate) fn outcome(log: &mut Tape, world: &mut World, raw: &[u8]) -> (Outcome, Label) {
    let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
    let request = world.request(&mark, &scope);
    let findings = examine(request, &*world, raw);
    let decided = decide(request, &*world, raw);
    let asked = match &decided {
        Decided::Ask(question) => question.refusals().next(),
        Decided::Final(_) => None,
    };
    let before = log.records;
    let mut warrants = core::mem::take(&mut world.warrants);
    let opened = commit(decided.unasked(), log, &mut warrants, &*world, 0).unwrap();
    world.warrants = warrants;
    assert_eq!(log.records, before + 1, "one record");
    let (code, outcome, label) = match (asked, opened) {
        (None, Opened::Permitted(call)) => (0, Outcome::Permitted, call.justification()),
        (None, Opened::Minted(_)) => (0, Outcome::Minted, Label::SYSTEM),
        (None, Opened::Refused(refused)) => {
            (refused.refusal.number(), Outcome::Refused(refused.refusal.number()), refused.label)
        }
        (Some(asked), Opened::Refused(refused)) => {
            assert_eq!(asked, refused.refusal);
            (asked.number(), Outcome::Question(asked.number()), refused.label)
        }
        (Some(_), Opened::Permitted(_) | Opened::Minted(_)) => {
            unreachable!("a question permits nothing")
        }
    };
    let first = findings.gates.iter().flatten().find_map(|gate| gate.err());
    assert_eq!(first.map_or(0, Refusal::number), code, "the first gate that says no");
    let told = log.told.take().map(|(refusal, label)| (refusal.map_or(0, Refusal::number), label));
    assert_eq!(told, Some((code, findings.justification)), "recorded as decided");
    (outcome, label)
}

/// Has a sentence decided by both, and what it changes remembered by both.
fn step(log: &mut Tape, world: &mut World, sentence: &Sentence) -> Outcome {
    let raw = sentence.write();
    let (expected, stamp, place) = judge(world, sentence, raw.len());
    let row = grammar(sentence, raw.len());
    let funds = row.and_then(|row| mint(world, sentence, row));
    let (got, label) = outcome(log, world, &raw);
    let text = String::from_utf8_lossy(&raw[..raw.len().min(2000)]);
    assert_eq!(got, expected, "{text}\n{world:?}");
    assert_eq!(log.cause, place.map(|place| world.leave[place].record), "{text}\n{world:?}");
    // What the kernel alone decides says nothing of what anybody wrote.
    let names = Stamp { integrity: Integrity::System, secrecy: 2 };
    let expected = match (got, sentence.form, row) {
        (Outcome::Permitted, ..) => stamp.label(),
        (Outcome::Refused(306 | 307), _, Ok(row)) if row.name.starts_with("fs_") => names.label(),
        (Outcome::Refused(code) | Outcome::Question(code), Form::Call { .. }, Ok(_))
            if code::gate(code) != Some(2) && !sentence.references().is_empty() =>
        {
            stamp.label()
        }
        _ => Label::SYSTEM,
    };
    assert_eq!(label, expected, "{text}\n{world:?}");
    if let Some(place) = place {
        world.leave[place].left -= 1;
    }
    if let (Outcome::Minted, Form::Warrant { uses }) = (got, sentence.form) {
        let leave = Leave { sentence: sentence.clone(), left: uses, record: log.records };
        world.leave.push(leave);
        world.funded.push(funds.unwrap());
    }
    got
}

/// Counts each outcome by the primitive's name, and fails where the two differ.
fn run(seed: u64) -> HashMap<(Outcome, &'static str), usize> {
    let mut random = Random::new(seed);
    let mut log = Tape::default();
    let mut counts = HashMap::new();
    for _ in 0..WORLDS {
        let mut world = random.world();
        let user = Stamp { integrity: Integrity::User, secrecy: 0 };
        let mark = core::mem::replace(&mut world.mark, user);
        for _ in 0..random.below(4) {
            let again = world.leave.last().filter(|_| random.below(4) == 0);
            let sentence = again.map(|leave| leave.sentence.clone());
            let sentence = sentence.unwrap_or_else(|| random.warrant(&world));
            let got = step(&mut log, &mut world, &sentence);
            *counts.entry((got, "warrant")).or_insert(0) += 1;
        }
        world.mark = mark;
        for _ in 0..random.below(3) {
            let Some(sentence) = random.covered(&world) else { break };
            let got = step(&mut log, &mut world, &sentence);
            let name = if log.cause.is_some() { "covered" } else { sentence.name };
            *counts.entry((got, name)).or_insert(0) += 1;
        }
        let sentence = random.sentence(&world);
        let got = step(&mut log, &mut world, &sentence);
        let name =
            if matches!(sentence.form, Form::Call { .. }) { sentence.name } else { "warrant" };
        *counts.entry((got, name)).or_insert(0) += 1;
    }
    counts
}

/// Every refusal that this version can come to.
const REFUSALS: [u16; 25] = [
    101, 102, 103, 104, 201, 202, 203, 301, 302, 303, 304, 305, 306, 307, 308, 310, 401, 402, 403,
    404, 405, 406, 407, 409, 410,
];

/// Goes through a quarter of the worlds, and sees to it that they were not all alike.
fn agree(seed: u64) {
    let counts = run(seed);
    let count = |wanted: &dyn Fn(Outcome, &str) -> bool| -> usize {
        let matching = counts.iter().filter(|((outcome, name), _)| wanted(*outcome, name));
        matching.map(|(_, count)| count).sum()
    };
    for code in REFUSALS {
        let found = count(&|outcome, _| outcome == Outcome::Refused(code));
        assert!(found >= 100, "{code} came {found} times");
    }
    for code in [301, 302, 303, 304] {
        let found = count(&|outcome, _| outcome == Outcome::Question(code));
        assert!(found >= 100, "a question for {code} came {found} times");
    }
    for row in &REGISTRY {
        let found = count(&|outcome, name| outcome == Outcome::Permitted && name == row.name);
        match row.primitive {
            // No grant names a model or a package yet.
            Primitive::ModelGenerate | Primitive::AgentSpawn => assert_eq!(found, 0),
            _ => assert!(found >= 100, "{} was permitted {found} times", row.name),
        }
    }
    let acting =
        count(&|outcome, name| (outcome, name) == (Outcome::Question(301), "net_http_get"));
    assert!(acting > 0, "no secret made a GET destructive");
    let covered = count(&|outcome, name| (outcome, name) == (Outcome::Permitted, "covered"));
    assert!(covered >= 1000, "{covered} calls were covered by a warrant");
    let known = |outcome| match outcome {
        Outcome::Permitted | Outcome::Minted => true,
        Outcome::Question(code) | Outcome::Refused(code) => REFUSALS.contains(&code),
    };
    assert_eq!(count(&|outcome, _| !known(outcome)), 0);
}

#[test]
fn decide_is_the_rule_in_the_first_quarter_of_a_million_worlds() {
    agree(1);
}

#[test]
fn decide_is_the_rule_in_the_second_quarter_of_a_million_worlds() {
    agree(2);
}

#[test]
fn decide_is_the_rule_in_the_third_quarter_of_a_million_worlds() {
    agree(3);
}

#[test]
fn decide_is_the_rule_in_the_last_quarter_of_a_million_worlds() {
    agree(4);
}
