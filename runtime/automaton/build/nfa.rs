//! A pest grammar as one nondeterministic automaton, or why it is none
//!
//! pest takes the first alternative that matches and the longest repetition,
//! and never comes back; an automaton follows all of them at once. The two
//! accept the same sentences when nothing that pest tries first can match a
//! beginning of what it would otherwise go on with. That is checked at every
//! alternative, option and repetition, in every place where its rule stands,
//! against all that can follow there.
//!
//! # Not here
//! Determinism and tables (`table`).

use core::error::Error;
use core::fmt;
use std::collections::{BTreeSet, HashMap, VecDeque};

use pest_meta::ast::{Expr, Rule};
use pest_meta::parser;
use regex_syntax::utf8::Utf8Sequences;

/// The rule that is the whole language.
const START: &str = "sentence";

/// Why a grammar has no automaton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// pest itself does not take it.
    Grammar(String),
    /// No rule `sentence` that is `SOI ~ … ~ EOI`.
    Start,
    /// The rule stands within itself.
    Recursive(String),
    /// The rule names one that is not there.
    Unknown { rule: String, name: String },
    /// The rule says something that is not regular, or not about bytes.
    Unsupported { rule: String, what: String },
    /// Two alternatives of the rule begin alike, up to the end of one.
    Choice { rule: String, word: String },
    /// What the rule repeats or leaves out begins like what follows it.
    Repetition { rule: String, word: String },
}

impl Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grammar(why) => write!(f, "pest does not take it: {why}"),
            Self::Start => write!(f, "`{START}` is missing or not `SOI ~ … ~ EOI`; write it so"),
            Self::Recursive(rule) => write!(
                f,
                "the rule `{rule}` is recursive, and a door's language is regular; write one rule a level"
            ),
            Self::Unknown { rule, name } => {
                write!(
                    f,
                    "the rule `{rule}` names `{name}`, which the grammar does not define; define it"
                )
            }
            Self::Unsupported { rule, what } => {
                write!(f, "the rule `{rule}` uses {what}, which no automaton follows; leave it out")
            }
            Self::Choice { rule, word } => write!(
                f,
                "in the rule `{rule}` one alternative ends at {word:?} where another goes on, so their order matters; make them differ before that"
            ),
            Self::Repetition { rule, word } => write!(
                f,
                "in the rule `{rule}` what may be repeated or left out matches {word:?}, and so does what follows it; make them differ"
            ),
        }
    }
}

/// The place of a node in [`Nfa::nodes`].
pub(crate) type Id = usize;

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The end of a sentence.
    End,
    /// One byte of a range, then the next node.
    Bytes { low: u8, high: u8, next: Id },
    /// Any of these, without a byte.
    Any(Vec<Id>),
}

/// The automaton. Every node is on a way from `start` to an end.
#[derive(Clone, Debug)]
pub(crate) struct Nfa {
    pub(crate) nodes: Vec<Node>,
    pub(crate) start: Id,
}

impl Nfa {
    fn node(&self, id: Id) -> &Node {
        self.nodes.get(id).unwrap_or(&Node::End)
    }
}

/// Compiles a grammar.
pub(crate) fn compile(grammar: &str) -> Result<Nfa, Fault> {
    let rules = read(grammar)?;
    let start = rules.get(START).ok_or(Fault::Start)?;
    let parts = sequence(&start.expr);
    let [Expr::Ident(first), inner @ .., Expr::Ident(last)] = parts.as_slice() else {
        return Err(Fault::Start);
    };
    if first != "SOI" || last != "EOI" {
        return Err(Fault::Start);
    }
    let mut compiler = Compiler {
        rules: &rules,
        nodes: Vec::new(),
        known: HashMap::new(),
        done: HashMap::new(),
        open: vec![START],
        decisions: Vec::new(),
    };
    let mut next = compiler.node(Node::End);
    for part in inner.iter().rev() {
        next = compiler.expression(part, next)?;
    }
    // A loop leads back to what was built after it, so this needs the whole.
    let nfa = Nfa { nodes: compiler.nodes, start: next };
    compiler.decisions.into_iter().try_for_each(|decision| decision.check(&nfa))?;
    Ok(nfa)
}

