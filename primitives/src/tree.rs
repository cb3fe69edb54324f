//! The files that a connector's program works on, reached through the call that runs it
//!
//! A program that builds or tests wants a folder, and leaves changes in it. What it is
//! shown passes the call's own scope, and each change is one of the journal's, so that
//! nothing is done to a file by a second way.
//!
//! # Invariants
//! - I5: what a program was shown, its names included, is in the label of the reply.
//! - I15, I16: a change is stamped as from outside, with all that was shown, and the
//!   journal holds what it displaces. What a program made is nobody's own creation.
//! - A protected name is changed for a repository's own files alone.
//!
//! # Not here
//! Running anything, and which of its changes are wanted (the board).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};

use synapse_boundary::protected::is_protected;
use synapse_boundary::{Authorized, Integrity, NormalPath, Rights};
use synapse_reply::Fault;
use synapse_reply::limits;

use crate::execute::{Caller, covering, join, sight};
use crate::fetch::Reached;
use crate::platform::{Detail, Entry, Journal, Kind, Mode, Platform};
use crate::rest::{Creator, Names, Owner, Rest, Stamp};
use crate::search::Sight;

/// Files, as far as one call may reach them. Paths are the guest's.
pub trait Tree: fmt::Debug + Send + Sync {
    /// What may be read of a directory, and the directories on the way to more.
    fn list<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<Vec<Entry>, Fault>>;

    /// What a list does not say of an entry.
    fn detail<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<Detail, Fault>>;

    /// A part of a file.
    fn read<'a>(&'a self, path: &'a str, offset: u64) -> Waiting<'a, Result<Vec<u8>, Fault>>;

    /// Makes one change, whole or not at all.
    fn change<'a>(&'a self, change: Change<'a>) -> Waiting<'a, Result<(), Unmade>>;

    /// The compartments of what was shown so far.
    fn shown(&self) -> Names;

    /// Bytes that the journal still takes.
    fn room(&self) -> u64;

    /// Where a path is on the host.
    fn host(&self, path: &str) -> Option<String>;
}

/// What is waited for.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One change of a file.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The folder that the program worked in.
    pub root: &'a str,
    /// The file.
    pub path: &'a str,
    /// What becomes of it.
    pub becomes: Becomes<'a>,
    /// The compartments of what the program was ever shown.
    pub carries: &'a Names,
    /// Which names may be changed.
    pub reach: Reach,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug)]
