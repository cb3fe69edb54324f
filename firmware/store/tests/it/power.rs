//! Power cuts: at every write of a run, and at random in longer ones.

use std::sync::Arc;

use proptest::prelude::*;
use synapse_boundary::Label;
use synapse_kernel::record::{Durability, Event, Kind, Log};
use synapse_kernel::verify::Reader;
use synapse_primitives::platform::Mode;
use synapse_store::{Database, Past, Shelf, Tape, Unusable};

use crate::acts;
use crate::disk::Disk;
use crate::{Act, act, all, in_memory, shelf};

const DISK: usize = 16 << 20;

fn open(disk: &Disk) -> Result<Database, Unusable> {
    Database::open(Box::new(disk.clone()), 256 << 10)
}

/// A run that notes a record before each act, as a decision is.
fn run(shelf: &Arc<Shelf>, acts: &[Act]) -> (usize, usize) {
    let number = shelf.begin("agent");
    let note = |log: &mut Log<Tape>, durability| {
        let event = Event {
            kind: Kind::TurnStart,
            task: 0,
            primitive: None,
            code: 0,
            label: Label::SYSTEM,
            cause: None,
            tail: None,
            durability,
        };
        log.note(&event, 0)
    };
    let Ok(mut log) = Log::begin(shelf.tape(number), [0; 32]) else { return (0, 0) };
    let (mut done, mut safe) = (0, 0);
    for (record, one) in (0..).zip(acts) {
        let durability = if record % 4 == 0 { Durability::Synced } else { Durability::Soon };
        if note(&mut log, durability).is_err() {
            break;
        }
        if record % 4 == 0 {
            safe = done + 1;
        }
        if act(shelf, number, record, one) == Err(synapse_primitives::Fault::Io) {
            break;
        }
        done += 1;
    }
    if shelf.end(number).is_ok() {
        safe = done;
    }
    (done, safe)
}

fn records(shelf: &Shelf, run: u64) -> usize {
    let log = shelf.log(run).unwrap();
    Reader::new(&log).inspect(|record| assert!(record.is_ok(), "{record:?}")).count()
}

/// Cuts the power in the middle of a run, and looks at what is left.
fn survive(acts: &[Act], cut: u64, mut survives: impl FnMut() -> bool) {
    let disk = Disk::new(DISK);
    let fresh = Arc::new(shelf(Box::new(open(&disk).unwrap())));
    disk.cut_after(cut);
    let (done, safe) = run(&fresh, acts);
    drop(fresh);
    disk.revive(&mut survives);

    let left = shelf(Box::new(open(&disk).unwrap()));
    let known = left.runs();
    let found = if known.is_empty() { 0 } else { records(&left, 1) };
    assert!(found >= safe, "{found} records are left, {safe} were safe");
    // What stands is what stood after some number of acts, each whole: the last
    // that was acknowledged, or the one under way.
    let stands = all(&left);
    let after = |count: usize| {
        let model = in_memory();
        let number = model.begin("agent");
        for (record, one) in (0..).zip(&acts[..count.min(acts.len())]) {
            let _ = act(&model, number, record, one);
        }
        all(&model)
    };
    let candidates = [after(done), after(done + 1)];
    assert!(candidates.contains(&stands), "after {done} acts: {stands:?}");
    // No effect without its record.
    let effects = if stands == candidates[0] { done } else { done + 1 };
    if effects > 0 && stands != after(effects - 1) {
        assert!(found >= effects, "effect {effects} is there, and {found} records are");
    }
    // And it goes on.
    let left = Arc::new(left);
    let (again, _) = run(&left, &[Act::Write("/data/on".into(), b"on".to_vec(), Mode::Replace)]);
    assert_eq!(again, 1);
    let number = left.runs().last().map(|past| past.number).unwrap();
    assert_eq!(records(&left, number), 1);
}

fn story() -> Vec<Act> {
    let write = |path: &str, length: usize, mode| Act::Write(path.into(), vec![b'x'; length], mode);
    vec![
        write("/data/a/one", 100, Mode::Create),
        write("/data/a/two", 50_000, Mode::Create),
        write("/data/a/one", 40_000, Mode::Append),
        Act::Move("/data/a".into(), "/data/b/c".into()),
        write("/data/b/c/two", 3, Mode::Replace),
        Act::Edit("/data/b/c/two".into(), b"xxx".to_vec(), b"y".to_vec()),
        Act::Remove("/data/b".into()),
    ]
}

#[test]
fn every_point_of_a_story_is_survived() {
    let disk = Disk::new(DISK);
    let whole = Arc::new(shelf(Box::new(open(&disk).unwrap())));
    let before = disk.made();
    run(&whole, &story());
    let all = disk.made() - before;
    assert!(all > 40, "{all} writes are too few to cut between");
    for cut in 1..=all {
        let mut flip = cut;
        survive(&story(), cut, || {
            flip = flip.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            flip >> 63 == 1
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_runs_survive_random_cuts(
        acts in prop::collection::vec(acts::act(), 1..30),
        cut in 1_u64..400,
        seed in any::<u64>(),
    ) {
        let mut flip = seed | 1;
        survive(&acts, cut, || {
            flip ^= flip << 13;
            flip ^= flip >> 7;
            flip ^= flip << 17;
            flip & 1 == 1
        });
    }
}

#[test]
fn everything_is_there_after_a_restart_and_a_cut_while_making_leaves_an_empty_disk() {
    let disk = Disk::new(DISK);
    for cut in 1..20 {
        disk.cut_after(cut);
        let opened = open(&disk).map(shelf_or_not);
        disk.revive(|| cut % 2 == 0);
        drop(opened);
    }
    let first = Arc::new(shelf(Box::new(open(&disk).unwrap())));
    let (done, _) = run(&first, &story()[..6]);
    assert_eq!(done, 6);
    let stood = all(&first);
    drop(first);
    let again = shelf(Box::new(open(&disk).unwrap()));
    assert_eq!(all(&again), stood);
    assert_eq!(again.runs(), [Past { number: 1, name: "agent".to_owned(), ended: true }]);
    for (place, entry) in again.journal(1).unwrap() {
        again.undo(1, place, &entry, 0).unwrap();
    }
    assert!(all(&again).is_empty());
}

fn shelf_or_not(database: Database) -> Option<Shelf> {
    Shelf::open(Box::new(database), crate::ROOMS, &["/data".to_owned()], &[], 0).ok()
}

#[test]
fn disks_that_are_not_ours_are_left_alone() {
    assert_eq!(open(&Disk::new(4096)).unwrap_err(), Unusable::Small);
    let disk = Disk::new(DISK);
    disk.spoil();
    assert_eq!(open(&disk).unwrap_err(), Unusable::Foreign);
    assert_eq!(disk.made(), 0);
}
