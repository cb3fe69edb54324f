//! The verbs a board offers, and nothing else of the world.
//!
//! Each method is one effect that the door has already recorded. Futures are
//! `Send` and owned by no executor, so that tokio drives them on the host and a
//! poll loop on bare metal.
//!
//! # Invariants
//! - A path is a normal guest path: it begins with `/` and holds no empty, `.`
//!   or `..` segment and no NUL.
//! - No symbolic link is followed, in the middle of a path or at its end.
//! - A write is whole or absent, after a crash too.
//! - Nothing is replaced unless the journal holds it first.
//!
//! - I5: what is read comes with the label that it has at rest.
//!
//! # Not here
//! Which path a task may name (gate 4), and what a label at rest is to a grant (`execute`).

use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;
use core::future::{Future, poll_fn};
use core::net::{IpAddr, SocketAddr};
use core::pin::Pin;
use core::task::{Context, Poll};

use memchr::memmem;
use synapse_boundary::secret::Blank;
use synapse_boundary::url::Url;
use synapse_boundary::{Integrity, State};
use synapse_reply::limits;

use crate::{
    Fault,
    rest::{Creator, Names, Rest, Stamp},
    state::Standing,
    tree::Tree,
};

/// The number of entries one move or removal may touch.
pub const WALK_ENTRIES: usize = 1 << 20;

/// The number of directory levels one move or removal may descend.
pub const WALK_LEVELS: usize = 128;

/// Names that begin with this are Synapse's unfinished writes.
///
/// They are never listed, and a path that names one answers [`Fault::Reserved`].
pub const PART_PREFIX: &str = ".synapse-part-";

/// Directories that begin with this are Synapse's, and hold what was displaced.
///
/// They are hidden in the same way.
pub const KEPT_PREFIX: &str = ".synapse-kept-";

/// The bytes a file name may have at most.
pub const NAME_BYTES: usize = 255;

/// The bytes of what is taken into memory whole: a file to be edited or searched, a
/// content put together.
pub const WHOLE_BYTES: u64 = 1 << 26;

