//! Strings, numbers, Json and selectors
//!
//! Each has one spelling, so that equal values are equal bytes and a sampler
//! has no second way to say a thing.
//!
//! # Invariants
//! - A string is scanned many bytes at a time and stops at the first byte that
//!   is not plain, which is ASCII, so what is cut is whole characters.
//!
//! # Not here
//! Keys that stand twice: the grammar is regular and cannot see them; who reads
//! a Json refuses them.

use synapse_abi::code::Refusal;
use synapse_abi::limits;

use super::{Parser, Read, require};
use crate::sentence::{Argument, Text};
use crate::words::{below, is};

/// Reads what begins with `{"$`, where that may stand for a value.
pub(super) type Reference<'s> = fn(&mut Parser<'s>) -> Read<Argument<'s>>;

impl<'s> Parser<'s> {
    /// A Json or Literal argument.
    pub(super) fn json(&mut self, reference: Reference<'s>) -> Read<Argument<'s>> {
        let start = self.rest;
        self.object(limits::JSON_DEPTH, reference)?;
        let json = self.since(start);
        self.at_most(limits::JSON, json.len());
        Ok(Argument::Json(json))
    }

    /// An object, itself one of `levels`.
    fn object(&mut self, levels: usize, reference: Reference<'s>) -> Read {
        let inner = levels.checked_sub(1).ok_or(Refusal::Malformed)?;
        let member = |parser: &mut Self| {
            // One `$` at the beginning of a key is the language's own.
            let key = parser.string()?.raw();
            require(!key.starts_with('$') || key.starts_with("$$"))?;
            parser.eat(":")?.value(inner, reference)
        };
        self.series("{", "}", member).map(drop)
    }

    /// A value with room for `levels` of nesting.
    fn value(&mut self, levels: usize, reference: Reference<'s>) -> Read {
        match self.rest.as_bytes() {
            [b'{', b'"', b'$', after, ..] if *after != b'$' => reference(self).map(drop),
            [b'{', ..] => self.object(levels, reference),
            [b'[', ..] => {
                let inner = levels.checked_sub(1).ok_or(Refusal::Malformed)?;
                self.series("[", "]", |parser| parser.value(inner, reference)).map(drop)
            }
            [b'n', ..] => self.eat("null").map(drop),
            _ => self.scalar(),
        }
    }

    /// A string, a truth value or a number.
    fn scalar(&mut self) -> Read {
        match self.rest.as_bytes() {
            [b'"', ..] => self.string().map(drop),
            [b't', ..] => self.eat("true").map(drop),
            [b'f', ..] => self.eat("false").map(drop),
            _ => self.decimal(),
        }
    }

    /// The unique result over a held value.
    pub(super) fn selector(&mut self) -> Read<Argument<'s>> {
        let start = self.rest;
        self.eat("{\"$select\":")?.uint()?;
        self.named();
        if self.take(",\"where\":") {
            self.list(limits::SELECTOR_CONDITIONS, |parser| {
                parser.eat("[")?.string()?;
                parser.eat(",")?.choice(&["eq", "prefix"])?;
                parser.eat(",")?.scalar()?;
                parser.eat("]").map(drop)
            })?;
        }
        if self.take(",\"order\":[") {
            self.choice(&["max", "min"])?;
            self.eat(",")?.string()?;
            self.eat("]")?;
        }
        self.eat(",\"take\":")?.string()?;
        self.eat("}")?;
        let selector = self.since(start);
        self.at_most(limits::SELECTOR, selector.len());
        Ok(Argument::Selector(selector))
    }

