//! Putting back what a run did.

use proptest::prelude::*;
use synapse_primitives::Fault;
use synapse_primitives::platform::{Journal, Mode};
use synapse_store::Shelf;
use synapse_store::undo::Undone;

use crate::acts;
use crate::{Act, act, all, in_memory, journal};

fn undo(shelf: &Shelf, run: u64) -> Vec<Undone> {
    let journal = shelf.journal(run).unwrap();
    journal.iter().map(|(place, entry)| shelf.undo(run, *place, entry, 9).unwrap()).collect()
}

proptest! {
    #[test]
    fn undone_is_as_it_was(
        before in prop::collection::vec(acts::act(), 0..10),
        acts in prop::collection::vec(acts::act(), 1..20),
    ) {
        let shelf = in_memory();
        let (first, second) = (shelf.begin("one"), shelf.begin("two"));
        for one in &before {
            let _ = act(&shelf, first, 0, one);
        }
        let stood = all(&shelf);
        for (record, one) in (0..).zip(&acts) {
            let _ = act(&shelf, second, record, one);
        }
        prop_assert!(undo(&shelf, second).iter().all(|undone| *undone == Undone::Restored));
        prop_assert_eq!(all(&shelf), stood);
        prop_assert_eq!(shelf.journal(second), Ok(vec![]));
        // And what the first one did, too.
        undo(&shelf, first);
        prop_assert!(all(&shelf).is_empty());
    }
}

fn write(path: &str, content: &str, mode: Mode) -> Act {
    Act::Write(path.to_owned(), content.as_bytes().to_vec(), mode)
}

#[test]
fn what_others_changed_since_stays() {
    let shelf = in_memory();
    let (own, other) = (shelf.begin("own"), shelf.begin("other"));
    for (run, one) in [
        (own, write("/data/deep/new.md", "new", Mode::Create)),
        (own, write("/data/kept.md", "1", Mode::Create)),
        (other, write("/data/gone.tar.gz", "old", Mode::Create)),
        (other, write("/data/log", "first", Mode::Create)),
        (own, Act::Remove("/data/gone.tar.gz".to_owned())),
        (own, write("/data/log", ", second", Mode::Append)),
        (other, write("/data/gone.tar.gz", "another", Mode::Create)),
        (other, write("/data/log", ", third", Mode::Append)),
        (other, write("/data/deep/new.md", "newer", Mode::Replace)),
    ] {
        act(&shelf, run, 3, &one).unwrap();
    }
    let beside = "/data/gone.tar (before record 3).gz";
    assert_eq!(
        undo(&shelf, own),
        [Undone::Left, Undone::Beside(beside.to_owned()), Undone::Restored, Undone::Left]
    );
    let stands = all(&shelf);
    assert_eq!(stands[beside].as_deref(), Some(&b"old"[..]));
    assert_eq!(stands["/data/gone.tar.gz"].as_deref(), Some(&b"another"[..]));
    assert_eq!(stands["/data/log"].as_deref(), Some(&b"first, second, third"[..]));
    assert_eq!(stands["/data/deep/new.md"].as_deref(), Some(&b"newer"[..]));
    assert!(!stands.contains_key("/data/kept.md"));
}

#[test]
fn room_that_was_taken_comes_back_when_a_run_is_forgotten() {
    let shelf = in_memory();
    let large = vec![b'x'; 900_000];
    let replace = Act::Write("/data/a".to_owned(), large, Mode::Replace);
    let mut times = 0;
    let run = shelf.begin("agent");
    // What is displaced is more than the call's room: only a removal's is not.
    let fault = loop {
        let by = |run, record, one: &Act| match one {
            Act::Write(path, content, mode) => {
                let journal = Journal { room: u64::MAX, ..journal(run, record) };
                shelf.write(path, content, *mode, synapse_store::By { run, journal, now_ms: 0 })
            }
            _ => unreachable!("only writes"),
        };
        match by(run, times, &replace) {
            Ok(_) => times += 1,
            Err(fault) => break fault,
        }
    };
    assert_eq!((times, fault), (4, Fault::NoSpace));
    shelf.end(run).unwrap();
    assert_eq!(shelf.forget(|run| run.ended), Ok(1));
    assert_eq!(shelf.runs(), []);
    let forgotten = run;
    let run = shelf.begin("agent");
    assert_eq!(run, forgotten + 1);
    for record in 0..3 {
        let small = write("/data/b", "b", Mode::Append);
        act(&shelf, run, record, &small).unwrap();
    }
    assert_eq!(shelf.read("/data/b", 0, 10).unwrap().bytes, b"bbb");
    assert_eq!(shelf.read("/data/a", 899_999, 10).unwrap().bytes, b"x");
}
