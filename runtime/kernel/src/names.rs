//! The name index: which names there are in the folders of a task.
//!
//! Walked once, when a run begins, so that a decision asks no disk; kept up with
//! what the task itself makes, moves and takes away. What others change meanwhile is
//! found when a call is executed, on the open handle.
//!
//! # Invariants
//! - It holds nothing that the grant hides from the task.
//! - An index that is not complete says of no bare name who bears it.
//! - What is left out of it is named by no line that may be cited.
//!
//! # Not here
//! What a human's line cites (`synapse_boundary::cite`).

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::registry::Primitive;
use synapse_boundary::cite::{Bearer, Names};
use synapse_boundary::path::fold;
use synapse_boundary::{Authorized, NormalPath, Rights, Scope};
use synapse_primitives::Platform;
use synapse_primitives::platform::Kind;

/// Entries that a walk looks at, at most.
pub const ENTRIES: usize = 100_000;

/// The names in a task's folders, as far as its grant shows them.
#[derive(Debug, Default)]
pub struct NameIndex {
    paths: BTreeSet<String>,
    /// The paths of each bare name, folded.
    bearers: BTreeMap<String, Vec<String>>,
    mounts: Vec<(String, String)>,
    complete: bool,
}

/// Which names may be asked for: those that stand in the lines that may be cited, whatever
/// their case.
#[derive(Debug)]
pub struct Sought(Option<String>);

/// What a call changes of names, once it is executed.
#[derive(Debug)]
pub enum Renaming {
    /// A name is there, and those that lead to it.
    Made(String),
    /// All under a path is under another one.
    Moved(String, String),
    /// All under a path is gone.
    Gone(String),
}

/// Bytes of lines in which names are looked for.
const LINES: usize = 4096;

impl Sought {
    /// Any name.
    pub const ALL: Self = Self(None);

    /// What these lines may name. Beyond ASCII a name is spelled in more ways than one,
    /// so that any may be meant.
    #[must_use]
    pub fn of<'l>(lines: impl Iterator<Item = &'l str>) -> Self {
        let mut all = String::new();
        for line in lines {
            all.push_str(line);
            all.push('\n');
        }
        // Longer ones cost more to look through than they spare.
        if all.len() > LINES {
            return Self::ALL;
        }
        all.make_ascii_lowercase();
        Self(Some(all).filter(|all| all.is_ascii()))
    }

    fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|lines| lines.contains(&*fold(name)))
    }
}

impl NameIndex {
    /// Walks the mounts, past at most so many entries, for names that are sought.
    pub async fn walk<P: Platform>(
        platform: &P,
        scope: &Scope,
        sought: &Sought,
        entries: usize,
    ) -> Self {
        let mut index = Self { mounts: platform.mounts(), complete: true, ..Self::default() };
        let mut left: Vec<String> = Vec::new();
        for (root, _) in index.mounts.clone() {
            index.add(scope, &root, false);
            left.push(root);
        }
        let mut seen = 0_usize;
        while let Some(directory) = left.pop() {
            let listed = permits(scope, &directory, Rights::LIST);
            let Ok(found) = platform.named(&directory, &|name| sought.has(name)).await else {
                // What cannot be looked at may bear any name.
                index.complete = false;
                continue;
            };
            for (name, kind) in found.names {
                let path = format!("{directory}/{name}");
                if hidden(scope, &path) {
                    continue;
                }
                if sought.has(&name) {
                    index.add(scope, &path, listed);
                }
                if kind == Kind::Directory {
                    left.push(path);
                }
            }
            seen = seen.saturating_add(found.seen);
            if seen > entries {
                index.complete = false;
                return index;
            }
        }
        index
    }

    /// Whether every name is in it.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// Keeps up with what a call did.
    pub fn apply(&mut self, renaming: Renaming) {
        match renaming {
            Renaming::Made(path) => self.make(&path),
            Renaming::Gone(path) => drop(self.take(&path)),
            Renaming::Moved(from, to) => {
                let inner = self.take(&from);
                self.make(&to);
                for inner in inner {
                    self.insert(&format!("{to}{inner}"));
                }
            }
        }
    }

    /// Adds a path that the grant shows: by the listing it stands in, or by a right
    /// of its own.
    fn add(&mut self, scope: &Scope, path: &str, listed: bool) {
        let own = || {
            [Rights::LIST, Rights::READ, Rights::WRITE, Rights::DELETE]
                .into_iter()
                .any(|right| permits(scope, path, right))
        };
        if listed || own() {
            self.insert(path);
        }
    }

    fn insert(&mut self, path: &str) {
        if self.paths.insert(path.to_owned()) {
            let paths = self.bearers.entry(bare(path)).or_default();
            paths.push(path.to_owned());
        }
    }

    fn make(&mut self, path: &str) {
        let mut path = path;
        let roots: Vec<String> = self.mounts.iter().map(|(root, _)| root.clone()).collect();
        while !self.paths.contains(path) {
            self.insert(path);
            match path.rsplit_once('/') {
                Some((above, _)) if !roots.iter().any(|root| root == path) => path = above,
                _ => break,
            }
        }
    }

    /// Takes out a path and all below it; what was below, by the paths from there.
    fn take(&mut self, path: &str) -> Vec<String> {
        // The byte after `/` ends all that begins with it.
        let below = self.paths.range(format!("{path}/")..format!("{path}0"));
        let below: Vec<String> = below.cloned().collect();
        for path in below.iter().map(String::as_str).chain([path]) {
            self.paths.remove(path);
            let name = bare(path);
            if let Some(paths) = self.bearers.get_mut(&name) {
                paths.retain(|own| own != path);
                if paths.is_empty() {
                    self.bearers.remove(&name);
                }
            }
        }
        let inner = below.iter().filter_map(|below| below.get(path.len()..));
        inner.map(ToOwned::to_owned).collect()
    }
}

impl Names for NameIndex {
    fn exists(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn bearer(&self, name: &str) -> Bearer<'_> {
        let paths = self.bearers.get(&*fold(name)).filter(|_| self.complete);
        match paths.map(Vec::as_slice) {
            None | Some([]) => Bearer::Nobody,
            Some([path]) => Bearer::One(path),
            Some(_) => Bearer::Several,
        }
    }

    fn mounts(&self) -> &[(String, String)] {
        &self.mounts
    }
}

impl Renaming {
    /// What this call changes of names, if it does.
    #[must_use]
    pub fn of(call: &Authorized<'_>) -> Option<Self> {
        let path = |index| call.path(index).map(|path| path.as_str().to_owned());
        match call.call().primitive() {
            Primitive::FsWrite => path(0).map(Self::Made),
            Primitive::FsDelete => path(0).map(Self::Gone),
            Primitive::FsMove => path(0).zip(path(1)).map(|(from, to)| Self::Moved(from, to)),
            _ => None,
        }
    }
}

fn bare(path: &str) -> String {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    fold(name).into_owned()
}

fn permits(scope: &Scope, path: &str, right: Rights) -> bool {
    NormalPath::parse(Cow::Borrowed(path)).is_ok_and(|path| scope.check(&path, right).is_ok())
}

fn hidden(scope: &Scope, path: &str) -> bool {
    scope.denies(path)
}
