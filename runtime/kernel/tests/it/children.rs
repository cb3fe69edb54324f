//! Children and channels: what they may do, what of them is learned, how they end.

use core::sync::atomic::Ordering;

use synapse_abi::registry::Primitive;
use synapse_boundary::{Integrity, Secrecy};
use synapse_kernel::account::Account;
use synapse_kernel::record::{Kind, tag};
use synapse_kernel::verify::{Reader, Record};

use crate::crew::{Script, World, drive, script};

const GRANT: &str = r#"
version = 1
primitives = ["clock_read", "fs_read", "fs_list", "fs_write", "fs_delete", "value_read", "agent_spawn", "agent_wait", "channel_create", "channel_write", "channel_read", "channel_close", "channel_grant"]
deny = ["/data/private"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
[budget]
calls = 5000
"#;

const READ: &str = r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":9}}"#;
const DELETE: &str = r#"{"name":"fs_delete","arguments":{"path":"/data/a.md"}}"#;
const CLOCK: &str = r#"{"name":"clock_read","arguments":{}}"#;
const CHANNEL: &str = r#"{"name":"channel_create","arguments":{"kind":"messages"}}"#;

fn spawn(package: &str, task: &str, grant: &str) -> String {
    format!(
        r#"{{"name":"agent_spawn","arguments":{{"package":"{package}","task":"{task}","grant":{grant}}}}}"#
    )
}

fn wait(agent: u64, timeout: u64) -> String {
    format!(r#"{{"name":"agent_wait","arguments":{{"agent":{agent},"timeout":{timeout}}}}}"#)
}

fn write(channel: u64, text: &str) -> String {
    format!(r#"{{"name":"channel_write","arguments":{{"channel":{channel},"content":"{text}"}}}}"#)
}

fn read(channel: u64, max: u64, timeout: u64) -> String {
    format!(
        r#"{{"name":"channel_read","arguments":{{"channel":{channel},"max":{max},"timeout":{timeout}}}}}"#
    )
}

fn give(channel: u64, to: u64) -> String {
    format!(r#"{{"name":"channel_grant","arguments":{{"channel":{channel},"to":{to}}}}}"#)
}

fn close(handle: u64) -> String {
    format!(r#"{{"name":"channel_close","arguments":{{"channel":{handle}}}}}"#)
}

const NONE: &str = r#"{"primitives":["clock_read"]}"#;
const FILES: &str = r#"{"primitives":["fs_read"],"paths":[{"path":"/data/**","rights":["read"]}]}"#;
/// The same, and what a child says of children and channels.
const ALL: &str = concat!(
    r#"{"primitives":["fs_read","fs_delete","agent_spawn","agent_wait","channel_create","channel_read","channel_write","#,
    r#""channel_close","value_read"],"paths":[{"path":"/data/**","rights":["read","delete"]}],"budget":{"calls":100}}"#
);
/// Of a child that waits.
const WAITS: &str = r#"{"primitives":["channel_create","channel_read"],"budget":{"calls":9}}"#;

fn parent(says: &[String]) -> Script {
    Script { name: "parent", says: says.to_vec(), answer: Some("done".into()) }
}

fn records(log: &[u8]) -> Vec<Record<'_>> {
    Reader::new(log).collect::<Result<_, _>>().unwrap()
}

fn text(record: &Record<'_>) -> String {
    String::from_utf8(record.field(tag::TEXT).unwrap().to_vec()).unwrap()
}

#[test]
fn a_child_reports_and_all_of_it_is_in_the_log() {
    let world = World::new(GRANT, &[script("child", &[CLOCK], "it is late")]);
    let says = [spawn("child", "look", NONE), wait(1, 1000), wait(1, 0), wait(2, 0)];
    let (answer, heard, log) = world.run(&parent(&says));
    assert_eq!(answer.unwrap(), "done");
    let [_, spawned, report, again, other] = &heard[..] else { unreachable!("{heard:?}") };
    assert_eq!(spawned, &Ok("1".into()));
    assert_eq!((report, again), (&Ok("it is late".into()), report));
    assert_eq!(other, &Err(202));
    let input = world.player.heard.by("child").remove(0).unwrap();
    assert!(
        input.contains(
            r#"[{"from":"package","text":"be brief"},{"from":"parent","text":"look"}],"handles":[]"#
        ),
        "{input}"
    );
    assert!(input.ends_with(r#""budget":{"calls":1000}}"#), "{input}");
    let records = records(&log);
    let of = |task| records.iter().filter(move |record| record.task == task).collect::<Vec<_>>();
    let kinds: Vec<Kind> = of(1).iter().map(|record| record.kind).collect();
    assert_eq!(
        kinds,
        [Kind::TaskStart, Kind::TurnStart, Kind::Decision, Kind::Outcome, Kind::TurnEnd]
    );
    let start = of(1)[0];
    assert_eq!(start.cause, Some(2), "its decision");
    assert_eq!(start.integrity, Integrity::User.number());
    assert_eq!(
        text(start),
        r#"{"grant":{"primitives":["clock_read"],"paths":[],"hosts":[],"tools":[]},"package":"child","parent":0,"task":"look"}"#
    );
    assert_eq!(records.last().unwrap().kind, Kind::RunEnd);
}

#[test]
fn i9_a_request_for_more_is_refused_before_anything_is_started() {
    let world = World::new(GRANT, &[script("child", &[], "")]);
    let wide = r#"{"primitives":["fs_read"],"paths":[{"path":"/else/**","rights":["read"]}]}"#;
    let dear = r#"{"primitives":["fs_read"],"budget":{"calls":5000}}"#;
    let says = [
        spawn("child", "x", r#"{"primitives":["net_http_get"]}"#),
        spawn("child", "x", wide),
        spawn("child", "x", dear),
        spawn("child", "x", "{}"),
        spawn("nobody", "x", NONE),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    assert_eq!(heard[1..], [Err(401), Err(401), Err(407), Err(407), Err(502)]);
    assert!(records(&log).iter().all(|record| record.task == 0));
    // The sentence for people names what is too much.
    let refused = records(&log).iter().find(|record| record.code == 401).unwrap().sequence;
    let told = |record| Account::find(&log, record).unwrap().lines().join("\n");
    assert!(told(refused).contains("beyond   net_http_get\n"), "{}", told(refused));
    assert!(told(refused + 1).contains("beyond   /else/**\n"), "{}", told(refused + 1));
    assert!(told(refused).contains("a child was to have what its parent does not"));
    assert_eq!(world.places.load(Ordering::Relaxed), 1000);
}

#[test]
fn i9_a_childs_calls_come_out_of_its_parents() {
    let world = World::new(&GRANT.replace("5000", "100"), &[script("child", &[CLOCK; 9], "")]);
    let says = [
        spawn("child", "x", r#"{"primitives":["clock_read"],"budget":{"calls":90}}"#),
        spawn("child", "x", r#"{"primitives":["clock_read"],"budget":{"calls":9}}"#),
        spawn("child", "x", r#"{"primitives":["clock_read"],"budget":{"calls":5}}"#),
        wait(2, 100),
        CLOCK.into(),
        CLOCK.into(),
    ];
    let (_, heard, _) = world.run(&parent(&says));
    let now = heard[5].clone();
    assert!(now.is_ok());
    // 100, less the call and 90; 8 are left after the second.
    assert_eq!(heard[1..5], [Ok("1".into()), Err(407), Ok("2".into()), Ok(String::new())]);
    assert_eq!(heard[6], Err(203));
    let child = world.player.heard.by("child");
    assert_eq!(child.iter().filter(|came| **came == Err(203)).count(), 4, "of its nine");
}

#[test]
fn i9_a_package_does_not_grow_by_who_starts_it() {
    let mut world = World::new(GRANT, &[script("child", &[READ, CLOCK], "")]);
    world.shop.bounds.insert("child", "version = 1\nprimitives = [\"clock_read\"]\n");
    let request = r#"{"primitives":["fs_read","clock_read"],"paths":[{"path":"/data/**","rights":["read"]}]}"#;
    let _ = world.run(&parent(&[spawn("child", "x", request), wait(1, 100)]));
    let child = world.player.heard.by("child");
    assert_eq!(child[1], Err(201));
    assert!(child[2].is_ok());
}

#[test]
fn i6_a_report_carries_what_its_child_has_read() {
    let scripts = [script("reader", &[READ], "alpha"), script("clean", &[CLOCK], "clean")];
    let world = World::new(GRANT, &scripts);
    let says = [
        spawn("clean", "x", FILES),
        wait(1, 100),
        spawn("reader", "x", FILES),
        wait(2, 100).replace("}}", r#"},"hold":true}"#),
        DELETE.replace("a.md", "b.md"),
        wait(2, 100),
        DELETE.into(),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    // Held, the report raises nothing: there is no such file. Released, it does.
    assert_eq!(heard[4..], [Ok("1".into()), Err(502), Ok("alpha".into()), Err(301)]);
    let records = records(&log);
    let waited = records.iter().rfind(|record| record.kind == Kind::Outcome).unwrap();
    assert_eq!(waited.integrity, Integrity::Ingested.number());
    assert_eq!(waited.secrecy, Secrecy::PROMPT.join(Secrecy::FILES).bits());
}

#[test]
fn i6_a_child_of_a_tainted_parent_begins_tainted_and_its_task_is_held() {
    let value = r#"{"name":"value_read","arguments":{"value":{"$held":1},"offset":0,"length":9}}"#;
    let world = World::new(GRANT, &[script("child", &[DELETE, value], "")]);
    let says = [READ.into(), spawn("child", "x", ALL), wait(1, 100)];
    let _ = world.run(&parent(&says));
    let child = world.player.heard.by("child");
    let input = child[0].as_ref().unwrap();
    assert!(input.contains(r#"{"from":"parent","value":1,"record":"#), "{input}");
    assert_eq!(child[1..], [Err(301), Ok("x".into())]);
}

#[test]
fn i6_a_held_task_taints_the_child_and_not_the_parent() {
    let world = World::new(GRANT, &[script("child", &[DELETE], "")]);
    let held = READ.replace("}}", r#"},"hold":true}"#);
    let task = spawn("child", "x", ALL)
        .replace(r#""task":"x""#, r#""task":{"parts":["do ",{"$held":1}]}"#);
    let says = [held, task, wait(1, 0), DELETE.replace("a.md", "b.md")];
    let (_, heard, _) = world.run(&parent(&says));
    // The child did not end yet: what it had read by then is in the code.
    assert_eq!(heard[3..], [Err(514), Err(301)]);
    assert_eq!(heard[2], Ok("1".into()));
}

#[test]
fn i13_a_child_cites_nothing() {
    let warrant = r#"{"warrant":"fs_delete","arguments":{"path":"/data/a.md"},"uses":1}"#;
    let world = World::new(GRANT, &[script("child", &[warrant], "")]);
    let _ = world.run(&parent(&[spawn("child", "delete /data/a.md", ALL), wait(1, 100)]));
    assert_eq!(world.player.heard.by("child")[1], Err(306));
}

#[test]
fn a_broken_child_leaks_nothing_but_its_mark() {
    let broken = |name, says: &[&str]| Script { answer: None, ..script(name, says, "") };
    let world = World::new(GRANT, &[broken("clean", &[]), broken("reader", &[READ])]);
    let says = [
        spawn("clean", "x", FILES),
        wait(1, 100),
        DELETE.replace("a.md", "b.md"),
        spawn("reader", "x", FILES),
        wait(2, 100),
        DELETE.into(),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    // The first delete finds nothing, which it learns of the folder: it is no refusal.
    assert_eq!(heard[2..4], [Err(515), Err(502)]);
    assert_eq!(heard[5..], [Err(515), Err(301)]);
    let records = records(&log);
    let ends = records.iter().filter(|record| record.kind == Kind::TurnEnd && record.task > 0);
    assert!(ends.map(|record| record.code).eq([u16::MAX; 2]));
}

#[test]
fn i10_a_channel_moves_to_a_child_and_its_messages_keep_their_labels() {
    let scripts = [script("child", &[&read(1, 9, 1000), READ, &write(1, "found")], "")];
    let world = World::new(GRANT, &scripts);
    let says = [
        CHANNEL.into(),
        spawn("child", "x", ALL),
        give(2, 3),
        write(2, "x"),
        write(1, "look"),
        read(1, 9, 1000),
        DELETE.into(),
    ];
    let (_, heard, _) = world.run(&parent(&says));
    assert_eq!(heard[1], Ok(r#"{"a":1,"b":2}"#.into()));
    assert_eq!(heard[2..6], [Ok("3".into()), Ok(String::new()), Err(202), Ok(String::new())]);
    assert_eq!(heard[6..], [Ok("found".into()), Err(301)]);
    let child = world.player.heard.by("child");
    assert!(child[0].as_ref().unwrap().contains(r#""handles":[{"n":1,"kind":"channel"}]"#));
    assert_eq!(child[1], Ok("look".into()));
}

#[test]
fn a_channel_is_bounded_and_waits_end() {
    let mut says = vec![CHANNEL.to_owned(), read(1, 9, 50), read(1, 9, 0)];
    says.extend(vec![write(1, "x"); 65]);
    says.extend([read(2, 0, 0), read(2, 1, 0), close(1), close(1), write(2, "x")]);
    let (_, heard, _) = World::new(GRANT, &[]).run(&parent(&says));
    assert_eq!(heard[2..4], [Err(514), Err(514)]);
    assert_eq!(heard.iter().filter(|came| **came == Ok(String::new())).count(), 65);
    assert_eq!(
        heard[68..],
        [Err(514), Err(506), Ok("x".into()), Ok(String::new()), Err(202), Err(515)]
    );
}

#[test]
fn closing_a_child_ends_it_and_its_children_where_they_stand() {
    let grandchild = script("grandchild", &[CHANNEL, &read(1, 9, 1 << 40)], "");
    let child = script("child", &[&spawn("grandchild", "x", WAITS), &wait(1, 1 << 40)], "");
    let world = World::new(GRANT, &[child, grandchild]);
    let says = [spawn("child", "x", ALL), wait(1, 500), close(1), wait(1, 0), CLOCK.into()];
    let (_, heard, log) = world.run(&parent(&says));
    assert_eq!(heard[2..5], [Err(514), Ok(String::new()), Err(202)]);
    let records = records(&log);
    let ends = records.iter().filter(|record| record.kind == Kind::TurnEnd && record.task > 0);
    assert_eq!(ends.count(), 2, "each end is in the log");
    let closed = records
        .iter()
        .position(|record| record.primitive == Some(Primitive::ChannelClose))
        .unwrap();
    assert!(
        records[closed..].iter().all(|record| record.task == 0 || record.kind == Kind::TurnEnd)
    );
    assert_eq!(world.player.alive.load(Ordering::Relaxed), 0);
    assert_eq!(world.places.load(Ordering::Relaxed), 1000);
}

#[test]
fn the_end_of_a_run_ends_all_its_children() {
    let more = spawn("child", "x", WAITS);
    let child = script("child", &[CHANNEL, &more, &more, &read(1, 9, 1 << 40)], "");
    let world = World::new(GRANT, &[child]);
    let (_, _, log) = world.run(&parent(&[spawn("child", "x", ALL), wait(1, 500)]));
    let records = records(&log);
    let of = |kind| records.iter().filter(|record| record.kind == kind).count();
    assert_eq!(of(Kind::TurnStart), of(Kind::TurnEnd));
    assert_eq!(records.last().unwrap().kind, Kind::RunEnd);
    assert_eq!(world.player.alive.load(Ordering::Relaxed), 0);
    assert_eq!(world.places.load(Ordering::Relaxed), 1000);
}

#[test]
fn a_cancelled_run_waits_for_nobody() {
    let world = World::new(GRANT, &[]);
    world.cancel.store(true, Ordering::Relaxed);
    let says = [CHANNEL.into(), read(1, 9, 1 << 40)];
    let (answer, heard, _) = world.run(&parent(&says));
    assert!(answer.is_err());
    assert_eq!(heard.len(), 2, "ended after its first call");
}

#[test]
fn as_many_children_as_there_are_places_and_no_deeper_than_four() {
    let world = World::new(GRANT, &[script("child", &[], "")]);
    world.places.store(2, Ordering::Relaxed);
    let one = spawn("child", "x", NONE);
    let (_, heard, _) = world.run(&parent(&[one.clone(), one.clone(), one.clone(), close(1), one]));
    assert_eq!(
        heard[1..],
        [Ok("1".into()), Ok("2".into()), Err(524), Ok(String::new()), Ok("3".into())]
    );
    let deeper = |calls: u64| {
        format!(r#"{{"primitives":["agent_spawn","agent_wait"],"budget":{{"calls":{calls}}}}}"#)
    };
    let says: Vec<String> =
        (1..6).map(|level| spawn("child", "x", &deeper(1000 >> level))).collect();
    let mut child = script("child", &[], "");
    child.says = says.into_iter().chain([wait(1, 1 << 30)]).collect();
    let world = World::new(GRANT, &[child]);
    let _ = world.run(&parent(&[spawn("child", "x", &deeper(1000)), wait(1, 1 << 30)]));
    let fours = world.player.heard.by("child");
    assert!(fours.contains(&Err(524)), "the fifth level is one too many: {fours:?}");
}

#[test]
fn a_thousand_children_and_channels_leave_nothing_behind() {
    let world = World::new(&GRANT.replace("5000", "9000"), &[script("child", &[CLOCK], "x")]);
    let mut says = Vec::new();
    let budget = r#"{"primitives":["clock_read"],"budget":{"calls":1}}"#;
    for round in 0..1000_u64 {
        let first = round * 3 + 1;
        says.extend([CHANNEL.into(), spawn("child", "x", budget), give(first, first + 2)]);
        says.extend([wait(first + 2, 1000), close(first + 1), close(first + 2)]);
    }
    let (answer, heard, _) = world.run(&parent(&says));
    assert_eq!(answer.unwrap(), "done");
    assert!(heard.iter().all(Result::is_ok), "{:?}", heard.iter().find(|came| came.is_err()));
    assert_eq!(heard.last(), Some(&Ok(String::new())));
    assert_eq!(world.player.alive.load(Ordering::Relaxed), 0);
    assert_eq!(world.places.load(Ordering::Relaxed), 1000);
}

#[test]
fn handles_live_on_in_the_next_turn_and_its_children_too() {
    let world = World::new(GRANT, &[script("child", &[&read(1, 9, 1 << 30)], "heard")]);
    let first = parent(&[CHANNEL.into(), spawn("child", "x", ALL), give(2, 3), wait(3, 200)]);
    let second = Script { name: "second", ..parent(&[write(1, "go"), wait(3, 1000)]) };
    let (mut run, _) = drive(world.begin().turn(&world.player, &first));
    run.next("go on");
    let (run, answer) = drive(run.turn(&world.player, &second));
    drop(run.end(answer));
    let heard = world.player.heard.by("second");
    assert!(
        heard[0]
            .as_ref()
            .unwrap()
            .contains(r#""handles":[{"n":1,"kind":"channel"},{"n":3,"kind":"agent"}]"#)
    );
    assert_eq!(heard[2], Ok("heard".into()));
}
