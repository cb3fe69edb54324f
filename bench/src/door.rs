//! The door alone: gate by gate, the whole decision, and its record
//!
//! # Not here
//! What a guest adds (`guest`), what an effect costs (`disk`).

use core::hint::black_box;
use std::rc::Rc;

use synapse_boundary::scope::Pattern;
use synapse_boundary::{
    Facts, Held, Integrity, Label, Mark, Names, NormalPath, Opened, Request, Rights, Scope, Table,
    Verdict, Warrants, commit, decide, parse,
};
use synapse_kernel::record::{Log, SinkFailed};

use crate::task::{self, Ring};
use crate::{Failure, Group, Row};

/// How many different sentences the rows go through, again and again.
pub const SENTENCES: u16 = 4096;
/// Bytes of each.
pub const LENGTH: usize = 60;
/// Entries of the large scope.
pub const ENTRIES: usize = 10_000;
/// Live warrants of a task that has many.
pub const WARRANTS: u8 = 100;

/// The rows; the first is the whole decision.
///
/// # Errors
/// The door does not permit what they ask for.
pub fn group() -> Result<Group, Failure> {
    let (small, large) = (Rc::new(World::small()?), Rc::new(World::large()?));
    let mut log = task::log()?;
    small.check(&mut log)?;
    large.check(&mut log)?;
    let decision = |name, world: &Rc<World>| {
        let world = Rc::clone(world);
        each(name, move |sentence| drop(black_box(world.decide(sentence))))
    };
    let nothing = World { table: Table::new(0), ..World::small()? };
    let recorded = Rc::clone(&small);
    Ok(Group {
        title: "The door: 4,096 different sentences of 60 bytes, all in scope",
        rows: vec![
            decision("decision: all four gates", &small),
            each("gate 1: parse", |sentence| drop(black_box(parse(sentence)))),
            each("gates 1 and 2: not granted", move |sentence| {
                drop(black_box(nothing.decide(sentence)));
            }),
            decision("decision, 10,000 scope entries", &large),
            each("decision and record", move |sentence| {
                drop(black_box(recorded.submit(sentence, &mut log)));
            }),
        ],
    })
}

/// What a reason costs. Gate 3 has no name outside of a decision: it costs what a
/// decision after reading takes more than one that nothing was read before.
///
/// # Errors
/// The door permits what they ask for, or mints no warrant.
pub fn reasons() -> Result<Group, Failure> {
    let decision = |name, world: World| {
        each_of(name, deletions(), move |sentence: &Vec<u8>| {
            drop(black_box(world.decide(sentence)));
        })
    };
    let (scope, mut paths) = (World::small()?.scope, Vec::new());
    for target in (0..SENTENCES).map(targets).filter(|targets| targets.len() == 1).flatten() {
        let path = NormalPath::parse(target.into());
        paths.push(path.map_err(|why| format!("a row's own path is no path: {why:?}"))?);
    }
    Ok(Group {
        title: "Gates 3 and 4: the deletions among the sentences above",
        rows: vec![
            decision("decision, nothing read", World::small()?),
            decision("after reading: no warrant", World::after_reading(0)?),
            decision("after reading: 100 for others", World::after_reading(WARRANTS)?),
            each_of("gate 4 alone", paths, move |path| {
                let _ = black_box(scope.check(path, Rights::DELETE));
            }),
        ],
    })
}

/// A row that does `one` thing with sentence after sentence.
pub fn each(name: &'static str, mut one: impl FnMut(&[u8]) + 'static) -> Row {
    each_of(name, sentences(), move |sentence: &Vec<u8>| one(sentence))
}

fn each_of<T: 'static>(
    name: &'static str,
    things: Vec<T>,
    mut one: impl FnMut(&T) + 'static,
) -> Row {
    let mut next = 0;
    Row::new(name, move |times| {
        for thing in things.iter().cycle().skip(next).take(times as usize) {
            one(black_box(thing));
        }
        next = (next + times as usize) % things.len();
        Ok(())
    })
}

/// What decides about the sentences: a task's authority, and facts of no store.
#[derive(Debug)]
pub struct World {
    scope: Scope,
    mark: Mark,
    table: Table,
    warrants: Warrants,
    lines: Vec<String>,
}

impl World {
    /// A scope as people write it: folders, a folder denied, a name denied.
    ///
    /// # Errors
    /// Never, unless a pattern stops being one.
    pub fn small() -> Result<Self, Failure> {
        let mut scope = Scope::default();
        scope.allow(&pattern("/data/**")?, ALL);
        scope.allow(&pattern("/m/**")?, ALL);
        scope.deny(&pattern("/data/private/**")?);
        scope.deny_name(".env");
        Ok(Self {
            scope,
            mark: Mark::new(task::mark()),
            table: Table::new(u32::MAX),
            warrants: Warrants::default(),
            lines: Vec::new(),
        })
    }

    /// A scope of [`ENTRIES`]: one for each target, and for one that nobody asks
    /// for; of these every other one is denied.
    ///
    /// # Errors
    /// As for [`World::small`].
    pub fn large() -> Result<Self, Failure> {
        let mut scope = Scope::default();
        let mut entries = 0;
        for number in 0..SENTENCES {
            for target in targets(number) {
                scope.allow(&pattern(&target)?, ALL);
                entries += 1;
            }
        }
        for other in entries..ENTRIES {
            let other_pattern = pattern(&format!("/data/other{other}/**"))?;
            if other % 2 == 0 {
                scope.allow(&other_pattern, ALL);
            } else {
                scope.deny(&other_pattern);
            }
        }
        Ok(Self { scope, ..Self::small()? })
    }

