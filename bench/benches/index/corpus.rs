//! 10,000 files of mixed encodings and sizes, the same each time

use std::fs;
use std::io;
use std::path::Path;

/// How many there are.
const FILES: u64 = 10_000;

/// Makes them in a new folder: in 200 folders, half of them UTF-8, the others ISO 8859-1,
/// UTF-16 of either order, no text, or copies of the file before. A hundredth is empty,
/// five have more than a megabyte, and of the rest each power of two up to 64 KiB has as many.
pub(crate) fn make(folder: &Path) -> io::Result<()> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut last = Vec::new();
    for number in 0..FILES {
        let place = format!("year-{}/month-{}", number % 10, number / 10 % 20);
        let place = folder.join(place);
        fs::create_dir_all(&place)?;
        let size = if number % 2000 == 1999 {
            (1 << 20) + random.below(1 << 20)
        } else if number % 100 == 0 {
            0
        } else {
            let power = 4 + random.below(12);
            (1 << power) + random.below(1 << power)
        };
        let (bytes, ending) = match number % 8 {
            0..=2 => (text(&mut random, number, size).into_bytes(), "md"),
            3 => (text(&mut random, number, size).into_bytes(), "txt"),
            4 => {
                let text = text(&mut random, number, size);
                let latin = |char| u8::try_from(u32::from(char)).unwrap_or(b'?');
                (text.chars().map(latin).collect(), "txt")
            }
            5 => {
                let text = text(&mut random, number, size / 2);
                let little = number % 16 == 5;
                let pair = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
                (text.encode_utf16().flat_map(pair).collect(), "txt")
            }
            7 if number % 3 == 0 => (last, "bin"),
            _ => ((0..size).map(|_| random.next().to_le_bytes()[0]).collect(), "bin"),
        };
        fs::write(place.join(format!("note-{number}.{ending}")), &bytes)?;
        last = bytes;
    }
    Ok(())
}

/// A note with a heading, and now and then a link to another.
#[expect(clippy::indexing_slicing, reason = "by the remainder of the length")]
fn text(random: &mut Random, number: u64, size: u64) -> String {
    const WORDS: [&str; 17] = [
        "garden", "soup", "über", "naïve", "日本語", "meeting", "plan", "travel", "list", "Straße",
        "кот", "bread", "x", "idea", "the", "of", "and",
    ];
    let mut text = format!("# Note {number}\n\n");
    while (text.len() as u64) < size {
        match random.below(800) {
            0..2 => {
                let near = number % 200 + 200 * random.below(50);
                text.push_str(&format!("[see](note-{near}.md) "));
            }
            2..40 => text.push('\n'),
            word => {
                let word = usize::try_from(word).map_or(0, |word| word % WORDS.len());
                text.push_str(WORDS[word]);
                text.push(' ');
            }
        }
    }
    text
}

/// Marsaglia's xorshift: enough to mix.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
