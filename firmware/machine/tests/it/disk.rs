//! A disk: what stands on it after a reboot, and after the power was cut.

use core::time::Duration;
use std::io::Write as _;
use std::thread::sleep;

use synapse_machine::{Machine, Model, Plan, UNABLE};
use tempfile::NamedTempFile;

use crate::guests::saying;
use crate::librarian::{NOTES_GRANT, notes};
use crate::{PATIENCE, ask, bundle, named, plan, power_off, up};

const GRANT: &str = r#"
version = 1
primitives = ["fs_write", "fs_move"]

[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]

[budget]
calls = 100000
"#;

/// A disk of so many zeros.
pub(crate) fn disk(bytes: u64) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(bytes).unwrap();
    file
}

fn on(disk: &NamedTempFile, model: Model, bundle: &[u8]) -> Plan {
    let disk = Some(disk.path().to_owned());
    Plan { model, memory: 16, disk, bundle: bundle.to_vec(), ..plan() }
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn files_and_logs_survive_a_reboot_on_every_board() {
    let component = std::fs::read(named("SYNAPSE_LIBRARIAN")).unwrap();
    let notes = notes(40);
    let placed: Vec<String> = notes.iter().map(|(path, _)| format!("files{path}")).collect();
    let mut files: Vec<(&str, &[u8])> = vec![
        ("packages/librarian/librarian.wasm", &component),
        ("packages/librarian/grant.toml", NOTES_GRANT.as_bytes()),
    ];
    files.extend(placed.iter().zip(&notes).map(|(path, (_, bytes))| (&**path, &**bytes)));
    let bundle = bundle(&files);
    let disk = disk(16 << 20);
    let mut machine = up(&on(&disk, Model::Q35, &bundle));
    let fresh = ask(&mut machine, "ls /data");
    let said = ask(&mut machine, "run librarian Write an index and move duplicates aside.");
    assert!(said.contains("40 files, 2 exact duplicates (2 moved aside)"), "{said}");
    let (stands, index) = (ask(&mut machine, "ls /data"), ask(&mut machine, "cat /data/INDEX.md"));
    let verified = ask(&mut machine, "audit verify");
    assert!(verified.contains("run 1: ") && verified.contains(" records, chain "), "{verified}");
    power_off(machine);

    // The same disk in other machines: the bundle's files do not come back.
    for model in [Model::Pc, Model::Microvm] {
        let mut machine = up(&on(&disk, model, &bundle));
        assert!(ask(&mut machine, "runs").contains("run 1  librarian  ended"));
        assert_eq!(ask(&mut machine, "audit verify"), verified);
        assert_eq!(ask(&mut machine, "ls /data"), stands);
        assert_eq!(ask(&mut machine, "cat /data/INDEX.md"), index);
        power_off(machine);
    }
    let mut machine = up(&on(&disk, Model::Microvm, &bundle));
    machine.enter("undo").unwrap();
    machine.expect("Type yes: ", PATIENCE).unwrap();
    assert!(ask(&mut machine, "yes").contains("3 changes put back"));
    power_off(machine);
    let mut machine = up(&on(&disk, Model::Q35, &[]));
    assert_eq!(ask(&mut machine, "ls /data"), fresh);
    power_off(machine);
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn disk_that_cannot_be_used_ends_the_machine_with_its_reason() {
    let foreign = disk(16 << 20);
    foreign.as_file().write_all(b"a letter").unwrap();
    for (disk, told) in [(&foreign, "not this machine's"), (&disk(64 << 10), "too small")] {
        let (code, said) = on(disk, Model::Q35, &[]).start().unwrap().end(PATIENCE).unwrap();
        assert!(said.contains(told), "{said}");
        assert_eq!(code, UNABLE);
    }
    let disk = disk(16 << 20);
    let old = ["-global", "virtio-mmio.force-legacy=true"].map(Into::into).to_vec();
    let old = Plan { more: old, ..on(&disk, Model::Microvm, &[]) };
    let drive = format!("if=none,id=kept,format=raw,readonly=on,file={}", disk.path().display());
    let kept = ["-drive", &drive, "-device", "virtio-blk-pci,drive=kept"];
    let kept = Plan { more: kept.map(Into::into).to_vec(), ..plan() };
    for (plan, told) in [(old, "cannot be spoken to"), (kept, "the disk cannot be written")] {
        let (code, said) = plan.start().unwrap().end(PATIENCE).unwrap();
        assert!(said.contains(told), "{said}");
        assert_eq!(code, UNABLE);
    }
}

/// A disk that is full refuses, and goes on; so it does after a reboot.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn full_disk_takes_no_more_and_loses_nothing() {
    let more = write("/data/more", &"m".repeat(30_000), "append");
    let filling = saying(&[&more], 40);
    let files: [(&str, &[u8]); 2] = [
        ("packages/filling/filling.wasm", &filling),
        ("packages/filling/grant.toml", GRANT.as_bytes()),
    ];
    let (disk, bundle) = (disk(1 << 20), bundle(&files));
    for run in 1..4 {
        let mut machine = up(&on(&disk, Model::Microvm, &bundle));
        let said = ask(&mut machine, "run filling");
        assert!(said.contains("failed: no space") || said.contains("no more records"), "{said}");
        let verified = ask(&mut machine, "audit verify 1");
        assert!(verified.contains("run 1: "), "after run {run}: {verified}");
        assert!(ask(&mut machine, "ls /data").contains("  150,000  more"));
        power_off(machine);
    }
}

/// Twenty machines are killed at some moment of their work.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn killed_at_any_moment_1() {
    (1..=10).for_each(killed_at_a_moment);
}

