//! Warrants, said again so plainly that it is right by reading: a line is its words,
//! a warrant what it fixes and how often it may still be used.

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Egress, Row, Type};
use synapse_boundary::url::Host;
use synapse_boundary::{Integrity, link};

use crate::names;
use crate::world::{Json, Sentence, World};

/// A warrant of a world.
#[derive(Clone, Debug)]
pub(crate) struct Leave {
    pub(crate) sentence: Sentence,
    pub(crate) left: u64,
    pub(crate) record: u64,
}

/// The line, the word of it and the verb that a warrant was funded by.
pub(crate) type Funds = (usize, usize, String);

/// Gate 3 for a warrant: what funds it, or the refusal.
pub(crate) fn mint(world: &World, sentence: &Sentence, row: &Row) -> Result<Funds, u16> {
    if world.mark.integrity == Integrity::Ingested {
        return Err(305);
    }
    let mut found = None;
    for (place, argument) in row.arguments.iter().enumerate() {
        let (Some(value), true) = (sentence.argument(place), argument.ty != Type::Json) else {
            continue;
        };
        match (argument.ty, value) {
            // No value of these worlds is a listing.
            (_, Json::Select(_)) => return Err(310),
            (Type::Path, _) => {
                let path = format!("/{}", world.path(sentence, row, place).unwrap()?.join("/"));
                let folder = path.strip_suffix("/**").or_else(|| path.strip_suffix("/*"));
                let folder = folder.unwrap_or(&path);
                let says = (folder != path).then_some(row.says);
                let sound = folder != "/data"
                    && (folder == path || !names::is_protected(&names::split(folder)));
                find(world, sentence, &mut found, says, &|_, word| {
                    sound && (word == folder || format!("/data/{word}") == folder)
                })?;
            }
            (Type::Url, Json::Text(url)) => find(world, sentence, &mut found, None, &|_, word| {
                [word, &format!("https://{word}"), &format!("https://{word}/")].contains(&&**url)
            })?,
            (Type::Host, Json::Text(host)) => {
                find(world, sentence, &mut found, None, &|_, word| word == host)?;
            }
            (Type::Port, Json::Uint(port)) => {
                find(world, sentence, &mut found, None, &|before, word| {
                    word == port.to_string() && (word.len() > 3 || before == "port")
                })?;
            }
            _ => {}
        }
    }
    if let Some(Json::Object(members)) = sentence.argument(1) {
        let tool = world.tool(sentence).ok_or(Refusal::OutOfScope.number())?;
        let has_target = tool.roles.iter().any(|(_, ty)| !ty.is_empty());
        for (key, value) in members {
            let role = tool.role(key);
            let says = (!has_target || role == Some("")).then_some(tool.says);
            typed(world, sentence, &mut found, says, (key, value))?;
        }
        if found.is_none() && tool.roles.is_empty() {
            find(world, sentence, &mut found, None, &|_, word| tool.says.contains(&word))?;
        }
    }
    found.ok_or(310)
}

/// Looks for a value of a verb's arguments, or each of a list.
fn typed(
    world: &World,
    sentence: &Sentence,
    found: &mut Option<Funds>,
    says: Option<&[&str]>,
    (key, value): (&str, &Json),
) -> Result<(), u16> {
    let number = match value {
        Json::List(list) => {
            return list
                .iter()
                .try_for_each(|value| typed(world, sentence, found, says, (key, value)));
        }
        Json::Text(text) => {
            return find(world, sentence, found, says, &|_, word| word == text);
        }
        Json::Bare(text) => (*text).to_owned(),
        Json::Uint(number) => number.to_string(),
        Json::Select(_) if world.tool(sentence).is_some_and(|tool| tool.role(key).is_some()) => {
            return Err(310);
        }
        Json::Object(_) | Json::Held(_) | Json::Select(_) => return Err(306),
    };
    find(world, sentence, found, says, &|before, word| word == number && before == key)
}

