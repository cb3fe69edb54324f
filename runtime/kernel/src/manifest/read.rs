//! What a manifest's values mean.
//!
//! # Invariants
//! - A text that people or agents are shown is one short line without characters that
//!   act.
//!
//! # Not here
//! The form of the file (`keys`, `grant::shape`).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_boundary::headers::is_refused;
use synapse_boundary::secret::{credentials, is_name};
use synapse_boundary::url::{Host, Scheme, Url};

use super::keys::{EFFECTS, MANIFEST};
use super::{Argument, Effect, Manifest, Role, Start, Verb, lines};
use crate::grant::notes::{Notes, quoted};
use crate::grant::shape::{self, Value, flag, get, integer, items, named, text};
use crate::grant::tools;

/// Bytes of a line that agents and people are shown.
const LINE: usize = 200;

pub(super) fn document(file: &str, notes: &mut Notes) -> Option<Manifest> {
    let document = shape::document(file, notes)?;
    let sound = shape::check_file(&MANIFEST, &document, notes);
    let part = |name: &str| sound.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let server = part("server");
    if let Some(server) = server {
        plain(server, "server", notes);
    }
    let description = part("description").map(|value| line(value, notes)).unwrap_or_default();
    let verbs = part("verbs").map_or_else(Vec::new, |value| verbs(value, notes));
    let mut start = part("start").map(|value| start(value, notes)).unwrap_or_default();
    start.server = server.map(text).map(ToOwned::to_owned).unwrap_or_default();
    if let (Some(start), Some(of)) = (part("start"), part("verbs")) {
        lines::check(start, of, notes);
    }
    if notes.mistakes() > 0 {
        return None;
    }
    Some(Manifest {
        digest: [0; 32],
        server: server.map(text).unwrap_or_default().to_owned(),
        description,
        clear: part("clear").map_or_else(Vec::new, texts),
        let_out: flag(part("let_out")),
        start,
        verbs,
        warnings: Vec::new(),
    })
}

fn start(value: &Value<'_>, notes: &mut Notes) -> Start {
    let list = |key: &str| get(value, key).map_or_else(Vec::new, texts);
    let number = |key: &str, default: u64| {
        let given = get(value, key).and_then(integer).and_then(|given| u64::try_from(given).ok());
        given.unwrap_or(default)
    };
    let start = Start {
        server: String::new(),
        command: list("command"),
        url: get(value, "url").map(text).unwrap_or_default().to_owned(),
        environment: list("environment"),
        secrets: get(value, "secrets").map_or_else(Vec::new, secrets),
        read: list("read"),
        write: list("write"),
        lines: flag(get(value, "lines")),
        network: flag(get(value, "network")),
        memory: number("memory", 1 << 30),
        seconds: number("seconds", 60),
        reply: usize::try_from(number("reply", 4 << 20)).unwrap_or(usize::MAX),
        set: get(value, "set").map_or_else(Vec::new, pairs),
        disk: number("disk", 4 << 30),
    };
    let ways = [!start.command.is_empty(), !start.url.is_empty(), start.lines];
    if ways.into_iter().filter(|way| *way).count() != 1 {
        notes.mistake(
            &value.span(),
            "nobody says how the server is reached",
            "it is a program, has an address, or is no server but lines, one of these",
            "write `command`, `url` or `lines = true`",
        );
    }
    if let Some(url) = get(value, "url") {
        let loopback = |url: &Url<'_>| match url.host() {
            Host::V4(address) => address.is_loopback(),
            Host::V6(address) => address.is_loopback(),
            Host::Name(_) => false,
        };
        let sound =
            Url::parse(&start.url).is_ok_and(|url| url.scheme() == Scheme::Https || loopback(&url));
        if !sound {
            notes.mistake(
                &url.span(),
                format!("the address {} cannot be used", quoted(&start.url)),
                "what is said there would not be kept from others, or it is not spelled as URLs are",
                "write a canonical `https://` URL, or a `http://` one of this machine",
            );
        }
        for key in ["environment", "read", "write", "network", "memory"] {
            if let Some(value) = get(value, key) {
                notes.mistake(
                    &value.span(),
                    format!("`{key}` has no use beside `url`"),
                    "only a program that is started here can be confined",
                    "remove it",
                );
            }
        }
    }
    for (key, paths) in
        [("command", &start.command[..]), ("read", &start.read), ("write", &start.write)]
    {
        let paths = if key == "command" { paths.get(..1).unwrap_or_default() } else { paths };
        for (place, path) in paths.iter().enumerate() {
            let climbs = path.split('/').any(|part| part == "..");
            if !path.starts_with('/') || climbs || path.contains('\0') {
                let item = get(value, key).and_then(|value| items(value).get(place));
                notes.mistake(
                    &item.map_or(value.span(), Value::span),
                    format!("`{key}` names {}", quoted(path)),
                    "which program or folder that is would depend on where Synapse is started",
                    "write its absolute path, without `..`",
                );
            }
        }
    }
    check_secrets(value, &start, notes);
    for item in get(value, "environment").map_or(&[][..], items) {
        if text(item).is_empty() || !text(item).bytes().all(is_letter) {
            notes.mistake(
                &item.span(),
                format!("variable {} has no valid name", quoted(text(item))),
                "names consist of letters, digits and `_`; values do not stand here",
                "name the variable alone",
            );
        }
    }
    start
}

