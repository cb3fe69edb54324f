//! Files of the web

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::RootCertStore;

use super::server::{Served, Server};
use super::{fetched, kept, signed, why};
use crate::net::tests::tls::{Authority, params};
use crate::net::tests::world::{Names, PUBLIC, client};
use crate::package::Digest;

/// A client for which this machine's own servers are enough.
fn plain() -> crate::net::Client {
    client(Names::default(), RootCertStore::empty()).0
}

#[test]
fn a_file_comes_over_tls_from_whom_was_named() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let bytes = made.write();
    let authority = Authority::new();
    let names = Names::of(&[("files.example", &[&["10.0.0.7"]]), ("other.example", &[&[PUBLIC]])]);
    let (client, seen) = client(names, authority.roots());
    let tls = authority.sign(params(&["files.example"]));
    let server = Server::start(
        Some(tls),
        Box::new({
            let bytes = bytes.clone();
            move |asked| Served::content(asked, &bytes)
        }),
    );
    let at = |host: &str| format!("https://{host}:{}/a.synapse", server.port);
    let (found, told) = fetched(&at("files.example"), &client, root.path());
    assert_eq!(found.unwrap().write(), bytes);
    assert_eq!(
        told.last().map(|last| (last.done, last.of)),
        Some((bytes.len() as u64, Some(bytes.len() as u64)))
    );
    assert_eq!(kept(root.path()), [""; 0]);
    let pinned = format!("{}@{}", at("files.example"), made.digest());
    assert!(fetched(&pinned, &client, root.path()).0.is_ok());
    let pinned = format!("{}@{}", at("files.example"), Digest::of(b""));
    let why_not = why(&pinned, &client, root.path());
    assert!(why_not.contains("not the one that you named"), "{why_not}");
    let unproven = why(&at("other.example"), &client, root.path());
    assert!(unproven.contains("did not prove"), "{unproven}");
    assert_eq!(seen.looked_up.lock().unwrap().len(), 4);
}

#[test]
fn without_tls_only_this_machine_is_asked() {
    let root = tempfile::tempdir().unwrap();
    let names = Names::of(&[("localhost", &[&[PUBLIC]])]);
    let (client, seen) = client(names, RootCertStore::empty());
    let plain = why("http://files.example/a", &client, root.path());
    assert!(plain.contains("without TLS"), "{plain}");
    // Neither does a name make another machine of this one.
    let renamed = why("http://localhost/a", &client, root.path());
    assert!(renamed.contains("globally reachable"), "{renamed}");
    assert!(seen.connected.lock().unwrap().is_empty());
}

#[test]
fn what_broke_off_goes_on_where_it_ended() {
    let root = tempfile::tempdir().unwrap();
    let bytes = signed(root.path()).write();
    let (half, turn) = (bytes.len() / 2, AtomicUsize::new(0));
    let server = Server::start(
        None,
        Box::new({
            let bytes = bytes.clone();
            move |asked| {
                let reply = Served::content(asked, &bytes).with("etag", "\"one\"");
                if turn.fetch_add(1, Ordering::SeqCst) == 0 { reply.cut(half) } else { reply }
            }
        }),
    );
    let url = format!("http://127.0.0.1:{}/a", server.port);
    let ended = why(&url, &plain(), root.path());
    assert!(ended.contains("connection ended"), "{ended}");
    assert_eq!(kept(root.path()).len(), 2);
    let (found, told) = fetched(&url, &plain(), root.path());
    assert_eq!(found.unwrap().write(), bytes);
    assert_eq!(told[0].done, half as u64);
    let asked = server.asked();
    assert_eq!((asked[1].from(), asked[1].header("if-range")), (Some(half), Some("\"one\"")));
    assert_eq!(kept(root.path()), [""; 0]);
}

#[test]
fn nothing_is_joined_to_what_it_does_not_continue() {
    let root = tempfile::tempdir().unwrap();
    let bytes = signed(root.path()).write();
    let half = bytes.len() / 2;
    // Another version, none, and one that says only the second it was made in.
    for (before, after) in
        [(Some("\"one\""), Some("\"two\"")), (None, None), (Some("W/\"1\""), Some("W/\"1\""))]
    {
        let turn = AtomicUsize::new(0);
        let server = Server::start(
            None,
            Box::new({
                let bytes = bytes.clone();
                move |asked| {
                    let first = turn.fetch_add(1, Ordering::SeqCst) == 0;
                    let body = if first { vec![b'x'; bytes.len()] } else { bytes.clone() };
                    let version = if first { before } else { after };
                    let mut reply = if asked.header("if-range") == version {
                        Served::content(asked, &body)
                    } else {
                        Served::new(200, &*body)
                    };
                    if let Some(version) = version {
                        reply = reply.with("etag", version);
                    }
                    if first { reply.cut(half) } else { reply }
                }
            }),
        );
        let url = format!("http://127.0.0.1:{}/a", server.port);
        assert!(why(&url, &plain(), root.path()).contains("connection ended"));
        assert_eq!(fetched(&url, &plain(), root.path()).0.unwrap().write(), bytes);
        let strong = before.filter(|version| version.starts_with('"'));
        assert_eq!(server.asked()[1].header("if-range"), strong);
        assert_eq!(server.asked()[1].from(), strong.map(|_| half));
    }
}

#[test]
fn servers_that_lie_about_lengths_and_ranges_are_told() {
    let root = tempfile::tempdir().unwrap();
    let bytes = signed(root.path()).write();

    let replies = Arc::new(Mutex::new(Vec::new()));
    let server = Server::start(
        None,
        Box::new({
            let replies = Arc::clone(&replies);
            move |_| replies.lock().unwrap().pop().unwrap()
        }),
    );
    let url = format!("http://127.0.0.1:{}/a", server.port);
    let whole = || Served::new(200, &*bytes);
    let large = (super::super::PACKAGE_MAX + 1).to_string();
    for (reply, told) in [
        (whole().with("content-length", large), "larger than a package"),
        (whole().with("content-length", (bytes.len() + 9).to_string()), "connection ended"),
        (whole().with("content-length", (bytes.len() - 9).to_string()), "is no package"),
        (whole().with("content-length", "9, 10"), "cannot be read"),
        (Served::new(200, vec![0; 1 << 20]).endless(), "more came than"),
        (Served::new(206, "x").with("content-range", "bytes 7-7/8"), "at another place"),
        (Served::new(404, ""), "there is none"),
        (Served::new(500, ""), "answers 500"),
        (Served::new(200, "no package"), "is no package"),
    ] {
        replies.lock().unwrap().push(reply);
        let why = why(&url, &plain(), root.path());
        assert!(why.contains(told), "{told}: {why}");
        replies.lock().unwrap().push(whole());
        assert!(fetched(&url, &plain(), root.path()).0.is_ok(), "{told}");
        assert_eq!(kept(root.path()), [""; 0], "{told}");
    }
}

#[test]
fn one_command_at_a_time_fetches_a_thing() {
    let root = tempfile::tempdir().unwrap();
    let url = "http://127.0.0.1:9/a";
    let downloads = super::super::Downloads::open(root.path()).unwrap();
    let _held = downloads.partial(&Digest::of(url.as_bytes()).digits()).unwrap();
    let second = why(url, &plain(), root.path());
    assert!(second.contains("another command"), "{second}");
}
