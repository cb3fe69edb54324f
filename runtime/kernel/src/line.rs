//! Ends of channels that a task holds, whatever lies at the other one, and listeners.
//!
//! A channel inside the machine has a task at its other end. A connection that was
//! accepted has a peer there, of whom nothing is known but which entry let it in.
//!
//! # Invariants
//! - I5: what a peer sends, and that it sends nothing, is from outside. It carries the
//!   compartments of the entry, and all that was sent to any peer of that listener:
//!   one program may connect twice.
//! - Nothing is taken from a peer but into a call that asks for it.
//! - Where a message went out in part, nothing follows it.
//!
//! # Not here
//! Queues between tasks (`channel`). Which peers are denied (gate 4's scope).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll};

use synapse_boundary::scope::Terms;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_primitives::Labelled;
use synapse_primitives::platform::{Connection, Listener as Device};
use synapse_reply::Fault;

use crate::channel::{BYTES, End, Pantry, Risen, Shelf};

/// Bytes that one call takes from a peer at most.
const PIECE: usize = 1 << 16;
/// Connections from denied addresses that one look sends away.
const TURNED_AWAY: usize = 64;

/// One end of a channel.
pub(crate) enum Line {
    Inside(End),
    Outside(Peer),
}

/// A message on its way.
pub(crate) struct Sending {
    message: Option<Labelled<Vec<u8>>>,
    /// Bytes of it that are sent.
    from: usize,
}

impl Sending {
    pub(crate) const fn new(message: Labelled<Vec<u8>>) -> Self {
        Self { message: Some(message), from: 0 }
    }
}

impl Line {
    pub(crate) fn poll_send(
        &self,
        sending: &mut Sending,
        pantry: &Arc<Pantry>,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<(), Fault>>> {
        match self {
            Self::Inside(end) => end.poll_send(&mut sending.message, pantry, context),
            Self::Outside(peer) => peer.poll_send(sending, context),
        }
    }

    pub(crate) fn poll_receive(
        &self,
        max: usize,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<Vec<u8>, Fault>>> {
        match self {
            Self::Inside(end) => end.poll_receive(max, context),
            Self::Outside(peer) => peer.poll_receive(max, context),
        }
    }

    /// The label of what is learned of the other end by a wait in vain.
    pub(crate) fn far(&self) -> Label {
        match self {
            Self::Inside(end) => end.far(),
            Self::Outside(peer) => peer.told.label(),
        }
    }

    /// Gives it to another task.
    pub(crate) fn hand_over(&self, holder: &Arc<Risen>) {
        match self {
            Self::Inside(end) => end.hand_over(holder),
            // Who is at the other end does not change.
            Self::Outside(_) => {}
        }
    }

    /// What the other end is cleared for, if it is off the machine.
    pub(crate) const fn peer(&self) -> Option<Secrecy> {
        match self {
            Self::Inside(_) => None,
            Self::Outside(peer) => Some(peer.clear),
        }
    }
}

/// What listens. Dropped, it is closed.
pub(crate) struct Listener {
    device: Box<dyn Device>,
    clear: Secrecy,
    /// What its peers may tell of.
    told: Arc<Risen>,
    _socket: Shelf,
}

impl Listener {
    pub(crate) fn new(device: Box<dyn Device>, terms: Terms, socket: Shelf) -> Self {
        let told = Risen::new(Label::new(Integrity::Ingested, terms.own, Origin::NONE));
        Self { device, clear: terms.clear, told, _socket: socket }
    }

    pub(crate) fn far(&self) -> Label {
        self.told.label()
    }

    /// The next connection between addresses that are admitted; others are closed.
    pub(crate) fn poll_accept(
        &self,
        admits: &(dyn Fn(IpAddr) -> bool + Sync),
        context: &Context<'_>,
    ) -> Poll<Result<Box<dyn Connection>, Fault>> {
        for _ in 0..TURNED_AWAY {
            match self.device.poll_accept(context) {
                Poll::Ready(Ok(came)) if !(admits(came.peer) && admits(came.here)) => {}
                Poll::Ready(came) => return Poll::Ready(came.map(|came| came.connection)),
                Poll::Pending => return Poll::Pending,
            }
        }
        // Others go on before more are looked at.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// A connection of its own.
    pub(crate) fn line(&self, connection: Box<dyn Connection>, socket: Shelf) -> Line {
        let (clear, told) = (self.clear, Arc::clone(&self.told));
        let midway = AtomicBool::new(false);
        Line::Outside(Peer { connection, clear, told, midway, _socket: socket })
    }
}

/// A connection with a peer. Dropped, it is closed.
pub(crate) struct Peer {
    connection: Box<dyn Connection>,
    clear: Secrecy,
    told: Arc<Risen>,
    /// Whether a part of a message is sent and the rest is not.
    midway: AtomicBool,
    _socket: Shelf,
}

impl Peer {
    fn poll_send(
        &self,
        sending: &mut Sending,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<(), Fault>>> {
        let Sending { message: Some(message), from } = sending else {
            return Poll::Ready(Labelled::new(Ok(()), Label::SYSTEM));
        };
        if message.value().len() > BYTES {
            return Poll::Ready(Labelled::new(Err(Fault::TooLarge), Label::SYSTEM));
        }
        if *from == 0 && self.midway.load(Ordering::Relaxed) {
            return Poll::Ready(Labelled::new(Err(Fault::Closed), self.told.label()));
        }
        // It may come back from now on. Which record brought it, who receives it adds.
        self.told.rise(Label { origin: Origin::NONE, ..message.label() });
        while let Some(rest) = message.value().get(*from..).filter(|rest| !rest.is_empty()) {
            match self.connection.poll_write(context, rest) {
                Poll::Ready(Ok(sent)) => *from = from.saturating_add(sent),
                Poll::Ready(Err(fault)) => {
                    return Poll::Ready(Labelled::new(Err(fault), self.told.label()));
                }
                Poll::Pending => return Poll::Pending,
            }
            self.midway.store(true, Ordering::Relaxed);
        }
        self.midway.store(false, Ordering::Relaxed);
        Poll::Ready(Labelled::new(Ok(()), Label::SYSTEM))
    }

    fn poll_receive(
        &self,
        max: usize,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<Vec<u8>, Fault>>> {
        let mut bytes = vec![0; max.min(PIECE)];
        let came = if max == 0 {
            Ok(bytes)
        } else {
            match self.connection.poll_read(context, &mut bytes) {
                Poll::Ready(Ok(0)) => Err(Fault::Closed),
                Poll::Ready(Ok(length)) => {
                    bytes.truncate(length);
                    Ok(bytes)
                }
                Poll::Ready(Err(fault)) => Err(fault),
                Poll::Pending => return Poll::Pending,
            }
        };
        Poll::Ready(Labelled::new(came, self.told.label()))
    }
}
