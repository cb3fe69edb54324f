//! A platform of plain values: the semantics of the disk in their shortest form.
//!
//! Tests of the kernel and of guests run on it: the clock stands still until it
//! is moved, the screen keeps what it was shown, and no two runs differ.
//!
//! # Invariants
//! - Every call answers as the disk does; one table of behaviours asserts it.
//!
//! # Not here
//! Links, devices, hard links and names that are not text: no method here can
//! make one.

use alloc::{
    borrow::ToOwned,
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{
    fmt,
    future::poll_fn,
    net::{IpAddr, SocketAddr},
    ops::Bound,
    task::Poll,
};

use spin::Mutex;

use crate::{
    Fault, Platform,
    execute::join,
    mounts::{Access, MountError, Place, Table, below, split_last},
    platform::{
        Admits, Asker, Connectors, Entry, Fetch, Fetched, Journal, Kind, Listener, Listing, Mode,
        Net, Shown, Use, Used, WALK_ENTRIES, WALK_LEVELS, Written, edited,
    },
    rest::{Creator, How, Index, Owner, Print, Rest, Seen, Stamp},
    state::{Standing, Tally},
};

mod wire;
pub use wire::Peer;

/// An in-memory tree of mounts with a clock that is set and a screen that is read.
pub struct Memory {
    table: Table,
    access: Vec<Access>,
    state: Mutex<State>,
    net: Option<Box<dyn Net>>,
    connectors: Option<Box<dyn Connectors>>,
    wire: wire::Wire,
}

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Memory").field("table", &self.table).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    roots: Vec<Node>,
    journal: BTreeMap<(u64, u64), Body>,
    shown: Vec<u8>,
    asked: Vec<(Vec<u8>, Asker)>,
    answers: VecDeque<Result<Vec<u8>, Fault>>,
    now_ms: u64,
    rest: Index,
    /// Numbers that were given to nodes and to their changes.
    serial: u64,
}

#[derive(Debug)]
struct Node {
    body: Body,
    modified_ms: u64,
    reserved: bool,
    /// Which one it is.
    number: u64,
    /// The last change of it.
    change: u64,
}

#[derive(Debug)]
enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<String, Node>),
}

impl Memory {
    /// Empty mounts at these guest roots.
    ///
    /// # Errors
    /// [`MountError`] for a root that is not normal or overlaps another.
    pub fn new(mounts: &[(&str, Access)]) -> Result<Self, MountError> {
        let table = Table::new(mounts.iter().map(|(root, _)| (*root).to_owned()).collect())?;
        let mut state = State::default();
        state.roots = mounts.iter().map(|_| Node::directory(0, next(&mut state.serial))).collect();
        let access = mounts.iter().map(|(_, access)| *access).collect();
        Ok(Self {
            table,
            access,
            state: Mutex::new(state),
            net: None,
            connectors: None,
            wire: wire::Wire::default(),
        })
    }

    /// The same tree beside a network that is fetched from.
    #[must_use]
    pub fn with_net(self, net: Box<dyn Net>) -> Self {
        Self { net: Some(net), ..self }
    }

    /// The same tree beside connectors.
    #[must_use]
    pub fn with_connectors(self, connectors: Box<dyn Connectors>) -> Self {
        Self { connectors: Some(connectors), ..self }
    }

    /// Connects to what listens at an address, from another one; nobody may listen, and
    /// too many may wait.
    #[must_use]
    pub fn connect(&self, to: SocketAddr, from: IpAddr) -> Option<Peer> {
        self.wire.connect(to, from)
    }

    /// Sets the clock, in milliseconds since 1970.
    pub fn set_now(&self, now_ms: u64) {
        self.state.lock().now_ms = now_ms;
    }

