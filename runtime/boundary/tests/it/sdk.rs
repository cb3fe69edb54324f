//! What the SDK writes is what gate 1 reads.

use core::cell::RefCell;
use std::rc::Rc;

use serde_json::json;
use synapse_abi::registry::{Argument as Declared, Kind, REGISTRY, Type};
use synapse_boundary::parse;
use synapse_guest::calls::{self, Mode};
use synapse_guest::testing::with_door;
use synapse_guest::{Argument, Content, Held, Part, Selector, Sentence, Target, hold, warrant};

/// What `body` says at the door, which refuses everything.
fn said(body: impl FnOnce()) -> Vec<Vec<u8>> {
    let said = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&said);
    let door = move |sentence: &[u8]| {
        log.borrow_mut().push(sentence.to_vec());
        Err(201)
    };
    with_door(door, body);
    said.take()
}

fn selector() -> Selector {
    Selector::take(Held(1), "path")
        .equal("kind", "file")
        .prefix("name", "a\"\u{1}é")
        .equal("size", 0.5)
        .equal("open", false)
        .max("size")
}

#[test]
fn typed_calls_are_sentences() {
    let parts = [Part::from("a\n"), Held(2).into()];
    let said = said(|| {
        let refused = [
            calls::console_write(&parts).err(),
            calls::console_ask("Which?").err(),
            calls::clock_read().err(),
            calls::fs_read("/data/a", 0, 1).err(),
            calls::fs_read(Held(1), 0, 1).err(),
            calls::fs_list(&"/data".to_owned(), "a", 10).err(),
            calls::fs_search("/data", "t", 0).err(),
            calls::fs_write(Held(1), &parts, Mode::Create).err(),
            calls::fs_edit("/data/a", Held(1), &parts[..]).err(),
            calls::fs_move(Held(1), "/data/b").err(),
            calls::fs_delete(Held(1)).err(),
            calls::value_read(Held(1), 0, 1).err(),
            calls::value_pick(&selector()).err(),
            hold::console_ask("Which?").err(),
            hold::fs_read("/data/a", 0, 1).err(),
            hold::fs_list("/data", "", 10).err(),
            hold::fs_search("/data", "t", 0).err(),
        ];
        assert!(refused.iter().all(|refused| refused.is_some_and(|why| why.number() == 201)));
    });
    assert_eq!(said.len(), 17);
    for sentence in &said {
        let parsed = parse(sentence);
        assert!(
            parsed.is_ok_and(|parsed| parsed.uses.is_none()),
            "{}",
            String::from_utf8_lossy(sentence)
        );
    }
}

#[test]
fn typed_warrants_are_sentences_with_literals_and_selectors() {
    let selector = selector();
    for target in [Target::from("/data/tmp/**"), (&selector).into()] {
        let arguments = [("to", target.into()), ("$n", Argument::Json(&json!([1, {"b": null}])))];
        let nested = [("in", Argument::Object(&arguments)), ("none", Argument::Object(&[]))];
        let mut warrants = vec![
            warrant::fs_write(target),
            warrant::fs_edit(target).uses(64),
            warrant::fs_move(target, "/data/old"),
            warrant::fs_move("/data/old/a", target),
            warrant::fs_delete(target).uses(3),
            warrant::tool_use("mail/list", &arguments),
            warrant::tool_commit("mail/send", &nested),
        ];
        let (url, host) = match target {
            Target::Literal(_) => ("https://example.org/a".into(), "example.org".into()),
            Target::Selected(_) => (target, target),
        };
        warrants.extend([
            warrant::net_listen(host, 8080),
            warrant::net_http_get(url),
            warrant::net_http_post(url),
        ]);
        for warrant in warrants {
            let text = warrant.text();
            assert!(parse(text.as_bytes()).is_ok_and(|parsed| parsed.uses.is_some()), "{text}");
        }
    }
    // What is not a sentence is sent as it is, and refused.
    assert!(parse(warrant::fs_delete("/data/a").uses(65).text().as_bytes()).is_err());
}

#[test]
fn every_row_of_the_registry_can_be_written() {
    let selector = selector();
    let parts = [Part::from("a"), Held(2).into()];
    let prompt = [("user", Content::from(&parts)), ("system", "s".into())];
    let members = [("$a", Argument::Held(Held(2))), ("b", Argument::Uint(1))];
    for row in &REGISTRY {
        let mut sentence = Sentence::new(row.primitive);
        for &Declared { name, ty, .. } in row.arguments {
            let argument = match ty {
                Type::Text | Type::Path | Type::Handle(Kind::Value) => Argument::Held(Held(1)),
                Type::Url => Argument::Text("https://example.org/"),
                Type::Host => Argument::Text("example.org"),
                Type::Name => Argument::Text(if name == "tool" { "a/b" } else { "a" }),
                Type::Choice(words) => Argument::Text(words[0]),
                Type::Uint | Type::Port => Argument::Uint(7),
                Type::Handle(_) => Argument::Uint(1),
                Type::Content => Argument::Content(Content::Parts(&parts)),
                Type::Prompt => Argument::Prompt(&prompt),
                Type::Json => Argument::Object(&members),
                Type::Literal => Argument::Object(&[]),
                Type::Selector => Argument::Selector(&selector),
            };
            sentence = sentence.set(name, argument);
        }
        let text = sentence.hold().text();
        assert!(parse(text.as_bytes()).is_ok_and(|parsed| parsed.uses.is_none()), "{text}");
    }
}
