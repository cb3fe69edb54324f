//! What a task's handles stand for: ends of channels, children, and listeners.
//!
//! The table says which handles a call may name; here stands what they are. A child
//! begins with its parent's next call that is no `channel_grant`, so that what it is
//! given first stands in its first input.
//!
//! # Invariants
//! - I10: a handle is the task's own; granted, it is gone here before it is there.
//! - I6: a child begins with the join of its parent's mark and its task's label, and
//!   what comes of it carries the mark that it ended with.
//! - A handle that is closed, or dropped with its task, ends what it stands for.
//!
//! # Not here
//! What a child does while it lives (`child`). Queues (`channel`), peers (`line`).

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use synapse_abi::registry::Kind;
use synapse_boundary::capability::End as Entry;
use synapse_boundary::scope::Terms;
use synapse_boundary::{Label, Secrecy, Table, Warrants};
use synapse_primitives::hands::{Carries, Hands, Spawn};
use synapse_primitives::{Labelled, Platform};
use synapse_reply::Fault;

use crate::channel::{Risen, channel};
use crate::child::{self, Post};
use crate::crew::{Crew, Job, wait};
use crate::grant::Grant;
use crate::line::{Line, Listener, Sending};
use crate::record::Sink;

/// Handles that one task may hold at once.
const HANDLES: usize = 4096;
/// How far below the run's own task a child may stand.
const DEPTH: u8 = 4;
/// Milliseconds that a full channel is waited for.
const PATIENCE: u64 = 60_000;

/// The handles of one task.
pub(crate) struct Holding<P, S> {
    pub(crate) table: Table,
    pub(crate) crew: Arc<Crew<P, S>>,
    pub(crate) seat: Seat,
    things: BTreeMap<u64, Thing<P, S>>,
    /// Children that begin with the next call.
    fresh: Vec<u64>,
}

/// Where a task stands among those of its run.
pub(crate) struct Seat {
    pub(crate) task: u64,
    pub(crate) depth: u8,
    pub(crate) grant: Arc<Grant>,
    /// Calls that are left of its grant.
    pub(crate) calls: Arc<AtomicU64>,
    pub(crate) held_room: usize,
    pub(crate) risen: Arc<Risen>,
    /// What lies between it and its parent.
    pub(crate) post: Option<Arc<Post>>,
    /// Those that it begins with.
    pub(crate) warrants: Warrants,
    /// Whether the turn is over in which they were minted, at the end of which they die
    /// wherever they are.
    pub(crate) is_over: Arc<AtomicBool>,
}

enum Thing<P, S> {
    Line(Line),
    Child(Child<P, S>),
    Listener(Listener),
}

/// A child, as its parent holds it. Dropped, it ends.
pub(crate) struct Child<P, S> {
    pub(crate) crew: Arc<Crew<P, S>>,
    pub(crate) number: u64,
    pub(crate) post: Arc<Post>,
    /// Until it begins.
    pub(crate) job: Option<Job>,
}

