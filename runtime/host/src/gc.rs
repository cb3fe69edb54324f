//! Giving free what finished runs left: logs, journals, what journals keep, and copies.
//!
//! A run's directory goes as a whole, with the hidden directories that hold what it
//! displaced on other file systems. What is not as it was written stays unless it is
//! asked for, because it may be all that is left to learn from.
//!
//! # Invariants
//! - A run that goes on, or is being undone, is not touched.
//! - No symbolic link is followed, and nothing is removed that no run made.
//! - A removal that was cut off is invisible to other commands and ends next time.
//! - I15: what the journal of a run knows of labels is kept before it goes.
//!
//! # Not here
//! Telling what went (the command line).

use core::time::Duration;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use synapse_connectors::exec::Holds;
use synapse_kernel::verify::{Broken, Reader};
use synapse_primitives::disk::Identity;
use synapse_primitives::journal::{self, INDEX, Journal, JournalError};
use synapse_primitives::platform::KEPT_PREFIX;

use crate::{log, store};

mod copies;
pub use copies::collect_copies;

/// What is to go.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Only runs that wrote nothing, and copies that none used, since then.
    pub before: SystemTime,
    /// Also runs of which something is not as it was written, or whose folders are away,
    /// and copies that hold what stands nowhere else.
    pub broken: bool,
    /// Only say what would go.
    pub look: bool,
}

/// Something old, and what came of it.
#[derive(Debug)]
pub struct Item {
    /// What it is.
    pub what: What,
    /// Its name.
    pub name: String,
    /// Bytes of its files, in its directory and in its folders.
    pub bytes: u64,
    /// Why it stays; it goes if nothing is said.
    pub stays: Option<Stays>,
}

/// What is old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A run.
    Run,
    /// A copy of a folder, if it says of which, that lines were run in.
    Copy(Option<PathBuf>),
}

/// Why something old stays.
#[derive(Debug)]
pub enum Stays {
    /// It goes on, or is being undone; a run has it.
    Live,
    /// It may have what stands nowhere else.
    Holds(Holds),
    /// Its log is not as it was written.
    Log(Broken),
    /// Its journal is of another version, or not as it was written.
    Journal,
    /// This folder, which holds things that it displaced, is not there.
    Away(String),
    /// The host did not let it be looked at or removed as a whole.
    Host(io::Error),
}

/// Looks at each old run below this folder, and removes what may go.
///
/// # Errors
/// The folder cannot be listed; without one there are no runs.
pub fn collect(runs: &Path, order: Order, mut tell: impl FnMut(&Item)) -> io::Result<()> {
    let dir = match Dir::open_ambient_dir(runs, ambient_authority()) {
        Ok(dir) => dir,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why),
    };
    let state = runs.parent().unwrap_or(runs);
    let mut names = Vec::new();
    for entry in dir.entries()? {
        // A name that is not UTF-8 is no run's.
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    for name in names {
        let cut_off = name.strip_prefix(GOING);
        let run = cut_off.unwrap_or(&name);
        if is_run(run) && dir.symlink_metadata(&name)?.is_dir() {
            let mut item = Item { what: What::Run, name: run.to_owned(), bytes: 0, stays: None };
            match Old::find(&dir, &name, order) {
                Ok(None) => continue,
                Ok(Some(old)) => {
                    item.bytes = old.bytes();
                    if !order.look {
                        let kept = store::settle(state, run).map_err(io::Error::other);
                        let gone = kept.and_then(|()| old.remove(&dir, &name, run));
                        item.stays = gone.err().map(Stays::Host);
                    }
                }
                Err(why) => item.stays = Some(why),
            }
            tell(&item);
        }
    }
    if !order.look {
        store::prune(state, order.before).map_err(io::Error::other)?;
    }
    Ok(())
}

/// A run that may go.
struct Old {
    dir: Dir,
    /// Folders, and what there holds the things that the run displaced.
    drawers: Vec<(Dir, String)>,
    /// Nobody undoes it while this is held.
    _log: Option<File>,
}

impl Old {
    /// The run of this name, if it is old enough.
    fn find(runs: &Dir, name: &str, order: Order) -> Result<Option<Self>, Stays> {
        let dir = runs.open_dir(name)?;
        let mut log = match dir.open(log::FILE) {
            Ok(log) => Some(log.into_std()),
            Err(why) if why.kind() == io::ErrorKind::NotFound => None,
            Err(why) => return Err(why.into()),
        };
        let (written, before) = match &log {
            Some(log) => (log.metadata()?.modified()?, order.before),
            // It may just be about to begin.
            None => (
                dir.dir_metadata()?.modified()?.into_std(),
                order.before.min(SystemTime::now() - BEGINNING),
            ),
        };
        let cut_off = name.starts_with(GOING);
        if written > before && !cut_off {
            return Ok(None);
        }
        if let Some(log) = &mut log {
            log.try_lock().map_err(|why| match why {
                TryLockError::WouldBlock => Stays::Live,
                TryLockError::Error(why) => why.into(),
            })?;
            let mut records = Vec::new();
            log.read_to_end(&mut records)?;
            let broken = Reader::new(&records).find_map(Result::err);
            match broken {
                // A run that was killed ends inside a record.
                None | Some(Broken::Torn(_)) => {}
                Some(_) if order.broken || cut_off => {}
                Some(broken) => return Err(Stays::Log(broken)),
            }
        }
        let drawers = match journal(&dir)? {
            None => Vec::new(),
            Some(Ok(journal)) => drawers(&journal, order.broken || cut_off)?,
            Some(Err(_)) if order.broken || cut_off => Vec::new(),
            Some(Err(_)) => return Err(Stays::Journal),
        };
        Ok(Some(Self { dir, drawers, _log: log }))
    }

