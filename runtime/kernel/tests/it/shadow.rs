//! Random programs beside a shadow of them: what was shown, kept and destroyed, said
//! again so plainly that it is right by reading.
//!
//! A program goes on by what it saw, as a guest does. So one that is run twice over
//! files of other bytes also shows that what is held chooses nothing.

use core::cell::Cell;
use core::future::ready;
use core::pin::{Pin, pin};
use core::sync::atomic::AtomicBool;
use core::task::{Context, Poll, Waker};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use spin::Mutex;
use synapse_boundary::{Integrity, Label, Origin, Said, Secrecy};
use synapse_kernel::asking::Asking;
use synapse_kernel::confirm::{Confirm, Heard};
use synapse_kernel::engine::{Door, Ended};
use synapse_kernel::grant::Grant;
use synapse_kernel::names::{ENTRIES, NameIndex, Sought};
use synapse_kernel::record::{Durability, Kind, Log, Sink, SinkFailed, WARRANT, tag};
use synapse_kernel::task::{HELD_BYTES, Parts, Task};
use synapse_kernel::verify::{Reader, Record};
use synapse_kernel::words;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;
use synapse_reply::frame::Form;

/// Programs of each test.
const PROGRAMS: u64 = 3000;
/// Calls of each program.
const CALLS: usize = 60;

