//! Agents that start others, and wait for them.

use synapse_machine::Model;

use crate::guests::saying;
use crate::{PATIENCE, ask, boot, power_off};

const GRANT: &str = r#"
version = 1
primitives = ["console_ask", "console_write", "fs_read", "agent_spawn", "agent_wait", "channel_create", "channel_read"]

[[paths]]
path = "/data/**"
rights = ["read"]
"#;
const ASK: &str = r#"{"name":"console_ask","arguments":{"question":"Which one?"}}"#;
const READ: &str = r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":99}}"#;
const CHANNEL: &str = r#"{"name":"channel_create","arguments":{"kind":"bytes"}}"#;
const NOTHING: &str = r#"{"name":"channel_read","arguments":{"channel":1,"max":9,"timeout":300}}"#;
const SHOW: &str = r#"{"name":"console_write","arguments":{"content":{"$held":1}}}"#;

fn spawn(package: &str) -> String {
    format!(
        r#"{{"name":"agent_spawn","arguments":{{"package":"{package}","task":"x","grant":{{"primitives":["console_ask","fs_read"],"paths":[{{"path":"/data/**","rights":["read"]}}]}}}}}}"#
    )
}

fn wait(agent: u64) -> String {
    format!(
        r#"{{"name":"agent_wait","arguments":{{"agent":{agent},"timeout":60000}},"hold":true}}"#
    )
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn a_waiting_parent_is_resumed_when_its_child_has_reported() {
    let (asking, reading) = (saying(&[ASK, READ], 1), saying(&[READ], 1));
    let patient = saying(&[&spawn("asking"), &wait(1), SHOW], 1);
    let quick = saying(&[CHANNEL, NOTHING, &spawn("reading"), &wait(3), SHOW], 1);
    let files: [(&str, &[u8]); 9] = [
        ("packages/asking/asking.wasm", &asking),
        ("packages/asking/grant.toml", GRANT.as_bytes()),
        ("packages/reading/reading.wasm", &reading),
        ("packages/reading/grant.toml", GRANT.as_bytes()),
        ("packages/patient/patient.wasm", &patient),
        ("packages/patient/grant.toml", GRANT.as_bytes()),
        ("packages/quick/quick.wasm", &quick),
        ("packages/quick/grant.toml", GRANT.as_bytes()),
        ("files/data/a.md", b"found by the child"),
    ];
    let mut machine = boot(Model::Q35, 64, &files);
    // The child waits for a human, its parent for it, and the shell for neither.
    machine.enter("run patient &").unwrap();
    machine.expect("│ Which one?", PATIENCE).unwrap();
    machine.expect("your answer, in one line: ", PATIENCE).unwrap();
    machine.enter("that one").unwrap();
    machine.expect("found by the child", PATIENCE).unwrap();
    let said = machine.expect("run 1 ended", PATIENCE).unwrap();
    assert!(said.contains("console_write  ok"), "{said}");

    // More of them than there are places, one after the other.
    for _ in 0..8 {
        let said = ask(&mut machine, "run quick");
        assert!(said.contains("channel_read  failed: timed out"), "{said}");
        assert!(said.contains("found by the child"), "{said}");
    }
    power_off(machine);
}
