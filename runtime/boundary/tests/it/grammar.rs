//! The hand-written parser, `grammar.pest` and its automaton are one language.
//!
//! Two readers that accept the same texts find the same prefixes live, since a
//! prefix is live when a sentence begins with it. So the door's parser need not
//! say where it would go on. Where the automaton lives, the parser must accept
//! the prefix with its shortest completion. Where it dies, the parser must refuse
//! what would complete a state that it could have mistaken this for: the one before
//! the byte, each that another byte leads to, and the one without the byte before.
//! Once after each state, also those that the byte leads to wherever the two bytes
//! before it are the same.

use std::collections::{BTreeSet, HashMap};
use std::thread;

use pest::Parser as _;
use synapse_abi::code::Refusal;
use synapse_abi::registry::{REGISTRY, Row};
use synapse_automaton::{START, STATES, State};
use synapse_boundary::parse;

use crate::sentences::{EVERY_FORM, Random, Writer, mutate};

mod generated {
    #[derive(pest_derive::Parser, Debug)]
    #[grammar = "../../grammar.pest"]
    pub(super) struct Grammar;
}
use generated::{Grammar, Rule};

#[test]
fn every_form_is_read_alike_at_every_byte() {
    let words = Words::new();
    for sentence in EVERY_FORM {
        assert!(parse(sentence.as_bytes()).is_ok(), "{sentence}");
        every_prefix_agrees(sentence.as_bytes());
        words.every_byte_agrees(sentence.as_bytes());
    }
}

#[test]
fn random_sentences_have_every_primitive() {
    let writer = Writer::new();
    let random = &mut Random::new(3);
    let sentences: Vec<String> = (0..2_000).map(|_| writer.sentence(random)).collect();
    for Row { primitive, name, .. } in &REGISTRY {
        for (kind, expected) in [("name", true), ("warrant", primitive.takes_warrant())] {
            let start = format!("{{\"{kind}\":\"{name}\"");
            let found = sentences.iter().any(|sentence| sentence.starts_with(&start));
            assert_eq!(found, expected, "{start}");
        }
    }
}

#[test]
fn i12_random_sentences_are_read_alike_at_every_byte() {
    let words = Words::new();
    let writer = Writer::new();
    in_parallel(|seed| {
        let random = &mut Random::new(seed.into());
        for _ in 0..10_000 {
            let sentence = writer.sentence(random);
            assert!(parser_accepts(sentence.as_bytes()), "{sentence}");
            every_prefix_agrees(sentence.as_bytes());
            words.every_byte_agrees(sentence.as_bytes());
        }
    });
}

#[test]
fn i12_mutations_are_read_alike_at_every_byte() {
    let words = Words::new();
    let writer = Writer::new();
    in_parallel(|seed| {
        let random = &mut Random::new(seed.into());
        for turn in 0..150_000 {
            let form = EVERY_FORM[turn % EVERY_FORM.len()];
            let other = writer.sentence(random);
            let mutant = match turn % 2 {
                0 => mutate(form, &other, random),
                _ => mutate(&other, form, random),
            };
            agree(&mutant);
            words.every_byte_agrees(&mutant);
        }
    });
}

#[test]
fn every_byte_after_every_step_is_read_alike() {
    let words = Words::new();
    in_parallel(|seed| {
        for state in words.states.iter().filter(|state| state.place() % 2 == seed % 2) {
            for (byte, _, next) in state.bytes() {
                let before = [words.to(*state), &[byte]].concat();
                assert_eq!(parser_accepts(&before), next.is_complete());
                for byte in 0..=u8::MAX {
                    words.byte_agrees(&before, next, byte);
                }
            }
        }
    });
}

#[test]
fn every_byte_after_every_state_leads_where_it_should() {
    let words = Words::new();
    let ways = words.ways();
    in_parallel(|seed| {
        for state in words.states.iter().filter(|state| state.place() % 2 == seed % 2) {
            let mut text = words.to(*state).to_vec();
            for byte in 0..=u8::MAX {
                text.push(byte);
                let length = text.len();
                for completion in ways.get(last_three(&text)).into_iter().flatten() {
                    text.extend(*completion);
                    let next = state.next(byte).and_then(|next| after(next, completion));
                    let complete = next.is_some_and(State::is_complete);
                    assert_eq!(parser_accepts(&text), complete, "{}", text.escape_ascii());
                    text.truncate(length);
                }
                text.pop();
            }
        }
    });
}

/// Runs twice at once, with 1 and 2.
fn in_parallel(run: impl Fn(u16) + Sync) {
    thread::scope(|scope| {
        for seed in [1, 2] {
            let run = &run;
            scope.spawn(move || run(seed));
        }
    });
}

/// Fails where a prefix, taken for a whole sentence, is read in two ways.
fn every_prefix_agrees(sentence: &[u8]) {
    for end in 0..=sentence.len() {
        agree(&sentence[..end]);
    }
}

