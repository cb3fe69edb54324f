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

use super::{Parser, require};
use crate::sentence::{Argument, Text};
use crate::words::{below, is};

/// What may stand as a value inside a Json.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// Literals only.
    None,
    /// Held values.
    Held,
    /// Selectors.
    Selectors,
    /// Either, of what was parsed.
    Parsed,
}

impl<'s> Parser<'s> {
    /// A Json or Literal argument.
    pub(super) fn json(&mut self, references: References) -> Result<Argument<'s>, Refusal> {
        let start = self.rest;
        self.object(limits::JSON_DEPTH, references)?;
        let json = self.since(start);
        self.at_most(limits::JSON, json.len());
        Ok(Argument::Json(json))
    }

    /// An object, itself one of `levels`.
    fn object(&mut self, levels: usize, references: References) -> Result<(), Refusal> {
        let inner = levels.checked_sub(1).ok_or(Refusal::Malformed)?;
        let member = |parser: &mut Self| {
            // One `$` at the beginning of a key is the language's own.
            let key = parser.string()?.raw();
            require(!key.starts_with('$') || key.starts_with("$$"))?;
            parser.eat(":")?;
            parser.value(inner, references)
        };
        self.series("{", "}", member).map(drop)
    }

    /// A value with room for `levels` of nesting.
    fn value(&mut self, levels: usize, references: References) -> Result<(), Refusal> {
        match self.rest.as_bytes() {
            [b'{', b'"', b'$', after, ..] if *after != b'$' => match references {
                References::None => Err(Refusal::Malformed),
                References::Parsed if *after == b's' => self.selector().map(drop),
                References::Held | References::Parsed => self.reference().map(drop),
                References::Selectors => self.selector().map(drop),
            },
            [b'{', ..] => self.object(levels, references),
            [b'[', ..] => {
                let inner = levels.checked_sub(1).ok_or(Refusal::Malformed)?;
                self.series("[", "]", |parser| parser.value(inner, references)).map(drop)
            }
            [b'n', ..] => self.eat("null"),
            _ => self.scalar(),
        }
    }

    /// A string, a truth value or a number.
    fn scalar(&mut self) -> Result<(), Refusal> {
        match self.rest.as_bytes() {
            [b'"', ..] => self.string().map(drop),
            [b't', ..] => self.eat("true"),
            [b'f', ..] => self.eat("false"),
            _ => self.number(),
        }
    }

    /// The unique result over a held value.
    pub(super) fn selector(&mut self) -> Result<&'s str, Refusal> {
        let start = self.rest;
        self.eat("{\"$select\":")?;
        self.uint()?;
        self.named();
        if self.take(",\"where\":") {
            self.list(limits::SELECTOR_CONDITIONS, |parser| {
                parser.eat("[")?;
                parser.string()?;
                parser.eat(",")?;
                parser.choice(&["eq", "prefix"])?;
                parser.eat(",")?;
                parser.scalar()?;
                parser.eat("]")
            })?;
        }
        if self.take(",\"order\":[") {
            self.choice(&["max", "min"])?;
            self.eat(",")?;
            self.string()?;
            self.eat("]")?;
        }
        self.eat(",\"take\":")?;
        self.string()?;
        self.eat("}")?;
        let selector = self.since(start);
        self.at_most(limits::SELECTOR, selector.len());
        Ok(selector)
    }

    /// A string between quotes.
    pub(super) fn string(&mut self) -> Result<Text<'s>, Refusal> {
        self.eat("\"")?;
        let start = self.rest;
        loop {
            self.rest = after_plain(self.rest);
            let escape = match self.rest.as_bytes() {
                [b'"', ..] => break,
                [b'\\', b'"' | b'\\' | b'n' | b'r' | b't', ..] => 2,
                [b'\\', b'u', b'0', b'0', high, low, ..] if is_control(*high, *low) => 6,
                _ => return Err(Refusal::Malformed),
            };
            self.rest = self.rest.get(escape..).ok_or(Refusal::Malformed)?;
        }
        let text = self.since(start);
        self.eat("\"")?;
        Ok(Text(text))
    }

    /// 0, or 1 to 15 digits without a leading zero.
    pub(super) fn uint(&mut self) -> Result<u64, Refusal> {
        let digits = self.run(|byte| byte.is_ascii_digit())?;
        require(
            digits.len() <= limits::UINT_DIGITS && (digits == "0" || !digits.starts_with('0')),
        )?;
        digits.parse().map_err(|_| Refusal::Malformed)
    }

    /// A decimal number; minus zero is not one.
    fn number(&mut self) -> Result<(), Refusal> {
        let negative = self.take("-");
        let whole = self.uint()?;
        if !self.take(".") {
            return require(!negative || whole != 0);
        }
        let digits = self.run(|byte| byte.is_ascii_digit())?;
        require(digits.len() <= limits::UINT_DIGITS && !digits.ends_with('0'))
    }
}

/// Whether a text is JSON as the door spells it, and names nothing held.
pub(crate) fn is_json(text: &str) -> bool {
    let mut parser = Parser::new(text);
    parser.value(limits::JSON_DEPTH, References::None).is_ok() && parser.rest.is_empty()
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
        self.value(limits::JSON_DEPTH, References::Parsed).ok()?;
        let value = self.since(start);
        self.take(",");
        Some(value)
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

/// Whether `\u00` and these digits are the one spelling of a control.
const fn is_control(high: u8, low: u8) -> bool {
    matches!(
        (high, low),
        (b'0', b'0'..=b'8' | b'b' | b'c' | b'e' | b'f') | (b'1', b'0'..=b'9' | b'a'..=b'f') | (b'7', b'f')
    )
}
