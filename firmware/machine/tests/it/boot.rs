//! Every board boots, and every way to break ends with its reason and its code.

use core::time::Duration;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use synapse_machine::{Carrier, FAULT, Model, PANIC, Plan, Processor, SUCCESS, UNABLE};

use crate::guests::guest;
use crate::{PATIENCE, ask, boot, bundle, plan, power_off, up};

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn every_board_boots_to_a_prompt_in_little_memory() {
    for model in Model::ALL {
        let mut machine = boot(model, 16, &[]);
        assert!(ask(&mut machine, "help").contains("poweroff"));
        assert!(ask(&mut machine, "launch").contains("there is no `launch`"));
        assert!(ask(&mut machine, "run nobody").contains("no agent is called `nobody`"));
        power_off(machine);
    }
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn a_machine_without_randomness_says_so_and_one_with_it_does_not() {
    let told = "no source of randomness: no keys can be made";
    let plain = |model, cpu: &str| Plan { model, more: vec!["-cpu".into(), cpu.into()], ..plan() };
    let mut plans = vec![(plain(Model::Q35, "qemu64"), true), (plain(Model::Q35, "max"), false)];
    for model in Model::ALL {
        plans.push((Plan { has_random: true, ..plain(model, "qemu64") }, false));
    }
    for (plan, without) in plans {
        let mut machine = plan.start().unwrap();
        let said = machine.expect("synapse> ", PATIENCE).unwrap();
        assert_eq!(said.contains(told), without, "{plan:?}: {said}");
        power_off(machine);
    }
}

/// A machine that no boot loader started has its bundle all the same.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn bundle_is_handed_over_by_qemu_itself() {
    let files: [(&str, &[u8]); 2] =
        [("files/data/a.md", b"from a file"), ("packages/agent/agent.wasm", b"")];
    for model in Model::ALL {
        let bundle = bundle(&files);
        let mut machine = up(&Plan { model, carrier: Carrier::File, bundle, ..plan() });
        assert!(ask(&mut machine, "help").contains("agent: agent"));
        assert!(ask(&mut machine, "cat /data/a.md").contains("from a file"));
        power_off(machine);
    }
}

/// What a probe says holds; without KVM it says no, and soon.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn kvm_is_used_where_a_probe_has_shown_that_it_works() {
    let start = Instant::now();
    let works = plan().probe();
    println!("KVM runs the image: {works}");
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    if works {
        let mut machine = up(&Plan { processor: Processor::Kvm, ..plan() });
        assert!(ask(&mut machine, "help").contains("poweroff"));
        power_off(machine);
    }
    // An image that is none does not run on anything.
    let none = tempfile::NamedTempFile::new().unwrap();
    assert!(!Plan::new(none.path()).probe());
}

/// An agent that would compute for ever, and may for two seconds.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn seconds_are_seconds_on_every_board() {
    let endless = guest("", "(loop $l (br $l)) i32.const 512");
    let grant = "version = 1\nprimitives = []\n[budget]\nseconds = 2\n";
    let files: [(&str, &[u8]); 2] = [
        ("packages/endless/endless.wasm", &endless),
        ("packages/endless/grant.toml", grant.as_bytes()),
    ];
    for model in Model::ALL {
        let mut machine = boot(model, 16, &files);
        let start = Instant::now();
        assert!(ask(&mut machine, "run endless").contains("computed for longer"));
        // An emulator that shares its processor may be late, never early.
        let passed = start.elapsed();
        assert!(passed > Duration::from_millis(1800) && passed < 3 * PATIENCE / 4, "{passed:?}");
        power_off(machine);
    }
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn every_fault_is_told_and_has_its_code() {
    for (drill, code, told) in [
        ("stack", FAULT, "fault: the stack is used up"),
        ("null", FAULT, "fault: page (vector 14, code 0x2,"),
        ("constant", FAULT, "fault: page (vector 14, code 0x3,"),
        ("code", FAULT, "fault: page (vector 14, code 0x3,"),
        ("execute", FAULT, "fault: page (vector 14, code 0x11,"),
        ("divide", FAULT, "fault: division (vector 0,"),
        ("panic", PANIC, "panic: called from 0x"),
        ("memory", PANIC, "memory that was denied was for 4294967296 bytes"),
        ("nothing", UNABLE, "there is no such drill"),
    ] {
        let machine = Plan { words: format!("drill={drill}"), model: Model::Microvm, ..plan() };
        let (ended, said) = machine.start().unwrap().end(PATIENCE).unwrap();
        assert!(said.contains(told), "{drill}: {said}");
        assert_eq!(ended, code, "{drill}: {said}");
        // Whoever called the drill is among those that led there.
        let calls = said.split("called from ").nth(1).map(|calls| calls.lines().next().unwrap());
        let places = calls.map(|calls| calls.split(' ').filter(|place| place.starts_with("0x")));
        assert_eq!(code != UNABLE, places.is_some_and(|places| places.count() > 1), "{said}");
    }
}

/// What a Multiboot2 loader looks for: in the first 32 KiB, at a multiple of
/// eight, a magic number, an architecture and a length that sum to zero.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn a_multiboot2_loader_finds_its_header() {
    let image = std::fs::read(plan().image).unwrap();
    let (places, _) = image[..32 << 10].as_chunks::<8>();
    let at = 8 * places.iter().position(|place| place[..4] == [0xd6, 0x50, 0x52, 0xe8]).unwrap();
    let (words, _) = image[at..at + 24].as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    assert_eq!(words[..4].iter().fold(0, |sum: u32, word| sum.wrapping_add(*word)), 0);
    // Protected mode of i386, this length, and a list of wishes that only ends.
    assert_eq!((words[1], words[2], &words[4..]), (0, 24, &[0, 8][..]));
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn bundle_that_is_none_is_refused_with_its_reason() {
    let plan = Plan { bundle: b"070701 and then nothing".to_vec(), ..plan() };
    let (code, said) = plan.start().unwrap().end(PATIENCE).unwrap();
    assert!(said.contains("the bundle cannot be read from byte 0"), "{said}");
    assert_eq!(code, UNABLE);
}

/// Keys are pressed at the emulator's own console, which stands in for hands.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn a_line_can_be_typed_at_the_keyboard() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("monitor");
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    let more = vec!["-monitor".into(), monitor.into()];
    let mut machine = Plan { more, ..plan() }.start().unwrap();
    machine.expect("synapse> ", PATIENCE).unwrap();
    let mut keys = UnixStream::connect(&socket).unwrap();
    // A mistake is taken back.
    for key in ["c", "a", "t", "spc", "shift-minus", "slash", "backspace", "slash", "ret"] {
        writeln!(keys, "sendkey {key}").unwrap();
    }
    let said = machine.expect("synapse> ", PATIENCE).unwrap();
    assert!(said.contains("error: _/: "), "{said}");
    for key in ["f", "ctrl-c", "p", "o", "w", "e", "r", "o", "f", "f", "ret"] {
        writeln!(keys, "sendkey {key}").unwrap();
    }
    let (code, said) = machine.end(PATIENCE).unwrap();
    assert_eq!(code, SUCCESS, "{said}");
}
