//! Sentences to compare readers on: one of every form, random ones, damaged ones

use std::collections::HashMap;

use pest_meta::ast::{Expr, Rule};
use pest_meta::parser;

/// One of every primitive and warrant, with every type between them.
pub(crate) const EVERY_FORM: &[&str] = &[
    r#"{"name":"console_write","arguments":{"content":{"parts":["a\u001f\n",{"$held":3}]}},"hold":true}"#,
    r#"{"name":"console_ask","arguments":{"question":"wé\\n\"?"}}"#,
    r#"{"name":"clock_read","arguments":{}}"#,
    r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":65536}}"#,
    r#"{"name":"fs_write","arguments":{"path":{"$held":1},"content":{"$held":2},"mode":"create"}}"#,
    r#"{"name":"fs_edit","arguments":{"path":"/a","old":"x","new":"y"}}"#,
    r#"{"name":"fs_list","arguments":{"path":"/a","after":"","limit":10}}"#,
    r#"{"name":"fs_search","arguments":{"path":"/a","text":"t","offset":1}}"#,
    r#"{"name":"fs_move","arguments":{"from":"/a","to":"/b"}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/a"}}"#,
    r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":1}}"#,
    r#"{"name":"value_pick","arguments":{"value":{"$held":1},"selector":{"$select":1,"where":[["a","eq",-0.5],["b","prefix","x"]],"order":["max","m"],"take":"p"}}}"#,
    r#"{"name":"model_generate","arguments":{"prompt":[{"role":"user","text":"a"}],"grammar":"json","max_tokens":9}}"#,
    r#"{"name":"agent_spawn","arguments":{"package":"a-b","task":"t","grant":{"$$k":[1,{}]}}}"#,
    r#"{"name":"agent_wait","arguments":{"agent":1,"timeout":2}}"#,
    r#"{"name":"channel_create","arguments":{"kind":"bytes"}}"#,
    r#"{"name":"channel_write","arguments":{"channel":1,"content":"c"}}"#,
    r#"{"name":"channel_read","arguments":{"channel":1,"max":2,"timeout":3}}"#,
    r#"{"name":"channel_close","arguments":{"channel":1}}"#,
    r#"{"name":"channel_grant","arguments":{"channel":1,"to":2}}"#,
    r#"{"name":"net_listen","arguments":{"host":"127.0.0.1","port":65535}}"#,
    r#"{"name":"net_accept","arguments":{"listener":1,"timeout":2}}"#,
    r#"{"name":"net_http_get","arguments":{"url":"https://a.b/c","headers":{"a":{"$held":1}}}}"#,
    r#"{"name":"net_http_post","arguments":{"url":"https://a.b/","headers":{},"content":"x"}}"#,
    r#"{"name":"tool_use","arguments":{"tool":"s/v","arguments":{"a":[[[null,true,1.05,{"$held":2}]]]}}}"#,
    r#"{"name":"tool_commit","arguments":{"tool":"s/v","arguments":{"":{"b":{"c":{"d":false}}}}}}"#,
    r#"{"warrant":"fs_write","arguments":{"path":"/a"},"uses":64}"#,
    r#"{"warrant":"fs_edit","arguments":{"path":"/a"},"uses":1}"#,
    r#"{"warrant":"fs_move","arguments":{"from":"/a","to":{"$select":1,"take":"p"}},"uses":9}"#,
    r#"{"warrant":"fs_delete","arguments":{"path":"/data/**"},"uses":3}"#,
    r#"{"warrant":"net_listen","arguments":{"host":"[::1]","port":8080},"uses":1}"#,
    r#"{"warrant":"net_http_get","arguments":{"url":"https://a.b/"},"uses":1}"#,
    r#"{"warrant":"net_http_post","arguments":{"url":"https://a.b/"},"uses":12}"#,
    r#"{"warrant":"tool_use","arguments":{"tool":"s/v","arguments":{"a":{"$select":1,"take":"p"}}},"uses":1}"#,
    r#"{"warrant":"tool_commit","arguments":{"tool":"s/v","arguments":{"a":"b"}},"uses":1}"#,
];

