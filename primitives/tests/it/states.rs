//! A change that was confirmed is made to what was confirmed, or not at all.

use std::{fs, os::unix::fs::symlink};

use synapse_primitives::{
    Fault, Platform, Standing,
    memory::Memory,
    mounts::Access,
    platform::{Journal, Kind, Mode},
};

use crate::stage::{Calls, Stage, now, usual};

type Look<'a> = &'a dyn Fn(&str) -> Standing;
type Run<'a> = &'a dyn Fn(Change, Journal) -> Result<(), Fault>;
/// Puts a file in place behind the platform's back.
type Outside<'a> = &'a dyn Fn(&str, &[u8]);

fn on_both(behaves: fn(Look<'_>, Run<'_>, Outside<'_>)) {
    let memory = Memory::new(&[("/data", Access::ReadWrite)]).unwrap();
    behaves(
        &|path| now(memory.state(path)).unwrap(),
        &|change, journal| change_on(&memory, change, journal),
        &|path, bytes| memory.place(path, bytes).unwrap(),
    );
    let stage = Stage::new();
    behaves(
        &|path| now(stage.disk.state(path)).unwrap(),
        &|change, journal| change_on(&stage.disk, change, journal),
        &|path, bytes| {
            let place = stage.data(path.strip_prefix("/data/").unwrap());
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, bytes).unwrap();
        },
    );
}

/// Every call that changes something, at `/data/it`.
#[derive(Clone, Copy, Debug)]
enum Change {
    Write(Mode),
    Edit,
    Move,
    Delete,
}

fn change_on(platform: &impl Platform, change: Change, journal: Journal) -> Result<(), Fault> {
    let path = "/data/it";
    match change {
        Change::Write(mode) => now(platform.write(path, b"new", mode, journal)).map(|_| ()),
        Change::Edit => now(platform.edit(path, b"1", b"2", journal)).map(|_| ()),
        Change::Move => now(platform.rename(path, "/data/moved", journal, &|_, _| {
            Some(synapse_primitives::rest::Names::NONE)
        })),
        Change::Delete => now(platform.remove(path, journal, &|_| true)).map(|_| ()),
    }
}

fn confirmed(state: Standing) -> Journal {
    Journal { expects: Some(state.state), ..usual() }
}

#[test]
fn i8_a_file_that_changed_since_the_yes_stays_as_it_is() {
    on_both(|state, run, outside| {
        for change in [
            Change::Write(Mode::Replace),
            Change::Write(Mode::Append),
            Change::Edit,
            Change::Move,
            Change::Delete,
        ] {
            outside("/data/it", b"one 1");
            let asked = state("/data/it");
            assert_eq!((asked.kind, asked.entries, asked.bytes), (Some(Kind::File), 0, 5));
            assert_eq!(state("/data/it"), asked, "looking changes nothing");
            outside("/data/it", b"one 1 and more");
            assert_eq!(run(change, confirmed(asked)), Err(Fault::Changed), "{change:?}");
            assert_eq!(state("/data/it").bytes, 14, "{change:?}");
            assert_eq!(run(change, confirmed(state("/data/it"))), Ok(()), "{change:?}");
            let _ = run(Change::Delete, usual());
        }
    });
}

#[test]
fn i8_a_name_that_was_free_is_free_still() {
    on_both(|state, run, outside| {
        let asked = state("/data/it");
        assert_eq!((asked.kind, state("/data/no/such")), (None, asked));
        outside("/data/it", b"1");
        for change in [Change::Write(Mode::Replace), Change::Write(Mode::Append), Change::Edit] {
            assert_eq!(run(change, confirmed(asked)), Err(Fault::Changed), "{change:?}");
        }
        assert_eq!(run(Change::Write(Mode::Create), confirmed(asked)), Err(Fault::Exists));
        let asked = state("/data/it");
        run(Change::Delete, usual()).unwrap();
        for mode in [Mode::Create, Mode::Replace, Mode::Append] {
            let written = run(Change::Write(mode), confirmed(asked));
            assert_eq!(written, Err(Fault::Changed), "{mode:?}");
        }
        assert_eq!(run(Change::Delete, confirmed(asked)), Err(Fault::NotFound));
    });
}

#[test]
fn i8_a_directory_is_all_that_is_in_it() {
    on_both(|state, run, outside| {
        outside("/data/it/a", b"1");
        outside("/data/it/b/c", b"22");
        let asked = state("/data/it");
        assert_eq!((asked.kind, asked.entries, asked.bytes), (Some(Kind::Directory), 3, 3));
        for (path, bytes) in
            [("/data/it/b/c", &b"333"[..]), ("/data/it/b/d", b""), ("/data/it/b/d", b"4")]
        {
            let asked = state("/data/it");
            outside(path, bytes);
            for change in [Change::Move, Change::Delete] {
                assert_eq!(run(change, confirmed(asked)), Err(Fault::Changed), "{change:?}");
            }
        }
        let asked = state("/data/it");
        assert_eq!((asked.entries, asked.bytes), (4, 5));
        assert_eq!(run(Change::Delete, confirmed(asked)), Ok(()));
        assert_eq!(state("/data/it").kind, None);
    });
}

/// Only a disk has these.
#[test]
fn i8_another_file_of_the_same_bytes_and_another_link_are_seen() {
    let stage = Stage::new();
    let look = || now(stage.disk.state("/data/it"));
    let delete = |asked: Standing| change_on(&stage.disk, Change::Delete, confirmed(asked));
    fs::write(stage.data("it"), "1").unwrap();
    let times = fs::FileTimes::new()
        .set_modified(fs::metadata(stage.data("it")).unwrap().modified().unwrap());
    let asked = look().unwrap();
    // The old one is kept, so that the new one is not given its number.
    fs::rename(stage.data("it"), stage.data("old")).unwrap();
    fs::write(stage.data("it"), "1").unwrap();
    fs::File::options().write(true).open(stage.data("it")).unwrap().set_times(times).unwrap();
    assert_eq!(delete(asked), Err(Fault::Changed));

    fs::remove_file(stage.data("it")).unwrap();
    symlink("/a", stage.data("it")).unwrap();
    let asked = look().unwrap();
    assert_eq!(asked.kind, Some(Kind::Link));
    fs::remove_file(stage.data("it")).unwrap();
    fs::write(stage.data("it"), "1").unwrap();
    assert_eq!(delete(asked), Err(Fault::Changed));
    // What could not be looked at when it was asked about has changed once it can be.
    assert_eq!(delete(Standing::unseen(Fault::Link)), Err(Fault::Changed));
    assert_eq!(now(stage.disk.state("/data")), Err(Fault::Immovable));
    assert!(stage.disk.all("/data/it").is_ok());
}
