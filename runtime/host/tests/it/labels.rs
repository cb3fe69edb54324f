//! Labels between runs on a real store, and what they cost.

use std::fs;
use std::time::Instant;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use synapse_boundary::Integrity;
use synapse_host::store::{Labels, Redb, carries, prune, settle};
use synapse_primitives::disk::{Disk, Mount, Screen};
use synapse_primitives::mounts::Access;
use synapse_primitives::platform::{Asker, Journal, Mode};
use synapse_primitives::rest::{Creator, Names, Owner, Rest, Stamp};
use synapse_primitives::store::{Store as _, StoreError};
use synapse_primitives::{Fault, Platform as _};

struct Nobody;

impl Screen for Nobody {
    fn show(&self, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::Closed)
    }

    fn ask(&self, _: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Err(Fault::Closed)
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the disk never waits"),
    }
}

fn journal(record: u64) -> Journal {
    let mut names = Names::NONE;
    names.add("tool:mail");
    let stamp = Stamp {
        rest: Rest { integrity: Integrity::User, names },
        creator: Creator { run: [7; 32], task: 0 },
        carried: Names::NONE,
        owner: Owner::Anyone,
    };
    Journal { record, part: 0, room: 1 << 20, expects: None, stamp }
}

/// The disk of a run with this name.
fn disk(state: &std::path::Path, run: &str, folder: &std::path::Path) -> (Disk, Labels) {
    let open = |path| Dir::open_ambient_dir(path, ambient_authority()).unwrap();
    let kept = state.join("runs").join(run).join("journal");
    fs::create_dir_all(&kept).unwrap();
    let mount = Mount {
        root: "/data".to_owned(),
        host: folder.to_str().unwrap().to_owned(),
        dir: open(folder),
        access: Access::ReadWrite,
    };
    let disk = Disk::new(vec![mount], &[], Some(open(&kept)), Box::new(Nobody)).unwrap();
    let (folders, writable) = disk.folders().unwrap();
    let (labels, index) = Labels::begin(state, run, folders, writable).unwrap();
    *disk.rest() = index;
    (disk, labels)
}

fn names(disk: &Disk, path: &str) -> Vec<String> {
    let rest = now(disk.read(path, 0, 9)).unwrap().rest;
    rest.names.iter().map(ToOwned::to_owned).collect()
}

#[test]
fn labels_are_found_again_after_an_end_a_death_and_a_removal() {
    let root = tempfile::tempdir().unwrap();
    let (state, folder) = (root.path().join("state"), root.path().join("folder"));
    fs::create_dir(&folder).unwrap();
    let (first, labels) = disk(&state, "first", &folder);
    now(first.write("/data/a", b"x", Mode::Create, journal(1))).unwrap();
    labels.end(&first.rest()).unwrap();
    let (content, name) = carries(&state, &folder.canonicalize().unwrap().join("a")).unwrap();
    assert_eq!(content, journal(0).stamp.rest);
    assert_eq!(name, content);
    // This one dies.
    let (second, _) = disk(&state, "second", &folder);
    assert_eq!(names(&second, "/data/a"), ["tool:mail"]);
    now(second.write("/data/b", b"x", Mode::Create, journal(1))).unwrap();
    drop(second);
    // Its journal goes with it, and what it knew does not.
    settle(&state, "second").unwrap();
    fs::remove_dir_all(state.join("runs/second")).unwrap();
    let (third, labels) = disk(&state, "third", &folder);
    assert_eq!(names(&third, "/data/a"), ["tool:mail"]);
    assert_eq!(names(&third, "/data/b"), ["files", "tool:mail"]);
    now(third.remove("/data/a", journal(1), &|_| true)).unwrap();
    labels.end(&third.rest()).unwrap();
    assert_eq!(prune(&state, std::time::SystemTime::UNIX_EPOCH).unwrap(), 0);
    let later = std::time::SystemTime::now() + core::time::Duration::from_mins(1);
    assert_eq!(prune(&state, later).unwrap(), 1);
}

#[test]
fn a_store_of_another_version_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let changes = [("synapse-store".to_owned(), Some(b"2".to_vec()))];
    Redb::open(root.path()).unwrap().commit(&changes).unwrap();
    assert!(matches!(Redb::open(root.path()), Err(StoreError::Version)));
}

/// What a thousand writes cost with labels in the journal's lines, and what a commit
/// for each would add.
#[test]
fn a_thousand_writes_and_their_labels() {
    let root = tempfile::tempdir().unwrap();
    let (state, folder) = (root.path().join("state"), root.path().join("folder"));
    fs::create_dir(&folder).unwrap();
    let begun = Instant::now();
    let (disk, labels) = disk(&state, "run", &folder);
    let opened = begun.elapsed();
    let begun = Instant::now();
    for number in 0..1000 {
        let path = format!("/data/{number}");
        now(disk.write(&path, b"some text\n", Mode::Create, journal(number))).unwrap();
    }
    let writes = begun.elapsed();
    let begun = Instant::now();
    labels.end(&disk.rest()).unwrap();
    let end = begun.elapsed();
    let mut store = Redb::open(&state).unwrap();
    let begun = Instant::now();
    for number in 0..1000 {
        store.commit(&[(format!("x:{number}"), Some(vec![b'x'; 300]))]).unwrap();
    }
    let commits = begun.elapsed();
    println!("begin {opened:?}, 1,000 writes {writes:?}, end {end:?}; 1,000 commits {commits:?}");
    assert!(end < writes, "{end:?} {writes:?}");
}
