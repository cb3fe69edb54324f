//! I18: the same agents in the same world leave the same log on both boards.
//!
//! The host runs them with wasmtime, compiled for this machine; the image with
//! wasmi, its own allocator and other flags of the compiler. Sentences, labels,
//! times and chains must agree in every byte, and so must what the agent saw.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use synapse_host::engine::Wasmtime;
use synapse_kernel::admit::admit;
use synapse_kernel::engine::Engine;
use synapse_kernel::grant::Grant;
use synapse_kernel::replay::Replay;
use synapse_kernel::verify::Reader;
use synapse_machine::{Model, Plan};

use crate::guests::script;
use crate::librarian::{NOTES_GRANT, notes};
use crate::{PATIENCE, named, power_off, up};

/// Programs that are generated.
const PROGRAMS: usize = 1000;
/// Sentences of each.
const SENTENCES: usize = 24;

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn i18_a_thousand_programs_leave_the_same_log_on_both_boards() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let tasks: Vec<String> = (0..PROGRAMS).map(|_| program(&mut dice)).collect();
    let files = [
        ("/data/a.md", &b"alpha\n"[..]),
        ("/data/b/c.md", "gr\u{fc}\u{df}e\n".as_bytes()),
        ("/data/b/.git/config", b"[core]\n"),
        ("/data/raw.bin", &[0, 255, 128, 10]),
    ];
    let codes = agree("script", &script(), GRANT, &tasks, &files);
    // Programs that are all refused alike would show nothing.
    assert!(codes[&0] > 10 * PROGRAMS && codes.len() > 15, "{codes:?}");
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn i18_the_librarian_leaves_the_same_log_on_both_boards() {
    let component = fs::read(named("SYNAPSE_LIBRARIAN")).unwrap();
    let notes = notes(200);
    let files: Vec<(&str, &[u8])> = notes.iter().map(|(path, bytes)| (&**path, &**bytes)).collect();
    let tasks = [
        "Write an index of the notes in /data and move duplicates aside.",
        "Index again, show the gates, then delete /data/welcome.md",
    ];
    let codes = agree("librarian", &component, NOTES_GRANT, &tasks.map(String::from), &files);
    assert!(codes[&0] > 800 && codes.contains_key(&301), "{codes:?}");
}

