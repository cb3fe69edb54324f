//! What the human is asked at the console: an agent's question, and an undo.

use synapse_machine::Model;

use crate::guests::saying;
use crate::{PATIENCE, ask, boot, power_off};

const GRANT: &str = r#"
version = 1
primitives = ["console_ask", "fs_list", "fs_write", "fs_move", "fs_delete"]

[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
"#;
const ASK: &str = r#"{"name":"console_ask","arguments":{"question":"Which one?"}}"#;
const LIST: &str = r#"{"name":"fs_list","arguments":{"path":"/data","after":"","limit":10}}"#;

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn an_agent_asks_and_one_line_typed_after_that_answers() {
    let (asking, reading) = (saying(&[ASK], 1), saying(&[LIST, ASK], 1));
    let files: [(&str, &[u8]); 4] = [
        ("packages/asking/asking.wasm", &asking),
        ("packages/asking/grant.toml", GRANT.as_bytes()),
        ("packages/reading/reading.wasm", &reading),
        ("packages/reading/grant.toml", GRANT.as_bytes()),
    ];
    let mut machine = boot(Model::Q35, 16, &files);
    machine.enter("run asking").unwrap();
    let said = machine.expect("your answer, in one line: ", PATIENCE).unwrap();
    assert!(said.contains("asking asks (record 2); it has read nothing that others wrote:"));
    assert!(said.contains("│ Which one?"), "{said}");
    // A paste answers nothing.
    machine.press(b"one\rtwo\r").unwrap();
    machine.expect("more than one line is no answer", PATIENCE).unwrap();
    machine.expect("your answer, in one line: ", PATIENCE).unwrap();
    machine.enter("the third").unwrap();
    machine.expect("#2 console_ask  ok 9 bytes", PATIENCE).unwrap();
    machine.expect("synapse> ", PATIENCE).unwrap();

    // From behind the prompt too, and what was begun before is not in the answer.
    machine.enter("run reading &").unwrap();
    machine.press(b"half a li").unwrap();
    let said = machine.expect("your answer, in one line: ", PATIENCE).unwrap();
    assert!(said.contains("it has read what others wrote, and they may be the ones who ask:"));
    machine.enter("yes").unwrap();
    machine.expect("console_ask  ok 3 bytes", PATIENCE).unwrap();
    machine.expect("run 2 ended", PATIENCE).unwrap();
    assert!(ask(&mut machine, "runs").contains("run 2  reading  ended"));

    // The end of a run is the end of its question.
    machine.enter("run asking").unwrap();
    machine.expect("your answer, in one line: ", PATIENCE).unwrap();
    machine.press(b"\x03").unwrap();
    machine.expect("console_ask  failed: cancelled", PATIENCE).unwrap();
    machine.expect("synapse> ", PATIENCE).unwrap();
    assert!(ask(&mut machine, "help").contains("poweroff"));
    power_off(machine);
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn an_undo_asks_and_puts_back() {
    let busy = saying(
        &[
            r#"{"name":"fs_write","arguments":{"path":"/data/old.md","content":"new","mode":"replace"}}"#,
            r#"{"name":"fs_write","arguments":{"path":"/data/deep/made.md","content":"m","mode":"create"}}"#,
            r#"{"name":"fs_move","arguments":{"from":"/data/moved.md","to":"/data/deep/there.md"}}"#,
            r#"{"name":"fs_delete","arguments":{"path":"/data/gone.md"}}"#,
        ],
        1,
    );
    let files: [(&str, &[u8]); 5] = [
        ("packages/busy/busy.wasm", &busy),
        ("packages/busy/grant.toml", GRANT.as_bytes()),
        ("files/data/old.md", b"old"),
        ("files/data/moved.md", b"moved"),
        ("files/data/gone.md", b"gone"),
    ];
    let mut machine = boot(Model::Microvm, 16, &files);
    assert!(ask(&mut machine, "undo").contains("error: nothing was run yet"));
    let before = ask(&mut machine, "ls /data");
    let said = ask(&mut machine, "run busy");
    assert!(said.contains("fs_delete /data/gone.md  ok"), "{said}");
    let after = ask(&mut machine, "ls /data");
    assert!(!after.contains("gone.md") && after.contains("deep/"), "{after}");

    for answer in ["", "no", "y"] {
        machine.enter("undo").unwrap();
        let said = machine.expect("put back 4 changes of run 1? Type yes: ", PATIENCE).unwrap();
        assert!(said.contains("#8 /data/gone.md comes back"), "{said}");
        assert!(said.contains("/data/deep/there.md goes back to /data/moved.md"), "{said}");
        assert!(ask(&mut machine, answer).contains("nothing was put back"));
    }
    assert_eq!(ask(&mut machine, "ls /data"), after);
    machine.enter("undo 1").unwrap();
    machine.expect("Type yes: ", PATIENCE).unwrap();
    let said = ask(&mut machine, "yes");
    assert!(said.contains("4 changes put back"), "{said}");
    assert_eq!(ask(&mut machine, "ls /data"), before);
    assert!(ask(&mut machine, "cat /data/old.md").contains("old"));
    assert!(ask(&mut machine, "undo").contains("nothing is left to put back of run 1"));
    power_off(machine);
}
