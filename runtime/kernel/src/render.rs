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
//! - No word mixes ASCII letters with characters that look like them.
//! - Every screen line of a block begins with the column, wrapped ones too.
//!
//! # Not here
//! What is shown, when, and on how wide a screen (boards).

use alloc::string::String;
use core::fmt::Write as _;

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

/// A text in ASCII, each other character by its number: two that look alike
/// are told apart.
#[must_use]
pub fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        let ascii = character.is_ascii() && !is_hidden(character);
        let piece = if ascii { Piece::Plain(character) } else { Piece::Hidden(character) };
        piece.write(&mut spelled);
    }
    spelled
}

/// Whether a character does something else on a screen than to be seen.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    is_in(HIDDEN, character)
}

fn is_in(ranges: &[(u32, u32)], character: char) -> bool {
    let number = u32::from(character);
    let after = ranges.partition_point(|(first, _)| *first <= number);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| number <= *last)
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

/// A word's pieces. A letter of another script among ASCII ones is there to look
/// like one; a word of that script alone is left as it is.
fn word(word: &str) -> impl Iterator<Item = Piece> {
    let mixed = word.contains(|character: char| character.is_ascii_alphabetic());
    word.chars().map(move |character| {
        let posing = is_in(STYLED, character) || (mixed && is_in(LOOK_ALIKE, character));
        if posing || is_hidden(character) {
            Piece::Hidden(character)
        } else {
            Piece::Plain(character)
        }
    })
}

/// Says whether `take` took every piece.
fn for_each_piece(bytes: &[u8], mut take: impl FnMut(Piece) -> bool) -> bool {
    bytes.utf8_chunks().all(|chunk| {
        let words = chunk.valid().split_inclusive(char::is_whitespace);
        words.flat_map(word).all(&mut take)
            && chunk.invalid().iter().copied().map(Piece::Byte).all(&mut take)
    })
}

const COLUMN_WIDTH: usize = 2;
/// A line always has room for the longest piece.
const NARROWEST: usize = 10;

/// ASCII in another dress, which no language needs: full width, mathematical,
/// squared and circled letters.
const STYLED: &[(u32, u32)] = &[
    (0x249c, 0x24e9),
    (0xff10, 0xff19),
    (0xff21, 0xff3a),
    (0xff41, 0xff5a),
    (0x1d400, 0x1d7ff),
    (0x1f110, 0x1f189),
];

/// Scripts with letters that look like ASCII ones, and signs that look like those
/// of paths and addresses.
const LOOK_ALIKE: &[(u32, u32)] = &[
    // Dotless and phonetic Latin.
    (0x131, 0x131),
    (0x250, 0x2af),
    // Greek, Cyrillic, Armenian, Georgian, Cherokee.
    (0x370, 0x58f),
    (0x10a0, 0x10ff),
    (0x13a0, 0x13ff),
    (0x1c80, 0x1cbf),
    (0x1d00, 0x1dbf),
    (0x1f00, 0x1fff),
    // Hyphens, a dot, slashes, a minus, a ratio.
    (0x2010, 0x2011),
    (0x2024, 0x2024),
    (0x2044, 0x2044),
    (0x2212, 0x2212),
    (0x2215, 0x2215),
    (0x2236, 0x2236),
    (0x29f8, 0x29f8),
    // Coptic, more Cyrillic, Lisu, a colon, more Latin and Cherokee.
    (0x2c80, 0x2dff),
    (0xa4d0, 0xa4ff),
    (0xa640, 0xa69f),
    (0xa789, 0xa789),
    (0xab30, 0xabbf),
    (0xff01, 0xff5e),
];

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
    use alloc::string::String;

    use super::{HIDDEN, LOOK_ALIKE, Piece, STYLED, escape, for_each_piece, spelled};

    #[test]
    fn ranges_are_in_order_and_apart() {
        for ranges in [HIDDEN, LOOK_ALIKE, STYLED] {
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn a_letter_that_poses_as_another_is_seen_and_a_language_is_not_in_the_way() {
        for (text, shown) in [
            ("/d\u{430}ta/a.md", "/d\\u{430}ta/a.md"),
            ("/data\u{2215}a", "/data\\u{2215}a"),
            ("\u{1d41a}", "\\u{1d41a}"),
            ("naïve café", "naïve café"),
            ("привет, мир", "привет, мир"),
            ("λόγος and 漢字！", "λόγος and 漢字！"),
        ] {
            assert_eq!(escape(text), shown);
        }
        assert_eq!(spelled("/мир/é a"), "/\\u{43c}\\u{438}\\u{440}/\\u{e9} a");
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
