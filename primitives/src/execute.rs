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
//! - I15: what is written is stamped with what justified it.
//!
//! # Not here
//! The mark, held replies, outcome records (the kernel). What a file carries at rest
//! (`rest`).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};

use synapse_abi::code::Refusal;
use synapse_abi::registry::Primitive;
use synapse_boundary::scope::{Method, Place};
use synapse_boundary::select::{Taken, resolve};
use synapse_boundary::sentence::{Argument, Piece};
use synapse_boundary::target::Target;
use synapse_boundary::url::Host;
use synapse_boundary::{
    Authorized, Facts, Integrity, Label, Mark, NormalPath, Origin, Rights, Secrecy, Warrants,
};
use synapse_reply::Fault;
use synapse_reply::frame::Form;
use synapse_reply::limits;

use crate::fetch::{Reached, fetch, host_of, most};
use crate::hands::{Carries, Hands, Spawn};
use crate::labelled::Labelled;
use crate::platform::{Asker, Entry, Journal, Kind, Mode, Platform, WHOLE_BYTES};
use crate::rest::{Creator, Names, Owner, Rest, Stamp};
use crate::search::{Sight, search};
use crate::tool;

/// A successful call's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// What the payload is.
    pub form: Form,
    /// The payload, at most as many bytes as [`most`](crate::most()) says.
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

/// Whose call it is.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Who made what the call makes.
    pub creator: Creator,
    /// What its grant calls the compartments from bit [`Secrecy::NAMED`] on.
    pub compartments: &'a [String],
}

/// Executes a call. Held values come from `facts`, as at the decision. What is
/// decided but not recorded cannot be executed.
///
/// ```compile_fail,E0308
/// # use synapse_boundary::{Authorized, Facts, Verdict};
/// # use synapse_primitives::{Caller, Hands, Platform, execute};
/// async fn run<P: Platform>(
///     verdict: Verdict<'_>,
///     recorded: Authorized<'_>,
///     platform: &P,
///     facts: &(impl Facts + Sync),
///     caller: Caller<'_>,
///     hands: &mut impl Hands,
/// ) {
///     execute(verdict, platform, facts, caller, hands).await;
/// }
/// ```
/// ```
/// # use synapse_boundary::{Authorized, Facts, Verdict};
/// # use synapse_primitives::{Caller, Hands, Platform, execute};
/// async fn run<P: Platform>(
///     verdict: Verdict<'_>,
///     recorded: Authorized<'_>,
///     platform: &P,
///     facts: &(impl Facts + Sync),
///     caller: Caller<'_>,
///     hands: &mut impl Hands,
/// ) {
///     execute(recorded, platform, facts, caller, hands).await;
/// }
/// ```
pub async fn execute<P, F, H>(
    mut authorized: Authorized<'_>,
    platform: &P,
    facts: &F,
    caller: Caller<'_>,
    hands: &mut H,
) -> Executed
where
    P: Platform,
    F: Facts + Sync,
    H: Hands,
{
    let reached = Reached::default();
    let moved = authorized.take_moved();
    let mut shown = Shown { authorized: &authorized, caller, label: Label::SYSTEM };
    let result = run(&authorized, platform, facts, &mut shown, &reached, (hands, moved)).await;
    let result = result.and_then(|done| {
        let fits = done.payload.len() <= most(authorized.call());
        if fits { Ok(done) } else { Err(Fault::ReplyTooLarge) }
    });
    let label = label(&authorized, facts, &result, shown.label, &reached);
    Labelled::new(result, label)
}

/// What a call showed, by what it carries at rest and where it stands.
struct Shown<'a, 's> {
    authorized: &'a Authorized<'s>,
    caller: Caller<'a>,
    label: Label,
}

impl Shown<'_, '_> {
    fn add(&mut self, path: &str, rest: &Rest) {
        self.add_all(rest, covering(self.authorized, path));
    }

    fn add_all(&mut self, rest: &Rest, covering: Secrecy) {
        let scope = self.authorized.passed().scope;
        let label = rest.label(self.caller.compartments, scope.named());
        let secrecy = label.secrecy.join(covering);
        self.label = self.label.join(Label { secrecy, ..label });
    }

    /// What came from another task.
    fn came<T>(&mut self, came: Labelled<T>) -> T {
        let mut mark = Mark::new(self.label);
        let value = came.release(&mut mark);
        self.label = mark.label();
        value
    }
}

/// The compartments that patterns of the grant give to a path.
pub(crate) fn covering(call: &Authorized<'_>, path: &str) -> Secrecy {
    match NormalPath::parse(Cow::Borrowed(path)) {
        Ok(path) => call.passed().scope.compartments(&path),
        // No pattern spells it, but one may cover it.
        Err(_) => call.passed().scope.named(),
    }
}

