//! A log as a whole: nothing can be put in, taken out, moved or rewritten
//! unseen, and no sentence is too long or too short for its record.

use core::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use synapse_abi::code::Refusal;
use synapse_abi::limits;
use synapse_abi::registry::{Argument, Kind as HandleKind, REGISTRY, Row, Type};
use synapse_boundary::scope::Pattern;
use synapse_boundary::{
    Facts, Held, Integrity, Label, Mark, Names, NormalPath, Opened, Origin, Request, Rights, Scope,
    Secrecy, Table, Warrants, commit, decide,
};
use synapse_kernel::record::{
    CHAIN, CONTENT, Durability, Event, HEADER, Kind, Log, RECORD, Sink, SinkFailed, tag,
};
use synapse_kernel::verify::{Broken, Reader};

/// Keeps the header and each frame apart.
#[derive(Debug, Default)]
struct Tape(Vec<Vec<u8>>);

impl Sink for Tape {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.0.push(frame.to_vec());
        Ok(())
    }
}

/// Every held value has these bytes.
struct Store(Vec<u8>);

impl Names for Store {}

impl Facts for Store {
    fn held(&self, _: u64) -> Option<Held<'_>> {
        Some(Held {
            label: Label::SYSTEM,
            bytes: &self.0,
            digest: [0; 32],
            fault: None,
            reply_of: None,
        })
    }

    fn journal_room(&self) -> u64 {
        u64::MAX
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        true
    }
}

/// A task that may do everything, and the log of what it tries.
struct World {
    scope: Scope,
    mark: Mark,
    store: Store,
    log: Log<Tape>,
}

impl World {
    fn new() -> Self {
        let mut scope = Scope::default();
        let all = Rights::LIST.and(Rights::READ).and(Rights::WRITE).and(Rights::DELETE);
        scope.allow(&Pattern::parse("/**").unwrap(), all);
        let mut mark = Mark::new(Label::SYSTEM);
        for record in 0..2 * limits::ORIGINS as u64 {
            mark.absorb(Label::new(Integrity::User, Secrecy::PROMPT, Origin::record(record)));
        }
        let log = Log::begin(Tape::default(), [7; 32]).unwrap();
        Self { scope, mark, store: Store(Vec::new()), log }
    }

    /// Decides and records one sentence.
    fn ask(&mut self, sentence: &[u8]) -> Result<(), Refusal> {
        let Self { scope, mark, store, log } = self;
        let table = &Table::new(u32::MAX);
        let mut warrants = Warrants::default();
        let request =
            Request { task: 1, mark, table, scope, calls_left: 1, warrants: &warrants, lines: &[] };
        let verdict = decide(request, store, sentence).unasked();
        match commit(verdict, log, &mut warrants, store, 1000).unwrap() {
            Opened::Permitted(_) | Opened::Minted(_) => Ok(()),
            Opened::Refused(refused) => Err(refused.refusal),
        }
    }

    fn note(&mut self, kind: Kind, text: &[u8]) {
        let event = Event {
            kind,
            task: 1,
            primitive: None,
            code: 0,
            label: Label::SYSTEM,
            cause: None,
            tail: Some((tag::TEXT, text)),
            durability: Durability::Soon,
        };
        self.log.note(&event, 1000).unwrap();
    }

    /// The header, then every frame.
    fn tape(&mut self) -> &[Vec<u8>] {
        &self.log.sink().0
    }

    /// A field of the latest record.
    fn field(&mut self, tag: u8) -> Option<Vec<u8>> {
        let log = self.tape().concat();
        let last = Reader::new(&log).last().unwrap().unwrap();
        last.field(tag).map(<[u8]>::to_vec)
    }
}

