//! Channels inside one machine: two ends, and a bounded queue in each direction.
//!
//! An end belongs to one task at a time. Whoever holds the other one decides what
//! comes and whether anything does, so an answer of either kind carries a label.
//!
//! # Invariants
//! - I4, I5: a message is received with the label that it was sent with; that there
//!   is none, or no room, with all that the other end's holders had read.
//! - What is queued counts against the bytes of its run, until it is received or lost.
//!
//! # Not here
//! Which handle is which end (`holding`). Waiting for a time (`wait`).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};

use spin::Mutex;
use synapse_boundary::Label;
use synapse_primitives::Labelled;
use synapse_primitives::hands::Carries;
use synapse_reply::Fault;

/// Messages that wait in one direction.
const MESSAGES: usize = 64;
/// Bytes of them, and so of one message.
pub(crate) const BYTES: usize = 1 << 20;

/// Bytes that a run may keep for its tasks until they take them, or sockets that it may
/// have open.
#[derive(Debug)]
pub(crate) struct Pantry(AtomicUsize);

/// Some of those, taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Shelf {
    pantry: Arc<Pantry>,
    taken: usize,
}

impl Pantry {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(all)))
    }

    pub(crate) fn take(self: &Arc<Self>, taken: usize) -> Option<Shelf> {
        let less = |left: usize| left.checked_sub(taken);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok()?;
        Some(Shelf { pantry: Arc::clone(self), taken })
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        self.pantry.0.fetch_add(self.taken, Ordering::Relaxed);
    }
}

/// How far a task's mark has risen, over all its turns: for those who learn from it
/// that nothing came.
#[derive(Debug)]
pub(crate) struct Risen(Mutex<Label>);

impl Risen {
    pub(crate) fn new(mark: Label) -> Arc<Self> {
        Arc::new(Self(Mutex::new(mark)))
    }

    pub(crate) fn rise(&self, mark: Label) {
        let mut risen = self.0.lock();
        *risen = risen.join(mark);
    }

    pub(crate) fn label(&self) -> Label {
        *self.0.lock()
    }
}

/// One end of a channel. Dropped, it is closed.
#[derive(Debug)]
pub(crate) struct End {
    channel: Arc<Mutex<Channel>>,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    A,
    B,
}

#[derive(Debug)]
struct Channel {
    carries: Carries,
    a: Half,
    b: Half,
}

/// What is known of one end, and what waits there to be received.
#[derive(Debug)]
struct Half {
    queue: VecDeque<Parcel>,
    bytes: usize,
    is_open: bool,
    holder: Arc<Risen>,
    /// What its earlier holders had read.
    before: Label,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Parcel {
    message: Labelled<Vec<u8>>,
    /// Bytes of it that were received already.
    from: usize,
    _shelf: Shelf,
}

/// Makes a channel whose ends both belong to the task of this mark.
pub(crate) fn channel(carries: Carries, holder: &Arc<Risen>) -> [End; 2] {
    let half = || Half {
        queue: VecDeque::new(),
        bytes: 0,
        is_open: true,
        holder: Arc::clone(holder),
        before: Label::SYSTEM,
        waker: None,
    };
    let channel = Arc::new(Mutex::new(Channel { carries, a: half(), b: half() }));
    [Side::A, Side::B].map(|side| End { channel: Arc::clone(&channel), side })
}

impl End {
    /// Gives it to another task.
    pub(crate) fn hand_over(&self, holder: &Arc<Risen>) {
        let mut channel = self.channel.lock();
        let (own, _) = channel.halves(self.side);
        own.before = own.learned();
        own.holder = Arc::clone(holder);
    }

