//! A world in which every packet is seen: names, addresses, servers and a door
//!
//! All addresses lead to this machine's loopback, so that a connection to any of
//! them arrives at a listener of the test and is counted there.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::RootCertStore;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_kernel::engine::Door;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Log, Sink, SinkFailed};
use synapse_kernel::task::{HELD_BYTES, Parts, Task};
use synapse_primitives::Fault;
use synapse_primitives::disk::{Disk, Screen};
use synapse_primitives::platform::Asker;
use synapse_reply::frame::Form;
use synapse_secrets::Given;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::super::Client;
use super::super::wire::{Stream, Waiting, Wire};

/// An address that is globally reachable.
pub(crate) const PUBLIC: &str = "93.184.215.14";

/// What a test's machine was asked for.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) looked_up: Mutex<Vec<String>>,
    pub(crate) connected: Mutex<Vec<SocketAddr>>,
}

/// Names whose answers change from look-up to look-up; the last one stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashMap<String, Vec<Vec<IpAddr>>>);

impl Names {
    pub(crate) fn of(names: &[(&str, &[&[&str]])]) -> Self {
        let answer = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        let names = names.iter().map(|(name, answers)| {
            ((*name).to_owned(), answers.iter().map(answer).collect::<Vec<Vec<IpAddr>>>())
        });
        Self(names.collect())
    }
}

struct Machine {
    names: Names,
    seen: Arc<Seen>,
}

impl Wire for Machine {
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, Vec<IpAddr>> {
        let mut looked_up = self.seen.looked_up.lock().unwrap();
        let before = looked_up.iter().filter(|known| *known == name).count();
        looked_up.push(name.to_owned());
        let answers = self.names.0.get(name).cloned().unwrap_or_default();
        let answer = answers.get(before).or(answers.last()).cloned().unwrap_or_default();
        Box::pin(async move { Ok(answer) })
    }

    fn connect(&self, to: SocketAddr) -> Waiting<'_, Box<dyn Stream>> {
        self.seen.connected.lock().unwrap().push(to);
        Box::pin(async move {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, to.port())).await?;
            let stream: Box<dyn Stream> = Box::new(stream);
            Ok(stream)
        })
    }
}

/// A client in a machine that is watched.
pub(crate) fn client(names: Names, roots: RootCertStore) -> (Client, Arc<Seen>) {
    let seen = Arc::<Seen>::default();
    let machine = Machine { names, seen: Arc::clone(&seen) };
    (Client::with(Box::new(machine), roots, Arc::default()).unwrap(), seen)
}

/// What a server does once it has read a request.
#[derive(Clone)]
pub(super) enum Act {
    /// It says this and closes.
    Say(Vec<u8>),
    /// It says the first once, the second for as long as anybody listens.
    Repeat(Vec<u8>, Vec<u8>, Duration),
}

/// A server that counts who comes.
pub(super) struct Server {
    pub(super) port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn start(act: Act) -> Self {
        Self::with(act, None)
    }

    /// A server that speaks TLS, and says goodbye as TLS has it or not at all.
    pub(super) fn with(act: Act, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (connections, requests) =
            (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (counted, kept) = (Arc::clone(&connections), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let Ok(mut stream) = stream else { continue };
                let (act, tls, kept) = (act.clone(), tls.clone(), Arc::clone(&kept));
                thread::spawn(move || match tls {
                    None => drop(serve(&mut stream, &act, &kept)),
                    Some(tls) => {
                        let mut session = rustls::ServerConnection::new(tls).unwrap();
                        drop(serve(
                            &mut rustls::Stream::new(&mut session, &mut stream),
                            &act,
                            &kept,
                        ));
                    }
                });
            }
        });
        Self { port, connections, requests }
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The heads and bodies that were sent to it.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    stream: &mut (impl Read + Write),
    act: &Act,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let length = loop {
        let mut piece = [0; 4096];
        let got = stream.read(&mut piece)?;
        request.extend_from_slice(&piece[..got]);
        if let Some(length) = whole(&request) {
            break length;
        }
        if got == 0 {
            return Ok(());
        }
    };
    requests.lock().unwrap().push(String::from_utf8_lossy(&request[..length]).into_owned());
    match act {
        Act::Say(bytes) => stream.write_all(bytes)?,
        Act::Repeat(first, again, pause) => {
            stream.write_all(first)?;
            loop {
                stream.write_all(again)?;
                stream.flush()?;
                thread::sleep(*pause);
            }
        }
    }
    stream.flush()
}

/// The length of a request that is there with its whole body.
fn whole(request: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(request);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let all = head.len() + 4 + length.map_or(0, |length| length.parse().unwrap());
    (request.len() >= all).then_some(all)
}

