//! A question at the machine's own console.

use core::time::Duration;
use std::thread;

use synapse_machine::Model;

use crate::guests::saying;
use crate::{PATIENCE, ask, boot, power_off};

const GRANT: &str = "version = 1\nprimitives = [\"fs_read\", \"fs_delete\", \"fs_write\"]\n\
    [[paths]]\npath = \"/data/**\"\nrights = [\"list\", \"read\", \"write\", \"delete\"]\n";
const READ: &str = r#"{"name":"fs_read","arguments":{"path":"/data/a","offset":0,"length":9}}"#;
const PROMPT: &str = "yes and Enter allows this, once; anything else is a no: ";

fn delete(name: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"/data/{name}"}}}}"#)
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn a_human_at_the_console_says_yes_or_no() {
    let write = r#"{"name":"fs_write","arguments":{"path":"/data/SOUL.md","content":"be kind","mode":"create"}}"#;
    let (a, b, c) = (delete("a"), delete("b"), delete("c"));
    let agent = saying(&[READ, &a, &b, write, &c], 1);
    let files: [(&str, &[u8]); 5] = [
        ("packages/cleaner/cleaner.wasm", &agent),
        ("packages/cleaner/grant.toml", GRANT.as_bytes()),
        ("files/data/a", b"a"),
        ("files/data/b", b"b"),
        ("files/data/c", b"c"),
    ];
    let mut machine = boot(Model::Microvm, 16, &files);
    // Nobody is asked unless it was said so.
    assert!(ask(&mut machine, "run cleaner").contains("destructive after reading [301]"));
    assert!(ask(&mut machine, "confirm always").contains("say `confirm ask`"));
    ask(&mut machine, "confirm ask");

    machine.enter("run cleaner").unwrap();
    machine.expect("cleaner asks for a yes:", PATIENCE).unwrap();
    // Within half a second after the question, so it is thrown away.
    machine.enter("yes").unwrap();
    let said = machine.expect(PROMPT, PATIENCE).unwrap();
    assert!(
        said.contains("│ /data/a\r\n") && said.contains("there is a file of 1 bytes now"),
        "{said}"
    );
    thread::sleep(Duration::from_millis(300));
    machine.enter("yes").unwrap();
    let said = machine.expect("allowed once", PATIENCE).unwrap();
    assert!(!said.contains("not allowed"), "{said}");
    machine.expect(PROMPT, PATIENCE).unwrap();
    machine.enter("no").unwrap();
    machine.expect("declined [309]", PATIENCE).unwrap();
    machine.expect(PROMPT, PATIENCE).unwrap();
    machine.enter("yes").unwrap();
    machine.expect("allowed once", PATIENCE).unwrap();
    machine.expect(PROMPT, PATIENCE).unwrap();
    // Ctrl-C ends the run.
    machine.press(b"\x03").unwrap();
    machine.expect("run 2 ended", PATIENCE).unwrap();
    machine.expect("synapse> ", PATIENCE).unwrap();

    let listed = ask(&mut machine, "ls /data");
    assert!(
        !listed.contains(" a\r\n") && listed.contains(" b\r\n") && listed.contains(" c\r\n"),
        "{listed}"
    );
    assert!(listed.contains(" SOUL.md\r\n"), "{listed}");
    let shown = ask(&mut machine, "audit show 2");
    assert!(shown.contains("yes (at the machine's console)"), "{shown}");
    assert!(ask(&mut machine, "audit verify 2").contains(" records, chain "));
    power_off(machine);
}
