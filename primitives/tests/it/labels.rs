//! What a file carries at rest, through every change, on both boards.

use std::{fs, os::unix::fs::symlink, path::Path};

use synapse_boundary::Integrity;
use synapse_primitives::{
    Fault, Platform,
    disk::{Disk, Identity},
    journal::{self, Folder},
    memory::Memory,
    mounts::Access,
    platform::{Journal, Mode},
    rest::{
        Creator, Names, Owner, Rest, Stamp,
        kept::{self, Begun},
    },
    search::{Sight, search},
    store::Volatile,
};

use crate::stage::{Calls, Shown, Stage, dir, mount, now, stamp, usual};

/// The label of a path's bytes.
fn rest(platform: &impl Platform, path: &str) -> Rest {
    now(platform.read(path, 0, 1 << 20)).unwrap().rest
}

/// The label of its name, size and times.
fn shown(platform: &impl Platform, path: &str) -> Rest {
    let (above, name) = path.rsplit_once('/').unwrap();
    let listing = now(platform.list(above, "", 99)).unwrap();
    listing.entries.into_iter().find(|entry| entry.name == name).unwrap().rest
}

fn label(integrity: Integrity, names: &[&'static str]) -> Rest {
    stamp(0, integrity, names).rest
}

fn by(stamp: &Stamp) -> Journal {
    Journal { stamp: stamp.clone(), ..usual() }
}

fn put(platform: &impl Platform, path: &str, mode: Mode, stamp: &Stamp) {
    now(platform.write(path, b"bytes\n", mode, by(stamp))).unwrap();
}

fn shift(platform: &impl Platform, from: &str, to: &str, stamp: &Stamp) {
    now(platform.rename(from, to, by(stamp), &|_, _| Some(Names::NONE))).unwrap();
}

fn remove_own(platform: &impl Platform, path: &str, task: u64) -> Result<u64, Fault> {
    let stamp = Stamp { owner: Owner::Creator, ..stamp(task, Integrity::Ingested, &[]) };
    now(platform.remove(path, by(&stamp), &|_| true))
}

fn is_own(platform: &impl Platform, path: &str, task: u64) -> bool {
    platform.is_own(path, Creator { run: [7; 32], task })
}

/// At least the other in both parts.
fn covers(rest: &Rest, other: &Rest) -> bool {
    let mut both = rest.clone();
    both.join(other);
    both == *rest
}

/// Somebody outside puts bytes under a path.
type Outside<'a> = &'a dyn Fn(&str, &[u8]);

macro_rules! on_both {
    ($($name:ident($platform:ident, $outside:ident) $body:block)*) => {
        $(mod $name {
            use super::*;

            fn behaves($platform: &impl Platform, $outside: Outside<'_>) $body

            #[test]
            fn memory() {
                let memory = Memory::new(&[("/data", Access::ReadWrite)]).unwrap();
                behaves(&memory, &|path, bytes| memory.place(path, bytes).unwrap());
            }

            #[test]
            fn disk() {
                let stage = Stage::new();
                behaves(&stage.disk, &|path, bytes| {
                    let path = stage.outer(path.trim_start_matches('/'));
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, bytes).unwrap();
                });
            }
        })*
    };
}

on_both! {
    what_stood_there_is_from_outside(platform, outside) {
        outside("/data/d/a", b"x");
        assert_eq!(rest(platform, "/data/d/a"), Rest::outside());
        assert_eq!(shown(platform, "/data/d/a"), Rest::outside());
        assert_eq!(shown(platform, "/data/d"), Rest::outside());
        assert_eq!(now(platform.list("/data", "", 9)).unwrap().rest, Rest::outside());
        let above = now(platform.list("/", "", 9)).unwrap();
        assert_eq!((&above.rest, &above.entries.first().unwrap().rest), (&Rest::SYSTEM, &Rest::SYSTEM));
    }

    what_is_written_carries_its_writer_alone(platform, outside) {
        let mail = stamp(1, Integrity::Ingested, &["prompt", "tool:mail"]);
        let human = stamp(1, Integrity::User, &["prompt"]);
        put(platform, "/data/new/a", Mode::Create, &mail);
        assert_eq!(rest(platform, "/data/new/a"), mail.rest);
        assert_eq!(shown(platform, "/data/new"), mail.rest);
        put(platform, "/data/new/a", Mode::Append, &human);
        assert_eq!(rest(platform, "/data/new/a"), mail.rest, "the old bytes stay");
        put(platform, "/data/new/a", Mode::Replace, &human);
        assert_eq!(rest(platform, "/data/new/a"), human.rest);
        assert_eq!(shown(platform, "/data/new/a"), mail.rest, "the name stays");
        now(platform.edit("/data/new/a", b"bytes", b"b", by(&mail))).unwrap();
        assert_eq!(rest(platform, "/data/new/a"), mail.rest);
        // Over what stood there, the bytes are the writer's, the name is not.
        outside("/data/b", b"x");
        put(platform, "/data/b", Mode::Append, &mail);
        assert_eq!(rest(platform, "/data/b"), label(Integrity::Ingested, &["files", "prompt", "tool:mail"]));
        put(platform, "/data/b", Mode::Replace, &human);
        assert_eq!(rest(platform, "/data/b"), human.rest);
        assert_eq!(shown(platform, "/data/b"), label(Integrity::Ingested, &["files", "prompt"]));
    }

    an_edit_tells_what_stood_there(platform, _outside) {
        let mail = stamp(1, Integrity::Ingested, &["tool:mail"]);
        put(platform, "/data/a", Mode::Create, &mail);
        let journal = by(&stamp(1, Integrity::User, &[]));
        assert_eq!(now(platform.edit("/data/a", b"bytes", b"b", journal)).unwrap().before, mail.rest);
    }

    a_label_moves_with_its_file(platform, outside) {
        let mail = stamp(1, Integrity::Ingested, &["tool:mail"]);
        let human = stamp(1, Integrity::User, &["prompt"]);
        put(platform, "/data/d/e/a", Mode::Create, &mail);
        outside("/data/d/old", b"x");
        shift(platform, "/data/d/e/a", "/data/d/e/b", &human);
        assert_eq!(rest(platform, "/data/d/e/b"), mail.rest);
        let named = label(Integrity::Ingested, &["prompt", "tool:mail"]);
        assert_eq!(shown(platform, "/data/d/e/b"), named, "the mover's name, the writer's bytes");
        shift(platform, "/data/d", "/data/f", &human);
        assert_eq!(rest(platform, "/data/f/e/b"), mail.rest);
        assert_eq!(rest(platform, "/data/f/old"), Rest::outside());
        // What comes to stand where it stood has nothing of it but what it may be.
        outside("/data/d/e/b", b"x");
        assert_eq!(rest(platform, "/data/d/e/b").integrity, Integrity::Ingested);
        // And what is gone shows, in what is left.
        shift(platform, "/data/f/e/b", "/data/b", &stamp(1, Integrity::Ingested, &["net:10.0.0.7"]));
        let left = now(platform.list("/data/f/e", "", 9)).unwrap();
        assert!(left.entries.is_empty());
        assert!(covers(&left.rest, &label(Integrity::Ingested, &["net:10.0.0.7"])), "{left:?}");
    }

    a_change_from_outside_keeps_compartments_and_lowers(platform, outside) {
        let human = stamp(1, Integrity::User, &["prompt", "tool:mail"]);
        let (bytes, kept) = (b"other bytes", label(Integrity::Ingested, &["files", "prompt", "tool:mail"]));
        put(platform, "/data/a", Mode::Create, &human);
        put(platform, "/data/d/b", Mode::Create, &human);
        outside("/data/a", bytes);
        assert_eq!(rest(platform, "/data/a"), kept);
        assert_eq!(shown(platform, "/data/a"), kept);
        shift(platform, "/data/a", "/data/c", &stamp(1, Integrity::User, &[]));
        assert_eq!(rest(platform, "/data/c"), kept, "a move vouches for nothing");
        put(platform, "/data/c", Mode::Append, &stamp(1, Integrity::User, &[]));
        assert_eq!(rest(platform, "/data/c"), kept, "an addition neither");
        // Under a name that was used before.
        now(platform.remove("/data/d/b", by(&human), &|_| true)).unwrap();
        outside("/data/d/b", b"x");
        assert!(covers(&rest(platform, "/data/d/b"), &kept));
    }

    a_search_carries_all_that_it_looked_at(platform, outside) {
        put(platform, "/data/d/a", Mode::Create, &stamp(1, Integrity::User, &["tool:mail"]));
        put(platform, "/data/d/b", Mode::Create, &stamp(1, Integrity::User, &["prompt"]));
        let found = |eyes: &(dyn Fn(&str) -> Sight + Sync)| {
            now(search(platform, "/data/d", b"nowhere", 0, eyes)).unwrap().rest
        };
        assert_eq!(found(&|_| Sight::Read), label(Integrity::User, &["prompt", "tool:mail"]));
        let hidden = |path: &str| if path.ends_with("/b") { Sight::Hidden } else { Sight::Read };
        assert_eq!(found(&hidden), label(Integrity::User, &["tool:mail"]));
        outside("/data/d/c", b"x");
        assert_eq!(found(&hidden), label(Integrity::Ingested, &["files", "tool:mail"]));
    }

    what_a_task_made_is_its_own(platform, outside) {
        let (mine, other) = (stamp(1, Integrity::Ingested, &[]), stamp(2, Integrity::Ingested, &[]));
        put(platform, "/data/d/e/a", Mode::Create, &mine);
        put(platform, "/data/d/b", Mode::Replace, &mine);
        for path in ["/data/d/e/a", "/data/d/e", "/data/d", "/data/d/b"] {
            assert!(is_own(platform, path, 1) && !is_own(platform, path, 2), "{path}");
        }
        put(platform, "/data/d/b", Mode::Append, &mine);
        shift(platform, "/data/d/e", "/data/f", &mine);
        assert!(is_own(platform, "/data/f", 1) && is_own(platform, "/data/f/a", 1), "it moves with it");
        assert!(!is_own(platform, "/data/d/e", 1));
        assert!(is_own(platform, "/data/d", 1), "what is left of it");
        // Every byte since, and not only the name.
        put(platform, "/data/f/a", Mode::Append, &other);
        assert!(!is_own(platform, "/data/f/a", 1) && !is_own(platform, "/data/f/a", 2));
        assert!(!is_own(platform, "/data/f", 1), "a directory is all that is in it");
        // A name that somebody else had.
        outside("/data/g", b"x");
        put(platform, "/data/g", Mode::Replace, &mine);
        assert!(!is_own(platform, "/data/g", 1));
        assert_eq!(remove_own(platform, "/data/g", 1), Err(Fault::Changed));
        assert!(remove_own(platform, "/data/d", 1).is_ok());
        assert!(!is_own(platform, "/data/d", 1), "it is gone");
    }

    a_victim_moved_is_not_own(platform, outside) {
        let mine = stamp(1, Integrity::Ingested, &[]);
        outside("/data/victim", b"x");
        put(platform, "/data/own/a", Mode::Create, &mine);
        shift(platform, "/data/victim", "/data/own/v", &mine);
        assert!(!is_own(platform, "/data/own/v", 1) && !is_own(platform, "/data/own", 1));
        assert!(is_own(platform, "/data/own/a", 1));
        assert_eq!(remove_own(platform, "/data/own", 1), Err(Fault::Changed));
        // Onto a name that was the task's own.
        remove_own(platform, "/data/own/a", 1).unwrap();
        shift(platform, "/data/own/v", "/data/own/a", &mine);
        assert!(!is_own(platform, "/data/own/a", 1));
        assert_eq!(remove_own(platform, "/data/own/a", 1), Err(Fault::Changed));
    }

    own_things_that_changed_meanwhile_stay(platform, outside) {
        let mine = stamp(1, Integrity::Ingested, &[]);
        for path in ["/data/a", "/data/d/a", "/data/e/a"] {
            put(platform, path, Mode::Create, &mine);
        }
        outside("/data/a", b"theirs");
        outside("/data/d/new", b"theirs");
        outside("/data/e/a", b"theirs, under an old name");
        for path in ["/data/a", "/data/d", "/data/e"] {
            assert_eq!(remove_own(platform, path, 1), Err(Fault::Changed), "{path}");
        }
        assert_eq!(platform.names("/data").unwrap(), ["a", "d", "e"]);
    }

    a_change_that_fails_leaves_labels_as_they_were(platform, outside) {
        let (human, mail) = (stamp(1, Integrity::User, &[]), stamp(2, Integrity::Ingested, &["tool:mail"]));
        put(platform, "/data/d/a", Mode::Create, &human);
        let none = Journal { room: 0, ..by(&mail) };
        assert_eq!(now(platform.write("/data/d/a", b"x", Mode::Replace, none)), Err(Fault::JournalFull));
        assert_eq!(now(platform.write("/data/d/a", b"x", Mode::Create, by(&mail))), Err(Fault::Exists));
        assert_eq!(now(platform.rename("/data/d", "/data/e", by(&mail), &|_, _| None)), Err(Fault::Subtree));
        assert_eq!(now(platform.remove("/data/d", by(&mail), &|_| false)), Err(Fault::Subtree));
        assert_eq!(rest(platform, "/data/d/a"), human.rest);
        assert!(is_own(platform, "/data/d", 1));
        outside("/data/b", b"x");
        assert_eq!(now(platform.rename("/data/b", "/data/d/a", by(&mail), &|_, _| Some(Names::NONE))),
            Err(Fault::Exists));
        assert_eq!(rest(platform, "/data/d/a"), human.rest);
    }

    a_move_takes_the_compartments_of_where_it_stood(platform, outside) {
        outside("/data/pay/d/a", b"x");
        let mut pay = Names::NONE;
        pay.add("payroll");
        let journal = by(&Stamp { carried: pay.clone(), ..stamp(1, Integrity::User, &[]) });
        now(platform.rename("/data/pay/d", "/data/d", journal, &|_, _| Some(Names::NONE))).unwrap();
        let journal = by(&stamp(1, Integrity::User, &[]));
        outside("/data/all/pay/b", b"x");
        now(platform.rename("/data/all", "/data/every", journal, &|from, _| {
            Some(if from == "/data/all/pay" { pay.clone() } else { Names::NONE })
        })).unwrap();
        let paid = label(Integrity::Ingested, &["files", "payroll"]);
        assert_eq!(rest(platform, "/data/d/a"), paid);
        assert_eq!(rest(platform, "/data/every/pay/b"), paid);
        shift(platform, "/data/d/a", "/data/a", &stamp(1, Integrity::User, &[]));
        assert_eq!(rest(platform, "/data/a"), paid);
        shift(platform, "/data/every", "/data/last", &stamp(1, Integrity::User, &[]));
        assert_eq!(rest(platform, "/data/last/pay/b"), paid);
    }
}

/// A folder that runs work in, one after the other, over one store.
struct World {
    stage: Stage,
    store: Volatile,
    runs: u32,
}

impl World {
    fn new() -> Self {
        Self { stage: Stage::quick(), store: Volatile::default(), runs: 0 }
    }

    fn folder(path: &Path, guest: &str) -> Folder {
        let identity = Identity::of(fs::File::open(path).unwrap()).unwrap();
        let host = path.to_str().unwrap().to_owned();
        Folder { guest: guest.to_owned(), host, identity }
    }

    /// A run over one folder; whether it comes to its end.
    fn run<T>(&mut self, inner: &str, ends: bool, work: impl FnOnce(&Disk) -> T) -> T {
        self.runs += 1;
        let (name, path) = (format!("run{}", self.runs), self.stage.data(inner));
        let folders = [Self::folder(&path, "/data")];
        let begun = Begun { run: &name, folders: &folders, writable: &folders };
        let journal = |run: &str| {
            let index = fs::read(self.stage.outer(run).join("index")).ok()?;
            Some(journal::read(&index).unwrap())
        };
        let index = kept::begin(&mut self.store, &begun, journal).unwrap();
        fs::create_dir(self.stage.outer(&name)).unwrap();
        let mounts = vec![mount("/data", &path, Access::ReadWrite)];
        let kept = Some(dir(&self.stage.outer(&name)));
        let disk = Disk::new(mounts, &[], kept, Box::new(Shown::default())).unwrap();
        *disk.rest() = index;
        let done = work(&disk);
        if ends {
            kept::end(&mut self.store, &name, &folders, &disk.rest(), 0).unwrap();
        }
        done
    }
}

#[test]
fn labels_outlive_a_run() {
    let mut world = World::new();
    let mail = stamp(1, Integrity::User, &["tool:mail"]);
    let pay = Stamp { carried: Names::every(), ..mail.clone() };
    world.run("", true, |disk| {
        put(disk, "/data/sub/a", Mode::Create, &mail);
        put(disk, "/data/sub/deep/b", Mode::Create, &mail);
        fs::write(world_path(disk, "sub/old"), "x").unwrap();
        now(disk.rename("/data/sub/old", "/data/sub/moved", by(&pay), &|_, _| None)).unwrap();
    });
    let paid = label(Integrity::Ingested, &["files", "*"]);
    world.run("", true, |disk| {
        assert_eq!(rest(disk, "/data/sub/a"), mail.rest);
        assert_eq!(shown(disk, "/data/sub/deep"), mail.rest);
        assert_eq!(rest(disk, "/data/sub/moved"), paid);
        assert!(is_own(disk, "/data/sub/a", 1), "the same task of the same run");
    });
    // A run in a folder inside of it, and back.
    world.run("sub", true, |disk| {
        assert_eq!(rest(disk, "/data/a"), mail.rest);
        assert_eq!(rest(disk, "/data/moved"), paid);
        put(disk, "/data/a", Mode::Replace, &stamp(1, Integrity::Ingested, &["tool:chat"]));
    });
    world.run("", true, |disk| {
        assert_eq!(rest(disk, "/data/sub/a"), label(Integrity::Ingested, &["tool:chat"]));
    });
    // The folder itself moved.
    fs::rename(world.stage.data("sub"), world.stage.data("other")).unwrap();
    world.run("other", true, |disk| assert_eq!(rest(disk, "/data/deep/b"), mail.rest));
}

/// Where the host has a path of a disk's one folder.
fn world_path(disk: &Disk, inner: &str) -> std::path::PathBuf {
    Path::new(&disk.mounts().first().unwrap().1).join(inner)
}

#[test]
fn what_the_host_did_between_runs_keeps_compartments() {
    let mut world = World::new();
    let mail = stamp(1, Integrity::User, &["tool:mail"]);
    let kept = label(Integrity::Ingested, &["files", "tool:mail"]);
    world.run("", true, |disk| {
        for name in ["renamed", "saved", "touched", "linked", "d/inner", "same"] {
            put(disk, &format!("/data/{name}"), Mode::Create, &mail);
        }
    });
    let data = world.stage.data("");
    fs::rename(data.join("renamed"), data.join("name")).unwrap();
    fs::write(data.join("saving"), "as editors do").unwrap();
    fs::rename(data.join("saving"), data.join("saved")).unwrap();
    fs::write(data.join("touched"), "bytes\n").unwrap();
    fs::hard_link(data.join("linked"), world.stage.outer("link")).unwrap();
    fs::rename(data.join("d"), data.join("e")).unwrap();
    symlink("same", data.join("soft")).unwrap();
    world.run("", true, |disk| {
        for name in ["name", "saved", "touched", "e/inner"] {
            assert_eq!(rest(disk, &format!("/data/{name}")), kept, "{name}");
        }
        let linked = label(Integrity::Ingested, &["*", "files", "tool:mail"]);
        assert_eq!(rest(disk, "/data/linked"), linked);
        assert_eq!(shown(disk, "/data/soft"), Rest::outside());
        assert_eq!(rest(disk, "/data/same"), mail.rest);
        for name in ["name", "saved", "touched", "linked", "e", "d"] {
            let removed = remove_own(disk, &format!("/data/{name}"), 1);
            assert!(matches!(removed, Err(Fault::Changed | Fault::NotFound)), "{name} {removed:?}");
        }
    });
}

#[test]
fn a_run_that_did_not_end_loses_no_label() {
    let mut world = World::new();
    let mail = stamp(1, Integrity::User, &["tool:mail"]);
    let chat = stamp(1, Integrity::User, &["tool:chat"]);
    world.run("", true, |disk| {
        for name in ["a", "b", "c", "d/e"] {
            put(disk, &format!("/data/{name}"), Mode::Create, &mail);
        }
    });
    world.run("", false, |disk| {
        put(disk, "/data/a", Mode::Replace, &chat);
        put(disk, "/data/new/f", Mode::Create, &chat);
        shift(disk, "/data/b", "/data/moved", &chat);
        shift(disk, "/data/d", "/data/g", &chat);
        now(disk.remove("/data/c", by(&chat), &|_| true)).unwrap();
    });
    let both = label(Integrity::Ingested, &["files", "tool:chat", "tool:mail"]);
    world.run("", true, |disk| {
        for name in ["a", "moved"] {
            assert_eq!(rest(disk, &format!("/data/{name}")), both, "{name}");
        }
        // Nobody touched what is in a directory that moved.
        let inner = label(Integrity::User, &["tool:chat", "tool:mail"]);
        assert_eq!(rest(disk, "/data/g/e"), inner);
        let new = label(Integrity::Ingested, &["files", "tool:chat"]);
        assert_eq!((rest(disk, "/data/new/f"), shown(disk, "/data/new")), (new.clone(), new));
        assert!(!is_own(disk, "/data/new/f", 1));
        fs::write(world_path(disk, "c"), "x").unwrap();
        assert!(covers(&rest(disk, "/data/c"), &mail.rest.clone().ingested()));
    });
    // Of this one not even the journal is left.
    world.run("", false, |disk| put(disk, "/data/h", Mode::Create, &chat));
    fs::remove_dir_all(world.stage.outer(&format!("run{}", world.runs))).unwrap();
    world.run("", true, |disk| {
        let every = rest(disk, "/data/h").names;
        assert!(every.iter().any(|name| name == "*"), "{every:?}");
    });
}

/// A label with its integrity lowered.
trait Lowered {
    fn ingested(self) -> Self;
}

impl Lowered for Rest {
    fn ingested(self) -> Self {
        Self { integrity: Integrity::Ingested, ..self }
    }
}

/// What the journal has on the disk before the name changes hands is enough.
#[test]
fn a_crash_between_label_and_rename_keeps_both() {
    let mut world = World::new();
    let mail = stamp(1, Integrity::User, &["tool:mail"]);
    let chat = stamp(1, Integrity::User, &["tool:chat"]);
    world.run("", true, |disk| put(disk, "/data/a", Mode::Create, &mail));
    world.run("", false, |disk| put(disk, "/data/a", Mode::Replace, &chat));
    // As if the entry had been written and the exchange not been made.
    let journal = world.stage.outer("run2");
    let kept = fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.filter(|path| path.file_name().unwrap() != "index").collect::<Vec<_>>();
    fs::rename(&kept[0], world.stage.data("a")).unwrap();
    world.run("", true, |disk| {
        let both = label(Integrity::Ingested, &["files", "tool:chat", "tool:mail"]);
        assert_eq!(rest(disk, "/data/a"), both);
    });
}

#[test]
fn what_was_taken_away_is_forgotten_when_it_is_old() {
    let mut world = World::new();
    let mail = stamp(1, Integrity::User, &["tool:mail"]);
    world.run("", true, |disk| {
        put(disk, "/data/a", Mode::Create, &mail);
        put(disk, "/data/b", Mode::Create, &mail);
        now(disk.remove("/data/a", by(&mail), &|_| true)).unwrap();
    });
    assert_eq!(kept::prune(&mut world.store, 0).unwrap(), 0);
    assert_eq!(kept::prune(&mut world.store, 1).unwrap(), 1);
    world.run("", true, |disk| assert_eq!(rest(disk, "/data/b"), mail.rest));
}