/// A task with the real door, disk and client in a machine that is watched.
pub(super) struct World {
    pub(super) task: Task<Disk, Tape>,
    pub(super) seen: Arc<Seen>,
    pub(super) cancel: Arc<AtomicBool>,
    executor: Runtime,
}

impl World {
    pub(super) fn new(grant: &str, names: Names, roots: RootCertStore) -> Self {
        Self::with(grant, names, roots, Secrecy::PROMPT)
    }

    pub(super) fn with(grant: &str, names: Names, roots: RootCertStore, mark: Secrecy) -> Self {
        let (seen, cancel) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
        let machine = Machine { names, seen: Arc::clone(&seen) };
        let mut client = Client::with(Box::new(machine), roots, Arc::clone(&cancel)).unwrap();
        client.whole = PATIENCE;
        let disk = Disk::new(Vec::new(), &[], None, Box::new(Nobody)).unwrap();
        Self::around(grant, disk.with_net(Box::new(client)), mark, seen, cancel)
    }

    /// A world whose client has secrets.
    pub(super) fn given(grant: &str, names: Names, roots: RootCertStore, given: Given) -> Self {
        let (seen, cancel) = (Arc::<Seen>::default(), Arc::<AtomicBool>::default());
        let machine = Machine { names, seen: Arc::clone(&seen) };
        let client = Client::with(Box::new(machine), roots, Arc::clone(&cancel)).unwrap();
        let disk = Disk::new(Vec::new(), &[], None, Box::new(Nobody)).unwrap();
        let disk = disk.with_net(Box::new(client.given(Arc::new(given))));
        Self::around(grant, disk, Secrecy::PROMPT, seen, cancel)
    }

    /// A world with the network of this machine.
    pub(super) fn real(grant: &str) -> Self {
        let cancel = Arc::<AtomicBool>::default();
        let client = Client::new(Arc::clone(&cancel)).unwrap();
        let disk = Disk::new(Vec::new(), &[], None, Box::new(Nobody)).unwrap();
        Self::around(
            grant,
            disk.with_net(Box::new(client)),
            Secrecy::PROMPT,
            Arc::default(),
            cancel,
        )
    }

    fn around(
        grant: &str,
        disk: Disk,
        mark: Secrecy,
        seen: Arc<Seen>,
        cancel: Arc<AtomicBool>,
    ) -> Self {
        let log = Log::begin(Tape, [0; 32]).unwrap();
        let task = Task::new(Parts {
            id: 0,
            mark: Label::new(Integrity::User, mark, Origin::NONE),
            lines: Vec::new(),
            run: [0; 32],
            grant: Arc::new(Grant::parse(grant).unwrap()),
            journal_room: 0,
            held_room: HELD_BYTES,
            platform: Arc::new(disk),
            log: Arc::new(spin::Mutex::new(log)),
            watch: Arc::new(|_| {}),
            cancel: Arc::clone(&cancel),
        });
        let executor = Builder::new_current_thread().enable_all().build().unwrap();
        Self { task, seen, cancel, executor }
    }

    /// Submits a sentence: the reply's form and payload, or the code.
    pub(super) fn ask(&mut self, sentence: &str) -> Result<(Form, Vec<u8>), u32> {
        let reply = self.executor.block_on(self.task.submit(sentence.as_bytes()))?.lower();
        let reply = synapse_guest::Reply::parse(reply).unwrap();
        Ok((reply.form, reply.payload))
    }

    pub(super) fn looked_up(&self) -> usize {
        self.seen.looked_up.lock().unwrap().len()
    }

    /// The addresses that were connected to.
    pub(super) fn connected(&self) -> Vec<IpAddr> {
        self.seen.connected.lock().unwrap().iter().map(SocketAddr::ip).collect()
    }
}

/// How long a call may take in a test.
const PATIENCE: Duration = Duration::from_secs(3);

/// A log that forgets.
pub(super) struct Tape;

impl Sink for Tape {
    fn append(&mut self, _: &[u8], _: Durability) -> Result<(), SinkFailed> {
        Ok(())
    }
}

struct Nobody;

impl Screen for Nobody {
    fn show(&self, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::Closed)
    }

    fn ask(&self, _: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Err(Fault::Closed)
    }
}

pub(super) fn get(url: &str) -> String {
    with_headers(url, "{}")
}

pub(super) fn with_headers(url: &str, headers: &str) -> String {
    format!(r#"{{"name":"net_http_get","arguments":{{"url":"{url}","headers":{headers}}}}}"#)
}
