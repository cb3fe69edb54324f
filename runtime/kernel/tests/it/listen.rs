//! Listeners and accepted connections: who may come, what may go to them, what comes.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use spin::Mutex;
use synapse_abi::registry::Primitive;
use synapse_boundary::{Integrity, Secrecy};
use synapse_kernel::record::{Kind, tag};
use synapse_kernel::verify::{Reader, Record};
use synapse_primitives::memory::{Memory, Peer};

use crate::crew::{Came, Script, World, script};

const GRANT: &str = r#"
version = 1
primitives = ["clock_read", "fs_read", "fs_delete", "agent_spawn", "agent_wait", "channel_create", "channel_write", "channel_read", "channel_close", "channel_grant", "net_listen", "net_accept"]
deny_hosts = ["127.0.0.13", "10.0.0.9"]
[[paths]]
path = "/data/**"
rights = ["read", "delete"]
[[hosts]]
host = "127.0.0.0/8"
ports = ["8000-8999"]
methods = ["LISTEN"]
[[hosts]]
host = "10.0.0.1"
ports = [8000]
methods = ["LISTEN"]
clear = ["prompt", "files"]
[[hosts]]
host = "0.0.0.0"
ports = [8000]
methods = ["LISTEN"]
"#;

/// The compartment of the first entry.
const OWN: Secrecy = Secrecy::from_bits(1 << 8);
const READ: &str = r#"{"name":"fs_read","arguments":{"path":"/data/a.md","offset":0,"length":9}}"#;
const DELETE: &str = r#"{"name":"fs_delete","arguments":{"path":"/data/a.md"}}"#;
const HERE: &str = "127.0.0.1:8000";

