//! What a human's own line lets an agent do after it has read, and what it never does.

use synapse_abi::code::Refusal;
use synapse_abi::registry::Primitive;
use synapse_boundary::cite::Bearer;
use synapse_boundary::gates::Question;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::scope::{
    Decimal, Effect, HostPattern, Limit, Method, Net, Pattern, Rights, Terms, Tool, Verb,
};
use synapse_boundary::target::Target;
use synapse_boundary::{
    Decided, Entry, Facts, Held, Integrity, Label, Mark, Names, NormalPath, Opened, Origin,
    Recorder, Reply, Request, Said, Scope, Secrecy, Table, TurnEnd, Warrants, commit, decide,
    examine,
};

/// What a session came to for one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Minted(u64),
    /// With the warrant that covered it.
    Done(Option<u64>),
    /// All that is missing is a yes.
    Asked(u16),
    No(u16),
}

/// A held value: who wrote it, its bytes, what it is the whole reply of.
type Value = (Integrity, Vec<u8>, Option<(Primitive, Target<'static>, bool)>);

struct Store {
    files: Vec<&'static str>,
    mounts: Vec<(String, String)>,
    values: Vec<Value>,
    journal_room: u64,
}

struct Session {
    scope: Scope,
    lines: Vec<String>,
    store: Store,
    warrants: Warrants,
    mark: Mark,
    /// What becomes of records.
    takes: bool,
    records: u64,
    cause: Option<u64>,
    /// What learning the last refusal does.
    told: Label,
    /// What the last spawn moved to a child.
    moved: Warrants,
}

struct Log<'a>(bool, &'a mut u64, &'a mut Option<u64>);

impl Recorder for Log<'_> {
    fn record(&mut self, entry: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        *self.2 = entry.cause;
        *self.1 += 1;
        if self.0 { Ok(*self.1) } else { Err(SinkFailed) }
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        unreachable!("nobody answers here")
    }
}

impl Names for Store {
    fn exists(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.starts_with(path))
    }

    fn bearer(&self, name: &str) -> Bearer<'_> {
        let bears = |file: &&&str| file.rsplit('/').next() == Some(name);
        let found: Vec<_> = self.files.iter().filter(bears).collect();
        match found[..] {
            [] => Bearer::Nobody,
            [one] => Bearer::One(one),
            _ => Bearer::Several,
        }
    }

    fn mounts(&self) -> &[(String, String)] {
        &self.mounts
    }
}

impl Facts for Store {
    fn held(&self, number: u64) -> Option<Held<'_>> {
        let (integrity, bytes, origin) = self.values.get(usize::try_from(number).ok()? - 1)?;
        let reply_of = origin.as_ref().map(|(primitive, target, is_whole)| Reply {
            primitive: *primitive,
            target,
            is_whole: *is_whole,
        });
        let label = Label::new(*integrity, Secrecy::FILES, Origin::NONE);
        Some(Held { label, bytes, digest: [0; 32], fault: None, reply_of })
    }

    fn journal_room(&self) -> u64 {
        self.journal_room
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }

    fn attenuates(&self, _: &str) -> Result<(), Refusal> {
        Ok(())
    }
}

fn path(text: &str) -> Target<'static> {
    Target::Path(NormalPath::parse(text.to_owned().into()).unwrap())
}

fn mark(integrity: Integrity, secrecy: Secrecy) -> Mark {
    Mark::new(Label::new(integrity, secrecy, Origin::NONE))
}

impl Session {
    /// A session in which the human typed these lines.
    fn new(lines: &[&str]) -> Self {
        let mut scope = Scope::default();
        let all = [Rights::LIST, Rights::READ, Rights::WRITE, Rights::DELETE];
        let all = all.into_iter().fold(Rights::NONE, Rights::and);
        scope.allow(&Pattern::parse("/data/**").unwrap(), all);
        scope.deny(&Pattern::parse("/data/private/**").unwrap());
        let net = Net {
            methods: vec![Method::Get, Method::Post],
            ports: vec![443..=443],
            paths: vec!["/".into()],
            clear: Secrecy::PROMPT,
            own: Secrecy::NONE,
            secrets: Vec::new(),
            reads: false,
        };
        scope.net(HostPattern::parse("*.example").unwrap(), net);
        let amount = Decimal::parse("0").unwrap()..=Decimal::parse("50").unwrap();
        let pay = Tool {
            effect: Effect::Commit,
            limits: vec![("amount".into(), Limit::Within(amount))],
            terms: Terms { clear: Secrecy::PROMPT, ..Terms::default() },
            verb: Verb {
                arguments: [("to".into(), "person".into()), ("amount".into(), String::new())]
                    .into(),
                says: vec!["pay".into()],
                ..Verb::default()
            },
        };
        scope.tool("bank/pay", pay);
        let files = vec!["/data/a.md", "/data/sub/b.md", "/data/b.md", "/data/tmp/x"];
        Self {
            scope,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
            store: Store {
                files,
                mounts: vec![("/data".into(), "/home/a/notes".into())],
                values: Vec::new(),
                journal_room: 1,
            },
            warrants: Warrants::default(),
            mark: mark(Integrity::User, Secrecy::PROMPT),
            takes: true,
            records: 0,
            cause: None,
            told: Label::SYSTEM,
            moved: Warrants::NONE,
        }
    }