    /// Puts a file in place past every rule, read-only mounts included.
    ///
    /// # Errors
    /// As [`Platform::write`] with mode replace, journal and mount aside.
    pub fn place(&self, path: &str, content: &[u8]) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::NotAFile);
        };
        let mut state = self.state.lock();
        let now_ms = state.now_ms;
        let number = next(&mut state.serial);
        let (names, name) = state.make_parents(mount, rest)?;
        if names.get(name).is_some_and(|node| node.names().is_ok()) {
            return Err(Fault::NotAFile);
        }
        names.insert(name.to_owned(), Node::file(content.to_vec(), now_ms, number));
        Ok(())
    }

    /// Marks what stands at a path as Synapse's own.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn reserve(&self, path: &str) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::NotFound);
        };
        let mut state = self.state.lock();
        let (names, name) = state.parents(mount, rest)?;
        names.get_mut(name).ok_or(Fault::NotFound)?.reserved = true;
        Ok(())
    }

    /// The bytes of the file that the journal holds for a record's first change.
    #[must_use]
    pub fn journaled(&self, record: u64) -> Option<Vec<u8>> {
        match self.state.lock().journal.get(&(record, 0))? {
            Body::File(bytes) => Some(bytes.clone()),
            Body::Directory(_) => None,
        }
    }

    /// Everything shown so far.
    #[must_use]
    pub fn shown(&self) -> Vec<u8> {
        self.state.lock().shown.clone()
    }

    /// Every question so far, and who asked it.
    #[must_use]
    pub fn asked(&self) -> Vec<(Vec<u8>, Asker)> {
        self.state.lock().asked.clone()
    }

    /// What the next question that has no answer yet comes to; without one it
    /// is `Closed`.
    pub fn answer(&self, answer: Result<&[u8], Fault>) {
        self.state.lock().answers.push_back(answer.map(<[u8]>::to_vec));
    }

    fn writable(&self, mount: usize) -> Result<(), Fault> {
        match self.access.get(mount) {
            Some(Access::ReadWrite) => Ok(()),
            Some(Access::ReadOnly) => Err(Fault::ReadOnly),
            None => Err(Fault::NotFound),
        }
    }

    fn listing(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let state = self.state.lock();
        let index = &state.rest;
        let node = match self.table.place(path)? {
            Place::Above => {
                let names = self.table.names_below(path);
                let found = names.into_iter().filter(|name| *name > after);
                return Ok(page(found.map(way), limit, Rest::SYSTEM));
            }
            Place::Root(mount) => state.roots.get(mount).ok_or(Fault::NotFound)?,
            Place::Inside(mount, rest) => state.find(mount, rest)?,
        };
        let rest = index.content(path, &node.seen());
        let Body::Directory(names) = &node.body else {
            let own = node.entry(split_last(path).1, index.shown(path, &node.seen()));
            let own = Some(own).into_iter().filter(|own| &*own.name > after);
            return Ok(page(own, limit, rest));
        };
        let following = names.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let visible = following.filter(|(_, node)| !node.reserved);
        let entry = |(name, node): (&String, &Node)| {
            node.entry(name, index.shown(&join(path, name), &node.seen()))
        };
        Ok(page(visible.map(entry), limit, rest))
    }

    fn put(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: &Journal,
    ) -> Result<Written, Fault> {
        let (mount, rest) = match (self.table.place(path)?, mode) {
            (Place::Inside(mount, rest), _) => (mount, rest),
            (Place::Root(_) | Place::Above, Mode::Create | Mode::CreateProgram) => {
                return Err(Fault::Exists);
            }
            (Place::Root(_) | Place::Above, Mode::Replace | Mode::Append) => {
                return Err(Fault::NotAFile);
            }
        };
        self.writable(mount)?;
        let mut state = self.state.lock();
        let (now_ms, number) = (state.now_ms, next(&mut state.serial));
        let mut displaced = None;
        let mut bytes = Vec::new();
        let before = state.find(mount, rest).ok().map(Node::seen);
        let free = state.missing(mount, path, rest);
        let (names, name) = state.make_parents(mount, rest)?;
        let created = match (names.get(name), mode) {
            (None, _) => {
                journal.meets(Standing::absent)?;
                true
            }
            (Some(node), _) if node.reserved => return Err(Fault::Reserved),
            (Some(_), Mode::Create | Mode::CreateProgram) => return Err(Fault::Exists),
            (Some(Node { body: Body::Directory(_), .. }), _) => return Err(Fault::NotAFile),
            (Some(Node { body: Body::File(old), .. }), Mode::Append) => {
                journal.meets(|| file(old))?;
                add(&mut bytes, old)?;
                false
            }
            (Some(Node { body: Body::File(old), .. }), Mode::Replace) => {
                journal.meets(|| file(old))?;
                if count(old.len()) > journal.room {
                    return Err(Fault::JournalFull);
                }
                let mut kept = Vec::new();
                add(&mut kept, old)?;
                displaced = Some(kept);
                false
            }
        };
        add(&mut bytes, content)?;
        let length = count(bytes.len());
        let node = Node::file(bytes, now_ms, number);
        let after = node.seen();
        names.insert(name.to_owned(), node);
        let kept = displaced.as_ref().map_or(0, |old| count(old.len()));
        if let Some(old) = displaced {
            state.journal.insert((journal.record, journal.part), Body::File(old));
        }
        state.made(mount, (path, rest), &free, &journal.stamp);
        let how = match (created, mode) {
            (true, _) => How::Create,
            (false, Mode::Append) => How::Keep,
            (false, Mode::Create | Mode::CreateProgram | Mode::Replace) => How::Replace,
        };
        let before = state.wrote(path, (before, after), how, &journal.stamp);
        Ok(Written { created, displaced: kept, length, before })
    }

    fn replace_in(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: &Journal,
    ) -> Result<Written, Fault> {
        let (mount, rest) = match self.table.place(path)? {
            Place::Inside(mount, rest) => (mount, rest),
            Place::Root(_) | Place::Above => return Err(Fault::NotAFile),
        };
        self.writable(mount)?;
        let mut state = self.state.lock();
        let (now_ms, number) = (state.now_ms, next(&mut state.serial));
        let (names, name) = state.parents(mount, rest)?;
        let node = names.get_mut(name).ok_or(Fault::NotFound)?;
        let before = node.seen();
        let Node { body: Body::File(bytes), reserved: false, .. } = node else {
            return Err(if node.reserved { Fault::Reserved } else { Fault::NotAFile });
        };
        let whole = edited(bytes, old, new)?;
        journal.meets(|| file(bytes))?;
        let displaced = count(bytes.len());
        if displaced > journal.room {
            return Err(Fault::JournalFull);
        }
        let length = count(whole.len());
        let kept = core::mem::replace(bytes, whole);
        (node.modified_ms, node.number, node.change) = (now_ms, number, number);
        let after = node.seen();
        state.journal.insert((journal.record, journal.part), Body::File(kept));
        let before = state.wrote(path, (Some(before), after), How::Keep, &journal.stamp);
        Ok(Written { created: false, displaced, length, before })
    }

    fn shift(
        &self,
        from: &str,
        to: &str,
        journal: &Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        let Place::Inside(mount, rest) = self.table.place(from)? else {
            return Err(Fault::Immovable);
        };
        let Place::Inside(to_mount, to_rest) = self.table.place(to)? else {
            return Err(Fault::Exists);
        };
        self.writable(mount)?;
        self.writable(to_mount)?;
        if mount != to_mount {
            return Err(Fault::CrossDevice);
        }
        let mut state = self.state.lock();
        let node = state.find(mount, rest)?;
        if below(rest, to_rest).is_some_and(|inner| !inner.is_empty()) {
            return match node.body {
                Body::Directory(_) => Err(Fault::Immovable),
                Body::File(_) => Err(Fault::NotADirectory),
            };
        }
        match state.find(mount, to_rest) {
            Ok(_) => return Err(Fault::Exists),
            Err(Fault::NotFound) => {}
            Err(fault) => return Err(fault),
        }
        let mut carried = journal.stamp.carried.clone();
        walk(node, &mut String::new(), &mut 0, 0, &mut |inner, _| {
            let admitted = admits(&format!("{from}{inner}"), &format!("{to}{inner}"));
            carried.join(&admitted.ok_or(Fault::Subtree)?);
            Ok(())
        })?;
        journal.meets(|| node.standing())?;
        let before = node.seen();
        let (free, change) = (state.missing(mount, to, to_rest), next(&mut state.serial));
        let (names, name) = state.parents(mount, rest)?;
        let mut node = names.remove(name).ok_or(Fault::NotFound)?;
        node.change = change;
        let after = node.seen();
        let (names, name) = state.make_parents(mount, to_rest)?;
        names.insert(name.to_owned(), node);
        state.made(mount, (to, to_rest), &free, &journal.stamp);
        state.rest.moving((from, to), &before, &journal.stamp, &carried);
        state.rest.moved((from, to), &after, &journal.stamp.rest);
        Ok(())
    }

    fn take(
        &self,
        path: &str,
        journal: &Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::Immovable);
        };
        self.writable(mount)?;
        let mut state = self.state.lock();
        let node = state.find(mount, rest)?;
        let owned = |path: &str, node: &Node| match journal.stamp.owner {
            Owner::Anyone => Ok(()),
            Owner::Creator if state.rest.owns(path, &node.seen(), journal.stamp.creator) => Ok(()),
            Owner::Creator => Err(Fault::Changed),
        };
        owned(path, node)?;
        walk(node, &mut String::new(), &mut 0, 0, &mut |inner, node| {
            let path = format!("{path}{inner}");
            owned(&path, node)?;
            if admits(&path) { Ok(()) } else { Err(Fault::Subtree) }
        })?;
        journal.meets(|| node.standing())?;
        let displaced = node.size();
        if displaced > journal.room {
            return Err(Fault::JournalFull);
        }
        let (names, name) = state.parents(mount, rest)?;
        let node = names.remove(name).ok_or(Fault::NotFound)?;
        state.journal.insert((journal.record, journal.part), node.body);
        state.rest.removed(path, &journal.stamp.rest);
        Ok(displaced)
    }
}

