//! Costs, in instructions: an emulator that counts them as time makes them the
//! same from run to run, so that a small change shows.
//!
//! `counts.txt` holds what was found and accepted. `cargo xtask firmware
//! --bless` writes it anew.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use synapse_machine::{Model, Plan};

use crate::guests::saying;
use crate::{PATIENCE, ask, boot, bundle, plan, power_off};

/// How far a count may be from the accepted one, in parts of a thousand.
const TOLERANCE: u64 = 30;
/// Reads of the clock that the agent makes.
const CALLS: u64 = 1000;

const CLOCK: &str = r#"{"name":"clock_read","arguments":{}}"#;
const GRANT: &str = "version = 1\nprimitives = [\"clock_read\"]\n";

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn costs_are_the_accepted_ones() {
    let (once, often) = (saying(&[CLOCK], 1), saying(&[CLOCK], u32::try_from(CALLS).unwrap()));
    let files: [(&str, &[u8]); 5] = [
        ("packages/once/once.wasm", &once),
        ("packages/once/grant.toml", GRANT.as_bytes()),
        ("packages/often/often.wasm", &often),
        ("packages/often/grant.toml", GRANT.as_bytes()),
        ("start", b"run once\nbench once\nbench often\npoweroff\n"),
    ];
    let counting = Plan {
        model: Model::Microvm,
        bundle: bundle(&files),
        more: ["-icount", "shift=0,sleep=off"].map(Into::into).to_vec(),
        ..plan()
    };
    let (_, said) = counting.start().unwrap().end(PATIENCE).unwrap();
    let after = |text: &str, nth: usize| -> u64 {
        let rest = said.split(text).nth(nth + 1).unwrap_or_else(|| panic!("{text}: {said}"));
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let agent = after("bench agent ", 1) - after("bench agent ", 0);
    let found = BTreeMap::from([
        ("first-call", after("first call: ", 0)),
        ("decide", after("bench decide ", 0)),
        ("crossing", after("bench crossing ", 0)),
        ("guest-crossing", agent / (CALLS - 1)),
    ]);

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/counts.txt");
    if env::var_os("SYNAPSE_BLESS").is_some() {
        let mut text = String::new();
        for (name, count) in &found {
            writeln!(text, "{name} {count}").unwrap();
        }
        fs::write(&path, text).unwrap();
    }
    let accepted = fs::read_to_string(&path).unwrap();
    let accepted: BTreeMap<&str, u64> = accepted
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, count)| (name, count.parse().unwrap()))
        .collect();
    assert!(accepted.keys().eq(found.keys()), "{accepted:?} {found:?}");
    for (name, count) in &found {
        assert!(
            count.abs_diff(accepted[name]) * 1000 <= accepted[name] * TOLERANCE,
            "{name}: {count} instructions, {} are accepted; make it cheaper, or say \
             why it costs more and run `cargo xtask firmware --bless`",
            accepted[name]
        );
    }
}

/// No bound: a builder that is busy is no reason to fail. The figure is for people.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn time_to_the_first_call_is_told() {
    let once = saying(&[CLOCK], 1);
    let files: [(&str, &[u8]); 3] = [
        ("packages/once/once.wasm", &once),
        ("packages/once/grant.toml", GRANT.as_bytes()),
        ("start", b"run once\n"),
    ];
    let start = Instant::now();
    let mut machine =
        Plan { model: Model::Microvm, bundle: bundle(&files), ..plan() }.start().unwrap();
    machine.expect("clock_read  ok", PATIENCE).unwrap();
    println!("from the start of QEMU to the first gated call: {:?}", start.elapsed());
    drop(machine);
    // Ticks are told without an emulator that counts, too.
    let mut machine = boot(Model::Q35, 16, &files[..2]);
    assert!(ask(&mut machine, "bench once").contains("bench crossing "));
    power_off(machine);
}
