//! What the build script makes of a grammar, and which it refuses.

use crate::nfa::{Fault, compile};
use crate::table::Table;

/// A grammar of this sentence, and of what stands after it.
fn table(sentence: &str, rules: &str) -> Result<Table, Fault> {
    let grammar = format!("sentence = ${{ SOI ~ {sentence} ~ EOI }}\n{rules}");
    let nfa = compile(&grammar)?;
    Table::new(&nfa).map_err(|why| Fault::Grammar(why.to_string()))
}

fn fault(sentence: &str, rules: &str) -> Option<Fault> {
    table(sentence, rules).err()
}

/// Whether the table takes the whole of `text`.
fn takes(table: &Table, text: &[u8]) -> bool {
    let end = text.iter().try_fold(table.start, |state, byte| {
        let row = table.rows.get(usize::from(state))?;
        row.iter().find(|(low, high, _)| (low..=high).contains(&byte)).map(|(_, _, next)| *next)
    });
    end.is_some_and(|state| state >= table.complete)
}

#[test]
fn table_is_minimal_and_has_no_dead_state() {
    // Both branches go on alike, so they share every state after their first byte.
    let table = table("(\"ax\" | \"bx\") ~ ('c'..'d')* ~ \"}\"", "").unwrap();
    assert_eq!(
        table.rows,
        [
            vec![(b'a', b'b', 1)],
            vec![(b'x', b'x', 2)],
            vec![(b'c', b'd', 2), (b'}', b'}', 3)],
            vec![]
        ]
    );
    assert_eq!((table.start, table.complete), (0, 3));
}

#[test]
fn every_form_of_expression_is_followed() {
    let long = "a".repeat(40);
    for (sentence, good, bad) in [
        ("\"a\"{3} ~ \"b\"", &["aaab"][..], &["aab", "aaaab"][..]),
        ("\"a\"{2,} ~ \"b\"", &["aab", &format!("{long}b")], &["ab", "b"]),
        ("\"a\"{,2} ~ \"b\"", &["b", "ab", "aab"], &["aaab"]),
        ("\"a\"{1, 2} ~ \"b\"", &["ab", "aab"], &["b", "aaab"]),
        ("\"a\"+ ~ \"b\"", &["ab", "aab"], &["b"]),
        ("\"a\"* ~ \"b\"", &["b", "aab"], &["a", ""]),
        ("\"a\"? ~ \"b\"", &["b", "ab"], &["aab"]),
        ("(\"a\" ~ (\",\" ~ \"a\")*)? ~ \"]\"", &["]", "a]", "a,a,a]"], &[",a]", "a,]"]),
        (
            "('\\u{7f}'..'\\u{10FFFF}')+",
            &["\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}"],
            &["\u{7e}", ""],
        ),
    ] {
        let table = table(sentence, "").unwrap();
        for text in good {
            assert!(takes(&table, text.as_bytes()), "{sentence} takes {text}");
        }
        for text in bad {
            assert!(!takes(&table, text.as_bytes()), "{sentence} does not take {text}");
        }
    }
}

#[test]
fn what_is_not_utf8_is_dead() {
    let table = table("('\\u{80}'..'\\u{10FFFF}')+", "").unwrap();
    for bytes in [
        &b"\x80"[..],
        b"\xc0\x80",
        b"\xc3",
        b"\xc3\xc3",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ] {
        assert!(!takes(&table, bytes), "{bytes:x?}");
    }
}

#[test]
fn recursion_is_refused_and_named() {
    let inner = "list = @{ \"[\" ~ item? ~ \"]\" } item = @{ \"1\" | list }";
    assert_eq!(fault("list", inner), Some(Fault::Recursive("list".to_owned())));
    assert_eq!(fault("\"(\" ~ sentence?", ""), Some(Fault::Recursive("sentence".to_owned())));
    assert!(fault("list", inner).unwrap().to_string().contains("`list` is recursive"));
}

