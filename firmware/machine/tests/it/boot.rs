//! Every board boots, and every way to break ends with its reason and its code.

use core::time::Duration;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use synapse_machine::{FAULT, Model, PANIC, Plan, SUCCESS, UNABLE};

use crate::guests::guest;
use crate::{PATIENCE, ask, boot, plan, power_off};

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
    for (cpu, without) in [("qemu64", true), ("max", false)] {
        let more = vec!["-cpu".into(), cpu.into()];
        let mut machine = Plan { more, ..plan() }.start().unwrap();
        let said = machine.expect("synapse> ", PATIENCE).unwrap();
        assert_eq!(
            said.contains("no source of randomness: no keys can be made"),
            without,
            "{said}"
        );
        power_off(machine);
    }
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
        ("panic", PANIC, "asked for by drill=panic"),
        ("memory", PANIC, "memory allocation of 4294967296 bytes failed"),
        ("nothing", UNABLE, "there is no such drill"),
    ] {
        let machine = Plan { words: format!("drill={drill}"), model: Model::Microvm, ..plan() };
        let (ended, said) = machine.start().unwrap().end(PATIENCE).unwrap();
        assert!(said.contains(told), "{drill}: {said}");
        assert_eq!(ended, code, "{drill}: {said}");
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
