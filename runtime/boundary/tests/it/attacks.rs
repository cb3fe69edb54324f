//! Attacks on what gate 4 lets through and on what the record says.

use synapse_boundary::gates::Question;
use synapse_boundary::path::NormalPath;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::scope::{HostPattern, Method, Net, Place};
use synapse_boundary::url::Url;
use synapse_boundary::{
    Entry, Facts, Held, Label, Mark, Names, Opened, Recorder, Request, Said, Scope, Secrecy, Table,
    Warrants, commit, decide,
};

struct World(&'static [u8]);
impl Names for World {}
impl Facts for World {
    fn held(&self, number: u64) -> Option<Held<'_>> {
        (number == 1).then_some(Held {
            label: Label::SYSTEM,
            bytes: self.0,
            digest: [0; 32],
            fault: None,
            reply_of: None,
        })
    }
    fn journal_room(&self) -> u64 {
        1
    }
    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }
}

/// A task without lines, and so without warrants.
fn request<'a>(mark: &'a Mark, table: &'a Table, scope: &'a Scope) -> Request<'a, 'a> {
    const NONE: &Warrants = &Warrants::NONE;
    Request { task: 0, mark, table, scope, calls_left: 9, warrants: NONE, lines: &[] }
}

fn net(paths: &[&str], own: Secrecy, clear: Secrecy) -> Net {
    Net {
        methods: vec![Method::Get],
        ports: vec![443..=443],
        paths: paths.iter().map(|path| (*path).into()).collect(),
        clear,
        own,
        secrets: Vec::new(),
        reads: false,
    }
}

/// A name whose DNS an attacker owns is granted beside an internal address that has
/// a compartment of its own. The name resolves to that address.
#[test]
fn what_is_fetched_from_an_internal_address_carries_its_compartment() {
    let internal = Secrecy::bit(9).unwrap();
    let mut scope = Scope::default();
    scope.net(
        HostPattern::parse("evil.example").unwrap(),
        net(&["/"], Secrecy::NONE, Secrecy::PROMPT),
    );
    scope.net(HostPattern::parse("10.0.0.7").unwrap(), net(&["/"], internal, internal));
    let url = Url::parse("https://evil.example/payroll").unwrap();
    let place = Place::of(&url, Method::Get);
    let terms = scope.check_net(&place).unwrap();
    let resolved = scope.check_resolved("10.0.0.7".parse().unwrap(), &place).unwrap();
    assert_eq!((terms.clear, terms.own), (Secrecy::PROMPT, Secrecy::NONE));
    assert_eq!((resolved.clear, resolved.own), (Secrecy::NONE, internal));
}

/// Keeps the targets that records tell.
#[derive(Default)]
struct Tape(Vec<String>);
impl Recorder for Tape {
    fn record(&mut self, entry: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        self.0.extend(
            entry.targets.iter().flatten().filter_map(|target| Some(target.text()?.into())),
        );
        Ok(0)
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        unreachable!("nobody answers here")
    }
}

/// The record of a search whose path is held says which path was searched.
#[test]
fn a_held_target_stands_in_the_record_whatever_other_arguments_say() {
    let mut scope = Scope::default();
    let all = synapse_boundary::scope::Pattern::parse("/data/**").unwrap();
    scope.allow(&all, synapse_boundary::Rights::READ.and(synapse_boundary::Rights::LIST));
    let record = |text: &str| {
        let world = World(b"/data/secret");
        let mut tape = Tape::default();
        let mark = Mark::new(Label::SYSTEM);
        let table = Table::new(u32::MAX);
        let request = request(&mark, &table, &scope);
        let sentence = format!(
            r#"{{"name":"fs_search","arguments":{{"path":{{"$held":1}},"text":"{text}","offset":0}}}}"#
        );
        let verdict = decide(request, &world, sentence.as_bytes()).unasked();
        let opened = commit(verdict, &mut tape, &mut Warrants::default(), &world, 0).unwrap();
        assert!(matches!(opened, Opened::Permitted(_)));
        tape.0
    };
    assert_eq!(record("other"), ["/data/secret"]);
    assert_eq!(record("/data/secret"), ["/data/secret"]);
}

/// The number of a code names the gate that refused.
#[test]
fn a_held_url_that_is_not_canonical_is_not_refused_by_gate_1() {
    let mut scope = Scope::default();
    let host = HostPattern::parse("a.example").unwrap();
    scope.net(host, net(&["/"], Secrecy::NONE, Secrecy::NONE));
    let mark = Mark::new(Label::SYSTEM);
    let table = Table::new(u32::MAX);
    let request = request(&mark, &table, &scope);
    let world = World(b"https://A.example/");
    let get = r#"{"name":"net_http_get","arguments":{"url":{"$held":1},"headers":{}}}"#;
    let verdict = decide(request, &world, get.as_bytes()).unasked();
    let opened =
        commit(verdict, &mut Tape::default(), &mut Warrants::default(), &world, 0).unwrap();
    let Opened::Refused(refused) = opened else { panic!() };
    assert_eq!(synapse_reply::code::gate(refused.refusal.number()), Some(4), "{refused:?}");
}

/// A target that a gate refused stands in the record too.
#[test]
fn a_refused_held_target_stands_in_the_record() {
    let scope = Scope::default();
    let world = World(b"/etc/shadow");
    let mut tape = Tape::default();
    let mark = Mark::new(Label::SYSTEM);
    let table = Table::new(u32::MAX);
    let request = request(&mark, &table, &scope);
    let read = r#"{"name":"fs_read","arguments":{"path":{"$held":1},"offset":0,"length":1}}"#;
    let verdict = decide(request, &world, read.as_bytes()).unasked();
    let _ = commit(verdict, &mut tape, &mut Warrants::default(), &world, 0).unwrap();
    assert_eq!(tape.0, ["/etc/shadow"]);
}
