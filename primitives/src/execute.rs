//! One exhaustive match: what an authorized call does.
//!
//! The witness is taken by value, so a permission is executed once. Nothing is
//! decided again here; what is checked is only what could not be known before
//! the disk was touched, the descendants of a directory.
//!
//! # Invariants
//! - I2: the only input is an [`Authorized`].
//! - I4, I5: what comes back is labelled, by primitive and source, in one match
//!   that a new primitive or a new way to fail does not compile without.
//!
//! # Not here
//! The mark, held replies, outcome records (the kernel).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use synapse_abi::code::Fault;
use synapse_abi::limits;
use synapse_abi::registry::Primitive;
use synapse_abi::reply::Form;
use synapse_boundary::select::{Taken, resolve};
use synapse_boundary::sentence::{Argument, Piece};
use synapse_boundary::target::Target;
use synapse_boundary::{
    Authorized, Facts, Integrity, Label, Labelled, NormalPath, Origin, Rights, Secrecy,
};

use crate::platform::{Asker, Entry, Journal, Kind, Mode, Platform};
use crate::search::{Sight, search};

/// A successful call's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What the payload is.
    pub form: Form,
    /// The payload, at most [`limits::REPLY`] bytes.
    pub payload: Vec<u8>,
    /// Bytes that the journal took.
    pub displaced: u64,
}

/// What an executed call came to: its reply or its fault, labelled.
pub type Executed = Labelled<Result<Done, Fault>>;

impl Done {
    const NOTHING: Self = Self { form: Form::Nothing, payload: Vec::new(), displaced: 0 };

    const fn new(form: Form, payload: Vec<u8>) -> Self {
        Self { form, payload, displaced: 0 }
    }
}