    /// A string between quotes.
    pub(crate) fn string(&mut self) -> Read<Text<'s>> {
        let start = self.eat("\"")?.rest;
        loop {
            self.rest = after_plain(self.rest);
            let escape = match self.rest.as_bytes() {
                [b'"', ..] => break,
                [b'\\', b'"' | b'\\' | b'n' | b'r' | b't', ..] => 2,
                // The one spelling of every other control.
                [b'\\', b'u', b'0', b'0', b'0', b'0'..=b'8' | b'b' | b'c' | b'e' | b'f', ..]
                | [b'\\', b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..]
                | [b'\\', b'u', b'0', b'0', b'7', b'f', ..] => 6,
                _ => return Err(Refusal::Malformed),
            };
            self.rest = self.rest.get(escape..).ok_or(Refusal::Malformed)?;
        }
        let text = Text(self.since(start));
        self.eat("\"").map(|_| text)
    }

    /// 0, or 1 to 15 digits without a leading zero.
    pub(super) fn uint(&mut self) -> Read<u64> {
        let digits = self.digits()?;
        require(digits == "0" || !digits.starts_with('0'))?;
        digits.parse().map_err(|_| Refusal::Malformed)
    }

    /// A decimal number; minus zero is not one.
    fn decimal(&mut self) -> Read {
        let negative = self.take("-");
        let whole = self.uint()?;
        if !self.take(".") {
            return require(!negative || whole != 0);
        }
        require(!self.digits()?.ends_with('0'))
    }

    /// As many digits as a Uint may have.
    fn digits(&mut self) -> Read<&'s str> {
        let start = self.rest;
        self.rest = start.trim_start_matches(|char: char| char.is_ascii_digit());
        let digits = self.since(start);
        require((1..=limits::UINT_DIGITS).contains(&digits.len())).map(|()| digits)
    }
}

/// Whether a text is JSON as the door spells it, and names nothing held.
pub(crate) fn is_json(text: &str) -> bool {
    let mut parser = Parser::new(text);
    parser.value(limits::JSON_DEPTH, |_| Err(Refusal::Malformed)).is_ok() && parser.rest.is_empty()
}

/// The members of an object that was parsed: keys as they are meant, values as
/// they stand.
pub(crate) fn members(object: &str) -> impl Iterator<Item = (Text<'_>, &str)> {
    let mut parser = Parser::new(object.strip_prefix('{').unwrap_or_default());
    core::iter::from_fn(move || {
        let key = parser.string().ok()?.raw();
        parser.take(":");
        Some((Text(key.strip_prefix('$').unwrap_or(key)), parser.element()?))
    })
}

/// The values of one key of an object that was parsed.
pub(crate) fn values<'j>(object: &'j str, name: &str) -> impl Iterator<Item = &'j str> {
    members(object).filter(move |(key, _)| *key.decode() == *name).map(|(_, value)| value)
}

/// The elements of an array that was parsed, as they stand.
pub(crate) fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut parser = Parser::new(array.strip_prefix('[').unwrap_or_default());
    core::iter::from_fn(move || parser.element())
}

impl<'s> Parser<'s> {
    /// One value and the comma after it.
    fn element(&mut self) -> Option<&'s str> {
        let start = self.rest;
        self.value(limits::JSON_DEPTH, Self::either).ok()?;
        let value = self.since(start);
        self.take(",");
        Some(value)
    }

    /// A held value or a selector: which of them may stand here was asked before.
    fn either(&mut self) -> Read<Argument<'s>> {
        if self.rest.starts_with("{\"$h") { self.held() } else { self.selector() }
    }
}

/// Every string of a part of a sentence, keys too.
pub(crate) fn strings(part: &str) -> impl Iterator<Item = Text<'_>> {
    let mut parser = Parser::new(part);
    core::iter::from_fn(move || {
        // A quote inside a string is escaped, so this one begins a string.
        parser.rest = parser.rest.get(parser.rest.find('"')?..)?;
        parser.string().ok()
    })
}

/// What follows the plain characters at the beginning of `text`.
pub(crate) fn after_plain(text: &str) -> &str {
    let (words, rest) = text.as_bytes().as_chunks();
    let mut plain = 0_usize;
    for word in words.iter().map(|word| u64::from_le_bytes(*word)) {
        let special = below(word, b' ') | is(word, b'"') | is(word, b'\\') | is(word, 0x7f);
        let before = usize::try_from(special.trailing_zeros() >> 3).unwrap_or_default();
        plain = plain.saturating_add(before);
        if special != 0 {
            return text.get(plain..).unwrap_or_default();
        }
    }
    let is_plain = |byte: &&u8| !matches!(byte, 0..b' ' | b'"' | b'\\' | 0x7f);
    text.get(plain.saturating_add(rest.iter().take_while(is_plain).count())..).unwrap_or_default()
}
