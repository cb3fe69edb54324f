//! What a human's answer is good for.

use synapse_abi::limits::QUESTIONS;
use synapse_boundary::gates::Question;
use synapse_boundary::record::{Durability, HEAD, Kind, SinkFailed, tag};
use synapse_boundary::{
    Answer, Decided, Integrity, Log, Mark, Opened, Questions, Request, Said, Sink, State, Verdict,
    decide, decide_answered,
};

use crate::agree::Tape;
use crate::order::world;
use crate::sentences::Random;
use crate::world::World;

/// How many random worlds a test goes through.
const WORLDS: u64 = 100_000;
const STATE: State = State([7; 32]);

fn question<'s>(request: Request<'s>, world: &World, sentence: &'s [u8]) -> Option<Question<'s>> {
    match decide(request, world, sentence) {
        Decided::Ask(question) => Some(question),
        Decided::Final(_) => None,
    }
}

/// Answers a question and opens what is decided then.
fn answered<'s>(
    log: &mut Log<Tape>,
    world: &World,
    (asked, sentence): (Request<'s>, &'s [u8]),
    (decided, other): (Request<'s>, &'s [u8]),
    said: Said,
) -> Result<Option<State>, u16> {
    let question = question(asked, world, sentence).unwrap();
    let answer = log.answer(question, (said, "tape"), Some(STATE), 0).unwrap();
    let record = answer.record();
    let verdict = decide_answered(decided, world, other, answer);
    let opened = log.commit(verdict, world, 0).unwrap();
    assert_eq!(cause(log), record, "the decision names its answer");
    match opened {
        Opened::Permitted(call) => Ok(call.expects()),
        Opened::Refused(refused) => Err(refused.refusal.number()),
    }
}

/// The cause of the last record.
fn cause(log: &mut Log<Tape>) -> u64 {
    u64::from_le_bytes(log.sink().last[44..52].try_into().unwrap())
}

#[test]
fn i8_a_confirmation_fits_one_call_one_state_once() {
    let (mut asked, mut refused) = (0, 0);
    let mut log = Log::begin(Tape::default(), [0; 32]).unwrap();
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
fn i8_a_call_is_asked_about_once_a_turn_and_five_calls_at_most() {
    let world = tainted();
    let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
    let request = world.request(&mark, &scope);
    let mut log = Log::begin(Tape::default(), [0; 32]).unwrap();
    let mut questions = Questions::default();
    let mut code = |verdict: Verdict<'_>| match log.commit(verdict, &world, 0).unwrap() {
        Opened::Permitted(_) => 0,
        Opened::Refused(refused) => refused.refusal.number(),
    };
    for number in 0..QUESTIONS {
        let sentence = delete(&format!("/data/{number}"));
        let ask = || question(request, &world, &sentence).unwrap();
        assert!(questions.admit(&ask()) && !questions.admit(&ask()));
        assert_eq!(code(ask().declined()), 309);
    }
    let sentence = delete("/data/more");
    let sixth = question(request, &world, &sentence).unwrap();
    assert!(!questions.admit(&sixth));
    // The next turn may ask.
    assert!(Questions::default().admit(&sixth));
}

/// Takes a header and no record.
struct Full;
impl Sink for Full {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        if frame.starts_with(b"SYNAPSE") { Ok(()) } else { Err(SinkFailed) }
    }
}

#[test]
fn i8_an_answer_is_a_record_before_it_is_a_witness() {
    let world = tainted();
    let (mark, scope) = (Mark::new(world.mark.label()), world.scope());
    let request = world.request(&mark, &scope);
    let sentence = delete("/data/x");
    let mut log = Log::begin(Tape::default(), [0; 32]).unwrap();
    let asked = question(request, &world, &sentence).unwrap();
    let answer = log.answer(asked, (Said::No, "tty"), None, 77).unwrap();
    let frame = &log.sink().last;
    assert_eq!((answer.record(), frame[5], frame[6]), (0, Kind::Answer.number(), 9));
    let tail = &frame[4 + HEAD..];
    assert_eq!(tail[..5], [tag::ANSWER, 36, 0, 0, 0]);
    assert_eq!((tail[37], &tail[38..41]), (Said::No.number(), &b"tty"[..]));
    let mut log = Log::begin(Full, [0; 32]).unwrap();
    let asked = question(request, &world, &sentence).unwrap();
    let answer: Result<Answer, _> = log.answer(asked, (Said::Yes, "tty"), Some(STATE), 77);
    assert!(answer.is_err());
}
