//! An effect on the disk, through the door and without it
//!
//! # Not here
//! The other primitives: reading is the one that asks least of a disk, so that
//! the door shows most.

use core::hint::black_box;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use synapse_host::console::{Console, PATIENCE};
use synapse_host::render::{Stream, Terminal};
use synapse_kernel::engine::Door as _;
use synapse_primitives::disk::{Disk, Mount};
use synapse_primitives::mounts::Access;
use synapse_reply::frame::HEADER;

use crate::task::{now, task};
use crate::{Failure, Group, Row};

/// The rows; the first is plain cap-std.
///
/// # Errors
/// There is no place for a temporary file, or no `openat2`.
pub fn group() -> Result<Group, Failure> {
    let unmade = |why: io::Error| format!("no temporary folder could be used: {why}\nset TMPDIR");
    let folder = tempfile::tempdir().map_err(unmade)?;
    fs::write(folder.path().join(NAME), [b'x'; BYTES]).map_err(unmade)?;
    let plain = open(folder.path()).map_err(unmade)?;
    let mount = Mount {
        root: "/data".to_owned(),
        host: folder.path().to_string_lossy().into_owned(),
        dir: open(folder.path()).map_err(unmade)?,
        access: Access::ReadOnly,
    };
    let screen = Box::new(Console {
        terminal: Terminal::new(Stream::Error),
        agent: "bench".to_owned(),
        cancel: Arc::default(),
        patience: PATIENCE,
    });
    let disk = Disk::new(vec![mount], &[], None, screen).map_err(|why| why.to_string())?;
    let mut task = task(disk, GRANT)?;
    Ok(Group {
        title: "The disk: 4 KiB of a file",
        rows: vec![
            Row::new("plain cap-std", move |times| {
                // The folder is there as long as its rows are.
                let _ = &folder;
                (0..times).try_for_each(|_| whole(&read(&plain).map_err(|why| why.to_string())?))
            }),
            Row::new("through the door", move |times| {
                (0..times).try_for_each(|_| {
                    let reply = now(task.submit(SENTENCE))?;
                    let reply = reply.map_err(|code| format!("the door answered {code}"))?;
                    whole(reply.lower().get(HEADER..).unwrap_or_default())
                })
            }),
        ],
    })
}

fn whole(bytes: &[u8]) -> Result<(), Failure> {
    let whole = black_box(bytes).len() == BYTES;
    if whole { Ok(()) } else { Err("the file is not what it was".to_owned()) }
}

fn read(folder: &Dir) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BYTES);
    folder.open(NAME)?.take(BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(folder: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(folder, ambient_authority())
}

const NAME: &str = "page";
const BYTES: usize = 4096;
const SENTENCE: &[u8] =
    br#"{"name":"fs_read","arguments":{"path":"/data/page","offset":0,"length":4096}}"#;
const GRANT: &str = r#"
version = 1
primitives = ["fs_read"]
[[paths]]
path = "/data/**"
rights = ["read"]
[budget]
calls = 9223372036854775807
"#;
