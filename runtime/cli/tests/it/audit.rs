//! A log is read back, and whatever was changed in it is named.

use std::fs;
use std::path::Path;

use synapse_abi::registry::Primitive;
use synapse_boundary::{Integrity, Label};
use synapse_kernel::record::{Durability, Event, HEADER, Kind, Log, Sink, SinkFailed, tag};
use synapse_kernel::verify::{Broken, Reader};

use crate::{err, out, synapse};

#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
    /// Where each append ended.
    ends: Vec<usize>,
}

impl Sink for &mut Memory {
    fn append(&mut self, frame: &[u8], _: Durability) -> Result<(), SinkFailed> {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

/// A start, a failed outcome with hostile text, and the end where it is wanted.
fn written(ended: bool) -> Memory {
    let mut memory = Memory::default();
    let mut log = Log::begin(&mut memory, [7; 32]).unwrap();
    let event = |kind, primitive, code, text| Event {
        kind,
        task: 1,
        primitive,
        code,
        label: Label::SYSTEM,
        cause: None,
        tail: Some((tag::TEXT, text)),
        durability: Durability::Soon,
    };
    let hostile = "a\n#9 forged\u{202e}\u{1b}[2J".as_bytes();
    log.note(&event(Kind::TaskStart, None, 0, b"{\"task\":\"tidy\"}"), 1000).unwrap();
    let fault =
        Event { cause: Some(0), ..event(Kind::Outcome, Some(Primitive::FsRead), 502, hostile) };
    log.note(&fault, 86_399_999).unwrap();
    if ended {
        log.note(&event(Kind::RunEnd, None, 0, b"{}"), 3000).unwrap();
    }
    drop(log);
    memory
}

fn verify(dir: &Path, bytes: &[u8]) -> (Option<i32>, String, String) {
    let path = dir.join("log");
    fs::write(&path, bytes).unwrap();
    let run = synapse(dir, &["audit", "verify", path.to_str().unwrap()]);
    (run.status.code(), out(&run), err(&run))
}

#[test]
fn a_whole_log_is_complete_and_one_without_its_end_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (code, told, _) = verify(dir.path(), &written(true).bytes);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.starts_with("3 records, chain ") && told.ends_with(", complete\n"), "{told}");
    let (code, told, _) = verify(dir.path(), &written(false).bytes);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("the run did not end: killed, or still running"), "{told}");
}

#[test]
fn each_altered_byte_is_named_by_its_record() {
    let memory = written(true);
    for at in 0..memory.bytes.len() {
        let mut bytes = memory.bytes.clone();
        bytes[at] ^= 0x10;
        let broken = Reader::new(&bytes).find_map(Result::err).unwrap();
        // The run's id is part of what the first record rests on.
        let record = memory.ends.iter().filter(|end| **end <= at).count().saturating_sub(1);
        let record = u64::try_from(record).unwrap();
        let allowed = match at {
            0..16 => broken == Broken::Header,
            16..HEADER => broken == Broken::Record(0),
            _ => broken == Broken::Record(record) || broken == Broken::Torn(record),
        };
        assert!(allowed, "byte {at}: {broken:?}, not record {record}");
    }
}

#[test]
fn the_command_names_what_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let memory = written(true);
    let (first, second) = (memory.ends[1], memory.ends[2]);
    let flipped = |at: usize| {
        let mut bytes = memory.bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    let mut without = memory.bytes.clone();
    without.drain(first..second);
    let mut longer = memory.bytes.clone();
    longer.push(0);
    for (bytes, told) in [
        (flipped(0), "its header is not one"),
        (flipped(20), "record 0 of"),
        (flipped(HEADER + 10), "record 0 of"),
        (flipped(first + 30), "record 1 of"),
        (flipped(memory.bytes.len() - 1), "record 2 of"),
        (without, "record 1 of"),
        (memory.bytes[..second - 1].to_vec(), "ends inside record 1"),
        (longer, "ends inside record 3"),
        (Vec::new(), "its header is not one"),
    ] {
        let (code, _, error) = verify(dir.path(), &bytes);
        assert_eq!(code, Some(1), "{told}");
        assert!(error.starts_with("error: ") && error.contains(told), "{told}: {error}");
    }
}

#[test]
fn show_prints_one_line_a_record_whatever_the_record_says() {
    let state = tempfile::tempdir().unwrap();
    let none = synapse(state.path(), &["audit", "show", "latest"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(err(&none).contains("there is no run to read"), "{}", err(&none));
    for (run, ended) in [("20260101-000000-ffffffff", true), ("20260101-000001-00000000", false)] {
        let dir = state.path().join("synapse/runs").join(run);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("log"), written(ended).bytes).unwrap();
    }
    let shown = out(&synapse(state.path(), &["audit", "show", "latest"]));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "the later of the runs: {shown}");
    assert!(lines[0].contains("task start") && lines[0].contains("tidy"), "{shown}");
    assert!(lines[1].contains("failed: not found [502]"), "{shown}");
    assert!(lines[1].contains("fs_read") && lines[1].contains("23:59:59.999Z"), "{shown}");
    assert!(lines[1].contains("a\\u{a}#9 forged\\u{202e}\\u{1b}[2J"), "{shown}");
    let lines = out(&synapse(state.path(), &["audit", "show", "latest", "--json"]));
    assert!(!lines.contains('\u{202e}'));
    let second: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["code"], 502);
    assert_eq!(second["text"], "a\n#9 forged\u{202e}\u{1b}[2J");
    assert_eq!(Label::SYSTEM.integrity, Integrity::System);
    assert_eq!(second["integrity"], "system");
}
