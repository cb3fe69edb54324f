//! What an answer may not be, and what it costs: its time and its bytes

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::thread;
use std::time::Instant;

use rustls::RootCertStore;
use synapse_reply::frame::Form;
use synapse_reply::limits::{FETCH, REPLY};

use super::world::{Act, Names, PUBLIC, Server, World, get};

const GRANT: &str = r#"
version = 1
primitives = ["net_http_get", "net_http_post", "value_read"]
[[hosts]]
host = "good.example"
ports = ["1-65535"]
methods = ["GET", "POST"]
"#;

fn world() -> World {
    World::new(GRANT, Names::of(&[("good.example", &[&[PUBLIC]])]), RootCertStore::empty())
}

fn say(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Say(bytes.into())
}

/// A good beginning with these headers, and a body.
fn headed(headers: &str, body: &str) -> Act {
    say(format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}"))
}

const HEAD: &str = "HTTP/1.1 200 OK\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const CLOSED: u32 = 515;
const LATE: u32 = 514;
const LARGE: u32 = 528;
const BAD: u32 = 534;

fn hostile() -> Vec<(&'static str, Act, u32)> {
    let forever = |first: &str, again: &[u8], pause| Act::Repeat(first.into(), again.into(), pause);
    let at_once = Duration::ZERO;
    let slow = Duration::from_millis(200);
    let silent = Duration::from_mins(1);
    vec![
        ("two lengths", headed("Content-Length: 2\r\nContent-Length: 3\r\n", "abc"), BAD),
        ("one length, twice", headed("Content-Length: 2\r\nContent-Length: 2\r\n", "ab"), BAD),
        ("two lengths in a list", headed("Content-Length: 2, 3\r\n", "abc"), BAD),
        ("a length with a sign", headed("Content-Length: +2\r\n", "ab"), BAD),
        ("a negative length", headed("Content-Length: -2\r\n", "ab"), BAD),
        (
            "a length of 30 digits",
            headed(&format!("Content-Length: {}\r\n", "9".repeat(30)), ""),
            BAD,
        ),
        (
            "chunked, and a length",
            headed("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "2\r\nab\r\n0\r\n\r\n"),
            BAD,
        ),
        (
            "a length, and chunked",
            headed("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "2\r\nab\r\n0\r\n\r\n"),
            BAD,
        ),
        ("packed, then chunked", headed("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), BAD),
        ("another encoding", headed("Transfer-Encoding: identity\r\n", "ab"), BAD),
        ("nearly chunked", headed("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), BAD),
        (
            "chunked twice",
            headed("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            BAD,
        ),
        ("a chunk without a size", say(format!("{CHUNKED}x\r\nab\r\n0\r\n\r\n")), BAD),
        ("a chunk too large to count", say(format!("{CHUNKED}{}\r\nab", "f".repeat(17))), BAD),
        ("a chunk longer than its size", say(format!("{CHUNKED}1\r\nabc\r\n0\r\n\r\n")), BAD),
        ("a header of 1 MB", headed(&format!("X: {}\r\n", "a".repeat(1 << 20)), "ab"), BAD),
        ("10,000 headers", headed(&"X: a\r\n".repeat(10_000), "ab"), BAD),
        ("headers without end", forever("HTTP/1.1 200 OK\r\n", b"X: a\r\n", at_once), BAD),
        ("a body without end", forever(HEAD, &[b'a'; 4096], at_once), LARGE),
        ("chunks without end", forever(CHUNKED, &b"4\r\nabcd\r\n".repeat(1 << 12), at_once), LARGE),
        ("a length of 1 TB", headed("Content-Length: 1000000000000\r\n", "ab"), LARGE),
        ("a chunk of 1 TB", forever(CHUNKED, b"e8d4a51000\r\nabcd", at_once), LARGE),
        ("a body of a byte now and then", forever(HEAD, b"a", slow), LATE),
        ("a head of a byte now and then", forever("HTTP/1.1 200 OK\r\nX: ", b"a", slow), LATE),
        ("silence", forever("", b"", silent), LATE),
        (
            "half a body, and silence",
            forever("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", b"", silent),
            LATE,
        ),
        ("promises without end", forever("", b"HTTP/1.1 100 Continue\r\n\r\n", slow), LATE),
        ("no head", say("hello\r\n"), BAD),
        ("another protocol", say("SSH-2.0-OpenSSH_9.9\r\n"), BAD),
        ("another version", say("HTTP/2.0 200 OK\r\n\r\n"), BAD),
        ("a status of letters", say("HTTP/1.1 abc OK\r\n\r\n"), BAD),
        ("a status of two digits", say("HTTP/1.1 20 OK\r\n\r\n"), BAD),
        ("a status below all", say("HTTP/1.1 099 OK\r\n\r\n"), BAD),
        (
            "another protocol, agreed",
            headed("", "").and(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            ),
            BAD,
        ),
        ("a zero byte in a value", headed("X: a\0b\r\n", "ab"), BAD),
        ("a zero byte in a name", headed("X\0: a\r\n", "ab"), BAD),
        ("a return in a value", headed("X: a\rb\r\n", "ab"), BAD),
        ("a folded header", headed("X: a\r\n b\r\n", "ab"), BAD),
        ("a name with a space", headed("X : a\r\n", "ab"), BAD),
        ("a header without a name", headed(": a\r\n", "ab"), BAD),
        ("no byte", say(""), CLOSED),
        ("half a head", say("HTTP/1.1 200 OK\r\nX: a"), CLOSED),
        ("half a body", headed("Content-Length: 4\r\n", "ab"), CLOSED),
        ("half a chunk", say(format!("{CHUNKED}4\r\nab")), CLOSED),
        ("chunks without the last", say(format!("{CHUNKED}2\r\nab\r\n")), CLOSED),
    ]
}

impl Act {
    /// What it says instead.
    fn and(self, bytes: &str) -> Self {
        match self {
            Self::Say(_) => say(bytes),
            Self::Repeat(..) => self,
        }
    }
}

#[test]
fn a_hostile_answer_costs_its_limit_and_is_a_fault() {
    let rows = hostile();
    assert!(rows.len() >= 40);
    // Side by side, so that the slow ones are waited for together.
    let rows = rows.into_iter().map(|(what, act, code)| {
        thread::spawn(move || {
            let server = Server::start(act);
            let mut world = world();
            let began = Instant::now();
            let answer = world.ask(&get(&format!("http://good.example:{}/", server.port)));
            assert_eq!(answer.map(|(_, reply)| reply), Err(code), "{what}");
            assert!(began.elapsed() < Duration::from_secs(30), "{what}");
            assert_eq!((world.looked_up(), server.connections()), (1, 1), "{what}");
            assert_eq!(server.requests().len(), 1, "{what}");
        })
    });
    for row in rows.collect::<Vec<_>>() {
        row.join().unwrap();
    }
}

/// The status line, and the rest, of an answer that is taken as it is.
fn taken(act: Act) -> (String, Vec<u8>, World, Server) {
    let (server, mut world) = (Server::start(act), world());
    let (form, reply) = world.ask(&get(&format!("http://good.example:{}/", server.port))).unwrap();
    assert_eq!(form, Form::Bytes);
    let end = reply.iter().position(|byte| *byte == b'\n').unwrap();
    let line = String::from_utf8(reply[..end].to_vec()).unwrap();
    (line, reply[end + 1..].to_vec(), world, server)
}

#[test]
fn what_an_answer_asks_for_is_told_and_not_done() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\n\
                 Set-Cookie: a=b\r\nContent-Length: 0\r\n\r\n";
    let (line, body, mut world, server) = taken(say(moved));
    assert_eq!(
        line,
        "{\"status\":302,\"headers\":{\"content-length\":[\"0\"],\
         \"location\":[\"http://169.254.169.254/latest/\"],\"set-cookie\":[\"a=b\"]}}"
    );
    assert_eq!(body, b"");
    // The cookie is not sent back, and the place not asked for.
    world.ask(&get(&format!("http://good.example:{}/again", server.port))).unwrap();
    assert_eq!(server.requests().len(), 2);
    assert!(server.requests().iter().all(|request| !request.contains("cookie")));
    assert!(world.connected().iter().all(|address| address.to_string() == PUBLIC));
}

#[test]
fn what_is_packed_stays_packed() {
    // 1 MiB of zeros under gzip begins like this; nobody looks.
    let bomb = [
        &b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"[..],
        &[0x1f, 0x8b, 8, 0],
    ];
    let (line, body, ..) = taken(say(bomb.concat()));
    assert!(line.contains("\"content-encoding\":[\"gzip\"]"));
    assert_eq!(body, [0x1f, 0x8b, 8, 0]);
}

#[test]
fn what_follows_the_body_is_not_read() {
    let more = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\r\nevil";
    assert_eq!(taken(say(more)).1, b"ab");
    assert_eq!(
        taken(
            headed("Content-Length: 2\r\n", "abcd")
                .and("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nab")
        )
        .1,
        b""
    );
    let trailed = format!("{CHUNKED}2\r\nab\r\n0\r\nLocation: /evil\r\n\r\n");
    let (line, body, ..) = taken(say(trailed));
    assert!(!line.contains("location"));
    assert_eq!(body, b"ab");
}

#[test]
fn a_code_of_the_world_raises_the_mark_like_a_reply() {
    for act in [headed("Content-Length: 2\r\n", "ab"), say("HTTP/1.1 404 No\r\n\r\n"), say("")] {
        let (server, mut world) = (Server::start(act), world());
        let url = format!("http://good.example:{}/", server.port);
        let _ = world.ask(&get(&url));
        let post = format!(
            r#"{{"name":"net_http_post","arguments":{{"url":"{url}","headers":{{}},"content":"x"}}}}"#
        );
        assert_eq!(world.ask(&post).unwrap_err(), 301);
        assert_eq!(server.connections(), 1);
    }
    // A gate's own word does not.
    let (server, mut world) = (Server::start(headed("Content-Length: 2\r\n", "ab")), world());
    assert_eq!(world.ask(&get("http://evil.example/")).unwrap_err(), 401);
    let post = format!(
        r#"{{"name":"net_http_post","arguments":{{"url":"http://good.example:{}/","headers":{{"content-type":"text/plain"}},"content":"\u00e9\n"}}}}"#,
        server.port
    );
    let post = post.replace("\\u00e9", "\u{e9}");
    world.ask(&post).unwrap();
    assert_eq!(server.requests().len(), 1);
    assert!(
        server.requests()[0]
            .ends_with("content-type: text/plain\r\ncontent-length: 3\r\n\r\n\u{e9}\n")
    );
}

#[test]
fn under_hold_more_fits_and_a_fault_is_inside() {
    let sized =
        |length: usize| headed(&format!("Content-Length: {length}\r\n"), &"a".repeat(length));
    let held = |server: &Server, world: &mut World| {
        let sentence = get(&format!("http://good.example:{}/", server.port));
        let sentence = format!("{},\"hold\":true}}", sentence.strip_suffix('}').unwrap());
        world.ask(&sentence).unwrap()
    };
    let read = |world: &mut World, offset: usize| {
        world.ask(&format!(
            r#"{{"name":"value_read","arguments":{{"value":{{"$held":1}},"offset":{offset},"length":10}}}}"#
        ))
    };
    let (server, mut unheld) = (Server::start(sized(REPLY)), world());
    let url = format!("http://good.example:{}/", server.port);
    assert_eq!(unheld.ask(&get(&url)).unwrap_err(), LARGE);

    let mut large = world();
    assert_eq!(held(&server, &mut large).0, Form::Held);
    assert_eq!(read(&mut large, REPLY).unwrap().1, b"aaaaaaaaaa");

    let server = Server::start(sized(FETCH + 1));
    let mut too_large = world();
    assert_eq!(held(&server, &mut too_large).0, Form::Held, "no code, no length");
    assert_eq!(read(&mut too_large, 0).unwrap_err(), LARGE);
}

#[test]
fn a_run_that_is_ended_waits_for_nobody() {
    let server = Server::start(Act::Repeat(Vec::new(), Vec::new(), Duration::from_mins(1)));
    let mut world = world();
    let cancel = world.cancel.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        cancel.store(true, Ordering::Relaxed);
    });
    let url = format!("http://good.example:{}/", server.port);
    assert_eq!(world.ask(&get(&url)).unwrap_err(), 518);
}

#[test]
fn a_port_where_nobody_listens_is_closed() {
    assert_eq!(world().ask(&get("http://good.example:1/")).unwrap_err(), CLOSED);
}