impl Platform for Memory {
    async fn read(&self, path: &str, offset: u64, length: u64) -> Result<Shown, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::NotAFile);
        };
        let state = self.state.lock();
        let node = state.find(mount, rest)?;
        let Body::File(bytes) = &node.body else {
            return Err(Fault::NotAFile);
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        let bytes = bytes.get(start..end.min(bytes.len())).unwrap_or_default().to_vec();
        Ok(Shown { bytes, rest: state.rest.content(path, &node.seen()) })
    }

    async fn list(&self, path: &str, after: &str, limit: u64) -> Result<Listing, Fault> {
        self.listing(path, after, limit)
    }

    async fn state(&self, path: &str) -> Result<Standing, Fault> {
        let Place::Inside(mount, rest) = self.table.place(path)? else {
            return Err(Fault::Immovable);
        };
        match self.state.lock().find(mount, rest) {
            Ok(node) => Ok(node.standing()),
            Err(Fault::NotFound) => Ok(Standing::absent()),
            Err(fault) => Err(fault),
        }
    }

    async fn write(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.put(path, content, mode, &journal)
    }

    async fn edit(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> Result<Written, Fault> {
        self.replace_in(path, old, new, &journal)
    }

    async fn rename(
        &self,
        from: &str,
        to: &str,
        journal: Journal,
        admits: &Admits<'_>,
    ) -> Result<(), Fault> {
        self.shift(from, to, &journal, admits)
    }

    async fn remove(
        &self,
        path: &str,
        journal: Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<u64, Fault> {
        self.take(path, &journal, admits)
    }

    async fn show(&self, bytes: &[u8]) -> Result<(), Fault> {
        self.state.lock().shown.extend_from_slice(bytes);
        Ok(())
    }

    async fn ask(&self, question: &[u8], asker: Asker) -> Result<Vec<u8>, Fault> {
        let mut state = self.state.lock();
        state.asked.push((question.to_vec(), asker));
        state.answers.pop_front().unwrap_or(Err(Fault::Closed))
    }

    async fn fetch(&self, request: Fetch<'_>) -> Result<Fetched, Fault> {
        match &self.net {
            Some(net) => net.fetch(request).await,
            None => Err(Fault::Unsupported),
        }
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
        self.wire.listen(at)
    }

    async fn tool(&self, call: Use<'_>) -> Used {
        match &self.connectors {
            Some(connectors) => connectors.tool(call).await,
            None => Used::UNSUPPORTED,
        }
    }

    /// Each time that it is asked is a millisecond.
    async fn sleep(&self, ms: u64) {
        let mut left = ms;
        poll_fn(|context| {
            let Some(less) = left.checked_sub(1) else { return Poll::Ready(()) };
            left = less;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    fn now_ms(&self) -> u64 {
        self.state.lock().now_ms
    }

    fn is_own(&self, path: &str, creator: Creator) -> bool {
        self.state.lock().rest.is_own(path, creator)
    }

    fn mounts(&self) -> Vec<(String, String)> {
        self.table.roots().map(|root| (root.to_owned(), root.to_owned())).collect()
    }
}

impl State {
    /// Keeps the label of what was written; what stood there before carried this.
    fn wrote(
        &mut self,
        path: &str,
        (before, after): (Option<Seen>, Seen),
        how: How,
        stamp: &Stamp,
    ) -> Rest {
        let rest = before.map_or(Rest::SYSTEM, |seen| self.rest.content(path, &seen));
        let entry = self.rest.plan(path, before.as_ref(), how, stamp);
        self.rest.enter(path, entry);
        self.rest.settle(path, &after);
        rest
    }

    /// The directories of a path that are not there, outermost first.
    fn missing(&self, mount: usize, path: &str, rest: &str) -> Vec<String> {
        let above = path.len().saturating_sub(rest.len());
        let ends = rest.match_indices('/').map(|(at, _)| at);
        let free = ends.filter(|end| {
            let parent = rest.get(..*end).unwrap_or_default();
            matches!(self.find(mount, parent), Err(Fault::NotFound))
        });
        free.filter_map(|end| path.get(..above.saturating_add(end)).map(ToOwned::to_owned))
            .collect()
    }

    /// Keeps who made these directories.
    fn made(&mut self, mount: usize, (path, rest): (&str, &str), made: &[String], stamp: &Stamp) {
        let above = path.len().saturating_sub(rest.len());
        for path in made {
            let seen = self.find(mount, path.get(above..).unwrap_or_default()).map(Node::seen);
            self.rest.made(path, stamp);
            if let Ok(seen) = seen {
                self.rest.settle(path, &seen);
            }
        }
    }

    fn find(&self, mount: usize, rest: &str) -> Result<&Node, Fault> {
        let mut node = self.roots.get(mount).ok_or(Fault::NotFound)?;
        for name in rest.split('/') {
            node = node.names()?.get(name).ok_or(Fault::NotFound)?;
            if node.reserved {
                return Err(Fault::Reserved);
            }
        }
        Ok(node)
    }

    fn parents<'p>(
        &mut self,
        mount: usize,
        rest: &'p str,
    ) -> Result<(&mut BTreeMap<String, Node>, &'p str), Fault> {
        let (parents, name) = split_last(rest);
        let mut node = self.roots.get_mut(mount).ok_or(Fault::NotFound)?;
        for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
            node = node.names_mut()?.get_mut(parent).ok_or(Fault::NotFound)?;
            if node.reserved {
                return Err(Fault::Reserved);
            }
        }
        Ok((node.names_mut()?, name))
    }

    fn make_parents<'p>(
        &mut self,
        mount: usize,
        rest: &'p str,
    ) -> Result<(&mut BTreeMap<String, Node>, &'p str), Fault> {
        let Self { roots, serial, now_ms, .. } = self;
        let (parents, name) = split_last(rest);
        let mut node = roots.get_mut(mount).ok_or(Fault::NotFound)?;
        for parent in parents.into_iter().flat_map(|parents| parents.split('/')) {
            let names = node.names_mut()?;
            let made = || Node::directory(*now_ms, next(serial));
            node = names.entry(parent.to_owned()).or_insert_with(made);
            if node.reserved {
                return Err(Fault::Reserved);
            }
        }
        Ok((node.names_mut()?, name))
    }
}

impl Node {
    fn directory(modified_ms: u64, number: u64) -> Self {
        let body = Body::Directory(BTreeMap::new());
        Self { body, modified_ms, reserved: false, number, change: number }
    }

    fn file(bytes: Vec<u8>, modified_ms: u64, number: u64) -> Self {
        Self { body: Body::File(bytes), modified_ms, reserved: false, number, change: number }
    }

    /// What a label at rest is held against.
    fn seen(&self) -> Seen {
        let identity = (0, self.number);
        let (kind, print) = match &self.body {
            Body::Directory(_) => (Kind::Directory, Print::directory(identity)),
            Body::File(bytes) => {
                let changed = Some((0, self.change));
                (
                    Kind::File,
                    Print { identity, size: count(bytes.len()), modified: (0, 0), changed },
                )
            }
        };
        Seen { kind, print, links: 1 }
    }

    fn names(&self) -> Result<&BTreeMap<String, Node>, Fault> {
        match &self.body {
            Body::Directory(names) => Ok(names),
            Body::File(_) => Err(Fault::NotADirectory),
        }
    }

    fn names_mut(&mut self) -> Result<&mut BTreeMap<String, Node>, Fault> {
        match &mut self.body {
            Body::Directory(names) => Ok(names),
            Body::File(_) => Err(Fault::NotADirectory),
        }
    }

    /// The bytes of its files.
    fn size(&self) -> u64 {
        match &self.body {
            Body::File(bytes) => count(bytes.len()),
            Body::Directory(names) => names.values().map(Self::size).sum(),
        }
    }

    fn standing(&self) -> Standing {
        let mut tally = Tally::default();
        self.sum("", &mut tally);
        tally.finish(Some(match self.body {
            Body::File(_) => Kind::File,
            Body::Directory(_) => Kind::Directory,
        }))
    }

    /// Its bytes stand for what tells it from another: there is no other identity.
    fn sum(&self, name: &str, tally: &mut Tally) {
        match &self.body {
            Body::File(bytes) => tally.add(name, Kind::File, count(bytes.len()), &[bytes]),
            Body::Directory(names) => {
                tally.add(name, Kind::Directory, 0, &[]);
                for (name, node) in names {
                    node.sum(name, tally);
                }
                tally.leave();
            }
        }
    }

    fn entry(&self, name: &str, rest: Rest) -> Entry {
        let (kind, size) = match &self.body {
            Body::File(bytes) => (Kind::File, count(bytes.len())),
            Body::Directory(_) => (Kind::Directory, 0),
        };
        Entry { name: name.to_string(), kind, size, modified_ms: self.modified_ms, rest }
    }
}

/// What a file of these bytes is, for a change that has it open.
fn file(bytes: &[u8]) -> Standing {
    let mut tally = Tally::default();
    tally.add("", Kind::File, count(bytes.len()), &[bytes]);
    tally.finish(Some(Kind::File))
}

/// Asks about every descendant, by its path below `node`, in byte order.
fn walk(
    node: &Node,
    inner: &mut String,
    seen: &mut usize,
    level: usize,
    admits: &mut dyn FnMut(&str, &Node) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Body::Directory(names) = &node.body else { return Ok(()) };
    if level == WALK_LEVELS {
        return Err(Fault::TooMany);
    }
    for (name, child) in names {
        *seen = seen.saturating_add(1);
        if *seen > WALK_ENTRIES {
            return Err(Fault::TooMany);
        }
        if child.reserved {
            return Err(Fault::Reserved);
        }
        let length = inner.len();
        inner.push('/');
        inner.push_str(name);
        admits(inner, child)?;
        walk(child, inner, seen, level.saturating_add(1), admits)?;
        inner.truncate(length);
    }
    Ok(())
}

/// The entry of a directory that only leads to mounts.
pub(crate) fn way(name: &str) -> Entry {
    let rest = Rest::SYSTEM;
    Entry { name: name.to_owned(), kind: Kind::Directory, size: 0, modified_ms: 0, rest }
}

/// The first `limit` entries, and whether others follow.
pub(crate) fn page(entries: impl Iterator<Item = Entry>, limit: usize, rest: Rest) -> Listing {
    let mut entries = entries;
    let shown = entries.by_ref().take(limit).collect();
    Listing { entries: shown, more: entries.next().is_some(), rest }
}

/// The next number of a series.
fn next(serial: &mut u64) -> u64 {
    *serial = serial.saturating_add(1);
    *serial
}

/// Adds bytes where a board's memory has room for them.
fn add(bytes: &mut Vec<u8>, more: &[u8]) -> Result<(), Fault> {
    bytes.try_reserve_exact(more.len()).map_err(|_| Fault::NoSpace)?;
    bytes.extend_from_slice(more);
    Ok(())
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
