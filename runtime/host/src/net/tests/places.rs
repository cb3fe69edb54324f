//! Where a request may not go: at gate 1, at gate 4, or at the name's addresses

use synapse_boundary::Secrecy;

use super::world::{Act, Names, PUBLIC, Server, World, get, with_headers};
use rustls::RootCertStore;

/// What the rows may use: one name, what lies below another, and no address.
const GRANT: &str = r#"
version = 1
primitives = ["net_http_get", "net_http_post"]
deny_hosts = ["no.below.example", "198.41.0.4"]
[[hosts]]
host = "good.example"
ports = ["1-65535"]
paths = ["/", "/v1"]
[[hosts]]
host = "*.below.example"
ports = ["1-65535"]
paths = ["/v1"]
[[hosts]]
host = "0.0.0.0/0"
ports = ["1-65535"]
"#;

/// Spellings of an address or a place that gate 1 does not read; `PORT` is that of
/// a listener on all of them.
const SPELLINGS: &[&str] = &[
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0x7f.0.0.1:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://017700000001:PORT/",
    "http://127.1:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[0:0:0:0:0:0:0:1]:PORT/",
    "http://[::1%25lo]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://LOCALHOST:PORT/",
    "http://good.example@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT#.good.example/",
    "http://good.example:PORT@127.0.0.1:PORT/",
    "http://good.example:PORT/../v1",
    "http://good.example:PORT/%2E%2E/v1",
    "http://good.example:PORT/%2e",
    "http://good.example:PORT/a b",
    "http://good.example:PORT/\u{e9}",
    "http://good.example:PORT/a#b",
    "http://good.example:080/",
    "http://good.example:0/",
    "http://good.example:65536/",
    "http://good.example:80/",
    "http://good.example",
    "http:///good.example:PORT/",
    "//good.example:PORT/",
    "ftp://good.example:PORT/",
    "file:///etc/passwd",
    "http://good..example:PORT/",
    "http://\u{24db}ocalhost:PORT/",
];

/// Addresses that are not globally reachable, as URLs write them.
const SPECIAL: &[&str] = &[
    "127.0.0.1", "127.8.9.10", "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "169.254.169.254",
    "172.16.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[::1]", "[::]",
    "[::7f00:1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]",
    "[100::1]", "[2001::1]", "[2001:db8::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]",
    "[3fff::1]", "[5f00::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fec0::1]",
    "[ff02::1]",
];

const ANSWERS: &[&[&str]] = &[&[PUBLIC]];

fn ok() -> Act {
    Act::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into())
}

/// A world where every name of the rows is a public address.
fn world() -> World {
    let names = ["good.example", "a.below.example", "no.below.example", "localhost"];
    let names = names.map(|name| (name, ANSWERS));
    World::new(GRANT, Names::of(&names), RootCertStore::empty())
}

/// Sees to it that a sentence is refused, and that nobody is told anything.
fn refused(sentence: &str, code: u32, server: &Server) {
    let mut world = world();
    assert_eq!(world.ask(sentence).unwrap_err(), code, "{sentence}");
    assert_eq!((world.looked_up(), world.connected()), (0, Vec::new()), "{sentence}");
    assert_eq!(server.connections(), 0, "{sentence}");
}

