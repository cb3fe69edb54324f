//! The journal's format: what each change was, and how to know it again.
//!
//! One text file a run, `index`, a line of JSON each: first a header that names
//! the folders, then one entry for each change, written before the change is
//! made. What a change displaced stands beside the index under the entry's
//! `kept` name. The format is `docs/abi.md`, "Journal".
//!
//! # Invariants
//! - I16: an entry says where the displaced thing is kept and how to know it.
//! - A line that was cut off at the end of the index is a change not yet made.
//!
//! # Not here
//! Keeping things (`disk`), what undo makes of an entry (`disk::undo`).

use alloc::{
    borrow::ToOwned,
    collections::BTreeSet,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde_json::{Value, json};

use crate::{
    disk::Identity,
    hex::{hex, unhex},
    platform::Kind,
    rest::{Rest, format},
};

/// The version of the format.
pub const VERSION: u64 = 1;

/// The name of the index in its directory.
pub const INDEX: &str = "index";

/// What a journal is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The name of the directory at a folder's root that holds what the folder
    /// lost, where it is not on the journal's file system.
    pub drawer: String,
    /// The folders of the run.
    pub folders: Vec<Folder>,
}

/// An index, read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journal {
    /// Its first line.
    pub header: Header,
    /// The changes, in the order they were made.
    pub entries: Vec<Entry>,
    /// The places in `entries` of those that were undone.
    pub undone: BTreeSet<usize>,
    /// The bytes of the index that hold all this; a cut line may follow.
    pub length: u64,
}

/// A folder that the run could change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where the guest saw it.
    pub guest: String,
    /// Where it was on the host.
    pub host: String,
    /// Which directory that was.
    pub identity: Identity,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Directories were made on the way to a path.
    Make,
    /// A file was made under a free name.
    Create,
    /// A file's content was replaced.
    Replace,
    /// Bytes were put at a file's end.
    Append,
    /// One place of a file was replaced.
    Edit,
    /// A file or directory got another name.
    Move,
    /// An entry was taken away, a directory with all below it.
    Delete,
}

const OPERATIONS: [(Operation, &str); 7] = [
    (Operation::Make, "make"),
    (Operation::Create, "create"),
    (Operation::Replace, "replace"),
    (Operation::Append, "append"),
    (Operation::Edit, "edit"),
    (Operation::Move, "move"),
    (Operation::Delete, "delete"),
];

const KINDS: [(Kind, &str); 4] = [
    (Kind::File, "file"),
    (Kind::Directory, "directory"),
    (Kind::Link, "link"),
    (Kind::Other, "other"),
];

impl Operation {
    /// The word of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        OPERATIONS.iter().find(|(operation, _)| *operation == self).map_or("", |(_, name)| name)
    }
}

/// What stood under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// What it is.
    pub kind: Kind,
    /// Which one it is.
    pub identity: Identity,
    /// Its bytes.
    pub size: u64,
    /// Seconds and nanoseconds of its last change.
    pub modified: (i64, u64),
    /// SHA-256 of the bytes that the change wrote: of an append, those alone.
    pub sha256: Option<[u8; 32]>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The decision record that permitted it.
    pub record: u64,
    /// Which of that record's changes it is, from 0.
    pub part: u64,
    /// What it did.
    pub operation: Operation,
    /// The guest path it was done to.
    pub path: String,
    /// The guest path that a move led to.
    pub to: Option<String>,
    /// What stood at `path` before.
    pub before: Option<State>,
    /// What stands there after, unless it moved or is gone.
    pub after: Option<State>,
    /// Where what was displaced is kept: a name beside the index, or one below
    /// the folder's root, which then begins with `/`.
    pub kept: Option<String>,
    /// The directories made, outermost first.
    pub made: Vec<String>,
    /// What the change gave to what it wrote or moved; `None` where nobody said.
    pub stamp: Option<Rest>,
}

/// Why a journal cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalError {
    /// Its first line is no header of this version.
    Header,
    /// The line with this number, counted from 1, is no entry.
    Line(usize),
}

impl fmt::Display for JournalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => out.write_str("its first line is no header of version 1"),
            Self::Line(number) => write!(out, "line {number} is not as it was written"),
        }
    }
}