#[test]
fn alternatives_that_are_not_prefix_disjoint_are_refused_and_named() {
    for (alternatives, word) in [
        ("\"a\" | \"ab\"", "a"),
        ("\"ab\" | \"a\"", "a"),
        ("\"a\" | \"a\"", "a"),
        ("'a'..'f' | \"c\" ~ \"d\"", "c"),
        ("\"x\" | \"y\" | \"xz\"", "x"),
        ("\"b\" | \"a\"*", ""),
        ("\"a\" ~ \"b\"? | \"abc\"", "a"),
        ("'a'..'\\u{ff}' | \"é\"", "é"),
    ] {
        let expected = Some(Fault::Choice { rule: "either".to_owned(), word: word.to_owned() });
        let rules = format!("either = @{{ {alternatives} }}");
        assert_eq!(fault("either ~ \"!\"", &rules), expected, "{alternatives}");
    }
    let told = fault("either", "either = @{ \"a\" | \"ab\" }").unwrap().to_string();
    assert!(told.contains("`either` one alternative ends at \"a\""), "{told}");
    // Alike at first, different before either ends.
    assert!(table("(\"abc\" | \"abd\")", "").is_ok());
}

#[test]
fn repetitions_that_are_not_disjoint_from_what_follows_are_refused_and_named() {
    for (sentence, rule, word) in [
        ("some ~ \"ab\"", "\"a\"*", "a"),
        ("some ~ \"ab\"", "\"a\"+", "a"),
        ("some ~ \"ab\"", "\"a\"?", "a"),
        ("some ~ \"ab\"", "\"a\"{1, 3}", "a"),
        ("some ~ \"ab\"", "\"a\"{2,}", "a"),
        ("some ~ \"ab\"", "\"a\"{,2}", "a"),
        ("some ~ \",x\"", "\"a\" ~ (\",\" ~ 'a'..'z')*", ",x"),
        // What follows stands behind a rule, an option, or in the next round of a loop.
        ("some* ~ \"!\"", "\"b\" ~ \"b\"?", "b"),
        ("some ~ \"x\"? ~ \"ab\"", "\"a\"*", "a"),
        ("(\"1\" ~ some ~ \"}\" | \"2\" ~ some ~ \"a\")", "\"a\"*", "a"),
    ] {
        let expected = Some(Fault::Repetition { rule: "some".to_owned(), word: word.to_owned() });
        assert_eq!(
            fault(sentence, &format!("some = @{{ {rule} }}")),
            expected,
            "{sentence} {rule}"
        );
    }
    let told = fault("some ~ \"a\"", "some = @{ \"a\"* }").unwrap().to_string();
    assert!(told.contains("the rule `some`") && told.contains("\"a\""), "{told}");
    // Alike at first, different before what is repeated ends.
    assert!(table("(\",a\")* ~ \",b\"", "").is_ok());
}

#[test]
fn what_no_automaton_follows_is_refused_and_named() {
    for (rule, what) in [
        ("!\"a\" ~ \"b\"", "a look ahead"),
        ("&\"a\" ~ \"a\"", "a look ahead"),
        ("^\"a\"", "a text in any case"),
        ("PUSH(\"a\")", "the stack"),
        ("'b'..'a'", "a range that is empty or not of characters"),
    ] {
        let expected = Some(Fault::Unsupported { rule: "odd".to_owned(), what: what.to_owned() });
        assert_eq!(fault("odd", &format!("odd = @{{ {rule} }}")), expected);
    }
    let unknown = Fault::Unknown { rule: "odd".to_owned(), name: "ANY".to_owned() };
    assert_eq!(fault("odd", "odd = @{ ANY }"), Some(unknown));
    let space = Fault::Unsupported {
        rule: "WHITESPACE".to_owned(),
        what: "implicit white space".to_owned(),
    };
    assert_eq!(fault("\"a\"", "WHITESPACE = _{ \" \" }"), Some(space));
}

#[test]
fn grammar_without_a_whole_sentence_is_refused() {
    assert_eq!(compile("call = @{ \"a\" }").unwrap_err(), Fault::Start);
    assert_eq!(compile("sentence = @{ \"a\" ~ EOI }").unwrap_err(), Fault::Start);
    assert_eq!(compile("sentence = @{ SOI ~ \"a\" }").unwrap_err(), Fault::Start);
    let Fault::Grammar(why) = compile("sentence = @{ SOI ~ gone ~ EOI }").unwrap_err() else {
        panic!("pest itself refuses an undefined rule");
    };
    assert!(why.contains("gone"), "{why}");
    assert!(matches!(compile("sentence = {").unwrap_err(), Fault::Grammar(_)));
}
