//! Secrets on the wire: where one arrives, where none does, and what comes back

use core::fmt::Write as _;

use rustls::RootCertStore;
use synapse_reply::frame::Form;
use synapse_secrets::{Given, Secret, Value};

use super::world::{Act, Names, PUBLIC, Server, World, get, with_headers};

const VALUE: &str = r#"s3cr%t "\+/~ ke-y_"#;
const OTHER: &str = "other-other-other";

/// A grant for two hosts, of which the first may be sent secrets.
fn grant(reads: bool) -> String {
    format!(
        r#"
version = 1
primitives = ["net_http_get", "net_http_post", "value_read"]
[[hosts]]
host = "good.example"
ports = ["1-65535"]
methods = ["GET", "POST"]
secrets = ["key", "other", "elsewhere", "unset"]
reads = {reads}
[[hosts]]
host = "bad.example"
ports = ["1-65535"]
methods = ["GET", "POST"]
secrets = ["key"]
[[hosts]]
host = "plain.example"
ports = ["1-65535"]
"#
    )
}

/// A world whose board has secrets for one port of one host.
fn world(port: u16, reads: bool) -> World {
    let secret = |name: &str, value: &str, place: &str| {
        Secret::new(name, Value::parse(value.as_bytes()).unwrap(), &[place]).unwrap()
    };
    let place = format!("http://good.example:{port}");
    let kept = vec![
        secret("key", VALUE, &place),
        secret("other", OTHER, &place),
        secret("elsewhere", "elsewhere-value", "https://good.example"),
        secret("unnamed", "unnamed-value", &place),
    ];
    let names = ["good.example", "bad.example", "plain.example"];
    let answers: &[&[&str]] = &[&[PUBLIC]];
    let names = names.map(|name| (name, answers));
    let given = Given::new(kept, |_| true);
    World::given(&grant(reads), Names::of(&names), RootCertStore::empty(), given)
}

fn say(head: &str, body: &str) -> Act {
    Act::Say(format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}").into_bytes())
}

fn text(reply: Result<(Form, Vec<u8>), u32>) -> String {
    let (form, payload) = reply.unwrap();
    assert_eq!(form, Form::Bytes);
    String::from_utf8(payload).unwrap()
}

#[test]
fn i17_a_secret_is_filled_in_where_it_is_a_whole_literal_value() {
    let server = Server::start(say("", "ok"));
    let mut world = world(server.port, true);
    let base = format!("http://good.example:{}", server.port);
    let all = with_headers(
        &format!("{base}/%7Bsecret:key%7D?a=%7Bsecret:key%7D&b=%7Bsecret:other%7D&c=1"),
        r#"{"x-key":"{secret:key}","authorization":"Bearer {secret:other}","x-plain":"secret:key"}"#,
    );
    text(world.ask(&all));
    let request = server.requests().pop().unwrap();
    let query = "a=s3cr%25t%20%22%5C%2B%2F~%20ke-y_&b=other-other-other&c=1";
    for part in [
        format!("GET /%7Bsecret:key%7D?{query} HTTP/1.1\r\n"),
        format!("\r\nx-key: {VALUE}\r\n"),
        format!("\r\nauthorization: Bearer {OTHER}\r\n"),
        "\r\nx-plain: secret:key\r\n".to_owned(),
    ] {
        assert!(request.contains(&part), "{part}\n{request}");
    }
}

