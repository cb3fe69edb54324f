//! The hand-written parser and `grammar.pest` say the same of every sentence.

use pest::Parser as _;
use synapse_abi::code::Refusal;
use synapse_boundary::parse;

mod generated {
    #[derive(pest_derive::Parser, Debug)]
    #[grammar = "../../grammar.pest"]
    pub(super) struct Grammar;
}
use generated::{Grammar, Rule};

const SENTENCES: &[&str] = &[
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

/// Fails where parser and grammar differ.
fn agree(sentence: &[u8]) {
    let ours = match parse(sentence) {
        Ok(_) | Err(Refusal::TooLong | Refusal::NotCanonical) => true,
        Err(Refusal::Malformed | Refusal::NoSuchPrimitive) => false,
        Err(other) => unreachable!("gate 1 does not say {other:?}"),
    };
    let text = str::from_utf8(sentence);
    let theirs = text.is_ok_and(|text| Grammar::parse(Rule::sentence, text).is_ok());
    assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(sentence));
}

#[test]
fn every_form_parses_and_no_prefix_does() {
    for sentence in SENTENCES {
        assert!(parse(sentence.as_bytes()).is_ok(), "{sentence}");
        agree(sentence.as_bytes());
        for end in 0..sentence.len() {
            assert!(parse(&sentence.as_bytes()[..end]).is_err());
            agree(&sentence.as_bytes()[..end]);
        }
    }
}

#[test]
fn i12_parser_and_grammar_agree_on_mutations() {
    const TOKENS: &[&str] = &[
        "{\"$held\":1}",
        "\"\"",
        "0",
        "-0",
        "00",
        "65536",
        "1.10",
        "1e3",
        "\\u0008",
        "\\u000a",
        "{}",
        "[]",
        ",",
        "\"$a\"",
        "\"$$a\"",
        "{\"$select\":1,\"take\":\"a\"}",
        "\u{7f}",
        "é",
        "null",
    ];
    let workers = [1_u64, 2].map(|seed| {
        std::thread::spawn(move || {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut below = |bound: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                usize::try_from(state >> 33).unwrap() % bound
            };
            for _ in 0..150_000 {
                let mut bytes = SENTENCES[below(SENTENCES.len())].as_bytes().to_vec();
                for _ in 0..=below(2) {
                    let at = below(bytes.len());
                    let end = bytes.len().min(at + 1 + below(4));
                    match below(4) {
                        0 => bytes[at] ^= 1 << below(8),
                        1 => drop(bytes.drain(at..end)),
                        2 => drop(bytes.splice(at..at, TOKENS[below(TOKENS.len())].bytes())),
                        _ => drop(bytes.splice(at..end, TOKENS[below(TOKENS.len())].bytes())),
                    }
                    if bytes.is_empty() {
                        break;
                    }
                }
                agree(&bytes);
            }
        })
    });
    for worker in workers {
        worker.join().unwrap();
    }
}
