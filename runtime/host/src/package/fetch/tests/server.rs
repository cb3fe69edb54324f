//! A server that answers as a test says, and remembers what it was asked

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection};

/// What was asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) method: String,
    /// Its path and query.
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    headers: BTreeMap<String, String>,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Where the range begins that was asked for.
    pub(super) fn from(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Whether the body comes again and again.
    is_endless: bool,
}

impl Served {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = ("content-length", body.len().to_string());
        Self { status, headers: vec![length], body, ..Self::default() }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    /// It says its whole length, and ends after these bytes.
    pub(super) fn cut(mut self, after: usize) -> Self {
        self.body.truncate(after);
        self
    }

    /// It says no length, and has no end.
    pub(super) fn endless(mut self) -> Self {
        self.headers.retain(|(name, _)| *name != "content-length");
        self.headers.push(("transfer-encoding", "chunked".to_owned()));
        self.is_endless = true;
        self
    }

    /// The answer to a request for all of this, or for the rest of it.
    pub(super) fn content(asked: &Asked, body: &[u8]) -> Self {
        match asked.from() {
            Some(from) if from < body.len() => Self::new(206, &body[from..])
                .with("content-range", format!("bytes {from}-{}/{}", body.len() - 1, body.len())),
            Some(_) => Self::new(416, ""),
            None => Self::new(200, body),
        }
    }
}

/// What a server answers.
pub(super) type Answers = Box<dyn Fn(&Asked) -> Served + Send + Sync>;

pub(super) struct Server {
    pub(super) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(super) fn start(tls: Option<Arc<ServerConfig>>, answers: Answers) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // Whoever asks may go at any time.
                drop(match &tls {
                    None => serve(&mut stream, &kept, &answers),
                    Some(tls) => {
                        let mut session = ServerConnection::new(Arc::clone(tls)).unwrap();
                        let mut secure = rustls::Stream::new(&mut session, &mut stream);
                        serve(&mut secure, &kept, &answers)
                    }
                });
            }
        });
        Self { port, asked }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    stream: &mut (impl Read + Write),
    kept: &Mutex<Vec<Asked>>,
    answers: &Answers,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(());
        }
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ').map(str::to_owned);
    let (method, path) = (first.next().unwrap(), first.next().unwrap());
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut asked = Asked { method, path, headers, body: Vec::new() };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body.resize(length, 0);
    stream.read_exact(&mut asked.body)?;
    kept.lock().unwrap().push(asked.clone());
    let reply = answers(&asked);
    let mut out = format!("HTTP/1.1 {} X\r\n", reply.status);
    for (name, value) in &reply.headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("\r\n");
    stream.write_all(out.as_bytes())?;
    if reply.is_endless {
        loop {
            stream.write_all(format!("{:x}\r\n", reply.body.len()).as_bytes())?;
            stream.write_all(&reply.body)?;
            stream.write_all(b"\r\n")?;
        }
    }
    stream.write_all(&reply.body)?;
    stream.flush()
}