fn read(grammar: &str) -> Result<HashMap<String, Rule>, Fault> {
    let pairs =
        parser::parse(parser::Rule::grammar_rules, grammar).map_err(|why| refused(&[why]))?;
    pest_meta::validator::validate_pairs(pairs.clone()).map_err(|why| refused(&why))?;
    let rules = parser::consume_rules(pairs).map_err(|why| refused(&why))?;
    if let Some(rule) = rules.iter().find(|rule| ["WHITESPACE", "COMMENT"].contains(&&*rule.name)) {
        let what = "implicit white space".to_owned();
        return Err(Fault::Unsupported { rule: rule.name.clone(), what });
    }
    Ok(rules.into_iter().map(|rule| (rule.name.clone(), rule)).collect())
}

fn refused(why: &[impl ToString]) -> Fault {
    Fault::Grammar(why.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// The parts of `a ~ b ~ c`.
fn sequence(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Seq(left, right) => [sequence(left), sequence(right)].concat(),
        other => vec![other],
    }
}

/// The alternatives of `a | b | c`.
fn alternatives(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Choice(left, right) => [alternatives(left), alternatives(right)].concat(),
        other => vec![other],
    }
}

/// Builds from the end to the beginning: each expression is compiled with the
/// node that follows it, so equal rules before equal endings are one node.
struct Compiler<'g> {
    rules: &'g HashMap<String, Rule>,
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
    done: HashMap<(&'g str, Id), Id>,
    /// The rules being compiled, outermost first.
    open: Vec<&'g str>,
    decisions: Vec<Decision>,
}

impl<'g> Compiler<'g> {
    fn expression(&mut self, expression: &'g Expr, next: Id) -> Result<Id, Fault> {
        match expression {
            Expr::Str(text) => Ok(self.text(text, next)),
            Expr::Range(low, high) => match (character(low), character(high)) {
                (Some(low), Some(high)) if low <= high => Ok(self.range(low, high, next)),
                _ => Err(self.unsupported("a range that is empty or not of characters")),
            },
            Expr::Ident(name) => self.rule(name, next),
            Expr::Seq(left, right) => {
                let right = self.expression(right, next)?;
                self.expression(left, right)
            }
            Expr::Choice(..) => self.choice(&alternatives(expression), next),
            Expr::Opt(inner) => self.at_most(inner, 1, next),
            Expr::Rep(inner) => self.repeated(inner, next),
            Expr::RepOnce(inner) => self.at_least(inner, 1, next),
            Expr::RepMin(inner, least) => self.at_least(inner, *least, next),
            Expr::RepExact(inner, count) => self.exactly(inner, *count, next),
            Expr::RepMax(inner, most) => self.at_most(inner, *most, next),
            Expr::RepMinMax(inner, least, most) => {
                let rest = self.at_most(inner, most.saturating_sub(*least), next)?;
                self.exactly(inner, *least, rest)
            }
            Expr::Insens(_) => Err(self.unsupported("a text in any case")),
            Expr::PosPred(_) | Expr::NegPred(_) => Err(self.unsupported("a look ahead")),
            Expr::PeekSlice(..) | Expr::Push(_) => Err(self.unsupported("the stack")),
            Expr::Skip(_) => Err(self.unsupported("a search")),
        }
    }

    fn rule(&mut self, name: &'g str, next: Id) -> Result<Id, Fault> {
        if let Some(entry) = self.done.get(&(name, next)) {
            return Ok(*entry);
        }
        if self.open.contains(&name) {
            return Err(Fault::Recursive(name.to_owned()));
        }
        let rules = self.rules;
        let rule = rules
            .get(name)
            .ok_or_else(|| Fault::Unknown { rule: self.current(), name: name.to_owned() })?;
        self.open.push(name);
        let entry = self.expression(&rule.expr, next)?;
        self.open.pop();
        self.done.insert((name, next), entry);
        Ok(entry)
    }

