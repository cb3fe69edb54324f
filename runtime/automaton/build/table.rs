//! A nondeterministic automaton as the tables of the smallest deterministic one
//!
//! A state's row lists the byte ranges that keep a sentence alive and where they
//! lead; what no range holds is dead. States are numbered in the order in which
//! they are met, the complete ones after all others.
//!
//! # Not here
//! The grammar and what may stand in it (`nfa`).

use core::error::Error;
use std::collections::{BTreeMap, BTreeSet};

use regex_automata::dfa::dense::{Builder, Config, DFA};
use regex_automata::dfa::{Automaton as _, StartKind};
use regex_automata::nfa::thompson::{self, Transition};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};

use crate::nfa::{Nfa, Node};

/// The smallest automaton, without its dead state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// For each state `(low, high, next state)`, by rising bytes.
    pub(crate) rows: Vec<Vec<(u8, u8, u16)>>,
    pub(crate) start: u16,
    /// The first of the states at which a sentence is complete.
    pub(crate) complete: u16,
}

impl Table {
    /// The smallest automaton of this language.
    pub(crate) fn new(nfa: &Nfa) -> Result<Self, Box<dyn Error>> {
        let config = Config::new()
            .minimize(true)
            .accelerate(false)
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored);
        let dfa = Builder::new().configure(config).build_from_nfa(&thompson(nfa)?)?;
        let start = dfa.start_state(&start::Config::new().anchored(Anchored::Yes))?;
        let states = met(&dfa, start);
        let numbers: BTreeMap<StateID, usize> = states.iter().copied().zip(0..).collect();
        let number = |state| match numbers.get(&state) {
            Some(number) => u16::try_from(*number).map_err(|_| "it has more than 65,536 states"),
            None => Err("it has no sentence"),
        };
        let mut rows = Vec::new();
        for state in &states {
            let mut row: Vec<(u8, u8, u16)> = Vec::new();
            for (byte, next) in successors(&dfa, *state).filter(|(_, next)| lives(&dfa, *next)) {
                let next = number(next)?;
                match row.last_mut() {
                    Some((_, high, same)) if *same == next && *high + 1 == byte => *high = byte,
                    _ => row.push((byte, byte, next)),
                }
            }
            rows.push(row);
        }
        let complete = states.iter().position(|state| complete(&dfa, *state));
        let complete = u16::try_from(complete.ok_or("it has no sentence")?)?;
        Ok(Self { rows, start: number(start)?, complete })
    }
}

/// The live and complete states that `start` leads to, the complete ones last.
fn met(dfa: &DFA<Vec<u32>>, start: StateID) -> Vec<StateID> {
    let mut states = vec![start];
    let mut known = BTreeSet::from([start]);
    let mut at = 0;
    while let Some(state) = states.get(at).copied() {
        let nexts = successors(dfa, state).map(|(_, next)| next);
        states.extend(nexts.filter(|next| known.insert(*next) && lives(dfa, *next)));
        at += 1;
    }
    states.sort_by_key(|state| complete(dfa, *state));
    states
}

fn successors(dfa: &DFA<Vec<u32>>, state: StateID) -> impl Iterator<Item = (u8, StateID)> {
    (0..=u8::MAX).map(move |byte| (byte, dfa.next_state(state, byte)))
}

/// Whether a sentence can go on from here or ends here.
///
/// Every node of the grammar leads to an end, so a step is enough to know. The
/// engine tells a match one byte late, in a state that does neither.
fn lives(dfa: &DFA<Vec<u32>>, state: StateID) -> bool {
    complete(dfa, state) || successors(dfa, state).any(|(_, next)| !dfa.is_dead_state(next))
}

fn complete(dfa: &DFA<Vec<u32>>, state: StateID) -> bool {
    dfa.is_match_state(dfa.next_eoi_state(state))
}

/// The same automaton in the terms of the engine that makes it deterministic.
fn thompson(nfa: &Nfa) -> Result<thompson::NFA, Box<dyn Error>> {
    let id = |id: &usize| StateID::new(*id);
    let mut builder = thompson::Builder::new();
    builder.start_pattern()?;
    for node in &nfa.nodes {
        match node {
            Node::End => builder.add_match()?,
            Node::Bytes { low, high, next } => {
                builder.add_range(Transition { start: *low, end: *high, next: id(next)? })?
            }
            Node::Any(nodes) => {
                builder.add_union(nodes.iter().map(id).collect::<Result<_, _>>()?)?
            }
        };
    }
    let start = id(&nfa.start)?;
    builder.finish_pattern(start)?;
    Ok(builder.build(start, start)?)
}