#[test]
fn the_rows_reach_their_server_where_nothing_is_wrong() {
    let server = Server::start(ok());
    let mut world = world();
    let url = format!("http://good.example:{}/v1?a=b", server.port);
    let (_, reply) = world.ask(&with_headers(&url, r#"{"X-A":"b"}"#)).unwrap();
    assert_eq!(reply, b"{\"status\":200,\"headers\":{\"content-length\":[\"2\"]}}\nok");
    assert_eq!((world.looked_up(), server.connections()), (1, 1));
    let request = format!(
        "GET /v1?a=b HTTP/1.1\r\nhost: good.example:{}\r\nconnection: close\r\nx-a: b\r\n\r\n",
        server.port
    );
    assert_eq!(server.requests(), [request]);
}

#[test]
fn gate_1_reads_one_spelling_of_a_place() {
    let server = Server::start(ok());
    for url in SPELLINGS {
        refused(&get(&url.replace("PORT", &server.port.to_string())), 104, &server);
    }
    refused(&get("http://good.example/\\u0000"), 104, &server);
    refused(&get("http://good.example/\u{1}"), 101, &server);
    refused(&get(&format!("http://good.example/{}", "a".repeat(2048))), 102, &server);
}

#[test]
fn gate_4_stops_every_address_that_is_not_globally_reachable() {
    let server = Server::start(ok());
    for host in SPECIAL {
        refused(&get(&format!("http://{host}:{}/", server.port)), 401, &server);
    }
}

#[test]
fn gate_4_stops_other_names_paths_methods_and_what_is_denied() {
    let server = Server::start(ok());
    for (place, code) in [
        ("localhost:PORT/", 401),
        ("evil.example:PORT/", 401),
        ("xgood.example:PORT/", 401),
        ("good.example.evil.example:PORT/", 401),
        ("below.example:PORT/v1", 401),
        ("a.below.example:PORT/", 401),
        ("a.below.example:PORT/v10", 401),
        ("a.below.example:PORT/v1/..%2Fadmin", 401),
        ("a.below.example:PORT/v1/..;/admin", 401),
        ("no.below.example:PORT/v1", 402),
        ("198.41.0.4:PORT/", 402),
    ] {
        let url = format!("http://{}", place.replace("PORT", &server.port.to_string()));
        refused(&get(&url), code, &server);
    }
    let url = format!("http://good.example:{}/", server.port);
    refused(
        &format!(
            r#"{{"name":"net_http_post","arguments":{{"url":"{url}","headers":{{}},"content":"x"}}}}"#
        ),
        401,
        &server,
    );
}

#[test]
fn gate_4_stops_headers_that_move_a_request_or_its_end() {
    let server = Server::start(ok());
    let url = format!("http://good.example:{}/", server.port);
    for headers in [
        r#"{"Host":"evil.example"}"#,
        r#"{"Content-Length":"0"}"#,
        r#"{"Transfer-Encoding":"chunked"}"#,
        r#"{"TE":"trailers"}"#,
        r#"{"Connection":"upgrade"}"#,
        r#"{"Upgrade":"h2c"}"#,
        r#"{"Expect":"100-continue"}"#,
        r#"{"Proxy-Authorization":"Basic eDp5"}"#,
        r#"{"X-HTTP-Method-Override":"DELETE"}"#,
        r#"{"X_Http_Method_Override":"DELETE"}"#,
        r#"{"X-Original-URL":"/admin"}"#,
        r#"{"X-Forwarded-Host":"evil.example"}"#,
        r#"{"a":"b\r\nHost: evil.example"}"#,
        r#"{"a\r\nHost":"evil.example"}"#,
        r#"{"a:b":"c"}"#,
        r#"{"a":"\u0000"}"#,
        r#"{"a":"b","A":"c"}"#,
        r#"{"a":["b","c"]}"#,
    ] {
        refused(&with_headers(&url, headers), 407, &server);
    }
}

#[test]
fn a_name_goes_nowhere_that_its_address_may_not() {
    let server = Server::start(ok());
    let url = format!("http://good.example:{}/", server.port);
    let mut answers: Vec<Vec<&str>> =
        SPECIAL.iter().map(|host| vec![host.trim_matches(['[', ']'])]).collect();
    // A public one beside it makes nothing better, in either order.
    answers.extend([vec![PUBLIC, "127.0.0.1"], vec!["::1", PUBLIC], vec![PUBLIC, "198.41.0.4"]]);
    answers.push(vec!["::ffff:198.41.0.4"]);
    for answer in answers {
        let names = Names::of(&[("good.example", &[&answer])]);
        let mut world = World::new(GRANT, names, RootCertStore::empty());
        assert_eq!(world.ask(&get(&url)).unwrap_err(), 532, "{answer:?}");
        assert_eq!((world.looked_up(), world.connected()), (1, Vec::new()), "{answer:?}");
        assert_eq!(server.connections(), 0, "{answer:?}");
    }
    let mut world = World::new(GRANT, Names::default(), RootCertStore::empty());
    assert_eq!(world.ask(&get(&url)).unwrap_err(), 502, "a name without an address");
}

#[test]
fn a_name_that_changes_its_mind_is_asked_once_a_call() {
    let server = Server::start(ok());
    let url = format!("http://good.example:{}/", server.port);
    let names = Names::of(&[("good.example", &[&[PUBLIC], &["127.0.0.1"]])]);
    let mut world = World::new(GRANT, names, RootCertStore::empty());
    assert!(world.ask(&get(&url)).is_ok());
    assert_eq!(world.looked_up(), 1);
    assert_eq!(world.ask(&get(&url)).unwrap_err(), 532);
    assert_eq!(world.connected(), [PUBLIC.parse::<core::net::IpAddr>().unwrap()]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_address_must_be_cleared_for_what_its_name_is_and_leaves_its_compartment() {
    let server = Server::start(ok());
    let grant = r#"
version = 1
primitives = ["net_http_get"]
[[hosts]]
host = "good.example"
ports = ["1-65535"]
clear = ["prompt", "files", "net:10.0.0.0/8"]
[[hosts]]
host = "10.0.0.0/8"
ports = ["1-65535"]
"#;
    let url = format!("http://good.example:{}/", server.port);
    let names = Names::of(&[("good.example", &[&["10.1.2.3"]])]);
    let world = |mark| World::with(grant, names.clone(), RootCertStore::empty(), mark);
    let own = Secrecy::bit(Secrecy::NAMED).unwrap();

    let mut cleared = world(Secrecy::PROMPT);
    assert!(cleared.ask(&get(&url)).is_ok());
    assert_eq!(cleared.task.mark().secrecy, Secrecy::PROMPT.join(own));
    assert_eq!(server.connections(), 1);

    let mut uncleared = world(Secrecy::FILES);
    assert_eq!(uncleared.ask(&get(&url)).unwrap_err(), 532);
    assert_eq!(uncleared.connected(), Vec::<core::net::IpAddr>::new());
    assert_eq!(uncleared.task.mark().secrecy, Secrecy::FILES);

    // What came from an address tells it nothing new; a failure there is its word too.
    let mut again = world(own);
    assert_eq!(again.ask(&get("http://good.example:1/")).unwrap_err(), 515);
    assert_eq!(again.task.mark().secrecy, own);
    assert_eq!(again.task.mark().integrity, synapse_boundary::Integrity::Ingested);
}

#[test]
fn this_machines_own_resolver_is_not_believed_either() {
    let server = Server::start(ok());
    let url = format!("http://localhost:{}/", server.port);
    let host = |host: &str| format!("[[hosts]]\nhost = \"{host}\"\nports = [\"1-65535\"]\n");
    let grant = format!("version = 1\nprimitives = [\"net_http_get\"]\n{}", host("localhost"));
    assert_eq!(World::real(&grant).ask(&get(&url)).unwrap_err(), 532);
    assert_eq!(server.connections(), 0);
    let grant = format!("{grant}{}{}", host("127.0.0.0/8"), host("[::1]"));
    let (_, reply) = World::real(&grant).ask(&get(&url)).unwrap();
    assert!(reply.ends_with(b"\nok"));
    assert_eq!(server.connections(), 1);
}