    fn choice(&mut self, alternatives: &[&'g Expr], next: Id) -> Result<Id, Fault> {
        let mut entries: Vec<Id> = Vec::new();
        for alternative in alternatives {
            let entry = self.expression(alternative, next)?;
            for earlier in &entries {
                self.decide(*earlier, next, entry, |rule, word| Fault::Choice { rule, word });
                self.decide(entry, next, *earlier, |rule, word| Fault::Choice { rule, word });
            }
            entries.push(entry);
        }
        Ok(self.node(Node::Any(entries)))
    }

    fn exactly(&mut self, inner: &'g Expr, count: u32, next: Id) -> Result<Id, Fault> {
        (0..count).try_fold(next, |next, _| self.expression(inner, next))
    }

    fn at_least(&mut self, inner: &'g Expr, least: u32, next: Id) -> Result<Id, Fault> {
        let rest = self.repeated(inner, next)?;
        self.exactly(inner, least, rest)
    }

    fn at_most(&mut self, inner: &'g Expr, most: u32, next: Id) -> Result<Id, Fault> {
        (0..most).try_fold(next, |rest, _| {
            let entry = self.expression(inner, rest)?;
            self.decide(entry, rest, next, |rule, word| Fault::Repetition { rule, word });
            Ok(self.node(Node::Any(vec![entry, next])))
        })
    }

    fn repeated(&mut self, inner: &'g Expr, next: Id) -> Result<Id, Fault> {
        // The place of the loop must be known before what leads back to it.
        let again = self.nodes.len();
        self.nodes.push(Node::Any(Vec::new()));
        let entry = self.expression(inner, again)?;
        self.decide(entry, again, next, |rule, word| Fault::Repetition { rule, word });
        if let Some(node) = self.nodes.get_mut(again) {
            *node = Node::Any(vec![entry, next]);
        }
        Ok(again)
    }

    fn decide(&mut self, first: Id, end: Id, other: Id, fault: fn(String, String) -> Fault) {
        let rule = self.current();
        self.decisions.push(Decision { first, end, other, rule, fault });
    }

    fn text(&mut self, text: &str, next: Id) -> Id {
        text.bytes()
            .rev()
            .fold(next, |next, byte| self.node(Node::Bytes { low: byte, high: byte, next }))
    }

    /// The UTF-8 of every character of a range, and nothing else.
    fn range(&mut self, low: char, high: char, next: Id) -> Id {
        let sequences: Vec<Id> = Utf8Sequences::new(low, high)
            .map(|sequence| {
                sequence.as_slice().iter().rev().fold(next, |next, bytes| {
                    self.node(Node::Bytes { low: bytes.start, high: bytes.end, next })
                })
            })
            .collect();
        self.node(Node::Any(sequences))
    }

    fn node(&mut self, node: Node) -> Id {
        let nodes = &mut self.nodes;
        *self.known.entry(node).or_insert_with_key(|node| {
            nodes.push(node.clone());
            nodes.len().saturating_sub(1)
        })
    }

    fn unsupported(&self, what: &str) -> Fault {
        Fault::Unsupported { rule: self.current(), what: what.to_owned() }
    }

    /// The rule being compiled.
    fn current(&self) -> String {
        self.open.last().copied().unwrap_or(START).to_owned()
    }
}

/// A place where pest tries what leads from `first` to `end` and then never comes
/// back for `other`.
struct Decision {
    first: Id,
    end: Id,
    other: Id,
    rule: String,
    fault: fn(String, String) -> Fault,
}

impl Decision {
    /// Fails where a word from `first` to `end` is the beginning of one from `other`.
    fn check(self, nfa: &Nfa) -> Result<(), Fault> {
        let mut queue = VecDeque::from([(self.first, self.other, Vec::new())]);
        let mut seen = BTreeSet::from([(self.first, self.other)]);
        while let Some((first, other, word)) = queue.pop_front() {
            if first == self.end {
                let word = String::from_utf8_lossy(&word).into_owned();
                return Err((self.fault)(self.rule, word));
            }
            let mut follow = |first: Id, other: Id, word: Vec<u8>| {
                if seen.insert((first, other)) {
                    queue.push_back((first, other, word));
                }
            };
            match (nfa.node(first), nfa.node(other)) {
                (Node::Any(all), _) => all.iter().for_each(|id| follow(*id, other, word.clone())),
                (_, Node::Any(all)) => all.iter().for_each(|id| follow(first, *id, word.clone())),
                (Node::Bytes { low, high, next }, Node::Bytes { low: l, high: h, next: n }) => {
                    let shared = *low.max(l);
                    if shared <= *high.min(h) {
                        follow(*next, *n, [word, vec![shared]].concat());
                    }
                }
                (Node::End, _) | (_, Node::End) => {}
            }
        }
        Ok(())
    }
}

/// The one character of a text.
fn character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}