/// Executes a call. Held values come from `facts`, as at the decision. What is
/// decided but not recorded cannot be executed.
///
/// ```compile_fail,E0308
/// # use synapse_boundary::{Authorized, Facts, Verdict};
/// # use synapse_primitives::{Platform, execute};
/// async fn run<P: Platform>(
///     verdict: Verdict<'_>,
///     recorded: Authorized<'_>,
///     platform: &P,
///     facts: &(impl Facts + Sync),
/// ) {
///     execute(verdict, platform, facts).await;
/// }
/// ```
/// ```
/// # use synapse_boundary::{Authorized, Facts, Verdict};
/// # use synapse_primitives::{Platform, execute};
/// async fn run<P: Platform>(
///     verdict: Verdict<'_>,
///     recorded: Authorized<'_>,
///     platform: &P,
///     facts: &(impl Facts + Sync),
/// ) {
///     execute(recorded, platform, facts).await;
/// }
/// ```
pub async fn execute<P, F>(authorized: Authorized<'_>, platform: &P, facts: &F) -> Executed
where
    P: Platform,
    F: Facts + Sync,
{
    let result = run(&authorized, platform, facts).await.and_then(|done| {
        let fits = done.payload.len() <= limits::REPLY;
        if fits { Ok(done) } else { Err(Fault::ReplyTooLarge) }
    });
    let label = label(&authorized, facts, &result);
    Labelled::new(result, label)
}

/// Where the reply's bytes, or the fault, came from. A fault carries the
/// justification too: a value that the call names may be what decided it.
fn label(authorized: &Authorized<'_>, facts: &impl Facts, result: &Result<Done, Fault>) -> Label {
    let source = source(authorized, result);
    if result.is_ok() {
        // That a target or a parameter passed tells what it is; of a content it
        // tells only that it holds no fault.
        let call = authorized.call();
        let named = call.arguments().filter_map(|(_, value)| match value {
            Argument::Held(number) => facts.held(number),
            _ => None,
        });
        named.fold(source, |label, held| label.join(held.label))
    } else {
        source.join(authorized.justification())
    }
}

fn source(authorized: &Authorized<'_>, result: &Result<Done, Fault>) -> Label {
    let origin = Origin::record(authorized.record());
    // Nobody has kept what stands in a file's history, so it may be anything that
    // a task under this grant could have written.
    let secrecy = Secrecy::PROMPT.join(Secrecy::FILES).join(authorized.scope().named());
    let files = Label::new(Integrity::Ingested, secrecy, origin);
    match authorized.call().primitive() {
        // That an edit found its one place tells what stands in the file.
        Primitive::FsRead | Primitive::FsList | Primitive::FsSearch | Primitive::FsEdit => {
            files.join(authorized.justification())
        }
        Primitive::FsWrite | Primitive::FsMove | Primitive::FsDelete => {
            if result.is_ok() {
                Label::SYSTEM
            } else {
                files
            }
        }
        // A line that the human typed, or that they did not.
        Primitive::ConsoleAsk => Label::new(Integrity::User, Secrecy::PROMPT, origin),
        // What is taken out of a value has that value's label, joined like that of
        // every value named.
        Primitive::ValueRead
        | Primitive::ValuePick
        | Primitive::ConsoleWrite
        | Primitive::ClockRead => Label::SYSTEM,
        // No board executes these yet, which is the kernel's own word; anything
        // else that they came to would be from outside.
        Primitive::ModelGenerate
        | Primitive::AgentSpawn
        | Primitive::AgentWait
        | Primitive::ChannelCreate
        | Primitive::ChannelWrite
        | Primitive::ChannelRead
        | Primitive::ChannelClose
        | Primitive::ChannelGrant
        | Primitive::NetListen
        | Primitive::NetAccept
        | Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit => match result {
            Err(Fault::Unsupported) => Label::SYSTEM,
            Ok(_) | Err(_) => files.join(authorized.justification()),
        },
    }
}

async fn run<P, F>(call: &Authorized<'_>, platform: &P, facts: &F) -> Result<Done, Fault>
where
    P: Platform,
    F: Facts + Sync,
{
    match call.call().primitive() {
        Primitive::ConsoleWrite => {
            platform.show(&content(call, 0, facts)?).await?;
            Ok(Done::NOTHING)
        }
        Primitive::ConsoleAsk => {
            let integrity = call.justification().integrity;
            let asker = Asker { record: call.record(), integrity };
            let answer = platform.ask(&content(call, 0, facts)?, asker).await?;
            Ok(Done::new(Form::Bytes, answer))
        }
        Primitive::ClockRead => {
            let json = format!("{{\"unix_ms\":{}}}", platform.now_ms());
            Ok(Done::new(Form::Json, json.into_bytes()))
        }
        Primitive::FsRead => {
            let length = number(call, 2).min(as_u64(limits::REPLY));
            let bytes = platform.read(path(call, 0)?, number(call, 1), length).await?;
            Ok(Done::new(Form::Bytes, bytes))
        }
        Primitive::FsList => list(call, platform, facts).await,
        Primitive::FsWrite => {
            let mode = match call.call().argument(2) {
                Argument::Choice(0) => Mode::Create,
                Argument::Choice(1) => Mode::Replace,
                _ => Mode::Append,
            };
            let bytes = content(call, 1, facts)?;
            let written = platform.write(path(call, 0)?, &bytes, mode, journal(call)).await?;
            Ok(Done { displaced: written.displaced, ..Done::NOTHING })
        }
        Primitive::FsEdit => {
            let (old, new) = (content(call, 1, facts)?, content(call, 2, facts)?);
            let written = platform.edit(path(call, 0)?, &old, &new, journal(call)).await?;
            Ok(Done { displaced: written.displaced, ..Done::NOTHING })
        }
        Primitive::FsSearch => {
            let (root, text) = (path(call, 0)?, text(call, 1, facts)?);
            let eyes = |path: &str| sight(call, path);
            let json = search(platform, root, text.as_bytes(), number(call, 2), &eyes).await?;
            Ok(Done::new(Form::Json, json.into_bytes()))
        }
        Primitive::FsMove => {
            let both = |from: &str, to: &str| {
                call.covers(from, Rights::DELETE) && call.covers(to, Rights::WRITE)
            };
            platform.rename(path(call, 0)?, path(call, 1)?, journal(call), &both).await?;
            Ok(Done::NOTHING)
        }
        Primitive::FsDelete => {
            let covered = |path: &str| call.covers(path, Rights::DELETE);
            let displaced = platform.remove(path(call, 0)?, journal(call), &covered).await?;
            Ok(Done { displaced, ..Done::NOTHING })
        }
        Primitive::ValueRead => {
            let Argument::Held(held) = call.call().argument(0) else {
                return Err(Fault::NoMatch);
            };
            let rest = value(facts, held)?.get(as_usize(number(call, 1))..).unwrap_or_default();
            let length = as_usize(number(call, 2)).min(limits::REPLY);
            let bytes = rest.get(..length).unwrap_or(rest);
            Ok(Done::new(Form::Bytes, bytes.to_vec()))
        }
        Primitive::ValuePick => pick(call, facts),
        Primitive::ModelGenerate
        | Primitive::AgentSpawn
        | Primitive::AgentWait
        | Primitive::ChannelCreate
        | Primitive::ChannelWrite
        | Primitive::ChannelRead
        | Primitive::ChannelClose
        | Primitive::ChannelGrant
        | Primitive::NetListen
        | Primitive::NetAccept
        | Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit => Err(Fault::Unsupported),
    }
}

/// Takes what a selector means, as a warrant would find it: of a listing only if
/// the page is all of it.
fn pick(call: &Authorized<'_>, facts: &impl Facts) -> Result<Done, Fault> {
    let arguments = (call.call().argument(0), call.call().argument(1));
    let (Argument::Held(number), Argument::Selector(selector)) = arguments else {
        return Err(Fault::NoMatch);
    };
    let bytes = value(facts, number)?;
    let listing = facts.held(number).and_then(|held| held.reply_of);
    let listing = listing.filter(|reply| reply.primitive == Primitive::FsList);
    let directory = match listing.map(|reply| (reply.is_whole, reply.target)) {
        None => None,
        Some((true, Target::Path(path))) => Some(path.as_str()),
        Some(_) => return Err(Fault::NoMatch),
    };
    let taken = match resolve(selector, bytes, directory) {
        Some(Taken::Text(text)) => text.into_owned(),
        Some(Taken::Json(json)) => json.into(),
        None => return Err(Fault::NoMatch),
    };
    Ok(Done::new(Form::Bytes, taken.into_bytes()))
}

async fn list<P: Platform, F: Facts + Sync>(
    call: &Authorized<'_>,
    platform: &P,
    facts: &F,
) -> Result<Done, Fault> {
    let limit = number(call, 2).min(limits::LIST);
    let directory = path(call, 0)?;
    let mut json = String::from("[");
    let mut after = text(call, 1, facts)?.into_owned();
    let mut shown = 0;
    // A denied entry takes no place in the page, so that a short page is the last.
    while shown < limit {
        let page = platform.list(directory, &after, limit.saturating_sub(shown)).await?;
        for entry in &page.entries {
            if sight(call, &join(directory, &entry.name)) != Sight::Hidden {
                write_entry(&mut json, entry);
                shown = shown.saturating_add(1);
            }
        }
        match page.entries.last() {
            Some(last) if page.more => after.clone_from(&last.name),
            _ => break,
        }
    }
    if json.ends_with(',') {
        json.pop();
    }
    json.push(']');
    Ok(Done::new(Form::Json, json.into_bytes()))
}

/// What a call may learn of a path below its target: of one that a deny entry
/// covers, nothing. Another name that no sentence can spell is no secret, so that
/// a guest can say it was there.
fn sight(call: &Authorized<'_>, path: &str) -> Sight {
    if call.scope().denies(path.split('/').filter(|name| !name.is_empty())) {
        return Sight::Hidden;
    }
    let Ok(path) = NormalPath::parse(Cow::Borrowed(path)) else { return Sight::Unspelled };
    match call.scope().check(&path, Rights::READ) {
        Ok(()) => Sight::Read,
        Err(_) => Sight::Passed,
    }
}

/// The path of a directory's entry.
pub(crate) fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

fn write_entry(json: &mut String, entry: &Entry) {
    let kind = match entry.kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "link",
        Kind::Other => "other",
    };
    json.push_str("{\"name\":\"");
    escape(json, &entry.name);
    // Writing to a String cannot fail.
    let _ = write!(
        json,
        "\",\"kind\":\"{kind}\",\"size\":{},\"modified\":{}}},",
        entry.size, entry.modified_ms
    );
}

/// Writes the inside of a canonical JSON string.
pub fn escape(json: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\0'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(char));
            }
            _ => json.push(char),
        }
    }
}