/// What may carry a secret, and that each value is one.
fn check_secrets(value: &Value<'_>, start: &Start, notes: &mut Notes) {
    for (at, name, given) in get(value, "secrets").map_or_else(Vec::new, named) {
        let dashed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let (is_variable, is_header) = (name.bytes().all(is_letter), name.bytes().all(dashed));
        let is_fit =
            if start.url.is_empty() { is_variable } else { is_header && !is_refused(name) };
        if name.is_empty() || !is_fit {
            notes.mistake(
                &at,
                format!("{} can carry no secret", quoted(name)),
                "it is the name of a variable or, beside `url`, of a header in lower case that \
                 says nothing of where a request goes",
                "write it like `API_KEY` or `authorization`",
            );
        }
        let value = credentials(name, text(given)).strip_prefix("{secret:");
        if !value.and_then(|value| value.strip_suffix('}')).is_some_and(is_name) {
            notes.mistake(
                &given.span(),
                format!("the value of {} is not one whole secret", quoted(name)),
                "a value is `{secret:NAME}`, or that after one word for `authorization`",
                "have the secret hold all of it; other values are no secrets",
            );
        }
    }
}

/// Whether a variable's name may have it.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn secrets(value: &Value<'_>) -> Vec<(String, String)> {
    let named = named(value).into_iter();
    named.map(|(_, name, value)| (name.to_owned(), text(value).to_owned())).collect()
}

fn verbs(value: &Value<'_>, notes: &mut Notes) -> Vec<Verb> {
    let mut verbs: Vec<Verb> = Vec::new();
    for (at, name, value) in named(value) {
        if !is_plain(name) {
            notes.mistake(
                &at,
                format!("verb {} has no valid name", quoted(name)),
                "calls name it with `a` to `z`, `0` to `9`, `_` and `-`",
                "rename it here, and write `tool` with its name at the server",
            );
        }
        let verb = verb(name, value, notes);
        if verbs.iter().any(|known| known.tool == verb.tool) {
            notes.twice(&at, "the server's tool", &verb.tool);
        }
        verbs.push(verb);
    }
    for (_, name, value) in named(value) {
        let Some(inverse) = get(value, "inverse") else { continue };
        if !verbs.iter().any(|verb| verb.name == text(inverse) && verb.name != name) {
            let known = verbs.iter().map(|verb| &*verb.name).filter(|known| *known != name);
            notes.unknown(&inverse.span(), "verb", text(inverse), known);
        }
    }
    verbs
}

