//! A small world, searched whole: every order of what a task, its human and a crash
//! can do with two files, up to a depth.
//!
//! Beside the door stands a ledger, kept in the plainest way, of what each authority
//! came from. No permission may be found that the ledger does not know the source of,
//! and no source that gave more than it had.

use std::collections::{BTreeMap, HashSet};

use synapse_abi::code::Refusal;
use synapse_boundary::capability::Table;
use synapse_boundary::gates::Question;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::scope::{Pattern, Scope};
use synapse_boundary::{
    Authorized, Decided, Entry, Facts, Held, Integrity, Label, Mark, Names, NormalPath, Opened,
    Origin, Recorder, Request, Rights, Said, Secrecy, TurnEnd, Verdict, Warrants, answer, commit,
    decide, decide_answered,
};
use synapse_reply::Fault;

/// Steps of one life at most.
const DEPTH: usize = 7;
/// The files; each names the other.
const FILES: [&str; 2] = ["/data/t/a", "/data/t/b"];
const ALL: &str = "/data/t/*";
/// What the human types, a line a turn.
const LINES: [&str; 3] = ["delete /data/t/a", "delete what is in /data/t", "thanks"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(usize),
    Hold(usize),
    /// Releases what is held.
    Release,
    /// Writes what the guest says.
    Write(usize),
    /// Writes what is held.
    Copy(usize),
    Delete(usize, Human),
    /// Deletes what the held value names.
    Follow(Human),
    /// Deletes twice, both decided before either is recorded.
    Race(usize),
    Mint(&'static str, u8),
    /// Starts a child that gets a use of a warrant, in place of the one before.
    Move(&'static str),
    /// Starts two, both decided before either is recorded; the later one lives on.
    MoveTwice(&'static str),
    /// The child, which has read something, deletes.
    Child(usize),
    /// The turn ends, and the human types the next line.
    Turn,
    /// The guest breaks, and the turn is tried again.
    Crash,
}

/// What a human does who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Human {
    Absent,
    Yes,
    No,
    /// Says yes to the deletion of the other file, and the guest uses it for this.
    Misled,
}

const STEPS: [Step; 31] = [
    Step::Read(0),
    Step::Read(1),
    Step::Hold(0),
    Step::Hold(1),
    Step::Release,
    Step::Write(0),
    Step::Write(1),
    Step::Copy(0),
    Step::Copy(1),
    Step::Delete(0, Human::Absent),
    Step::Delete(1, Human::Absent),
    Step::Delete(0, Human::Yes),
    Step::Delete(1, Human::Yes),
    Step::Delete(0, Human::No),
    Step::Delete(0, Human::Misled),
    Step::Delete(1, Human::Misled),
    Step::Follow(Human::Absent),
    Step::Follow(Human::Yes),
    Step::Race(0),
    Step::Race(1),
    Step::Mint(FILES[0], 1),
    Step::Mint(FILES[0], 2),
    Step::Mint(FILES[1], 1),
    Step::Mint(ALL, 1),
    Step::Move(FILES[0]),
    Step::Move(ALL),
    Step::MoveTwice(FILES[0]),
    Step::Child(0),
    Step::Child(1),
    Step::Turn,
    Step::Crash,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct File {
    integrity: Integrity,
    text: &'static str,
    own: bool,
}

/// A held value: a file as it was, or that it was not there.
type Kept = Option<File>;

/// A warrant of this turn, as the ledger has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Lease {
    record: u64,
    pattern: &'static str,
    left: u8,
}

struct World {
    // What the door works with.
    mark: Mark,
    warrants: Warrants,
    lines: Vec<String>,
    records: u64,
    // What it is told of.
    files: [Option<File>; 2],
    kept: Option<Kept>,
    /// What the child may do.
    child: Warrants,
    // The ledger.
    tainted: bool,
    leases: Vec<Lease>,
    /// What the child has of them.
    sublet: Vec<Lease>,
    /// What the human gave at first for a pattern, and what of it was used.
    given: BTreeMap<&'static str, (u8, u8)>,
}

/// How often each thing happened.
#[derive(Debug, Default)]
struct Seen {
    untainted: usize,
    own: usize,
    warranted: usize,
    confirmed: usize,
    refused: usize,
    minted: usize,
    again: usize,
    unminted: usize,
    moved: usize,
    unmoved: usize,
    by_child: usize,
    child_refused: usize,
}

/// What stands in the ledger when a deletion is decided.
#[derive(Clone, Copy)]
struct Ground {
    path: Option<&'static str>,
    tainted: bool,
    own: bool,
    /// The record of a yes to this very sentence.
    yes: Option<u64>,
}

impl World {
    fn new() -> Self {
        let file = |other| File { integrity: Integrity::Ingested, text: other, own: false };
        Self {
            mark: Mark::new(typed()),
            warrants: Warrants::default(),
            lines: vec![LINES[0].into()],
            records: 0,
            files: [Some(file(FILES[1])), Some(file(FILES[0]))],
            kept: None,
            child: Warrants::NONE,
            tainted: false,
            leases: Vec::new(),
            sublet: Vec::new(),
            given: BTreeMap::new(),
        }
    }

    /// Takes a step; whether there was one to take.
    fn take(&mut self, step: Step, scope: &Scope, seen: &mut Seen) -> bool {
        match step {
            Step::Read(file) => {
                let sentence = read(file);
                self.permitted(&sentence, scope);
                self.learn(self.files[file]);
            }
            Step::Hold(file) => {
                let sentence = read(file).replace("}}", "},\"hold\":true}");
                self.permitted(&sentence, scope);
                self.kept = Some(self.files[file]);
            }
            Step::Release => {
                let Some(kept) = self.kept else { return false };
                let sentence = r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":9}}"#;
                self.permitted(sentence, scope);
                self.learn(kept);
            }
            Step::Write(file) => {
                let sentence = write(file, "\"x\"");
                self.permitted(&sentence, scope);
                self.write(file, "x", self.tainted);
            }
            Step::Copy(file) => {
                let Some(kept) = self.kept else { return false };
                let sentence = write(file, r#"{"$held":1}"#);
                self.permitted(&sentence, scope);
                match kept {
                    Some(kept) => self.write(file, kept.text, self.tainted || bad(Some(kept))),
                    None => self.learn(None),
                }
            }
            Step::Delete(file, human) => {
                let ground = Ground {
                    path: Some(FILES[file]),
                    tainted: self.tainted,
                    own: self.files[file].is_some_and(|file| file.own),
                    yes: None,
                };
                let other = delete(&format!("\"{}\"", FILES[1 - file]));
                let sentence = delete(&format!("\"{}\"", FILES[file]));
                return self.ask(&sentence, &other, human, ground, scope, seen);
            }
            Step::Follow(human) => {
                let Some(kept) = self.kept else { return false };
                let path = kept.map(|kept| kept.text);
                let named = FILES.iter().position(|file| path == Some(*file));
                let ground = Ground {
                    path: named.map(|file| FILES[file]),
                    tainted: self.tainted || bad(kept),
                    own: named.and_then(|file| self.files[file]).is_some_and(|file| file.own),
                    yes: None,
                };
                return self.ask(&delete(r#"{"$held":1}"#), "", human, ground, scope, seen);
            }
            Step::Race(file) => {
                let ground = Ground {
                    path: Some(FILES[file]),
                    tainted: self.tainted,
                    own: self.files[file].is_some_and(|file| file.own),
                    yes: None,
                };
                let sentence = delete(&format!("\"{}\"", FILES[file]));
                let request = request(self, scope);
                let both = [(); 2].map(|()| decide(request, &*self, sentence.as_bytes()).unasked());
                for verdict in both {
                    self.open(verdict, ground, seen);
                }
            }
            Step::Mint(pattern, uses) => self.mint(pattern, uses, scope, seen),
            Step::Move(pattern) => self.spawn(pattern, 1, scope, seen),
            Step::MoveTwice(pattern) => self.spawn(pattern, 2, scope, seen),
            Step::Child(file) => self.by_child(file, scope, seen),
            Step::Turn => {
                let Some(line) = LINES.get(self.lines.len()) else { return false };
                self.warrants.end_turn(TurnEnd::Final);
                self.lines.push((*line).into());
                self.mark = Mark::new(typed());
                (self.tainted, self.leases) = (false, Vec::new());
                self.end_child();
            }
            Step::Crash => {
                // Only what broke untainted may be tried again with what is left.
                let end = if self.tainted { TurnEnd::Final } else { TurnEnd::Retried };
                self.warrants.end_turn(end);
                self.leases.clear();
                self.end_child();
            }
        }
        let tainted = self.mark.label().integrity == Integrity::Ingested;
        assert_eq!(tainted, self.tainted, "the mark is what was shown");
        true
    }

    fn permitted(&mut self, sentence: &str, scope: &Scope) {
        let verdict = decide(request(self, scope), &*self, sentence.as_bytes()).unasked();
        let opened = self.commit(verdict);
        assert!(matches!(opened, Opened::Permitted(_)), "{sentence}");
    }

    fn commit<'s>(&mut self, verdict: Verdict<'s>) -> Opened<'s> {
        let (mut tape, none) = (Tape(self.records), Nothing);
        let opened = commit(verdict, &mut tape, &mut self.warrants, &none, 0).unwrap();
        self.records = tape.0;
        opened
    }

    /// What is shown raises the mark by its label; that something is not there is
    /// for anybody to decide.
    fn learn(&mut self, file: Option<File>) {
        let integrity = file.map_or(Integrity::Ingested, |file| file.integrity);
        self.mark.absorb(Label::new(integrity, Secrecy::NONE, Origin::NONE));
        self.tainted |= bad(file);
    }

    fn write(&mut self, file: usize, text: &'static str, tainted: bool) {
        let integrity = if tainted { Integrity::Ingested } else { Integrity::User };
        let own = self.files[file].is_none_or(|file| file.own);
        self.files[file] = Some(File { integrity, text, own });
    }

    /// Has a deletion decided, with a human who does this if they are asked.
    fn ask(
        &mut self,
        sentence: &str,
        other: &str,
        human: Human,
        mut ground: Ground,
        scope: &Scope,
        seen: &mut Seen,
    ) -> bool {
        let asked = if human == Human::Misled { other } else { sentence };
        let decided = decide(request(self, scope), &*self, asked.as_bytes());
        let verdict = match (decided, human) {
            (Decided::Ask(question), Human::Yes | Human::No | Human::Misled) => {
                let said = if human == Human::No { Said::No } else { Said::Yes };
                let mut tape = Tape(self.records);
                let answer = answer(question, (said, "tape"), None, &mut tape, 0).unwrap();
                self.records = tape.0;
                ground.yes = (human == Human::Yes).then_some(answer.record());
                decide_answered(request(self, scope), &*self, sentence.as_bytes(), answer)
            }
            (decided, Human::Absent) => decided.unasked(),
            // Nobody was asked: as without anybody.
            (Decided::Final(_), Human::Yes | Human::No | Human::Misled) => return false,
        };
        self.open(verdict, ground, seen);
        true
    }

    /// Records a deletion, does it if it is permitted, and asks the ledger why it was.
    fn open(&mut self, verdict: Verdict<'_>, ground: Ground, seen: &mut Seen) {
        match self.commit(verdict) {
            Opened::Permitted(call) => {
                self.account(&call, ground, seen);
                let file = FILES.iter().position(|file| ground.path == Some(*file));
                match file.and_then(|file| self.files[file].take()) {
                    Some(_) => {}
                    None => self.learn(None),
                }
            }
            Opened::Refused(refused) => {
                seen.refused += 1;
                self.mark.absorb(refused.label);
                self.tainted |= refused.label.integrity == Integrity::Ingested;
            }
            Opened::Minted(_) => unreachable!("no warrant is asked for here"),
        }
    }

    /// Each deletion after a reading has one source, which had it to give.
    fn account(&mut self, call: &Authorized<'_>, ground: Ground, seen: &mut Seen) {
        let Ground { path, tainted, own, yes } = ground;
        let cause = call.cause();
        let lease = self.leases.iter_mut().find(|lease| Some(lease.record) == cause);
        assert!(!own || lease.is_none(), "a warrant is not spent on what is one's own: {call:?}");
        if own || (!tainted && lease.is_none()) {
            seen.untainted += usize::from(!tainted);
            seen.own += usize::from(tainted);
        } else if let Some(lease) = lease {
            assert!(lease.pattern == ALL || Some(lease.pattern) == path, "{lease:?} for {call:?}");
            lease.left = lease.left.checked_sub(1).unwrap();
            let pattern = lease.pattern;
            self.spend(pattern);
            seen.warranted += 1;
        } else {
            assert!(yes.is_some() && cause == yes, "nobody allowed this: {call:?}");
            seen.confirmed += 1;
        }
    }

    fn mint(&mut self, pattern: &'static str, uses: u8, scope: &Scope, seen: &mut Seen) {
        let sentence = format!(
            r#"{{"warrant":"fs_delete","arguments":{{"path":"{pattern}"}},"uses":{uses}}}"#
        );
        let verdict = decide(request(self, scope), &*self, sentence.as_bytes()).unasked();
        match self.commit(verdict) {
            Opened::Minted(record) => {
                let folder = pattern.trim_end_matches("/*");
                let cites = |line: &String| line.split(' ').any(|token| token == folder);
                assert!(self.lines.iter().any(cites), "no line names {pattern}");
                assert!(!self.tainted, "{pattern} after a reading");
                seen.again += usize::from(self.given.contains_key(pattern));
                let (first, spent) = *self.given.entry(pattern).or_insert((uses, 0));
                self.leases.push(Lease { record, pattern, left: uses });
                let live = self.leases.iter().filter(|lease| lease.pattern == pattern);
                let live: u8 = live.map(|lease| lease.left).sum();
                assert!(spent + live <= first, "{pattern}: {spent} and {live} of {first}");
                seen.minted += 1;
            }
            Opened::Refused(refused) => {
                self.mark.absorb(refused.label);
                seen.unminted += 1;
            }
            Opened::Permitted(_) => unreachable!("a warrant is no call"),
        }
    }

    /// A use that moves is spent where it was, whatever the child does with it.
    fn spawn(&mut self, pattern: &'static str, times: usize, scope: &Scope, seen: &mut Seen) {
        let sentence = format!(
            r#"{{"name":"agent_spawn","arguments":{{"package":"a","task":"t","grant":{{"primitives":["fs_delete"],"warrants":["{{\"warrant\":\"fs_delete\",\"arguments\":{{\"path\":\"{pattern}\"}},\"uses\":1}}"]}}}}}}"#
        );
        let request = request(self, scope);
        let decided: Vec<_> =
            (0..times).map(|_| decide(request, &*self, sentence.as_bytes()).unasked()).collect();
        for verdict in decided {
            match self.commit(verdict) {
                Opened::Permitted(mut call) => {
                    self.end_child();
                    self.child = call.take_moved();
                    let had = |lease: &&mut Lease| lease.pattern == pattern && lease.left > 0;
                    let lease = self.leases.iter_mut().find(had).unwrap();
                    lease.left -= 1;
                    self.sublet.push(Lease { record: lease.record, pattern, left: 1 });
                    self.spend(pattern);
                    seen.moved += 1;
                }
                Opened::Refused(refused) => {
                    assert_eq!(refused.refusal.number(), 307);
                    let live = self.leases.iter().filter(|lease| lease.pattern == pattern);
                    assert_eq!(live.map(|lease| lease.left).sum::<u8>(), 0, "{pattern} was there");
                    seen.unmoved += 1;
                }
                Opened::Minted(_) => unreachable!("a spawn is no warrant"),
            }
        }
    }

    fn by_child(&mut self, file: usize, scope: &Scope, seen: &mut Seen) {
        let sentence = delete(&format!("\"{}\"", FILES[file]));
        let mark = Mark::new(Label::new(Integrity::Ingested, Secrecy::NONE, Origin::NONE));
        let (warrants, lines) = (core::mem::take(&mut self.child), &[]);
        let request = Request {
            task: 2,
            mark: &mark,
            table: &TABLE,
            scope,
            calls_left: 1,
            warrants: &warrants,
            lines,
        };
        let verdict = decide(request, &Nothing, sentence.as_bytes()).unasked();
        self.child = warrants;
        let mut tape = Tape(self.records);
        let opened = commit(verdict, &mut tape, &mut self.child, &Nothing, 0).unwrap();
        self.records = tape.0;
        let covers = |lease: &&mut Lease| {
            lease.left > 0 && (lease.pattern == ALL || lease.pattern == FILES[file])
        };
        let lease = self.sublet.iter_mut().find(covers);
        match (opened, lease) {
            (Opened::Permitted(call), Some(lease)) => {
                assert_eq!(call.cause(), Some(lease.record), "its cause is the mint's record");
                lease.left -= 1;
                self.files[file] = None;
                seen.by_child += 1;
            }
            (Opened::Refused(refused), None) => {
                assert_eq!(refused.refusal.number(), 301);
                seen.child_refused += 1;
            }
            (opened, lease) => panic!("{opened:?} by {lease:?}"),
        }
    }

    /// A child's warrants die with it, and with the turn of its parent.
    fn end_child(&mut self) {
        self.child.end_turn(TurnEnd::Final);
        self.sublet.clear();
    }

    fn spend(&mut self, pattern: &'static str) {
        let (first, spent) = self.given.get_mut(pattern).unwrap();
        *spent += 1;
        assert!(spent <= first, "the human said it for {first} uses, of {pattern}");
    }

    /// All that the future depends on. What has the number of a record is told apart
    /// by its place among those that live.
    fn key(&self) -> String {
        let mut warrants = format!("{:?}{:?}", self.warrants, self.child);
        for (place, lease) in self.leases.iter().chain(&self.sublet).enumerate() {
            warrants = warrants
                .replace(&format!("({}, Mint", lease.record), &format!("(live {place}, Mint"));
        }
        let leases: Vec<_> = self.leases.iter().map(|it| (it.pattern, it.left)).collect();
        let sublet: Vec<_> = self.sublet.iter().map(|it| (it.pattern, it.left)).collect();
        let Self { files, kept, tainted, given, .. } = self;
        let turn = self.lines.len();
        format!("{files:?}{kept:?}{tainted}{given:?}{leases:?}{sublet:?}{turn}{warrants}")
    }
}

/// No label of what the human typed falls below this.
fn typed() -> Label {
    Label::new(Integrity::User, Secrecy::NONE, Origin::NONE)
}

/// Whether others may have written what was read, or have seen to it that it was not.
fn bad(file: Kept) -> bool {
    file.is_none_or(|file| file.integrity == Integrity::Ingested)
}

fn request<'a, 's>(world: &'a World, scope: &'s Scope) -> Request<'a, 's> {
    let World { mark, warrants, lines, .. } = world;
    Request { task: 1, mark, table: &TABLE, scope, calls_left: 1, warrants, lines }
}

static TABLE: Table = Table::new(u32::MAX);

fn read(file: usize) -> String {
    let path = FILES[file];
    format!(r#"{{"name":"fs_read","arguments":{{"path":"{path}","offset":0,"length":9}}}}"#)
}

fn write(file: usize, content: &str) -> String {
    let path = FILES[file];
    format!(
        r#"{{"name":"fs_write","arguments":{{"path":"{path}","content":{content},"mode":"replace"}}}}"#
    )
}

fn delete(path: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":{path}}}}}"#)
}

impl Names for World {}

impl Facts for World {
    fn held(&self, number: u64) -> Option<Held<'_>> {
        let kept = self.kept.filter(|_| number == 1)?;
        let integrity = kept.map_or(Integrity::Ingested, |kept| kept.integrity);
        Some(Held {
            label: Label::new(integrity, Secrecy::NONE, Origin::NONE),
            bytes: kept.map_or("", |kept| kept.text).as_bytes(),
            digest: [0; 32],
            fault: kept.is_none().then_some(Fault::NotFound.number()),
            reply_of: None,
        })
    }

    fn journal_room(&self) -> u64 {
        1
    }

    fn is_own_creation(&self, path: &NormalPath<'_>) -> bool {
        let file = FILES.iter().position(|file| *file == path.as_str());
        file.and_then(|file| self.files[file]).is_some_and(|file| file.own)
    }

    fn attenuates(&self, _: &str) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Facts for a record that keeps none.
struct Nothing;

impl Names for Nothing {}

impl Facts for Nothing {
    fn held(&self, _: u64) -> Option<Held<'_>> {
        None
    }

    fn journal_room(&self) -> u64 {
        0
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }
}

/// Counts.
struct Tape(u64);

impl Recorder for Tape {
    fn record(&mut self, _: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        self.0 += 1;
        Ok(self.0)
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        self.0 += 1;
        Ok(self.0)
    }
}

#[test]
fn i9_i13_no_authority_exceeds_its_source_in_any_order_of_steps() {
    let mut scope = Scope::default();
    let all = [Rights::READ, Rights::WRITE, Rights::DELETE];
    scope.allow(
        &Pattern::parse("/data/**").unwrap(),
        all.into_iter().fold(Rights::NONE, Rights::and),
    );
    let mut seen = Seen::default();
    let mut known = HashSet::from([World::new().key()]);
    let (mut lives, mut taken) = (vec![Vec::new()], 0_usize);
    for depth in 1..=DEPTH {
        let mut next = Vec::new();
        for life in &lives {
            for step in STEPS {
                let mut world = World::new();
                // What was checked before is not counted again.
                let again = &mut Seen::default();
                let after = |step: &Step| world.take(*step, &scope, again);
                assert!(life.iter().all(after), "{life:?}");
                if !world.take(step, &scope, &mut seen) {
                    continue;
                }
                taken += 1;
                if known.insert(world.key()) {
                    next.push([life.as_slice(), &[step]].concat());
                }
            }
        }
        println!("{depth} steps: {} states, {taken} transitions", known.len());
        lives = next;
    }
    println!("{seen:?}");
    let Seen { untainted, own, warranted, confirmed, refused, minted, again, unminted, .. } = seen;
    let all = [untainted, own, warranted, confirmed, refused, minted, again, unminted];
    let Seen { moved, unmoved, by_child, child_refused, .. } = seen;
    let mut all = all.into_iter().chain([moved, unmoved, by_child, child_refused]);
    assert!(all.all(|count| count > 100), "each is met often: {seen:?}");
}
