//! `synapse grant new`: a first grant, from a few questions or flags
//!
//! # Not here
//! Whether the file is a grant (`synapse_kernel::grant`, which reads it before it
//! is written).

use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process;
use synapse_abi::registry::{Primitive, REGISTRY, Rights};
use synapse_boundary::scope::{HostPattern, Pattern};
use synapse_host::render;

use super::answers::Person;
use super::{GrantError, check};
use crate::output;

/// Write a first grant file, by asking what the agent may do.
///
/// On a terminal it asks what no flag says; elsewhere, and with `--defaults`,
/// the defaults hold: the folder /data may be listed and read, no host may be
/// reached. A file that exists is never changed.
///
/// Exit codes: 0 written, 1 failed, 2 the command line is wrong.
#[derive(clap::Args)]
pub(super) struct New {
    /// The file to write.
    #[arg(default_value = "grant.toml")]
    file: PathBuf,

    /// A folder, as the agent sees it; may be given more than once. By default
    /// /data.
    #[arg(long = "folder", value_name = "/GUEST", value_parser = folder)]
    folders: Vec<String>,

    /// What it may do there, separated by commas; by default list and read.
    #[arg(long, value_enum, value_delimiter = ',')]
    rights: Vec<Right>,

    /// A host that it may fetch from; may be given more than once. Without a
    /// port it is 443.
    #[arg(long = "host", value_name = "HOST[:PORT]", value_parser = host)]
    hosts: Vec<Host>,

    /// It may send to these hosts as well.
    #[arg(long)]
    send: bool,

    /// How many calls it may make.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    calls: Option<u64>,

    /// How many seconds it may compute.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    seconds: Option<u64>,

    /// Ask nothing.
    #[arg(long)]
    defaults: bool,
}

impl New {
    /// Asks, writes, and says what to do next.
    pub(super) fn run(self) -> Result<(), GrantError> {
        let file = self.file.clone();
        let name = render::escape(file.as_os_str().as_encoded_bytes());
        let failed = |why: io::Error| {
            let told = match why.kind() {
                io::ErrorKind::AlreadyExists => format!(
                    "`{name}` is there already, and a grant is never overwritten\n\
                     name another file, or move that one away"
                ),
                _ => {
                    format!("`{name}` was not written: {why}\nchoose a folder that can be written")
                }
            };
            GrantError::Told(told)
        };
        if file.symlink_metadata().is_ok() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        let wishes = if !self.defaults && io::stdin().is_terminal() {
            let person = Person { answers: io::stdin().lock(), questions: io::stderr().lock() };
            self.asked(person).map_err(|why| {
                GrantError::Told(format!("nothing was written: {why}\nstart again, or use flags"))
            })?
        } else {
            self.unasked()
        };
        let text = wishes.text();
        let grant = synapse_kernel::grant::Grant::check(&text).map_err(|mistakes| {
            let shown = mistakes.iter().map(|why| check::shown("error", why, &name, &text));
            let shown: String = shown.collect();
            GrantError::Told(format!("these wishes make no grant; nothing was written\n{shown}"))
        })?;
        write_new(&file, text.as_bytes()).map_err(failed)?;
        for warning in grant.warnings() {
            output::say(&check::shown("warning", warning, &name, &text))?;
        }
        output::say(&format!("wrote {name}"))?;
        output::say(&format!("check it after a change: synapse grant check {name}"))?;
        let dirs = wishes.folders.iter().map(|folder| format!(" --dir FOLDER={folder}"));
        let dirs: String = dirs.collect();
        output::say(&format!("use it: synapse run AGENT TASK{dirs} --grant {name}"))?;
        Ok(())
    }

    /// What the flags say, and the defaults.
    fn unasked(self) -> Wishes {
        let default =
            |list: Vec<String>| if list.is_empty() { [FOLDER.to_owned()].into() } else { list };
        Wishes {
            folders: default(self.folders),
            rights: if self.rights.is_empty() { READING.into() } else { self.rights },
            hosts: self.hosts,
            send: self.send,
            calls: self.calls.unwrap_or(CALLS),
            seconds: self.seconds.unwrap_or(SECONDS),
        }
    }

