//! What the journal says can be undone, is: byte for byte, after a crash too.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::symlink, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use synapse_primitives::{
    Fault, Platform,
    disk::{Disk, Resolve, Undone},
    journal::{self, Entry},
    mounts::Access,
    platform::{Journal, Mode},
    rest::Names,
};
use tempfile::TempDir;

use crate::stage::{Calls, Shown, Stage, dir, journal as room, mount, now};

/// Every file below a folder with its bytes, every directory, every link, but
/// for Synapse's own.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if path.file_name().unwrap().to_string_lossy().starts_with(".synapse-") {
                continue;
            }
            let content = if kind.is_symlink() {
                Some(fs::read_link(&path).unwrap().to_string_lossy().into_owned().into_bytes())
            } else if kind.is_file() {
                Some(fs::read(&path).unwrap())
            } else {
                left.push(path.clone());
                None
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), content);
        }
    }
    found
}

/// The folder of a run that is over.
struct Over {
    disk: Disk,
    journal: journal::Journal,
}

impl Over {
    fn of(scratch: &Path) -> Self {
        let folder = scratch.join("journal");
        let journal = journal::read(&fs::read(folder.join("index")).unwrap()).unwrap();
        let mounts = vec![mount("/data", &scratch.join("data"), Access::ReadWrite)];
        let disk = Disk::reopen(mounts, dir(&folder), &journal);
        Self { disk: disk.unwrap(), journal }
    }

    /// Undoes everything that is left, last first.
    fn undo(&self) -> Vec<(&Entry, Result<Undone, Fault>)> {
        let entries = self.journal.entries.iter().enumerate().rev();
        entries
            .filter(|(place, _)| !self.journal.undone.contains(place))
            .map(|(place, entry)| (entry, self.disk.undo(place, entry, Resolve::Undo)))
            .collect()
    }

    fn only(&self) -> Result<Undone, Fault> {
        let place = self.journal.entries.len() - 1;
        if self.journal.undone.contains(&place) {
            return Ok(Undone::Nothing);
        }
        let entry = self.journal.entries.last().unwrap();
        let looked = self.disk.undo(place, entry, Resolve::Look);
        let undone = self.disk.undo(place, entry, Resolve::Undo);
        assert_eq!(looked, undone, "a look says what comes");
        undone
    }
}

const NAMES: [&str; 7] = ["a", "b.md", "d/a", "d/b", "d/e/c", "f/g/h", "link"];

/// A folder with a bit of everything.
fn fill(data: &Path) {
    fs::create_dir_all(data.join("d/e")).unwrap();
    for name in ["a", "d/a", "d/e/c"] {
        fs::write(data.join(name), format!("{name}: first\n")).unwrap();
    }
    symlink("nowhere", data.join("d/link")).unwrap();
}

/// The numbers of a seed.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// One change after the other, whatever comes of each.
fn change(disk: &Disk, seed: u64, turns: u64) -> usize {
    let mut next = numbers(seed);
    let mut done = 0;
    for record in 1..=turns {
        let mut one_of =
            |names: &[&str]| format!("/data/{}", names.get(next(names.len())).unwrap());
        let (path, other) = (one_of(&NAMES), one_of(&NAMES));
        let folder = one_of(&["d", "d/e", "f", "f/g"]);
        let journal = room(record, 1 << 20);
        let text = format!("{seed} {record}\n").repeat(next(5));
        let text = text.as_bytes();
        let answer = match next(12) {
            0 => disk.put_as(&path, text, Mode::Create, record, 1 << 20).map(|_| ()),
            1 | 2 => disk.put_as(&path, text, Mode::Replace, record, 1 << 20).map(|_| ()),
            3..=5 => disk.put_as(&path, text, Mode::Append, record, 1 << 20).map(|_| ()),
            6 | 7 => now(disk.edit(&path, b"first", text, journal)).map(|_| ()),
            8 => now(disk.rename(&path, &other, journal, &|_, _| Some(Names::NONE))),
            9 => now(disk.rename(&folder, &other, journal, &|_, _| Some(Names::NONE))),
            10 => now(disk.remove(&path, journal, &|_| true)).map(|_| ()),
            _ => now(disk.remove(&folder, journal, &|_| true)).map(|_| ()),
        };
        done += usize::from(answer.is_ok());
    }
    done
}

#[test]
fn any_run_is_undone_to_the_last_byte_and_once() {
    let mut changes = 0;
    for seed in 0..100 {
        let stage = Stage::quick();
        fill(&stage.data(""));
        let before = tree(&stage.data(""));
        changes += change(&stage.disk, seed, 40);
        let over = Over::of(stage.scratch());
        for (entry, undone) in over.undo() {
            let undone = undone.unwrap_or_else(|fault| panic!("{seed} {entry:?} {fault:?}"));
            assert!(
                matches!(undone, Undone::Restored | Undone::Nothing | Undone::Left),
                "{seed} {entry:?} {undone:?}"
            );
        }
        assert_eq!(tree(&stage.data("")), before, "seed {seed}");
        assert!(Over::of(stage.scratch()).undo().is_empty(), "all of it is marked");
    }
    println!("{changes} changes undone");
    assert!(changes > 1000, "{changes}");
}