pub enum Becomes<'a> {
    /// It is made, with these bytes.
    Made(&'a [u8]),
    /// The same, and its owner may run it.
    MadeProgram(&'a [u8]),
    /// It has these bytes instead.
    Replaced(&'a [u8]),
    /// It is taken away; a directory only if nothing at all is in it.
    Removed,
}

/// Which names a program may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those that are not protected.
    Plain,
    /// Besides, what a repository at the folder's root keeps its history in.
    History,
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmade {
    /// The grant does not cover it.
    OutOfScope,
    /// Its name is protected.
    Protected,
    /// The world said no.
    Fault(Fault),
}

/// No files at all.
#[derive(Clone, Copy, Debug)]
pub struct NoTree;

impl Tree for NoTree {
    fn list<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Vec<Entry>, Fault>> {
        Box::pin(core::future::ready(Err(Fault::Unsupported)))
    }

    fn detail<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Detail, Fault>> {
        Box::pin(core::future::ready(Err(Fault::Unsupported)))
    }

    fn read<'a>(&'a self, _: &'a str, _: u64) -> Waiting<'a, Result<Vec<u8>, Fault>> {
        Box::pin(core::future::ready(Err(Fault::Unsupported)))
    }

    fn change<'a>(&'a self, _: Change<'a>) -> Waiting<'a, Result<(), Unmade>> {
        Box::pin(core::future::ready(Err(Unmade::Fault(Fault::Unsupported))))
    }

    fn shown(&self) -> Names {
        Names::NONE
    }

    fn room(&self) -> u64 {
        0
    }

    fn host(&self, _: &str) -> Option<String> {
        None
    }
}

/// The files that an authorized call may reach.
pub(crate) struct Work<'a, 's, P> {
    call: &'a Authorized<'s>,
    platform: &'a P,
    caller: Caller<'a>,
    reached: &'a Reached,
    parts: AtomicU64,
    displaced: AtomicU64,
}

impl<P> fmt::Debug for Work<'_, '_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl<'a, 's, P: Platform> Work<'a, 's, P> {
    pub(crate) fn new(
        call: &'a Authorized<'s>,
        platform: &'a P,
        caller: Caller<'a>,
        reached: &'a Reached,
    ) -> Self {
        let (parts, displaced) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { call, platform, caller, reached, parts, displaced }
    }

    /// Bytes that the journal took.
    pub(crate) fn displaced(&self) -> u64 {
        self.displaced.load(Ordering::Relaxed)
    }

    fn show(&self, path: &str, rest: &Rest) {
        let named = self.call.passed().scope.named();
        self.reached.add(rest.names.bits(self.caller.compartments, named));
        self.reached.add(covering(self.call, path));
    }

    fn covers(&self, path: &str, rights: Rights) -> bool {
        let covers = |path| self.call.passed().scope.check(&path, rights).is_ok();
        NormalPath::parse(path.into()).is_ok_and(covers)
    }

    async fn entries(&self, path: &str) -> Result<Vec<Entry>, Fault> {
        if !self.covers(path, Rights::LIST) {
            return Err(Fault::Subtree);
        }
        let (mut entries, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.platform.list(path, &after, limits::LIST).await?;
            self.show(path, &page.rest);
            for entry in &page.entries {
                let inner = join(path, &entry.name);
                let sight = sight(self.call, &inner);
                if sight == Sight::Read || (sight == Sight::Passed && entry.kind == Kind::Directory)
                {
                    self.show(&inner, &entry.rest);
                    entries.push(entry.clone());
                }
            }
            match page.entries.last() {
                Some(last) if page.more => after.clone_from(&last.name),
                _ => return Ok(entries),
            }
        }
    }

    async fn make(&self, change: Change<'_>) -> Result<(), Unmade> {
        let path = NormalPath::parse(change.path.into()).map_err(|_| Unmade::OutOfScope)?;
        let rights = match change.becomes {
            Becomes::Made(_) | Becomes::MadeProgram(_) | Becomes::Replaced(_) => Rights::WRITE,
            Becomes::Removed => Rights::DELETE,
        };
        if is_protected(&path) && !change.is_history() {
            return Err(Unmade::Protected);
        }
        if !self.covers(change.path, rights) {
            return Err(Unmade::OutOfScope);
        }
        let (journal, content) = (self.journal(change.carries), change.becomes);
        let (bytes, mode) = match content {
            Becomes::Made(bytes) => (bytes, Mode::Create),
            Becomes::MadeProgram(bytes) => (bytes, Mode::CreateProgram),
            Becomes::Replaced(bytes) => (bytes, Mode::Replace),
            Becomes::Removed => {
                // What is in a directory the call may not even see.
                let covered = |path: &str| path == change.path;
                let displaced = self.platform.remove(change.path, journal, &covered).await;
                self.spend(displaced.map_err(Unmade::Fault)?);
                return Ok(());
            }
        };
        let written = self.platform.write(change.path, bytes, mode, journal).await;
        self.spend(written.map_err(Unmade::Fault)?.displaced);
        Ok(())
    }

    fn spend(&self, displaced: u64) {
        self.displaced.fetch_add(displaced, Ordering::Relaxed);
    }

    fn journal(&self, carries: &Names) -> Journal {
        let own = self.call.passed().terms.own.join(self.reached.secrecy());
        let secrecy = self.call.justification().secrecy.join(own);
        let mut names = Names::of(secrecy, self.caller.compartments);
        names.join(carries);
        let stamp = Stamp {
            rest: Rest { integrity: Integrity::Ingested, names },
            creator: Creator::NOBODY,
            carried: Names::NONE,
            owner: Owner::Anyone,
        };
        let part = self.parts.fetch_add(1, Ordering::Relaxed);
        Journal { record: self.call.record(), part, room: self.room(), expects: None, stamp }
    }
}

impl<P: Platform> Tree for Work<'_, '_, P> {
    fn list<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<Vec<Entry>, Fault>> {
        Box::pin(self.entries(path))
    }

    fn detail<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<Detail, Fault>> {
        Box::pin(async move {
            if !self.covers(path, Rights::READ) {
                return Err(Fault::Subtree);
            }
            self.platform.detail(path).await
        })
    }

    fn read<'a>(&'a self, path: &'a str, offset: u64) -> Waiting<'a, Result<Vec<u8>, Fault>> {
        Box::pin(async move {
            if !self.covers(path, Rights::READ) {
                return Err(Fault::Subtree);
            }
            let shown = self.platform.read(path, offset, PART).await?;
            self.show(path, &shown.rest);
            Ok(shown.bytes)
        })
    }

    fn change<'a>(&'a self, change: Change<'a>) -> Waiting<'a, Result<(), Unmade>> {
        Box::pin(self.make(change))
    }

    fn shown(&self) -> Names {
        Names::of(self.reached.secrecy(), self.caller.compartments)
    }

    fn room(&self) -> u64 {
        self.call.passed().room.saturating_sub(self.displaced())
    }

    fn host(&self, path: &str) -> Option<String> {
        self.platform.mounts().into_iter().find_map(|(root, host)| {
            let inner = path.strip_prefix(&root)?;
            let inside = inner.is_empty() || inner.starts_with('/');
            inside.then(|| alloc::format!("{}{inner}", host.trim_end_matches('/')))
        })
    }
}

/// Bytes of one part of a file: of fewer, it is the last.
pub const PART: u64 = 1 << 20;

impl Change<'_> {
    /// Whether it is of what a repository keeps its history in.
    fn is_history(&self) -> bool {
        const FOLDERS: [&str; 3] = ["objects", "refs", "logs"];
        const FILES: [&str; 3] = ["index", "HEAD", "COMMIT_EDITMSG"];
        let inner = self.path.strip_prefix(self.root.trim_end_matches('/'));
        let Some(inner) = inner.and_then(|inner| inner.strip_prefix("/.git/")) else {
            return false;
        };
        let below = inner.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder));
        // Deeper down a name may be protected by itself.
        let plain = NormalPath::parse(alloc::format!("/{inner}").into())
            .is_ok_and(|path| !is_protected(&path));
        self.reach == Reach::History && plain && (below || FILES.contains(&inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repositorys_history_is_these_names_and_no_others() {
        let of = |path: &str, reach| {
            let becomes = Becomes::Removed;
            Change { root: "/data/p", path, becomes, carries: &Names::NONE, reach }.is_history()
        };
        for path in ["objects/ab/cd", "refs/heads/a/b", "logs/HEAD", "index", "HEAD"] {
            let path = alloc::format!("/data/p/.git/{path}");
            assert!(of(&path, Reach::History), "{path}");
            assert!(!of(&path, Reach::Plain), "{path}");
        }
        for path in [
            "/data/p/.git/config", "/data/p/.git/hooks/pre-commit", "/data/p/.git/info/attributes",
            "/data/p/.git/objects", "/data/p/.git/refs/x.git/config", "/data/p/.git",
            "/data/p/sub/.git/HEAD", "/data/.git/HEAD", "/data/p2/.git/HEAD", "/data/p/SOUL.md",
            "/data/p/.GIT/HEAD",
        ] {
            assert!(!of(path, Reach::History), "{path}");
        }
    }
}