/// See [`killed_at_any_moment_1`].
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn killed_at_any_moment_2() {
    (11..=20).for_each(killed_at_a_moment);
}

fn killed_at_a_moment(seed: u64) {
    let disk = disk(16 << 20);
    let mut machine = up(&on(&disk, Model::Microvm, &busy()));
    machine.enter("run busy").unwrap();
    machine.expect("fs_write", PATIENCE).unwrap();
    sleep(Duration::from_millis(random(seed) % 400));
    machine.kill();
    is_whole(&disk, &format!("killed by seed {seed}"));
}

/// Ten are, in the middle of a write that belongs to a commit: the machine itself
/// stands still there, so that it is known to be in it.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn killed_inside_of_a_commit() {
    for seed in 21..=30 {
        let disk = disk(16 << 20);
        // Making the disk takes its share of writes.
        let cut = 40 + random(seed) % 200;
        let words = format!("drill=cut:{cut}");
        let mut machine = up(&Plan { words, ..on(&disk, Model::Microvm, &busy()) });
        machine.enter("run busy").unwrap();
        machine.expect("the power is cut in the middle of a write", PATIENCE).unwrap();
        machine.kill();
        is_whole(&disk, &format!("cut in write {cut}"));
    }
}

/// An agent that writes without end: the same file with one of two contents, one
/// that grows line by line, and one that is made and moved.
fn busy() -> Vec<u8> {
    let sentences = [
        write("/data/a", &"A".repeat(5000), "replace"),
        write("/data/lines", "nine char\\n", "append"),
        write("/data/a", &"B".repeat(5000), "replace"),
        write("/data/new", &"n".repeat(20_000), "create"),
        r#"{"name":"fs_move","arguments":{"from":"/data/new","to":"/data/moved"}}"#.to_owned(),
    ];
    let sentences: Vec<&str> = sentences.iter().map(|sentence| &**sentence).collect();
    let (busy, once) = (saying(&sentences, 100_000), saying(&sentences[..1], 1));
    bundle(&[
        ("packages/busy/busy.wasm", &busy),
        ("packages/busy/grant.toml", GRANT.as_bytes()),
        ("packages/once/once.wasm", &once),
        ("packages/once/grant.toml", GRANT.as_bytes()),
    ])
}

fn write(path: &str, content: &str, mode: &str) -> String {
    format!(
        r#"{{"name":"fs_write","arguments":{{"path":"{path}","content":"{content}","mode":"{mode}"}}}}"#
    )
}

/// The log verifies, no file is half-written, and the machine goes on.
fn is_whole(disk: &NamedTempFile, when: &str) {
    let mut machine = up(&on(disk, Model::Microvm, &busy()));
    assert!(ask(&mut machine, "runs").contains("run 1  busy  was cut off"), "{when}");
    let said = ask(&mut machine, "audit verify 1");
    assert!(said.contains("run 1: ") && said.contains(" records, chain "), "{when}: {said}");
    let sizes = sizes(&mut machine);
    for (name, size) in &sizes {
        let whole = match &**name {
            "a" => *size == 5000,
            "lines" => size % 10 == 0,
            "new" | "moved" => *size == 20_000,
            _ => false,
        };
        assert!(whole, "{when}: {name} has {size} bytes");
    }
    let one = ask(&mut machine, "cat /data/a").replace("cat /data/a", "");
    assert!(!one.contains('A') || !one.contains('B'), "{when}: {one}");
    let lines = ask(&mut machine, "cat /data/lines");
    let count = lines.matches("│ nine char\r\n").count();
    let size = sizes.iter().find(|(name, _)| name == "lines").map_or(0, |(_, size)| *size);
    assert_eq!(u64::try_from(count).unwrap() * 10, size, "{when}: {lines}");
    assert!(ask(&mut machine, "run once").contains("fs_write /data/a  ok"), "{when}");
    assert!(ask(&mut machine, "audit verify").contains("run 2: "), "{when}");
    power_off(machine);
}

/// The files of `/data`, by name, with their sizes.
fn sizes(machine: &mut Machine) -> Vec<(String, u64)> {
    let listed = ask(machine, "ls /data");
    let entries = listed.lines().filter_map(|line| line.trim().split_once("  "));
    let parsed = entries.filter_map(|(size, name)| {
        Some((name.to_owned(), size.replace([',', '\u{202f}', ' '], "").parse().ok()?))
    });
    parsed.collect()
}

/// The same number for the same seed.
fn random(seed: u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for shift in [30, 27, 31] {
        state = (state ^ state >> shift).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state >> 16
}
