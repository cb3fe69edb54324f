//! What left the machine, in runs that were killed: each has its record, and none is
//! sent again.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::Value;

use crate::guest::{ROUND, guest_in_rounds};
use crate::{command, err, out, synapse};

/// Runs that are killed.
const KILLS: usize = 12;

/// A server that tells what it was sent, and answers or lets its caller wait.
fn serve(is_slow: bool) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = channel();
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // Whoever was killed while it spoke said nothing whole.
            if take(&mut stream, &told).is_some() && !is_slow {
                drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
            }
            held.push(stream);
        }
    });
    (port, heard)
}

/// The content of a request, which is as long as a counted word.
fn take(stream: &mut TcpStream, told: &Sender<String>) -> Option<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let mut content = [0; ROUND.len()];
    stream.read_exact(&mut content).ok()?;
    told.send(String::from_utf8(content.into()).unwrap()).ok()
}

/// An agent that posts, one number after the other, and holds the answers.
fn package(root: &Path, port: u16) -> String {
    let folder = root.join("poster");
    fs::create_dir(&folder).unwrap();
    let sentence = format!(
        r#"{{"name":"net_http_post","arguments":{{"url":"http://127.0.0.1:{port}/","headers":{{}},"content":"{ROUND}"}},"hold":true}}"#
    );
    fs::write(folder.join("poster.wasm"), guest_in_rounds(&[&sentence], 1)).unwrap();
    let grant = format!(
        "version = 1\nprimitives = [\"net_http_post\"]\n[[hosts]]\nhost = \"127.0.0.1\"\n\
         ports = [{port}]\nmethods = [\"POST\"]\n[budget]\ncalls = 60\n"
    );
    fs::write(folder.join("grant.toml"), grant).unwrap();
    folder.to_str().unwrap().to_owned()
}

fn records(root: &Path) -> Vec<Value> {
    let shown = out(&synapse(root, &["audit", "show", "latest", "--json"]));
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Kills an agent after the server has heard so much of it, and a while; what the server
/// heard in all.
fn killed(
    root: &Path,
    port: u16,
    heard: &Receiver<String>,
    after: (usize, Duration),
) -> Vec<String> {
    let agent = package(root, port);
    let mut child = command(root, &["run", &agent, "--quiet"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut sent: Vec<String> = (0..after.0).map(|_| heard.recv().unwrap()).collect();
    thread::sleep(after.1);
    child.kill().unwrap();
    child.wait().unwrap();
    let verified = synapse(root, &["audit", "verify", "latest"]);
    assert!(verified.status.code().is_some_and(|code| code < 2), "{}", err(&verified));
    // What was on its way when it died still arrives; nothing else does, whoever looks.
    let (undone, listed) =
        (synapse(root, &["undo", "--yes"]), synapse(root, &["sessions", "list"]));
    assert!(undone.status.code().is_some() && listed.status.success(), "{}", err(&listed));
    while let Ok(content) = heard.recv_timeout(Duration::from_millis(200)) {
        sent.push(content);
    }
    sent
}

/// The decisions to post, and whether each has an outcome.
fn decided(records: &[Value]) -> Vec<(String, u64, bool)> {
    let posts = records.iter().filter(|record| record["kind"] == "decision" && record["code"] == 0);
    posts
        .map(|record| {
            let number = record["record"].as_u64().unwrap();
            let ended = records
                .iter()
                .any(|other| other["kind"] == "outcome" && other["cause"] == record["record"]);
            (record.to_string(), number, ended)
        })
        .collect()
}

#[test]
fn whenever_it_is_killed_what_left_has_its_record_and_leaves_once() {
    for kill in 0..KILLS {
        let root = tempfile::tempdir().unwrap();
        let (port, heard) = serve(false);
        let while_more = Duration::from_micros(u64::try_from(kill * 977 % 4000).unwrap());
        let sent = killed(root.path(), port, &heard, (kill, while_more));
        let expected: Vec<String> = (0..sent.len()).map(|number| format!("{number:06}")).collect();
        assert_eq!(sent, expected, "each once, in order");
        let decided = decided(&records(root.path()));
        assert!(decided.len() >= sent.len(), "{} sent, recorded: {decided:?}", sent.len());
        let unknown = decided.iter().filter(|(_, _, ended)| !ended).count();
        assert!(unknown <= 1 && decided.iter().take(decided.len().saturating_sub(1)).all(|d| d.2));
        for (content, (record, ..)) in sent.iter().zip(&decided) {
            assert!(record.contains(content), "{content}: {record}");
        }
    }
}

#[test]
fn a_post_that_was_under_way_stays_unknown() {
    let root = tempfile::tempdir().unwrap();
    let (port, heard) = serve(true);
    let sent = killed(root.path(), port, &heard, (1, Duration::from_millis(50)));
    assert_eq!(sent, ["000000"]);
    let [(record, number, false)] = &*decided(&records(root.path())) else {
        panic!("{:?}", records(root.path()))
    };
    assert!(record.contains("000000"), "{record}");
    let why = synapse(root.path(), &["why", &number.to_string()]);
    let told = "unknown: the run ended before its outcome was recorded";
    assert!(out(&why).contains(told), "{}{}", out(&why), err(&why));
}