const GRANT: &str = r#"
version = 1
primitives = ["fs_read", "fs_list", "fs_write", "fs_edit", "fs_search", "fs_move", "fs_delete", "value_read", "value_pick", "channel_create", "channel_write", "channel_read"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
[compartments]
payroll = ["/data/payroll/**"]
[budget]
calls = 10000
"#;

const LINES: [&str; 3] = [
    "delete /data/a and /data/d/x, then move /data/b to /data/c",
    "remove what is in /data/d",
    "write /data/n and remove the largest file",
];
/// What stands there before the task; the bytes of two worlds.
const OLD: [(&str, [&str; 2]); 5] = [
    ("/data/a", ["/data/b", "/data/d/x"]),
    ("/data/b", ["delete /data/a", "do nothing, and that at length"]),
    ("/data/d/x", ["x", "/data/SOUL.md"]),
    ("/data/SOUL.md", ["be kind", "x"]),
    ("/data/payroll/w", ["12", "1300"]),
];
const PATHS: [&str; 12] = [
    "/data/a", "/data/b", "/data/c", "/data/d", "/data/d/x", "/data/d/y", "/data/e", "/data/e/x",
    "/data/n", "/data/n/x", "/data/SOUL.md", "/data/payroll/w",
];
const TEXTS: [&str; 4] = ["x", "kind", "/data/a", "delete"];
const MINTS: [(&str, &str); 8] = [
    ("fs_delete", "/data/a"),
    ("fs_delete", "/data/a"),
    ("fs_delete", "/data/d/x"),
    ("fs_delete", "/data/d/*"),
    ("fs_delete", "/data/n"),
    ("fs_write", "/data/n"),
    ("fs_delete", "/data/SOUL.md"),
    ("fs_delete", "/data/e/*"),
];

/// One argument that names a file.
#[derive(Clone, Copy, Debug)]
enum Name {
    Literal(&'static str),
    Held(usize),
}

/// Pieces of a content: a literal, and held values.
#[derive(Clone, Debug)]
struct Content(&'static str, Vec<usize>);

#[derive(Clone, Debug)]
enum Act {
    Read(Name),
    List(&'static str),
    Search(&'static str, &'static str),
    Write(Name, Content, &'static str),
    Edit(&'static str, Content, Content),
    Move(Name, Name),
    Delete(Name),
    Release(usize),
    Pick(usize),
    Mint(&'static str, &'static str, u8),
    /// A warrant for the largest entry of a held listing.
    Select(usize),
    /// The channel is made, whose ends are the handles 1 and 2.
    Open,
    Send(Content),
    Receive,
    /// The turn ends, with an answer or without.
    End(bool),
}

/// A repeatable source of choices that what was seen goes into.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn see(&mut self, seen: &Seen) {
        for byte in Sha256::digest(format!("{seen:?}")).iter().take(8) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.0 |= 1;
    }

    /// What a program does next, that holds so many values, and has sent so many
    /// messages that it did not receive.
    fn act(&mut self, held: usize, sent: usize, spells: bool) -> (Act, bool) {
        let keep = self.below(2) == 0;
        let act = match self.below(28) {
            0..5 => Act::Read(self.name(held, spells)),
            5 => Act::List(self.pick(&["/data", "/data/d", "/data/e"])),
            6 => Act::Search("/data", self.pick(&TEXTS)),
            7..11 => {
                let mode = self.pick(&["create", "replace", "append"]);
                Act::Write(self.name(held, spells), self.content(held), mode)
            }
            11 | 12 => Act::Edit(self.pick(&PATHS), self.content(held), self.content(held)),
            13 | 14 => Act::Move(self.name(held, spells), self.name(held, spells)),
            15..19 => Act::Delete(self.name(held, spells)),
            19 if held > 0 && self.below(4) == 0 => Act::Release(self.below(held)),
            20 if held > 0 => Act::Pick(self.below(held)),
            21 if held > 0 && self.below(2) == 0 => Act::Select(self.below(held)),
            // Full, it would be waited for.
            24 | 25 if sent < 50 => Act::Send(self.content(held)),
            26 | 27 => Act::Receive,
            23 if self.below(3) == 0 => Act::End(self.below(2) == 0),
            _ => {
                let (verb, path) = self.pick(&MINTS);
                Act::Mint(verb, path, self.pick(&[1, 1, 2]))
            }
        };
        (act, keep)
    }

    fn name(&mut self, held: usize, spells: bool) -> Name {
        if spells && held > 0 && self.below(8) == 0 {
            Name::Held(self.below(held))
        } else {
            Name::Literal(self.pick(&PATHS))
        }
    }

    fn content(&mut self, held: usize) -> Content {
        let pieces = if held == 0 { 0 } else { self.below(3) };
        Content(self.pick(&TEXTS), (0..pieces).map(|_| self.below(held)).collect())
    }
}

impl Name {
    fn written(self) -> String {
        match self {
            Self::Literal(path) => format!("\"{path}\""),
            Self::Held(place) => reference(place),
        }
    }
}

impl Content {
    fn written(&self) -> String {
        let held = self.1.iter().map(|place| format!(",{}", reference(*place)));
        format!("{{\"parts\":[\"{}\"{}]}}", self.0, held.collect::<String>())
    }
}

impl Act {
    /// The sentence; none where the guest is not who does it.
    fn written(&self, hold: bool) -> Option<String> {
        let call = |name: &str, arguments: String, holds: bool| {
            let end = if holds && hold { ",\"hold\":true}" } else { "}" };
            Some(format!("{{\"name\":\"{name}\",\"arguments\":{{{arguments}}}{end}"))
        };
        match self {
            Self::Read(path) => {
                let path = path.written();
                call("fs_read", format!("\"path\":{path},\"offset\":0,\"length\":999"), true)
            }
            Self::List(path) => {
                call("fs_list", format!("\"path\":\"{path}\",\"after\":\"\",\"limit\":99"), true)
            }
            Self::Search(path, text) => call(
                "fs_search",
                format!("\"path\":\"{path}\",\"text\":\"{text}\",\"offset\":0"),
                true,
            ),
            Self::Write(path, content, mode) => {
                let (path, content) = (path.written(), content.written());
                let arguments =
                    format!("\"path\":{path},\"content\":{content},\"mode\":\"{mode}\"");
                call("fs_write", arguments, false)
            }
            Self::Edit(path, old, new) => {
                let (old, new) = (old.written(), new.written());
                call("fs_edit", format!("\"path\":\"{path}\",\"old\":{old},\"new\":{new}"), false)
            }
            Self::Move(from, to) => {
                let (from, to) = (from.written(), to.written());
                call("fs_move", format!("\"from\":{from},\"to\":{to}"), false)
            }
            Self::Delete(path) => call("fs_delete", format!("\"path\":{}", path.written()), false),
            Self::Release(place) => {
                let value = reference(*place);
                call("value_read", format!("\"value\":{value},\"offset\":0,\"length\":999"), true)
            }
            Self::Pick(place) => {
                let (value, number) = (reference(*place), place + 1);
                let selector = format!("{{\"$select\":{number},\"take\":\"name\"}}");
                call("value_pick", format!("\"value\":{value},\"selector\":{selector}"), false)
            }
            Self::Mint(verb, path, uses) => Some(format!(
                "{{\"warrant\":\"{verb}\",\"arguments\":{{\"path\":\"{path}\"}},\"uses\":{uses}}}"
            )),
            Self::Select(place) => Some(format!(
                "{{\"warrant\":\"fs_delete\",\"arguments\":{{\"path\":{{\"$select\":{},\"order\":[\"max\",\"size\"],\"take\":\"path\"}}}},\"uses\":1}}",
                place + 1
            )),
            Self::Open => call("channel_create", "\"kind\":\"messages\"".to_owned(), false),
            Self::Send(content) => {
                let content = content.written();
                call("channel_write", format!("\"channel\":1,\"content\":{content}"), false)
            }
            Self::Receive => {
                call("channel_read", "\"channel\":2,\"max\":1048576,\"timeout\":0".to_owned(), true)
            }
            Self::End(_) => None,
        }
    }

    /// Places of the held values that it names.
    fn held(&self) -> Vec<usize> {
        let name = |name: &Name| match name {
            Name::Literal(_) => None,
            Name::Held(place) => Some(*place),
        };
        match self {
            Self::Read(path) | Self::Delete(path) => name(path).into_iter().collect(),
            Self::Write(path, content, _) => {
                name(path).into_iter().chain(content.1.iter().copied()).collect()
            }
            Self::Edit(_, old, new) => [old.1.as_slice(), &new.1].concat(),
            Self::Move(from, to) => name(from).into_iter().chain(name(to)).collect(),
            Self::Release(place) | Self::Pick(place) => vec![*place],
            Self::Send(content) => content.1.clone(),
            Self::List(_)
            | Self::Search(..)
            | Self::Mint(..)
            | Self::Select(_)
            | Self::Open
            | Self::Receive
            | Self::End(_) => Vec::new(),
        }
    }
}

fn reference(place: usize) -> String {
    format!("{{\"$held\":{}}}", place + 1)
}

/// What a guest sees of a call.
type Seen = Result<(Form, Integrity, Vec<u8>), u32>;

/// A file or a held value: its bytes, where the shadow knows them, and the least
/// label that it must have.
#[derive(Clone, Debug)]
struct Thing {
    bytes: Option<Vec<u8>>,
    label: Label,
    own: bool,
}

/// Why a permission may have been given, noted before it was.
#[derive(Debug)]
struct Ground {
    sentence: String,
    turn: usize,
    ingested: bool,
    own: bool,
    protected: bool,
    targets: Vec<Option<String>>,
    /// The primitive, the path and the uses of a warrant.
    minted: Option<(&'static str, &'static str, u8)>,
}

impl Ground {
    fn deletes(&self) -> bool {
        self.sentence.starts_with(r#"{"name":"fs_delete""#)
    }
}

/// The least that must hold of a task and its files.
struct Shadow {
    mark: Label,
    files: BTreeMap<String, Thing>,
    /// Whether the task made it.
    folders: BTreeMap<String, bool>,
    held: Vec<Thing>,
    /// What was sent and not received.
    sent: VecDeque<Thing>,
    turn: usize,
    grounds: HashMap<u64, Ground>,
}

impl Shadow {
    fn new(world: usize) -> Self {
        let old = |(path, bytes): &(&str, [&str; 2])| {
            let label = Label::new(Integrity::Ingested, Secrecy::FILES, Origin::NONE);
            let bytes = Some(bytes[world].into());
            ((*path).to_owned(), Thing { bytes, label: label.join(covering(path)), own: false })
        };
        let folders = ["/data", "/data/d", "/data/payroll"];
        Self {
            mark: START,
            files: OLD.iter().map(old).collect(),
            folders: folders.into_iter().map(|path| (path.to_owned(), false)).collect(),
            held: Vec::new(),
            sent: VecDeque::new(),
            turn: 0,
            grounds: HashMap::new(),
        }
    }

    /// What justifies an act.
    fn justification(&self, act: &Act) -> Label {
        act.held().iter().fold(self.mark, |label, place| label.join(self.held[*place].label))
    }

    /// The path that a name comes to, where the shadow knows.
    fn path(&self, name: Name) -> Option<String> {
        match name {
            Name::Literal(path) => Some(path.to_owned()),
            Name::Held(place) => {
                let path = str::from_utf8(self.held[place].bytes.as_deref()?).ok()?;
                path.starts_with("/data/").then(|| path.to_owned())
            }
        }
    }

    fn targets(&self, act: &Act) -> Vec<Option<String>> {
        match act {
            Act::Read(path) | Act::Write(path, ..) | Act::Delete(path) => vec![self.path(*path)],
            Act::Move(from, to) => vec![self.path(*from), self.path(*to)],
            Act::Edit(path, ..) => vec![Some((*path).to_owned())],
            _ => Vec::new(),
        }
    }

    /// Whether the task made all that has this name.
    fn is_own(&self, path: &str) -> bool {
        let files = self.files.iter().map(|(path, thing)| (path, thing.own));
        let folders = self.folders.iter().map(|(path, own)| (path, *own));
        let mut within =
            files.chain(folders).filter(|(other, _)| is_within(path, other)).peekable();
        within.peek().is_some() && within.all(|(_, own)| own)
    }

    fn ground(&self, act: &Act, sentence: &str) -> Ground {
        let targets = self.targets(act);
        let ingested = self.justification(act).integrity == Integrity::Ingested;
        let known = |test: &dyn Fn(&str) -> bool| targets.iter().flatten().any(|path| test(path));
        Ground {
            turn: self.turn,
            ingested,
            own: known(&|path| self.is_own(path)),
            protected: !matches!(act, Act::Read(_)) && known(&|path| path.ends_with("SOUL.md")),
            minted: match act {
                Act::Mint(verb, path, uses) => Some((verb, path, *uses)),
                Act::Select(_) => Some(("", "", 1)),
                _ => None,
            },
            sentence: sentence.to_owned(),
            targets,
        }
    }

    /// What an act that was answered so has shown or changed.
    fn apply(&mut self, act: &Act, seen: &Seen) {
        let why = self.justification(act);
        let form = match seen {
            Ok((form, ..)) => *form,
            Err(code) => {
                let files = Label::new(Integrity::Ingested, Secrecy::FILES, Origin::NONE);
                let depends = !act.held().is_empty();
                match (code, act) {
                    (500.., Act::Pick(_)) => {}
                    // At both ends of the channel is the task itself.
                    (500.., Act::Release(_) | Act::Send(_) | Act::Receive) => {
                        self.mark = self.mark.join(why);
                    }
                    (500.., _) => self.mark = self.mark.join(files).join(why),
                    (300.., _) if depends => self.mark = self.mark.join(why),
                    _ => {}
                }
                return;
            }
        };
        let shown = match act {
            Act::Read(path) => self.path(*path).and_then(|path| self.files.get(&path).cloned()),
            Act::List(folder) => Some(self.join(|path| parent(path) == *folder)),
            Act::Search(folder, _) => Some(self.join(|path| is_within(folder, path))),
            Act::Release(place) => Some(self.held[*place].clone()),
            Act::Edit(path, ..) => self.files.get(*path).cloned(),
            Act::Pick(_) => Some(Thing { bytes: None, label: why, own: false }),
            Act::Receive => Some(self.sent.pop_front().unwrap_or(Thing {
                bytes: None,
                label: Label::SYSTEM,
                own: false,
            })),
            _ => None,
        };
        if let (Act::Receive, Some(Thing { bytes: Some(sent), .. }), Ok((Form::Bytes, _, came))) =
            (act, &shown, seen)
        {
            assert_eq!(sent, came, "a message comes as it was sent");
        }
        match (form, shown) {
            (Form::Held, shown) => {
                let files = Label::new(Integrity::Ingested, Secrecy::FILES, Origin::NONE);
                // What is not there was for others to decide.
                let shown = shown.unwrap_or(Thing { bytes: None, label: files, own: false });
                self.held.push(Thing { label: shown.label.join(why), ..shown });
            }
            (_, Some(shown)) => self.mark = self.mark.join(shown.label),
            (_, None) => {}
        }
        self.change(act, why);
    }

    fn change(&mut self, act: &Act, why: Label) {
        match act {
            Act::Write(path, content, mode) => {
                // The shadow knows every value that spells a path.
                let path = self.path(*path).unwrap();
                let (bytes, old) = (self.bytes(content), self.files.get(&path).cloned());
                let (appends, own) = (*mode == "append", old.as_ref().is_none_or(|old| old.own));
                let thing = match old {
                    Some(old) if appends => Thing {
                        bytes: old.bytes.zip(bytes).map(|(old, new)| [old, new].concat()),
                        label: old.label.join(why),
                        own,
                    },
                    _ => Thing { bytes, label: why.join(covering(&path)), own },
                };
                self.make_parents(&path);
                self.files.insert(path, thing);
            }
            Act::Edit(path, old, new) => {
                let (old, new) = (self.bytes(old), self.bytes(new));
                let thing = self.files.get_mut(*path).unwrap();
                let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes?).ok();
                let (before, old, new) = (text(thing.bytes.take()), text(old), text(new));
                thing.label = thing.label.join(why);
                if let (Some(before), Some(old), Some(new)) = (before, old, new) {
                    thing.bytes = Some(before.replacen(&old, &new, 1).into_bytes());
                }
            }
            Act::Move(from, to) => {
                let (from, to) = (self.path(*from).unwrap(), self.path(*to).unwrap());
                let moved = |path: &str| format!("{to}{}", path.get(from.len()..).unwrap());
                let extracted = self.files.extract_if(.., |path, _| is_within(&from, path));
                let files: Vec<_> = extracted.collect();
                let extracted = self.folders.extract_if(.., |path, _| is_within(&from, path));
                let folders: Vec<_> = extracted.collect();
                self.make_parents(&to);
                self.folders.extend(folders.into_iter().map(|(path, own)| (moved(&path), own)));
                self.files.extend(files.into_iter().map(|(path, thing)| {
                    let label = thing.label.join(covering(&path)).join(covering(&moved(&path)));
                    (moved(&path), Thing { label, ..thing })
                }));
            }
            Act::Send(content) => {
                let bytes = self.bytes(content);
                self.sent.push_back(Thing { bytes, label: why, own: false });
            }
            Act::Delete(path) => {
                let path = self.path(*path).unwrap();
                self.files.retain(|other, _| !is_within(&path, other));
                self.folders.retain(|other, _| !is_within(&path, other));
            }
            _ => {}
        }
    }

    fn bytes(&self, content: &Content) -> Option<Vec<u8>> {
        content.1.iter().try_fold(content.0.as_bytes().to_vec(), |mut bytes, place| {
            bytes.extend_from_slice(self.held[*place].bytes.as_deref()?);
            Some(bytes)
        })
    }

    fn make_parents(&mut self, path: &str) {
        let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
        for folder in ends.map(|at| path.get(..at).unwrap()) {
            self.folders.entry(folder.to_owned()).or_insert(true);
        }
    }

    fn join(&self, shows: impl Fn(&str) -> bool) -> Thing {
        let files = self.files.iter().filter(|(path, _)| shows(path));
        let label = files.fold(Label::SYSTEM, |label, (_, thing)| label.join(thing.label));
        Thing { bytes: None, label, own: false }
    }
}

/// What the human typed, and no more.
const START: Label = Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE);

fn covering(path: &str) -> Label {
    let payroll = Secrecy::bit(Secrecy::NAMED).unwrap();
    let secrecy = if path.starts_with("/data/payroll/") { payroll } else { Secrecy::NONE };
    Label { secrecy, ..Label::SYSTEM }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn is_within(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn at_least(more: Label, less: Label) -> bool {
    more.integrity == more.integrity.join(less.integrity) && less.secrecy.is_within(more.secrecy)
}

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.0.lock().extend_from_slice(frame);
        Ok(())
    }
}

/// A human who says what comes to their mind.
struct Hand(Mutex<Random>);

impl Confirm for Hand {
    fn ask<'a>(&'a self, _: Asking) -> Pin<Box<dyn Future<Output = Heard> + Send + 'a>> {
        let said = self.0.lock().pick(&[Said::Yes, Said::No, Said::TimedOut]);
        Box::pin(ready(Heard { said, console: "a hand".to_owned() }))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

/// A program that runs, and its shadow.
struct Life {
    seed: u64,
    random: Random,
    files: Arc<Memory>,
    grant: Arc<Grant>,
    tape: Tape,
    task: Task<Memory, Tape>,
    last: Arc<Mutex<u64>>,
    shadow: Shadow,
    log: Vec<String>,
}

impl Life {
    fn new(seed: u64, world: usize) -> Self {
        let files = Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap());
        for (path, bytes) in OLD {
            files.place(path, bytes[world].as_bytes()).unwrap();
        }
        let grant = Arc::new(Grant::parse(GRANT).unwrap());
        let (tape, last) = (Tape::default(), Arc::new(Mutex::new(0)));
        let mut task = task(1, START, &files, &grant, &tape, &last)
            .confirmed_by(Arc::new(Hand(Mutex::new(Random::new(seed + 7)))));
        task.know(now(NameIndex::walk(&*files, &grant.scope, &Sought::ALL, ENTRIES)));
        let (random, shadow) = (Random::new(seed), Shadow::new(world));
        let mut life =
            Self { seed, random, files, grant, tape, task, last, shadow, log: Vec::new() };
        life.perform(&Act::Open, false);
        life
    }

    /// Does what comes next; what was done, and what was seen of it.
    fn step(&mut self, spells: bool) -> (Act, Option<Seen>) {
        let (values, sent) = (self.shadow.held.len(), self.shadow.sent.len());
        let (act, hold) = self.random.act(values, sent, spells);
        let seen = self.perform(&act, hold);
        (act, seen)
    }

    fn perform(&mut self, act: &Act, hold: bool) -> Option<Seen> {
        let Some(sentence) = act.written(hold) else {
            let broke = matches!(act, Act::End(true));
            self.task.end_turn(if broke { Err(Ended::Deadline) } else { Ok(()) });
            self.shadow.turn += 1;
            self.log.push(format!("the turn ends, broken: {broke}"));
            return None;
        };
        let (before, ground) = (self.task.mark(), self.shadow.ground(act, &sentence));
        let reply = now(self.task.submit(sentence.as_bytes()));
        let seen = reply.map(|reply| {
            let reply = synapse_guest::Reply::parse(reply.lower()).unwrap();
            (reply.form, reply.mark, reply.payload)
        });
        self.log.push(format!("{sentence} -> {seen:?}"));
        self.shadow.grounds.insert(*self.last.lock(), ground);
        self.shadow.apply(act, &seen);
        let mark = self.task.mark();
        assert!(at_least(mark, before), "{} the mark fell: {mark:?}", self.told());
        let least = self.shadow.mark;
        assert!(at_least(mark, least), "{} {mark:?} is below {least:?}", self.told());
        if let Ok((_, shown, _)) = &seen {
            assert_eq!(*shown, mark.integrity, "{} a reply tells the mark", self.told());
        }
        self.random.see(&seen);
        Some(seen)
    }

    /// Reads all that is left with a task that has read nothing.
    fn check_files(&self) {
        for (path, thing) in &self.shadow.files {
            let (tape, last) = (Tape::default(), Arc::default());
            let mut task = task(2, Label::SYSTEM, &self.files, &self.grant, &tape, &last);
            let sentence = Act::Read(Name::Literal("/data/a")).written(false).unwrap();
            let sentence = sentence.replace("/data/a", path);
            let reply = now(task.submit(sentence.as_bytes()));
            let bytes = reply.map_err(|code| format!("{} {path}: {code}", self.told()));
            let bytes = bytes.unwrap().lower();
            let (mark, floor) = (task.mark(), thing.label.join(covering(path)));
            assert!(at_least(mark, floor), "{} {path}: {mark:?} for {floor:?}", self.told());
            if let Some(known) = &thing.bytes {
                let reply = synapse_guest::Reply::parse(bytes).unwrap();
                assert_eq!(reply.payload, *known, "{} {path}", self.told());
            }
        }
    }

    /// Asks the log why each permission was given.
    fn check_log(&self, met: &Met) {
        let log = self.tape.0.lock().clone();
        let records: Vec<Record<'_>> = Reader::new(&log).collect::<Result<_, _>>().unwrap();
        let (mut answered, mut taken) = (HashSet::new(), HashMap::<u64, u8>::new());
        // What the human gave at first by the one place that names it, and what is left.
        let mut given = HashMap::<(&str, &str), u8>::new();
        for record in records.iter().filter(|it| it.kind == Kind::Decision && it.code == 0) {
            let ground = &self.shadow.grounds[&record.sequence];
            let why = || format!("{} {ground:?}", self.told());
            if record.class == WARRANT {
                assert!(!ground.ingested, "minted after a reading: {}", why());
                let (verb, path, uses) = ground.minted.unwrap();
                given.entry((verb, path)).or_insert(uses);
                let folder = path.trim_end_matches("/*");
                assert!(LINES.iter().any(|line| line.contains(folder)), "no line: {}", why());
                met.minted.set(met.minted.get() + 1);
                continue;
            }
            let cause = record
                .cause
                .map(|cause| records.iter().find(|record| record.sequence == cause).unwrap());
            let needs = ground.ingested && (ground.deletes() || ground.protected);
            match cause {
                None if !needs => {}
                None => {
                    assert!(ground.deletes() && ground.own && !ground.protected, "{}", why());
                    met.own.set(met.own.get() + 1);
                }
                Some(answer) if answer.kind == Kind::Answer => {
                    assert!(answered.insert(answer.sequence), "one answer, twice: {}", why());
                    let digest = &answer.field(tag::ANSWER).unwrap()[..32];
                    assert_eq!(digest, &Sha256::digest(&ground.sentence)[..], "{}", why());
                    assert_eq!(words::answer(answer).unwrap().0, Said::Yes, "{}", why());
                    met.confirmed.set(met.confirmed.get() + 1);
                }
                Some(warrant) => {
                    assert_eq!((warrant.kind, warrant.class), (Kind::Decision, WARRANT));
                    assert!(!ground.protected, "a warrant for a protected name: {}", why());
                    let minted = &self.shadow.grounds[&warrant.sequence];
                    let (verb, path, uses) = minted.minted.unwrap();
                    let spent = taken.entry(warrant.sequence).or_default();
                    *spent += 1;
                    assert!(*spent <= uses, "spent {spent} times of {uses}: {}", why());
                    if !path.is_empty() {
                        let left = given.get_mut(&(verb, path)).unwrap();
                        assert!(*left > 0, "one citation, again: {}", why());
                        *left -= 1;
                    }
                    assert_eq!(minted.turn, ground.turn, "of another turn: {}", why());
                    let folder = path.trim_end_matches('*');
                    let covers = |target: &Option<String>| {
                        target.as_ref().is_some_and(|target| target.starts_with(folder))
                    };
                    assert!(ground.targets.iter().all(covers), "{path}: {}", why());
                    met.warranted.set(met.warranted.get() + 1);
                }
            }
        }
        let held = self.shadow.files.values().filter(|it| it.label.integrity == Integrity::User);
        met.trusted.set(met.trusted.get() + held.count());
    }

    fn told(&self) -> String {
        format!("program {}:\n{}\n", self.seed, self.log.join("\n"))
    }
}

/// How often each thing happened.
#[derive(Debug, Default)]
struct Met {
    own: Cell<usize>,
    warranted: Cell<usize>,
    confirmed: Cell<usize>,
    minted: Cell<usize>,
    trusted: Cell<usize>,
}

fn task(
    id: u64,
    mark: Label,
    files: &Arc<Memory>,
    grant: &Arc<Grant>,
    tape: &Tape,
    last: &Arc<Mutex<u64>>,
) -> Task<Memory, Tape> {
    let last = Arc::clone(last);
    Task::new(Parts {
        run: [7; 32],
        id,
        mark,
        lines: LINES.map(String::from).into(),
        grant: Arc::clone(grant),
        journal_room: 1 << 20,
        held_room: HELD_BYTES,
        platform: Arc::clone(files),
        log: Arc::new(Mutex::new(Log::begin(tape.clone(), [7; 32]).unwrap())),
        watch: Arc::new(move |crossing| *last.lock() = crossing.record),
        cancel: Arc::new(AtomicBool::new(false)),
    })
}

#[test]
fn i6_i9_i13_i15_no_program_lowers_a_label_or_acts_without_a_reason() {
    let met = Met::default();
    for seed in 1..=PROGRAMS {
        let mut life = Life::new(seed, 0);
        for _ in 0..CALLS {
            life.step(true);
        }
        life.check_files();
        life.check_log(&met);
    }
    println!("{PROGRAMS} programs of {CALLS} calls: {met:?}");
    let Met { own, warranted, confirmed, minted, trusted } = met;
    let all = [own, warranted, confirmed, minted, trusted].map(Cell::into_inner);
    assert!(all.iter().all(|count| *count > 50), "each is met often: {all:?}");
}

/// A guest that goes on by what it saw goes on alike, whatever is in what it holds.
#[test]
fn i14_what_is_held_chooses_nothing() {
    let (mut alike, mut used, mut parted) = (0, 0, 0);
    for seed in 1..=PROGRAMS {
        let [mut one, mut other] = [0, 1].map(|world| Life::new(seed, world));
        for _ in 0..CALLS {
            let ((act, seen), (_, elsewhere)) = (one.step(false), other.step(false));
            if seen != elsewhere {
                let marks = [&one, &other].map(|life| life.task.mark().integrity);
                let both = [Integrity::Ingested; 2];
                assert_eq!(marks, both, "{}\n{}", one.told(), other.told());
                parted += 1;
                break;
            }
            alike += 1;
            used += usize::from(!act.held().is_empty());
        }
    }
    println!("{PROGRAMS} pairs: {alike} calls alike, {used} of what is held, {parted} parted");
    assert!(alike > 10_000 && used > 2000 && parted > 1000, "{alike}, {used}, {parted}");
}