#[test]
fn what_was_changed_since_stays_and_the_old_stands_beside_it() {
    let stage = Stage::quick();
    let on_host = |name: &str| fs::read_to_string(stage.data(name)).unwrap();
    let (disk, data) = (&stage.disk, |name: &str| stage.data(name));
    let write = |name: &str, text: &str| fs::write(stage.data(name), text).unwrap();

    write("a.md", "old");
    disk.put_as("/data/a.md", b"agent", Mode::Replace, 1, 99).unwrap();
    write("a.md", "mine");
    let beside = Undone::Beside("/data/a (before record 1).md".to_owned());
    assert_eq!(Over::of(stage.scratch()).only(), Ok(beside));
    assert_eq!((on_host("a.md"), on_host("a (before record 1).md")), ("mine".into(), "old".into()));
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Nothing), "once");

    write("log", "old\n");
    disk.put_as("/data/log", b"agent\n", Mode::Append, 2, 99).unwrap();
    write("log", "old\nagent\nmine\n");
    let beside = Undone::Beside("/data/log (before record 2)".to_owned());
    assert_eq!(Over::of(stage.scratch()).only(), Ok(beside));
    assert_eq!(on_host("log (before record 2)"), "old\n");
    assert_eq!(on_host("log"), "old\nagent\nmine\n");
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Nothing), "once");
    disk.put_as("/data/log", b"more\n", Mode::Append, 3, 99).unwrap();
    write("log", "all mine");
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Left), "nothing of it is there");

    disk.put_as("/data/new/made", b"agent", Mode::Create, 4, 99).unwrap();
    write("new/made", "mine");
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Left));
    assert_eq!(on_host("new/made"), "mine");

    fs::create_dir(data("tree")).unwrap();
    write("tree/x", "old");
    now(disk.remove("/data/tree", room(5, 99), &|_| true)).unwrap();
    write("tree", "mine");
    write("tree (before record 5)", "mine too");
    let beside = Undone::Beside("/data/tree (before record 5 2)".to_owned());
    assert_eq!(Over::of(stage.scratch()).only(), Ok(beside));
    assert_eq!(on_host("tree (before record 5 2)/x"), "old");
    assert_eq!(on_host("tree"), "mine");

    write("from", "old");
    let journal = room(6, 99);
    now(disk.rename("/data/from", "/data/to", journal, &|_, _| Some(Names::NONE))).unwrap();
    write("to", "edited since");
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Restored));
    assert_eq!(on_host("from"), "edited since", "a move goes back with what became of it");
    let journal = room(7, 99);
    now(disk.rename("/data/from", "/data/to", journal, &|_, _| Some(Names::NONE))).unwrap();
    write("from", "mine");
    let beside = Undone::Beside("/data/from (before record 7)".to_owned());
    assert_eq!(Over::of(stage.scratch()).only(), Ok(beside));
    assert_eq!(on_host("from"), "mine");
    let journal = room(8, 99);
    now(disk.rename("/data/from", "/data/to", journal, &|_, _| Some(Names::NONE))).unwrap();
    fs::remove_file(data("to")).unwrap();
    write("to", "another");
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Left));
    assert_eq!(on_host("to"), "another");
}

#[test]
fn a_file_under_another_name_too_comes_back_as_itself() {
    let stage = Stage::quick();
    fs::write(stage.data("a"), "old").unwrap();
    fs::hard_link(stage.data("a"), stage.data("same")).unwrap();
    stage.disk.put_as("/data/a", b"agent", Mode::Replace, 1, 99).unwrap();
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Restored));
    fs::write(stage.data("same"), "written through the other name").unwrap();
    assert_eq!(fs::read(stage.data("a")).unwrap(), b"written through the other name");
}

#[test]
fn no_link_leads_an_undo_out_of_the_folder() {
    let stage = Stage::quick();
    fs::create_dir(stage.data("dir")).unwrap();
    fs::write(stage.data("dir/a"), "old").unwrap();
    fs::create_dir(stage.outer("outside")).unwrap();
    fs::write(stage.outer("outside/a"), "agent").unwrap();
    stage.disk.put_as("/data/dir/a", b"agent", Mode::Replace, 1, 99).unwrap();
    fs::rename(stage.data("dir"), stage.data("gone")).unwrap();
    symlink(stage.outer("outside"), stage.data("dir")).unwrap();
    assert_eq!(Over::of(stage.scratch()).only(), Err(Fault::Link));
    assert_eq!(fs::read(stage.outer("outside/a")).unwrap(), b"agent");
    fs::remove_file(stage.data("dir")).unwrap();
    fs::rename(stage.data("gone"), stage.data("dir")).unwrap();
    assert_eq!(Over::of(stage.scratch()).only(), Ok(Undone::Restored));
    assert_eq!(fs::read(stage.data("dir/a")).unwrap(), b"old");
}