impl<P, S> Drop for Child<P, S> {
    fn drop(&mut self) {
        drop(self.job.take());
        self.crew.end(self.number);
        if let Some(staff) = &self.crew.staff {
            staff.places.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<P, S> Holding<P, S> {
    pub(crate) fn new(granted: u32, crew: Arc<Crew<P, S>>, seat: Seat) -> Self {
        let things = BTreeMap::new();
        Self { table: Table::new(granted), crew, seat, things, fresh: Vec::new() }
    }

    /// Takes what its parent gave meanwhile.
    pub(crate) fn collect(&mut self) {
        let Some(post) = self.seat.post.clone() else { return };
        for line in post.given() {
            // What finds no room is closed.
            let _ = self.keep_line(line);
        }
    }

    /// Lets the children begin that were started by the calls before.
    pub(crate) fn begin(&mut self) {
        for handle in mem::take(&mut self.fresh) {
            if let Some(Thing::Child(child)) = self.things.get_mut(&handle)
                && let Some(job) = child.job.take()
            {
                self.crew.begin(child.number, job);
            }
        }
    }

    /// What a turn's input tells of them.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (u64, &'static str)> {
        self.things.iter().map(|(number, thing)| match thing {
            Thing::Line(_) => (*number, "channel"),
            Thing::Child(_) => (*number, "agent"),
            Thing::Listener(_) => (*number, "listener"),
        })
    }

    /// Ends the turn in which warrants were minted and moved to children.
    pub(crate) fn end_turn(&mut self) {
        mem::take(&mut self.seat.is_over).store(true, Ordering::Relaxed);
    }

    /// Closes all.
    pub(crate) fn clear(&mut self) {
        let things = mem::take(&mut self.things);
        for handle in things.keys() {
            self.table.close(*handle);
        }
    }

    fn keep(
        &mut self,
        (kind, peer): (Kind, Option<Secrecy>),
        thing: Thing<P, S>,
    ) -> Result<u64, Fault> {
        if self.things.len() >= HANDLES {
            return Err(Fault::TooMany);
        }
        let number = self.table.open(Entry { kind, peer }).ok_or(Fault::TooMany)?;
        self.things.insert(number, thing);
        Ok(number)
    }

    fn keep_line(&mut self, line: Line) -> Result<u64, Fault> {
        self.keep((Kind::Channel, line.peer()), Thing::Line(line))
    }

    fn line(&self, handle: u64) -> Result<&Line, Labelled<Fault>> {
        match self.things.get(&handle) {
            Some(Thing::Line(line)) => Ok(line),
            Some(Thing::Child(_) | Thing::Listener(_)) | None => {
                Err(Labelled::new(Fault::Closed, Label::SYSTEM))
            }
        }
    }
}

impl<P: Platform + 'static, S: Sink + 'static> Hands for Holding<P, S> {
    async fn spawn(&mut self, mut order: Spawn<'_>) -> Result<u64, Fault> {
        let crew = Arc::clone(&self.crew);
        let staff = crew.staff.as_ref().ok_or(Fault::Unsupported)?;
        if self.seat.depth >= DEPTH || self.things.len() >= HANDLES {
            return Err(Fault::TooMany);
        }
        let package = staff.starter.find(order.package).await?;
        let left = self.seat.calls.load(Ordering::Relaxed);
        let grant = self.seat.grant.child(order.grant, left, package.bounds.as_deref());
        let grant = Arc::new(grant.map_err(|_| Fault::Changed)?);
        let less = |places: usize| places.checked_sub(1);
        let place = staff.places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        place.map_err(|_| Fault::TooMany)?;
        let number = crew.number();
        let risen = Risen::new(order.task.label());
        let post = Post::new(Arc::clone(&risen));
        // From here on the place is the child's.
        let mut child = Child { crew, number, post: Arc::clone(&post), job: None };
        let calls = grant.calls;
        let seat = Seat {
            task: number,
            depth: self.seat.depth.saturating_add(1),
            calls: Arc::new(AtomicU64::new(calls)),
            held_room: self.seat.held_room / SHARE,
            grant,
            risen,
            post: Some(post),
            warrants: mem::take(&mut order.warrants),
            is_over: Arc::clone(&self.seat.is_over),
        };
        child.job = Some(child::begin(&self.crew, seat, package, order, self.seat.task)?);
        self.seat.calls.store(left.saturating_sub(calls), Ordering::Relaxed);
        let handle = self.keep((Kind::Agent, None), Thing::Child(child))?;
        self.fresh.push(handle);
        Ok(handle)
    }

    async fn wait(&mut self, agent: u64, timeout: u64) -> Labelled<Result<Vec<u8>, Fault>> {
        let Some(Thing::Child(child)) = self.things.get(&agent) else {
            return Labelled::new(Err(Fault::Closed), Label::SYSTEM);
        };
        let (post, crew) = (&*child.post, &*self.crew);
        let look = |context: &core::task::Context<'_>| post.poll_report(context);
        match wait(&*crew.platform, &crew.cancel, timeout, look).await {
            Ok(report) => report,
            Err(fault) => Labelled::new(Err(fault), post.risen.label()),
        }
    }

    fn channel(&mut self, carries: Carries) -> Result<[u64; 2], Fault> {
        if self.things.len().saturating_add(2) > HANDLES {
            return Err(Fault::TooMany);
        }
        let [a, b] = channel(carries, &self.seat.risen).map(Line::Inside);
        Ok([self.keep_line(a)?, self.keep_line(b)?])
    }

    async fn send(
        &mut self,
        channel: u64,
        message: Labelled<Vec<u8>>,
    ) -> Labelled<Result<(), Fault>> {
        let line = match self.line(channel) {
            Ok(line) => line,
            Err(fault) => return fault.map(Label::SYSTEM, Err),
        };
        let (crew, mut sending) = (&*self.crew, Sending::new(message));
        let look =
            |context: &core::task::Context<'_>| line.poll_send(&mut sending, &crew.pantry, context);
        match wait(&*crew.platform, &crew.cancel, PATIENCE, look).await {
            Ok(sent) => sent,
            Err(fault) => Labelled::new(Err(fault), line.far()),
        }
    }

    async fn receive(
        &mut self,
        channel: u64,
        max: usize,
        timeout: u64,
    ) -> Labelled<Result<Vec<u8>, Fault>> {
        let line = match self.line(channel) {
            Ok(line) => line,
            Err(fault) => return fault.map(Label::SYSTEM, Err),
        };
        let crew = &*self.crew;
        let look = |context: &core::task::Context<'_>| line.poll_receive(max, context);
        match wait(&*crew.platform, &crew.cancel, timeout, look).await {
            Ok(came) => came,
            Err(fault) => Labelled::new(Err(fault), line.far()),
        }
    }

    fn listen(&mut self, at: SocketAddr, terms: Terms) -> Result<u64, Fault> {
        let socket = self.crew.sockets.take(1).ok_or(Fault::TooMany)?;
        let listener = Listener::new(self.crew.platform.listen(at)?, terms, socket);
        self.keep((Kind::Listener, Some(terms.clear)), Thing::Listener(listener))
    }

    async fn accept(
        &mut self,
        listener: u64,
        timeout: u64,
        admits: &(dyn Fn(IpAddr) -> bool + Sync),
    ) -> Labelled<Result<u64, Fault>> {
        let Some(Thing::Listener(listener)) = self.things.get(&listener) else {
            return Labelled::new(Err(Fault::Closed), Label::SYSTEM);
        };
        let crew = &*self.crew;
        // Where there is no room, whoever comes waits outside.
        let socket = crew.sockets.take(1).filter(|_| self.things.len() < HANDLES);
        let Some(socket) = socket else {
            return Labelled::new(Err(Fault::TooMany), listener.far());
        };
        let look = |context: &core::task::Context<'_>| listener.poll_accept(admits, context);
        match wait(&*crew.platform, &crew.cancel, timeout, look).await {
            Ok(Ok(connection)) => {
                let (line, far) = (listener.line(connection, socket), listener.far());
                Labelled::new(self.keep_line(line), far)
            }
            Ok(Err(fault)) | Err(fault) => Labelled::new(Err(fault), listener.far()),
        }
    }

    fn close(&mut self, handle: u64) {
        self.table.close(handle);
        drop(self.things.remove(&handle));
    }

    fn grant(&mut self, channel: u64, agent: u64) -> Labelled<Result<(), Fault>> {
        let Some(Thing::Child(child)) = self.things.get(&agent) else {
            return Labelled::new(Err(Fault::Closed), Label::SYSTEM);
        };
        let post = Arc::clone(&child.post);
        if post.is_over() {
            return Labelled::new(Err(Fault::Closed), post.risen.label());
        }
        let Some(Thing::Line(line)) = self.things.remove(&channel) else {
            return Labelled::new(Err(Fault::Closed), Label::SYSTEM);
        };
        self.table.close(channel);
        line.hand_over(&post.risen);
        post.give(line);
        Labelled::new(Ok(()), Label::SYSTEM)
    }
}

/// A child's held values have this part of the room that its parent's have.
const SHARE: usize = 16;
