//! The hand-written parser, `grammar.pest` and its automaton are one language.
//!
//! Two readers that accept the same texts find the same prefixes live, since a
//! prefix is live when a sentence begins with it. So the door's parser need not
//! say where it would go on. Where the automaton lives, the parser must accept
//! the prefix with its shortest completion. Where it dies, the parser must refuse
//! whatever would complete a state that it could have mistaken this for: the one
//! before the byte, and each that another byte leads to.

use std::collections::BTreeSet;
use std::thread;

use pest::Parser as _;
use synapse_abi::code::Refusal;
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
            let mutant = match EVERY_FORM.get(turn % (2 * EVERY_FORM.len())) {
                Some(form) => mutate(form, random),
                None => mutate(&writer.sentence(random), random),
            };
            agree(&mutant);
            words.every_byte_agrees(&mutant);
        }
    });
}

#[test]
fn every_byte_after_every_state_is_read_alike() {
    let words = Words::new();
    in_parallel(|seed| {
        for state in words.states.iter().filter(|state| state.place() % 2 == seed % 2) {
            let before = words.to(*state);
            assert_eq!(parser_accepts(before), state.is_complete());
            for byte in 0..=u8::MAX {
                words.byte_agrees(before, *state, byte);
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
    let ours = parser_accepts(text);
    let shown = String::from_utf8_lossy(text);
    let pest = str::from_utf8(text).is_ok_and(|text| Grammar::parse(Rule::sentence, text).is_ok());
    assert_eq!(ours, pest, "parser and pest on {shown}");
    let end = text.iter().try_fold(START, |state, byte| state.next(*byte));
    assert_eq!(ours, end.is_some_and(State::is_complete), "parser and automaton on {shown}");
}

/// Whether the parser finds a sentence of the grammar, whatever stands beside that.
fn parser_accepts(text: &[u8]) -> bool {
    match parse(text) {
        Ok(_) | Err(Refusal::TooLong | Refusal::NotCanonical) => true,
        Err(Refusal::Malformed | Refusal::NoSuchPrimitive) => false,
        Err(other) => unreachable!("gate 1 does not say {other:?}"),
    }
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
        let accepts = |completion: &[u8]| parser_accepts(&[before, &[byte], completion].concat());
        let shown = String::from_utf8_lossy(before);
        let next = state.next(byte);
        if let Some(next) = next {
            assert!(accepts(self.from(next)), "the parser dies at {byte:#x} after {shown}");
        } else {
            let others = state.bytes().map(|(_, _, next)| next);
            let completions: BTreeSet<&[u8]> =
                others.chain([state]).map(|other| self.from(other)).collect();
            for completion in completions {
                assert!(!accepts(completion), "the parser lives at {byte:#x} after {shown}");
            }
        }
        next
    }
}
