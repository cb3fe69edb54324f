//! Listeners and connections of plain values
//!
//! A test takes the part of the program that connects: what it sends, what it takes
//! and when it hangs up, is all in its hands.
//!
//! # Invariants
//! - What waits is bounded, connections and bytes alike; more is not taken.
//!
//! # Not here
//! Which addresses this machine has: all of them.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    vec::Vec,
};
use core::{
    fmt,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll, Waker},
};

use spin::Mutex;

use crate::{
    Fault,
    platform::{Accepted, Connection, Listener},
};

/// Connections that wait to be accepted.
const BACKLOG: usize = 128;
/// Bytes that wait in one direction.
const BYTES: usize = 1 << 16;

/// What listens, by its address.
#[derive(Debug, Default)]
pub(super) struct Wire(Mutex<BTreeMap<SocketAddr, Arc<Mutex<Door>>>>);

/// What waits at one address.
#[derive(Debug, Default)]
struct Door {
    waiting: VecDeque<(IpAddr, Line)>,
    is_closed: bool,
    waker: Option<Waker>,
}

impl Wire {
    pub(super) fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
        let mut doors = self.0.lock();
        if doors.get(&at).is_some_and(|door| !door.lock().is_closed) {
            return Err(Fault::Exists);
        }
        let door = Arc::<Mutex<Door>>::default();
        doors.insert(at, Arc::clone(&door));
        Ok(Box::new(Open { door, at }))
    }

    pub(super) fn connect(&self, to: SocketAddr, from: IpAddr) -> Option<Peer> {
        let doors = self.0.lock();
        let mut door = doors.get(&to)?.lock();
        if door.is_closed || door.waiting.len() >= BACKLOG {
            return None;
        }
        let line = Line::default();
        door.waiting.push_back((from, line.clone()));
        wake(&mut door.waker);
        Some(Peer(line))
    }
}

struct Open {
    door: Arc<Mutex<Door>>,
    at: SocketAddr,
}

impl Listener for Open {
    fn poll_accept(&self, context: &Context<'_>) -> Poll<Result<Accepted, Fault>> {
        let mut door = self.door.lock();
        let Some((peer, line)) = door.waiting.pop_front() else {
            door.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let connection = Box::new(Ours(line));
        Poll::Ready(Ok(Accepted { peer, here: self.at.ip(), connection }))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut door = self.door.lock();
        door.is_closed = true;
        for (_, line) in door.waiting.drain(..) {
            line.close(US);
        }
    }
}

/// A connection, as both of its ends have it.
#[derive(Clone, Debug, Default)]
struct Line(Arc<Mutex<[Half; 2]>>);

/// What one end has to take, and whether it is there.
#[derive(Debug, Default)]
struct Half {
    bytes: VecDeque<u8>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// Which halves are one end's own and the other's.
type Side = fn(&mut [Half; 2]) -> (&mut Half, &mut Half);
const US: Side = |[a, b]| (a, b);
const THEM: Side = |[a, b]| (b, a);

impl Line {
    fn put(&self, side: Side, bytes: &[u8]) -> Result<usize, Fault> {
        let mut halves = self.0.lock();
        let (own, other) = side(&mut halves);
        if own.is_closed || other.is_closed {
            return Err(Fault::Closed);
        }
        let room = BYTES.saturating_sub(other.bytes.len());
        let put = bytes.get(..room).unwrap_or(bytes);
        other.bytes.extend(put);
        wake(&mut other.waker);
        Ok(put.len())
    }

    /// How many bytes came; `None` where some may come yet.
    fn take(&self, side: Side, into: &mut [u8]) -> Option<usize> {
        let mut halves = self.0.lock();
        let (own, other) = side(&mut halves);
        let length = own.bytes.len().min(into.len());
        for (place, byte) in into.iter_mut().zip(own.bytes.drain(..length)) {
            *place = byte;
        }
        wake(&mut other.waker);
        (length > 0 || other.is_closed).then_some(length)
    }

    fn close(&self, side: Side) {
        let mut halves = self.0.lock();
        let (own, other) = side(&mut halves);
        own.is_closed = true;
        wake(&mut other.waker);
    }
}

struct Ours(Line);

impl Ours {
    fn wait<T>(&self, context: &Context<'_>) -> Poll<T> {
        US(&mut self.0.0.lock()).0.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Connection for Ours {
    fn poll_read(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<Result<usize, Fault>> {
        match self.0.take(US, into) {
            Some(came) => Poll::Ready(Ok(came)),
            None => self.wait(context),
        }
    }

    fn poll_write(&self, context: &Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Fault>> {
        match self.0.put(US, bytes) {
            Ok(0) => self.wait(context),
            sent => Poll::Ready(sent),
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.0.close(US);
    }
}

/// A program that connected. Dropped, it hangs up.
pub struct Peer(Line);

impl fmt::Debug for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Peer").finish()
    }
}

impl Peer {
    /// Sends the first of these bytes: how many; `Closed` where nobody takes them.
    ///
    /// # Errors
    /// `Closed`.
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Fault> {
        self.0.put(THEM, bytes)
    }

    /// Takes what came.
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        let mut bytes = alloc::vec![0; BYTES];
        let length = self.0.take(THEM, &mut bytes).unwrap_or_default();
        bytes.truncate(length);
        bytes
    }

    /// Whether the other end is gone.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        THEM(&mut self.0.0.lock()).1.is_closed
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.0.close(THEM);
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
