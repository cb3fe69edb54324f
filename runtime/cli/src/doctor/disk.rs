//! Folders: what the kernel and the file system do for them
//!
//! # Not here
//! Opening them for an agent (`synapse_primitives::disk`).

use rustix::fs::{
    CWD, Mode, OFlags, RenameFlags, ResolveFlags, fstatfs, open, openat2, renameat_with, statvfs,
};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use synapse_host::{log, run, store};

use super::{Check, Need};

/// Where logs and journals stand.
pub(super) fn state() -> Vec<Check> {
    let place = log::runs_dir().and_then(nearest);
    let room = place.as_ref().map_err(ToString::to_string).and_then(|(_, place)| room(place));
    let safe = place.as_ref().map_err(ToString::to_string).and_then(|(_, place)| beneath(place));
    let place = place.map_err(|why| why.to_string()).and_then(|(runs, place)| {
        exchange(&place).or_else(|why| if why.unsupported { Ok(()) } else { Err(why.told) })?;
        let shown = runs.display();
        let kind = kind(&place)?;
        Ok(if runs == place {
            format!("{shown}, on {kind}")
        } else {
            format!("{shown}, on {kind}; the first run makes it")
        })
    });
    vec![
        Check {
            name: "state",
            found: place,
            need: Need::Run,
            why: "each run keeps its log and its journal there, and none runs without a log",
            todo: "set XDG_STATE_HOME to a folder that you own",
        },
        Check {
            name: "space",
            found: room,
            need: Need::Run,
            why: "a run that cannot record ends, and what does not fit the journal is not replaced",
            todo: "remove old runs with `synapse gc`, or set XDG_STATE_HOME to a larger disk",
        },
        Check {
            name: "labels",
            found: labels(),
            need: Need::Run,
            why: "what files carry is kept there, and no run begins that cannot know it",
            todo: "use the version that wrote it, or move it away: then every file counts as \
                   from outside",
        },
        Check {
            name: "openat2",
            found: safe,
            need: Need::Run,
            why: "it opens what stands in a granted folder so that no link leads outside",
            todo: "use Linux 5.6 or later, in a sandbox that lets the call through",
        },
    ]
}

/// The store of labels, if a run has made one.
fn labels() -> Result<String, String> {
    let state = log::state_dir().map_err(|why| why.to_string())?;
    let path = state.join(store::FILE);
    let shown = path.display();
    if !path.exists() {
        return Ok(format!("{shown}; the first run makes it"));
    }
    let opened = store::Redb::open(&state).map(|_| ());
    opened.map(|()| shown.to_string()).map_err(|why| format!("{shown}: {why}"))
}

/// A folder that an agent is to see.
pub(super) fn folder(dir: &Path) -> Vec<Check> {
    let named = |told: String| format!("{}: {told}", dir.display());
    let found = kind(dir).and_then(|kind| beneath(dir).map(|_| format!("it opens, on {kind}")));
    let exchanged = exchange(dir).map(|()| "files can be exchanged".to_owned());
    vec![
        Check {
            name: "folder",
            found: found.map(named).map_err(named),
            need: Need::Run,
            why: "an agent sees only folders that can be opened",
            todo: "name a folder that exists and that you may read",
        },
        Check {
            name: "exchange",
            found: exchanged.map(named).map_err(|why| named(why.told)),
            need: Need::More,
            why: "what an agent replaces is kept by exchange; without it, it may read here and \
                  make new files, no more",
            todo: "use a folder that you may write, on ext4, xfs, btrfs or tmpfs",
        },
    ]
}

/// The folder, and itself or whatever above it exists.
fn nearest(folder: PathBuf) -> io::Result<(PathBuf, PathBuf)> {
    let found = folder.ancestors().find(|ancestor| ancestor.exists()).map(Path::to_path_buf);
    found.map(|found| (folder, found)).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn room(place: &Path) -> Result<String, String> {
    let found = statvfs(place).map_err(|why| io::Error::from(why).to_string())?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free < LEAST {
        return Err(format!("{} MiB are free", free >> 20));
    }
    let limit = run::JOURNAL >> 20;
    Ok(format!("{} MiB are free; a run's journal takes up to {limit}", free >> 20))
}

/// Opens the folder from itself as the disk opens all that stands in it.
fn beneath(folder: &Path) -> Result<String, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let told = |why: Errno| io::Error::from(why).to_string();
    let dir = open(folder, flags, Mode::empty()).map_err(told)?;
    openat2(&dir, ".", flags, Mode::empty(), resolve)
        .map(|_| "the kernel keeps an open inside its folder".to_owned())
        .map_err(told)
}

struct NoExchange {
    told: String,
    /// The folder takes files, its file system does not exchange them.
    unsupported: bool,
}

/// Writes two empty files into the folder, exchanges and removes them.
fn exchange(folder: &Path) -> Result<(), NoExchange> {
    let failed = |why: io::Error| NoExchange {
        told: format!("no file can be made: {why}"),
        unsupported: false,
    };
    let scratch = folder.join(format!(".synapse-doctor-{}", process::id()));
    fs::create_dir(&scratch).map_err(failed)?;
    let pair = ["one", "two"].map(|name| scratch.join(name));
    let [one, two] = &pair;
    let exchanged =
        pair.iter().try_for_each(|file| fs::write(file, [])).map_err(failed).and_then(|()| {
            renameat_with(CWD, one, CWD, two, RenameFlags::EXCHANGE).map_err(|why| NoExchange {
                told: format!("files cannot be exchanged: {}", io::Error::from(why)),
                unsupported: true,
            })
        });
    let removed = fs::remove_dir_all(&scratch).map_err(failed);
    exchanged.and(removed)
}

/// The file system of a folder, by its kernel's number for it.
fn kind(folder: &Path) -> Result<String, String> {
    let told = |why: Errno| io::Error::from(why).to_string();
    let dir = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(told)?;
    let number = fstatfs(&dir).map_err(told)?.f_type.cast_unsigned();
    let known = KINDS.iter().find(|(known, _)| *known == number);
    Ok(known.map_or_else(|| format!("file system {number:#x}"), |(_, name)| (*name).to_owned()))
}

/// Bytes below which a run is not worth beginning.
const LEAST: u64 = 64 << 20;

/// Numbers of `linux/magic.h` and of each file system's own sources.
const KINDS: [(u64, &str); 13] = [
    (0xef53, "ext4"),
    (0x9123_683e, "btrfs"),
    (0x5846_5342, "xfs"),
    (0xf2f5_2010, "f2fs"),
    (0x2fc1_2fc1, "zfs"),
    (0x0102_1994, "tmpfs (gone when this machine restarts)"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"),
];

#[cfg(test)]
mod tests {
    use super::{exchange, folder, nearest};
    use std::fs;

    #[test]
    fn a_folder_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        assert!(exchange(dir.path()).is_ok());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(folder(dir.path()).iter().all(|check| check.found.is_ok()));
    }

    #[test]
    fn what_is_no_folder_stops_a_run() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for name in ["none", "file"] {
            assert!(folder(&dir.path().join(name)).iter().any(super::Check::stops_a_run), "{name}");
        }
    }

    #[test]
    fn what_a_run_would_make_is_judged_by_what_stands_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("a/b");
        assert_eq!(nearest(runs.clone()).unwrap(), (runs, dir.path().to_path_buf()));
    }
}
