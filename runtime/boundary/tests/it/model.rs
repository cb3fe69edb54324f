//! The rule, said again so plainly that it is right by reading: entries are
//! lists that are walked, names are strings that are compared, and nothing is
//! compiled or shared. Written from the design and `docs/abi.md`.

use synapse_abi::registry::{Egress, Harm, REGISTRY, Rights, Row, Type};
use synapse_boundary::Integrity;
use synapse_boundary::scope::{Effect, Method};

use crate::leave;
use crate::names::{self, covers, folded, host_within, split};
use crate::request;
use crate::world::{Flaw, Form, Json, NetEntry, Outcome, Sentence, Stamp, World};

/// What comes of a sentence of so many bytes, what would justify it, and the place
/// of the warrant that it rests on.
pub(crate) fn judge(
    world: &World,
    sentence: &Sentence,
    length: usize,
) -> (Outcome, Stamp, Option<usize>) {
    let row = match grammar(sentence, length) {
        Ok(row) => row,
        Err(code) => return (Outcome::Refused(code), world.mark, None),
    };
    let stamp = justification(world, sentence);
    let decided = capability(world, sentence, row).map_or(Ok(()), Err).and_then(|()| {
        let located = scope(world, sentence, row);
        if matches!(sentence.form, Form::Warrant { .. }) {
            leave::mint(world, sentence, row)?;
            return located.map(|()| (Outcome::Minted, None));
        }
        let Some((code, leak)) = label(world, sentence, row, stamp) else {
            let read = Stamp { integrity: Integrity::Ingested, ..stamp };
            let counts = row.egress != Egress::Never || label(world, sentence, row, read).is_some();
            let place = leave::named(world, sentence, row).filter(|_| counts);
            return located.map(|()| (Outcome::Permitted, place));
        };
        match leave::cover(world, sentence, row, code, leak)? {
            Some(place) => located.map(|()| (Outcome::Permitted, Some(place))),
            None => located.map(|()| (Outcome::Question(code), None)).map_err(|_| code),
        }
    });
    let (outcome, place) = decided.unwrap_or_else(|code| (Outcome::Refused(code), None));
    (outcome, stamp, place)
}

/// Gate 1: the row of what is a sentence, or the first thing wrong with it.
pub(crate) fn grammar(sentence: &Sentence, length: usize) -> Result<&'static Row, u16> {
    if length > 1 << 20 {
        return Err(102);
    }
    if matches!(sentence.flaw, Some(Flaw::Empty | Flaw::BeforeName | Flaw::NotUtf8)) {
        return Err(101);
    }
    let row = REGISTRY.iter().find(|row| row.name == sentence.name).ok_or(103_u16)?;
    let sound = match sentence.form {
        Form::Call { .. } => true,
        Form::Warrant { uses } => row.primitive.takes_warrant() && (1..=64).contains(&uses),
    };
    if !sound || sentence.flaw.is_some() || sentence.wrong.contains(&101) {
        return Err(101);
    }
    sentence.wrong.first().map_or(Ok(row), |code| Err(*code))
}

/// The join of the mark and of every held value named.
fn justification(world: &World, sentence: &Sentence) -> Stamp {
    let numbers = sentence.references();
    let values = world.held.iter().filter(|value| numbers.contains(&value.number));
    let parts: Vec<_> = values.map(|value| value.stamp).chain([world.mark]).collect();
    let any = |wanted: &Integrity| parts.iter().any(|part| part.integrity == *wanted);
    let worst_first = [Integrity::Ingested, Integrity::User, Integrity::System];
    let integrity = worst_first.into_iter().find(any).unwrap();
    Stamp { integrity, secrecy: parts.iter().fold(0, |sum, part| sum | part.secrecy) }
}

/// Gate 2.
fn capability(world: &World, sentence: &Sentence, row: &Row) -> Option<u16> {
    let held = |number: &u64| world.held.iter().any(|value| value.number == *number);
    let open = |place: usize| match (row.arguments[place].ty, sentence.argument(place)) {
        (Type::Handle(kind), Some(Json::Uint(number))) => world.handle(*number, kind).is_some(),
        _ => true,
    };
    if !world.granted.contains(&row.primitive) {
        Some(201)
    } else if world.calls_left == 0 {
        Some(203)
    } else {
        let held = sentence.references().iter().all(held);
        (!held || !(0..row.arguments.len()).all(open)).then_some(202)
    }
}