    /// What the flags say, and the human.
    fn asked<R: BufRead, W: Write>(self, mut person: Person<R, W>) -> io::Result<Wishes> {
        let mut wishes = Wishes { folders: self.folders, rights: self.rights, ..Wishes::default() };
        if wishes.folders.is_empty() {
            let question = "Which folder may it use, by the name it will see? (none for none)";
            wishes.folders = person.ask(question, FOLDER, |answer| match answer {
                "none" => Ok(Vec::new()),
                answer => answer.split_whitespace().map(folder).collect(),
            })?;
        }
        if wishes.rights.is_empty() && !wishes.folders.is_empty() {
            for (question, default, rights) in [
                ("May it see and read what is there?", "yes", &READING[..]),
                ("May it make and change files there?", "no", &[Right::Write]),
                ("May it move and delete files there?", "no", &[Right::Delete]),
            ] {
                if person.yes(question, default)? {
                    wishes.rights.extend(rights);
                }
            }
        }
        wishes.hosts = self.hosts;
        wishes.send = self.send;
        if wishes.hosts.is_empty() {
            let question = "Which hosts may it fetch from, separated by spaces? (none for none)";
            wishes.hosts = person.ask(question, "none", |answer| match answer {
                "none" => Ok(Vec::new()),
                answer => answer.split_whitespace().map(host).collect(),
            })?;
        }
        if !wishes.hosts.is_empty() && !wishes.send {
            wishes.send = person.yes("May it send to them as well?", "no")?;
        }
        wishes.calls = match self.calls {
            Some(calls) => calls,
            None => person.number("How many calls may it make?", CALLS)?,
        };
        wishes.seconds = match self.seconds {
            Some(seconds) => seconds,
            None => person.number("How many seconds may it compute?", SECONDS)?,
        };
        Ok(wishes)
    }
}

/// What the human wants the agent to be able to do.
#[derive(Debug, Default)]
struct Wishes {
    folders: Vec<String>,
    rights: Vec<Right>,
    hosts: Vec<Host>,
    send: bool,
    calls: u64,
    seconds: u64,
}

impl Wishes {
    /// The grant file.
    fn text(&self) -> String {
        let primitives: Vec<String> =
            self.primitives().map(|name| format!("    \"{name}\",\n")).collect();
        let mut text = format!(
            "# What an agent may do. What is not named here is not granted.\n\
             version = 1\nprimitives = [\n{}]\n\n\
             # Closed whatever else is granted, wherever the name stands.\n\
             deny = [\"**/.env\", \"**/.gnupg\", \"**/.ssh\"]\n",
            primitives.concat()
        );
        let rights = BTreeSet::from_iter(&self.rights);
        let rights: Vec<_> = rights.into_iter().map(|right| right.name()).collect();
        if !rights.is_empty() {
            for folder in distinct(&self.folders) {
                // A JSON string is a TOML string.
                let path = Value::from(format!("{folder}/**"));
                text += &format!("\n[[paths]]\npath = {path}\nrights = {}\n", list(&rights));
            }
        }
        let methods: &[&str] = if self.send { &["GET", "POST"] } else { &["GET"] };
        for Host { host, port } in distinct(&self.hosts) {
            let host = Value::from(host.as_str());
            let methods = list(methods);
            text += &format!("\n[[hosts]]\nhost = {host}\nports = [{port}]\nmethods = {methods}\n");
        }
        text + &format!("\n[budget]\ncalls = {}\nseconds = {}\n", self.calls, self.seconds)
    }

    /// What always helps, and what the rights and hosts are for.
    fn primitives(&self) -> impl Iterator<Item = &'static str> {
        let all = self.rights.iter().fold(Rights::NONE, |all, right| all.and(right.rights()));
        let given = if self.folders.is_empty() { Rights::NONE } else { all };
        REGISTRY
            .iter()
            .filter(move |row| match row.primitive {
                Primitive::ConsoleWrite | Primitive::ClockRead | Primitive::ValueRead => true,
                Primitive::NetHttpGet => !self.hosts.is_empty(),
                Primitive::NetHttpPost => !self.hosts.is_empty() && self.send,
                _ => {
                    let mut needs = row.arguments.iter().map(|argument| argument.needs);
                    needs.clone().any(|needed| needed != Rights::NONE)
                        && needs.all(|needed| given.cover(needed))
                }
            })
            .map(|row| row.name)
    }
}

fn list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    format!("[{}]", words.join(", "))
}

fn distinct<T: PartialEq>(items: &[T]) -> impl Iterator<Item = &T> {
    let first =
        move |(index, item): &(usize, &T)| !items.iter().take(*index).any(|before| before == *item);
    items.iter().enumerate().filter(first).map(|(_, item)| item)
}

/// What may be done in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Right {
    /// See the names.
    List,
    /// Read files.
    Read,
    /// Make and change files.
    Write,
    /// Take files away.
    Delete,
}

impl Right {
    const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }

    const fn rights(self) -> Rights {
        match self {
            Self::List => Rights::LIST,
            Self::Read => Rights::READ,
            Self::Write => Rights::WRITE,
            Self::Delete => Rights::DELETE,
        }
    }
}

/// A host and the port on it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    host: String,
    port: u16,
}

