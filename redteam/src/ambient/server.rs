//! A server on loopback that keeps what it was sent.
//!
//! # Not here
//! Who sends (`ambient`).

use core::net::Ipv4Addr;
use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    last: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Server {
    /// A server that answers until the process ends.
    pub(super) fn start() -> Result<Self, String> {
        let why = |why: io::Error| format!("no server on loopback: {why}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(why)?;
        let port = listener.local_addr().map_err(why)?.port();
        let last = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&last);
        thread::Builder::new()
            .name("redteam-server".to_owned())
            .spawn(move || {
                // One that goes away in the middle has sent nothing.
                for mut stream in listener.incoming().flatten() {
                    let Ok(request) = receive(&mut stream) else { continue };
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
                    drop(stream.write_all(ANSWER));
                }
            })
            .map_err(why)?;
        Ok(Self { port, last })
    }

    /// The last request that was answered, as it came.
    pub(super) fn last(&self) -> Option<Vec<u8>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One request, which says how long it is.
fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Ok(request);
            }
        }
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
