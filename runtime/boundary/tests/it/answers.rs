//! What a human's answer is good for.

use synapse_boundary::gates::Question;
use synapse_boundary::record::SinkFailed;
use synapse_boundary::{
    Decided, Entry, Facts, Integrity, Mark, Opened, Recorder, Request, Said, State, Warrants,
    answer, commit, decide, decide_answered,
};

use crate::order::world;
use crate::sentences::Random;
use crate::world::World;

/// How many random worlds a test goes through.
const WORLDS: u64 = 100_000;
const STATE: State = State([7; 32]);

/// Counts records and keeps what the last one rests on.
#[derive(Default)]
struct Tape {
    records: u64,
    cause: Option<u64>,
    full: bool,
}

impl Tape {
    fn take(&mut self, cause: Option<u64>) -> Result<u64, SinkFailed> {
        self.records += 1;
        self.cause = cause;
        if self.full { Err(SinkFailed) } else { Ok(self.records) }
    }
}

impl Recorder for Tape {
    fn record(&mut self, entry: &Entry<'_>, _: &impl Facts, _: u64) -> Result<u64, SinkFailed> {
        self.take(entry.cause)
    }

    fn answered(&mut self, _: &Question<'_>, _: (Said, &str), _: u64) -> Result<u64, SinkFailed> {
        self.take(None)
    }
}

fn question<'s>(
    request: Request<'_, 's>,
    world: &World,
    sentence: &'s [u8],
) -> Option<Question<'s>> {
    match decide(request, world, sentence) {
        Decided::Ask(question) => Some(question),
        Decided::Final(_) => None,
    }
}

/// Answers a question and opens what is decided then.
fn answered<'s>(
    log: &mut Tape,
    world: &World,
    (asked, sentence): (Request<'_, 's>, &'s [u8]),
    (decided, other): (Request<'_, 's>, &'s [u8]),
    said: Said,
) -> Result<Option<State>, u16> {
    let question = question(asked, world, sentence).unwrap();
    let answer = answer(question, (said, "tape"), Some(STATE), log, 0).unwrap();
    let record = answer.record();
    let verdict = decide_answered(decided, world, other, answer);
    let opened = commit(verdict, log, &mut Warrants::default(), world, 0).unwrap();
    assert_eq!(log.cause, Some(record), "the decision names its answer");
    match opened {
        Opened::Permitted(call) => Ok(call.expects()),
        Opened::Refused(refused) => Err(refused.refusal.number()),
        Opened::Minted(_) => unreachable!("no warrant is asked for here"),
    }
}

#[test]
fn i8_a_confirmation_fits_one_call_one_state_once() {
    let (mut asked, mut refused) = (0, 0);
    let mut log = Tape::default();
    for seed in 1..=WORLDS {
        let mut random = Random::new(seed);
        let world = random.world();
        let sentence = random.sentence(&world).write();
        let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
        let request = world.request(&mark, &scope);
        if question(request, &world, &sentence).is_none() {
            continue;
        }
        asked += 1;
        let this = (request, &sentence[..]);
        assert_eq!(answered(&mut log, &world, this, this, Said::Yes), Ok(Some(STATE)));
        for said in Said::ALL.iter().copied().filter(|said| *said != Said::Yes) {
            assert_eq!(answered(&mut log, &world, this, this, said), Err(309));
        }
        // Another task's, and one for another call.
        let another = Request { task: request.task + 1, ..request };
        assert_eq!(answered(&mut log, &world, this, (another, this.1), Said::Yes), Err(309));
        let second = random.sentence(&world).write();
        if second != sentence && question(request, &world, &second).is_some() {
            refused += 1;
            assert_eq!(answered(&mut log, &world, this, (request, &second), Said::Yes), Err(309));
        }
        // It lifts gate 3 alone.
        let spent = Request { calls_left: 0, ..request };
        assert_eq!(answered(&mut log, &world, this, (spent, this.1), Said::Yes), Err(203));
    }
    assert!(asked > 500 && refused > 20, "{asked} asked, {refused} for another call");
}

fn delete(path: &str) -> Vec<u8> {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"{path}"}}}}"#).into_bytes()
}

/// A world in which something was read, so that every deletion is a question.
fn tainted() -> World {
    let mut world = world();
    world.mark.integrity = Integrity::Ingested;
    world
}

#[test]
fn i8_without_its_record_an_answer_is_none() {
    let world = tainted();
    let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
    let request = world.request(&mark, &scope);
    let sentence = delete("/data/x");
    let asked = || question(request, &world, &sentence).unwrap();
    let mut log = Tape::default();
    assert!(answer(asked(), (Said::Yes, "tape"), None, &mut log, 0).is_ok());
    log.full = true;
    assert_eq!(answer(asked(), (Said::Yes, "tape"), None, &mut log, 0).err(), Some(SinkFailed));
}
