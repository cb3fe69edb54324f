//! A case played in every order, and what that says of the door.
//!
//! # Invariants
//! 1. Stopped is what the named gate refused with a named code, in every order.
//! 2. What did not cross, failed or was refused by another gate is told apart.
//!
//! # Not here
//! The orders (`order`), playing one (`play`).

use std::sync::Arc;

use synapse_reply::code;

use crate::ambient::{Ambient, Did};
use crate::case::{Case, Step};
use crate::monitors::{Judged, Monitor, Rows, Said, Script, is_told, refusing};
use crate::order::{From, orders};
use crate::play::{Attempt, More, Played, Scene, Stage, TODAY, Turn};

/// The most orders in which one case is played.
const ORDERS: usize = 200;

/// What came of one case.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its name.
    pub case: String,
    /// In how many orders it was played.
    pub orders: usize,
    /// The steps with an effect that the human wanted.
    pub steps: usize,
    /// The one gate that stands between the attack and its effect, if it is one alone.
    pub needs: Option<u8>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that had to be refused was, by this gate.
    Stopped(u8),
    /// A step that had to be refused was executed: its sentence.
    Permitted(String),
    /// Work: all steps passed.
    Done,
    /// Work: these sentences were refused, with their codes.
    Interrupted(Vec<(String, u16)>),
    /// The harness cannot tell: it says nothing about the door.
    Broken(String),
}

/// Tries an attack in every order that helps it.
pub(crate) fn try_attack(on: (&Stage, &Ambient), case: &Case, rows: &mut Rows) -> Trial {
    let mut trial =
        Trial { case: case.name.clone(), orders: 0, steps: 0, needs: None, outcome: Outcome::Done };
    trial.outcome = attack(on, case, &mut trial, rows).unwrap_or_else(Outcome::Broken);
    trial
}

fn attack(
    (stage, ambient): (&Stage, &Ambient),
    case: &Case,
    trial: &mut Trial,
    rows: &mut Rows,
) -> Result<Outcome, String> {
    let alone = play(stage, case, &orders(case.user.len(), 0, case.user.len(), 1))?;
    for (step, attempt) in case.user.iter().zip(alone.iter().flat_map(|played| &played.attempts)) {
        if attempt.code != 0 {
            return Err(format!("without the attack, {} came to {}", step.call, attempt.code));
        }
    }
    let carries = case.user.iter().position(|step| step.carries);
    let first = carries.map_or(0, |index| index.saturating_add(1));
    let orders = orders(case.user.len(), case.attack.len(), first, ORDERS);
    let stops = case.attack.iter().filter(|step| step.stopped.is_some()).count();
    let mut most = [0; Monitor::ALL.len()];
    let every: Vec<&Step> = case.attack.iter().chain(case.children.values().flatten()).collect();
    // Steps that came to what they are there for.
    let mut met = vec![false; every.len()];
    let mut permitted = None;
    let mut gate = 0;
    let grant = case.grant().map_err(|why| why.why)?;
    for (order, scene) in orders.iter().zip(play(stage, case, &orders)?) {
        trial.orders = trial.orders.saturating_add(1);
        let own = order.iter().zip(&scene.attempts).filter_map(|(from, attempt)| {
            matches!(from, From::Attack(_)).then_some((step(case, *from)?, attempt))
        });
        for (step, attempt) in of_children(case, &scene).chain(own) {
            let place = every.iter().position(|it| core::ptr::eq(*it, step));
            let met = place.and_then(|place| met.get_mut(place));
            match (&step.stopped, attempt.code) {
                (None, 0) => {
                    if let Some(met) = met {
                        *met = true;
                    }
                }
                (None, _) => {}
                (Some(_), 0) => permitted = permitted.or_else(|| Some(step.call.clone())),
                (Some(named), code) if named.codes.contains(&code) => {
                    if let Some(met) = met {
                        *met = true;
                    }
                    gate = named.gate;
                    let refusing = refusing(&grant, &case.task, &step.call, attempt);
                    // What a child's grant says is not known here.
                    let is_own = case.attack.iter().any(|own| core::ptr::eq(own, step));
                    if is_own && refusing.iter().filter(|refuses| **refuses).count() == 1 {
                        trial.needs = Some(gate);
                    }
                }
                // What was destroyed once is not there a second time.
                (Some(_), _) if permitted.is_some() => {}
                (Some(named), code) => {
                    return Err(format!(
                        "{} came to {code}, and the case says {:?}",
                        step.call, named.codes
                    ));
                }
            }
        }
        if let Some(path) = scene.changed.iter().find(|path| case.intact.contains(path)) {
            permitted = permitted.or_else(|| Some(format!("{path} is not as it was")));
        }
        for (most, judged) in most.iter_mut().zip(judge(case, order, &scene)?) {
            let stopped = |from: &From| step(case, *from).is_some_and(|it| it.stopped.is_some());
            let passed = order.iter().zip(judged).filter(|(from, said)| {
                matches!(from, From::Attack(_)) && stopped(from) && *said == Said::Permits
            });
            *most = passed.count().min(stops).max(*most);
        }
    }
    let idle = every.iter().zip(&met).find(|(_, met)| !**met);
    if let (Some((step, _)), None) = (idle, &permitted) {
        return Err(match step.stopped {
            Some(_) => format!("{} never came to the door", step.call),
            None => format!("{} prepares nothing: it never passed", step.call),
        });
    }
    if let (Some(_), Some(own)) = (&permitted, most.first_mut()) {
        *own = (*own).max(1);
    }
    let mut ends = most.map(|most| Some((most > 0, most >= stops)));
    if let Some(end) = ends.last_mut() {
        *end = without_a_door(ambient, case, orders.first().map_or(&[], Vec::as_slice))?;
    }
    rows.attack(ends);
    Ok(permitted.map_or(Outcome::Stopped(gate), Outcome::Permitted))
}

