//! A program at a real terminal, and the hand that types there.

use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A program at a terminal, and the hand that types there.
pub(crate) struct Session {
    pub(crate) child: Child,
    hand: File,
    screen: Arc<Mutex<String>>,
    /// Where the last expectation ended.
    seen: usize,
}

impl Session {
    pub(crate) fn start(root: &Path, arguments: &[&str]) -> Self {
        Self::start_typed(root, arguments, b"")
    }

    /// Starts a program with this in its terminal already.
    pub(crate) fn start_typed(root: &Path, arguments: &[&str], before: &[u8]) -> Self {
        Self::begin(root, arguments, 24, before)
    }

    /// Starts a program at a terminal with so many rows.
    pub(crate) fn start_on(root: &Path, rows: u16, arguments: &[&str]) -> Self {
        Self::begin(root, arguments, rows, b"")
    }

    fn begin(root: &Path, arguments: &[&str], rows: u16, before: &[u8]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: rows, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).unwrap();
        let mut hand = File::from(ours);
        hand.write_all(before).unwrap();
        let stdio = || Stdio::from(theirs.try_clone().unwrap());
        let child = command(root, arguments)
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        let (screen, mut reader) = (Arc::<Mutex<String>>::default(), hand.try_clone().unwrap());
        thread::spawn({
            let screen = Arc::clone(&screen);
            move || {
                let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
                // A terminal whose other side is closed answers with an error.
                while let Ok(got @ 1..) = reader.read(&mut piece) {
                    bytes.extend_from_slice(&piece[..got]);
                    *screen.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
                }
            }
        });
        Self { child, hand, screen, seen: 0 }
    }

    /// What is shown up to this text.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let rest = self.rest();
            if let Some((before, _)) = rest.split_once(text) {
                self.seen += before.len() + text.len();
                return before.to_owned();
            }
            assert!(began.elapsed() < PATIENCE, "no `{text}` in:\n{rest}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// All that was shown.
    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// What was shown since the last expectation.
    pub(crate) fn rest(&self) -> String {
        self.screen().split_off(self.seen)
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.hand.write_all(text.as_bytes()).unwrap();
    }

    /// How it ended, and all that was on its screen.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "it does not end:\n{}", self.screen());
            thread::sleep(Duration::from_millis(20));
        }
        // What it said last may be on its way.
        thread::sleep(Duration::from_millis(100));
        (self.child.wait().unwrap().code(), self.screen())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command in this folder, with its state below it.
pub(crate) fn command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_synapse"));
    command.args(arguments).current_dir(root).env("XDG_STATE_HOME", root.join("state"));
    command.env("XDG_CONFIG_HOME", root.join("state/settings"));
    command.env("TERM", "xterm").env("NO_COLOR", "1").env_remove("CI");
    command
}

/// How long anything may take to be shown.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