    /// Something from outside enters its memory.
    fn read(&mut self) {
        self.mark = mark(Integrity::Ingested, Secrecy::PROMPT.join(Secrecy::FILES));
    }

    /// The turn ends, and the next begins with a fresh memory.
    fn next_turn(&mut self, end: TurnEnd) {
        self.warrants.end_turn(end);
        self.mark = mark(Integrity::User, Secrecy::PROMPT);
    }

    fn hold(&mut self, bytes: &str, origin: Option<(Primitive, Target<'static>, bool)>) -> usize {
        self.store.values.push((Integrity::Ingested, bytes.into(), origin));
        self.store.values.len()
    }

    fn ask(&mut self, sentence: &str) -> Came {
        self.try_ask(sentence).unwrap()
    }

    fn try_ask(&mut self, sentence: &str) -> Result<Came, SinkFailed> {
        let table = Table::new(u32::MAX);
        let Self { scope, lines, store, warrants, mark, takes, records, cause, told, moved } = self;
        let request =
            Request { task: 0, mark, table: &table, scope, calls_left: 9, warrants, lines };
        let findings = examine(request, store, sentence.as_bytes());
        let decided = decide(request, store, sentence.as_bytes());
        let asked = matches!(decided, Decided::Ask(_));
        let mut log = Log(*takes, records, cause);
        let came = match commit(decided.unasked(), &mut log, warrants, store, 0)? {
            Opened::Minted(record) => Came::Minted(record),
            Opened::Permitted(mut call) => {
                *moved = call.take_moved();
                Came::Done(*cause)
            }
            Opened::Refused(refused) => {
                *told = refused.label;
                let number = refused.refusal.number();
                if asked { Came::Asked(number) } else { Came::No(number) }
            }
        };
        let said = findings.gates.iter().flatten().find_map(|gate| gate.err());
        let code = match came {
            Came::Minted(_) | Came::Done(_) => None,
            Came::Asked(code) | Came::No(code) => Some(code),
        };
        assert_eq!(said.map(Refusal::number), code, "{sentence}");
        if let Came::Done(warrant) = came {
            assert_eq!(findings.warrant, warrant, "{sentence}");
        }
        Ok(came)
    }

    /// A child that has read something, with what the last spawn moved to it.
    fn child(&mut self) -> Self {
        let warrants = core::mem::take(&mut self.moved);
        let mut child = Self { warrants, ..Self::new(&[]) };
        child.read();
        child
    }

    /// Mints, which works.
    fn mint(&mut self, sentence: &str) -> Came {
        match self.ask(sentence) {
            Came::Minted(record) => Came::Done(Some(record)),
            other => panic!("{sentence}: {other:?}"),
        }
    }
}

fn warrant(primitive: &str, arguments: &str, uses: u8) -> String {
    format!(r#"{{"warrant":"{primitive}","arguments":{{{arguments}}},"uses":{uses}}}"#)
}

fn for_deletion(path: &str) -> String {
    warrant("fs_delete", &format!(r#""path":"{path}""#), 1)
}

fn delete(path: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"{path}"}}}}"#)
}