/// Looks for a word of the newest line that has it; the first one found in a
/// warrant funds it and must not have funded its verb before.
fn find(
    world: &World,
    sentence: &Sentence,
    found: &mut Option<Funds>,
    says: Option<&[&str]>,
    is: &dyn Fn(&str, &str) -> bool,
) -> Result<(), u16> {
    let verb = match sentence.argument(0) {
        Some(Json::Text(tool)) if sentence.name.starts_with("tool_") => tool,
        _ => sentence.name,
    };
    let mut code = 306;
    for (number, line) in world.lines.iter().enumerate().rev() {
        let words: Vec<_> = line.split(' ').collect();
        for (place, word) in words.iter().enumerate() {
            let before = if place == 0 { "" } else { words[place - 1] };
            let says = says.is_none_or(|says| says.iter().any(|verb| words.contains(verb)));
            if !says || !is(before, word) {
                continue;
            }
            let funds = (number, place, verb.to_owned());
            if found.is_some() || !world.funded.contains(&funds) {
                found.get_or_insert(funds);
                return Ok(());
            }
            code = 307;
        }
    }
    Err(code)
}

/// Which warrant is for this very call.
pub(crate) fn named(world: &World, sentence: &Sentence, row: &Row) -> Option<usize> {
    world.leave.iter().position(|leave| {
        leave.left > 0
            && leave.sentence.name == sentence.name
            && leave.sentence.arguments.iter().all(|(name, fixed)| {
                let place = row.arguments.iter().position(|row| row.name == *name).unwrap();
                fits(world, sentence, row, place, fixed)
            })
    })
}

/// Which warrant covers a call that was stopped for one reason, or for its links.
pub(crate) fn cover(
    world: &World,
    sentence: &Sentence,
    row: &Row,
    code: u16,
    leak: u64,
) -> Result<Option<usize>, u16> {
    let found = named(world, sentence, row);
    if code == 302 || leak & !3 != 0 || found.is_none() {
        return Ok(None);
    }
    let host = match world.text(sentence, 0) {
        Some(url) if row.arguments[0].ty == Type::Url => names::url(url).ok().map(|place| place.0),
        _ => None,
    };
    let sent = row.arguments.iter().enumerate().filter(|(_, row)| row.ty != Type::Url);
    for (place, argument) in sent.filter(|_| row.egress != Egress::Never) {
        let texts = match (argument.ty, sentence.argument(place)) {
            (Type::Content, Some(Json::Object(parts))) => {
                let Json::List(parts) = &parts[0].1 else { unreachable!("parts") };
                vec![parts.iter().map(|part| world.bytes(part)).collect::<Vec<_>>().concat()]
            }
            (Type::Content, Some(value)) => vec![world.bytes(value)],
            (Type::Json, Some(value)) => world.strings(value),
            _ => continue,
        };
        for text in texts {
            let text = str::from_utf8(&text).map_err(|_| 308_u16)?;
            link::vouched(text, host.and_then(|host| Host::parse(host).ok()), &world.lines)
                .map_err(Refusal::number)?;
        }
    }
    Ok(found)
}

/// Whether a call's argument is what a warrant fixes.
fn fits(world: &World, sentence: &Sentence, row: &Row, place: usize, fixed: &Json) -> bool {
    match (row.arguments[place].ty, fixed) {
        (Type::Path, Json::Text(fixed)) => {
            let (Some(Ok(path)), Ok(fixed)) =
                (world.path(sentence, row, place), names::normal(fixed))
            else {
                return false;
            };
            match fixed.last().map(String::as_str) {
                Some("**" | "*") => names::covers(&fixed, &path),
                _ => path == fixed,
            }
        }
        (Type::Json, Json::Object(fixed)) => {
            let Some(Json::Object(given)) = sentence.argument(place) else { return false };
            given.iter().all(|(key, value)| match fixed.iter().find(|(name, _)| name == key) {
                Some((_, Json::Text(wanted))) => world.text_of(value) == Some(wanted),
                Some((_, wanted)) => wanted.written() == value.written(),
                None => world.tool(sentence).and_then(|tool| tool.role(key)) == Some(""),
            }) && fixed.iter().all(|(key, _)| given.iter().any(|(name, _)| name == key))
        }
        (_, Json::Text(fixed)) => world.text(sentence, place) == Some(fixed),
        (_, fixed) => sentence.argument(place).is_some_and(|it| it.written() == fixed.written()),
    }
}
