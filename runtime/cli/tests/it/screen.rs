//! Pipes, terminals without colour, and narrow ones.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::out;

/// What a terminal of this width is sent by the command.
fn on_terminal(columns: u16, set: &[(&str, &str)], arguments: &[&str]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
        .unwrap();
    let stdio = || Stdio::from(theirs.try_clone().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_synapse"));
    command.args(arguments).stdin(stdio()).stdout(stdio()).stderr(stdio());
    for variable in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    let mut child = command.env("TERM", "xterm").envs(set.iter().copied()).spawn().unwrap();
    drop((theirs, command));
    let mut text = Vec::new();
    // A terminal whose other side is closed answers with an error.
    let _ = File::from(ours).read_to_end(&mut text);
    child.wait().unwrap();
    String::from_utf8(text).unwrap()
}

const ESCAPE: char = '\u{1b}';

#[test]
fn colour_is_for_terminals_that_want_it() {
    for arguments in [&["--help"][..], &["jump"], &["run"]] {
        assert!(on_terminal(80, &[], arguments).contains(ESCAPE), "the test sees colour");
        for plain in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let text = on_terminal(80, &[plain], arguments);
            assert!(!text.contains(ESCAPE) && text.contains("synapse"), "{plain:?}: {text}");
        }
        let piped = Command::new(env!("CARGO_BIN_EXE_synapse"))
            .args(arguments)
            .env_remove("CI")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .env("TERM", "xterm")
            .output()
            .unwrap();
        assert!(!out(&piped).contains(ESCAPE), "{arguments:?}");
        assert!(!String::from_utf8_lossy(&piped.stderr).contains(ESCAPE), "{arguments:?}");
    }
}

/// What a text says, wherever its lines break.
fn said(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn a_narrow_terminal_loses_nothing() {
    let plain = &[("NO_COLOR", "1")];
    for arguments in [&["--help"][..], &["run", "--help"], &["doctor", "--help"]] {
        let (wide, narrow) =
            (on_terminal(200, plain, arguments), on_terminal(20, plain, arguments));
        assert!(wide.lines().count() < narrow.lines().count(), "the test sees the width");
        assert_eq!(said(&wide), said(&narrow), "{arguments:?}");
    }
    let lines = on_terminal(20, plain, &["primitives"]);
    assert_eq!(said(&lines), said(&on_terminal(200, plain, &["primitives"])));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let script = format!("'{}' primitives | head -n 1", env!("CARGO_BIN_EXE_synapse"));
    let ran =
        Command::new("sh").args(["-c", &script]).current_dir(Path::new("/")).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
}