/// What a board gives the primitives: files, a clock, a screen and the network.
///
/// Every method answers with the [`Fault`] that names the first thing found in
/// the way; what it says of one method holds for all that take a path:
/// `NotFound`, `NotADirectory`, `Link`, `Reserved`, `HostDenied`, `Io`.
pub trait Platform: Send + Sync {
    /// At most `length` bytes of a regular file from `offset`; fewer where the
    /// file ends, none past it.
    ///
    /// # Errors
    /// `NotAFile`, `Special`.
    fn read(
        &self,
        path: &str,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = Result<Shown, Fault>> + Send;

    /// The entries whose names come after `after`, in byte order, at most `limit`.
    ///
    /// A file gives its own entry. The directories above the mounts show the way
    /// to the mounts and nothing else.
    ///
    /// # Errors
    /// `Special`.
    fn list(
        &self,
        path: &str,
        after: &str,
        limit: u64,
    ) -> impl Future<Output = Result<Listing, Fault>> + Send;

    /// The names of a directory's directories, and those others that are wanted. The
    /// default lists it.
    ///
    /// # Errors
    /// As [`Platform::list`].
    fn named(
        &self,
        path: &str,
        wanted: &(dyn Fn(&str) -> bool + Sync),
    ) -> impl Future<Output = Result<Named, Fault>> + Send {
        by_the_list(self, path, wanted)
    }

    /// What stands under a path, without a change to it; a directory with all
    /// that is in it.
    ///
    /// # Errors
    /// As of [`Platform::remove`], for what cannot be looked at.
    fn state(&self, path: &str) -> impl Future<Output = Result<Standing, Fault>> + Send;

    /// Puts `content` at `path`, making missing parents.
    ///
    /// # Errors
    /// `Exists` (mode create), `NotAFile`, `Special`, `ReadOnly`, `NoSpace`,
    /// `JournalFull` before anything is touched, `TooLarge`, `Changed` when
    /// somebody else wrote the file meanwhile: theirs is kept.
    fn write(
        &self,
        path: &str,
        content: &[u8],
        mode: Mode,
        journal: Journal,
    ) -> impl Future<Output = Result<Written, Fault>> + Send;

    /// Puts `new` in the one place of a file where `old` stands.
    ///
    /// # Errors
    /// As [`Platform::write`], and `NoMatch`, `Ambiguous` where `old` stands in
    /// more than one place, overlapping ones too, `TooLarge` for a file or a
    /// result above [`WHOLE_BYTES`].
    fn edit(
        &self,
        path: &str,
        old: &[u8],
        new: &[u8],
        journal: Journal,
    ) -> impl Future<Output = Result<Written, Fault>> + Send;

    /// Moves a file or a directory to a name that is free, making the parents
    /// of `to`.
    ///
    /// `admits(from, to)` is asked for every descendant, in byte order, with
    /// both its guest paths, and says which compartments it has where it is; one
    /// `None` and nothing is moved.
    ///
    /// # Errors
    /// `Exists`, `Subtree`, `CrossDevice`, `ReadOnly`, `NameNotText`, `TooMany`,
    /// `Special`, `Changed`, `Immovable` for a directory into itself and for the
    /// root of a mount.
    fn rename(
        &self,
        from: &str,
        to: &str,
        journal: Journal,
        admits: &Admits<'_>,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Removes an entry into the journal; a directory with its whole subtree.
    /// The answer is the bytes that the journal took.
    ///
    /// `admits` is asked for every descendant before anything is removed; one
    /// `false` and nothing is. A link is removed as the entry it is. Where
    /// something joined the subtree meanwhile, or it is to be the creator's own and
    /// is not, all of it stays: `Changed`.
    ///
    /// # Errors
    /// `Subtree`, `CrossDevice`, `ReadOnly`, `NameNotText`, `TooMany`, `Changed`,
    /// `JournalFull` before anything is touched, `Immovable` for the root of a mount.
    fn remove(
        &self,
        path: &str,
        journal: Journal,
        admits: &(dyn Fn(&str) -> bool + Sync),
    ) -> impl Future<Output = Result<u64, Fault>> + Send;

    /// Shows bytes to the human, through the board's one renderer.
    ///
    /// # Errors
    /// `Closed`, `Io`.
    fn show(&self, bytes: &[u8]) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Asks the human one question, and answers with one line that they typed.
    ///
    /// # Errors
    /// `Closed` where nobody can be asked or the input ends, `TimedOut`,
    /// `Cancelled`, `NotText`.
    fn ask(
        &self,
        question: &[u8],
        asker: Asker,
    ) -> impl Future<Output = Result<Vec<u8>, Fault>> + Send;

    /// Sends one request to where its URL says, and reads one answer.
    ///
    /// A name is resolved once. `admits` is asked for every address that it has,
    /// before anything is sent to any; one `false` and nothing is. Nothing is
    /// followed, remembered or unpacked. The default is a board without a network.
    ///
    /// # Errors
    /// `Unsupported` on a board without a network; `NotFound` for a name without an
    /// address, `Address`, `Closed`, `TimedOut`, `Cancelled`, `Unproven`, `BadAnswer`,
    /// `ReplyTooLarge`, `Io`.
    fn fetch(&self, _: Fetch<'_>) -> impl Future<Output = Result<Fetched, Fault>> + Send {
        async { Err(Fault::Unsupported) }
    }

    /// Whether there is a secret of this name that may go to where a URL is. The default
    /// is a board without secrets.
    fn serves(&self, _: &str, _: &Url<'_>) -> bool {
        false
    }

    /// Listens at an address of this machine, and at no other: one of IPv6 takes no
    /// connections of IPv4. The default is a board without a network.
    ///
    /// # Errors
    /// `Unsupported` on a board without a network; `NotFound` for an address that this
    /// machine does not have, `Exists` where something listens already, `HostDenied`,
    /// `TooMany`, `Io`.
    fn listen(&self, _: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
        Err(Fault::Unsupported)
    }

    /// Has a connector do one thing. What comes back is its answer as bytes, JSON as
    /// the door spells it where the verb's manifest types fields of it. The default is
    /// a board without connectors.
    ///
    /// # Errors
    /// `Unsupported` on a board without connectors; `NotFound` for a verb that the
    /// connector does not have, `Changed` where it is not any more what was approved,
    /// `Closed`, `TimedOut`, `Cancelled`, `BadAnswer`, `ReplyTooLarge`, `Io`.
    fn tool(&self, _: Use<'_>) -> impl Future<Output = Used> + Send {
        async { Used::UNSUPPORTED }
    }

    /// What stands under a path besides what a list says of it; the default is a board
    /// that knows of no more.
    ///
    /// # Errors
    /// Those of every path.
    fn detail(&self, _path: &str) -> impl Future<Output = Result<Detail, Fault>> + Send {
        async { Ok(Detail::default()) }
    }

    /// Waits for so many milliseconds. The default asks the clock each time that it
    /// is polled, and has itself polled again.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send {
        by_the_clock(self, ms)
    }

    /// Milliseconds since the start of 1970, UTC.
    fn now_ms(&self) -> u64;

    /// Whether a task made what is known under a path, and every byte of it and of
    /// all that is known below it since. The files themselves are not looked at.
    fn is_own(&self, path: &str, creator: Creator) -> bool;

    /// The guest root and the host's path of each mount.
    fn mounts(&self) -> Vec<(String, String)>;
}

/// Names as [`Platform::named`] does by default.
pub(crate) async fn by_the_list<P: Platform + ?Sized>(
    platform: &P,
    path: &str,
    wanted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Named, Fault> {
    let mut named = Named::default();
    let mut after = String::new();
    loop {
        let page = platform.list(path, &after, limits::LIST).await?;
        named.seen = named.seen.saturating_add(page.entries.len());
        match page.entries.last() {
            Some(last) => after.clone_from(&last.name),
            None => return Ok(named),
        }
        let asked = |entry: &Entry| entry.kind == Kind::Directory || wanted(&entry.name);
        let entries = page.entries.into_iter().filter(asked);
        named.names.extend(entries.map(|entry| (entry.name, entry.kind)));
        if !page.more {
            return Ok(named);
        }
    }
}

/// Waits as [`Platform::sleep`] does by default.
pub(crate) fn by_the_clock<P: Platform + ?Sized>(
    platform: &P,
    ms: u64,
) -> impl Future<Output = ()> + Send {
    let until = platform.now_ms().saturating_add(ms);
    poll_fn(move |context| {
        if platform.now_ms() >= until {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// What a move may take with it: the compartments of one descendant, if it may.
pub type Admits<'a> = dyn Fn(&str, &str) -> Option<Names> + Sync + 'a;

/// How a write treats what stands at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The name must be free.
    Create,
    /// The same, and its owner may run the file, where files have such a bit.
    CreateProgram,
    /// What stands there goes to the journal; a free name is made.
    Replace,
    /// What stands there stays, the content follows it; a free name is made.
    Append,
}

/// Where displaced bytes go and how many may, and what a change leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// The record the entry is named by.
    pub record: u64,
    /// Which of that record's changes this is, from 0.
    pub part: u64,
    /// The bytes that still fit.
    pub room: u64,
    /// What must stand under the call's first path still, or it is `Changed`.
    pub expects: Option<State>,
    /// The label and the creator of what is written.
    pub stamp: Stamp,
}

impl Journal {
    /// Compares what a change has in its hands with what it was confirmed for.
    ///
    /// # Errors
    /// `Changed`.
    pub fn meets(&self, found: impl FnOnce() -> Standing) -> Result<(), Fault> {
        match self.expects {
            Some(expected) if found().state != expected => Err(Fault::Changed),
            Some(_) | None => Ok(()),
        }
    }
}

/// Bytes of a file, and their label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they carry at rest.
    pub rest: Rest,
}

/// Who asks the human, in the kernel's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The decision record of the question.
    pub record: u64,
    /// The integrity of everything that the question may come from.
    pub integrity: Integrity,
}

/// One request.
#[derive(Clone, Copy)]
pub struct Fetch<'a> {
    /// Where to, and what is asked for.
    pub url: Url<'a>,
    /// Names in lower case, none of which says where the request goes or ends.
    pub headers: &'a [(String, String)],
    /// Where secrets are to be filled in; what comes back is masked.
    pub secrets: &'a [Blank<'a>],
    /// What a POST sends; without it this is a GET.
    pub content: Option<&'a [u8]>,
    /// Bytes that the answer's body may have.
    pub most: usize,
    /// Whether an address may be connected to.
    pub admits: &'a (dyn Fn(IpAddr) -> bool + Sync),
}