fn folder(text: &str) -> Result<String, String> {
    let folder = text.trim_end_matches('/');
    let sound = !folder.is_empty() && Pattern::parse(&format!("{folder}/**")).is_ok();
    if sound {
        Ok(folder.to_owned())
    } else {
        Err(format!("`{text}` is no folder below `/` in normal form; write it like /data"))
    }
}

fn host(text: &str) -> Result<Host, String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text, "443"),
    };
    let port = port.parse().ok().filter(|port| *port > 0);
    match (HostPattern::parse(host), port) {
        (Some(_), Some(port)) => Ok(Host { host: host.to_owned(), port }),
        _ => Err(format!(
            "`{text}` is no host; write it like example.org, *.example.org or 10.0.0.1:8080"
        )),
    }
}

/// Writes a file as a whole, and only where none is.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", process::id()));
    let hidden = path.with_file_name(hidden);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&hidden)?;
    let written = put(&mut file, bytes, &hidden, path);
    if written.is_err() {
        // The first failure is the one to tell.
        drop(fs::remove_file(&hidden));
    }
    written
}

fn put(file: &mut File, bytes: &[u8], hidden: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(renameat_with(CWD, hidden, CWD, path, RenameFlags::NOREPLACE)?)
}

const FOLDER: &str = "/data";
const READING: [Right; 2] = [Right::List, Right::Read];
const CALLS: u64 = 10_000;
const SECONDS: u64 = 300;
const MOST: u64 = i64::MAX.cast_unsigned();

#[cfg(test)]
mod tests {
    use super::{New, Person, Right, Wishes, host, write_new};
    use clap::{Args, FromArgMatches};
    use synapse_kernel::grant::Grant;

    fn new(flags: &[&str]) -> New {
        let command = New::augment_args(clap::Command::new("new"));
        let matches = command.get_matches_from([&["new"], flags].concat());
        New::from_arg_matches(&matches).unwrap()
    }

    fn asked(flags: &[&str], answers: &str) -> (std::io::Result<Wishes>, String) {
        let mut questions = Vec::new();
        let person = Person { answers: answers.as_bytes(), questions: &mut questions };
        let wishes = new(flags).asked(person);
        (wishes, String::from_utf8(questions).unwrap())
    }

    #[test]
    fn questions_are_asked_until_they_are_answered() {
        let answers = "notes\n/notes /out/\n\nYES\nmaybe\nn\na.example [::1]:80\ny\n0\n7\n\n";
        let (wishes, questions) = asked(&[], answers);
        let wishes = wishes.unwrap();
        assert_eq!(wishes.folders, ["/notes", "/out"]);
        assert_eq!(wishes.rights, [Right::List, Right::Read, Right::Write]);
        assert_eq!(wishes.hosts, [host("a.example:443").unwrap(), host("[::1]:80").unwrap()]);
        assert_eq!((wishes.send, wishes.calls, wishes.seconds), (true, 7, 300));
        for told in ["write it like /data", "answer yes or no", "from 1 on", "[/data] ", "[300] "] {
            assert!(questions.contains(told), "{told}: {questions}");
        }
        let grant = Grant::check(&wishes.text()).unwrap();
        assert_eq!(grant.warnings(), []);
        assert_eq!((grant.calls, grant.seconds), (7, 300));
    }

    #[test]
    fn a_flag_is_an_answer() {
        let flags = ["--folder", "/a", "--rights", "read", "--host", "a.example", "--calls", "5"];
        let (wishes, questions) = asked(&flags, "\n9\n");
        let wishes = wishes.unwrap();
        assert_eq!((wishes.send, wishes.calls, wishes.seconds), (false, 5, 9));
        assert_eq!(questions.matches('?').count(), 2, "{questions}");
    }

    #[test]
    fn an_end_and_three_bad_answers_are_no_answer() {
        for (answers, told) in [("", "input ended"), ("x\ny\nz\n/data\n", "three answers")] {
            let why = asked(&[], answers).0.unwrap_err().to_string();
            assert!(why.contains(told), "{why}");
        }
    }

    #[test]
    fn every_set_of_rights_makes_a_grant_without_a_warning() {
        let all = [Right::List, Right::Read, Right::Write, Right::Delete];
        for set in 0..16_u8 {
            let rights = all.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
            let wishes = Wishes {
                folders: ["/a \"b\"".into(), "/c".into(), "/c".into()].into(),
                rights: rights.map(|(_, right)| *right).collect(),
                calls: 1,
                seconds: 1,
                ..Wishes::default()
            };
            let text = wishes.text();
            assert_eq!(Grant::check(&text).unwrap().warnings(), [], "{text}");
        }
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("grant.toml");
        write_new(&file, b"one").unwrap();
        let why = write_new(&file, b"two").unwrap_err();
        assert_eq!(why.kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&file).unwrap(), b"one");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1, "nothing else is left");
    }
}
