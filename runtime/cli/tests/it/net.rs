//! `synapse run` with an agent that fetches.

use core::net::Ipv4Addr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::guest::guest;
use crate::run::ENGINES;
use crate::{command, err, out, synapse};

/// A server that answers every request, and tells of it.
fn serve() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut length) = ([0; 4096], 0);
            while !whole(&request[..length]) {
                length += stream.read(&mut request[length..]).unwrap();
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            stream.write_all(answer).unwrap();
            told.send(String::from_utf8_lossy(&request[..length]).into_owned()).unwrap();
        }
    });
    (port, heard)
}

/// A request has no content, or this one.
fn whole(request: &[u8]) -> bool {
    let end = if request.starts_with(b"POST") { &b"\r\n\r\ntold"[..] } else { b"\r\n\r\n" };
    request.ends_with(end)
}

fn package(root: &Path, port: u16) -> String {
    let folder = root.join("fetcher");
    fs::create_dir_all(&folder).unwrap();
    let sentences = [
        format!(
            r#"{{"name":"net_http_post","arguments":{{"url":"http://127.0.0.1:{port}/in","headers":{{}},"content":"told"}}}}"#
        ),
        format!(
            r#"{{"name":"net_http_get","arguments":{{"url":"http://127.0.0.1:{port}/a?b","headers":{{"x-a":"b"}}}}}}"#
        ),
        format!(
            r#"{{"name":"net_http_get","arguments":{{"url":"http://localhost:{port}/","headers":{{}}}}}}"#
        ),
        format!(
            r#"{{"name":"net_http_post","arguments":{{"url":"http://127.0.0.1:{port}/in","headers":{{}},"content":"read"}}}}"#
        ),
    ];
    fs::write(folder.join("fetcher.wasm"), guest(&sentences.each_ref().map(|s| &**s))).unwrap();
    let grant = format!(
        "version = 1\nprimitives = [\"net_http_get\", \"net_http_post\"]\n[[hosts]]\n\
         host = \"127.0.0.1\"\nports = [{port}]\nmethods = [\"GET\", \"POST\"]\n"
    );
    fs::write(folder.join("grant.toml"), grant).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn an_agent_fetches_on_both_engines_and_no_variable_says_by_way_of_whom() {
    for engine in ENGINES {
        let root = tempfile::tempdir().unwrap();
        let (port, heard) = serve();
        let agent = package(root.path(), port);
        let mut run = command(root.path(), &["run", &agent, "--json", "--engine", engine]);
        for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
            run.env(name, "http://127.0.0.1:1/");
        }
        let run = run.output().unwrap();
        assert_eq!(run.status.code(), Some(0), "{}", err(&run));
        let codes: Vec<_> = out(&run)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|line| line["primitive"].is_string())
            .map(|line| line["code"].as_u64().unwrap())
            .collect();
        assert_eq!(codes, [0, 0, 401, 301], "{}", out(&run));
        let verified = synapse(root.path(), &["audit", "verify", "latest"]);
        assert_eq!(verified.status.code(), Some(0), "{}", err(&verified));
        let requests: Vec<_> = heard.try_iter().collect();
        let usual = format!("host: 127.0.0.1:{port}\r\nconnection: close\r\n");
        let told = format!("POST /in HTTP/1.1\r\n{usual}content-length: 4\r\n\r\ntold");
        let get = format!("GET /a?b HTTP/1.1\r\n{usual}x-a: b\r\n\r\n");
        assert_eq!(requests, [told, get]);
    }
}