    /// Sends the message once there is room; it is taken where it was sent.
    pub(crate) fn poll_send(
        &self,
        message: &mut Option<Labelled<Vec<u8>>>,
        pantry: &Arc<Pantry>,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<(), Fault>>> {
        let mut channel = self.channel.lock();
        let carries = channel.carries;
        let (own, other) = channel.halves(self.side);
        let length = message.as_ref().map_or(0, |message| message.value().len());
        if length > BYTES {
            return Poll::Ready(Labelled::new(Err(Fault::TooLarge), Label::SYSTEM));
        }
        if !other.is_open {
            return Poll::Ready(Labelled::new(Err(Fault::Closed), other.learned()));
        }
        if length == 0 && carries == Carries::Bytes {
            return Poll::Ready(Labelled::new(Ok(()), Label::SYSTEM));
        }
        let fits = other.queue.len() < MESSAGES && length <= BYTES.saturating_sub(other.bytes);
        let Some(taken) = fits.then(|| pantry.take(length)).flatten() else {
            own.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        if let Some(message) = message.take() {
            other.bytes = other.bytes.saturating_add(length);
            other.queue.push_back(Parcel { message, from: 0, _shelf: taken });
        }
        other.wake();
        Poll::Ready(Labelled::new(Ok(()), Label::SYSTEM))
    }

    /// Receives a message, or what there is of the next bytes.
    pub(crate) fn poll_receive(
        &self,
        max: usize,
        context: &Context<'_>,
    ) -> Poll<Labelled<Result<Vec<u8>, Fault>>> {
        let mut channel = self.channel.lock();
        let carries = channel.carries;
        let (own, other) = channel.halves(self.side);
        let Some(parcel) = own.queue.front_mut() else {
            if !other.is_open {
                return Poll::Ready(Labelled::new(Err(Fault::Closed), other.learned()));
            }
            own.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let label = parcel.message.label();
        let rest = parcel.message.value().get(parcel.from..).unwrap_or_default();
        if carries == Carries::Messages && rest.len() > max {
            return Poll::Ready(Labelled::new(Err(Fault::TooLarge), label));
        }
        let taken = rest.get(..max).unwrap_or(rest).to_vec();
        parcel.from = parcel.from.saturating_add(taken.len());
        if parcel.from >= parcel.message.value().len() {
            own.bytes = own.bytes.saturating_sub(parcel.message.value().len());
            own.queue.pop_front();
            other.wake();
        }
        Poll::Ready(Labelled::new(Ok(taken), label))
    }

    /// The label of what is learned of the other end by a wait in vain.
    pub(crate) fn far(&self) -> Label {
        self.channel.lock().halves(self.side).1.learned()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut channel = self.channel.lock();
        let (own, other) = channel.halves(self.side);
        own.is_open = false;
        own.before = own.learned();
        // Nobody can receive it any more.
        let lost = core::mem::take(&mut own.queue);
        other.wake();
        drop(channel);
        drop(lost);
    }
}

impl Channel {
    /// The end on this side, and the other one.
    const fn halves(&mut self, side: Side) -> (&mut Half, &mut Half) {
        match side {
            Side::A => (&mut self.a, &mut self.b),
            Side::B => (&mut self.b, &mut self.a),
        }
    }
}

impl Half {
    fn learned(&self) -> Label {
        self.before.join(self.holder.label())
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use synapse_boundary::{Integrity, Origin, Secrecy};

    use super::*;

    const READ: Label = Label::new(Integrity::Ingested, Secrecy::FILES, Origin::NONE);

    fn send(
        end: &End,
        bytes: &[u8],
        label: Label,
        pantry: &Arc<Pantry>,
    ) -> Option<Result<(), Fault>> {
        let mut message = Some(Labelled::new(bytes.to_vec(), label));
        match end.poll_send(&mut message, pantry, &Context::from_waker(Waker::noop())) {
            Poll::Ready(sent) => Some(*sent.value()),
            Poll::Pending => None,
        }
    }

    fn receive(end: &End, max: usize) -> Option<Labelled<Result<Vec<u8>, Fault>>> {
        match end.poll_receive(max, &Context::from_waker(Waker::noop())) {
            Poll::Ready(came) => Some(came),
            Poll::Pending => None,
        }
    }

    fn came(end: &End, max: usize) -> (Result<Vec<u8>, Fault>, Label) {
        let came = receive(end, max).unwrap();
        (came.value().clone(), came.label())
    }

    #[test]
    fn i5_what_is_received_has_the_label_that_it_was_sent_with() {
        let (pantry, holder) = (Pantry::new(1 << 20), Risen::new(Label::SYSTEM));
        let [a, b] = channel(Carries::Messages, &holder);
        for (bytes, label) in [(&b"one"[..], READ), (b"", Label::SYSTEM), (b"three", READ)] {
            assert_eq!(send(&a, bytes, label, &pantry), Some(Ok(())));
        }
        assert_eq!(came(&b, 3), (Ok(b"one".to_vec()), READ));
        assert_eq!(came(&b, 0), (Ok(vec![]), Label::SYSTEM));
        assert_eq!(came(&b, 4), (Err(Fault::TooLarge), READ), "it stays");
        assert_eq!(came(&b, 5), (Ok(b"three".to_vec()), READ));
        assert!(receive(&b, 9).is_none());
        assert_eq!(send(&b, b"back", READ, &pantry), Some(Ok(())), "it has two directions");
        assert_eq!(came(&a, 9), (Ok(b"back".to_vec()), READ));
    }

    #[test]
    fn bytes_come_in_parts_and_no_label_reaches_those_of_another() {
        let (pantry, holder) = (Pantry::new(1 << 20), Risen::new(Label::SYSTEM));
        let [a, b] = channel(Carries::Bytes, &holder);
        for (bytes, label) in [(&b"abc"[..], Label::SYSTEM), (b"", READ), (b"de", READ)] {
            assert_eq!(send(&a, bytes, label, &pantry), Some(Ok(())));
        }
        assert_eq!(came(&b, 2), (Ok(b"ab".to_vec()), Label::SYSTEM));
        assert_eq!(came(&b, 9), (Ok(b"c".to_vec()), Label::SYSTEM));
        assert_eq!(came(&b, 9), (Ok(b"de".to_vec()), READ));
    }

    #[test]
    fn a_queue_is_bounded_and_what_is_received_makes_room() {
        let (pantry, holder) = (Pantry::new(BYTES + 10), Risen::new(Label::SYSTEM));
        let [a, b] = channel(Carries::Messages, &holder);
        for _ in 0..MESSAGES {
            assert_eq!(send(&a, b"", READ, &pantry), Some(Ok(())));
        }
        assert_eq!(send(&a, b"", READ, &pantry), None, "as many as there may be");
        came(&b, 0).0.unwrap();
        let whole = vec![0; BYTES];
        assert_eq!(send(&a, &whole, READ, &pantry), Some(Ok(())));
        for _ in 1..MESSAGES {
            came(&b, 0).0.unwrap();
        }
        assert_eq!(send(&a, b"x", READ, &pantry), None, "as many bytes as there may be");
        assert_eq!(send(&b, &[0; 11], READ, &pantry), None, "as many as the run has");
        assert_eq!(send(&b, &vec![0; BYTES + 1], READ, &pantry), Some(Err(Fault::TooLarge)));
        drop((a, b));
        assert!(pantry.take(BYTES + 10).is_some(), "what was lost is free again");
    }

    #[test]
    fn i5_a_closed_end_and_an_empty_queue_tell_of_its_holders() {
        let (pantry, parent) = (Pantry::new(1 << 20), Risen::new(Label::SYSTEM));
        let child = Risen::new(Label::SYSTEM);
        let [a, b] = channel(Carries::Bytes, &parent);
        b.hand_over(&child);
        assert_eq!(a.far(), Label::SYSTEM);
        child.rise(READ);
        assert_eq!(a.far(), READ);
        send(&b, b"last", Label::SYSTEM, &pantry);
        drop(b);
        assert_eq!(came(&a, 9), (Ok(b"last".to_vec()), Label::SYSTEM));
        assert_eq!(came(&a, 9), (Err(Fault::Closed), READ));
        assert_eq!(send(&a, b"x", READ, &pantry), Some(Err(Fault::Closed)));
    }
}
