//! The shelf as a board uses it: the verbs, putting back, and power cuts.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot set its stage has failed"
)]

mod disk;
mod labels;
mod packages;
mod power;
mod same;
mod undo;

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;

use synapse_boundary::Integrity;
use synapse_primitives::Fault;
use synapse_primitives::platform::{Journal, Kind, Mode};
use synapse_primitives::rest::{Creator, Names, Owner, Rest, Stamp};
use synapse_store::{By, Rooms, Shelf, Store, Volatile};

const ROOMS: Rooms = Rooms { files: 4 << 20, logs: 1 << 20, whole: 1 << 20 };

/// One call of a run.
#[derive(Clone, Debug)]
enum Act {
    Write(String, Vec<u8>, Mode),
    Edit(String, Vec<u8>, Vec<u8>),
    Move(String, String),
    Remove(String),
}

/// What a call comes to, on any platform.
type Came = Result<(u64, u64), Fault>;

fn shelf(store: Box<dyn Store>) -> Shelf {
    Shelf::open(store, ROOMS, &["/data".to_owned()], &[], 5).unwrap()
}

fn in_memory() -> Shelf {
    shelf(Box::new(Volatile::default()))
}

/// What a run's change leaves, other than the next record's.
fn stamp(run: u64, record: u64) -> Stamp {
    let mut names = Names::NONE;
    for (name, bit) in [("prompt", 1), ("files", 2), ("letters", 4)] {
        if record & bit == bit {
            names.add(name);
        }
    }
    let integrity = if record.is_multiple_of(3) { Integrity::User } else { Integrity::Ingested };
    Stamp {
        rest: Rest { integrity, names },
        creator: creator(run),
        carried: Names::NONE,
        owner: Owner::Anyone,
    }
}

fn creator(run: u64) -> Creator {
    Creator { run: [u8::try_from(run).unwrap(); 32], task: 1 }
}

fn journal(run: u64, record: u64) -> Journal {
    Journal { record, part: 0, room: 100_000, expects: None, stamp: stamp(run, record) }
}

/// What a move takes along; nothing of what is called so may go.
fn admits(from: &str, _: &str) -> Option<Names> {
    (!from.contains("no")).then_some(Names::NONE)
}

fn act(shelf: &Shelf, run: u64, record: u64, act: &Act) -> Came {
    let by = By { run, journal: journal(run, record), now_ms: 7 };
    match act {
        Act::Write(path, content, mode) => {
            shelf.write(path, content, *mode, by).map(|written| (written.displaced, written.length))
        }
        Act::Edit(path, old, new) => {
            shelf.edit(path, old, new, by).map(|written| (written.displaced, written.length))
        }
        Act::Move(from, to) => shelf.rename(from, to, by, &admits).map(|()| (0, 0)),
        Act::Remove(path) => {
            shelf.remove(path, by, &|inner| !inner.contains("no")).map(|taken| (taken, 0))
        }
    }
}

/// Every file and every directory below `/data`.
fn all(shelf: &Shelf) -> BTreeMap<String, Option<Vec<u8>>> {
    let (mut found, mut open) = (BTreeMap::new(), vec!["/data".to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in shelf.list(&folder, "", 1000).unwrap().entries {
            let path = format!("{folder}/{}", entry.name);
            let content = match entry.kind {
                Kind::Directory => {
                    open.push(path.clone());
                    None
                }
                _ => Some(shelf.read(&path, 0, u64::MAX).unwrap().bytes),
            };
            found.insert(path, content);
        }
    }
    found
}

/// Drives a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("these platforms never wait"),
    }
}

mod acts {
    use proptest::prelude::*;
    use synapse_primitives::platform::Mode;

    use super::Act;

    /// Paths of few names, so that calls meet.
    fn path() -> impl Strategy<Value = String> {
        let name = || prop::sample::select(vec!["a", "b", "a.md", "no", "é"]);
        prop::collection::vec(name(), 1..4).prop_map(|names| format!("/data/{}", names.join("/")))
    }

    fn content() -> impl Strategy<Value = Vec<u8>> {
        let length = prop::sample::select(vec![0_usize, 1, 10, 15_999, 16_000, 16_001, 40_000]);
        (length, any::<u8>()).prop_map(|(length, byte)| {
            (0..length).map(|at| byte.wrapping_add(u8::try_from(at % 251).unwrap())).collect()
        })
    }

    pub(crate) fn act() -> impl Strategy<Value = Act> {
        let mode = prop::sample::select(vec![Mode::Create, Mode::Replace, Mode::Append]);
        prop_oneof![
            4 => (path(), content(), mode).prop_map(|(path, content, mode)| Act::Write(path, content, mode)),
            1 => (path(), 0_u8..3).prop_map(|(path, byte)| Act::Edit(path, vec![byte, byte + 1], vec![9])),
            2 => (path(), path()).prop_map(|(from, to)| Act::Move(from, to)),
            2 => path().prop_map(Act::Remove),
        ]
    }
}