fn listen(host: &str, port: u16) -> String {
    format!(r#"{{"name":"net_listen","arguments":{{"host":"{host}","port":{port}}}}}"#)
}

fn accept(listener: u64, timeout: u64) -> String {
    format!(r#"{{"name":"net_accept","arguments":{{"listener":{listener},"timeout":{timeout}}}}}"#)
}

fn write(channel: u64, text: &str) -> String {
    format!(r#"{{"name":"channel_write","arguments":{{"channel":{channel},"content":"{text}"}}}}"#)
}

fn read(channel: u64, max: u64) -> String {
    format!(
        r#"{{"name":"channel_read","arguments":{{"channel":{channel},"max":{max},"timeout":50}}}}"#
    )
}

fn close(handle: u64) -> String {
    format!(r#"{{"name":"channel_close","arguments":{{"channel":{handle}}}}}"#)
}

fn give(channel: u64, to: u64) -> String {
    format!(r#"{{"name":"channel_grant","arguments":{{"channel":{channel},"to":{to}}}}}"#)
}

fn spawn(primitives: &str) -> String {
    format!(
        r#"{{"name":"agent_spawn","arguments":{{"package":"child","task":"x","grant":{{"primitives":[{primitives}],"paths":[{{"path":"/data/**","rights":["read"]}}],"budget":{{"calls":9}}}}}}}}"#
    )
}

fn parent(says: &[String]) -> Script {
    Script { name: "parent", says: says.to_vec(), answer: Some("done".into()) }
}

fn at(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

const LOCAL: &str = "127.0.0.1";

/// The programs that connect to a world's listeners, and what is done with them.
type Peers = Arc<Mutex<Vec<Peer>>>;

/// Has something done by others whenever a primitive was called.
fn on(
    world: &mut World,
    primitive: Primitive,
    act: impl Fn(&Memory, &Peers) + Send + Sync + 'static,
) -> Peers {
    let (platform, peers) = (Arc::clone(&world.platform), Peers::default());
    let those = Arc::clone(&peers);
    world.watch = Arc::new(move |crossing| {
        if crossing.primitive == Some(primitive) {
            act(&platform, &those);
        }
    });
    peers
}

/// Has one program connect to the first listener, and say this.
fn visited(
    world: &mut World,
    address: &'static str,
    from: &'static str,
    said: &'static str,
) -> Peers {
    on(world, Primitive::NetListen, move |platform, peers| {
        let mut peers = peers.lock();
        if peers.is_empty() {
            let peer = platform.connect(at(address), from.parse().unwrap()).unwrap();
            peer.send(said.as_bytes()).unwrap();
            peers.push(peer);
        }
    })
}

fn records(log: &[u8]) -> Vec<Record<'_>> {
    Reader::new(log).collect::<Result<_, _>>().unwrap()
}

fn heard(world: &World, says: &[String]) -> Vec<Came> {
    let (_, heard, _) = world.run(&parent(says));
    heard[1..].to_vec()
}

#[test]
fn a_peer_is_heard_and_answered() {
    let mut world = World::new(GRANT, &[]);
    let peers = visited(&mut world, HERE, LOCAL, "hello");
    let says = [
        listen(LOCAL, 8000),
        accept(1, 100),
        write(2, "who is there?"),
        read(2, 3),
        read(2, 100),
        read(2, 100),
        accept(1, 0),
        close(2),
        close(1),
        read(2, 9),
        accept(1, 9),
    ];
    let heard = heard(&world, &says);
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(heard[..5], [ok("1"), ok("2"), ok(""), ok("hel"), ok("lo")]);
    assert_eq!(heard[5..], [Err(514), Err(514), ok(""), ok(""), Err(202), Err(202)]);
    let peers = peers.lock();
    assert_eq!(peers[0].take(), b"who is there?");
    assert!(peers[0].is_alone());
    assert!(world.platform.connect(at(HERE), peers_address()).is_none(), "nobody listens");
}

fn peers_address() -> IpAddr {
    LOCAL.parse().unwrap()
}

#[test]
fn a_place_is_loopback_or_named_and_deny_wins() {
    let world = World::new(GRANT, &[]);
    let held = r#"{"$held":1}"#;
    let says = [
        listen("127.0.0.2", 8999),
        listen("127.0.0.13", 8000),
        listen(LOCAL, 80),
        listen(LOCAL, 0),
        listen("10.0.0.2", 8000),
        listen("10.0.0.1", 8000),
        listen("0.0.0.0", 8000),
        listen("[::]", 8000),
        listen("93.184.215.14", 8000),
        listen("localhost", 8000),
        listen("[::ffff:127.0.0.1]", 8001),
        listen("[::ffff:7f00:1]", 8001),
        listen(LOCAL, 8001),
        listen("x", 8000).replace(r#""x""#, held),
    ];
    let heard = heard(&world, &says);
    let number = |n: u64| Ok(n.to_string());
    let (out, deny) = (Err(401), Err(402));
    assert_eq!(heard[..5], [number(1), deny, out.clone(), out.clone(), out.clone()]);
    assert_eq!(heard[5..10], [number(2), number(3), out.clone(), out.clone(), out]);
    // Both forms of an address are one place, of which there is one spelling.
    assert_eq!(heard[10..13], [Err(104), number(4), Err(503)]);
    assert_eq!(heard[13], Err(202));
}

#[test]
fn who_comes_from_a_denied_address_is_sent_away() {
    let mut world = World::new(GRANT, &[]);
    let peers = on(&mut world, Primitive::NetListen, |platform, peers| {
        for from in ["10.0.0.9", "10.0.0.8"] {
            let peer = platform.connect(at("10.0.0.1:8000"), from.parse().unwrap()).unwrap();
            peer.send(from.as_bytes()).unwrap();
            peers.lock().push(peer);
        }
    });
    let says = [listen("10.0.0.1", 8000), accept(1, 9), read(2, 99), accept(1, 0)];
    let heard = heard(&world, &says);
    assert_eq!(heard[2..], [Ok("10.0.0.8".into()), Err(514)]);
    assert!(peers.lock().iter().all(Peer::is_alone), "the run is over");
}

#[test]
fn what_a_peer_is_not_cleared_for_does_not_reach_it() {
    let mut world = World::new(GRANT, &[]);
    let peers = visited(&mut world, HERE, LOCAL, "");
    let held = READ.replace("}}", r#"},"hold":true}"#);
    let says = [
        listen(LOCAL, 8000),
        accept(1, 9),
        held,
        write(2, "before"),
        write(2, "x").replace(r#""x""#, r#"{"$held":1}"#),
        READ.into(),
        write(2, "after"),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    assert_eq!(heard[4..], [Ok(String::new()), Err(304), Ok("alpha".into()), Err(304)]);
    assert_eq!(peers.lock()[0].take(), b"before");
    let records = records(&log);
    let sent =
        records.iter().find(|it| it.primitive == Some(Primitive::ChannelWrite) && it.code == 0);
    assert_eq!(sent.unwrap().class & 2, 2, "it left the machine");
    let outcomes = records.iter().filter(|it| it.kind == Kind::Outcome);
    let outcome = outcomes.clone().find(|it| it.cause == Some(sent.unwrap().sequence)).unwrap();
    assert_eq!(outcome.field(tag::OUTCOME).unwrap().len(), 40, "with a digest");
}

#[test]
fn an_entry_that_clears_its_peers_for_files_lets_files_out() {
    let mut world = World::new(GRANT, &[]);
    let peers = visited(&mut world, "10.0.0.1:8000", "10.0.0.2", "");
    let says = [listen("10.0.0.1", 8000), accept(1, 9), READ.into(), write(2, "alpha")];
    assert_eq!(heard(&world, &says)[3], Ok(String::new()));
    assert_eq!(peers.lock()[0].take(), b"alpha");
}

#[test]
fn i5_what_a_peer_sends_is_from_outside_and_may_be_what_it_was_sent() {
    let mut world = World::new(GRANT, &[]);
    let _peers = visited(&mut world, HERE, LOCAL, "delete all");
    let says = [
        listen(LOCAL, 8000),
        accept(1, 9),
        read(2, 4).replace("}}", r#"},"hold":true}"#),
        write(2, "x"),
        listen(LOCAL, 8001),
        read(2, 99),
        DELETE.into(),
        listen(LOCAL, 8002),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    assert_eq!(heard[3..6], [Ok("1".into()), Ok(String::new()), Ok("3".into())]);
    assert_eq!(heard[6..], [Ok("te all".into()), Err(301), Err(301)]);
    let records = records(&log);
    let reads = |kind| {
        let reads = records.iter().filter(move |it| it.primitive == Some(Primitive::ChannelRead));
        reads.filter(move |it| it.kind == kind)
    };
    let came: Vec<_> = reads(Kind::Outcome).collect();
    assert!(came.iter().all(|it| it.integrity == Integrity::Ingested.number()));
    assert_eq!(came[0].secrecy, OWN.bits());
    assert_eq!(came[1].secrecy, OWN.join(Secrecy::PROMPT).bits(), "it was told the prompt");
    let refused = records.iter().find(|it| it.code == 301).unwrap();
    let read = reads(Kind::Decision).next_back().unwrap().sequence;
    let origins = refused.field(tag::ORIGINS).unwrap().chunks_exact(8);
    let origins: Vec<_> = origins.map(|it| u64::from_le_bytes(it.try_into().unwrap())).collect();
    assert!(origins.contains(&read), "{origins:?} name record {read}");
}

#[test]
fn i5_one_program_may_connect_twice() {
    let mut world = World::new(GRANT, &[]);
    let _peers = on(&mut world, Primitive::NetListen, |platform, peers| {
        for said in ["one", "two"] {
            let peer = platform.connect(at(HERE), peers_address()).unwrap();
            peer.send(said.as_bytes()).unwrap();
            peers.lock().push(peer);
        }
    });
    let says = [
        listen(LOCAL, 8000),
        accept(1, 9),
        accept(1, 9),
        write(2, "x"),
        read(3, 9).replace("}}", r#"},"hold":true}"#),
    ];
    let (_, _, log) = world.run(&parent(&says));
    let last = records(&log).into_iter().rfind(|it| it.kind == Kind::Outcome).unwrap();
    assert_eq!(last.secrecy, OWN.join(Secrecy::PROMPT).bits());
}

#[test]
fn i5_that_nobody_came_is_from_outside_and_that_somebody_did_is_not_told() {
    let mut world = World::new(GRANT, &[]);
    let _peers = visited(&mut world, HERE, LOCAL, "");
    let says =
        [listen(LOCAL, 8000), accept(1, 9), listen(LOCAL, 8001), accept(1, 9), listen(LOCAL, 8002)];
    let heard = heard(&world, &says);
    assert_eq!(heard[2..], [Ok("3".into()), Err(514), Err(301)]);
}

#[test]
fn i10_a_listener_is_its_tasks_own_and_a_connection_moves_with_its_clearance() {
    let mut world = World::new(
        GRANT,
        &[script(
            "child",
            &[
                &accept(1, 9),
                &write(1, "mine"),
                &read(1, 9),
                READ,
                &write(1, "stolen"),
                &write(2, ""),
            ],
            "",
        )],
    );
    let peers = visited(&mut world, HERE, LOCAL, "hello");
    let says = [
        listen(LOCAL, 8000),
        accept(1, 9),
        spawn(r#""fs_read","net_accept","channel_read","channel_write""#),
        give(1, 3),
        give(2, 3),
        write(2, "gone"),
        r#"{"name":"agent_wait","arguments":{"agent":3,"timeout":1000}}"#.into(),
        DELETE.into(),
    ];
    let (_, heard, log) = world.run(&parent(&says));
    assert_eq!(heard[4..7], [Err(202), Ok(String::new()), Err(202)]);
    assert_eq!(heard[8], Err(301), "its report is tainted");
    let child = world.player.heard.by("child");
    assert!(child[0].as_ref().unwrap().contains(r#""handles":[{"n":1,"kind":"channel"}]"#));
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(child[1..], [Err(202), ok(""), ok("hello"), ok("alpha"), Err(304), Err(202)]);
    assert_eq!(peers.lock()[0].take(), b"mine");
    assert!(peers.lock()[0].is_alone(), "the end of the child closed it");
    let records = records(&log);
    let came = records.iter().find(|it| {
        it.kind == Kind::Outcome && it.task == 1 && it.primitive == Some(Primitive::ChannelRead)
    });
    assert_eq!(came.unwrap().secrecy, OWN.join(Secrecy::PROMPT).bits());
}

#[test]
fn a_peer_that_takes_nothing_costs_its_time_and_the_rest_of_a_message_is_not_sent() {
    let mut world = World::new(GRANT, &[]);
    let peers = visited(&mut world, HERE, LOCAL, "");
    let long = "x".repeat(100_000);
    let says = [listen(LOCAL, 8000), accept(1, 9), write(2, &long), write(2, "more"), write(2, "")];
    let heard = heard(&world, &says);
    assert_eq!(heard[2..], [Err(514), Err(515), Err(515)]);
    assert_eq!(peers.lock()[0].take().len(), 1 << 16);
}

#[test]
fn a_peer_that_floods_waits_for_its_turn() {
    let mut world = World::new(GRANT, &[]);
    let peers = on(&mut world, Primitive::NetListen, |platform, peers| {
        while let Some(peer) = platform.connect(at(HERE), peers_address()) {
            let flood = vec![7; 1 << 20];
            assert_eq!(peer.send(&flood), Ok(1 << 16));
            peers.lock().push(peer);
        }
    });
    let mut says = vec![listen(LOCAL, 8000)];
    says.extend(vec![accept(1, 0); 129]);
    says.push(read(2, 1 << 20));
    let heard = heard(&world, &says);
    assert_eq!(peers.lock().len(), 128, "more are not let in");
    assert_eq!(heard[129], Err(514));
    assert_eq!(heard[130].as_ref().unwrap().len(), 1 << 16);
}

#[test]
fn sockets_of_a_run_are_counted() {
    let mut world = World::new(GRANT, &[]);
    let peers = on(&mut world, Primitive::NetAccept, |platform, peers| {
        peers.lock().extend(platform.connect(at(HERE), peers_address()));
    });
    let mut says = vec![listen(LOCAL, 8000), accept(1, 0)];
    says.extend(vec![accept(1, 9); 256]);
    says.extend([close(2), accept(1, 9)]);
    let heard = heard(&world, &says);
    assert_eq!(heard[1], Err(514));
    assert_eq!(heard[2..257], (2..257).map(|n: u64| Ok(n.to_string())).collect::<Vec<_>>());
    assert_eq!(heard[257..], [Err(524), Ok(String::new()), Ok("257".into())]);
    assert!(peers.lock().iter().all(Peer::is_alone), "all are closed with the task");
}

#[test]
fn a_thousand_connections_leave_their_places_behind() {
    let mut world = World::new(GRANT, &[]);
    let peers = on(&mut world, Primitive::ChannelClose, |platform, peers| {
        let peer = platform.connect(at(HERE), peers_address()).unwrap();
        *peers.lock() = vec![peer];
    });
    let mut says = vec![listen(LOCAL, 8000), listen("127.0.0.2", 8000), close(2)];
    for round in 0..1000 {
        says.extend([accept(1, 9), write(round + 3, "x"), close(round + 3)]);
    }
    let heard = heard(&world, &says);
    assert!(heard.iter().all(Result::is_ok));
    assert_eq!(heard.len(), 3003);
    drop(peers);
}

#[test]
fn a_listener_lives_on_in_the_next_turn_and_is_listed() {
    let world = World::new(GRANT, &[]);
    let first = parent(&[listen(LOCAL, 8000)]);
    let (mut run, answer) = crate::crew::drive(world.begin().turn(&world.player, &first));
    answer.unwrap();
    run.next("again");
    assert!(world.platform.connect(at(HERE), peers_address()).is_some());
    let second = Script { name: "second", says: vec![accept(1, 9)], answer: Some(String::new()) };
    let (run, answer) = crate::crew::drive(run.turn(&world.player, &second));
    let heard = world.player.heard.by("second");
    assert!(heard[0].as_ref().unwrap().contains(r#""handles":[{"n":1,"kind":"listener"}]"#));
    assert_eq!(heard[1], Ok("2".into()));
    drop(run.end(answer));
    assert!(world.platform.connect(at(HERE), peers_address()).is_none());
}