impl fmt::Debug for Fetch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch").field("url", &self.url).finish_non_exhaustive()
    }
}

/// An answer from the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its status.
    pub status: u16,
    /// Its headers, as they came.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its body, as it came but for its framing.
    pub body: Vec<u8>,
}

/// What listens at an address, until it is dropped.
pub trait Listener: Send + Sync {
    /// The next connection, once there is one: `TooMany` where the board has no room
    /// for it, `Io`.
    fn poll_accept(&self, context: &Context<'_>) -> Poll<Result<Accepted, Fault>>;
}

/// A connection that was accepted.
pub struct Accepted {
    /// Where it comes from.
    pub peer: IpAddr,
    /// Which address of this machine it came to.
    pub here: IpAddr,
    /// The connection itself.
    pub connection: Box<dyn Connection>,
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// A connection, until it is dropped. A board keeps a bounded part of what was sent
/// and not taken yet, in each direction, and makes the sender wait for the rest.
pub trait Connection: Send + Sync {
    /// Puts what came into a place that is not empty: how many bytes; 0 where no more
    /// will come. `Closed`, `Io`.
    fn poll_read(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<Result<usize, Fault>>;

    /// Sends the first of these bytes: how many. `Closed`, `Io`.
    fn poll_write(&self, context: &Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Fault>>;
}

/// The board's network.
pub trait Net: Send + Sync {
    /// As [`Platform::fetch`].
    fn fetch<'a>(&'a self, request: Fetch<'a>) -> Fetching<'a>;

    /// As [`Platform::serves`].
    fn serves(&self, _: &str, _: &Url<'_>) -> bool {
        false
    }

    /// As [`Platform::listen`]; the default is a network that only fetches.
    ///
    /// # Errors
    /// As there.
    fn listen(&self, _: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
        Err(Fault::Unsupported)
    }
}

/// An answer that is waited for.
pub type Fetching<'a> = Pin<Box<dyn Future<Output = Result<Fetched, Fault>> + Send + 'a>>;

/// One call of a connector's verb.
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    /// `server/verb`.
    pub tool: &'a str,
    /// Its arguments, a JSON object without references.
    pub arguments: &'a str,
    /// The compartments of everything that the call comes from.
    pub carries: &'a Names,
    /// Bytes that the answer may have.
    pub most: usize,
    /// The files that the call may reach, for a connector that works on files.
    pub tree: &'a dyn Tree,
}

/// What a connector came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// Its answer.
    pub reply: Result<Vec<u8>, Fault>,
    /// Compartments of what it was told before, which it may have kept: of a connector
    /// that is cleared for everything since it can tell nobody else.
    pub carried: Names,
}

impl Used {
    /// Of a board without connectors.
    pub const UNSUPPORTED: Self = Self { reply: Err(Fault::Unsupported), carried: Names::NONE };
}

/// What a board calls connectors by; a function is one in the same process.
pub trait Connectors: Send + Sync {
    /// As [`Platform::tool`].
    fn tool<'a>(&'a self, call: Use<'a>) -> Using<'a>;
}

/// A connector's answer that is waited for.
pub type Using<'a> = Pin<Box<dyn Future<Output = Used> + Send + 'a>>;

impl<F: Fn(Use<'_>) -> Used + Send + Sync> Connectors for F {
    fn tool<'a>(&'a self, call: Use<'a>) -> Using<'a> {
        Box::pin(core::future::ready(self(call)))
    }
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Whether the name was made by this write.
    pub created: bool,
    /// The bytes put into the journal.
    pub displaced: u64,
    /// The bytes the file has now.
    pub length: u64,
    /// What the bytes carried that stood there before.
    pub before: Rest,
}

/// One page of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by the bytes of the name.
    pub entries: Vec<Entry>,
    /// Whether names follow after the last entry.
    pub more: bool,
    /// What the directory itself carries, with or without names in it.
    pub rest: Rest,
}

/// Names that stand in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Those that were asked for, sorted by their bytes.
    pub names: Vec<(String, Kind)>,
    /// How many there are in all.
    pub seen: usize,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The last segment of its path. Bytes of it that are not UTF-8 stand as
    /// `\xNN`, which no path can spell.
    pub name: String,
    /// What it is; links are not followed to find out.
    pub kind: Kind,
    /// Bytes, for a file; else 0.
    pub size: u64,
    /// Last change of its content, milliseconds since 1970; 0 before that.
    pub modified_ms: u64,
    /// What its name and the rest of this carry.
    pub rest: Rest,
}