    fn bytes(&self) -> u64 {
        let kept = self.drawers.iter().map(|(folder, drawer)| bytes(folder, Path::new(drawer)));
        kept.fold(bytes(&self.dir, Path::new(".")), u64::saturating_add)
    }

    fn remove(&self, runs: &Dir, name: &str, run: &str) -> io::Result<()> {
        let going = format!("{GOING}{run}");
        runs.rename(name, runs, &going)?;
        for (folder, drawer) in &self.drawers {
            folder.remove_dir_all(drawer)?;
        }
        runs.remove_dir_all(&going)
    }
}

/// A run's journal, if it has one.
fn journal(run: &Dir) -> io::Result<Option<Result<Journal, JournalError>>> {
    match run.read(Path::new("journal").join(INDEX)) {
        Ok(index) => Ok(Some(journal::read(&index))),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why),
    }
}

/// Where the journal's folders keep what they lost. With `away` those that are not
/// there are passed over.
fn drawers(journal: &Journal, away: bool) -> Result<Vec<(Dir, String)>, Stays> {
    let drawer = &journal.header.drawer;
    if journal.header.folders.is_empty() {
        return Ok(Vec::new());
    }
    // Whatever an index says, nothing else in a folder is removed.
    if !drawer.starts_with(KEPT_PREFIX) || drawer.contains('/') {
        return Err(Stays::Journal);
    }
    let inner = format!("/{drawer}/");
    let mut drawers = Vec::new();
    for folder in &journal.header.folders {
        let opened = Dir::open_ambient_dir(&folder.host, ambient_authority()).ok();
        let same = opened.filter(|dir| Identity::of(dir) == Ok(folder.identity));
        let Some(dir) = same else {
            let lost = journal.entries.iter().any(|entry| {
                let inside = Path::new(&entry.path).starts_with(&folder.guest);
                inside && entry.kept.as_ref().is_some_and(|kept| kept.starts_with(&inner))
            });
            if lost && !away {
                return Err(Stays::Away(folder.host.clone()));
            }
            continue;
        };
        if dir.symlink_metadata(drawer).is_ok_and(|found| found.is_dir()) {
            drawers.push((dir, drawer.clone()));
        }
    }
    Ok(drawers)
}

/// Bytes of the files below a directory, as far as they can be seen.
fn bytes(dir: &Dir, path: &Path) -> u64 {
    let mut total = 0_u64;
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        for entry in dir.read_dir(&path).into_iter().flatten().flatten() {
            let inner = path.join(entry.file_name());
            match dir.symlink_metadata(&inner) {
                Ok(found) if found.is_dir() => left.push(inner),
                Ok(found) => total = total.saturating_add(found.len()),
                Err(_) => {}
            }
        }
    }
    total
}

/// Whether this is a name that [`log::new_run_dir`] gives.
fn is_run(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts.as_slice(), [day, second, random]
        if digits(day, 8) && digits(second, 6) && digits(random, 8))
}

impl From<io::Error> for Stays {
    fn from(why: io::Error) -> Self {
        Self::Host(why)
    }
}

/// Before the name of a run that is being removed.
const GOING: &str = ".going-";
/// A run's directory without a log is left for so long.
const BEGINNING: Duration = Duration::from_hours(1);

#[cfg(test)]
mod tests {
    use super::{GOING, Item, Order, Stays, collect};
    use core::time::Duration;
    use std::fs::{self, File};
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    const RUN: &str = "20260101-000000-1234abcd";

    fn order() -> Order {
        Order { before: SystemTime::now(), broken: false, look: false }
    }

    fn items(runs: &Path, order: Order) -> Vec<Item> {
        let mut items = Vec::new();
        collect(runs, order, |item| {
            let (what, name) = (item.what.clone(), item.name.clone());
            items.push(Item { what, name, bytes: item.bytes, stays: None });
            if let Some(stays) = &item.stays {
                items.last_mut().unwrap().stays = Some(match stays {
                    Stays::Live => Stays::Live,
                    Stays::Holds(holds) => Stays::Holds(*holds),
                    Stays::Log(broken) => Stays::Log(*broken),
                    Stays::Journal => Stays::Journal,
                    Stays::Away(folder) => Stays::Away(folder.clone()),
                    Stays::Host(why) => Stays::Host(why.kind().into()),
                });
            }
        })
        .unwrap();
        items
    }