/// Where the reply's bytes, or the fault, came from. A fault carries the
/// justification too: a value that the call names may be what decided it.
fn label(
    authorized: &Authorized<'_>,
    facts: &impl Facts,
    result: &Result<Done, Fault>,
    shown: Label,
    reached: &Reached,
) -> Label {
    let source = source(authorized, result, shown, reached);
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

fn source(
    authorized: &Authorized<'_>,
    result: &Result<Done, Fault>,
    shown: Label,
    reached: &Reached,
) -> Label {
    let origin = Origin::record(authorized.record());
    // A fault shows nothing, and what is not there may have been made or taken away by
    // any task under this grant.
    let secrecy = Secrecy::PROMPT.join(Secrecy::FILES).join(authorized.passed().scope.named());
    let files = Label::new(Integrity::Ingested, secrecy, origin);
    match authorized.call().primitive() {
        // That an edit found its one place tells what stood in the file.
        Primitive::FsRead | Primitive::FsList | Primitive::FsSearch | Primitive::FsEdit => {
            let source = if result.is_ok() { Label { origin, ..shown } } else { files };
            source.join(authorized.justification())
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
        // every value named. Handles are the task's own.
        Primitive::ValueRead
        | Primitive::ValuePick
        | Primitive::ConsoleWrite
        | Primitive::ClockRead
        | Primitive::ChannelCreate
        | Primitive::ChannelClose => Label::SYSTEM,
        // What another task said, or that it said nothing.
        Primitive::AgentWait | Primitive::ChannelRead => {
            shown.join(Label { origin, ..Label::SYSTEM })
        }
        Primitive::ChannelWrite | Primitive::ChannelGrant => match result {
            Ok(_) => Label::SYSTEM,
            Err(_) => shown.join(Label { origin, ..Label::SYSTEM }),
        },
        // How many agents and sockets there are is the doing of all of them, and what
        // listens elsewhere that of others.
        Primitive::AgentSpawn | Primitive::NetListen => match result {
            Ok(_) | Err(Fault::Unsupported) => Label::SYSTEM,
            Err(_) => files,
        },
        // A number shows nothing of who is there, but that somebody came may follow from
        // what was told; that nobody came, they decided.
        Primitive::NetAccept => match result {
            Ok(_) => Label { secrecy: shown.secrecy, ..Label::SYSTEM },
            Err(Fault::TooMany) => shown.join(files),
            Err(_) => shown.join(Label { origin, ..Label::SYSTEM }),
        },
        // Without a network or connectors, what the board says is the kernel's own word.
        Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit
            if *result == Err(Fault::Unsupported) =>
        {
            Label::SYSTEM
        }
        // What was sent may be what came back.
        Primitive::NetHttpGet
        | Primitive::NetHttpPost
        | Primitive::ToolUse
        | Primitive::ToolCommit => {
            let own = authorized.passed().terms.own.join(reached.secrecy());
            Label::new(Integrity::Ingested, own, origin).join(authorized.justification())
        }
        // No board executes it yet, which is the kernel's own word; anything else that
        // it came to would be from outside.
        Primitive::ModelGenerate => match result {
            Err(Fault::Unsupported) => Label::SYSTEM,
            Ok(_) | Err(_) => files.join(authorized.justification()),
        },
    }
}

async fn run<P, F, H>(
    call: &Authorized<'_>,
    platform: &P,
    facts: &F,
    shown: &mut Shown<'_, '_>,
    reached: &Reached,
    (hands, moved): (&mut H, Warrants),
) -> Result<Done, Fault>
where
    P: Platform,
    F: Facts + Sync,
    H: Hands,
{
    let caller = shown.caller;
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
            let path = path(call, 0)?;
            let read = platform.read(path, number(call, 1), length).await?;
            shown.add(path, &read.rest);
            Ok(Done::new(Form::Bytes, read.bytes))
        }
        Primitive::FsList => list(call, platform, facts, shown).await,
        Primitive::FsWrite => {
            let mode = match call.call().argument(2) {
                Argument::Choice(0) => Mode::Create,
                Argument::Choice(1) => Mode::Replace,
                _ => Mode::Append,
            };
            let bytes = content(call, 1, facts)?;
            let journal = journal(call, caller);
            let written = platform.write(path(call, 0)?, &bytes, mode, journal).await?;
            Ok(Done { displaced: written.displaced, ..Done::NOTHING })
        }
        Primitive::FsEdit => {
            let (old, new) = (content(call, 1, facts)?, content(call, 2, facts)?);
            let (path, journal) = (path(call, 0)?, journal(call, caller));
            let written = platform.edit(path, &old, &new, journal).await?;
            shown.add(path, &written.before);
            Ok(Done { displaced: written.displaced, ..Done::NOTHING })
        }
        Primitive::FsSearch => {
            let (root, text) = (path(call, 0)?, text(call, 1, facts)?);
            let covered = AtomicU64::new(covering(call, root).bits());
            let eyes = |path: &str| {
                let sight = sight(call, path);
                if sight != Sight::Hidden {
                    covered.fetch_or(covering(call, path).bits(), Ordering::Relaxed);
                }
                sight
            };
            let found = search(platform, root, text.as_bytes(), number(call, 2), &eyes).await?;
            shown.add_all(&found.rest, Secrecy::from_bits(covered.into_inner()));
            Ok(Done::new(Form::Json, found.json.into_bytes()))
        }
        Primitive::FsMove => {
            let both = |from: &str, to: &str| {
                let covered = call.covers(from, Rights::DELETE) && call.covers(to, Rights::WRITE);
                covered.then(|| Names::of(covering(call, from), caller.compartments))
            };
            let journal = journal(call, caller);
            platform.rename(path(call, 0)?, path(call, 1)?, journal, &both).await?;
            Ok(Done::NOTHING)
        }
        Primitive::FsDelete => {
            let covered = |path: &str| call.covers(path, Rights::DELETE);
            let displaced =
                platform.remove(path(call, 0)?, journal(call, caller), &covered).await?;
            Ok(Done { displaced, ..Done::NOTHING })
        }
        Primitive::ValueRead => part(call, facts),
        Primitive::NetHttpGet => {
            let reply = fetch(call, None, platform, facts, reached).await?;
            Ok(Done::new(Form::Bytes, reply))
        }
        Primitive::NetHttpPost => {
            let content = content(call, 2, facts)?;
            let reply = fetch(call, Some(&content), platform, facts, reached).await?;
            Ok(Done::new(Form::Bytes, reply))
        }
        Primitive::ValuePick => pick(call, facts),
        Primitive::AgentSpawn
        | Primitive::AgentWait
        | Primitive::ChannelCreate
        | Primitive::ChannelWrite
        | Primitive::ChannelRead
        | Primitive::ChannelClose
        | Primitive::ChannelGrant
        | Primitive::NetListen
        | Primitive::NetAccept => by_hand(call, facts, shown, (hands, moved)).await,
        Primitive::ModelGenerate => Err(Fault::Unsupported),
        Primitive::ToolUse | Primitive::ToolCommit => {
            let (reply, displaced) = tool::call(call, platform, facts, caller, reached).await;
            Ok(Done { displaced, ..Done::new(Form::Bytes, reply?) })
        }
    }
}