#[test]
fn i17_nothing_else_is_filled_in_and_nothing_goes_elsewhere() {
    let server = Server::start(say("", r"{secret:key}"));
    let other = Server::start(say("", "ok"));
    let at = |host: &str, port: u16, rest: &str| format!("http://{host}:{port}{rest}");
    let good = |rest: &str| at("good.example", server.port, rest);
    let header = r#"{"x-key":"{secret:key}"}"#;
    let refused = [
        ("an unset one", with_headers(&good("/"), r#"{"x-key":"{secret:unset}"}"#)),
        ("one that no entry names", with_headers(&good("/"), r#"{"x-key":"{secret:unnamed}"}"#)),
        ("one for another scheme", with_headers(&good("/"), r#"{"x-key":"{secret:elsewhere}"}"#)),
        ("another port", with_headers(&at("good.example", other.port, "/"), header)),
        ("another host", with_headers(&at("bad.example", server.port, "/"), header)),
        ("a host without secrets", with_headers(&at("plain.example", server.port, "/"), header)),
        ("a part", with_headers(&good("/"), r#"{"x-key":"x{secret:key}"}"#)),
        ("two", with_headers(&good("/"), r#"{"x-key":"{secret:key}{secret:other}"}"#)),
        ("a scheme elsewhere", with_headers(&good("/"), r#"{"x-key":"Bearer {secret:key}"}"#)),
        ("a part of a query", get(&good("/?a=x%7Bsecret:key%7D"))),
        ("a key of a query", get(&good("/?%7Bsecret:key%7D=x"))),
    ];
    for (what, sentence) in refused {
        let mut world = world(server.port, true);
        assert_eq!(world.ask(&sentence).unwrap_err(), 410, "{what}");
        assert_eq!(world.looked_up(), 0, "{what}");
    }
    let mut named = world(server.port, true);
    let name = with_headers(&good("/"), r#"{"{secret:key}":"x"}"#);
    assert_eq!(named.ask(&name).unwrap_err(), 407);
    let raw = with_headers(&good("/?a={secret:key}"), "{}");
    assert_eq!(named.ask(&raw).unwrap_err(), 104, "the query has a canonical form");
    assert_eq!((server.connections(), other.connections()), (0, 0));

    // Content and a path are what they say, and no more than a line is a header.
    let mut posting = world(server.port, true);
    let post = format!(
        r#"{{"name":"net_http_post","arguments":{{"url":"{}","headers":{{}},"content":"{{secret:key}}"}},"hold":true}}"#,
        good("/%7Bsecret:key%7D")
    );
    posting.ask(&post).unwrap();
    let held = with_headers(&good("/"), r#"{"x-key":{"$held":1}}"#);
    assert_eq!(posting.ask(&held).unwrap_err(), 407);
    let request = server.requests().pop().unwrap();
    assert!(request.starts_with("POST /%7Bsecret:key%7D HTTP"), "{request}");
    assert!(request.ends_with("\r\n\r\n{secret:key}"), "{request}");
    assert!(!server.requests().concat().contains("s3cr"), "{:?}", server.requests());
}

#[test]
fn a_get_with_a_secret_is_destructive_after_reading_unless_its_entry_reads() {
    let server = Server::start(say("", "ok"));
    let url = format!("http://good.example:{}/", server.port);
    let (plain, carrying) = (get(&url), with_headers(&url, r#"{"x-key":"{secret:key}"}"#));
    let mut acting = world(server.port, false);
    text(acting.ask(&carrying));
    assert_eq!(acting.ask(&carrying).unwrap_err(), 301, "it has read by now");
    text(acting.ask(&plain));
    let mut reading = world(server.port, true);
    text(reading.ask(&carrying));
    text(reading.ask(&carrying));
    // What a place said that may be sent a secret stays with it.
    let plain = get(&format!("http://plain.example:{}/", server.port));
    assert_eq!(reading.ask(&plain).unwrap_err(), 304);
}

#[test]
fn i17_echoes_are_masked_in_heads_and_bodies_however_they_are_cut() {
    let one = |byte: u8| format!("%{byte:02X}");
    let percent: String = VALUE.bytes().map(one).collect();
    let json = VALUE.replace('\\', r"\\").replace('"', "\\\"");
    let base64 = [
        "czNjciV0ICJcKy9+IGtlLXlf",
        // Behind "a:" and behind "ab:", which end elsewhere in a group.
        "YTpzM2NyJXQgIlwrL34ga2UteV8=",
        "YWI6czNjciV0ICJcKy9-IGtlLXlf",
        "YWJjZDpzM2NyJXQgIlwrL34ga2UteV8",
    ];
    let body = [VALUE, &percent, &json].into_iter().chain(base64).collect::<Vec<_>>().join(" | ");
    let chunked = body.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "1\r\n{}\r\n", char::from(byte)).unwrap();
        text
    });
    let head = format!("Location: https://bad.example/?q={percent}\r\nX-Echo: {VALUE}\r\n");
    let whole = format!("{head}Content-Length: {}\r\n", body.len());
    let cut = format!("{head}Transfer-Encoding: chunked\r\n");
    for (head, body) in [(whole, body.clone()), (cut, format!("{chunked}0\r\n\r\n"))] {
        let server = Server::start(say(&head, &body));
        let mut world = world(server.port, true);
        let url = format!("http://good.example:{}/", server.port);
        let reply = text(world.ask(&with_headers(&url, r#"{"x-key":"{secret:key}"}"#)));
        let (line, body) = reply.split_once('\n').unwrap();
        assert!(line.contains(r#""location":["https://bad.example/?q={secret:key}"]"#), "{line}");
        assert!(line.contains(r#""x-echo":["{secret:key}"]"#), "{line}");
        assert!(!line.contains("content-length"), "it tells how long the value is: {line}");
        let parts: Vec<&str> = body.split(" | ").collect();
        assert_eq!(parts[..4], ["{secret:key}"; 4]);
        // Letters that hold bits of the value too are masked with it.
        assert_eq!(parts[4..], ["YT{secret:key}=", "YWI6{secret:key}", "YWJjZD{secret:key}"]);
        assert_eq!(world.looked_up(), 1, "no redirect is followed");
        // Whoever was told a secret may say it whenever it is asked.
        let later = text(world.ask(&get(&url)));
        assert!(later.contains("{secret:key}") && !later.contains("s3cr%t"), "{later}");
    }
}

#[test]
fn an_answer_in_which_an_echo_could_hide_is_none() {
    let wrong = [
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nx",
        "HTTP/1.1 206 P\r\nContent-Range: bytes 0-0/9\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Range: bytes 0-0/9\r\n\r\nx",
    ];
    for answer in wrong {
        let server = Server::start(Act::Say(answer.into()));
        let mut world = world(server.port, true);
        let url = format!("http://good.example:{}/", server.port);
        let carrying = with_headers(&url, r#"{"x-key":"{secret:key}"}"#);
        assert_eq!(world.ask(&carrying).unwrap_err(), 534, "{answer}");
        assert_eq!(world.ask(&get(&url)).unwrap_err(), 534, "{answer}");
    }
}
