//! What a folder may hold to lead a path astray, and who may swap it meanwhile.

use core::{
    hint,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{
    env, fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use rustix::fs::{CWD, FileType, Mode as Bits, RenameFlags, mkfifoat, mknodat, renameat_with};
use synapse_primitives::{
    Fault, Platform,
    disk::Disk,
    platform::{Kind, Mode},
};

use crate::stage::{Calls, Stage, entry, hits, names_in, now, usual};

/// Operations a racing thread is up against.
const RACES: usize = 20_000;

fn every_call_refuses(disk: &Disk, path: &str, want: Fault) {
    assert_eq!(disk.all(path), Err(want), "read {path}");
    assert_eq!(disk.names(path), Err(want), "list {path}");
    for mode in [Mode::Create, Mode::Replace, Mode::Append] {
        let want = match (want, mode) {
            (Fault::Special, Mode::Create) => Fault::Exists,
            (want, _) => want,
        };
        assert_eq!(disk.put(path, b"x", mode), Err(want), "{mode:?} {path}");
    }
    assert_eq!(disk.shift(path, "/data/elsewhere"), Err(want), "move {path}");
}

#[test]
fn no_link_is_followed() {
    let stage = Stage::new();
    let outside = stage.outer("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("canary"), "canary").unwrap();
    fs::create_dir(stage.data("dir")).unwrap();
    fs::write(stage.data("dir/file"), "inside").unwrap();
    for (link, target) in [
        ("absolute", outside.join("canary")),
        ("relative", "../outside/canary".into()),
        ("inside", "dir/file".into()),
        ("folder", outside.clone()),
        ("near", "dir".into()),
        ("dangling", "nothing".into()),
        ("loop", "loop".into()),
        ("magic", "/proc/self/root".into()),
    ] {
        symlink(target, stage.data(link)).unwrap();
        every_call_refuses(&stage.disk, &format!("/data/{link}"), Fault::Link);
        every_call_refuses(&stage.disk, &format!("/data/{link}/canary"), Fault::Link);
        let taken = stage.disk.shift("/data/dir/file", &format!("/data/{link}"));
        assert_eq!(taken, Err(Fault::Link), "onto {link}");
        let below = stage.disk.shift("/data/dir/file", &format!("/data/{link}/new"));
        assert_eq!(below, Err(Fault::Link), "below {link}");
        assert_eq!(stage.disk.take(&format!("/data/{link}/canary")), Err(Fault::Link));
    }
    let listed = stage.disk.page("/data", "relative", 1).unwrap();
    assert!(listed.entries.is_empty());
    let listed = stage.disk.page("/data", "near", 1).unwrap();
    assert_eq!(listed.entries, [entry("relative", Kind::Link, 0)]);
    assert_eq!(names_in(&outside), ["canary"]);
    assert_eq!(fs::read(outside.join("canary")).unwrap(), b"canary");
    assert_eq!(fs::read(stage.data("dir/file")).unwrap(), b"inside");
}

#[test]
fn a_link_is_moved_and_removed_as_the_entry_it_is() {
    let stage = Stage::new();
    let outside = stage.outer("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("canary"), "canary").unwrap();
    fs::create_dir(stage.data("tree")).unwrap();
    symlink(&outside, stage.data("tree/out")).unwrap();
    symlink(&outside, stage.data("alone")).unwrap();
    stage.disk.shift("/data/tree", "/data/moved").unwrap();
    assert_eq!(fs::read_link(stage.data("moved/out")).unwrap(), outside);
    stage.disk.take("/data/moved").unwrap();
    stage.disk.take("/data/alone").unwrap();
    assert_eq!(stage.on_host("data"), Vec::<String>::new());
    assert_eq!(fs::read(outside.join("canary")).unwrap(), b"canary");
}

#[test]
fn devices_fifos_and_sockets_are_refused_without_waiting() {
    let stage = Stage::new();
    mkfifoat(CWD, stage.data("fifo"), Bits::from_raw_mode(0o666)).unwrap();
    let _socket = UnixListener::bind(stage.data("socket")).unwrap();
    let mut names = vec!["fifo", "socket"];
    let null = rustix::fs::makedev(1, 3);
    let made = mknodat(CWD, stage.data("null"), FileType::CharacterDevice, PRIVATE, null);
    match made {
        Ok(()) => names.push("null"),
        Err(errno) => println!("not tried: a device, which only root may make ({errno})"),
    }
    for name in names {
        every_call_refuses(&stage.disk, &format!("/data/{name}"), Fault::Special);
        let below = format!("/data/{name}/below");
        assert_eq!(stage.disk.all(&below), Err(Fault::NotADirectory));
        let before = name.get(..name.len() - 1).unwrap();
        let listed = stage.disk.page("/data", before, 1).unwrap();
        assert_eq!(listed.entries, [entry(name, Kind::Other, 0)]);
        stage.disk.take(&format!("/data/{name}")).unwrap();
    }
    assert_eq!(stage.on_host("data"), Vec::<String>::new());
}

const PRIVATE: Bits = Bits::from_raw_mode(0o600);

/// Swaps a folder and a link that leads out, so often or until it is stopped.
fn swap(one: &Path, other: &Path, most: u64, done: &AtomicBool) -> u64 {
    let mut swaps = 0;
    while swaps < most && !done.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        swaps += 1;
        // The link stands briefly and the folder for a span that varies, so that
        // the swap falls on every step of a call.
        if swaps.is_multiple_of(2) {
            (0..swaps % 64 * 100).for_each(|_| hint::spin_loop());
        }
    }
    swaps
}

/// Swaps for as long as `work` runs.
fn while_swapped(one: &Path, other: &Path, work: impl FnOnce()) -> u64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let swaps = scope.spawn(|| swap(one, other, u64::MAX, &done));
        work();
        done.store(true, Ordering::Relaxed);
        swaps.join().unwrap()
    })
}

