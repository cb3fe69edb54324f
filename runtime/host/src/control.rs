//! The socket of a run that goes on: how it goes, and its end from elsewhere.
//!
//! One line of JSON asks, one answers, and the connection is over. The format is
//! `docs/control.md`.
//!
//! # Invariants
//! - Only this user is answered, by what the kernel says of the peer.
//! - What is asked cannot raise what an agent may do.
//!
//! # Not here
//! Which runs go on ([`crate::locks`]). How a run ends (the kernel).

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustix::net::{Shutdown, shutdown, sockopt};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use synapse_boundary::Said;

use crate::desk::{Desk, Standing};

/// The name of the socket in its run's directory.
pub const SOCKET: &str = "control";

/// The version of the protocol.
pub const VERSION: u64 = 1;

/// What a live run can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// How it goes.
    Status,
    /// To end, as by Ctrl-C; it is answered at once.
    Cancel,
    /// The question that it waits with, for a screen of so many columns.
    Question {
        /// How wide the screen is.
        columns: u16,
        /// Which part, from 0.
        part: usize,
    },
    /// To take this answer to the question with this number.
    Answer {
        /// The question's number.
        question: u64,
        /// What was said.
        said: Word,
    },
}

/// What can be said to a question from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Something that is neither.
    Other,
}

/// A part of a question, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The question's number in its run.
    pub number: u64,
    /// Seconds until it is given up.
    pub left: u64,
    /// Parts that there are.
    pub parts: usize,
    /// Whole lines of it, escaped.
    pub text: String,
}

/// How a live run goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The agent, as it was named.
    pub agent: String,
    /// The installed package that it is of, if it is of one.
    #[serde(default)]
    pub package: Option<String>,
    /// The task line.
    pub task: String,
    /// Calls that have crossed the door.
    pub calls: u64,
    /// Whether it was asked to end.
    pub cancelled: bool,
    /// The number of the question that it waits with.
    #[serde(default)]
    pub question: Option<u64>,
}

/// Answers for a run until it is dropped.
#[derive(Debug)]
pub struct Control {
    listener: Arc<UnixListener>,
    over: Arc<AtomicBool>,
    path: PathBuf,
}

impl Control {
    /// Makes the socket in a run's directory and answers there.
    ///
    /// # Errors
    /// What the host answered; it may hold no sockets there.
    pub fn serve(
        run_dir: &Path,
        cancel: Arc<AtomicBool>,
        desk: Arc<Desk>,
        status: impl Fn() -> Status + Send + 'static,
    ) -> io::Result<Self> {
        let path = run_dir.join(SOCKET);
        let listener = Arc::new(through(run_dir, |path| UnixListener::bind(path))?);
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let over = Arc::new(AtomicBool::new(false));
        thread::Builder::new().name("control".to_owned()).spawn({
            let (listener, over) = (Arc::clone(&listener), Arc::clone(&over));
            move || {
                while !over.load(Ordering::Acquire) {
                    match listener.accept() {
                        // Whoever asks and leaves needs no answer.
                        Ok((peer, _)) => drop(answer(&peer, &cancel, &desk, &status)),
                        // There may be too many open files for a while.
                        Err(_) => thread::sleep(PAUSE),
                    }
                }
            }
        })?;
        Ok(Self { listener, over, path })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // Wakes the thread. Nobody waits for it: a client that dawdles delays no end.
        let _ = shutdown(&self.listener, Shutdown::Both);
        let _ = fs::remove_file(&self.path);
    }
}

/// Asks the run of this directory.
///
/// # Errors
/// It does not answer, or what it answers is not understood.
pub fn ask(run_dir: &Path, request: Request) -> io::Result<Status> {
    Ok(serde_json::from_value(send(run_dir, request, "status")?)?)
}