/// A log with a record of every sort, as its parts: the header, then frames.
fn written() -> Vec<Vec<u8>> {
    let mut world = World::new();
    world.note(Kind::TaskStart, b"{}");
    for (sentence, expected) in [
        (r#"{"name":"clock_read","arguments":{}}"#, Ok(())),
        (r#"{"name":"clock_read","arguments":{}}"#, Ok(())),
        (r#"{"name":"fs_delete","arguments":{"path":"/.."}}"#, Err(Refusal::AboveRoot)),
        ("nonsense", Err(Refusal::Malformed)),
        (r#"{"warrant":"fs_delete","arguments":{"path":"/a"},"uses":1}"#, Err(Refusal::NotCited)),
        (r#"{"name":"console_write","arguments":{"content":{"$held":1}}}"#, Ok(())),
    ] {
        assert_eq!(world.ask(sentence.as_bytes()), expected);
    }
    world.note(Kind::RunEnd, b"{}");
    let tape = world.tape().to_vec();
    assert_eq!(first_broken(&tape), None);
    tape
}

fn first_broken(tape: &[Vec<u8>]) -> Option<Broken> {
    Reader::new(&tape.concat()).find_map(Result::err)
}

/// A frame with this body that rests on the part before it, as anybody could
/// make it: the chain has no key.
fn forged(before: &[u8], body: &[u8]) -> Vec<u8> {
    let chain: [u8; CHAIN] = match before.len() {
        HEADER => Sha256::digest(before).into(),
        length => before[length - CHAIN..].try_into().unwrap(),
    };
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    frame.extend_from_slice(body);
    frame.extend_from_slice(&Sha256::digest([&chain[..], body].concat()));
    frame
}

fn body(frame: &[u8]) -> &[u8] {
    &frame[4..frame.len() - CHAIN]
}

/// Where in a record its sequence stands.
const SEQUENCE: core::ops::Range<usize> = 8..16;

#[test]
fn the_format_is_what_it_was() {
    let mut world = World::new();
    world.store.0 = b"/held/./path".to_vec();
    world.note(Kind::TaskStart, b"{}");
    for sentence in FORMAT {
        let _ = world.ask(sentence.as_bytes());
    }
    let target = "/data/secret";
    assert_eq!(
        hex(&Sha256::digest(world.tape().concat())),
        "365dde229e5f2a4aef86ea8caeb88b63193ab520d6a7c488b20962c4a78c6734",
        "a record written before could not be read, or would say something else"
    );
    for text in ["other", target] {
        world.store.0 = target.as_bytes().to_vec();
        let search = format!(
            r#"{{"name":"fs_search","arguments":{{"path":{{"$held":1}},"text":"{text}","offset":0}}}}"#
        );
        assert_eq!(world.ask(search.as_bytes()), Ok(()));
        assert_eq!(world.field(tag::TARGET), Some(target.into()), "whatever other arguments say");
    }
}

/// A sentence for every form that a tail can have.
const FORMAT: [&str; 9] = [
    r#"{"name":"clock_read","arguments":{}}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/a/../b"},"hold":true}"#,
    r#"{"name":"fs_delete","arguments":{"path":"/.."}}"#,
    r#"{"name":"fs_move","arguments":{"from":{"$held":1},"to":"/c"}}"#,
    r#"{"name":"net_listen","arguments":{"host":"a.example","port":1}}"#,
    r#"{"name":"fs_write","arguments":{"path":"/a","content":{"parts":["0123456789012345678901234567890123456789",{"$held":2}]},"mode":"replace"}}"#,
    r#"{"name":"net_http_get","arguments":{"url":"https://a.example/","headers":{"a":{"$held":7}}}}"#,
    r#"{"warrant":"fs_delete","arguments":{"path":"/a/../b"},"uses":1}"#,
    "nonsense",
];

/// Takes so many frames and no more, until it is mended.
#[derive(Debug)]
struct Full(usize);

impl Sink for Full {
    fn append(&mut self, _: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.0 = self.0.checked_sub(1).ok_or(SinkFailed)?;
        Ok(())
    }
}

#[test]
fn i3_nothing_is_recorded_after_a_record_was_lost() {
    let World { scope, mark, store, .. } = World::new();
    let table = Table::new(u32::MAX);
    let mut log = Log::begin(Full(2), [0; 32]).unwrap();
    let mut ask = |sentence: &'static str, room| {
        log.sink().0 += room;
        let mut warrants = Warrants::default();
        let request = Request {
            task: 1,
            mark: &mark,
            table: &table,
            scope: &scope,
            calls_left: 1,
            warrants: &warrants,
            lines: &[],
        };
        let verdict = decide(request, &store, sentence.as_bytes()).unasked();
        commit(verdict, &mut log, &mut warrants, &store, 0)
            .map(|opened| matches!(opened, Opened::Permitted(_)))
    };
    assert_eq!(ask(FORMAT[0], 0), Ok(true));
    assert_eq!(ask(FORMAT[0], 0), Err(SinkFailed));
    assert_eq!(ask(FORMAT[0], 9), Err(SinkFailed), "a gap in the log is never written over");
    assert_eq!(ask("", 9), Err(SinkFailed), "nor is a refusal told");
}

#[test]
fn i3_records_taken_out_are_found_at_the_first_that_is_missing() {
    let whole = written();
    let count = whole.len() - 1;
    for from in 0..count {
        for to in from + 1..=count {
            let mut tape = whole.clone();
            tape.drain(from + 1..=to);
            // What is left is a log that was cut off: it lacks its end, and
            // `Kind::RunEnd` says whether it has one.
            let expected = (to < count).then_some(Broken::Record(from as u64));
            assert_eq!(first_broken(&tape), expected, "{from}..{to}");
        }
    }
}

#[test]
fn i3_records_that_changed_places_are_found_at_the_earlier_place() {
    let whole = written();
    for later in 2..whole.len() {
        for earlier in 1..later {
            let mut tape = whole.clone();
            tape.swap(earlier, later);
            let named = Broken::Record(earlier as u64 - 1);
            assert_eq!(first_broken(&tape), Some(named), "{earlier} and {later}");
        }
    }
}

#[test]
fn i3_a_record_put_in_again_is_found_where_it_stands() {
    let whole = written();
    for copied in 1..whole.len() {
        for at in 1..=whole.len() {
            let mut tape = whole.clone();
            tape.insert(at, whole[copied].clone());
            // Before itself, it is the original that stands too late.
            let place = if at == copied { at + 1 } else { at };
            let named = Broken::Record(place as u64 - 1);
            assert_eq!(first_broken(&tape), Some(named), "{copied} at {at}");
        }
    }
}

#[test]
fn i3_a_forged_record_is_found_at_the_one_that_rests_on_what_was_there() {
    let whole = written();
    for at in 1..whole.len() {
        let next = Broken::Record(at as u64);
        let mut lie = body(&whole[at]).to_vec();
        *lie.last_mut().unwrap() ^= 1;
        let lie = forged(&whole[at - 1], &lie);

        let mut altered = whole.clone();
        altered[at].clone_from(&lie);
        if at + 1 < whole.len() {
            assert_eq!(first_broken(&altered), Some(next), "altered {at}");
        } else {
            // The last one rests on nothing: only its chain value tells, where
            // it was kept elsewhere.
            assert_ne!(altered[at][lie.len() - CHAIN..], whole[at][whole[at].len() - CHAIN..]);
        }

        let mut inserted = whole.clone();
        inserted.insert(at, lie.clone());
        assert_eq!(first_broken(&inserted), Some(next), "inserted at {at}");

        // A number that was given before is found at once.
        let mut late = body(&lie).to_vec();
        late[SEQUENCE].copy_from_slice(&(at as u64).to_le_bytes());
        let mut misnumbered = whole.clone();
        misnumbered[at] = forged(&whole[at - 1], &late);
        let named = Broken::Record(at as u64 - 1);
        assert_eq!(first_broken(&misnumbered), Some(named), "misnumbered {at}");
    }
}

#[test]
fn a_record_of_the_longest_sentences_stays_within_its_bound() {
    let mut world = World::new();
    world.store.0 = longest_path(0).into_bytes();
    for row in &REGISTRY {
        let _ = world.ask(call(row, |argument| longest(argument, 0)).as_bytes());
        assert!(world.field(tag::SENTENCE).is_some(), "{}: a sentence", row.name);
        for one in row.arguments {
            let more = |argument: &Argument| longest(argument, (argument.name == one.name).into());
            if more(one) != longest(one, 0) {
                let told = world.ask(call(row, more).as_bytes());
                assert_eq!(told, Err(Refusal::TooLong), "{}: {}", row.name, one.name);
            }
        }
    }
    for argument in ["tool_use", "tool_commit"] {
        let arguments = picked(limits::JSON);
        let warrant = format!(
            r#"{{"warrant":"{argument}","arguments":{{"tool":{},"arguments":{arguments}}},"uses":64}}"#,
            quoted(&name(limits::TEXT))
        );
        assert_eq!(world.ask(warrant.as_bytes()), Err(Refusal::OutOfScope));
    }
    let held = r#"{"name":"fs_move","arguments":{"from":{"$held":1},"to":{"$held":2}}}"#;
    assert_eq!(world.ask(held.as_bytes()), Ok(()));
    assert_eq!(world.field(tag::TARGET).unwrap().len(), 2 * (limits::PATH - 1) + 1);
    let most = world.tape().iter().map(Vec::len).max().unwrap();
    assert!((limits::JSON..=RECORD).contains(&most), "{most} bytes");
    assert_eq!(first_broken(world.tape()), None);
}

/// A call of this row, each argument by the function.
fn call(row: &Row, value: impl Fn(&Argument) -> String) -> String {
    let arguments: Vec<String> = row
        .arguments
        .iter()
        .map(|argument| format!(r#""{}":{}"#, argument.name, value(argument)))
        .collect();
    format!(r#"{{"name":"{}","arguments":{{{}}},"hold":true}}"#, row.name, arguments.join(","))
}

/// The longest value of an argument, and `more` bytes where only a counter
/// limits it.
fn longest(argument: &Argument, more: usize) -> String {
    match argument.ty {
        Type::Text => quoted(&"x".repeat(limits::TEXT + more)),
        Type::Path => quoted(&longest_path(more)),
        Type::Url => quoted(&format!("https://a/{}", "x".repeat(limits::URL - 10 + more))),
        Type::Host => quoted(&[63, 63, 63, 61].map(|length| "a".repeat(length)).join(".")),
        Type::Port => u16::MAX.to_string(),
        Type::Handle(HandleKind::Value) => reference(),
        Type::Uint | Type::Handle(_) => MOST.to_owned(),
        Type::Choice(words) => quoted(words.iter().max_by_key(|word| word.len()).unwrap()),
        Type::Name if argument.name == "tool" => quoted(&name(limits::TEXT + more)),
        Type::Name => quoted(&"a".repeat(limits::TEXT + more)),
        Type::Json => filled(&vec![reference(); limits::HELD].join(","), limits::JSON + more),
        Type::Literal => filled("", limits::JSON + more),
        Type::Selector => selector(limits::SELECTOR + more),
        Type::Content => format!(r#"{{"parts":[{}]}}"#, quoted(&"x".repeat(1 << 18))),
        Type::Prompt => {
            let message = format!(r#"{{"role":"assistant","text":{}}}"#, quoted(&"x".repeat(4096)));
            format!("[{}]", vec![message; limits::PARTS].join(","))
        }
    }
}

const MOST: &str = "999999999999999";

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn reference() -> String {
    format!(r#"{{"$held":{MOST}}}"#)
}

fn name(length: usize) -> String {
    format!("a/{}", "b".repeat(length - 2))
}

/// Not normal, so that the record holds it a second time.
fn longest_path(more: usize) -> String {
    let component = format!("/{}", "a".repeat(255));
    let path = format!("/{}/{}", component.repeat(15), "a".repeat(254));
    assert_eq!(path.len(), limits::PATH);
    format!("{path}{}", "/".repeat(more))
}

/// A Json with these values, filled up to a length.
fn filled(values: &str, length: usize) -> String {
    let before = format!(r#"{{"a":[{values}],"b":""#);
    format!(r#"{before}{}"}}"#, "x".repeat(length - before.len() - 2))
}

/// A Json of a warrant, with as many selectors as go in.
fn picked(length: usize) -> String {
    filled(&vec![selector(40); limits::HELD].join(","), length)
}

fn selector(length: usize) -> String {
    let before = r#"{"$select":1,"take":""#;
    format!(r#"{before}{}"}}"#, "x".repeat(length - before.len() - 2))
}

#[test]
fn sentences_of_no_bytes_and_of_the_most_have_their_record() {
    let mut world = World::new();
    for (sentence, expected) in [
        (Vec::new(), Refusal::Malformed),
        (vec![0xff; 1 << 16], Refusal::Malformed),
        (vec![b'x'; limits::SENTENCE], Refusal::Malformed),
        (written_text(limits::SENTENCE + 1), Refusal::TooLong),
    ] {
        assert_eq!(world.ask(&sentence), Err(expected), "{} bytes", sentence.len());
        let shown = &sentence[..sentence.len().min(limits::SENTENCE)];
        let mut told = (sentence.len() as u64).to_le_bytes().to_vec();
        told.extend_from_slice(&Sha256::digest(shown));
        told.extend_from_slice(&sentence[..sentence.len().min(CONTENT)]);
        assert_eq!(world.field(tag::MALFORMED), Some(told), "{} bytes", sentence.len());
    }
    for length in [1 << 16, limits::SENTENCE] {
        let sentence = written_text(length);
        assert_eq!(world.ask(&sentence), Ok(()), "{length} bytes");
        let content = &sentence[BEFORE.len()..length - AFTER.len()];
        let digest = hex(&Sha256::digest(content));
        let told = format!(r#"{BEFORE}{{"$cut":[{},"{digest}"]}}{AFTER}"#, content.len());
        assert_eq!(world.field(tag::SENTENCE), Some(told.into_bytes()), "{length} bytes");
    }
    assert_eq!(world.tape().len() - 1, 6, "one record each");
}

const BEFORE: &str = r#"{"name":"console_write","arguments":{"content":"#;
const AFTER: &str = "}}";

/// A call of this many bytes.
fn written_text(length: usize) -> Vec<u8> {
    let text = "x".repeat(length - BEFORE.len() - AFTER.len() - 2);
    format!("{BEFORE}\"{text}\"{AFTER}").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