/// What is done with a task's handles.
async fn by_hand<F: Facts + Sync, H: Hands>(
    call: &Authorized<'_>,
    facts: &F,
    shown: &mut Shown<'_, '_>,
    (hands, warrants): (&mut H, Warrants),
) -> Result<Done, Fault> {
    let handle = match call.call().argument(0) {
        Argument::Handle(number) => number,
        _ => 0,
    };
    match call.call().primitive() {
        Primitive::AgentSpawn => {
            let Some(Target::Name(package)) = call.target(0) else { return Err(Fault::NotFound) };
            let task = Labelled::new(content(call, 1, facts)?, call.justification());
            let (record, grant) = (call.record(), call.call().span(2));
            let child = hands.spawn(Spawn { record, package, task, grant, warrants }).await?;
            Ok(Done::new(Form::Handle, child.to_le_bytes().to_vec()))
        }
        Primitive::AgentWait => {
            let report = shown.came(hands.wait(handle, number(call, 1)).await)?;
            Ok(Done::new(Form::Bytes, report))
        }
        Primitive::ChannelCreate => {
            let carries = match call.call().argument(0) {
                Argument::Choice(0) => Carries::Bytes,
                _ => Carries::Messages,
            };
            let [a, b] = hands.channel(carries)?;
            Ok(Done::new(Form::Json, format!("{{\"a\":{a},\"b\":{b}}}").into_bytes()))
        }
        Primitive::ChannelWrite => {
            let message = Labelled::new(content(call, 1, facts)?, call.justification());
            shown.came(hands.send(handle, message).await)?;
            Ok(Done::NOTHING)
        }
        Primitive::ChannelRead => {
            let max = as_usize(number(call, 1)).min(limits::REPLY);
            let bytes = shown.came(hands.receive(handle, max, number(call, 2)).await)?;
            Ok(Done::new(Form::Bytes, bytes))
        }
        Primitive::ChannelClose => {
            hands.close(handle);
            Ok(Done::NOTHING)
        }
        Primitive::ChannelGrant => {
            let Argument::Handle(agent) = call.call().argument(1) else {
                return Err(Fault::Closed);
            };
            shown.came(hands.grant(handle, agent))?;
            Ok(Done::NOTHING)
        }
        Primitive::NetListen => {
            let listener = hands.listen(address(call)?, call.passed().terms)?;
            Ok(Done::new(Form::Handle, listener.to_le_bytes().to_vec()))
        }
        Primitive::NetAccept => {
            let admits = |address| !is_denied(call, address);
            let accepted = hands.accept(handle, number(call, 1), &admits).await;
            let channel = shown.came(accepted)?;
            Ok(Done::new(Form::Handle, channel.to_le_bytes().to_vec()))
        }
        _ => Err(Fault::Unsupported),
    }
}

