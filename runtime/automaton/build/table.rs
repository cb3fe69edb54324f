//! A nondeterministic automaton as the tables of the smallest deterministic one
//!
//! A state's row lists the byte ranges that keep a sentence alive and where they
//! lead; what no range holds is dead. States are numbered in the order in which
//! they are met, the complete ones after all others.
//!
//! # Not here
//! The grammar and what may stand in it (`nfa`).

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;

use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson::{self, Transition};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};

use crate::nfa::{Nfa, Node};

/// `(low, high, state)`, by rising bytes.
type Row = Vec<(u8, u8, u16)>;

/// The smallest automaton without its dead state.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    pub(crate) start: u16,
    /// The first of the states at which a sentence is complete.
    pub(crate) complete: u16,
}

impl Table {
    /// The smallest automaton of this language.
    pub(crate) fn new(nfa: &Nfa) -> Result<Self, Box<dyn Error>> {
        let config = dense::Config::new()
            .minimize(true)
            .accelerate(false)
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored);
        let dfa = &dense::Builder::new().configure(config).build_from_nfa(&thompson(nfa)?)?;
        let start = dfa.start_state(&start::Config::new().anchored(Anchored::Yes))?;
        let complete = |state: StateID| dfa.is_match_state(dfa.next_eoi_state(state));
        let successors =
            |state: StateID| (0..=u8::MAX).map(move |byte| (byte, dfa.next_state(state, byte)));
        // Every node leads to an end, so only what is complete or leads on lives. The engine
        // tells a match one byte late, in a state that does neither.
        let lives = |state: StateID| {
            complete(state) || successors(state).any(|(_, next)| !dfa.is_dead_state(next))
        };

        let mut met = vec![start];
        let mut known = BTreeSet::from([start]);
        let mut at = 0;
        while let Some(state) = met.get(at).copied() {
            at += 1;
            met.extend(
                successors(state)
                    .map(|(_, next)| next)
                    .filter(|next| lives(*next) && known.insert(*next)),
            );
        }
        met.sort_by_key(|state| complete(*state));
        let incomplete = met.iter().filter(|state| !complete(**state)).count();
        let mut numbers = BTreeMap::new();
        for (number, state) in met.iter().enumerate() {
            numbers.insert(*state, u16::try_from(number)?);
        }

        let row = |state| {
            let mut row = Row::new();
            for (byte, next) in successors(state) {
                let Some(number) = numbers.get(&next).copied() else { continue };
                match row.last_mut() {
                    Some((_, high, same))
                        if *same == number && high.checked_add(1) == Some(byte) =>
                    {
                        *high = byte
                    }
                    _ => row.push((byte, byte, number)),
                }
            }
            row
        };
        Ok(Self {
            rows: met.iter().map(|state| row(*state)).collect(),
            start: numbers.get(&start).copied().ok_or("the grammar has no sentence")?,
            complete: u16::try_from(incomplete)?,
        })
    }

    /// The constants that the library includes.
    pub(crate) fn source(&self) -> Result<String, Box<dyn Error>> {
        let mut starts = vec![0_usize];
        let mut ranges = String::new();
        let mut count = 0_usize;
        for row in &self.rows {
            for range in row {
                write!(ranges, "{range:?},")?;
            }
            count += row.len();
            starts.push(count);
        }
        Ok(format!(
            "const FIRST: u16 = {};\nconst COMPLETE: u16 = {};\nstatic ROWS: [u32; {}] = {starts:?};\nstatic RANGES: [(u8, u8, u16); {count}] = [{ranges}];\n",
            self.start,
            self.complete,
            starts.len(),
        ))
    }
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