fn journal(call: &Authorized<'_>) -> Journal {
    Journal { record: call.record(), room: call.journal_room(), expects: call.expects() }
}

fn path<'a>(call: &'a Authorized<'_>, index: usize) -> Result<&'a str, Fault> {
    call.path(index).map(NormalPath::as_str).ok_or(Fault::NotFound)
}

/// A text argument, unescaped.
fn text<'a>(
    call: &'a Authorized<'_>,
    index: usize,
    facts: &'a impl Facts,
) -> Result<Cow<'a, str>, Fault> {
    match call.call().argument(index) {
        Argument::Text(text) => Ok(text.decode()),
        Argument::Held(number) => {
            str::from_utf8(value(facts, number)?).map(Cow::Borrowed).map_err(|_| Fault::NotText)
        }
        _ => Ok(Cow::Borrowed("")),
    }
}

fn number(call: &Authorized<'_>, index: usize) -> u64 {
    match call.call().argument(index) {
        Argument::Uint(number) => number,
        _ => 0,
    }
}

/// A content argument put together: its texts unescaped, its values as they are.
fn content(call: &Authorized<'_>, index: usize, facts: &impl Facts) -> Result<Vec<u8>, Fault> {
    let Argument::Content(content) = call.call().argument(index) else {
        return Err(Fault::NoMatch);
    };
    let mut bytes = Vec::new();
    // Few bytes of a sentence may name many held ones, more than there is room for.
    let mut add = |piece: &[u8]| {
        bytes.try_reserve(piece.len()).map_err(|_| Fault::TooLarge)?;
        bytes.extend_from_slice(piece);
        Ok(())
    };
    for piece in content.pieces() {
        match piece {
            Piece::Text(text) => add(text.decode().as_bytes())?,
            Piece::Held(number) => add(value(facts, number)?)?,
        }
    }
    Ok(bytes)
}

/// The bytes of a held value, or the fault that it holds.
fn value(facts: &impl Facts, number: u64) -> Result<&[u8], Fault> {
    let held = facts.held(number).ok_or(Fault::NoMatch)?;
    held.fault.map_or(Ok(held.bytes), Err)
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