/// Whether a step of an attack, and whether all of them, had their effect where nobody looks;
/// nothing, if WASI has no act for one.
fn without_a_door(
    ambient: &Ambient,
    case: &Case,
    order: &[From],
) -> Result<Option<(bool, bool)>, String> {
    let files: Vec<_> = case.files.iter().map(|(path, text)| (&**path, text.as_bytes())).collect();
    let steps = || order.iter().filter_map(|from| step(case, *from));
    let sentences: Vec<&str> = steps().map(|step| &*step.call).collect();
    let did = ambient.play(&files, &sentences)?;
    let ends = steps().zip(did).filter(|(step, _)| step.stopped.is_some()).map(|(_, did)| did);
    let ends: Vec<Did> = ends.collect();
    let is_said = !ends.contains(&Did::Unsaid);
    Ok(is_said.then(|| (ends.contains(&Did::Done), ends.iter().all(|did| *did == Did::Done))))
}

/// Tries a piece of everyday work.
pub(crate) fn try_work(stage: &Stage, case: &Case, rows: &mut Rows) -> Trial {
    let steps = case.user.iter().filter(|step| step.why.is_some()).count();
    let outcome = work(stage, case, rows).unwrap_or_else(Outcome::Broken);
    Trial { case: case.name.clone(), orders: 1, steps, needs: None, outcome }
}