/// The question that the run of this directory waits with, whole.
///
/// # Errors
/// As [`ask`].
pub fn question(run_dir: &Path, columns: u16) -> io::Result<Option<Shown>> {
    let mut whole: Option<Shown> = None;
    loop {
        let part = whole.as_ref().map_or(0, |whole| whole.parts);
        let request = Request::Question { columns, part };
        let shown: Option<Shown> = serde_json::from_value(send(run_dir, request, "question")?)?;
        match (&mut whole, shown) {
            // It was answered, or another one stands, in the middle of it.
            (_, None) => return Ok(None),
            (Some(whole), Some(shown)) if shown.number != whole.number => return Ok(None),
            (Some(whole), Some(shown)) => {
                whole.text.push_str(&shown.text);
                whole.parts += 1;
                if whole.parts >= shown.parts {
                    return Ok(Some(whole.clone()));
                }
            }
            (None, Some(shown)) if shown.parts <= 1 => return Ok(Some(shown)),
            (None, Some(shown)) => whole = Some(Shown { parts: 1, ..shown }),
        }
    }
}

/// Answers the question with this number.
///
/// # Errors
/// As [`ask`]; the question does not stand any longer.
pub fn reply(run_dir: &Path, question: u64, said: Word) -> io::Result<()> {
    send(run_dir, Request::Answer { question, said }, "answered").map(drop)
}

fn send(run_dir: &Path, request: Request, key: &str) -> io::Result<Value> {
    let mut run = through(run_dir, |path| UnixStream::connect(path))?;
    run.set_read_timeout(Some(PATIENCE))?;
    run.set_write_timeout(Some(PATIENCE))?;
    let mut line = json!({"v": VERSION, "do": request}).to_string();
    line.push('\n');
    run.write_all(line.as_bytes())?;
    let mut answer: Value = serde_json::from_slice(&read(&run)?)?;
    if let Some(why) = answer.get("error").and_then(Value::as_str) {
        return Err(io::Error::other(why.to_owned()));
    }
    let answer = answer.get_mut(key).map(Value::take);
    answer.ok_or_else(|| io::Error::other("the run answered something else"))
}

fn answer(
    peer: &UnixStream,
    cancel: &AtomicBool,
    desk: &Desk,
    status: impl Fn() -> Status,
) -> io::Result<()> {
    let who = sockopt::socket_peercred(peer)?;
    if who.uid != geteuid() {
        return Ok(());
    }
    peer.set_read_timeout(Some(PATIENCE))?;
    peer.set_write_timeout(Some(PATIENCE))?;
    let answer = match parse(&read(peer)?) {
        Ok(Request::Status) => json!({"v": VERSION, "status": status()}),
        Ok(Request::Cancel) => {
            cancel.store(true, Ordering::Relaxed);
            json!({"v": VERSION, "status": status()})
        }
        Ok(Request::Question { columns, part }) => {
            let standing = desk.standing();
            json!({"v": VERSION, "question": standing.map(|standing| shown(&standing, columns, part))})
        }
        Ok(Request::Answer { question, said }) => {
            let said = match said {
                Word::Yes => Said::Yes,
                Word::No => Said::No,
                Word::Other => Said::Unrecognised,
            };
            let console = format!("the control socket, process {}", who.pid.as_raw_nonzero());
            match desk.answer(question, said, console) {
                Ok(()) => json!({"v": VERSION, "answered": question}),
                Err(why) => json!({"v": VERSION, "error": why}),
            }
        }
        Err(why) => json!({"v": VERSION, "error": why}),
    };
    let mut peer = peer;
    peer.write_all(format!("{answer}\n").as_bytes())
}

/// A part of a question that fits a line of the protocol.
fn shown(standing: &Standing, columns: u16, part: usize) -> Shown {
    let text = standing.asking.text(columns.into());
    let mut parts = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if parts.last().is_some_and(|last| last.len() + line.len() > PART) {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push_str(line);
        }
    }
    Shown {
        number: standing.number,
        left: standing.until.saturating_duration_since(Instant::now()).as_secs(),
        parts: parts.len(),
        text: parts.into_iter().nth(part).unwrap_or_default(),
    }
}

