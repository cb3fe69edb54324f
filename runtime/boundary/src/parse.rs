//! Gate 1: a hand-written LL(1) parser of `grammar.pest` over the registry
//!
//! One pass, no allocation, no backtracking: every choice is made by the next
//! few bytes. The grammar file says what a sentence is; this says it again fast,
//! and tests hold the two together.
//!
//! # Invariants
//! - I12: only names of the registry parse, with the arguments of their row.
//! - I14: a primitive's name, `hold`, `uses`, a Name, a Choice, a Literal and the
//!   target of a warrant are literals; a held value there does not parse.
//! - Recursion is bounded by [`limits::JSON_DEPTH`].
//!
//! # Not here
//! What a Json, a Selector or a Prompt means to who reads it; which handles
//! exist (gate 2); whether a path is normal (gate 4).

mod json;

use synapse_abi::code::Refusal;
use synapse_abi::limits;
use synapse_abi::registry::{self, Kind, Primitive, Role, Type};

use crate::sentence::{Argument, Call, Content, Piece, Sentence, Text};
use crate::url::{Host, Url};
use json::Reference;
pub(crate) use json::{after_plain, elements, is_json, members, strings, values};

/// Parses one sentence.
///
/// # Errors
/// [`Refusal::TooLong`] for a sentence over its limit. Then the grammar, left
/// to right: [`Refusal::Malformed`], or [`Refusal::NoSuchPrimitive`] for a name
/// that the registry does not have. Then, for what is a sentence of the
/// grammar, the first counter or Url that is wrong: [`Refusal::TooLong`] or
/// [`Refusal::NotCanonical`].
pub fn parse(sentence: &[u8]) -> Result<Sentence<'_>, Refusal> {
    if sentence.len() > limits::SENTENCE {
        return Err(Refusal::TooLong);
    }
    let raw = str::from_utf8(sentence).map_err(|_| Refusal::Malformed)?;
    Parser::new(raw).sentence()
}

/// What is wrong with a text beside the grammar, by its type.
pub(crate) fn defect(ty: Type, text: &str) -> Option<Refusal> {
    let (limit, is_canonical) = match (ty, text) {
        (Type::Url, url) => (limits::URL, Url::parse(url).is_ok()),
        (Type::Host, host) => (limits::HOST, Host::parse(host).is_ok()),
        (Type::Path, _) => (limits::PATH, true),
        _ => (limits::TEXT, true),
    };
    let too_long = (text.len() > limit).then_some(Refusal::TooLong);
    too_long.or((!is_canonical).then_some(Refusal::NotCanonical))
}

/// What reading a part comes to.
type Read<T = ()> = Result<T, Refusal>;

/// Whether a text is a word, or a part of a name.
fn is_word(text: &str) -> bool {
    let letter = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    !text.is_empty() && text.bytes().all(letter)
}

/// What else would be no sentence.
fn require(holds: bool) -> Read {
    if holds { Ok(()) } else { Err(Refusal::Malformed) }
}

/// What is left to read, and what was wrong beside the grammar.
#[derive(Clone, Debug)]
pub(crate) struct Parser<'s> {
    rest: &'s str,
    held: u8,
    defect: Option<Refusal>,
}

impl<'s> Parser<'s> {
    /// A parser at the beginning of this text.
    pub(crate) fn new(rest: &'s str) -> Self {
        Self { rest, held: 0, defect: None }
    }