/// A folder with a link beside it that leads out, to a canary.
fn besieged() -> Stage {
    let stage = Stage::new();
    let outside = stage.outer("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "canary").unwrap();
    fs::create_dir(stage.data("dir")).unwrap();
    fs::write(stage.data("dir/file"), "inside").unwrap();
    symlink(&outside, stage.data("link")).unwrap();
    stage
}

/// Every kind of call while folder and link are swapped, for as long as told:
/// how many reached the folder, and how many were stopped at the link.
fn besiege(stage: &Stage, mut goes_on: impl FnMut(usize, usize, usize) -> bool) -> (usize, usize) {
    let (mut inside, mut refused) = (0, 0);
    for turn in 0.. {
        if !goes_on(turn, inside, refused) {
            break;
        }
        let answer = match turn % 8 {
            0 => stage.disk.put("/data/dir/new", b"new", Mode::Append).map(|_| ()),
            1 => stage.disk.take("/data/dir/new"),
            2 => stage.disk.names("/data/dir").map(|names| {
                assert!(names.iter().any(|name| name == "file"));
            }),
            3 => stage.disk.shift("/data/dir/new", "/data/dir/sub/moved"),
            4 => stage.disk.take("/data/dir/sub"),
            5 => stage.disk.edits("/data/dir/file", "side", "side").map(|_| ()),
            6 => stage.disk.finds("/data/dir", "canary", 0).map(|page| {
                assert!(hits(&page).is_empty(), "a search left the folder: {page}");
            }),
            _ => stage.disk.all("/data/dir/file").map(|bytes| assert_eq!(bytes, b"inside")),
        };
        match answer {
            Ok(()) => inside += 1,
            Err(Fault::Link) => refused += 1,
            Err(fault) => {
                let raced = [Fault::NotFound, Fault::Exists, Fault::Changed];
                assert!(raced.contains(&fault), "turn {turn}: {fault:?}");
            }
        }
    }
    let outside = stage.outer("outside");
    assert_eq!(names_in(&outside), ["file"]);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"canary");
    (inside, refused)
}

#[test]
fn a_link_swapped_in_for_a_folder_leads_nowhere() {
    let stage = besieged();
    let (mut inside, mut refused) = (0, 0);
    let swaps = while_swapped(&stage.data("dir"), &stage.data("link"), || {
        let begun = Instant::now();
        (inside, refused) = besiege(&stage, |turn, inside, refused| {
            let enough = inside > 100 && refused > 100;
            turn < RACES || !(enough || begun.elapsed() > Duration::from_mins(1))
        });
    });
    println!("{swaps} swaps, {inside} calls inside, {refused} stopped at the link");
    assert!(swaps > 100 && inside > 100 && refused > 100, "{swaps} {inside} {refused}");
}