/// Fails where parser, pest and automaton differ on a whole text.
fn agree(text: &[u8]) {
    let pest = str::from_utf8(text).is_ok_and(|text| Grammar::parse(Rule::sentence, text).is_ok());
    let automaton = after(START, text).is_some_and(State::is_complete);
    assert_eq!(pest, automaton, "pest and automaton on {}", text.escape_ascii());
    assert_eq!(pest, parser_accepts(text), "pest and parser on {}", text.escape_ascii());
}

/// Whether the parser finds a sentence of the grammar, whatever stands beside that.
fn parser_accepts(text: &[u8]) -> bool {
    match parse(text) {
        Ok(_) | Err(Refusal::TooLong | Refusal::NotCanonical) => true,
        Err(Refusal::Malformed | Refusal::NoSuchPrimitive) => false,
        Err(other) => unreachable!("gate 1 does not say {other:?}"),
    }
}

/// Where a text leads.
fn after(state: State, text: &[u8]) -> Option<State> {
    text.iter().try_fold(state, |state, byte| state.next(*byte))
}

/// The shortest words through each state of the automaton.
struct Words {
    states: Vec<State>,
    to: Vec<Vec<u8>>,
    from: Vec<Vec<u8>>,
}

impl Words {
    fn new() -> Self {
        let mut words =
            Self { states: vec![START], to: vec![vec![]; STATES], from: vec![vec![]; STATES] };
        let mut before = vec![Vec::new(); STATES];
        let mut met = BTreeSet::from([START]);
        let mut at = 0;
        while let Some(state) = words.states.get(at).copied() {
            for (byte, _, next) in state.bytes() {
                before[usize::from(next.place())].push((byte, state));
                if met.insert(next) {
                    words.to[usize::from(next.place())] = [words.to(state), &[byte]].concat();
                    words.states.push(next);
                }
            }
            at += 1;
        }
        assert_eq!(words.states.len(), STATES);
        let mut live: Vec<State> =
            words.states.iter().copied().filter(|state| state.is_complete()).collect();
        let mut met: BTreeSet<State> = live.iter().copied().collect();
        let mut at = 0;
        while let Some(state) = live.get(at).copied() {
            for (byte, before) in &before[usize::from(state.place())] {
                if met.insert(*before) {
                    words.from[usize::from(before.place())] =
                        [&[*byte], words.from(state)].concat();
                    live.push(*before);
                }
            }
            at += 1;
        }
        assert_eq!(live.len(), STATES);
        words
    }

    /// The shortest text that leads to a state.
    fn to(&self, state: State) -> &[u8] {
        &self.to[usize::from(state.place())]
    }

    /// The shortest text that completes a sentence from a state.
    fn from(&self, state: State) -> &[u8] {
        &self.from[usize::from(state.place())]
    }

    /// Fails where parser and automaton differ about live, complete or dead after a byte of `text`.
    fn every_byte_agrees(&self, text: &[u8]) {
        let mut state = Some(START);
        for (at, byte) in text.iter().enumerate() {
            assert_eq!(parser_accepts(&text[..at]), state.is_some_and(State::is_complete));
            state = state.and_then(|state| self.byte_agrees(&text[..at], state, *byte));
        }
    }

    /// The same for one byte after `before`, which led to `state`.
    fn byte_agrees(&self, before: &[u8], state: State, byte: u8) -> Option<State> {
        let accepts = |completion| parser_accepts(&[before, &[byte], completion].concat());
        let shown = || before.escape_ascii();
        let next = state.next(byte);
        if let Some(next) = next {
            assert!(accepts(self.from(next)), "dies at {byte:#x} after {}", shown());
        } else {
            let others = state.bytes().map(|(_, _, next)| next);
            // As if the byte before it were not there.
            let skipped = before.split_last().and_then(|(_, before)| after(START, before));
            let skipped = skipped.and_then(|state| state.next(byte));
            for other in others.chain([state]).chain(skipped) {
                assert!(!accepts(self.from(other)), "lives at {byte:#x} after {}", shown());
            }
        }
        next
    }

    /// What completes a sentence after three bytes, in any state that is reached by them.
    fn ways(&self) -> HashMap<Vec<u8>, BTreeSet<&[u8]>> {
        let mut ways: HashMap<_, BTreeSet<&[u8]>> = HashMap::new();
        for state in &self.states {
            for (low, high, next) in state.bytes() {
                for byte in low..=high {
                    let text = [self.to(*state), &[byte]].concat();
                    ways.entry(last_three(&text).to_vec()).or_default().insert(self.from(next));
                }
            }
        }
        ways
    }
}

fn last_three(text: &[u8]) -> &[u8] {
    &text[text.len().saturating_sub(3)..]
}