    fn sentence(mut self) -> Read<Sentence<'s>> {
        let raw = self.rest;
        let is_call = self.take("{\"name\":");
        require(is_call || self.take("{\"warrant\":"))?;
        let reference: Reference<'s> = if is_call { Self::held } else { Self::selector };
        let primitive = self.primitive()?;
        require(is_call || primitive.takes_warrant())?;
        let mut arguments = [Argument::Absent; registry::MAX_ARGUMENTS];
        let mut ranges = [(0, 0); registry::MAX_ARGUMENTS];
        self.eat(",\"arguments\":{")?;
        let read =
            |rest: &str| u32::try_from(raw.len().saturating_sub(rest.len())).unwrap_or(u32::MAX);
        let places = arguments.iter_mut().zip(&mut ranges);
        // A verb's targets are known to its manifest only, so they stand in its Json.
        let verb = matches!(primitive, Primitive::ToolUse | Primitive::ToolCommit);
        let stands = |row: &registry::Argument| {
            is_call || row.role == Role::Target || (verb && row.ty == Type::Json)
        };
        let rows = primitive.row().arguments.iter().zip(places).filter(|(row, _)| stands(row));
        for (index, (row, (argument, range))) in rows.enumerate() {
            if index > 0 {
                self.eat(",")?;
            }
            self.eat(row.key)?;
            let start = read(self.rest);
            *argument = self.argument(row, reference)?;
            *range = (start, read(self.rest));
        }
        self.eat("}")?;
        let hold = is_call && self.take(",\"hold\":true");
        let uses = if is_call { None } else { Some(self.uses()?) };
        require(self.rest == "}")?;
        self.defect.map_or(Ok(()), Err)?;
        let call = Call { raw, primitive, arguments, ranges, held: self.held, hold };
        Ok(Sentence { call, uses })
    }

    fn uses(&mut self) -> Read<u8> {
        let uses = u8::try_from(self.eat(",\"uses\":")?.uint()?).ok();
        uses.filter(|uses| (1..=limits::USES).contains(uses)).ok_or(Refusal::Malformed)
    }

    fn primitive(&mut self) -> Read<Primitive> {
        let name = self.string()?.raw();
        let primitive = Primitive::from_name(name);
        require(primitive.is_some() || (is_word(name) && !name.contains('-')))?;
        primitive.ok_or(Refusal::NoSuchPrimitive)
    }

    /// One argument, in which this may stand for a value.
    fn argument(
        &mut self,
        row: &registry::Argument,
        reference: Reference<'s>,
    ) -> Read<Argument<'s>> {
        match row.ty {
            Type::Text | Type::Path | Type::Url | Type::Host if self.rest.starts_with('{') => {
                reference(self)
            }
            Type::Text | Type::Path | Type::Url | Type::Host => {
                self.string().map(|text| self.literal(row.ty, text))
            }
            Type::Port => {
                let port = self.uint()?;
                require(port <= u16::MAX.into()).map(|()| Argument::Uint(port))
            }
            Type::Uint => self.uint().map(Argument::Uint),
            Type::Choice(words) => self.choice(words).map(Argument::Choice),
            Type::Handle(Kind::Value) => self.held(),
            Type::Handle(Kind::Agent | Kind::Channel | Kind::Listener | Kind::Any) => {
                self.uint().map(Argument::Handle)
            }
            Type::Name => self.name(row),
            Type::Json => self.json(reference),
            Type::Literal => self.json(|_| Err(Refusal::Malformed)),
            Type::Selector => self.selector(),
            Type::Content => self.content().map(Argument::Content),
            Type::Prompt => self.prompt().map(Argument::Json),
        }
    }

    /// A literal with what its type asks beside the grammar.
    fn literal(&mut self, ty: Type, text: Text<'s>) -> Argument<'s> {
        self.defect = self.defect.or(defect(ty, text.raw()));
        Argument::Text(text)
    }

    fn choice(&mut self, words: &[&str]) -> Read<usize> {
        let word = self.string()?.raw();
        words.iter().position(|known| *known == word).ok_or(Refusal::Malformed)
    }

    /// A package, or `server/verb`.
    fn name(&mut self, row: &registry::Argument) -> Read<Argument<'s>> {
        let name = self.string()?;
        let words = if row.name == "tool" { 2 } else { 1 };
        let parts = || name.raw().split('/');
        require(parts().count() == words && parts().all(is_word))?;
        Ok(self.literal(row.ty, name))
    }

    fn content(&mut self) -> Read<Content<'s>> {
        let start = self.rest;
        if self.take("{\"parts\":") {
            self.list(limits::PARTS, |parser| parser.piece().map(drop))?;
            self.eat("}")?;
        } else {
            self.piece()?;
        }
        Ok(Content(self.since(start)))
    }

    fn prompt(&mut self) -> Read<&'s str> {
        let start = self.rest;
        self.list(limits::PARTS, |parser| {
            parser.eat("{\"role\":")?.choice(&["system", "user", "assistant"])?;
            parser.eat(",\"text\":")?.content()?;
            parser.eat("}").map(drop)
        })?;
        Ok(self.since(start))
    }

    /// A literal string or a held value.
    pub(crate) fn piece(&mut self) -> Read<Piece<'s>> {
        if self.rest.starts_with('{') {
            self.number().map(Piece::Held)
        } else {
            self.string().map(Piece::Text)
        }
    }

    /// A held value.
    fn held(&mut self) -> Read<Argument<'s>> {
        self.number().map(Argument::Held)
    }

    /// The number of a held value.
    fn number(&mut self) -> Read<u64> {
        let number = self.eat("{\"$held\":")?.uint()?;
        self.named();
        self.eat("}").map(|_| number)
    }

    /// Counts a held value.
    fn named(&mut self) {
        self.held = self.held.saturating_add(1);
        self.at_most(limits::HELD, self.held.into());
    }

    /// An array of one or more.
    fn list(&mut self, most: usize, item: impl Fn(&mut Self) -> Read) -> Read {
        let count = self.series("[", "]", item)?;
        self.at_most(most, count);
        require(count > 0)
    }

    /// Items with commas between them, and how many.
    fn series(&mut self, open: &str, close: &str, item: impl Fn(&mut Self) -> Read) -> Read<usize> {
        self.eat(open)?;
        let mut count = 0_usize;
        while !self.take(close) {
            if count > 0 {
                self.eat(",")?;
            }
            item(self)?;
            count = count.saturating_add(1);
        }
        Ok(count)
    }

    /// Notes that something of the grammar is over its limit.
    fn at_most(&mut self, limit: usize, length: usize) {
        self.defect = self.defect.or((length > limit).then_some(Refusal::TooLong));
    }

    /// Passes over `literal` if it stands here.
    pub(crate) fn take(&mut self, literal: &str) -> bool {
        let rest = self.rest.strip_prefix(literal);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn eat(&mut self, literal: &str) -> Read<&mut Self> {
        require(self.take(literal)).map(|()| self)
    }

    /// What was read since `start`, an earlier value of `rest`.
    fn since(&self, start: &'s str) -> &'s str {
        start.get(..start.len().saturating_sub(self.rest.len())).unwrap_or_default()
    }
}
