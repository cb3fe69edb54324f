//! Secrets by the command: kept, used in a real run, and found nowhere but where they may go.

use core::net::Ipv4Addr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::guest::guest_that;
use crate::terminal::Session;
use crate::{command, err, out, synapse};

const VALUE: &str = r#"s3cr%t-\+/~"key_0"#;
const SET: [&str; 5] = ["secret", "set", "key", "--for", "https://api.example.com"];

pub(crate) fn set(state: &Path, arguments: &[&str], value: &[u8]) -> Output {
    let mut child = command(state, arguments)
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("XDG_RUNTIME_DIR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever refuses what it reads may be gone by the end.
    let _ = child.stdin.take().unwrap().write_all(value);
    child.wait_with_output().unwrap()
}

#[test]
fn a_secret_is_kept_listed_and_removed_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path();
    let none = synapse(state, &["secret", "list", "--json"]);
    assert_eq!(out(&none), "{\"key\":null,\"secrets\":[]}\n");
    let mut told = String::new();
    let done = set(state, &SET, format!("{VALUE}\n").as_bytes());
    assert!(done.status.success(), "{}", err(&done));
    assert!(err(&done).contains("in a file beside them"), "{}", err(&done));
    told.push_str(&err(&done));
    // Another value, and the places stay.
    let again = set(state, &SET[..3], VALUE.as_bytes());
    assert!(again.status.success(), "{}", err(&again));
    let places = ["secret", "set", "b", "--for", "tool:mail", "--for", "http://127.0.0.1:8080"];
    let warned = set(state, &places, VALUE.as_bytes());
    assert!(err(&warned).contains("anybody can read it"), "{}", err(&warned));
    let listed = synapse(state, &["secret", "list", "--json"]);
    let object: Value = serde_json::from_str(&out(&listed)).unwrap();
    assert_eq!(object["key"], "file");
    assert_eq!(object["secrets"][0]["name"], "b");
    assert_eq!(object["secrets"][1]["for"][0], "https://api.example.com");
    let plain = synapse(state, &["secret", "list"]);
    assert_eq!(
        out(&plain),
        "b    tool:mail, http://127.0.0.1:8080\nkey  https://api.example.com\n"
    );
    for output in [&done, &again, &warned, &listed, &plain] {
        told.push_str(&(out(output) + &err(output)));
    }
    assert!(!told.contains("s3cr"), "{told}");
    for file in ["vault", "key", "lock"] {
        let path = state.join("synapse/secrets").join(file);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
    assert!(synapse(state, &["secret", "remove", "b"]).status.success());
    let gone = synapse(state, &["secret", "remove", "b"]);
    assert_eq!((gone.status.code(), out(&gone)), (Some(1), String::new()));
    assert!(err(&gone).contains("synapse secret list"), "{}", err(&gone));
}

#[test]
fn what_is_no_secret_is_refused_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path();
    let long = "x".repeat(5000);
    for (value, says) in [
        (&b""[..], "the value is empty"),
        (b"\n", "the value is empty"),
        (b"short", "fewer than 8 bytes"),
        (long.as_bytes(), "more than 4096 bytes"),
        (b"12345678\r\nx-evil: 1", "a line end or another control character"),
        (b"12345678\n\n", "a line end or another control character"),
        (b"1234\x005678", "a line end or another control character"),
        (b" 12345678", "begins or ends with a space"),
        ("p\u{e4}sswort".as_bytes(), "not ASCII"),
        (b"12345678\xff", "not ASCII"),
    ] {
        let refused = set(state, &SET, value);
        let told = err(&refused);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(says) && told.lines().count() >= 2, "{says}: {told}");
    }
    for (arguments, says) in [
        (&["secret", "set", "key"][..], "--for"),
        (&["secret", "set", "a}b", "--for", "tool:a"], "the name is none"),
        (&["secret", "set", "key", "--for", "https://*.example.com"], "exact places only"),
        (&["secret", "set", "key", "--for", "https://a/path"], "exact places only"),
    ] {
        let refused = set(state, arguments, VALUE.as_bytes());
        assert_eq!(refused.status.code(), Some(1));
        assert!(err(&refused).contains(says), "{}", err(&refused));
    }
    let on_the_line = set(state, &["secret", "set", "key", "hunter2-hunter2"], b"");
    assert_eq!(on_the_line.status.code(), Some(2), "a value is no argument");
    assert!(!state.join("synapse/secrets/vault").exists());
}