/// Names the scratch folder and what to do there, in a process that is killed.
const VICTIM: &str = "SYNAPSE_TEST_VICTIM";

/// Not a test of its own: what the killed processes do.
#[test]
fn victim() {
    let Ok(what) = std::env::var(VICTIM) else { return };
    let (what, scratch) = what.split_once(' ').unwrap();
    let scratch = Path::new(scratch);
    match what.parse::<u64>() {
        Ok(seed) => {
            let mounts = vec![mount("/data", &scratch.join("data"), Access::ReadWrite)];
            let journal = Some(dir(&scratch.join("journal")));
            let disk = Disk::new(mounts, &[], journal, Box::new(Shown::default())).unwrap();
            change(&disk, seed, 400);
        }
        Err(_) => {
            Over::of(scratch).undo();
        }
    }
}

/// Runs the victim, and kills it after a while; whether it was still running.
fn kill_after(what: &str, scratch: &Path, while_: Duration) -> bool {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "undo::victim"])
        .env(VICTIM, format!("{what} {}", scratch.to_str().unwrap()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = scratch.join("journal/index");
    while !fs::read(&begun).is_ok_and(|index| index.contains(&b'\n')) {
        assert!(victim.try_wait().unwrap().is_none(), "the victim never began");
        thread::yield_now();
    }
    thread::sleep(while_);
    victim.kill().unwrap();
    let ended = victim.wait().unwrap();
    assert!(ended.success() || ended.signal() == Some(9), "{ended}");
    !ended.success()
}

/// As many seeded kills as the project promises.
const KILLS: u64 = 200;

#[test]
fn i16_a_run_killed_anywhere_and_an_undo_killed_anywhere_lose_nothing() {
    let (mut runs_killed, mut undos_killed, mut changes) = (0, 0, 0);
    for seed in 0..KILLS {
        let scratch = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        let data = scratch.path().join("data");
        fs::create_dir(&data).unwrap();
        // For every second one the journal is on another file system, if there is one.
        let other = TempDir::new().unwrap();
        if seed % 2 == 0 {
            fs::create_dir(scratch.path().join("journal")).unwrap();
        } else {
            symlink(other.path(), scratch.path().join("journal")).unwrap();
        }
        fill(&data);
        let before = tree(&data);
        let mut next = numbers(seed);
        let mut wait = || Duration::from_micros(u64::try_from(next(6000)).unwrap());
        let killed = kill_after(&seed.to_string(), scratch.path(), wait());
        runs_killed += usize::from(killed);
        for _ in 0..3 {
            undos_killed += usize::from(kill_after("undo", scratch.path(), wait()));
        }
        let over = Over::of(scratch.path());
        changes += over.journal.entries.len();
        for (entry, undone) in over.undo() {
            assert!(undone.is_ok(), "seed {seed}: {entry:?} {undone:?}");
        }
        assert_eq!(tree(&data), before, "seed {seed}");
    }
    println!("{runs_killed} runs and {undos_killed} undos killed, {changes} changes undone");
    assert!(runs_killed > 100 && undos_killed > 100, "{runs_killed} {undos_killed}");
}

#[test]
fn i16_one_record_of_many_changes_is_undone_as_a_whole() {
    let stage = Stage::quick();
    for (name, text) in [("a", "one"), ("b", "two"), ("c", "three"), ("d/e", "four")] {
        fs::create_dir_all(stage.data("d")).unwrap();
        fs::write(stage.data(name), text).unwrap();
    }
    let before = tree(&stage.data(""));
    let part = |part| Journal { part, ..room(7, 100) };
    for (place, name) in (0..).zip(["a", "b", "new/x", "new/y"]) {
        let path = format!("/data/{name}");
        now(stage.disk.write(&path, b"changed", Mode::Replace, part(place))).unwrap();
    }
    for (place, name) in (4..).zip(["c", "d/e"]) {
        now(stage.disk.remove(&format!("/data/{name}"), part(place), &|_| true)).unwrap();
    }
    assert_ne!(tree(&stage.data("")), before);
    let over = Over::of(stage.scratch());
    assert!(over.journal.entries.iter().all(|entry| entry.record == 7));
    assert!(over.undo().iter().all(|(_, undone)| *undone == Ok(Undone::Restored)));
    assert_eq!(tree(&stage.data("")), before);
}