/// Runs every task on both boards and compares; how often each code was given.
fn agree(
    name: &str,
    component: &[u8],
    grant: &str,
    tasks: &[String],
    files: &[(&str, &[u8])],
) -> BTreeMap<u16, usize> {
    let wasm = format!("packages/{name}/{name}.wasm");
    let toml = format!("packages/{name}/grant.toml");
    let list: String = tasks.iter().flat_map(|task| [name, " ", task, "\n"]).collect();
    let placed: Vec<String> = files.iter().map(|(path, _)| format!("files{path}")).collect();
    let mut bundle: Vec<(&str, &[u8])> =
        vec![(&wasm, component), (&toml, grant.as_bytes()), ("replay", list.as_bytes())];
    bundle.extend(placed.iter().zip(files).map(|(path, (_, bytes))| (&**path, *bytes)));

    let image = Plan::new(&named("SYNAPSE_REPLAY"));
    let mut machine =
        up(&Plan { model: Model::Q35, memory: 64, bundle: crate::bundle(&bundle), ..image });
    machine.enter("replay").unwrap();
    let engine = Wasmtime::new().unwrap();
    let program = engine.load(&admit(component).unwrap()).unwrap();
    let grant = Arc::new(Grant::parse(grant).unwrap());
    let mut codes = BTreeMap::new();
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for (number, task) in (0..).zip(tasks) {
        let replay = Replay { number, task, grant: Arc::clone(&grant), files };
        let here = executor.block_on(replay.run(&engine, &program)).unwrap();
        let ended = match here.answer {
            Ok(answer) => format!("answered {}", hex(&Sha256::digest(answer))),
            Err(why) => format!("{why:?}"),
        };
        let wanted = format!("replay {number} {} {ended}\r\n", hex(&Sha256::digest(&here.log)));
        let there = machine.expect(&format!("replay {number} "), PATIENCE).unwrap();
        let rest = machine.expect("\n", PATIENCE).unwrap();
        let found = format!("replay {number} {rest}");
        assert_eq!(found, wanted, "after {there}, task {task}");
        for record in Reader::new(&here.log) {
            *codes.entry(record.unwrap().code).or_insert(0) += 1;
        }
    }
    machine.expect("synapse> ", PATIENCE).unwrap();
    power_off(machine);
    codes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

const GRANT: &str = r#"
version = 1
primitives = ["console_write", "console_ask", "clock_read", "fs_read", "fs_write", "fs_edit", "fs_list", "fs_search",
    "fs_move", "fs_delete", "value_read", "value_pick", "model_generate", "channel_create", "tool_use", "net_http_get"]
deny = ["/data/denied/**", "**/.env"]

[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]

[compartments]
b = "/data/b/**"

[budget]
calls = 22
seconds = 600
memory = 268435456
"#;

/// Numbers that look random and are the same every time (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit).unwrap()).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// A task line for the script: sentences in hex, each ended by a `z`.
fn program(dice: &mut Dice) -> String {
    let mut line = String::new();
    for _ in 0..SENTENCES {
        let mut sentence = sentence(dice).into_bytes();
        if dice.below(8) == 0 {
            let at = dice.below(sentence.len());
            sentence[at] = u8::try_from(dice.below(256)).unwrap();
        }
        line.push_str(&hex(&sentence));
        line.push('z');
    }
    line
}

fn sentence(dice: &mut Dice) -> String {
    let (path, to) = (path(dice), path(dice));
    let (content, held) = (content(dice), dice.below(6));
    let (offset, length) = (dice.below(8), dice.below(70));
    let mode = dice.one(&["create", "replace", "append"]);
    let (name, arguments) = match dice.below(18) {
        0 | 1 => ("fs_read", format!(r#""path":{path},"offset":{offset},"length":{length}"#)),
        2 | 3 => ("fs_write", format!(r#""path":{path},"content":{content},"mode":"{mode}""#)),
        4 => ("fs_list", format!(r#""path":{path},"after":"","limit":{length}"#)),
        5 | 6 => ("fs_move", format!(r#""from":{path},"to":{to}"#)),
        7 => ("fs_delete", format!(r#""path":{path}"#)),
        8 => ("console_write", format!(r#""content":{content}"#)),
        9 => ("clock_read", String::new()),
        10 => (
            "value_read",
            format!(r#""value":{{"$held":{held}}},"offset":{offset},"length":{length}"#),
        ),
        11 => ("fs_search", format!(r#""path":{path},"text":"a","offset":{offset}"#)),
        12 => ("fs_edit", format!(r#""path":{path},"old":"a","new":{content}"#)),
        13 => ("console_ask", format!(r#""question":{content}"#)),
        14 => ("channel_create", r#""kind":"bytes""#.into()),
        15 => ("net_http_get", r#""url":"https://example.org/","headers":{}"#.into()),
        16 => ("tool_use", format!(r#""tool":"mail/send","arguments":{{"n":{offset}}}"#)),
        _ => return format!(r#"{{"warrant":"fs_delete","arguments":{{"path":{to}}},"uses":1}}"#),
    };
    let suffix = if dice.below(3) == 0 { r#","hold":true"# } else { "" };
    format!(r#"{{"name":"{name}","arguments":{{{arguments}}}{suffix}}}"#)
}

fn path(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => format!(r#"{{"$held":{}}}"#, dice.below(4)),
        _ => format!(
            "\"{}\"",
            dice.one(&[
                "/data", "/data/a.md", "/data/b", "/data/b/c.md", "/data/new.md",
                "/data/b/new/deep.md", "/data/../etc/passwd", "/data/./a.md",
                "/data/b/.git/config", "/data/SOUL.md", "/data/denied/x", "/data/.ENV",
                "/data/raw.bin", "/", "/other", "relative", "/data/a:b",
            ])
        ),
    }
}

fn content(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => format!(r#"{{"$held":{}}}"#, dice.below(4)),
        1 => format!(r#"{{"parts":["x\u001f",{{"$held":{}}},"\n"]}}"#, dice.below(4)),
        2 => format!("\"{}\"", "long ".repeat(dice.below(40))),
        _ => format!("\"{}\"", dice.one(&["", "text", "/data/a.md", "gr\u{fc}n\\n"])),
    }
}