    /// As [`World::small`], but something was read, after so many warrants were
    /// minted for files that no sentence is about.
    ///
    /// # Errors
    /// A warrant was not minted, or a sentence is permitted.
    pub fn after_reading(warrants: u8) -> Result<Self, Failure> {
        let mut minting = Self::small()?;
        let paths: Vec<_> =
            (0..warrants).map(|number| format!("/data/w{number:04x}/b.md")).collect();
        minting.lines = vec![paths.join(" ")];
        let (mut log, mut minted) = (task::log()?, Warrants::default());
        for path in &paths {
            let sentence =
                format!(r#"{{"warrant":"fs_delete","arguments":{{"path":"{path}"}},"uses":1}}"#);
            let verdict = minting.decide(sentence.as_bytes());
            match commit(verdict, &mut log, &mut minted, &minting, 1) {
                Ok(Opened::Minted(_)) => {}
                _ => return Err(format!("the door does not mint {sentence}\ncorrect the row")),
            }
        }
        let mark = Label { integrity: Integrity::Ingested, ..task::mark() };
        let world = Self { mark: Mark::new(mark), warrants: minted, ..minting };
        for sentence in deletions() {
            if !matches!(world.submit(&sentence, &mut log), Ok(Opened::Refused(_))) {
                let sentence = String::from_utf8_lossy(&sentence).into_owned();
                return Err(format!("the door permits {sentence}\ncorrect the row"));
            }
        }
        Ok(world)
    }

    /// Decides one sentence.
    #[must_use]
    pub fn decide<'s>(&'s self, sentence: &'s [u8]) -> Verdict<'s> {
        let Self { scope, mark, table, warrants, lines } = self;
        let request = Request { task: 1, mark, table, scope, calls_left: 1, warrants, lines };
        decide(request, self, sentence).unasked()
    }

    /// Decides one sentence and records it.
    ///
    /// # Errors
    /// The sink failed.
    pub fn submit<'s>(
        &'s self,
        sentence: &'s [u8],
        log: &mut Log<Ring>,
    ) -> Result<Opened<'s>, SinkFailed> {
        commit(self.decide(sentence), log, &mut Warrants::default(), self, 1)
    }

    fn check(&self, log: &mut Log<Ring>) -> Result<(), Failure> {
        for sentence in sentences() {
            if !matches!(self.submit(&sentence, log), Ok(Opened::Permitted(_))) {
                let sentence = String::from_utf8_lossy(&sentence).into_owned();
                return Err(format!("the door does not permit {sentence}\ncorrect the row"));
            }
        }
        Ok(())
    }
}

impl Names for World {}

impl Facts for World {
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

/// The sentences of every row, in an order that no processor learns.
#[must_use]
pub fn sentences() -> Vec<Vec<u8>> {
    let number = |index: u16| index.wrapping_mul(2_531) % SENTENCES;
    (0..SENTENCES).map(|index| sentence(number(index)).into_bytes()).collect()
}

/// Those of them that a task may not submit after reading.
fn deletions() -> Vec<Vec<u8>> {
    let mut sentences = sentences();
    sentences.retain(|sentence| sentence.starts_with(br#"{"name":"fs_delete""#));
    sentences
}

fn sentence(number: u16) -> String {
    match targets(number).as_slice() {
        [from, to] => {
            format!(r#"{{"name":"fs_move","arguments":{{"from":"{from}","to":"{to}"}}}}"#)
        }
        paths => {
            format!(r#"{{"name":"fs_delete","arguments":{{"path":"{}"}}}}"#, paths.concat())
        }
    }
}

/// Paths of several shapes.
fn targets(number: u16) -> Vec<String> {
    match number % 4 {
        0 => vec![format!("/data/n{number:04x}/a.md")],
        1 => vec![format!("/data/{number:04x}-notes")],
        2 => vec![format!("/data/x/{number:04x}/y/z")],
        _ => vec![format!("/m/{:02x}", number >> 8), format!("/m/{:02x}", number & 255)],
    }
}

fn pattern(text: &str) -> Result<Pattern, Failure> {
    Pattern::parse(text).map_err(|why| format!("`{text}` is no pattern: {why:?}"))
}

const ALL: Rights = Rights::LIST.and(Rights::READ).and(Rights::WRITE).and(Rights::DELETE);

#[cfg(test)]
mod tests {
    use super::{LENGTH, SENTENCES, WARRANTS, World, group, reasons, sentences};
    use crate::task::log;
    use std::collections::BTreeSet;
    use synapse_boundary::{Opened, Table};

    #[test]
    fn sentences_are_different_and_of_one_length() {
        let all = sentences();
        assert!(all.iter().all(|sentence| sentence.len() == LENGTH));
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), usize::from(SENTENCES));
    }

    #[test]
    fn every_sentence_is_permitted_in_both_scopes() {
        assert_eq!(group().unwrap().rows.len(), 5);
        let nothing = World { table: Table::new(0), ..World::small().unwrap() };
        assert!(nothing.check(&mut log().unwrap()).is_err());
    }

    #[test]
    fn every_deletion_after_reading_needs_what_no_warrant_gives() {
        let mut rows = reasons().unwrap().rows;
        assert_eq!(rows.len(), 4);
        for row in &mut rows {
            row.run(u32::from(SENTENCES)).unwrap();
        }
        let world = World::after_reading(WARRANTS).unwrap();
        let own = br#"{"name":"fs_delete","arguments":{"path":"/data/w0063/b.md"}}"#;
        assert!(
            world
                .submit(own, &mut log().unwrap())
                .is_ok_and(|it| matches!(it, Opened::Permitted(_)))
        );
    }
}
