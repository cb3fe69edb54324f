//! What a manifest's lines mean: programs that are run, word by word.
//!
//! A line is approved as it stands, and what an agent may put into it has a place and a
//! form. Nothing of it passes a shell.
//!
//! # Invariants
//! - A word of a line begins as the human wrote it: what an agent puts there stands alone
//!   or at the end.
//! - Each argument of a verb with a line has a form and a place.
//!
//! # Not here
//! Whether a value has its form, and running the line (`synapse-connectors`).

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Argument, FOLDER, Form, Role};
use crate::grant::notes::{Notes, quoted};
use crate::grant::shape::{Value, flag, get, items, named, text};

/// A word of a line: how it begins, and the argument that stands at its end.
///
/// # Errors
/// It has other braces.
pub fn place(word: &str) -> Result<(&str, Option<&str>), &str> {
    let plain = |text: &str| !text.contains(['{', '}']);
    let (before, name) = match word.strip_suffix('}').and_then(|word| word.split_once('{')) {
        Some((before, name)) => (before, Some(name)),
        None => (word, None),
    };
    let sound = plain(before) && name.is_none_or(|name| !name.is_empty() && plain(name));
    if sound { Ok((before, name)) } else { Err(word) }
}

/// What a word for a form means.
pub(super) fn form(word: &str) -> Option<Form> {
    match word {
        "word" => Some(Form::Word),
        "number" => Some(Form::Number),
        "path" => Some(Form::Path),
        "text" => Some(Form::Text),
        _ => None,
    }
}

/// The argument that every verb with a line has besides.
pub(super) fn folder() -> Argument {
    let (name, ty) = (FOLDER.to_owned(), String::from("path"));
    Argument { name, role: Role::Target, ty, limit: None, form: Some(Form::Path) }
}

/// Checks the start and the verbs of a manifest for what lines are.
pub(super) fn check(start: &Value<'_>, verbs: &Value<'_>, notes: &mut Notes) {
    let lines = flag(get(start, "lines"));
    let (misplaced, why) = if lines {
        (&["write", "network"][..], "a line changes the folder that it is run in, and no network")
    } else {
        (&["set", "disk"][..], "it is of lines, and this is a server")
    };
    for key in misplaced {
        if let Some(value) = get(start, key) {
            notes.mistake(&value.span(), format!("`{key}` has no use here"), why, "remove it");
        }
    }
    for (at, name, value) in get(start, "set").map_or_else(Default::default, named) {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let plain = |text: &str| !text.chars().any(char::is_control);
        if !name.bytes().all(letter) || !plain(text(value)) {
            notes.mistake(
                &at,
                format!("variable {} cannot be set", quoted(name)),
                "names consist of letters, digits and `_`, and values are one line",
                "correct it",
            );
        }
    }
    for (at, name, verb) in named(verbs) {
        match get(verb, "line") {
            Some(line) if lines => self::line(line, verb, notes),
            Some(line) => notes.mistake(
                &line.span(),
                format!("verb {} has a line beside a server", quoted(name)),
                "the server is called, and nothing is run",
                "remove `line`, or start the connector with `lines = true`",
            ),
            None if lines => notes.mistake(
                &at,
                format!("verb {} has no line", quoted(name)),
                "there is no server that would know it",
                "write its `line`, a program and its arguments",
            ),
            None => {
                for (_, name, argument) in arguments(verb) {
                    if let Some(form) = get(argument, "form") {
                        let what = format!("argument {} has a form", quoted(name));
                        let why = "a form is what may stand in a line";
                        notes.mistake(&form.span(), what, why, "remove it, or write a `limit`");
                    }
                }
            }
        }
    }
}

fn line(line: &Value<'_>, verb: &Value<'_>, notes: &mut Notes) {
    let effect = get(verb, "effect").map_or("execute", text);
    if !["read", "store", "execute"].contains(&effect) {
        notes.mistake(
            &line.span(),
            format!("a line is no `{effect}`"),
            "it reaches nothing but a folder, and what it changes there can be undone",
            "write `read` (it changes nothing), `store` or `execute`",
        );
    }
    for key in ["tool", "fields", "own"] {
        if let Some(value) = get(verb, key) {
            let what = format!("`{key}` has no use beside a line");
            notes.mistake(&value.span(), what, "it is of a server's verbs", "remove it");
        }
    }
    let path = items(line).first().map_or("", text);
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") || path.contains('{') {
        notes.mistake(
            &line.span(),
            format!("the line begins with {}", quoted(path)),
            "which program that is would depend on where Synapse is started",
            "write the program's absolute path, without `..`",
        );
    }
    let mut placed = BTreeSet::new();
    for word in items(line) {
        match place(text(word)) {
            Ok((before, name)) if !before.chars().any(char::is_control) => {
                let known = arguments(verb).into_iter().map(|(_, known, _)| known);
                if let Some(name) = name.filter(|name| !known.clone().any(|known| known == *name)) {
                    notes.unknown(&word.span(), "argument", name, known);
                }
                placed.extend(name);
            }
            Ok(_) | Err(_) => notes.mistake(
                &word.span(),
                format!("the word {} cannot stand in a line", quoted(text(word))),
                "one `{argument}` may stand at the end of a word, and no control character",
                "correct it",
            ),
        }
    }
    for (at, name, argument) in arguments(verb) {
        if name == FOLDER || !placed.contains(name) {
            notes.mistake(
                &at,
                format!("argument {} stands nowhere in the line", quoted(name)),
                "`tree` is the folder that every line is run in, and all others are put into it",
                "write it at the end of a word, like `--test={name}`, or remove it",
            );
        }
        if get(argument, "form").is_none() {
            notes.mistake(
                &at,
                format!("argument {} has no form", quoted(name)),
                "what an agent may put into a line is what a human wrote here",
                "write `form = \"word\"`, `\"number\"`, `\"path\"` or `\"text\"`",
            );
        }
    }
}

fn arguments<'a, 't>(verb: &'a Value<'t>) -> Vec<(Range<usize>, &'a str, &'a Value<'t>)> {
    get(verb, "arguments").map_or_else(Default::default, named)
}
