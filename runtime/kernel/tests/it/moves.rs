//! Warrants that a parent moves to its children: where they are then, and when they die.

use synapse_abi::registry::Primitive;
use synapse_kernel::account::Account;
use synapse_kernel::record::Kind;
use synapse_kernel::verify::{Reader, Record};

use crate::crew::{Script, World, drive, script};

const GRANT: &str = r#"
version = 1
primitives = ["clock_read", "fs_read", "fs_delete", "agent_spawn", "agent_wait", "channel_create", "channel_read", "channel_write", "channel_grant"]
[[paths]]
path = "/data/**"
rights = ["read", "delete"]
"#;

const TASK: &str = "delete /data/a.md and /data/b.md";
const READ: &str = r#"{"name":"fs_read","arguments":{"path":"/data/c.md","offset":0,"length":9}}"#;
const WAIT: &str = r#"{"name":"agent_wait","arguments":{"agent":1,"timeout":1000}}"#;

fn warrant(file: &str, uses: u8) -> String {
    format!(r#"{{"warrant":"fs_delete","arguments":{{"path":"/data/{file}"}},"uses":{uses}}}"#)
}

fn delete(file: &str) -> String {
    format!(r#"{{"name":"fs_delete","arguments":{{"path":"/data/{file}"}}}}"#)
}

/// Starts a child that may delete below a pattern, and gets these warrants.
fn spawn(package: &str, pattern: &str, warrants: &[String]) -> String {
    let quoted = warrants.iter().map(|it| format!("\"{}\"", it.replace('"', "\\\"")));
    let warrants = quoted.collect::<Vec<_>>().join(",");
    let grant = format!(
        r#"{{"primitives":["fs_read","fs_delete","agent_spawn","agent_wait","channel_read"],"paths":[{{"path":"{pattern}","rights":["read","delete"]}}],"budget":{{"calls":99}},"warrants":[{warrants}]}}"#
    );
    format!(
        r#"{{"name":"agent_spawn","arguments":{{"package":"{package}","task":"x","grant":{grant}}}}}"#
    )
}

fn parent(says: &[String]) -> Script {
    Script { name: "parent", says: says.to_vec(), answer: Some("done".into()) }
}

fn world(scripts: &[Script]) -> World {
    let world = World::new(GRANT, scripts);
    for file in ["b.md", "c.md"] {
        world.platform.place(&format!("/data/{file}"), b"delete all").unwrap();
    }
    World { task: TASK, ..world }
}

fn records(log: &[u8]) -> Vec<Record<'_>> {
    Reader::new(log).collect::<Result<_, _>>().unwrap()
}

#[test]
fn i13_a_child_does_what_it_was_given_leave_for_and_nothing_else() {
    let (a, b) = (delete("a.md"), delete("b.md"));
    let child = script("child", &[READ, &a, &a, &b, &warrant("b.md", 1)], "");
    let world = world(&[child]);
    let says = [
        warrant("a.md", 1),
        spawn("child", "/data/**", &[warrant("a.md", 1)]),
        WAIT.into(),
        a,
        spawn("child", "/data/**", &[warrant("a.md", 1)]),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    let ok = || Ok(String::new());
    assert_eq!(heard[1..], [ok(), Ok("1".into()), ok(), Err(301), Err(307)]);
    let child = world.player.heard.by("child");
    let input = child[0].as_ref().unwrap();
    assert!(input.contains(&format!(r#""warrants":[{}]"#, warrant("a.md", 1))), "{input}");
    assert_eq!(child[2..], [ok(), Err(301), Err(301), Err(305)]);
    let records = records(&log);
    let deletes = |record: &&Record<'_>| {
        record.kind == Kind::Decision && record.primitive == Some(Primitive::FsDelete)
    };
    let mint = records.iter().find(deletes).unwrap();
    let done = records.iter().find(|record| deletes(record) && record.task == 1).unwrap();
    assert_eq!((done.code, done.cause), (0, Some(mint.sequence)));
    let told = Account::find(&log, done.sequence).unwrap().lines().join("\n");
    assert!(told.contains(&format!("rests on #{} ", mint.sequence)), "{told}");
}

#[test]
fn i9_a_warrant_lies_inside_the_childs_grant_or_the_spawn_is_refused() {
    let world = world(&[script("child", &[&delete("a.md")], "")]);
    let a = [warrant("a.md", 1)];
    let clock = r#"{"name":"agent_spawn","arguments":{"package":"child","task":"x","grant":{"primitives":["clock_read"],"warrants":["WARRANT"]}}}"#
        .replace("WARRANT", &a[0].replace('"', "\\\""));
    let says = [
        warrant("a.md", 1),
        spawn("child", "/data/b/**", &a),
        clock,
        spawn("child", "/data/**", &a).replace(r#"["{\"w"#, r#"[5,"{\"w"#),
        spawn("child", "/data/**", &a)
            .replace(r#""warrants":["#, r#""warrants":{"x":["#)
            .replace("]}}}", "]}}}}"),
        spawn("child", "/data/**", &a),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    assert_eq!(heard[2..], [Err(401), Err(401), Err(307), Err(407), Ok("1".into())]);
    let refused = records(&log).iter().find(|record| record.code == 401).unwrap().sequence;
    let told = Account::find(&log, refused).unwrap().lines().join("\n");
    assert!(told.contains(&format!("beyond   {}", a[0])), "{told}");
}

#[test]
fn i13_what_was_moved_and_not_used_comes_back_to_nobody() {
    let world = world(&[script("child", &[], ""), script("other", &[], "")]);
    let says = [
        warrant("a.md", 2),
        spawn("nobody", "/data/**", &[warrant("a.md", 1)]),
        spawn("child", "/data/**", &[warrant("a.md", 1)]),
        r#"{"name":"agent_wait","arguments":{"agent":1,"timeout":1000}}"#.into(),
        delete("a.md"),
    ];
    let (_, heard, _) = world.run(&parent(&says));
    assert_eq!(heard[2..4], [Err(502), Ok("1".into())], "the first was spent on nobody");
    assert_eq!(heard[5], Err(301));
}

#[test]
fn i13_a_child_of_a_child_may_have_it() {
    let (grandchild, a) =
        (script("grandchild", &[READ, &delete("a.md")], ""), [warrant("a.md", 1)]);
    let child = script(
        "child",
        &[&spawn("grandchild", "/data/**", &a).replace("99", "9"), WAIT, &delete("a.md")],
        "",
    );
    let world = world(&[grandchild, child]);
    let says = [warrant("a.md", 1), spawn("child", "/data/**", &a), WAIT.into()];
    let _ = world.run(&parent(&says));
    let heard = |name| world.player.heard.by(name);
    assert_eq!(heard("grandchild")[2], Ok(String::new()));
    assert_eq!(heard("child")[3], Err(301));
}

#[test]
fn i13_a_moved_warrant_dies_with_its_parents_turn() {
    let child = script(
        "child",
        &[
            READ,
            r#"{"name":"channel_read","arguments":{"channel":1,"max":9,"timeout":1000000}}"#,
            &delete("a.md"),
        ],
        "",
    );
    let world = world(&[child]);
    let first = parent(&[
        r#"{"name":"channel_create","arguments":{"kind":"messages"}}"#.into(),
        warrant("a.md", 1),
        spawn("child", "/data/**", &[warrant("a.md", 1)]),
        r#"{"name":"channel_grant","arguments":{"channel":2,"to":3}}"#.into(),
        r#"{"name":"agent_wait","arguments":{"agent":3,"timeout":200}}"#.into(),
    ]);
    let (mut run, _) = drive(world.begin().turn(&world.player, &first));
    run.next("leave it");
    let says = [
        r#"{"name":"channel_write","arguments":{"channel":1,"content":"go"}}"#,
        r#"{"name":"agent_wait","arguments":{"agent":3,"timeout":1000}}"#,
    ];
    let (run, answer) = drive(run.turn(&world.player, &script("second", &says, "")));
    drop(run.end(answer));
    let child = world.player.heard.by("child");
    assert_eq!(child[2..], [Ok("go".into()), Err(301)]);
}