fn parse(line: &[u8]) -> Result<Request, &'static str> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        v: u64,
        #[serde(rename = "do")]
        what: Value,
    }
    let asked: Asked = serde_json::from_slice(line).map_err(|_| "this is no request")?;
    if asked.v != VERSION {
        return Err("the run speaks version 1 only");
    }
    serde_json::from_value(asked.what).map_err(|_| "the run does not know this request")
}

/// One line, of a bounded length.
fn read(stream: &UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LINE)).read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Uses the socket by a short name: an address of a socket has room for 107 bytes.
fn through<T>(run_dir: &Path, by: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let dir = File::open(run_dir)?;
    by(&Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(SOCKET))
}

/// Bytes of a part of a question; a line break takes two more in JSON, and a line
/// of the widest screen is within it.
const PART: usize = 256 << 10;
/// Bytes of the longest line.
const LINE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::{Control, PATIENCE, Request, SOCKET, Status, ask, read, through};
    use crate::desk::Desk;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Instant;

    fn serve(dir: &Path, cancel: &Arc<AtomicBool>) -> Control {
        let cancelled = Arc::clone(cancel);
        Control::serve(dir, Arc::clone(cancel), Arc::<Desk>::default(), move || Status {
            package: None,
            agent: "a\nb".to_owned(),
            task: "t".repeat(5000),
            calls: 7,
            cancelled: cancelled.load(Ordering::Relaxed),
            question: None,
        })
        .unwrap()
    }

    #[test]
    fn a_run_is_asked_and_ended_below_a_path_of_any_length() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("d".repeat(200));
        fs::create_dir(&dir).unwrap();
        let cancel = Arc::default();
        let control = serve(&dir, &cancel);
        assert_eq!(fs::metadata(dir.join(SOCKET)).unwrap().permissions().mode() & 0o777, 0o600);
        let status = ask(&dir, Request::Status).unwrap();
        assert_eq!((status.agent.as_str(), status.calls, status.cancelled), ("a\nb", 7, false));
        assert!(!cancel.load(Ordering::Relaxed));
        assert!(ask(&dir, Request::Cancel).unwrap().cancelled);
        assert!(cancel.load(Ordering::Relaxed));
        drop(control);
        assert!(!dir.join(SOCKET).exists());
        assert!(ask(&dir, Request::Status).is_err());
    }

    #[test]
    fn what_is_not_understood_is_answered_and_does_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cancel = Arc::default();
        let _control = serve(dir.path(), &cancel);
        for (line, told) in [
            ("", "this is no request"),
            ("cancel\n", "this is no request"),
            (r#"{"v":2,"do":"cancel"}"#, "version 1 only"),
            (r#"{"v":1,"do":"confirm"}"#, "does not know"),
            (r#"{"v":1,"do":{"answer":{"question":1,"said":"yes"}}}"#, "does not stand"),
            (r#"{"v":1,"do":{"answer":{"question":1,"said":"always"}}}"#, "does not know"),
            (r#"{"v":1,"do":{"question":{"columns":80,"part":0}}}"#, r#""question":null"#),
            (r#"{"v":1,"do":"cancel","hard":true}"#, "this is no request"),
        ] {
            let mut peer = through(dir.path(), |path| UnixStream::connect(path)).unwrap();
            peer.write_all(line.as_bytes()).unwrap();
            peer.shutdown(std::net::Shutdown::Write).unwrap();
            let answer = String::from_utf8(read(&peer).unwrap()).unwrap();
            assert!(answer.contains(told), "{line}: {answer}");
        }
        // Nobody waits for one that says nothing.
        drop(through(dir.path(), |path| UnixStream::connect(path)).unwrap());
        assert!(!ask(dir.path(), Request::Status).unwrap().cancelled);
    }

    #[test]
    fn a_client_that_dawdles_delays_no_end() {
        let dir = tempfile::tempdir().unwrap();
        let control = serve(dir.path(), &Arc::default());
        let _silent = through(dir.path(), |path| UnixStream::connect(path)).unwrap();
        let began = Instant::now();
        drop(control);
        assert!(began.elapsed() < PATIENCE / 2);
    }
}
