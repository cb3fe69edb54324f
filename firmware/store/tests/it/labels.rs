//! What stays with a file, whatever is done to it, and what a yes was given for.

use synapse_boundary::Integrity;
use synapse_primitives::platform::{Journal, Mode};
use synapse_primitives::rest::{Names, Owner, Rest, Stamp};
use synapse_primitives::{Fault, Standing};
use synapse_store::{By, Database, Shelf, Volatile};

use crate::disk::Disk;
use crate::{ROOMS, admits, creator, in_memory, journal, shelf, stamp};

fn rest(integrity: Integrity, names: &[&str]) -> Rest {
    let mut kept = Names::NONE;
    for name in names {
        kept.add(name);
    }
    Rest { integrity, names: kept }
}

fn stamped(run: u64, stamp: Stamp) -> By {
    By { run, journal: Journal { stamp, ..journal(run, 0) }, now_ms: 7 }
}

/// The changes of this run carry this.
fn by(run: u64, rest: Rest) -> By {
    stamped(run, Stamp { rest, ..stamp(run, 0) })
}

fn carried(shelf: &Shelf, path: &str) -> Rest {
    shelf.read(path, 0, 1).unwrap().rest
}

#[test]
fn a_label_is_there_when_the_store_is_opened_again_and_follows_a_move() {
    let disk = Disk::new(16 << 20);
    let open = || shelf(Box::new(Database::open(Box::new(disk.clone()), 256 << 10).unwrap()));
    let first = open();
    let run = first.begin("agent");
    let own = rest(Integrity::User, &["prompt", "letters"]);
    first.write("/data/a/b", b"x", Mode::Create, by(run, own.clone())).unwrap();
    let mut stamp = stamp(run, 0);
    stamp.carried.add("pattern");
    first.rename("/data/a", "/data/c", stamped(run, stamp), &admits).unwrap();
    drop(first);

    let again = open();
    assert!(again.is_own("/data/c", creator(run)));
    assert!(!again.is_own("/data/c", creator(run + 1)));
    assert!(!again.is_own("/data/a", creator(run)));
    let with_pattern = rest(Integrity::User, &["prompt", "letters", "pattern"]);
    assert_eq!(carried(&again, "/data/c/b"), with_pattern);
    let listed = again.list("/data/c", "", 10).unwrap();
    assert_eq!(listed.entries[0].rest, with_pattern);
    // And out of there by another move.
    again.rename("/data/c/b", "/data/b", by(run, own), &admits).unwrap();
    assert_eq!(carried(&again, "/data/b"), with_pattern);
}

#[test]
fn what_others_wrote_is_nobodys_own_and_a_mix_is_as_its_worst_part() {
    let shelf = Shelf::open(
        Box::new(Volatile::default()),
        ROOMS,
        &["/data".to_owned()],
        &[("/data/given".to_owned(), b"given")],
        5,
    )
    .unwrap();
    let (run, other) = (shelf.begin("one"), shelf.begin("two"));
    assert_eq!(carried(&shelf, "/data/given"), Rest::outside());
    let user = rest(Integrity::User, &["prompt"]);
    let written = shelf.write("/data/given", b"+", Mode::Append, by(run, user.clone())).unwrap();
    assert_eq!(written.before, Rest::outside());
    assert_eq!(carried(&shelf, "/data/given"), rest(Integrity::Ingested, &["files", "prompt"]));
    shelf.write("/data/given", b"new", Mode::Replace, by(run, user.clone())).unwrap();
    assert_eq!(carried(&shelf, "/data/given"), user);
    assert!(!shelf.is_own("/data/given", creator(run)));

    shelf.write("/data/own/a", b"a", Mode::Create, by(run, user.clone())).unwrap();
    shelf.write("/data/own/b", b"b", Mode::Create, by(other, user)).unwrap();
    let mine = Stamp { owner: Owner::Creator, ..stamp(run, 0) };
    let remove = |path| shelf.remove(path, stamped(run, mine.clone()), &|_| true);
    assert_eq!(remove("/data/own"), Err(Fault::Changed));
    assert_eq!(remove("/data/own/b"), Err(Fault::Changed));
    assert_eq!(remove("/data/own/a"), Ok(1));
}

#[test]
fn what_an_undo_brings_back_carries_what_it_carried() {
    let shelf = in_memory();
    let (first, second) = (shelf.begin("one"), shelf.begin("two"));
    let (old, new) = (rest(Integrity::User, &["letters"]), rest(Integrity::Ingested, &["files"]));
    shelf.write("/data/a", b"a", Mode::Create, by(first, old.clone())).unwrap();
    shelf.write("/data/a", b"b", Mode::Replace, by(second, new.clone())).unwrap();
    shelf.remove("/data/a", by(second, new.clone()), &|_| true).unwrap();
    let gone = shelf.list("/data", "", 10).unwrap().rest;
    assert_eq!(gone, new, "that a name is gone tells of who took it");
    for (place, entry) in shelf.journal(second).unwrap() {
        shelf.undo(second, place, &entry, 9).unwrap();
    }
    assert_eq!(shelf.read("/data/a", 0, 9).unwrap().bytes, b"a");
    assert_eq!(carried(&shelf, "/data/a"), old);
    assert!(shelf.is_own("/data/a", creator(first)));
}

#[test]
fn a_change_that_was_confirmed_is_of_what_stood_there() {
    let shelf = in_memory();
    let run = shelf.begin("agent");
    assert_eq!(shelf.state("/data/d"), Ok(Standing::absent()));
    let write = |path, mode| shelf.write(path, b"same", mode, by(run, Rest::SYSTEM)).unwrap();
    write("/data/d/a", Mode::Create);
    let expecting = |standing: Standing| {
        let journal = Journal { expects: Some(standing.state), ..journal(run, 1) };
        By { run, journal, now_ms: 7 }
    };
    let (folder, file) = (shelf.state("/data/d").unwrap(), shelf.state("/data/d/a").unwrap());
    assert_eq!((folder.entries, folder.bytes, file.bytes), (1, 4, 4));
    // The same bytes, written anew, are something else.
    write("/data/d/a", Mode::Replace);
    let changed = Err(Fault::Changed);
    assert_eq!(shelf.remove("/data/d", expecting(folder), &|_| true), changed);
    assert_eq!(shelf.rename("/data/d", "/data/e", expecting(folder), &admits), Err(Fault::Changed));
    let replaced = shelf.write("/data/d/a", b"", Mode::Replace, expecting(file));
    assert_eq!(replaced, Err(Fault::Changed));
    assert_eq!(shelf.edit("/data/d/a", b"s", b"S", expecting(file)), Err(Fault::Changed));
    let created = shelf.write("/data/n", b"", Mode::Create, expecting(file));
    assert_eq!(created, Err(Fault::Changed));
    let now = shelf.state("/data/d").unwrap();
    assert_eq!(shelf.remove("/data/d", expecting(now), &|_| true), Ok(4));
}
