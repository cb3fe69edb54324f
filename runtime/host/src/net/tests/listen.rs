//! Listeners on this machine's real sockets: where there is one, and what a peer costs

use core::net::{Ipv4Addr, Ipv6Addr};
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use synapse_reply::frame::Form;

use super::world::World;

const GRANT: &str = r#"
version = 1
primitives = ["net_listen", "net_accept", "channel_write", "channel_read", "channel_close"]
deny_hosts = ["127.0.0.2"]
[[hosts]]
host = "127.0.0.1"
ports = ["1024-65535"]
methods = ["LISTEN"]
[[hosts]]
host = "[::]"
ports = ["1024-65535"]
methods = ["LISTEN"]
[[hosts]]
host = "0.0.0.0"
ports = ["1024-65535"]
methods = ["LISTEN"]
[[hosts]]
host = "203.0.113.5"
ports = ["1024-65535"]
methods = ["LISTEN"]
"#;

fn listen(host: &str, port: u16) -> String {
    format!(r#"{{"name":"net_listen","arguments":{{"host":"{host}","port":{port}}}}}"#)
}

fn accept(listener: u64, timeout: u64) -> String {
    format!(r#"{{"name":"net_accept","arguments":{{"listener":{listener},"timeout":{timeout}}}}}"#)
}

fn write(channel: u64, text: &str) -> String {
    format!(r#"{{"name":"channel_write","arguments":{{"channel":{channel},"content":"{text}"}}}}"#)
}

fn read(channel: u64, timeout: u64) -> String {
    format!(
        r#"{{"name":"channel_read","arguments":{{"channel":{channel},"max":1048576,"timeout":{timeout}}}}}"#
    )
}

fn close(handle: u64) -> String {
    format!(r#"{{"name":"channel_close","arguments":{{"channel":{handle}}}}}"#)
}

/// A port at which nothing listens.
fn free() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn handle(number: u64) -> (Form, Vec<u8>) {
    (Form::Handle, number.to_le_bytes().to_vec())
}

const DONE: Result<(Form, Vec<u8>), u32> = Ok((Form::Nothing, Vec::new()));

#[test]
fn a_listener_is_where_its_address_is_and_ends_with_its_handle() {
    let mut world = World::real(GRANT);
    let (port, taken) = (free(), TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let other = taken.local_addr().unwrap().port();
    assert_eq!(world.ask(&listen("127.0.0.1", port)), Ok(handle(1)));
    assert_eq!(world.ask(&accept(1, 20)), Err(514));
    drop(world);
    let mut world = World::real(GRANT);
    assert_eq!(world.ask(&listen("127.0.0.1", port)), Ok(handle(1)), "the end of a task closed it");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    assert_eq!(world.ask(&close(1)), DONE);
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    let codes = |place: (&str, u16)| World::real(GRANT).ask(&listen(place.0, place.1));
    assert_eq!(codes(("127.0.0.1", other)), Err(503));
    assert_eq!(codes(("203.0.113.5", port)), Err(502), "this machine has no such address");
    assert_eq!(codes(("127.0.0.3", port)), Err(401));
    assert_eq!(codes(("127.0.0.2", port)), Err(402));
    assert_eq!(codes(("[::1]", port)), Err(401), "all addresses are not each of them");
}

#[test]
fn all_of_ipv6_is_not_all_of_ipv4() {
    let mut world = World::real(GRANT);
    let port = free();
    match world.ask(&listen("[::]", port)) {
        // A machine without IPv6.
        Err(502 | 513) => return,
        opened => assert_eq!(opened, Ok(handle(1))),
    }
    assert!(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_ok());
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

#[test]
fn who_comes_by_a_denied_address_is_sent_away() {
    let mut world = World::real(GRANT);
    let port = free();
    assert_eq!(world.ask(&listen("0.0.0.0", port)), Ok(handle(1)));
    let mut denied = TcpStream::connect(("127.0.0.2", port)).unwrap();
    let _other = TcpStream::connect(("127.0.0.3", port)).unwrap();
    assert_eq!(world.ask(&accept(1, 5000)), Ok(handle(2)));
    assert_eq!(denied.read(&mut [0; 9]).unwrap_or_default(), 0, "without a word");
    assert_eq!(world.ask(&accept(1, 20)), Err(514));
}

#[test]
fn a_half_closed_peer_is_answered_and_a_gone_one_is_closed() {
    let mut world = World::real(GRANT);
    let port = free();
    assert_eq!(world.ask(&listen("127.0.0.1", port)), Ok(handle(1)));
    let mut peer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    peer.write_all(b"hello").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(world.ask(&accept(1, 5000)), Ok(handle(2)));
    assert_eq!(world.ask(&read(2, 5000)), Ok((Form::Bytes, b"hello".to_vec())));
    assert_eq!(world.ask(&read(2, 5000)), Err(515), "nothing will come");
    assert_eq!(world.ask(&write(2, "bye")), DONE);
    assert_eq!(world.ask(&close(2)), DONE);
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "bye");
    let gone = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    assert_eq!(world.ask(&accept(1, 5000)), Ok(handle(3)));
    drop(gone);
    assert_eq!(world.ask(&read(3, 5000)), Err(515));
}

#[test]
fn a_silent_peer_costs_its_time_and_a_flooding_one_a_buffer() {
    let mut world = World::real(GRANT);
    let port = free();
    assert_eq!(world.ask(&listen("127.0.0.1", port)), Ok(handle(1)));
    let flood = thread::spawn(move || {
        let mut peer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let mut sent = 0_usize;
        while let Ok(more) = peer.write(&[7; 1 << 14]) {
            sent += more;
        }
        sent
    });
    assert_eq!(world.ask(&accept(1, 5000)), Ok(handle(2)));
    let (_, came) = world.ask(&read(2, 5000)).unwrap();
    assert!(!came.is_empty() && came.len() <= 1 << 16, "one piece");
    let _silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    assert_eq!(world.ask(&accept(1, 5000)), Ok(handle(3)));
    let begun = Instant::now();
    assert_eq!(world.ask(&read(3, 50)), Err(514));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(world.ask(&close(2)), DONE);
    let sent = flood.join().unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were taken of one that never ends");
}

#[test]
fn a_cancelled_run_waits_for_no_peer() {
    let mut world = World::real(GRANT);
    assert_eq!(world.ask(&listen("127.0.0.1", free())), Ok(handle(1)));
    let cancel = world.cancel.clone();
    let begun = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        cancel.store(true, Ordering::Relaxed);
    });
    assert_eq!(world.ask(&accept(1, 600_000)), Err(518));
    assert!(begun.elapsed() < Duration::from_secs(10));
}
