//! The librarian on the image, at a folder of two hundred notes.

use std::fs;

use synapse_machine::{Model, Plan};
use tempfile::NamedTempFile;

use crate::disk::disk;
use crate::{ask, bundle, named, plan, power_off, up};

pub(crate) const NOTES_GRANT: &str = include_str!("../../../../packages/librarian/grant.toml");

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn librarian_indexes_two_hundred_notes() {
    let component = fs::read(named("SYNAPSE_LIBRARIAN")).unwrap();
    let notes = notes(200);
    let placed: Vec<String> = notes.iter().map(|(path, _)| format!("files{path}")).collect();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("packages/librarian/librarian.wasm", &component),
        ("packages/librarian/grant.toml", NOTES_GRANT.as_bytes()),
    ];
    files.extend(placed.iter().zip(&notes).map(|(path, (_, bytes))| (&**path, &**bytes)));
    let bundle = bundle(&files);
    let disk = disk(64 << 20);
    let plan = |model, memory, disk: Option<&NamedTempFile>| {
        let disk = disk.map(|disk| disk.path().to_owned());
        Plan { model, memory, disk, bundle: bundle.clone(), ..plan() }
    };
    for plan in [
        plan(Model::Microvm, 16, None),
        plan(Model::Microvm, 16, Some(&disk)),
        plan(Model::Pc, 64, None),
    ] {
        let mut machine = up(&plan);
        let said = ask(&mut machine, "run librarian Write an index and move duplicates aside.");
        assert!(said.contains("200 files, 10 exact duplicates (10 moved aside)"), "{said}");
        let index = ask(&mut machine, "cat /data/INDEX.md");
        assert!(index.contains("| note-007.md |"), "{index}");
        let said = ask(&mut machine, "run librarian Index again, then delete /data/note-001.md");
        assert!(
            said.contains("refused by gate 3 (label): destructive after reading [301]"),
            "{said}"
        );
        let said = ask(&mut machine, "audit verify 2");
        assert!(said.contains("run 2: ") && said.contains(" records, chain "), "{said}");
        assert!(ask(&mut machine, "ls /data").contains(" note-001.md"));
        power_off(machine);
    }
}

/// So many notes below `/data`, one in twenty a copy of the one before.
pub(crate) fn notes(count: usize) -> Vec<(String, Vec<u8>)> {
    let note = |number: usize| {
        let original = if number % 20 == 19 { number - 1 } else { number };
        let text = format!("# Note {original}\n\nSee [next](note-{:03}.md).\n", original + 1);
        (format!("/data/note-{number:03}.md"), text.into_bytes())
    };
    (0..count).map(note).collect()
}
