//! Invariants of the monitor that no table and no type shows by itself.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Just;
use synapse_boundary::gates::Question;
use synapse_boundary::record::{Refused, SinkFailed};
use synapse_boundary::{
    Decided, Entry, Facts, Findings, Integrity, Label, Mark, Opened, Origin, Recorder, Said,
    Secrecy, Warrants, commit, decide, examine,
};

use crate::agree::{Tape, outcome};
use crate::order::world;
use crate::sentences::Random;
use crate::world::{Outcome, World};

fn integrity() -> impl Strategy<Value = Integrity> {
    prop_oneof![Just(Integrity::System), Just(Integrity::User), Just(Integrity::Ingested)]
}

fn label() -> impl Strategy<Value = Label> {
    let origin = proptest::collection::vec(0..20_u64, 0..4).prop_map(|numbers| {
        let one = |number| Label::new(Integrity::System, Secrecy::NONE, Origin::record(number));
        numbers.into_iter().map(one).fold(Label::SYSTEM, Label::join).origin
    });
    let parts = (integrity(), any::<u64>(), origin);
    parts.prop_map(|(integrity, bits, origin)| {
        Label::new(integrity, Secrecy::from_bits(bits), origin)
    })
}

fn rank(integrity: Integrity) -> u8 {
    match integrity {
        Integrity::System => 0,
        Integrity::User => 1,
        Integrity::Ingested => 2,
    }
}

/// Whether a label is at least another in what decides.
fn at_least(label: Label, part: Label) -> bool {
    rank(label.integrity) >= rank(part.integrity) && part.secrecy.is_within(label.secrecy)
}

proptest! {
    #[test]
    fn i5_joining_is_a_lattice(a in label(), b in label(), c in label()) {
        let join = a.join(b);
        prop_assert_eq!(join, b.join(a), "commutative");
        prop_assert_eq!(join.join(c), a.join(b.join(c)), "associative");
        prop_assert_eq!(a.join(a), a, "idempotent");
        prop_assert_eq!(a.join(Label::SYSTEM), a, "nothing is below what the kernel says");
        prop_assert!(at_least(join, a) && at_least(join, b), "at least each part");
        prop_assert!(!at_least(c, a) || !at_least(c, b) || at_least(c, join), "and the least such");
    }

    #[test]
    fn i6_a_mark_only_rises(labels in proptest::collection::vec(label(), 1..8)) {
        let mut mark = Mark::new(Label::SYSTEM);
        for label in labels {
            let before = mark.label();
            mark.absorb(label);
            prop_assert!(at_least(mark.label(), before) && at_least(mark.label(), label));
        }
    }
}

/// How many random worlds a test goes through.
const WORLDS: u64 = 20_000;

fn permitted(world: &mut World, sentence: &[u8]) -> bool {
    let mut log = Tape::default();
    matches!(outcome(&mut log, world, sentence).0, Outcome::Permitted | Outcome::Minted)
}

fn findings(world: &World, sentence: &[u8]) -> Findings {
    let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
    examine(world.request(&mark, &scope), world, sentence)
}

#[test]
fn i2_only_what_all_four_gates_pass_is_authorized() {
    let mut seen = [0; 2];
    for seed in 1..=WORLDS {
        let mut random = Random::new(seed);
        let mut world = random.world();
        let sentence = random.sentence(&world).write();
        let passes = findings(&world, &sentence).gates == [Some(Ok(())); 4];
        assert_eq!(permitted(&mut world, &sentence), passes);
        seen[usize::from(passes)] += 1;
    }
    assert!(seen.iter().all(|seen| *seen > 1000), "{seen:?}");
}

/// Takes so many records and no more; each is written out.
#[derive(Default)]
struct Few(usize, Vec<String>);

impl Recorder for Few {
    fn record(&mut self, entry: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        self.0 = self.0.checked_sub(1).ok_or(SinkFailed)?;
        self.1.push(format!("{entry:?}"));
        Ok(7)
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        unreachable!("nobody answers here")
    }
}

#[test]
fn i3_a_verdict_stays_closed_where_its_record_was_not_taken() {
    let world = world();
    let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
    let request = world.request(&mark, &scope);
    let open = |sentence: &'static [u8], room| {
        let mut log = Few(room, Vec::new());
        let verdict = decide(request, &world, sentence).unasked();
        let opened =
            commit(verdict, &mut log, &mut Warrants::default(), &world, 0).map(
                |opened| match opened {
                    Opened::Permitted(authorized) => authorized.record(),
                    Opened::Refused(Refused { record, .. }) | Opened::Minted(record) => record,
                },
            );
        (opened, log.1.len())
    };
    for sentence in [CLOCK, b""] {
        assert_eq!(open(sentence, 2), (Ok(7), 1), "one record, and its number");
        assert_eq!(open(sentence, 0), (Err(SinkFailed), 0), "nothing is told");
    }
}

const CLOCK: &[u8] = br#"{"name":"clock_read","arguments":{}}"#;