/// What a list does not say of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// Whether its owner may start it as a program.
    pub executable: bool,
    /// Where a link leads to, as it is written there.
    pub link: Option<String>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, FIFO or socket.
    Other,
}

/// The bytes of a file with `new` in the one place where `old` stands.
///
/// # Errors
/// As [`Platform::edit`].
pub fn edited(bytes: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, Fault> {
    // Nothing stands everywhere, which is no place.
    if old.is_empty() {
        return Err(Fault::NoMatch);
    }
    let finder = memmem::Finder::new(old);
    let at = finder.find(bytes).ok_or(Fault::NoMatch)?;
    let following = bytes.get(at.saturating_add(1)..).unwrap_or_default();
    if finder.find(following).is_some() {
        return Err(Fault::Ambiguous);
    }
    let before = bytes.get(..at).unwrap_or_default();
    let after = bytes.get(at.saturating_add(old.len())..).unwrap_or_default();
    let whole = [before, new, after].concat();
    let fits = u64::try_from(whole.len()).is_ok_and(|length| length <= WHOLE_BYTES);
    if fits { Ok(whole) } else { Err(Fault::TooLarge) }
}

/// Whether a name is one of Synapse's unfinished writes.
pub(crate) fn is_part(name: &[u8]) -> bool {
    begins(name, PART_PREFIX)
}

/// Whether a name is Synapse's own, by how it begins.
pub(crate) fn is_own(name: &[u8]) -> bool {
    is_part(name) || begins(name, KEPT_PREFIX)
}

fn begins(name: &[u8], prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// What a name may be called, checked before any directory is opened for it.
///
/// # Errors
/// `Reserved` for a name of Synapse's own, `TooLarge` for a name no disk takes.
pub(crate) fn nameable(rest: &str) -> Result<(), Fault> {
    for name in rest.split('/') {
        if is_own(name.as_bytes()) {
            return Err(Fault::Reserved);
        }
        if name.len() > NAME_BYTES {
            return Err(Fault::TooLarge);
        }
    }
    Ok(())
}
