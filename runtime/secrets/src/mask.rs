//! Echoes of a secret, masked
//!
//! Whoever is sent a secret may say it back, and what they say is read by an agent.
//! So each place where a value stands is replaced by `{secret:NAME}`: as it is, and as
//! the text of its base64 in either alphabet, at each of the three places in a group of
//! bytes that it can begin at; each byte of these plain, as `%XX`, or as JSON escapes
//! it, in any mixture; a space also as `+`.
//!
//! # Invariants
//! - I17: after masking no such form of the value is left.
//!
//! # Not here
//! Any other form: packed, hexadecimal, turned round, split by something else,
//! escaped twice. Who is sent a secret can always hide it in what they say.

use core::ops::Range;

use zeroize::Zeroizing;

use crate::secret::Secret;

/// What is looked for.
#[derive(Debug, Default)]
pub struct Mask<'a>(Vec<Pattern<'a>>);

/// One form of one secret.
struct Pattern<'a> {
    name: &'a str,
    bytes: Zeroizing<Vec<u8>>,
    /// Whether the byte before and the one after hold bits of the value too.
    before: bool,
    after: bool,
}

impl core::fmt::Debug for Pattern<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pattern").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Mask<'a> {
    /// Looks for these.
    pub fn new(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut patterns = Vec::new();
        for secret in secrets {
            let (name, value) = (&*secret.name, secret.value.expose().as_bytes());
            let bytes = Zeroizing::new(value.to_vec());
            patterns.push(Pattern { name, bytes, before: false, after: false });
            for alphabet in ALPHABETS {
                patterns.extend((0..3).map(|shift| encoded(name, value, shift, alphabet)));
            }
        }
        Self(patterns)
    }

    /// Whether nothing is looked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A text with every echo replaced.
    #[must_use]
    pub fn hidden(&self, text: &str) -> String {
        let hidden = self.hide(text.as_bytes());
        hidden.map_or_else(|| text.to_owned(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    /// The text with every echo replaced, or `None` where there is none.
    #[must_use]
    pub fn hide(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut found: Vec<(Range<usize>, &str)> =
            self.0.iter().flat_map(|pattern| pattern.all(text)).collect();
        found.sort_by_key(|(place, _)| (place.start, place.end));
        let mut hidden = Vec::new();
        let mut done = 0;
        for (place, name) in &found {
            // One that begins inside the one before goes on with it.
            if place.start >= done {
                hidden.extend_from_slice(text.get(done..place.start)?);
                hidden.extend_from_slice(format!("{{secret:{name}}}").as_bytes());
            }
            done = done.max(place.end);
        }
        hidden.extend_from_slice(text.get(done..)?);
        (!found.is_empty()).then_some(hidden)
    }
}

impl<'a> Pattern<'a> {
    /// Every place where it stands.
    fn all(&self, text: &[u8]) -> impl Iterator<Item = (Range<usize>, &'a str)> {
        (0..text.len()).filter_map(move |start| {
            let end = self.end(text, start)?;
            let before = if self.before { letter_before(text.get(..start)?) } else { 0 };
            let after = if self.after { letter(text.get(end..)?) } else { 0 };
            Some((start - before..end + after, self.name))
        })
    }

    /// Where it ends that begins here: a byte may be spelled in several ways, and one
    /// spelling may begin another.
    fn end(&self, text: &[u8], start: usize) -> Option<usize> {
        let rest = text.get(start..)?;
        // Most places end here, and cost no allocation.
        if spelled(*self.bytes.first()?, rest) == [None; 4] {
            return None;
        }
        let mut ends = vec![start];
        for &byte in self.bytes.iter() {
            let mut next = Vec::new();
            for length in ends.iter().flat_map(|&at| {
                let rest = text.get(at..).unwrap_or_default();
                spelled(byte, rest).into_iter().flatten().map(move |length| at + length)
            }) {
                if !next.contains(&length) {
                    next.push(length);
                }
            }
            ends = next;
            if ends.is_empty() {
                return None;
            }
        }
        ends.into_iter().max()
    }
}

/// How long the spellings of a byte are that a text begins with.
fn spelled(byte: u8, text: &[u8]) -> [Option<usize>; 4] {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let is = |high, low| match (digit(high), digit(low)) {
        (Some(high), Some(low)) => high << 4 | low == u32::from(byte),
        _ => false,
    };
    [
        (text.first() == Some(&byte) || (byte == b' ' && text.first() == Some(&b'+'))).then_some(1),
        matches!(text, [b'%', a, b, ..] if is(*a, *b)).then_some(3),
        matches!(text, [b'\\', b'u', b'0', b'0', a, b, ..] if is(*a, *b)).then_some(6),
        matches!(text, [b'\\', next @ (b'"' | b'\\' | b'/'), ..] if *next == byte).then_some(2),
    ]
}

type Alphabet = [u8; 64];

const ALPHABETS: [&Alphabet; 2] = [
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
];

/// How many bytes spell the letter of base64 that a text begins with; 0 if it is none.
fn letter(text: &[u8]) -> usize {
    let letters = ALPHABETS.iter().flat_map(|alphabet| alphabet.iter());
    letters.flat_map(|byte| spelled(*byte, text)).flatten().max().unwrap_or(0)
}

/// The same for the one that it ends with.
fn letter_before(text: &[u8]) -> usize {
    let ends = |length: usize| {
        let from = text.len().checked_sub(length);
        from.and_then(|from| text.get(from..)).is_some_and(|last| letter(last) == length)
    };
    [6, 3, 2, 1].into_iter().find(|length| ends(*length)).unwrap_or(0)
}

/// The letters of base64 that a value alone decides, behind so many bytes of a group.
fn encoded<'a>(name: &'a str, value: &[u8], shift: usize, alphabet: &Alphabet) -> Pattern<'a> {
    let bits = (shift + value.len()) * 8;
    let byte = |at: usize| at.checked_sub(shift).and_then(|at| value.get(at)).copied();
    let bit = |at: usize| byte(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let letter = |at: usize| {
        let six = (0..6).fold(0, |six, next| six << 1 | usize::from(bit(at * 6 + next)));
        alphabet.get(six).copied().unwrap_or_default()
    };
    let mut bytes = Zeroizing::new(Vec::with_capacity(bits / 6));
    bytes.extend(((shift * 8).div_ceil(6)..bits / 6).map(letter));
    Pattern { name, bytes, before: shift > 0, after: !bits.is_multiple_of(6) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Value;

    const VALUE: &str = r#"s3cr%t "\+/~ ke-y_"#;

    fn secret(value: &str) -> Secret {
        Secret::new("key", Value::parse(value.as_bytes()).unwrap(), &["tool:a"]).unwrap()
    }

    fn hide(value: &str, text: &str) -> String {
        let secret = secret(value);
        let hidden = Mask::new([&secret]).hide(text.as_bytes());
        String::from_utf8(hidden.unwrap_or_else(|| text.into())).unwrap()
    }

    /// Base64 by another way: whole groups of three bytes.
    fn base64(bytes: &[u8], alphabet: &Alphabet) -> String {
        let group = |group: &[u8]| {
            let mut three = [0; 3];
            three[..group.len()].copy_from_slice(group);
            let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            let letter = |place: usize| alphabet[(number >> (18 - 6 * place) & 63) as usize];
            (0..=group.len()).map(|place| char::from(letter(place))).collect::<String>()
        };
        bytes.chunks(3).map(group).collect()
    }

    #[test]
    fn i17_every_form_that_is_named_is_masked() {
        let percent = |every: bool| -> String {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() && !every;
            let one =
                |byte| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02x}") };
            VALUE.bytes().map(one).collect()
        };
        let escape = |byte: u8| format!("\\u{byte:04X}");
        let escaped: String = VALUE.bytes().map(escape).collect();
        let forms = [
            VALUE.to_owned(),
            percent(false),
            percent(true),
            percent(true).to_uppercase(),
            VALUE.replace(' ', "+"),
            VALUE.replace('\\', r"\\").replace('"', "\\\""),
            VALUE.replace('\\', r"\\").replace('"', "\\\"").replace('/', r"\/"),
            escaped,
        ];
        for form in forms {
            assert_eq!(hide(VALUE, &form), "{secret:key}", "{form}");
            let twice = format!("a{form}{form}b");
            assert_eq!(hide(VALUE, &twice), "a{secret:key}{secret:key}b", "{form}");
        }
    }

    #[test]
    fn i17_base64_is_masked_at_each_alignment() {
        for alphabet in ALPHABETS {
            for value in [VALUE, "12345678", "123456789", "1234567890", "\u{7e}>?~>?~>?"] {
                for (before, after) in (0..7).flat_map(|b| (0..7).map(move |a| (b, a))) {
                    let bytes = [&b"useruser"[..before], value.as_bytes(), &b"passpass"[..after]];
                    let text = base64(&bytes.concat(), alphabet);
                    for text in [text.clone(), text.replace('/', "%2F"), text.replace('/', r"\/")] {
                        let hidden = hide(value, &text);
                        assert!(hidden.contains("{secret:key}"), "{value} {before} {after} {text}");
                        // What is left are letters of whole bytes around it.
                        let most = before.div_ceil(3) * 4 + after.div_ceil(3) * 4 + 4;
                        assert!(hidden.len() - "{secret:key}".len() <= most, "{hidden}");
                    }
                }
            }
        }
    }

    #[test]
    fn i17_the_letters_beside_are_masked_however_they_are_spelled() {
        // The value begins and ends within a group, and its neighbours make `+` and `/`.
        let value = "s3cr3t-value";
        for shift in 0..3 {
            for (before, after) in [(&b"\xfb\xef\xbe"[..], &b"\xff\xff\xff"[..]), (b"~~~", b"~~~")]
            {
                let before = before.get(..shift).unwrap();
                let whole = [before, value.as_bytes(), after].concat();
                let text = base64(&whole, ALPHABETS[0]);
                let plain = hide(value, &text);
                for (letter, spelled) in
                    [("+", "%2B"), ("/", "%2F"), ("/", "\\/"), ("+", "\\u002b")]
                {
                    let hidden = hide(value, &text.replace(letter, spelled));
                    assert_eq!(hidden, plain.replace(letter, spelled), "{shift} {spelled} {text}");
                }
            }
        }
    }

    #[test]
    fn an_escape_that_stands_in_the_value_is_found_as_it_is() {
        assert_eq!(hide("a%25%41b", "xa%25%41by"), "x{secret:key}y");
        assert_eq!(hide(r"a\u0041\\b", r"xa\u0041\\by"), "x{secret:key}y");
    }

    #[test]
    fn what_is_not_the_value_stays() {
        let secret = secret("abcdefgh");
        let mask = Mask::new([&secret]);
        for text in ["", "abcdefg", "abcdefg%", "bcdefgh", "%61bcdefg%6", r"\u0061", "%+1bcdefgh"] {
            assert_eq!(mask.hide(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Mask::default().hide(b"abcdefgh"), None);
    }

    #[test]
    fn echoes_that_overlap_are_masked_as_one() {
        assert_eq!(hide("abcabcab", "xabcabcabcaby"), "x{secret:key}y");
    }

    #[test]
    fn two_secrets_are_told_apart() {
        let one = secret("abcdefgh");
        let other = Secret { name: "other".into(), ..secret("ijklmnop") };
        let hidden = Mask::new([&one, &other]).hide(b"ijklmnop abcdefgh").unwrap();
        assert_eq!(hidden, b"{secret:other} {secret:key}");
    }
}