/// A repeatable source of choices.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Writes random sentences by following the rules of `grammar.pest`.
#[derive(Debug)]
pub(crate) struct Writer {
    rules: HashMap<String, Expr>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        let grammar = include_str!("../../../../grammar.pest");
        let pairs = parser::parse(parser::Rule::grammar_rules, grammar).unwrap();
        let rules = parser::consume_rules(pairs).unwrap();
        Self { rules: rules.into_iter().map(|Rule { name, expr, .. }| (name, expr)).collect() }
    }

    pub(crate) fn sentence(&self, random: &mut Random) -> String {
        let mut sentence = String::new();
        self.write(&self.rules["sentence"], random, &mut sentence);
        sentence
    }

    fn write(&self, expression: &Expr, random: &mut Random, to: &mut String) {
        let times = match expression {
            Expr::Str(text) => return to.push_str(text),
            Expr::Range(low, high) => return to.push(character(low, high, random)),
            Expr::Ident(name) if name == "SOI" || name == "EOI" => return,
            Expr::Ident(name) => return self.write(&self.rules[name], random, to),
            Expr::Seq(left, right) => {
                self.write(left, random, to);
                return self.write(right, random, to);
            }
            Expr::Choice(..) => {
                let mut all = Vec::new();
                alternatives(expression, &mut all);
                return self.write(random.one(&all), random, to);
            }
            Expr::Opt(_) => random.below(2),
            Expr::Rep(_) => few(random),
            Expr::RepOnce(_) => 1 + few(random),
            Expr::RepMinMax(_, least, most) => {
                let (least, most) = (*least as usize, *most as usize);
                // The longest is where counting goes wrong.
                let between = least + random.below(most - least + 1);
                random.one(&[least, most, between])
            }
            other => panic!("the grammar has a new form of expression: {other:?}"),
        };
        let (Expr::Opt(inner)
        | Expr::Rep(inner)
        | Expr::RepOnce(inner)
        | Expr::RepMinMax(inner, ..)) = expression
        else {
            unreachable!("only what is repeated comes here");
        };
        (0..times).for_each(|_| self.write(inner, random, to));
    }
}

fn few(random: &mut Random) -> usize {
    random.one(&[0, 0, 0, 1, 1, 2, 3])
}

fn alternatives<'e>(expression: &'e Expr, all: &mut Vec<&'e Expr>) {
    if let Expr::Choice(left, right) = expression {
        alternatives(left, all);
        alternatives(right, all);
    } else {
        all.push(expression);
    }
}

/// A character of a range, as likely long in UTF-8 as short, and often at an edge.
fn character(low: &str, high: &str, random: &mut Random) -> char {
    let [low, high] = [low, high].map(|end| u32::from(end.chars().next().unwrap()));
    let edges = [low, high, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x1_0000, 0x10_ffff];
    let ceiling = high.min(random.one(&[0x7ff, 0xffff, 0x10_ffff])).max(low);
    let within = low + u32::try_from(random.below((ceiling - low + 1) as usize)).unwrap();
    let edge = random.one(&edges);
    let chosen = random.one(&[edge, within, within]);
    char::from_u32(chosen.clamp(low, high)).unwrap_or('\u{e000}')
}

/// Damages a text in one to three places, also with pieces of another.
pub(crate) fn mutate(text: &str, other: &str, random: &mut Random) -> Vec<u8> {
    const TOKENS: &[&str] = &[
        "{\"$held\":1}", "\"\"", "0", "-0", "00", "65536", "1.10", "1e3", "\\u0008", "\\u000a",
        "{}", "[]", ",", "\"$a\"", "\"$$a\"", "{\"$select\":1,\"take\":\"a\"}", "\u{7f}", "é",
        "null", ",\"hold\":true", ",\"uses\":1", ",\"arguments\":{",
    ];
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        let end = bytes.len().min(at + 1 + random.below(4));
        let from = random.below(other.len());
        let piece = &other.as_bytes()[from..other.len().min(from + 1 + random.below(24))];
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, random.one(TOKENS).bytes())),
            3 => drop(bytes.splice(at..end, random.one(TOKENS).bytes())),
            4 => drop(bytes.splice(at..at, piece.iter().copied())),
            _ => drop(bytes.splice(at..end, piece.iter().copied())),
        }
    }
    bytes
}