/// Gate 3 for a call: why it is stopped, and what its destination is not cleared for.
fn label(world: &World, sentence: &Sentence, row: &Row, stamp: Stamp) -> Option<(u16, u64)> {
    let paths: Vec<_> = (0..2).filter_map(|place| world.path(sentence, row, place)).collect();
    let own = paths.iter().all(|path| path.as_ref().is_ok_and(|path| world.is_own(path)));
    let tool = world.tool(sentence);
    let protected = paths.iter().flatten().any(|path| names::is_protected(path));
    let destroys = match row.name {
        "fs_delete" => !own,
        "tool_use" => tool.is_some_and(|tool| tool.effect == Effect::Store),
        "net_http_get" => net(world, sentence, row).is_ok_and(|(_, acts)| acts),
        _ => row.harm == Harm::Destructive,
    };
    let replaces = row.name == "fs_write" && sentence.word(2) == Some("replace");
    let displaces = (replaces || row.name == "fs_edit") && !own;
    let clear = match row.name {
        "channel_write" => world.peer(sentence),
        "net_http_get" | "net_http_post" => net(world, sentence, row).ok().map(|(clear, _)| clear),
        "tool_use" | "tool_commit" => tool.map(|tool| tool.clear),
        _ => None,
    };
    let leak = clear.map_or(0, |clear| stamp.secrecy & !clear);
    let ingested = stamp.integrity == Integrity::Ingested;
    let code = if ingested && protected && row.harm != Harm::None {
        302
    } else if ingested && destroys {
        301
    } else if ingested && displaces && world.journal_room == 0 {
        303
    } else {
        304
    };
    (code != 304 || leak != 0).then_some((code, leak))
}

/// Gate 4.
fn scope(world: &World, sentence: &Sentence, row: &Row) -> Result<(), u16> {
    match row.name {
        "model_generate" | "agent_spawn" => Err(401),
        "net_listen" => net(world, sentence, row).map(drop),
        "net_http_get" | "net_http_post" => {
            net(world, sentence, row)?;
            let call = matches!(sentence.form, Form::Call { .. });
            (!call || request::headers(world, sentence)).then_some(()).ok_or(407)
        }
        "tool_use" | "tool_commit" => tool(world, sentence, row),
        _ => row.arguments.iter().enumerate().try_for_each(|(place, argument)| {
            let path = world.path(sentence, row, place);
            path.map_or(Ok(()), |path| reaches(world, &path?, argument.needs))
        }),
    }
}

fn reaches(world: &World, path: &[String], needs: Rights) -> Result<(), u16> {
    let denies = |pattern: &&str| {
        let (path, pattern) = (folded(path), folded(&split(pattern)));
        match pattern.as_slice() {
            [any, name] if any == "**" => path.contains(name),
            _ => (0..=path.len()).any(|length| covers(&pattern, &path[..length])),
        }
    };
    let allows =
        |(pattern, rights): &(&str, Rights)| rights.cover(needs) && covers(&split(pattern), path);
    let allowed = world.allow.iter().any(allows);
    if world.deny.iter().any(denies) { Err(402) } else { allowed.then_some(()).ok_or(401) }
}

/// What the other end of the network is cleared for, and whether a secret goes there
/// that may do more than read.
fn net(world: &World, sentence: &Sentence, row: &Row) -> Result<(u64, bool), u16> {
    let text = world.text(sentence, 0).ok_or(405_u16)?;
    let (method, place) = match (row.name, sentence.argument(1)) {
        ("net_listen", Some(Json::Uint(port))) => (Method::Listen, names::listener(text, *port)),
        ("net_http_post", _) => (Method::Post, names::url(text)),
        _ => (Method::Get, names::url(text)),
    };
    let (host, port, path) = place?;
    if world.deny_hosts.iter().any(|pattern| host_within(pattern, host).is_some()) {
        return Err(402);
    }
    let covers = |entry: &&NetEntry| {
        let below = |prefix: &&str| path.is_none_or(|path| names::is_below(path, prefix));
        host_within(entry.host, host).is_some_and(|bits| bits >= names::bits_to_name(host))
            && entry.methods.contains(&method)
            && (entry.ports.0..=entry.ports.1).contains(&port)
            && (path.is_none() || entry.paths.iter().any(below))
    };
    let covering: Vec<_> = world.nets.iter().filter(covers).collect();
    if covering.is_empty() {
        return Err(401);
    }
    let secrets = if method == Method::Listen { Vec::new() } else { request::secrets(sentence)? };
    let naming: Vec<_> = covering
        .iter()
        .filter(|entry| secrets.iter().all(|secret| entry.secrets.contains(secret)))
        .collect();
    if naming.is_empty() || !secrets.iter().all(|secret| world.served.contains(&(secret, host))) {
        return Err(410);
    }
    let clear = naming.iter().fold(0, |sum, entry| sum | entry.clear);
    Ok((clear, !secrets.is_empty() && !naming.iter().any(|entry| entry.reads)))
}

/// Whether an entry names the verb for this primitive, with these arguments.
fn tool(world: &World, sentence: &Sentence, row: &Row) -> Result<(), u16> {
    let commits = row.name == "tool_commit";
    let tool = world.tool(sentence).filter(|tool| commits == (tool.effect == Effect::Commit));
    let tool = tool.ok_or(401_u16)?;
    if matches!(sentence.form, Form::Warrant { .. }) {
        return Ok(());
    }
    let within = tool.limits.iter().all(|(name, limit)| {
        let given = sentence.members(1, name);
        !given.is_empty() && given.into_iter().all(|value| world.within(limit, value))
    });
    within.then_some(()).ok_or(407)
}