fn verb(name: &str, value: &Value<'_>, notes: &mut Notes) -> Verb {
    let word = get(value, "effect").map_or("execute", text);
    let place = EFFECTS.iter().position(|known| *known == word);
    let effect = place.and_then(|place| Effect::ALL.get(place)).copied();
    let mut verb = Verb {
        name: name.to_owned(),
        tool: get(value, "tool").map_or(name, text).to_owned(),
        about: get(value, "about").map(|value| line(value, notes)).unwrap_or_default(),
        effect: effect.unwrap_or(Effect::Execute),
        free: flag(get(value, "free")),
        inverse: get(value, "inverse").map(|value| text(value).to_owned()),
        line: get(value, "line").map_or_else(Vec::new, texts),
        says: get(value, "says").map_or_else(Vec::new, texts),
        arguments: get(value, "arguments").map_or_else(Vec::new, |value| arguments(value, notes)),
        fields: get(value, "fields").map_or_else(Vec::new, |value| fields(value, notes)),
        own: flag(get(value, "own")),
    };
    if !verb.line.is_empty() {
        verb.arguments.push(lines::folder());
    }
    let reads = matches!(verb.effect, Effect::Read | Effect::Fetch);
    let misplaced = [
        ("free", verb.effect != Effect::Store, "only a store can be free"),
        ("inverse", verb.effect != Effect::Store, "only a store is taken back"),
        ("fields", !reads, "a selector is over what a verb that reads answers"),
        ("own", verb.fields.is_empty(), "no field of its records has a type"),
    ];
    for (key, is_wrong, why) in misplaced {
        if let (Some(value), true) = (get(value, key), is_wrong) {
            let what = format!("`{key}` has no use for verb {}", quoted(name));
            notes.mistake(&value.span(), what, why, "remove it, or correct the verb");
        }
    }
    for item in get(value, "says").map_or(&[][..], items) {
        let word = text(item);
        if word.is_empty() || word.trim() != word || word.chars().any(char::is_uppercase) {
            notes.mistake(
                &item.span(),
                format!("the word {} is never found", quoted(word)),
                "what people typed is compared in lower case, word by word",
                "write it in lower case, without blanks around it",
            );
        }
    }
    if verb.effect == Effect::Store && verb.class() == synapse_boundary::scope::Effect::Commit {
        notes.warning(
            &value.span(),
            format!("verb {} is a send", quoted(name)),
            "one of its arguments is a person, who sees what is stored",
            "write `effect = \"send\"`, or correct the argument's type",
        );
    }
    verb
}

fn arguments(value: &Value<'_>, notes: &mut Notes) -> Vec<Argument> {
    let mut arguments = Vec::new();
    for (_, name, value) in named(value) {
        let role = match get(value, "role").map_or("target", text) {
            "parameter" => Role::Parameter,
            "content" => Role::Content,
            _ => Role::Target,
        };
        if let Some(ty) = get(value, "type") {
            plain(ty, "type", notes);
            if role != Role::Target {
                notes.mistake(
                    &ty.span(),
                    format!("argument {} has a type and is no target", quoted(name)),
                    "a type says which field a selector may take in its place",
                    "remove `type`, or write `role = \"target\"`",
                );
            }
        }
        // What nobody typed is of no other type than its own.
        let ty =
            get(value, "type").map_or_else(|| format!("argument {name}"), |ty| text(ty).into());
        let limit = get(value, "limit").map(|limit| tools::bound(name, limit, notes));
        let form = get(value, "form").and_then(|form| lines::form(text(form)));
        arguments.push(Argument { name: name.to_owned(), role, ty, limit, form });
    }
    arguments
}

fn fields(value: &Value<'_>, notes: &mut Notes) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (_, name, ty) in named(value) {
        plain(ty, "type", notes);
        fields.push((name.to_owned(), text(ty).to_owned()));
    }
    fields
}

fn texts(value: &Value<'_>) -> Vec<String> {
    items(value).iter().map(|item| text(item).to_owned()).collect()
}

fn pairs(value: &Value<'_>) -> Vec<(String, String)> {
    named(value).into_iter().map(|(_, name, of)| (name.to_owned(), text(of).to_owned())).collect()
}

fn is_plain(name: &str) -> bool {
    let letter = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
    };
    !name.is_empty() && name.bytes().all(letter)
}

fn plain(value: &Value<'_>, kind: &str, notes: &mut Notes) {
    if !is_plain(text(value)) {
        notes.mistake(
            &value.span(),
            format!("{kind} {} has no valid name", quoted(text(value))),
            "names consist of `a` to `z`, `0` to `9`, `_` and `-`",
            "rename it",
        );
    }
}

/// A line that is shown.
fn line(value: &Value<'_>, notes: &mut Notes) -> String {
    let line = text(value);
    let acts = |char: char| {
        char.is_control() || char.escape_debug().count() > 1 && !"\"'\\".contains(char)
    };
    if line.len() > LINE || line.chars().any(acts) {
        notes.mistake(
            &value.span(),
            format!("the line {} cannot be shown", quoted(line.get(..40).unwrap_or(line))),
            format!("it is one line of at most {LINE} bytes, without characters that act"),
            "write it shorter, in plain letters",
        );
    }
    line.to_owned()
}