impl core::error::Error for JournalError {}

impl Header {
    /// The first line of an index.
    #[must_use]
    pub fn line(&self) -> String {
        let folders: Vec<Value> = self.folders.iter().map(Folder::value).collect();
        line(&json!({ "synapse-journal": VERSION, "drawer": self.drawer, "folders": folders }))
    }
}

impl Folder {
    pub(crate) fn value(&self) -> Value {
        json!({
            "guest": self.guest,
            "host": self.host,
            "device": self.identity.device,
            "inode": self.identity.inode,
        })
    }

    pub(crate) fn parse(value: &Value) -> Option<Self> {
        let text = |key| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        Some(Self { guest: text("guest")?, host: text("host")?, identity: identity(value)? })
    }
}

impl Entry {
    /// The entry as a line.
    #[must_use]
    pub fn line(&self) -> String {
        line(&json!({
            "record": self.record,
            "part": self.part,
            "operation": self.operation.name(),
            "path": self.path,
            "to": self.to,
            "before": self.before.as_ref().map(state),
            "after": self.after.as_ref().map(state),
            "kept": self.kept,
            "made": self.made,
            "stamp": self.stamp.as_ref().map(format::rest),
        }))
    }
}

/// The line that says that an entry was undone, by its place among the entries.
#[must_use]
pub fn undone(place: usize) -> String {
    line(&json!({ "undone": place }))
}

/// Reads an index. One without a whole first line is of a run that ended before
/// it changed anything.
///
/// # Errors
/// [`JournalError`] for what this version did not write.
pub fn read(index: &[u8]) -> Result<Journal, JournalError> {
    let mut journal = Journal {
        header: Header { drawer: String::new(), folders: Vec::new() },
        entries: Vec::new(),
        undone: BTreeSet::new(),
        length: 0,
    };
    let lines = index.split_inclusive(|byte| *byte == b'\n');
    for (line, number) in lines.filter(|line| line.ends_with(b"\n")).zip(1..) {
        let value: Option<Value> = serde_json::from_slice(line).ok();
        let value = value.unwrap_or_default();
        if number == 1 {
            journal.header = parse_header(&value).ok_or(JournalError::Header)?;
        } else if let Some(place) = value.get("undone").and_then(Value::as_u64) {
            let place = usize::try_from(place).ok().filter(|place| *place < journal.entries.len());
            journal.undone.insert(place.ok_or(JournalError::Line(number))?);
        } else {
            journal.entries.push(parse(&value).ok_or(JournalError::Line(number))?);
        }
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        journal.length = journal.length.saturating_add(length);
    }
    Ok(journal)
}

fn line(value: &Value) -> String {
    let mut line = value.to_string();
    line.push('\n');
    line
}

fn parse_header(value: &Value) -> Option<Header> {
    if value.get("synapse-journal")?.as_u64()? != VERSION {
        return None;
    }
    let drawer = value.get("drawer")?.as_str()?.to_owned();
    let folders =
        value.get("folders")?.as_array()?.iter().map(Folder::parse).collect::<Option<_>>()?;
    Some(Header { drawer, folders })
}

fn identity(value: &Value) -> Option<Identity> {
    let number = |key| value.get(key).and_then(Value::as_u64);
    Some(Identity { device: number("device")?, inode: number("inode")? })
}

fn parse(value: &Value) -> Option<Entry> {
    let word = value.get("operation")?.as_str()?;
    let text = |key| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let made = value.get("made")?.as_array()?.iter();
    let state = |key| match value.get(key)? {
        Value::Null => Some(None),
        state => parse_state(state).map(Some),
    };
    Some(Entry {
        record: value.get("record")?.as_u64()?,
        // Until a call could make several changes, none was numbered.
        part: value.get("part").map_or(Some(0), Value::as_u64)?,
        operation: OPERATIONS.iter().find(|(_, name)| *name == word)?.0,
        path: text("path")?,
        to: text("to"),
        before: state("before")?,
        after: state("after")?,
        kept: text("kept"),
        made: made.map(|path| path.as_str().map(ToOwned::to_owned)).collect::<Option<_>>()?,
        stamp: match value.get("stamp") {
            None | Some(Value::Null) => None,
            Some(stamp) => Some(format::parse_rest(stamp)?),
        },
    })
}

