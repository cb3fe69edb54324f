//! The screen of the host: a stream, wrapped at the terminal's edge
//!
//! # Not here
//! Making what others wrote visible (`synapse_kernel::render`).

use std::io::{self, IsTerminal, Write as _};

use rustix::termios;
use synapse_primitives::Fault;

pub use synapse_kernel::render::{COLUMN, block, escape, is_hidden, line, wrapped};

/// Which stream a [`Terminal`] writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error, when standard output is for a program.
    Error,
}

/// The screen of the host: guests' output behind the column.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    stream: Stream,
}

impl Terminal {
    /// Shows on this stream.
    #[must_use]
    pub const fn new(stream: Stream) -> Self {
        Self { stream }
    }

    /// The number of columns now, or as many as there are bytes when nobody
    /// wraps lines.
    pub(crate) fn columns(self) -> usize {
        self.size().map_or(usize::MAX, |(columns, _)| columns)
    }

    /// The number of lines now, or any when nobody sees them pass.
    pub(crate) fn rows(self) -> usize {
        self.size().map_or(usize::MAX, |(_, rows)| rows)
    }

    /// Columns and rows of a terminal.
    fn size(self) -> Option<(usize, usize)> {
        let size = match self.stream {
            Stream::Output if io::stdout().is_terminal() => termios::tcgetwinsize(io::stdout()),
            Stream::Error if io::stderr().is_terminal() => termios::tcgetwinsize(io::stderr()),
            Stream::Output | Stream::Error => return None,
        };
        let known = |number: u16, usual| if number > 0 { number.into() } else { usual };
        Some(size.map_or((USUAL.0, USUAL.1), |size| {
            (known(size.ws_col, USUAL.0), known(size.ws_row, USUAL.1))
        }))
    }
}

impl Terminal {
    /// Whether somebody may be looking at it.
    pub(crate) fn is_seen(self) -> bool {
        match self.stream {
            Stream::Output => io::stdout().is_terminal(),
            Stream::Error => io::stderr().is_terminal(),
        }
    }

    /// Shows what others wrote, each line behind [`COLUMN`].
    ///
    /// # Errors
    /// `Closed` when nobody can see it, `Io`.
    pub fn show(self, bytes: &[u8]) -> Result<(), Fault> {
        self.say(&wrapped(bytes, self.columns()))
    }

    /// Shows this program's own words.
    pub(crate) fn say(self, text: &str) -> Result<(), Fault> {
        // One write under the stream's lock: no other line gets in between.
        let shown = match self.stream {
            Stream::Output => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            Stream::Error => io::stderr().lock().write_all(text.as_bytes()),
        };
        shown.map_err(|why| match why.kind() {
            io::ErrorKind::BrokenPipe => Fault::Closed,
            _ => Fault::Io,
        })
    }
}

const USUAL: (usize, usize) = (80, 24);
