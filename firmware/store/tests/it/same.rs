//! The shelf answers as the platform of plain values does.

use proptest::prelude::*;
use synapse_primitives::Platform;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;

use crate::acts;
use crate::{Act, Came, act, admits, all, creator, in_memory, journal, now};

fn on_memory(memory: &Memory, run: u64, record: u64, act: &Act) -> Came {
    let journal = journal(run, record);
    match act {
        Act::Write(path, content, mode) => now(memory.write(path, content, *mode, journal))
            .map(|written| (written.displaced, written.length)),
        Act::Edit(path, old, new) => now(memory.edit(path, old, new, journal))
            .map(|written| (written.displaced, written.length)),
        Act::Move(from, to) => now(memory.rename(from, to, journal, &admits)).map(|()| (0, 0)),
        Act::Remove(path) => now(memory.remove(path, journal, &|inner| !inner.contains("no")))
            .map(|taken| (taken, 0)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_call_comes_to_the_same(acts in prop::collection::vec(acts::act(), 1..25)) {
        let (shelf, memory) = (in_memory(), Memory::new(&[("/data", Access::ReadWrite)]).unwrap());
        memory.set_now(7);
        let runs = [shelf.begin("one"), shelf.begin("two")];
        for (record, one) in (0..).zip(&acts) {
            let run = runs[usize::from(record % 5 == 4)];
            let came = on_memory(&memory, run, record, one);
            prop_assert_eq!(act(&shelf, run, record, one), came, "{:?}", one);
        }
        for (path, content) in all(&shelf) {
            if let Some(content) = content {
                prop_assert_eq!(now(memory.read(&path, 0, u64::MAX)).unwrap().bytes, content);
                prop_assert_eq!(now(memory.read(&path, 15_990, 20)), shelf.read(&path, 15_990, 20));
            }
            for run in runs {
                let own = memory.is_own(&path, creator(run));
                prop_assert_eq!(shelf.is_own(&path, creator(run)), own, "{}", path);
            }
            for (after, limit) in [("", 2), ("a", 100), ("a", 1), ("zz", 5)] {
                prop_assert_eq!(now(memory.list(&path, after, limit)), shelf.list(&path, after, limit));
            }
        }
        for path in ["/", "/data", "/none", "/data/x/", "/data/.synapse-part-1"] {
            prop_assert_eq!(now(memory.list(path, "", 100)), shelf.list(path, "", 100));
            prop_assert_eq!(now(memory.read(path, 0, 1)), shelf.read(path, 0, 1));
        }
    }
}
