//! The cost table: every row of Synapse, and its peers on the same input.
//!
//! `cargo bench --package synapse-bench`, with `-- --json` for programs, and with words of
//! their titles for some of the groups alone.

use core::hint::black_box;
use std::io;
use std::process::ExitCode;

use pest::Parser as _;
use synapse_bench::door::each;
use synapse_bench::{Group, Row, groups, run};

#[path = "table/tool.rs"]
mod tool;

mod generated {
    #[derive(pest_derive::Parser, Debug)]
    #[grammar = "../grammar.pest"]
    pub(super) struct Grammar;
}
use generated::{Grammar, Rule};

/// What serde makes of the same sentences: types, but no canonical form.
#[derive(Debug, serde::Deserialize)]
#[serde(tag = "name", content = "arguments", rename_all = "snake_case", deny_unknown_fields)]
enum Call<'s> {
    FsDelete { path: &'s str },
    FsMove { from: &'s str, to: &'s str },
}

fn main() -> ExitCode {
    if tool::became(std::env::args().skip(1)) {
        return ExitCode::FAILURE;
    }
    let as_json = std::env::args().any(|argument| argument == "--json");
    let all = groups().and_then(|groups| Ok((groups, tool::group()?)));
    let mut groups = match all {
        Ok((mut groups, tools)) => {
            groups.push(tools);
            groups
        }
        Err(why) => {
            eprintln!("error: {why}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(door) = groups.first_mut() {
        door.rows.extend(peers());
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |group: &Group| words.iter().any(|word| group.title.contains(&**word));
    groups.retain(|group| words.is_empty() || is_wanted(group));
    match run(&mut groups, &mut io::stdout().lock(), as_json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:?}");
            ExitCode::FAILURE
        }
    }
}

fn peers() -> [Row; 2] {
    [
        each("peer: pest, the same grammar", |sentence| {
            let text = str::from_utf8(sentence).unwrap_or_default();
            let parsed = Grammar::parse(Rule::sentence, text);
            assert!(parsed.is_ok(), "pest: {text}");
            drop(black_box(parsed));
        }),
        each("peer: serde_json, typed", |sentence| {
            let length = match serde_json::from_slice(sentence) {
                Ok(Call::FsDelete { path }) => path.len(),
                Ok(Call::FsMove { from, to }) => from.len() + to.len(),
                Err(why) => unreachable!("serde_json: {why}"),
            };
            black_box(length);
        }),
    ]
}