#[test]
fn what_is_typed_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path();
    let mut session = Session::start(state, &SET);
    session.expect("which is not shown: ");
    session.type_in("wrong\x15s3cr%t-12X\x7f345\r");
    let (code, screen) = session.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("is kept, for https://api.example.com"), "{screen}");
    assert!(!screen.contains("s3cr") && !screen.contains("345"), "{screen}");
    let mut session = Session::start(state, &SET);
    session.expect("which is not shown: ");
    session.type_in("s3cr%t-99\x03");
    let (code, screen) = session.end();
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains("nothing was kept"), "{screen}");
}

/// What a value may look like, but for what masks it.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let percent = |upper: bool| -> String {
        let one = |byte| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
        value.bytes().map(one).collect()
    };
    let encoded = value.replace('%', "%25").replace('"', "%22").replace('\\', "%5C");
    let json = value.replace('\\', r"\\").replace('"', "\\\"");
    let mut forms = vec![value.to_owned(), percent(true), percent(false), json, encoded];
    // The letters that the value alone decides, at each alignment.
    for shift in 0..3 {
        let text = base64(&[&vec![0; shift], value.as_bytes()].concat());
        let decided = (shift * 8).div_ceil(6)..(shift + value.len()) * 8 / 6;
        forms.push(text.get(decided).unwrap().to_owned());
    }
    forms.into_iter().map(String::into_bytes).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let letter = |six: &[u8]| {
        let number = (0..6).fold(0, |sum, at| sum << 1 | six.get(at).copied().unwrap_or_default());
        char::from(LETTERS[usize::from(number)])
    };
    bits.chunks(6).map(letter).collect()
}

/// A server that keeps what it was sent, and says it back in every form.
fn echo() -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let kept = Arc::<Mutex<Vec<u8>>>::default();
    let heard = Arc::clone(&kept);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut piece = [0; 1024];
                let got = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..got]);
                if got == 0 {
                    break;
                }
            }
            heard.lock().unwrap().extend_from_slice(&request);
            let text = String::from_utf8_lossy(&request).into_owned();
            let json = text.replace('\\', r"\\").replace('"', "\\\"");
            let one = |byte: u8| format!("%{byte:02x}");
            let percent: String = text.bytes().map(one).collect();
            let mut body = format!("{text}|{json}|{percent}");
            for shift in ["", "x", "xy"] {
                body.push_str(&format!("|{}", base64(format!("{shift}{text}").as_bytes())));
            }
            let key = text.lines().find_map(|line| line.strip_prefix("x-key: ")).unwrap_or("none");
            let begun = format!("HTTP/1.1 302 F\r\nlocation: /{key}\r\ntransfer-encoding: chunked");
            drop(write!(stream, "{begun}\r\n\r\n"));
            // In pieces, so that every value is cut.
            for piece in body.as_bytes().chunks(5) {
                drop(write!(stream, "{:x}\r\n", piece.len()));
                drop(stream.write_all(piece).and_then(|()| stream.write_all(b"\r\n")));
            }
            drop(stream.write_all(b"0\r\n\r\n"));
        }
    });
    (port, kept)
}

