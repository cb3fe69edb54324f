//! The one renderer: what others wrote becomes text that cannot lie on a screen.
//!
//! A terminal obeys bytes: they move its cursor, turn its text around, or hide.
//! Whatever did not come from this program is shown through here, where each
//! such character stands as its number and each line of a guest stands behind a
//! column that no guest can print. Backslashes stay as they are: what is shown
//! is for eyes, and is never read back.
//!
//! # Invariants
//! - No output holds a control, bidirectional, zero-width, tag, private-use or
//!   default-ignorable character, but for the line breaks of a block.
//! - Every screen line of a block begins with the column, wrapped ones too.
//!
//! # Not here
//! What is shown, and when (`run`, the command line).

use core::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use rustix::termios;
use synapse_primitives::Fault;

/// What stands before each line that a guest wrote.
pub const COLUMN: &str = "│ ";

/// One line with every character visible.
#[must_use]
pub fn escape(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len());
    for_each_piece(bytes, |piece| {
        piece.write(&mut text);
        true
    });
    text
}

/// As [`escape`], cut to at most `max` characters, the last of them `…` where
/// something is missing. No escape is cut in two.
#[must_use]
pub fn line(bytes: impl AsRef<[u8]>, max: usize) -> String {
    let mut text = String::new();
    let mut count = 0;
    // Where to cut if it turns out that not everything fits.
    let mut cut = 0;
    let whole = for_each_piece(bytes.as_ref(), |piece| {
        let before = text.len();
        piece.write(&mut text);
        let length = text.get(before..).unwrap_or_default().chars().count();
        if count + length < max {
            cut = text.len();
        }
        count += length;
        count <= max
    });
    if !whole {
        text.truncate(cut);
        if max > 0 {
            text.push('…');
        }
    }
    text
}

/// What a guest wrote, each line behind [`COLUMN`]. It ends with a line break
/// unless it is empty.
#[must_use]
pub fn block(bytes: impl AsRef<[u8]>) -> String {
    wrapped(bytes, usize::MAX)
}

/// As [`block`], for a screen of so many columns: a line that the terminal
/// would continue at its edge, outside of the column, is continued behind it.
#[must_use]
pub fn wrapped(bytes: impl AsRef<[u8]>, columns: usize) -> String {
    let bytes = bytes.as_ref();
    if bytes.is_empty() {
        return String::new();
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let room = columns.saturating_sub(COLUMN_WIDTH).max(NARROWEST);
    let mut text = String::with_capacity(bytes.len() + COLUMN.len());
    for line in bytes.split(|byte| *byte == b'\n') {
        text.push_str(COLUMN);
        let mut used = 0_usize;
        for_each_piece(line, |piece| {
            let width = piece.width();
            if used.saturating_add(width) > room {
                text.push('\n');
                text.push_str(COLUMN);
                used = 0;
            }
            piece.write(&mut text);
            used = used.saturating_add(width);
            true
        });
        text.push('\n');
    }
    text
}

/// Whether a character does something else on a screen than to be seen.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    let number = u32::from(character);
    let after = HIDDEN.partition_point(|(first, _)| *first <= number);
    after.checked_sub(1).and_then(|at| HIDDEN.get(at)).is_some_and(|(_, last)| number <= *last)
}

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
    fn columns(self) -> usize {
        let size = match self.stream {
            Stream::Output if io::stdout().is_terminal() => termios::tcgetwinsize(io::stdout()),
            Stream::Error if io::stderr().is_terminal() => termios::tcgetwinsize(io::stderr()),
            Stream::Output | Stream::Error => return usize::MAX,
        };
        match size {
            Ok(size) if size.ws_col > 0 => size.ws_col.into(),
            Ok(_) | Err(_) => USUAL_COLUMNS,
        }
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

/// What is shown as one and never cut.
#[derive(Clone, Copy)]
enum Piece {
    Plain(char),
    Hidden(char),
    Byte(u8),
}

impl Piece {
    fn write(self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Plain(character) => text.write_char(character),
            Self::Hidden(character) => write!(text, "\\u{{{:x}}}", u32::from(character)),
            Self::Byte(byte) => write!(text, "\\x{byte:02x}"),
        };
    }

    /// Columns it takes, at most: any character but ASCII may be a wide one.
    fn width(self) -> usize {
        match self {
            Self::Plain(character) if character.is_ascii() => 1,
            Self::Plain(_) => 2,
            // Up to six digits between `\u{` and `}`.
            Self::Hidden(_) => 10,
            Self::Byte(_) => 4,
        }
    }
}

/// Says whether `take` took every piece.
fn for_each_piece(bytes: &[u8], mut take: impl FnMut(Piece) -> bool) -> bool {
    bytes.utf8_chunks().all(|chunk| {
        let shown = |character| {
            if is_hidden(character) { Piece::Hidden(character) } else { Piece::Plain(character) }
        };
        chunk.valid().chars().map(shown).all(&mut take)
            && chunk.invalid().iter().copied().map(Piece::Byte).all(&mut take)
    })
}

const COLUMN_WIDTH: usize = 2;
/// A line always has room for the longest piece.
const NARROWEST: usize = 10;
const USUAL_COLUMNS: usize = 80;

/// First and last of each range, in order.
const HIDDEN: &[(u32, u32)] = &[
    // Controls.
    (0x00, 0x1f),
    (0x7f, 0x9f),
    // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul and Khmer fillers.
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    // Mongolian selectors and the vowel separator.
    (0x180b, 0x180f),
    // Zero-width, direction marks, line and paragraph separators, embeddings.
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    // Word joiner, invisible operators, isolates, deprecated formats.
    (0x2060, 0x206f),
    // An empty braille cell and a filler, which look like a space.
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    // Private use: a font decides what it looks like.
    (0xe000, 0xf8ff),
    (0xfdd0, 0xfdef),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    // Unassigned ignorables and annotation marks; U+FFFC and U+FFFD are seen.
    (0xfff0, 0xfffb),
    (0xfffe, 0xffff),
    // Shorthand and musical formats.
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    // Tags, further selectors, and private use up to the end.
    (0xe0000, 0x10_ffff),
];

#[cfg(test)]
mod tests {
    use super::{HIDDEN, Piece, for_each_piece};

    #[test]
    fn ranges_are_in_order_and_apart() {
        assert!(HIDDEN.iter().all(|(first, last)| first <= last));
        assert!(HIDDEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn no_piece_is_wider_than_it_says() {
        for character in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            for_each_piece(character.encode_utf8(&mut buffer).as_bytes(), |piece| {
                let mut text = String::new();
                piece.write(&mut text);
                let hidden = matches!(piece, Piece::Hidden(_));
                assert!(!hidden || text.len() <= piece.width(), "{text}");
                true
            });
        }
    }
}
