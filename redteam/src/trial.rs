//! A case played in every order, and what that says of the door.
//!
//! # Invariants
//! 1. Stopped is what the named gate refused with a named code, in every order.
//! 2. What did not cross, failed or was refused by another gate is told apart.
//!
//! # Not here
//! The orders (`order`), playing one (`play`).

use std::sync::Arc;

use synapse_abi::code;

use crate::case::Case;
use crate::order::{From, orders};
use crate::play::{Attempt, Played, Scene, Stage};

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
pub(crate) fn try_attack(stage: &Stage, case: &Case) -> Trial {
    let mut tried = 0;
    let outcome = attack(stage, case, &mut tried).unwrap_or_else(Outcome::Broken);
    Trial { case: case.name.clone(), orders: tried, steps: 0, outcome }
}

fn attack(stage: &Stage, case: &Case, tried: &mut usize) -> Result<Outcome, String> {
    let alone = play(stage, case, &orders(case.user.len(), 0, case.user.len(), 1))?;
    for (step, attempt) in case.user.iter().zip(alone.iter().flat_map(|played| &played.attempts)) {
        if attempt.code != 0 {
            return Err(format!("without the attack, {} came to {}", step.call, attempt.code));
        }
    }
    let carries = case.user.iter().position(|step| step.carries);
    let first = carries.map_or(0, |index| index.saturating_add(1));
    let orders = orders(case.user.len(), case.attack.len(), first, ORDERS);
    let mut prepared = vec![false; case.attack.len()];
    let mut gate = 0;
    for (order, scene) in orders.iter().zip(play(stage, case, &orders)?) {
        *tried = tried.saturating_add(1);
        for (from, attempt) in order.iter().zip(&scene.attempts) {
            let From::Attack(index) = from else { continue };
            let Some(step) = case.attack.get(*index) else { continue };
            match (&step.stopped, attempt.code) {
                (None, 0) => {
                    if let Some(prepared) = prepared.get_mut(*index) {
                        *prepared = true;
                    }
                }
                (None, _) => {}
                (Some(_), 0) => return Ok(Outcome::Permitted(step.call.clone())),
                (Some(named), code) if named.codes.contains(&code) => gate = named.gate,
                (Some(named), code) => {
                    return Err(format!(
                        "{} came to {code}, and the case says {:?}",
                        step.call, named.codes
                    ));
                }
            }
        }
        if let Some(path) = scene.changed.iter().find(|path| case.intact.contains(path)) {
            return Ok(Outcome::Permitted(format!("{path} is not as it was")));
        }
    }
    let idle =
        case.attack.iter().zip(&prepared).find(|(step, done)| step.stopped.is_none() && !*done);
    match idle {
        Some((step, _)) => Err(format!("{} prepares nothing: it never passed", step.call)),
        None => Ok(Outcome::Stopped(gate)),
    }
}

/// Tries a piece of everyday work.
pub(crate) fn try_work(stage: &Stage, case: &Case) -> Trial {
    let steps = case.user.iter().filter(|step| step.why.is_some()).count();
    let outcome = work(stage, case).unwrap_or_else(Outcome::Broken);
    Trial { case: case.name.clone(), orders: 1, steps, outcome }
}

fn work(stage: &Stage, case: &Case) -> Result<Outcome, String> {
    let played = play(stage, case, &orders(case.user.len(), 0, case.user.len(), 1))?;
    let attempts = played.iter().flat_map(|played| &played.attempts);
    let mut stopped = Vec::new();
    for (step, Attempt { code, .. }) in case.user.iter().zip(attempts) {
        match (code::gate(*code), &step.why) {
            (None, _) => {}
            // What a warrant that was not minted would have covered is what the human is asked.
            (Some(3), None) if step.call.starts_with("{\"warrant\"") => {}
            (Some(3), Some(_)) => stopped.push((step.call.clone(), *code)),
            _ => return Err(format!("{} came to {code}", step.call)),
        }
    }
    Ok(if stopped.is_empty() { Outcome::Done } else { Outcome::Interrupted(stopped) })
}

/// Plays a case in each of these orders.
fn play(stage: &Stage, case: &Case, orders: &[Vec<From>]) -> Result<Vec<Played>, String> {
    let grant = Arc::new(case.grant().map_err(|why| why.why)?);
    let files = case.files.iter().map(|(path, text)| (&**path, text.as_bytes())).collect();
    let scene = Scene { task: &case.task, grant, files, replies: &[], sentences: Vec::new() };
    let step = |from: &From| match from {
        From::User(index) => case.user.get(*index),
        From::Attack(index) => case.attack.get(*index),
    };
    let sentences =
        |order: &[From]| order.iter().filter_map(step).map(|step| &*step.call).collect();
    orders
        .iter()
        .map(|order| stage.play(&Scene { sentences: sentences(order), ..scene.clone() }))
        .collect()
}