/// Every file below a folder.
fn files(folder: &Path, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.is_file() {
            all.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn i17_a_secret_arrives_where_it_may_and_is_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let (state, folder) = (dir.path().join("state"), dir.path().join("agent"));
    let data = dir.path().join("data");
    for path in [&state, &folder, &data] {
        fs::create_dir(path).unwrap();
    }
    fs::write(data.join("blank"), "{secret:key}").unwrap();
    let ((port, heard), (other, overheard)) = (echo(), echo());
    let place = format!("http://127.0.0.1:{port}");
    let kept = set(&state, &["secret", "set", "key", "--for", &place], VALUE.as_bytes());
    assert!(kept.status.success(), "{}", err(&kept));

    let get = |port: u16, query: &str, header: &str| {
        format!(
            r#"{{"name":"net_http_get","arguments":{{"url":"http://127.0.0.1:{port}/{query}","headers":{{"x-key":{header}}}}}}}"#
        )
    };
    let blank = r#""{secret:key}""#;
    let sending = format!(
        r#"{{"name":"net_http_post","arguments":{{"url":"{place}/p","headers":{{"x-key":{blank}}},"content":"{{secret:key}}"}},"hold":true}}"#
    );
    let sentences = [
        r#"{"name":"fs_read","arguments":{"path":"/data/blank","offset":0,"length":99},"hold":true}"#
            .to_owned(),
        sending,
        // What is held is no blank, nor what goes elsewhere or is a part.
        get(port, "held", r#"{"$held":1}"#),
        get(other, "", blank),
        get(other, "?a=%7Bsecret:key%7D", r#""""#),
        get(other, "", r#"{"$held":1}"#),
        get(port, "", r#""x{secret:key}""#),
        get(port, "last?k=%7Bsecret:key%7D", blank),
        r#"{"name":"fs_write","arguments":{"path":"/data/copy","content":{"$held":2},"mode":"create"}}"#
            .to_owned(),
    ];
    let sentences: Vec<&str> = sentences.iter().map(String::as_str).collect();
    // Its answer is all of its memory.
    let memory = "(i32.store8 (i32.const 512) (i32.const 0))
        (i32.store (i32.const 516) (i32.const 0)) (i32.store (i32.const 520) (i32.const 131072))
        (return (i32.const 512))";
    fs::write(folder.join("agent.wasm"), guest_that(&sentences, memory)).unwrap();
    let grant = format!(
        "version = 1\nprimitives = [\"fs_read\", \"fs_write\", \"net_http_get\", \"net_http_post\"]\n\
         [[paths]]\npath = \"/data/**\"\nrights = [\"read\", \"write\"]\n\
         [[hosts]]\nhost = \"127.0.0.1\"\nports = [{port}]\nmethods = [\"GET\", \"POST\"]\n\
         clear = [\"prompt\", \"files\"]\nsecrets = [\"key\"]\nreads = true\n\
         [[hosts]]\nhost = \"127.0.0.1\"\nports = [{other}]\nclear = [\"prompt\", \"files\", \
         \"net:127.0.0.1\"]\nsecrets = [\"key\"]\n"
    );
    fs::write(folder.join("grant.toml"), grant).unwrap();
    let mount = data.to_str().unwrap();
    let ran =
        command(&state, &["run", folder.to_str().unwrap(), "fetch", "--dir", mount, "--json"])
            .env("RUST_LOG", "trace")
            .env("RUST_BACKTRACE", "full")
            .output()
            .unwrap();
    assert!(ran.status.success(), "{}", err(&ran));
    let shown = out(&ran);
    let lines: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<&Value> =
        lines.iter().filter(|line| line["type"] == "call").map(|line| &line["code"]).collect();
    assert_eq!(codes, [0, 0, 0, 410, 410, 0, 410, 0, 0], "{shown}");

    let sent = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
    let encoded = VALUE.replace('%', "%25").replace('"', "%22").replace('\\', "%5C");
    let encoded = encoded.replace('+', "%2B").replace('/', "%2F");
    assert_eq!(sent.matches(&format!("x-key: {VALUE}\r\n")).count(), 2, "{sent}");
    assert_eq!(sent.matches("x-key: {secret:key}\r\n").count(), 1, "{sent}");
    assert!(sent.contains(&format!("GET /last?k={encoded} HTTP")), "{sent}");

    let answer = lines.last().unwrap()["answer"].as_str().unwrap();
    assert!(answer.len() >= 131_072 && answer.contains("{secret:key}"), "no memory was looked at");
    let mut places = vec![
        ("standard output".to_owned(), ran.stdout.clone()),
        ("standard error".to_owned(), ran.stderr.clone()),
        ("the guest's memory".to_owned(), answer.as_bytes().to_vec()),
        ("the other server".to_owned(), overheard.lock().unwrap().clone()),
    ];
    for arguments in [&["audit", "show", "latest", "--json"][..], &["audit", "show", "latest"]] {
        let told = synapse(&state, arguments);
        places.push((arguments.join(" "), [told.stdout, told.stderr].concat()));
    }
    for record in 1..40 {
        let told = synapse(&state, &["why", "latest", &record.to_string()]);
        places.push((format!("why {record}"), [told.stdout, told.stderr].concat()));
    }
    files(dir.path(), &mut places);
    assert!(places.iter().any(|(name, _)| name.ends_with("store.redb")));
    let copied = places.iter().find(|(name, _)| name.ends_with("data/copy")).unwrap();
    let echoes = String::from_utf8(copied.1.clone()).unwrap();
    // Plain, JSON, percent, and base64 at three places: each was there.
    assert_eq!(echoes.split('|').filter(|echo| echo.contains("{secret:key}")).count(), 6);
    for (name, bytes) in &places {
        for form in forms(VALUE) {
            let found = bytes.windows(form.len()).any(|window| window == form);
            assert!(!found, "{} stands in {name}", String::from_utf8_lossy(&form));
        }
    }
}
