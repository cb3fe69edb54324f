//! A request over loopback, through the door and without it
//!
//! # Not here
//! TLS and names: both are paid alike on either side of the door.

use core::hint::black_box;
use core::net::{Ipv4Addr, SocketAddr};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use synapse_boundary::url::Url;
use synapse_host::console::{Console, PATIENCE};
use synapse_host::net::Client;
use synapse_host::render::{Stream, Terminal};
use synapse_kernel::engine::Door as _;
use synapse_primitives::disk::Disk;
use synapse_primitives::platform::{Fetch, Net as _};
use synapse_reply::frame::HEADER;
use synapse_reply::limits;
use tokio::runtime::{Builder, Runtime};

use crate::task::task;
use crate::{Failure, Group, Row};

/// The rows; the first is the host's own client.
///
/// # Errors
/// Nothing can listen on loopback.
pub fn group() -> Result<Group, Failure> {
    let unmade = |why: io::Error| format!("no server on loopback could be started: {why}");
    let server = serve().map_err(unmade)?;
    let url = format!("http://{server}/page");
    let client = || Client::new(Arc::default()).map_err(|why| why.to_string());
    let (alone, below) = (client()?, client()?);
    let screen = Box::new(Console {
        terminal: Terminal::new(Stream::Error),
        agent: "bench".to_owned(),
        cancel: Arc::default(),
        patience: PATIENCE,
    });
    let disk = Disk::new(Vec::new(), &[], None, screen).map_err(|why| why.to_string())?;
    let mut task = task(disk.with_net(Box::new(below)), &grant(server.port()))?;
    let sentence =
        format!(r#"{{"name":"net_http_get","arguments":{{"url":"{url}","headers":{{}}}}}}"#);
    let (first, second) = (executor().map_err(unmade)?, executor().map_err(unmade)?);
    Ok(Group {
        title: "The network: 4 KiB by GET over loopback",
        rows: vec![
            Row::new("the same client directly", move |times| {
                (0..times).try_for_each(|_| {
                    let request = Fetch {
                        url: Url::parse(&url).map_err(|_| "the row's own URL is wrong")?,
                        headers: &[],
                        secrets: &[],
                        content: None,
                        most: limits::REPLY,
                        admits: &|_| true,
                    };
                    let fetched = first.block_on(alone.fetch(request));
                    whole(&fetched.map_err(|why| format!("the client answered {why:?}"))?.body)
                })
            }),
            Row::new("through the door", move |times| {
                (0..times).try_for_each(|_| {
                    let reply = second.block_on(task.submit(sentence.as_bytes()));
                    let reply = reply.map_err(|code| format!("the door answered {code}"))?.lower();
                    let mut parts =
                        reply.get(HEADER..).unwrap_or_default().splitn(2, |byte| *byte == b'\n');
                    whole(parts.nth(1).unwrap_or_default())
                })
            }),
        ],
    })
}

fn executor() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Starts a server that answers each connection's first bytes with a page.
fn serve() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            // Whoever went away again is not waited for.
            let _ = stream.and_then(answer);
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    let _ = stream.read(&mut [0; 4096])?;
    let mut page = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").into_bytes();
    page.resize(page.len() + BYTES, b'x');
    stream.write_all(&page)
}

fn whole(body: &[u8]) -> Result<(), Failure> {
    let whole = black_box(body).len() == BYTES;
    if whole { Ok(()) } else { Err("the page is not what it was".to_owned()) }
}

fn grant(port: u16) -> String {
    format!(
        "version = 1\nprimitives = [\"net_http_get\"]\n[[hosts]]\nhost = \"127.0.0.1\"\n\
         ports = [{port}]\n[budget]\ncalls = 9223372036854775807\n"
    )
}

const BYTES: usize = 4096;
