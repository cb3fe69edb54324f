//! Packages that are fetched: from a server of this machine, whole or not at all.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::guest::guest;
use crate::packages::{digest, folder, text};
use crate::{command, err, out, synapse};

/// A server of one file, of which the first two answers stop in the middle and go on
/// for ever; it tells where each request wanted it to begin.
fn serve(file: Vec<u8>) -> (String, Receiver<usize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/reader.synapse", listener.local_addr().unwrap());
    let (told, heard) = channel();
    thread::spawn(move || {
        let mut held = Vec::new();
        for (turn, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            let request = String::from_utf8(request).unwrap();
            let range = request.lines().find_map(|line| line.strip_prefix("range: bytes="));
            let from = range.map_or(0, |range| range.trim_end_matches('-').parse().unwrap());
            let status = if from == 0 {
                "200 OK".to_owned()
            } else {
                format!("206 P\r\ncontent-range: bytes {from}-{}/{}", file.len() - 1, file.len())
            };
            let left = file.len() - from;
            let said =
                format!("HTTP/1.1 {status}\r\netag: \"a\"\r\ncontent-length: {left}\r\n\r\n");
            let sent = if turn < 2 { left / 2 } else { left };
            stream.write_all(said.as_bytes()).unwrap();
            stream.write_all(&file[from..from + sent]).unwrap();
            told.send(from).unwrap();
            held.push(stream);
        }
    });
    (url, heard)
}

#[test]
fn a_download_that_was_killed_or_broken_off_goes_on_and_nothing_is_half_installed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let state = root.join("state");
    let source = folder(root, "src", &guest(&[]), &["primitive = \"clock_read\""]);
    let (made, grant) = (root.join("reader.synapse"), root.join("grant.toml"));
    assert!(
        synapse(&state, &["package", "build", text(&source), "-o", text(&made)]).status.success()
    );
    fs::write(&grant, out(&synapse(&state, &["package", "grant", text(&made)]))).unwrap();
    let digest = digest(root, &made);
    let bytes = fs::read(&made).unwrap();
    let (url, heard) = serve(bytes.clone());
    let pinned = format!("{url}@{digest}");
    let install = ["install", &pinned, "--accept", &digest, "--grant", text(&grant)];
    let mut before = 0;
    for signal in [Signal::KILL, Signal::INT] {
        let mut child =
            command(&state, &install).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(heard.recv().unwrap(), before);
        let half = before + (bytes.len() - before) / 2;
        waited(&state, half);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(out(&synapse(&state, &["list"])), "");
        before = half;
    }
    let done = synapse(&state, &install);
    assert!(done.status.success(), "{}", err(&done));
    assert_eq!(heard.recv().unwrap(), before);
    for part in ["going on with", "kB of", "installed reader 1.0.0"] {
        assert!(err(&done).contains(part), "{part}\n{}", err(&done));
    }
    let shown = out(&synapse(&state, &["show", "reader"]));
    assert!(shown.contains(&format!("from: {pinned}")), "{shown}");
    assert_eq!(fs::read_dir(state.join("synapse/packages/.downloads")).unwrap().count(), 0);
    // It is looked at where it is, too.
    let inspected = synapse(&state, &["package", "inspect", &url]);
    assert!(out(&inspected).contains(&digest), "{}", err(&inspected));
}

/// Waits until so many bytes are kept.
fn waited(state: &Path, bytes: usize) {
    let began = Instant::now();
    let kept = || {
        let files = fs::read_dir(state.join("synapse/packages/.downloads")).into_iter().flatten();
        files.map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap_or_default()
    };
    while kept() < bytes as u64 {
        assert!(began.elapsed() < Duration::from_mins(1), "{} of {bytes}", kept());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_names_no_package_is_a_wrong_command_line() {
    let root = tempfile::tempdir().unwrap();
    for (name, part) in [
        ("https://Example.org/a", "plain form"),
        ("oci://example.org/reader", "neither a tag nor a digest"),
        ("https://example.org/a@sha256:0", "no digest"),
    ] {
        let told = synapse(root.path(), &["install", name]);
        assert_eq!(told.status.code(), Some(2), "{}", err(&told));
        assert!(err(&told).contains(part), "{}", err(&told));
    }
    let told = synapse(root.path(), &["install", "http://example.org/a"]);
    assert_eq!(told.status.code(), Some(1));
    assert!(err(&told).contains("without TLS"), "{}", err(&told));
}