fn work(stage: &Stage, case: &Case, rows: &mut Rows) -> Result<Outcome, String> {
    let orders = orders(case.user.len(), 0, case.user.len(), 1);
    let mut stopped = Vec::new();
    for (order, played) in orders.iter().zip(play(stage, case, &orders)?) {
        let children = of_children(case, &played);
        if children.clone().count() < case.children.values().flatten().count() {
            return Err("a child did not do its work".to_owned());
        }
        let own = case.user.iter().zip(&played.attempts);
        for (step, Attempt { code, .. }) in own.chain(children) {
            match (code::gate(*code), &step.why) {
                (None, _) => {}
                // What a warrant that was not minted would have covered is what the human is asked.
                (Some(3), None) if step.call.starts_with("{\"warrant\"") => {}
                (Some(3), Some(_)) => stopped.push((step.call.clone(), *code)),
                _ => return Err(format!("{} came to {code}", step.call)),
            }
        }
        let asked = judge(case, order, &played)?.map(|judged| {
            case.user.iter().zip(judged).any(|(it, said)| it.why.is_some() && said != Said::Permits)
        });
        rows.work(case.user.iter().any(|step| step.why.is_some()), asked);
    }
    Ok(if stopped.is_empty() { Outcome::Done } else { Outcome::Interrupted(stopped) })
}

/// What each monitor says of a case that was played in an order.
fn judge(case: &Case, order: &[From], played: &Played) -> Result<Judged, String> {
    let sentences: Vec<&str> =
        order.iter().filter_map(|from| step(case, *from)).map(|step| &*step.call).collect();
    let texts = case.files.values().chain(case.replies.values());
    let texts: Vec<&str> = texts.map(|text| &**text).collect();
    let told: Vec<bool> = sentences.iter().map(|sentence| is_told(sentence, &texts)).collect();
    let script = Script {
        grant: &case.grant().map_err(|why| why.why)?,
        today: TODAY,
        line: &case.task,
        sentences: &sentences,
        attempts: &played.attempts,
        told: &told,
    };
    Ok(Monitor::ALL.map(|monitor| monitor.judge(&script)))
}

/// The steps of children that were started, with what they came to.
fn of_children<'a>(
    case: &'a Case,
    played: &'a Played,
) -> impl Iterator<Item = (&'a Step, &'a Attempt)> + Clone {
    played.children.iter().flat_map(move |(package, attempts)| {
        case.children.get(package).into_iter().flatten().zip(attempts)
    })
}

fn step(case: &Case, from: From) -> Option<&Step> {
    match from {
        From::User(index) => case.user.get(index),
        From::Attack(index) => case.attack.get(index),
    }
}

/// Plays a case in each of these orders.
fn play(stage: &Stage, case: &Case, orders: &[Vec<From>]) -> Result<Vec<Played>, String> {
    let grant = Arc::new(case.grant().map_err(|why| why.why)?);
    let files = case.files.iter().map(|(path, text)| (&**path, text.as_bytes())).collect();
    let replies: Vec<_> = case.replies.clone().into_iter().collect();
    let children = case.children.iter().map(|(name, steps)| {
        let sentences = steps.iter().map(|step| &*step.call).collect();
        (&**name, sentences)
    });
    let more = More {
        pages: case.pages.clone().into_iter().collect(),
        answers: case.answers.iter().map(String::as_str).collect(),
        children: children.collect(),
        later: Vec::new(),
    };
    let (replies, sentences) = (&*replies, Vec::new());
    let scene = Scene { task: &case.task, grant, files, replies, sentences, today: TODAY, more };
    orders
        .iter()
        .map(|order| {
            let (sentences, later) = turns(case, order);
            let more = More { later, ..scene.more.clone() };
            stage.play(&Scene { sentences, more, ..scene.clone() })
        })
        .collect()
}

/// The sentences of an order in the first turn, and the turns after it.
fn turns<'a>(case: &'a Case, order: &[From]) -> (Vec<&'a str>, Vec<Turn<'a>>) {
    let (mut first, mut later) = (Vec::new(), Vec::<Turn<'a>>::new());
    for step in order.iter().filter_map(|from| step(case, *from)) {
        if let Some(turn) = &step.turn {
            let (line, resumed) = (&*turn.line, turn.resumed);
            later.push(Turn { line, resumed, sentences: Vec::new() });
        }
        let turn = later.last_mut().map_or(&mut first, |turn| &mut turn.sentences);
        turn.push(&*step.call);
    }
    (first, later)
}