#[test]
fn a_directory_that_was_passed_is_passed_again_only_where_its_name_leads_to_it() {
    let stage = Stage::new();
    let (dir, other, gone) = (stage.data("a/dir"), stage.data("other"), stage.outer("gone"));
    for (path, content) in [(&dir, "one"), (&other, "two")] {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("file"), content).unwrap();
    }
    let read = || stage.disk.all("/data/a/dir/file");
    assert_eq!(read().unwrap(), b"one");
    assert_eq!(read().unwrap(), b"one");
    renameat_with(CWD, &dir, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    assert_eq!(read().unwrap(), b"two");
    // Out of the mount, and a link to it in its place.
    fs::rename(stage.data("a"), &gone).unwrap();
    assert_eq!(read(), Err(Fault::NotFound));
    symlink(&gone, stage.data("a")).unwrap();
    assert_eq!(read(), Err(Fault::Link));
    fs::remove_file(stage.data("a")).unwrap();
    stage.disk.put("/data/a/dir/new", b"new", Mode::Create).unwrap();
    assert_eq!(names_in(&gone.join("dir")), ["file"]);
    assert_eq!(names_in(&dir), ["new"]);
    // Back again, and what it holds replaced by a link.
    fs::remove_dir_all(stage.data("a")).unwrap();
    fs::rename(&gone, stage.data("a")).unwrap();
    assert_eq!(read().unwrap(), b"two");
    fs::rename(&dir, &gone).unwrap();
    symlink(&gone, &dir).unwrap();
    assert_eq!(read(), Err(Fault::Link));
}

/// Names what the second process swaps.
const SWAPPER: &str = "SYNAPSE_TEST_SWAPPER";
/// Swaps of the long siege.
const SIEGE: u64 = 1_000_000;

/// Not a test of its own: what the second process does.
#[test]
fn swapper() {
    let Some(data) = env::var_os(SWAPPER) else { return };
    let data = Path::new(&data);
    swap(&data.join("dir"), &data.join("link"), SIEGE, &AtomicBool::new(false));
}

/// `cargo test -p synapse-primitives --all-features -- --ignored --nocapture million`
#[test]
#[ignore = "takes minutes: a million swaps against calls on one disk"]
fn a_second_process_that_swaps_a_million_times_leads_nowhere() {
    let stage = besieged();
    let begun = Instant::now();
    let mut swapper = Command::new(env::current_exe().unwrap())
        .args(["--exact", "hostile::swapper"])
        .env(SWAPPER, stage.data(""))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut ended = None;
    let (inside, refused) = besiege(&stage, |_, _, _| {
        ended = swapper.try_wait().unwrap();
        ended.is_none()
    });
    assert!(ended.unwrap().success());
    println!(
        "{SIEGE} swaps in {:?}, {inside} calls inside, {refused} stopped at the link",
        begun.elapsed()
    );
    assert!(inside > 100 && refused > 100, "{inside} {refused}");
}

#[test]
fn a_link_swapped_in_for_a_file_is_never_read_or_written() {
    let stage = Stage::new();
    let canary = stage.outer("canary");
    fs::write(&canary, "canary").unwrap();
    fs::write(stage.data("file"), "inside").unwrap();
    symlink(&canary, stage.data("link")).unwrap();
    let mut refused = 0;
    let swaps = while_swapped(&stage.data("file"), &stage.data("link"), || {
        for turn in 0..RACES {
            if turn % 20 == 0 {
                let record = u64::try_from(turn).unwrap();
                let put = stage.disk.put_as("/data/file", b"inside", Mode::Replace, record, 99);
                if let Err(fault) = put {
                    assert!([Fault::Link, Fault::Changed].contains(&fault), "{turn}: {fault:?}");
                }
            }
            match stage.disk.all("/data/file") {
                Ok(bytes) => assert_eq!(bytes, b"inside"),
                Err(fault) => {
                    assert_eq!(fault, Fault::Link, "turn {turn}");
                    refused += 1;
                }
            }
        }
    });
    println!("{swaps} swaps, {refused} stopped at the link");
    assert!(swaps > 100 && refused > 100, "{swaps} {refused}");
    assert_eq!(fs::read(&canary).unwrap(), b"canary");
    for entry in names_in(&stage.outer("journal")).iter().filter(|name| *name != "index") {
        assert_eq!(fs::read(stage.outer("journal").join(entry)).unwrap(), b"inside");
    }
}

#[test]
fn what_joins_a_tree_while_it_is_removed_stays() {
    let stage = Stage::new();
    fs::create_dir(stage.data("tree")).unwrap();
    fs::write(stage.data("tree/old"), "old").unwrap();
    let late = stage.data("tree/late");
    let removed = now(stage.disk.remove("/data/tree", usual(), &|_| {
        fs::write(&late, "late").unwrap();
        true
    }));
    assert_eq!(removed, Err(Fault::Changed));
    assert_eq!(fs::read(&late).unwrap(), b"late");
}
