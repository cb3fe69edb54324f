//! A parsed sentence: what a guest asks for, in types
//!
//! Everything borrows the bytes the guest wrote; nothing here is a copy, so the
//! text that a gate compares is the text that the record keeps.
//!
//! # Invariants
//! - A value of these types comes out of [`parse`](crate::parse()) alone: what is
//!   nested (parts, references) was checked there and is only walked here.
//!
//! # Not here
//! The grammar (`parse`), what a path or a handle means (gates 2 and 4).

use alloc::borrow::Cow;
use alloc::string::String;
use core::ops::Range;

use synapse_abi::registry::{self, MAX_ARGUMENTS, Primitive};

use crate::gates::Facts;
use crate::parse::{Parser, after_plain};

/// One sentence of the grammar.
#[derive(Clone, Debug)]
pub struct Sentence<'s> {
    /// What it asks for; a warrant leaves contents and parameters out.
    pub call: Call<'s>,
    /// How often, where it asks for leave to do it later in the turn: 1 to
    /// [`synapse_abi::limits::USES`].
    pub uses: Option<u8>,
}

/// A primitive and its arguments.
#[derive(Clone, Debug)]
pub struct Call<'s> {
    pub(crate) raw: &'s str,
    pub(crate) primitive: Primitive,
    pub(crate) arguments: [Argument<'s>; MAX_ARGUMENTS],
    /// Where each argument stands.
    pub(crate) ranges: [(u32, u32); MAX_ARGUMENTS],
    /// How many held values the sentence names.
    pub(crate) held: u8,
    pub(crate) hold: bool,
}

/// The value of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'s> {
    /// The primitive has no such argument, or a warrant does not fix it.
    Absent,
    /// A literal Text, Path, Url, Host or Name.
    Text(Text<'s>),
    /// A Uint or a Port.
    Uint(u64),
    /// A Choice, by its place in the registry's list of words.
    Choice(usize),
    /// A handle of any kind but a value's.
    Handle(u64),
    /// A held value where the registry says `Handle(Kind::Value)`, or in place
    /// of a Text, a Path, a Url or a Host.
    Held(u64),
    /// A Json, a Literal or a Prompt, as it stands.
    Json(&'s str),
    /// A selector, as it stands.
    Selector(&'s str),
    /// A Content, which may itself be a held value.
    Content(Content<'s>),
}

impl<'s> Call<'s> {
    /// Whether the reply stays with the kernel.
    pub fn hold(&self) -> bool {
        self.hold
    }

    /// Which primitive.
    pub fn primitive(&self) -> Primitive {
        self.primitive
    }

    /// The argument at this place of the primitive's row; `Absent` past its end.
    pub fn argument(&self, place: usize) -> Argument<'s> {
        self.arguments.get(place).copied().unwrap_or(Argument::Absent)
    }

    /// Every argument beside its row of the registry.
    pub fn arguments(&self) -> impl Iterator<Item = (&'static registry::Argument, Argument<'s>)> {
        self.primitive.row().arguments.iter().zip(self.arguments.iter().copied())
    }

    /// The number of every held value named anywhere in the sentence.
    pub fn held(&self) -> impl Iterator<Item = u64> + use<'s> {
        (self.held > 0).then(|| named(self.raw)).into_iter().flatten()
    }

    /// The sentence.
    pub fn raw(&self) -> &'s str {
        self.raw
    }

    /// The JSON value of the argument at this place, as it stands.
    pub fn span(&self, place: usize) -> &'s str {
        self.raw.get(self.range(place)).unwrap_or_default()
    }

    /// Where in the sentence that JSON value stands; empty past the end.
    pub fn range(&self, place: usize) -> Range<usize> {
        let (start, end) = self.ranges.get(place).copied().unwrap_or_default();
        usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX)
    }
}

/// The held values that a part of a sentence names.
///
/// A quote inside a JSON string is escaped, so `{"$` begins a reference, a
/// selector or a doubled `$$` key and nothing else, wherever it stands.
pub(crate) fn named(part: &str) -> impl Iterator<Item = u64> {
    part.split("{\"$").skip(1).filter_map(|rest| {
        let number = rest.strip_prefix("held\":").or_else(|| rest.strip_prefix("select\":"))?;
        number.split([',', '}']).next()?.parse().ok()
    })
}

/// What a Json string says.
pub(crate) fn string(json: &str) -> Option<Cow<'_, str>> {
    Some(Parser::new(json).string().ok()?.decode())
}

/// What a Json value says that is a string, or a held value that is text.
pub(crate) fn text<'v>(json: &'v str, facts: &'v impl Facts) -> Option<Cow<'v, str>> {
    match Parser::new(json).piece().ok()? {
        Piece::Text(text) => Some(text.decode()),
        Piece::Held(number) => str::from_utf8(facts.held(number)?.bytes).ok().map(Cow::Borrowed),
    }
}

/// A literal string, as it stands between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'s>(pub(crate) &'s str);

impl<'s> Text<'s> {
    /// The string with its escapes.
    pub fn raw(self) -> &'s str {
        self.0
    }

    /// The string that is meant. Allocates only where there is an escape.
    #[inline]
    pub fn decode(self) -> Cow<'s, str> {
        if after_plain(self.0).is_empty() {
            return Cow::Borrowed(self.0);
        }
        let mut chars = self.0.chars();
        let mut next = || match chars.next()? {
            '\\' => match chars.next()? {
                'n' => Some('\n'),
                'r' => Some('\r'),
                't' => Some('\t'),
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
                }
                other => Some(other),
            },
            char => Some(char),
        };
        Cow::Owned(core::iter::from_fn(&mut next).collect())
    }
}

/// Bytes that travel: a string, a held value, or parts of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'s>(pub(crate) &'s str);

impl<'s> Content<'s> {
    /// Its pieces in order.
    pub fn pieces(self) -> impl Iterator<Item = Piece<'s>> {
        let mut parser = Parser::new(self.0.strip_prefix("{\"parts\":[").unwrap_or(self.0));
        core::iter::from_fn(move || {
            let piece = parser.piece().ok();
            parser.take(",");
            piece
        })
    }
}

/// One piece of a Content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'s> {
    /// A literal string.
    Text(Text<'s>),
    /// A held value.
    Held(u64),
}