    /// A killed run's directory: an empty log begins no record.
    fn run(runs: &Path) -> PathBuf {
        let run = runs.join(RUN);
        fs::create_dir_all(run.join("journal")).unwrap();
        run
    }

    /// A journal that kept something in a folder on another file system.
    fn journal(run: &Path, folder: &Path, drawer: &str) {
        let found = fs::metadata(folder).unwrap();
        let header = format!(
            r#"{{"synapse-journal":1,"drawer":"{drawer}","folders":[{{"guest":"/data","host":"{}","device":{},"inode":{}}}]}}"#,
            folder.display(),
            found.dev(),
            found.ino()
        );
        let state =
            r#"{"kind":"file","device":1,"inode":1,"size":1,"modified":[1,1],"sha256":null}"#;
        let entry = format!(
            r#"{{"record":2,"operation":"delete","path":"/data/a","to":null,"before":{state},"after":null,"kept":"/{drawer}/2","made":[]}}"#
        );
        fs::write(run.join("journal/index"), format!("{header}\n{entry}\n")).unwrap();
    }

    fn age(run: &Path) {
        let old = SystemTime::now() - Duration::from_hours(48);
        File::open(run).unwrap().set_modified(old).unwrap();
    }

    #[test]
    fn a_run_goes_with_what_it_kept_and_nothing_that_a_link_names() {
        let root = tempfile::tempdir().unwrap();
        let (runs, folder) = (root.path().join("runs"), root.path().join("folder"));
        let kept = folder.join(".synapse-kept-1");
        fs::create_dir_all(kept.join("2/deep")).unwrap();
        fs::write(kept.join("2/deep/file"), "12345").unwrap();
        fs::write(folder.join("mine"), "stays").unwrap();
        symlink(&folder, kept.join("2/link")).unwrap();
        let run = run(&runs);
        journal(&run, &folder, ".synapse-kept-1");
        symlink(&folder, run.join("link")).unwrap();
        symlink(&folder, runs.join("20260101-000000-00000000")).unwrap();
        fs::create_dir(runs.join("notes")).unwrap();

        assert!(items(&runs, order()).is_empty(), "a run without a log may be about to begin");
        age(&run);
        let looked = items(&runs, Order { look: true, ..order() });
        assert!(looked.len() == 1 && looked[0].stays.is_none() && run.exists());
        let gone = items(&runs, order());
        assert!(gone.len() == 1 && gone[0].stays.is_none(), "{gone:?}");
        assert!(gone[0].bytes == looked[0].bytes && gone[0].bytes > 5, "{gone:?}");
        assert!(!run.exists() && !kept.exists());
        assert_eq!(fs::read_to_string(folder.join("mine")).unwrap(), "stays");
        assert!(runs.join("notes").exists());
        assert!(runs.join("20260101-000000-00000000").is_symlink());
    }

    #[test]
    fn a_journal_that_names_something_else_removes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (runs, folder) = (root.path().join("runs"), root.path().join("folder"));
        fs::create_dir_all(folder.join("mine")).unwrap();
        let run = run(&runs);
        for drawer in ["mine", ".synapse-kept-1/../mine"] {
            journal(&run, &folder, drawer);
            age(&run);
            assert!(matches!(items(&runs, order())[0].stays, Some(Stays::Journal)), "{drawer}");
        }
        assert!(folder.join("mine").exists() && run.exists());
    }

    #[test]
    fn a_run_whose_folder_is_away_stays_unless_it_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        let (runs, folder) = (root.path().join("runs"), root.path().join("folder"));
        fs::create_dir_all(folder.join(".synapse-kept-1")).unwrap();
        let run = run(&runs);
        journal(&run, &folder, ".synapse-kept-1");
        fs::rename(&folder, root.path().join("elsewhere")).unwrap();
        age(&run);
        assert!(matches!(items(&runs, order())[0].stays, Some(Stays::Away(_))));
        assert!(items(&runs, Order { broken: true, ..order() })[0].stays.is_none());
        assert!(!run.exists());
    }

    #[test]
    fn a_run_that_goes_on_stays_and_so_does_a_log_that_is_not_as_written() {
        let root = tempfile::tempdir().unwrap();
        let run = run(root.path());
        fs::write(run.join("log"), "this is no log of any version, it is a text").unwrap();
        let log = File::open(run.join("log")).unwrap();
        log.try_lock().unwrap();
        let all = Order { broken: true, ..order() };
        assert!(matches!(items(root.path(), all)[0].stays, Some(Stays::Live)));
        drop(log);
        assert!(matches!(items(root.path(), order())[0].stays, Some(Stays::Log(_))));
        let young = Order { before: SystemTime::now() - Duration::from_hours(1), ..all };
        assert!(items(root.path(), young).is_empty());
        assert!(items(root.path(), all)[0].stays.is_none());
    }

    #[test]
    fn a_removal_that_was_cut_off_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let run = run(root.path());
        fs::rename(run, root.path().join(format!("{GOING}{RUN}"))).unwrap();
        assert_eq!(items(root.path(), order())[0].name, RUN);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
