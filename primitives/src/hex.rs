//! Bytes as text, in the one spelling that everything here writes and reads.

use alloc::string::String;

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|half| char::from_digit(half.into(), 16))
        .collect()
}

/// So many bytes that are written as lower-case hex, and nothing else.
#[must_use]
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut out = [0; N];
    for (place, [high, low]) in out.iter_mut().zip(pairs) {
        *place = digit(*high)? << 4 | digit(*low)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{hex, unhex};

    #[test]
    fn there_is_one_spelling() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(unhex("000fa0ff"), Some([0x00, 0x0f, 0xa0, 0xff]));
        for text in ["000FA0FF", "+00fa0ff", "000fa0f", "000fa0ff0", "000fa0ff00", "é0fa0f"] {
            assert_eq!(unhex::<4>(text), None, "{text}");
        }
    }
}