fn state(state: &State) -> Value {
    let kind = KINDS.iter().find(|(kind, _)| *kind == state.kind).map_or("", |(_, name)| name);
    json!({
        "kind": kind,
        "device": state.identity.device,
        "inode": state.identity.inode,
        "size": state.size,
        "modified": state.modified,
        "sha256": state.sha256.as_ref().map(|digest| hex(digest)),
    })
}

fn parse_state(value: &Value) -> Option<State> {
    let word = value.get("kind")?.as_str()?;
    let modified = value.get("modified")?.as_array()?;
    let sha256 = match value.get("sha256")? {
        Value::Null => None,
        digest => Some(unhex(digest.as_str()?)?),
    };
    Some(State {
        kind: KINDS.iter().find(|(_, name)| *name == word)?.0,
        identity: identity(value)?,
        size: value.get("size")?.as_u64()?,
        modified: (modified.first()?.as_i64()?, modified.get(1)?.as_u64()?),
        sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::{Entry, Folder, Header, JournalError, Operation, State, read};
    use crate::{disk::Identity, platform::Kind, rest::Rest};
    use alloc::{string::ToString, vec, vec::Vec};

    fn sample() -> (Header, Vec<Entry>) {
        let identity = Identity { device: 7, inode: u64::MAX };
        let folders = vec![Folder {
            guest: "/data".to_string(),
            host: "/home/a \"b\"\n".to_string(),
            identity,
        }];
        let state = State {
            kind: Kind::File,
            identity,
            size: 9,
            modified: (-1, 999_999_999),
            sha256: Some([0xab; 32]),
        };
        let move_ = Entry {
            record: 12,
            part: 0,
            operation: Operation::Move,
            path: "/data/a".to_string(),
            to: Some("/data/é/b".to_string()),
            before: Some(State { sha256: None, kind: Kind::Directory, ..state.clone() }),
            after: None,
            kept: None,
            made: vec!["/data/é".to_string()],
            stamp: Some(Rest::outside()),
        };
        let edit = Entry {
            record: 13,
            part: 2,
            operation: Operation::Edit,
            to: None,
            before: Some(state.clone()),
            after: Some(state),
            kept: Some("13.2".to_string()),
            made: vec![],
            stamp: None,
            ..move_.clone()
        };
        (Header { drawer: ".synapse-kept-1".to_string(), folders }, vec![move_, edit])
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (header, entries) = sample();
        let index = [header.line(), entries[0].line(), entries[1].line()].concat();
        let undone = super::undone(1);
        let all = [&index, &undone, "{\"undone"].concat();
        let read_back = read(all.as_bytes()).unwrap();
        assert_eq!(read_back.header, header);
        assert_eq!(read_back.entries, entries);
        assert_eq!(read_back.undone, [1].into());
        assert_eq!(read_back.length, (index.len() + undone.len()) as u64, "a cut line is none");
        let cut = &index.as_bytes()[..index.len() - 1];
        assert_eq!(read(cut).unwrap().entries, entries[..1], "a cut line is none");
    }

    #[test]
    fn what_was_not_written_is_refused_by_its_line() {
        let (header, entries) = sample();
        let header = header.line();
        assert_eq!(
            read(header.trim_end().as_bytes()).unwrap().entries,
            [],
            "its first line is cut"
        );
        assert_eq!(read(b"\n"), Err(JournalError::Header));
        let later = header.replace("-journal\":1", "-journal\":2");
        assert_eq!(read(later.as_bytes()), Err(JournalError::Header));
        for (right, wrong) in
            [("edit", "edits"), ("13", "-13"), ("abab", "xyab"), ("\"path\"", "\"p\"")]
        {
            let index =
                [header.clone(), entries[0].line(), entries[1].line().replace(right, wrong)];
            assert_eq!(read(index.concat().as_bytes()), Err(JournalError::Line(3)), "{wrong}");
        }
        let early = [header, super::undone(0)].concat();
        assert_eq!(read(early.as_bytes()), Err(JournalError::Line(2)), "nothing to be undone");
    }
}