/// Where a call listens. A name would stand for whatever it resolves to.
fn address(call: &Authorized<'_>) -> Result<SocketAddr, Fault> {
    let (Some(Target::Host(host)), Some(Target::Port(port))) = (call.target(0), call.target(1))
    else {
        return Err(Fault::NotFound);
    };
    let address = match Host::parse(host) {
        Ok(Host::V4(address)) => IpAddr::V4(address),
        // The two forms of one address are one place.
        Ok(Host::V6(address)) => IpAddr::V6(address).to_canonical(),
        Ok(Host::Name(_)) | Err(_) => return Err(Fault::Address),
    };
    Ok((address, u16::try_from(*port).map_err(|_| Fault::NotFound)?).into())
}

/// Whether a deny entry covers an address, which no port or method changes.
fn is_denied(call: &Authorized<'_>, address: IpAddr) -> bool {
    let host = host_of(address);
    let place = Place { host, port: 0, method: Method::Listen, path: None, secrets: &[] };
    call.passed().scope.check_net(&place) == Err(Refusal::Denied)
}

/// What stands in a part of a held value.
fn part<F: Facts + Sync>(call: &Authorized<'_>, facts: &F) -> Result<Done, Fault> {
    let Argument::Held(held) = call.call().argument(0) else {
        return Err(Fault::NoMatch);
    };
    let rest = value(facts, held)?.get(as_usize(number(call, 1))..).unwrap_or_default();
    let length = as_usize(number(call, 2)).min(limits::REPLY);
    let bytes = rest.get(..length).unwrap_or(rest);
    Ok(Done::new(Form::Bytes, bytes.to_vec()))
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
    shown: &mut Shown<'_, '_>,
) -> Result<Done, Fault> {
    let limit = number(call, 2).min(limits::LIST);
    let directory = path(call, 0)?;
    let mut json = String::from("[");
    let mut after = text(call, 1, facts)?.into_owned();
    let mut count = 0;
    // A denied entry takes no place in the page, so that a short page is the last.
    while count < limit {
        let page = platform.list(directory, &after, limit.saturating_sub(count)).await?;
        shown.add(directory, &page.rest);
        for entry in &page.entries {
            let path = join(directory, &entry.name);
            if sight(call, &path) != Sight::Hidden {
                shown.add(&path, &entry.rest);
                write_entry(&mut json, entry);
                count = count.saturating_add(1);
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
pub(crate) fn sight(call: &Authorized<'_>, path: &str) -> Sight {
    if call.passed().scope.denies(path) {
        return Sight::Hidden;
    }
    let Ok(path) = NormalPath::parse(Cow::Borrowed(path)) else { return Sight::Unspelled };
    match call.passed().scope.check(&path, Rights::READ) {
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

fn journal(call: &Authorized<'_>, caller: Caller<'_>) -> Journal {
    let moved = call.path(0).map_or(Secrecy::NONE, |path| call.passed().scope.compartments(path));
    let stamp = Stamp {
        rest: Rest::of(call.justification(), caller.compartments),
        creator: caller.creator,
        carried: Names::of(moved, caller.compartments),
        owner: owner(call),
    };
    let (record, room, expects) = (call.record(), call.passed().room, call.expects());
    Journal { record, part: 0, room, expects, stamp }
}

/// A removal for a reason from outside that neither a warrant nor a human covers rests
/// on this alone, that it is of the task's own creation.
fn owner(call: &Authorized<'_>) -> Owner {
    let removes = call.call().primitive() == Primitive::FsDelete && call.cause().is_none();
    match call.justification().integrity {
        Integrity::Ingested if removes => Owner::Creator,
        Integrity::System | Integrity::User | Integrity::Ingested => Owner::Anyone,
    }
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
        let length = as_u64(bytes.len().saturating_add(piece.len()));
        if length > WHOLE_BYTES || bytes.try_reserve(piece.len()).is_err() {
            return Err(Fault::TooLarge);
        }
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
pub(crate) fn value(facts: &impl Facts, number: u64) -> Result<&[u8], Fault> {
    let held = facts.held(number).ok_or(Fault::NoMatch)?;
    let fault = |number| Fault::from_number(number).unwrap_or(Fault::Io);
    held.fault.map_or(Ok(held.bytes), |number| Err(fault(number)))
}

fn as_u64(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod census;