#[test]
fn i7_naming_more_only_raises_what_justifies_a_call() {
    for seed in 1..=WORLDS {
        let mut random = Random::new(seed);
        let world = random.world();
        let mut parts = vec![r#""{\"$held\":1}""#.to_owned()];
        let mut expected = world.mark.label();
        for value in &world.held {
            if random.below(2) == 0 {
                continue;
            }
            let sentence = |parts: &[String]| {
                let content = format!(r#"{{"parts":[{}]}}"#, parts.join(","));
                format!(r#"{{"name":"console_write","arguments":{{"content":{content}}}}}"#)
            };
            let before = findings(&world, sentence(&parts).as_bytes()).justification;
            parts.push(format!(r#"{{"$held":{}}}"#, value.number));
            expected = expected.join(value.stamp.label());
            let after = findings(&world, sentence(&parts).as_bytes()).justification;
            assert!(at_least(after, before) && at_least(after, world.mark.label()));
            assert_eq!(after, expected, "what is named, and nothing that is only written about");
        }
    }
}

/// Ways to take something from a grant, or from what spares a call a reason.
const LESS: [fn(&mut World); 9] = [
    |world| world.allow.truncate(1),
    |world| world.nets.truncate(1),
    |world| world.tools.truncate(1),
    |world| world.own.clear(),
    |world| world.deny.push("/data/**"),
    |world| world.deny_hosts.push("*.example"),
    |world| world.calls_left = 0,
    |world| world.journal_room = 0,
    |world| {
        world.granted.pop();
        world.table = World::table(&world.granted);
    },
];

#[test]
fn i9_less_granted_is_never_more_permitted() {
    let mut lost = [0; LESS.len()];
    for seed in 1..=WORLDS {
        let mut random = Random::new(seed);
        let mut world = random.world();
        let sentence = random.sentence(&world).write();
        let permitted_before = permitted(&mut world, &sentence);
        for (take, lost) in LESS.iter().zip(&mut lost) {
            let mut less = Random::new(seed).world();
            take(&mut less);
            match (permitted_before, permitted(&mut less, &sentence)) {
                (false, true) => panic!("{}", String::from_utf8_lossy(&sentence)),
                (true, false) => *lost += 1,
                (false, false) | (true, true) => {}
            }
        }
    }
    assert!(lost.iter().all(|lost| *lost > 0), "each takes something: {lost:?}");
}

#[test]
fn i9_a_permission_names_only_paths_that_the_scope_covers() {
    let mut seen = 0;
    for seed in 1..=WORLDS {
        let mut random = Random::new(seed);
        let world = random.world();
        let sentence = random.sentence(&world).write();
        let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
        let verdict = decide(world.request(&mark, &scope), &world, &sentence).unasked();
        let opened =
            commit(verdict, &mut Tape::default(), &mut Warrants::default(), &world, 0).unwrap();
        let Opened::Permitted(call) = opened else { continue };
        let rows = call.call().primitive().row().arguments.iter();
        for (place, row) in rows.enumerate() {
            if let Some(path) = call.path(place) {
                assert_eq!(scope.check(path, row.needs), Ok(()));
                seen += 1;
            }
        }
    }
    assert!(seen > 500, "{seen}");
}

#[test]
fn i16_what_the_journal_cannot_hold_is_destructive_after_reading() {
    let write = |mode: &str| {
        format!(
            r#"{{"name":"fs_write","arguments":{{"path":"/data/x","content":"","mode":"{mode}"}}}}"#
        )
    };
    let edit = r#"{"name":"fs_edit","arguments":{"path":"/data/x","old":"a","new":"b"}}"#;
    let moved = r#"{"name":"fs_move","arguments":{"from":"/data/x","to":"/data/y"}}"#;
    let ask = |sentence: &str, integrity, journal_room, own: &[&'static str]| {
        let mut world = World { journal_room, own: own.into(), ..world() };
        world.mark.integrity = integrity;
        let mut log = Tape::default();
        outcome(&mut log, &mut world, sentence.as_bytes()).0
    };
    for displaces in [write("replace").as_str(), edit] {
        let (read, user) = (Integrity::Ingested, Integrity::User);
        assert_eq!(ask(displaces, read, 0, &[]), Outcome::Question(303), "{displaces}");
        assert_eq!(ask(displaces, read, 1, &[]), Outcome::Permitted, "{displaces}");
        assert_eq!(ask(displaces, user, 0, &[]), Outcome::Permitted, "{displaces}");
        assert_eq!(ask(displaces, read, 0, &["/data/x"]), Outcome::Permitted, "{displaces}");
    }
    for keeps in [write("create").as_str(), write("append").as_str(), moved] {
        assert_eq!(ask(keeps, Integrity::Ingested, 0, &[]), Outcome::Permitted, "{keeps}");
    }
}

#[test]
fn i18_equal_worlds_decide_alike_to_the_byte() {
    let record = |seed| {
        let mut random = Random::new(seed);
        let world = random.world();
        let sentence = random.sentence(&world).write();
        let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
        let request = world.request(&mark, &scope);
        let [once, again] = [(); 2].map(|()| {
            let mut log = Few(1, Vec::new());
            let decided = decide(request, &world, &sentence);
            let asks = matches!(decided, Decided::Ask(_));
            commit(decided.unasked(), &mut log, &mut Warrants::default(), &world, 0).unwrap();
            (asks, log.1)
        });
        assert_eq!(once, again, "asked twice");
        once
    };
    for seed in 1..=WORLDS {
        assert_eq!(record(seed), record(seed), "made anew");
    }
}
