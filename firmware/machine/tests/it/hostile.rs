//! Hostile guests: each ends its own turn, and the image goes on.

use std::fs;

use synapse_machine::{Machine, Model};

use crate::guests::{guest, saying, wrap};
use crate::librarian::NOTES_GRANT;
use crate::{PATIENCE, ask, boot, named, power_off};

/// What a hostile agent is granted: everything that it can do here, and two
/// seconds to do it in.
const GRANT: &str = r#"
version = 1
primitives = ["console_write", "fs_read", "fs_write", "fs_list", "value_read"]

[[paths]]
path = "/data/**"
rights = ["list", "read", "write"]

[budget]
calls = 100000
seconds = 2
memory = 268435456
"#;

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn hostile_guests_end_their_own_turn() {
    let read = r#"{"name":"fs_read","arguments":{"path":"/data/big","offset":0,"length":200000},"hold":true}"#;
    let parts = format!(
        r#"{{"name":"fs_write","arguments":{{"path":"/data/copy","content":{{"parts":[{}]}},"mode":"create"}}}}"#,
        [r#"{"$held":1}"#; 64].join(",")
    );
    let more = format!(
        r#"{{"name":"fs_write","arguments":{{"path":"/data/more","content":"{}","mode":"append"}}}}"#,
        "a".repeat(30_000)
    );
    let guests: [(&str, Vec<u8>, &str); 12] = [
        ("stack", guest("(func $f (call $f))", "call $f i32.const 512"), "calls nested too deeply"),
        ("memory", guest("", GROW), "asked for more memory"),
        ("endless", guest("", "(loop $l (br $l)) i32.const 512"), "computed for longer"),
        ("pointer", guest("", &asking("-8", "64", "512")), "breaks the calling convention"),
        ("length", guest("", &asking("0", "-1", "512")), "breaks the calling convention"),
        ("result", guest("", &asking("0", "1", "-4")), "breaks the calling convention"),
        ("answer", guest("", "i32.const -4"), "breaks the calling convention"),
        ("unreachable", guest("", "unreachable"), "unreachable"),
        ("log", saying(&["nonsense"], 20_000), "the log took no more records"),
        // These are refused by the door, again and again, and then give up.
        ("held", saying(&[read], 20), "gave up with its own code 529"),
        ("parts", saying(&[read, &parts], 5), "gave up with its own code 506"),
        ("files", saying(&[&more], 80), "gave up with its own code 507"),
    ];
    let grants: Vec<String> =
        guests.iter().map(|(name, ..)| format!("packages/{name}/grant.toml")).collect();
    let wasms: Vec<String> =
        guests.iter().map(|(name, ..)| format!("packages/{name}/{name}.wasm")).collect();
    let big = vec![b'x'; 200_000];
    let mut files: Vec<(&str, &[u8])> = vec![("files/data/big", &big)];
    for ((grant, wasm), (_, bytes, _)) in grants.iter().zip(&wasms).zip(&guests) {
        files.push((grant, GRANT.as_bytes()));
        files.push((wasm, bytes));
    }
    let mut machine = boot(Model::Microvm, 16, &files);
    // What the first run leaves behind for good is no leak.
    ask(&mut machine, "run unreachable");
    let before = free(&mut machine);
    for (name, _, told) in &guests {
        let said = ask(&mut machine, &format!("run {name}"));
        assert!(said.contains(told), "{name}: {said}");
        ask(&mut machine, "forget");
    }
    // The file that grew as far as it was let is still there, and so is its copy.
    let after = free(&mut machine);
    assert!(before - after < 4 * 1024, "{before} KiB were free, and then {after}");
    for (name, ..) in guests.iter().take(9) {
        ask(&mut machine, &format!("run {name}"));
        ask(&mut machine, "forget");
    }
    let last = free(&mut machine);
    assert!(after - last < 16, "{after} KiB were free, and then {last}");
    power_off(machine);
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn an_endless_agent_does_not_keep_another_from_its_work() {
    let librarian = fs::read(named("SYNAPSE_LIBRARIAN")).unwrap();
    let endless = guest("", "(loop $l (br $l)) i32.const 512");
    let files: [(&str, &[u8]); 5] = [
        ("packages/endless/endless.wasm", &endless),
        ("packages/endless/grant.toml", GRANT.as_bytes()),
        ("packages/librarian/librarian.wasm", &librarian),
        ("packages/librarian/grant.toml", NOTES_GRANT.as_bytes()),
        ("files/data/a.md", b"# A\n"),
    ];
    let mut machine = boot(Model::Q35, 64, &files);
    assert!(ask(&mut machine, "run endless &").contains("run 1 is under way"));
    let said = ask(&mut machine, "run librarian Write an index.");
    assert!(said.contains("1 files, 0 exact duplicates"), "{said}");
    assert!(ask(&mut machine, "runs").contains("run 1  endless  runs"));
    machine.expect("run 1 ended without an answer: the agent was stopped", PATIENCE).unwrap();
    // A person can end one at once, too.
    machine.enter("run endless").unwrap();
    machine.press(b"\x03").unwrap();
    machine.expect("the turn was cancelled", PATIENCE).unwrap();
    power_off(machine);
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn what_is_no_guest_is_refused_with_its_reason() {
    let good = guest("", "unreachable");
    let core = wat::parse_str("(module)").unwrap();
    let body = "(drop (i32.const 1))".repeat(2000);
    let functions = format!("(func {body})").repeat(400);
    let giant = guest(&functions, "unreachable");
    let cut = &good[..good.len() - 20];
    let mut simd = wat::parse_str(SIMD).unwrap();
    simd = wrap(simd);
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty", b"", "error: empty"),
        ("core", &core, "a core module, not a component"),
        ("cut", cut, "error: cut"),
        ("giant", &giant, TOO_HEAVY),
        ("simd", &simd, "error: simd"),
    ];
    let names: Vec<_> = cases
        .iter()
        .map(|(name, ..)| {
            (format!("packages/{name}/{name}.wasm"), format!("packages/{name}/grant.toml"))
        })
        .collect();
    let mut files: Vec<(&str, &[u8])> = Vec::new();
    for ((wasm, grant), (_, bytes, _)) in names.iter().zip(&cases) {
        files.push((wasm, bytes));
        files.push((grant, GRANT.as_bytes()));
    }
    let mut machine = boot(Model::Microvm, 16, &files);
    for (name, _, told) in cases {
        let said = ask(&mut machine, &format!("run {name}"));
        assert!(said.contains(told), "{name}: {said}");
    }
    power_off(machine);
}

/// Components that are small, and large once they are loaded.
#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn what_swells_when_it_is_loaded_ends_nothing_but_itself() {
    let many = |item: &str, count: usize| guest(&item.repeat(count), "unreachable");
    let exports: Vec<String> =
        (0..20_000).map(|n| format!("(export \"e{n}\" (func $door))")).collect();
    let targets = "0 ".repeat(60_000);
    let table = format!("(func (block (br_table {targets} (i32.const 0))))");
    let locals =
        "(func (local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64) (drop (i32.const 7)))";
    let sums = "(drop (i64.add (local.get 0) (local.get 0)))".repeat(500);
    let sums = format!("(func (param i64) {sums})");
    let guests: [(&str, Vec<u8>, &str); 9] = [
        ("sums", many(&sums, 140), LOADED),
        ("few", many("(func)", 3000), LOADED),
        ("functions", many("(func)", 100_000), TOO_HEAVY),
        ("locals", many(locals, 20_000), TOO_HEAVY),
        ("globals", many("(global i64 (i64.const 1))", 50_000), TOO_HEAVY),
        ("data", many("(data (i32.const 0) \"\")", 50_000), TOO_HEAVY),
        ("elements", many("(elem func $door)", 50_000), TOO_HEAVY),
        ("exports", guest(&exports.concat(), "unreachable"), TOO_HEAVY),
        ("targets", guest(&table, "unreachable"), LOADED),
    ];
    for (name, bytes, told) in guests {
        let wasm = format!("packages/{name}/{name}.wasm");
        let toml = format!("packages/{name}/grant.toml");
        let files: [(&str, &[u8]); 2] = [(&wasm, &bytes), (&toml, GRANT.as_bytes())];
        let mut machine = boot(Model::Microvm, 16, &files);
        let said = ask(&mut machine, &format!("run {name}"));
        assert!(said.contains(told), "{name}, {} bytes: {said}", bytes.len());
        assert!(ask(&mut machine, "help").contains(name));
        power_off(machine);
    }
}

/// As large as is let in, and what it then comes to.
const LOADED: &str = "the agent broke: it reached code that it marks as unreachable";
const TOO_HEAVY: &str = "when it is loaded, and this machine has room for";

/// KiB of memory that are free.
fn free(machine: &mut Machine) -> i64 {
    let said = ask(machine, "free");
    let number = said.lines().find_map(|line| line.strip_suffix(" KiB of memory are free"));
    number.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

/// Calls the door once with these numbers.
fn asking(at: &str, length: &str, result: &str) -> String {
    format!("(call $door (i32.const {at}) (i32.const {length}) (i32.const {result})) i32.const 512")
}

const GROW: &str = "(loop $more
    (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    unreachable";

const SIMD: &str = r#"(module
    (import "$root" "synapse-call" (func (param i32 i32 i32)))
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 16)
    (func (export "cabi_post_turn") (param i32))
    (func (export "turn") (param i32 i32) (result i32)
      (drop (i8x16.splat (i32.const 1))) i32.const 16))"#;