/// Starts a child that gets these warrants.
fn spawn(warrants: &[&str]) -> String {
    let texts = warrants.iter().map(|it| format!("\"{}\"", it.replace('"', "\\\"")));
    let texts = texts.collect::<Vec<_>>().join(",");
    let grant = format!(r#"{{"primitives":["fs_delete"],"warrants":[{texts}]}}"#);
    format!(r#"{{"name":"agent_spawn","arguments":{{"package":"a","task":"t","grant":{grant}}}}}"#)
}

fn delete_held(number: usize) -> String {
    delete("").replace("\"\"", &format!(r#"{{"$held":{number}}}"#))
}

fn get(url: &str) -> String {
    format!(r#"{{"name":"net_http_get","arguments":{{"url":"{url}","headers":{{}}}}}}"#)
}

fn post(url: &str, content: &str) -> String {
    format!(
        r#"{{"name":"net_http_post","arguments":{{"url":"{url}","headers":{{}},"content":{content}}}}}"#
    )
}

fn pay(arguments: &str) -> String {
    format!(
        r#"{{"name":"tool_commit","arguments":{{"tool":"bank/pay","arguments":{{{arguments}}}}}}}"#
    )
}

fn for_paying(arguments: &str) -> String {
    warrant("tool_commit", &format!(r#""tool":"bank/pay","arguments":{{{arguments}}}"#), 1)
}

#[test]
fn i13_what_the_human_named_may_go_after_reading_as_often_as_the_warrant_says() {
    let mut session = Session::new(&["delete /data/a.md and b.md in sub/, and tidy up"]);
    let by = session.mint(&for_deletion("/data/a.md"));
    session.read();
    assert_eq!(session.ask(&delete("/data/a.md")), by, "its cause is the warrant's record");
    assert_eq!(session.ask(&delete("/data/a.md")), Came::Asked(301), "spent");
    assert_eq!(session.ask(&delete("/data/b.md")), Came::Asked(301), "never minted");
}

#[test]
fn i13_a_call_that_needs_no_warrant_yet_spends_it() {
    let mut session = Session::new(&["delete /data/a.md"]);
    let by = session.mint(&for_deletion("/data/a.md"));
    assert_eq!(session.ask(&delete("/data/b.md")), Came::Done(None), "none is for it");
    assert_eq!(session.ask(&delete("/data/a.md")), by);
    assert_eq!(session.ask(&delete("/data/a.md")), Came::Done(None), "nothing was read yet");
    session.read();
    assert_eq!(session.ask(&delete("/data/a.md")), Came::Asked(301), "once was enough");
}

#[test]
fn i13_no_warrant_is_minted_after_reading_nor_for_what_was_not_typed() {
    let mut session = Session::new(&["delete /data/a.md", "summarise /data", "meet on June 13"]);
    for (sentence, code) in [
        (for_deletion("/data/tmp/x"), 306),
        // The basename of a file elsewhere.
        (for_deletion("/data/sub/a.md"), 306),
        (for_deletion("/data/tmp/*"), 306),
        (for_deletion("/data/**"), 306),
        (for_deletion("/data"), 306),
        (for_deletion("/data/13"), 306),
        (for_deletion("/data/private/a.md"), 306),
        (for_deletion("/../x"), 404),
    ] {
        assert_eq!(session.ask(&sentence), Came::No(code), "{sentence}");
    }
    session.read();
    assert_eq!(session.ask(&for_deletion("/data/a.md")), Came::No(305));
}

#[test]
fn i13_a_refusal_for_a_name_tells_of_files_and_taints_nothing() {
    let mut session = Session::new(&["delete b.md"]);
    assert_eq!(session.ask(&for_deletion("/data/tmp/x")), Came::No(306));
    assert_eq!((session.told.integrity, session.told.secrecy), (Integrity::System, Secrecy::FILES));
    let listen = warrant("net_listen", r#""host":"127.0.0.1","port":8080"#, 1);
    assert_eq!(session.ask(&listen), Came::No(306));
    assert_eq!(session.told.secrecy, Secrecy::NONE);
}

#[test]
fn i13_one_citation_funds_one_warrant_a_session() {
    let mut session = Session::new(&["delete /data/a.md"]);
    session.mint(&for_deletion("/data/a.md"));
    assert_eq!(session.ask(&for_deletion("/data/a.md")), Came::No(307), "replayed");
    session.next_turn(TurnEnd::Final);
    session.read();
    assert_eq!(session.ask(&delete("/data/a.md")), Came::Asked(301), "it died with its turn");
    session.next_turn(TurnEnd::Final);
    assert_eq!(session.ask(&for_deletion("/data/a.md")), Came::No(307));
    // Typed again, it is asked for again; another verb is another thing.
    session.lines.push("now delete /data/a.md".into());
    session.mint(&for_deletion("/data/a.md"));
    let edit = warrant("fs_edit", r#""path":"/data/a.md""#, 1);
    session.mint(&edit);
    assert!(matches!(session.ask(&for_deletion("/data/a.md")), Came::No(307)));
}

#[test]
fn i13_what_a_broken_turn_left_its_retry_may_mint_and_nobody_later() {
    let three = warrant("fs_delete", r#""path":"/data/a.md""#, 3);
    let mut session = Session::new(&["delete /data/a.md"]);
    session.mint(&three);
    // A fault of the turn, after one use; what it read it never acted upon.
    session.read();
    session.ask(&delete("/data/a.md"));
    session.next_turn(TurnEnd::Retried);
    assert_eq!(session.ask(&three), Came::No(307), "two are left");
    session.mint(&warrant("fs_delete", r#""path":"/data/a.md""#, 2));
    assert_eq!(session.ask(&for_deletion("/data/a.md")), Came::No(307));
    session.next_turn(TurnEnd::Final);
    assert_eq!(session.ask(&for_deletion("/data/a.md")), Came::No(307));
    let mut session = Session::new(&["delete /data/a.md"]);
    session.mint(&three);
    session.next_turn(TurnEnd::Retried);
    session.next_turn(TurnEnd::Final);
    assert_eq!(session.ask(&for_deletion("/data/a.md")), Came::No(307), "not its retry");
}

#[test]
fn i13_without_its_record_nothing_is_minted_or_spent() {
    let mut session = Session::new(&["delete /data/a.md"]);
    session.takes = false;
    assert_eq!(session.try_ask(&for_deletion("/data/a.md")), Err(SinkFailed));
    session.takes = true;
    let by = session.mint(&for_deletion("/data/a.md"));
    session.read();
    session.takes = false;
    assert_eq!(session.try_ask(&delete("/data/a.md")), Err(SinkFailed));
    session.takes = true;
    assert_eq!(session.ask(&delete("/data/a.md")), by);
}

#[test]
fn i13_two_decisions_never_share_one_use() {
    let mut session = Session::new(&["delete /data/a.md"]);
    let mint = for_deletion("/data/a.md");
    let table = Table::new(u32::MAX);
    let Session { scope, lines, store, warrants, records, cause, .. } = &mut session;
    let mut twice = |mark: &Mark, sentence: &str, warrants: &mut Warrants| {
        let request =
            Request { task: 0, mark, table: &table, scope, calls_left: 9, warrants, lines };
        let both = [(); 2].map(|()| decide(request, store, sentence.as_bytes()).unasked());
        both.map(|verdict| {
            let mut log = Log(true, records, cause);
            match commit(verdict, &mut log, warrants, store, 0).unwrap() {
                Opened::Minted(_) | Opened::Permitted(_) => 0,
                Opened::Refused(refused) => refused.refusal.number(),
            }
        })
    };
    let untainted = mark(Integrity::User, Secrecy::NONE);
    assert_eq!(twice(&untainted, &mint, warrants), [0, 307]);
    let tainted = mark(Integrity::Ingested, Secrecy::NONE);
    assert_eq!(twice(&tainted, &delete("/data/a.md"), warrants), [0, 307]);
}

#[test]
fn i13_a_pattern_needs_its_word_and_reaches_no_further() {
    let all = warrant("fs_delete", r#""path":"/data/tmp/*""#, 2);
    let mut session = Session::new(&["what is in /data/tmp ?"]);
    assert_eq!(session.ask(&all), Came::No(306));
    session.lines.push("delete all in /data/tmp".into());
    let by = session.mint(&all);
    session.read();
    assert_eq!(session.ask(&delete("/data/tmp/a/b")), Came::Asked(301));
    assert_eq!(session.ask(&delete("/data/tmp/.git")), Came::Asked(302), "protected");
    assert_eq!(session.ask(&delete("/data/tmp")), Came::Asked(301));
    assert_eq!(session.ask(&delete("/data/tmp/../tmp/x")), by);
    assert_eq!(session.ask(&delete("/data/tmp/y")), by);
    assert_eq!(session.ask(&delete("/data/tmp/z")), Came::Asked(301), "two uses");
}

#[test]
fn i13_a_move_is_named_at_both_ends() {
    let pair = |from, to| warrant("fs_move", &format!(r#""from":"{from}","to":"{to}""#), 1);
    let mut session = Session::new(&["move /data/a.md to /data/old/a.md"]);
    assert_eq!(session.ask(&pair("/data/a.md", "/data/new/a.md")), Came::No(306));
    assert_eq!(session.ask(&pair("/data/b.md", "/data/old/a.md")), Came::No(306));
    session.mint(&pair("/data/a.md", "/data/old/a.md"));
}

#[test]
fn i14_a_held_target_is_covered_where_it_says_what_the_warrant_says() {
    let mut session = Session::new(&["delete /data/a.md"]);
    let by = session.mint(&for_deletion("/data/a.md"));
    let (same, decoy) = (session.hold("/data/./a.md", None), session.hold("/data/b.md", None));
    assert_eq!(session.ask(&delete_held(decoy)), Came::Asked(301));
    assert_eq!(session.ask(&delete_held(same)), by);
}

const LISTING: &str = r#"[{"name":"a","kind":"file","size":3,"modified":1},{"name":"b","kind":"file","size":9,"modified":2}]"#;

#[test]
fn i13_a_selector_names_one_entry_of_a_whole_listing() {
    let largest = |number| {
        let selector = format!(r#"{{"$select":{number},"order":["max","size"],"take":"path"}}"#);
        warrant("fs_delete", &format!(r#""path":{selector}"#), 1)
    };
    let listing = |whole| Some((Primitive::FsList, path("/data/tmp"), whole));
    let mut session = Session::new(&["what is the largest file in /data/tmp ?"]);
    let whole = session.hold(LISTING, listing(true));
    let page = session.hold(LISTING, listing(false));
    let read = session.hold(LISTING, Some((Primitive::FsRead, path("/data/a.md"), true)));
    let made = session.hold(LISTING, None);
    assert_eq!(session.ask(&largest(whole)), Came::No(306), "no verb");
    session.lines.push("delete it, and delete the other one, delete more".into());
    for number in [read, made] {
        assert_eq!(session.ask(&largest(number)), Came::No(310), "no listing");
    }
    let by = session.mint(&largest(whole));
    session.mint(&largest(page));
    session.read();
    assert_eq!(session.ask(&delete("/data/tmp/a")), Came::Asked(301));
    let held = session.hold("/data/tmp/b", None);
    assert_eq!(session.ask(&delete_held(held)), by);
    assert_eq!(session.ask(&delete("/data/tmp/b")), Came::Asked(301), "a page is not all");
}

#[test]
fn i13_a_warrant_lets_the_prompt_and_files_out_and_no_named_compartment() {
    let url = "https://a.example/x";
    let fetch = warrant("net_http_get", &format!(r#""url":"{url}""#), 2);
    let mut session = Session::new(&["fetch a.example/x"]);
    let by = session.mint(&fetch);
    session.read();
    assert_eq!(session.ask(&get(url)), by);
    assert_eq!(session.ask(&get("https://a.example/y")), Came::Asked(304));
    session.mark = mark(Integrity::Ingested, Secrecy::bit(8).unwrap().join(Secrecy::FILES));
    assert_eq!(session.ask(&get(url)), Came::Asked(304));
}

#[test]
fn ten_fetches_need_no_question_until_files_were_read() {
    let mut session = Session::new(&["compare the ten mirrors"]);
    for number in 0..10 {
        let got = session.ask(&get(&format!("https://m{number}.example/")));
        assert_eq!(got, Came::Done(None));
        // What came says nothing of the human's files.
        session.mark = mark(Integrity::Ingested, Secrecy::PROMPT);
    }
    session.read();
    assert_eq!(session.ask(&get("https://m1.example/")), Came::Asked(304));
}

#[test]
fn a_question_tells_every_reason_for_which_a_call_was_stopped() {
    let mut session = Session::new(&[]);
    session.read();
    let (table, sentence) = (Table::new(u32::MAX), post("https://a.example/", "\"x\""));
    let request = Request {
        task: 0,
        mark: &session.mark,
        table: &table,
        scope: &session.scope,
        calls_left: 9,
        warrants: &session.warrants,
        lines: &[],
    };
    let Decided::Ask(question) = decide(request, &session.store, sentence.as_bytes()) else {
        panic!("it is final")
    };
    assert!(question.refusals().map(Refusal::number).eq([301, 304]));
}

#[test]
fn text_under_a_warrant_leads_nowhere_the_human_did_not() {
    let url = "https://a.example/in";
    let mut session = Session::new(&["send the notes in a.md to https://a.example/in"]);
    let by = session.mint(&warrant("net_http_post", &format!(r#""url":"{url}""#), 9));
    let named = Some((Primitive::FsRead, path("/data/a.md"), false));
    let notes = session.hold("see https://b.example/1", named);
    let other = session.hold("see https://b.example/1", None);
    let halves = session.hold("//b.example/1", None);
    session.read();
    let parts = |number| format!(r#"{{"parts":["https:",{{"$held":{number}}}]}}"#);
    for (content, came) in [
        (r#""plain words""#.to_owned(), by),
        (r#""https://a.example/other""#.to_owned(), by),
        (r#""https://evil.example/?d=1""#.to_owned(), Came::No(308)),
        (format!(r#"{{"$held":{notes}}}"#), by),
        (format!(r#"{{"$held":{other}}}"#), Came::No(308)),
        (format!(r#"{{"parts":["As said: ",{{"$held":{notes}}}]}}"#), Came::No(308)),
        (parts(halves), Came::No(308)),
    ] {
        assert_eq!(session.ask(&post(url, &content)), came, "{content}");
    }
    let header = post(url, r#""x""#).replace("{}", r#"{"a":"https://evil.example/"}"#);
    assert_eq!(session.ask(&header), Came::No(308));
}

#[test]
fn a_verb_is_fixed_by_arguments_that_were_typed_or_that_its_entry_limits() {
    let mut session = Session::new(&["pay 40 EUR to Bob Stone for the invoice"]);
    for (arguments, code) in [
        (r#""to":"Alice""#, 306),
        (r#""to":"Bob Stone","note":"hi""#, 306),
        (r#""amount":5"#, 306),
        ("", 310),
    ] {
        assert_eq!(session.ask(&for_paying(arguments)), Came::No(code), "{arguments}");
    }
    let by = session.mint(&for_paying(r#""to":"Bob Stone""#));
    assert_eq!(session.ask(&for_paying(r#""to":"Bob Stone""#)), Came::No(307), "funded");
    let (bob, eve) = (session.hold("Bob Stone", None), session.hold("Eve", None));
    session.mark = mark(Integrity::Ingested, Secrecy::NONE);
    for (arguments, came) in [
        (r#""to":"Eve","amount":40"#.to_owned(), Came::Asked(301)),
        (format!(r#""to":{{"$held":{eve}}},"amount":40"#), Came::Asked(301)),
        (r#""to":"Bob Stone","to":"Eve","amount":40"#.to_owned(), Came::Asked(301)),
        (r#""to":"Bob Stone","amount":40,"note":"x""#.to_owned(), Came::Asked(301)),
        (r#""to":"Bob Stone","amount":51"#.to_owned(), Came::No(407)),
        (r#""amount":40"#.to_owned(), Came::Asked(301)),
        (r#""to":{"$$a":{"$held":1}},"amount":40"#.to_owned(), Came::Asked(301)),
        (format!(r#""to":{{"$held":{bob}}},"amount":40"#), by),
        (r#""to":"Bob Stone","amount":40"#.to_owned(), Came::Asked(301)),
    ] {
        assert_eq!(session.ask(&pay(&arguments)), came, "{arguments}");
    }
}

/// A session with a mailbox: what it lists has typed fields.
fn mailbox(lines: &[&str]) -> Session {
    let mut session = Session::new(lines);
    let pairs = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, ty)| ((*name).into(), (*ty).into())).collect()
    };
    let own = Secrecy::bit(9).unwrap();
    for (name, effect, arguments, fields, says) in [
        ("mail/list", Effect::Read, &[][..], &[("id", "mail")][..], ""),
        ("people/list", Effect::Read, &[], &[("address", "person"), ("id", "contact")], ""),
        ("mail/delete", Effect::Commit, &[("id", "mail")], &[], "delete"),
        ("mail/send", Effect::Commit, &[("to", "person"), ("text", "")], &[], "mail"),
        ("mail/expunge", Effect::Commit, &[], &[], "expunge"),
    ] {
        let verb =
            Verb { arguments: pairs(arguments), says: vec![says.into()], fields: pairs(fields) };
        let terms = Terms { clear: Secrecy::PROMPT, own, acts: 0 };
        session.scope.tool(name, Tool { effect, limits: Vec::new(), terms, verb });
    }
    session
}

fn commit_tool(name: &str, arguments: &str) -> String {
    format!(
        r#"{{"name":"tool_commit","arguments":{{"tool":"{name}","arguments":{{{arguments}}}}}}}"#
    )
}

fn for_tool(name: &str, arguments: &str) -> String {
    warrant("tool_commit", &format!(r#""tool":"{name}","arguments":{{{arguments}}}"#), 1)
}

const MAILS: &str = r#"[{"from":"eve@x.example","id":7,"subject":"a"},{"from":"bob@x.example","id":9,"subject":"b"}]"#;
const PEOPLE: &str = r#"[{"address":"bob@x.example","id":1,"name":"Bob"},{"address":"eve@x.example","id":9,"name":"Eve"}]"#;

#[test]
fn i13_a_selector_takes_a_typed_field_of_a_connectors_answer_for_a_target_of_that_type() {
    let mut session = mailbox(&["delete the newest mail, and mail Bob a line"]);
    let name = |name: &str| Target::Name(name.to_owned().into());
    let mails = session.hold(MAILS, Some((Primitive::ToolUse, name("mail/list"), true)));
    let people = session.hold(PEOPLE, Some((Primitive::ToolUse, name("people/list"), true)));
    let part = session.hold(PEOPLE, Some((Primitive::ToolUse, name("people/list"), false)));
    let made = session.hold(MAILS, None);
    let newest = |number, take: &str| {
        format!(r#"{{"$select":{number},"order":["max","id"],"take":"{take}"}}"#)
    };
    let bob = |number| {
        format!(r#"{{"$select":{number},"where":[["name","eq","Bob"]],"take":"address"}}"#)
    };
    for (sentence, code) in [
        (for_tool("mail/delete", &format!(r#""id":{}"#, newest(made, "id"))), 310),
        (for_tool("mail/delete", &format!(r#""id":{}"#, newest(people, "id"))), 310),
        (for_tool("mail/delete", &format!(r#""id":{}"#, newest(mails, "subject"))), 310),
        (for_tool("mail/send", &format!(r#""to":{}"#, newest(mails, "from"))), 310),
        (for_tool("mail/send", &format!(r#""to":[{}]"#, newest(mails, "from"))), 310),
        (for_tool("mail/send", &format!(r#""to":["Eve",{}]"#, bob(people))), 306),
        (for_tool("mail/send", &format!(r#""to":{{"a":{}}}"#, bob(people))), 306),
        (for_tool("mail/send", &format!(r#""subject":{}"#, bob(people))), 306),
        (warrant("fs_delete", &format!(r#""path":{}"#, bob(people)), 1), 310),
    ] {
        assert_eq!(session.ask(&sentence), Came::No(code), "{sentence}");
    }
    let send = session.mint(&for_tool("mail/send", &format!(r#""to":{}"#, bob(people))));
    assert_eq!(
        session.ask(&for_tool("mail/send", &format!(r#""to":{}"#, bob(part)))),
        Came::No(307)
    );
    let delete =
        session.mint(&for_tool("mail/delete", &format!(r#""id":{}"#, newest(mails, "id"))));
    session.mark = mark(Integrity::Ingested, Secrecy::FILES);
    for (sentence, came) in [
        (commit_tool("mail/delete", r#""id":7"#), Came::Asked(301)),
        (commit_tool("mail/delete", r#""id":"9""#), Came::Asked(301)),
        (commit_tool("mail/delete", r#""id":9"#), delete),
        (commit_tool("mail/send", r#""to":"eve@x.example","text":"hi""#), Came::Asked(301)),
        (commit_tool("mail/send", r#""to":"bob@x.example","cc":"a""#), Came::Asked(301)),
        (
            commit_tool("mail/send", r#""to":"bob@x.example","text":"www.evil.example""#),
            Came::No(308),
        ),
        (commit_tool("mail/send", r#""to":"bob@x.example","text":"hi""#), send),
    ] {
        assert_eq!(session.ask(&sentence), came, "{sentence}");
    }
}

#[test]
fn i13_a_selector_stands_for_one_of_a_list() {
    let mut session = mailbox(&["mail Bob and amy@x.example a line"]);
    let people = Target::Name("people/list".to_owned().into());
    let people = session.hold(PEOPLE, Some((Primitive::ToolUse, people, true)));
    let last = format!(r#"{{"$select":{people},"order":["max","id"],"take":"address"}}"#);
    let bob = format!(r#"{{"$select":{people},"where":[["name","eq","Bob"]],"take":"address"}}"#);
    let whoever = for_tool("mail/send", &format!(r#""to":["amy@x.example",{last}]"#));
    let verb = core::mem::replace(&mut session.lines, vec!["what did amy@x.example say".into()]);
    assert_eq!(session.ask(&whoever), Came::No(306), "no word says what with");
    session.lines = verb;
    let by = session.mint(&for_tool("mail/send", &format!(r#""to":["amy@x.example",[{bob}]]"#)));
    let held = session.hold("bob@x.example", None);
    session.read();
    for (to, came) in [
        (r#"["amy@x.example",["eve@x.example"]]"#.to_owned(), Came::Asked(301)),
        (r#"["amy@x.example",["bob@x.example","eve@x.example"]]"#.to_owned(), Came::Asked(301)),
        (r#"["amy@x.example",["bob@x.example"],"eve@x.example"]"#.to_owned(), Came::Asked(301)),
        (r#"["amy@x.example"]"#.to_owned(), Came::Asked(301)),
        (r#"["amy@x.example",[]]"#.to_owned(), Came::Asked(301)),
        (r#"["amy@x.example","bob@x.example"]"#.to_owned(), Came::Asked(301)),
        (r#"[["bob@x.example"],"amy@x.example"]"#.to_owned(), Came::Asked(301)),
        (r#""amy@x.example""#.to_owned(), Came::Asked(301)),
        (format!(r#"["amy@x.example",[{{"$held":{held}}}]]"#), by),
        (r#"["amy@x.example",["bob@x.example"]]"#.to_owned(), Came::Asked(301)),
    ] {
        let sentence = commit_tool("mail/send", &format!(r#""to":{to},"text":"hi""#));
        assert_eq!(session.ask(&sentence), came, "{to}");
    }
}

#[test]
fn i13_a_verb_without_a_target_is_named_by_its_word() {
    let mut session = mailbox(&["what is in my mail ?"]);
    assert_eq!(session.ask(&for_tool("mail/expunge", "")), Came::No(306));
    assert_eq!(session.ask(&for_tool("mail/unknown", "")), Came::No(401));
    session.lines.push("expunge it".into());
    let by = session.mint(&for_tool("mail/expunge", ""));
    session.read();
    assert_eq!(session.ask(&commit_tool("mail/expunge", r#""all":true"#)), Came::Asked(301));
    assert_eq!(session.ask(&commit_tool("mail/expunge", "")), by);
}

#[test]
fn i13_of_a_connectors_compartment_a_warrant_lets_out_what_its_manifest_does() {
    for let_out in [false, true] {
        let mut session = mailbox(&["mail bob@x.example"]);
        let own = Secrecy::bit(8).unwrap();
        session.scope.let_out = if let_out { own } else { Secrecy::NONE };
        let by = session.mint(&for_tool("mail/send", r#""to":"bob@x.example""#));
        session.mark = mark(Integrity::Ingested, own);
        let sent = session.ask(&commit_tool("mail/send", r#""to":"bob@x.example","text":"a""#));
        assert_eq!(sent, if let_out { by } else { Came::Asked(301) });
    }
}

#[test]
fn a_warrant_covers_what_the_journal_cannot_hold() {
    let edit = r#"{"name":"fs_edit","arguments":{"path":"/data/a.md","old":"a","new":"b"}}"#;
    let mut session = Session::new(&["correct /data/a.md"]);
    session.store.journal_room = 0;
    let by = session.mint(&warrant("fs_edit", r#""path":"/data/a.md""#, 1));
    session.read();
    assert_eq!(session.ask(edit), by);
    assert_eq!(session.ask(edit), Came::Asked(303));
}

#[test]
fn i13_uses_that_move_to_a_child_are_gone_where_they_were() {
    let mut session = Session::new(&["delete /data/a.md and /data/b.md"]);
    let by = session.mint(&warrant("fs_delete", r#""path":"/data/a.md""#, 3));
    assert_eq!(session.ask(&spawn(&[&for_deletion("/data/a.md")])), Came::Done(None));
    let mut child = session.child();
    assert_eq!(child.ask(&delete("/data/a.md")), by, "its cause is the mint's record");
    assert_eq!(child.ask(&delete("/data/a.md")), Came::Asked(301), "spent");
    assert_eq!(child.ask(&delete("/data/b.md")), Came::Asked(301));
    session.read();
    // Named twice, the uses add up.
    let once = for_deletion("/data/a.md");
    assert_eq!(session.ask(&spawn(&[&once, &once])), Came::Done(None), "after reading too");
    assert_eq!(session.ask(&delete("/data/a.md")), Came::Asked(301), "what moved is gone here");
    let mut other = session.child();
    assert_eq!((other.ask(&delete("/data/a.md")), other.ask(&delete("/data/a.md"))), (by, by));
    assert_eq!(other.ask(&delete("/data/a.md")), Came::Asked(301));
    assert_eq!(session.ask(&spawn(&[])), Came::Done(None));
    assert_eq!(
        session.child().ask(&delete("/data/a.md")),
        Came::Asked(301),
        "nothing is inherited"
    );
}

#[test]
fn i13_only_live_uses_move() {
    let mut session = Session::new(&["delete /data/a.md and /data/b.md and what is in /data/tmp"]);
    session.mint(&for_deletion("/data/a.md"));
    let (a, b) = (for_deletion("/data/a.md"), for_deletion("/data/b.md"));
    let twice = warrant("fs_delete", r#""path":"/data/a.md""#, 2);
    let to = warrant("fs_write", r#""path":"/data/a.md""#, 1);
    let call = delete("/data/a.md");
    for named in [&[&*b][..], &[&a, &b], &[&a, &a], &[&twice], &[&to], &[&call], &[""], &["x"]] {
        assert_eq!(session.ask(&spawn(named)), Came::No(307), "{named:?}");
    }
    assert_eq!(session.ask(&spawn(&[&a])), Came::Done(None), "a refusal moved nothing");
    assert_eq!(session.ask(&spawn(&[&a])), Came::No(307));
    session.next_turn(TurnEnd::Retried);
    assert_eq!(session.ask(&a), Came::No(307), "what moved is not there for a retry");
    // What a selector comes to depends on whose values it is over.
    let listing = r#"[{"name":"x","kind":"file","size":1,"modified":1}]"#;
    session.hold(listing, Some((Primitive::FsList, path("/data/tmp"), true)));
    let picked = r#""path":{"$select":1,"order":["max","size"],"take":"path"}"#;
    let picked = warrant("fs_delete", picked, 1);
    session.mint(&picked);
    assert_eq!(session.ask(&spawn(&[&picked])), Came::No(310));
}

#[test]
fn i13_a_child_cites_nothing_and_mints_nothing_of_what_it_was_given() {
    let mut session = Session::new(&["delete /data/a.md"]);
    session.mint(&for_deletion("/data/a.md"));
    assert_eq!(session.ask(&spawn(&[&for_deletion("/data/a.md")])), Came::Done(None));
    let mut child = session.child();
    child.mark = mark(Integrity::User, Secrecy::PROMPT);
    assert_eq!(child.ask(&for_deletion("/data/a.md")), Came::No(306));
    // It may move on what it has.
    let a = for_deletion("/data/a.md");
    assert_eq!(child.ask(&spawn(&[&a, &a])), Came::No(307));
    assert_eq!(child.ask(&spawn(&[&a])), Came::Done(None));
    assert!(matches!(child.child().ask(&delete("/data/a.md")), Came::Done(Some(_))));
    child.read();
    assert_eq!(child.ask(&delete("/data/a.md")), Came::Asked(301));
}

#[test]
fn i3_a_spawn_that_is_not_recorded_moves_nothing() {
    let mut session = Session::new(&["delete /data/a.md"]);
    let by = session.mint(&for_deletion("/data/a.md"));
    session.takes = false;
    let a = for_deletion("/data/a.md");
    assert_eq!(session.try_ask(&spawn(&[&a])), Err(SinkFailed));
    session.takes = true;
    session.read();
    assert_eq!(session.child().ask(&delete("/data/a.md")), Came::Asked(301));
    assert_eq!(session.ask(&delete("/data/a.md")), by);
}
