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
use json::References;
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

/// Whether a text is what its type asks beside the grammar.
pub(crate) fn well_formed(ty: Type, text: &str) -> Result<(), Refusal> {
    let (limit, canonical) = match (ty, text) {
        (Type::Url, url) => (limits::URL, Url::parse(url).is_ok()),
        (Type::Host, host) => (limits::HOST, Host::parse(host).is_ok()),
        (Type::Path, _) => (limits::PATH, true),
        _ => (limits::TEXT, true),
    };
    if text.len() > limit {
        return Err(Refusal::TooLong);
    }
    if canonical { Ok(()) } else { Err(Refusal::NotCanonical) }
}

/// What else would be no sentence.
fn require(holds: bool) -> Result<(), Refusal> {
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

    fn sentence(mut self) -> Result<Sentence<'s>, Refusal> {
        let raw = self.rest;
        let is_call = self.take("{\"name\":\"");
        require(is_call || self.take("{\"warrant\":\""))?;
        let primitive = self.primitive()?;
        require(is_call || primitive.takes_warrant())?;
        let mut arguments = [Argument::Absent; registry::MAX_ARGUMENTS];
        let mut ranges = [(0, 0); registry::MAX_ARGUMENTS];
        self.eat(",\"arguments\":{")?;
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
            let start = self.place(raw);
            *argument = if is_call { self.argument(row) } else { self.fixed(row) }?;
            *range = (start, self.place(raw));
        }
        self.eat("}")?;
        let hold = is_call && self.take(",\"hold\":true");
        let uses = if is_call { None } else { Some(self.uses()?) };
        self.eat("}")?;
        require(self.rest.is_empty())?;
        self.defect.map_or(Ok(()), Err)?;
        let call = Call { raw, primitive, arguments, ranges, held: self.held, hold };
        Ok(Sentence { call, uses })
    }

    fn uses(&mut self) -> Result<u8, Refusal> {
        self.eat(",\"uses\":")?;
        let uses = u8::try_from(self.uint()?).ok();
        uses.filter(|uses| (1..=limits::USES).contains(uses)).ok_or(Refusal::Malformed)
    }

    fn primitive(&mut self) -> Result<Primitive, Refusal> {
        let letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'_' | b'0'..=b'9');
        let name = self.run(|byte| byte != b'"')?;
        self.eat("\"")?;
        let primitive = Primitive::from_name(name);
        require(primitive.is_some() || name.bytes().all(letter))?;
        primitive.ok_or(Refusal::NoSuchPrimitive)
    }

    /// One argument of a call.
    fn argument(&mut self, row: &registry::Argument) -> Result<Argument<'s>, Refusal> {
        match row.ty {
            Type::Text | Type::Path | Type::Url | Type::Host => match self.piece()? {
                Piece::Text(text) => Ok(self.literal(row.ty, text)),
                Piece::Held(number) => Ok(Argument::Held(number)),
            },
            Type::Port => {
                let port = self.uint()?;
                require(port <= u16::MAX.into()).map(|()| Argument::Uint(port))
            }
            Type::Uint => self.uint().map(Argument::Uint),
            Type::Choice(words) => self.choice(words),
            Type::Handle(Kind::Value) => self.reference().map(Argument::Held),
            Type::Handle(Kind::Agent | Kind::Channel | Kind::Listener | Kind::Any) => {
                self.uint().map(Argument::Handle)
            }
            Type::Name => self.name(row.name),
            Type::Json => self.json(References::Held),
            Type::Literal => self.json(References::None),
            Type::Selector => self.selector().map(Argument::Selector),
            Type::Content => self.content().map(Argument::Content),
            Type::Prompt => self.prompt().map(Argument::Json),
        }
    }

    /// One argument that a warrant fixes: a literal, or a selector in its place.
    fn fixed(&mut self, row: &registry::Argument) -> Result<Argument<'s>, Refusal> {
        if row.ty == Type::Json {
            return self.json(References::Selectors);
        }
        let selects = matches!(row.ty, Type::Text | Type::Path | Type::Url | Type::Host);
        if selects && self.rest.starts_with('{') {
            return self.selector().map(Argument::Selector);
        }
        self.argument(row)
    }

    /// A literal with what its type asks beside the grammar.
    fn literal(&mut self, ty: Type, text: Text<'s>) -> Argument<'s> {
        if let Err(defect) = well_formed(ty, text.raw()) {
            self.defect.get_or_insert(defect);
        }
        Argument::Text(text)
    }

    fn choice(&mut self, words: &[&str]) -> Result<Argument<'s>, Refusal> {
        let word = self.string()?.raw();
        let place = words.iter().position(|known| *known == word);
        place.map(Argument::Choice).ok_or(Refusal::Malformed)
    }

    /// A package, or `server/verb`.
    fn name(&mut self, argument: &str) -> Result<Argument<'s>, Refusal> {
        let letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        self.eat("\"")?;
        let start = self.rest;
        self.run(letter)?;
        if argument == "tool" {
            self.eat("/")?;
            self.run(letter)?;
        }
        let name = self.since(start);
        self.eat("\"")?;
        Ok(self.literal(Type::Name, Text(name)))
    }

    fn content(&mut self) -> Result<Content<'s>, Refusal> {
        let start = self.rest;
        if self.take("{\"parts\":") {
            self.list(limits::PARTS, |parser| parser.piece().map(drop))?;
            self.eat("}")?;
        } else {
            self.piece()?;
        }
        Ok(Content(self.since(start)))
    }

    fn prompt(&mut self) -> Result<&'s str, Refusal> {
        let start = self.rest;
        self.list(limits::PARTS, |parser| {
            parser.eat("{\"role\":")?;
            parser.choice(&["system", "user", "assistant"])?;
            parser.eat(",\"text\":")?;
            parser.content()?;
            parser.eat("}")
        })?;
        Ok(self.since(start))
    }

    /// A literal string or a held value.
    pub(crate) fn piece(&mut self) -> Result<Piece<'s>, Refusal> {
        if self.rest.starts_with('{') {
            self.reference().map(Piece::Held)
        } else {
            self.string().map(Piece::Text)
        }
    }

    /// A held value.
    fn reference(&mut self) -> Result<u64, Refusal> {
        self.eat("{\"$held\":")?;
        let number = self.uint()?;
        self.eat("}")?;
        self.named();
        Ok(number)
    }

    /// Counts a held value.
    fn named(&mut self) {
        self.held = self.held.saturating_add(1);
        self.at_most(limits::HELD, self.held.into());
    }

    /// An array of one or more.
    fn list(
        &mut self,
        most: usize,
        item: impl Fn(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let count = self.series("[", "]", item)?;
        self.at_most(most, count);
        require(count > 0)
    }

    /// Items with commas between them, and how many.
    fn series(
        &mut self,
        open: &str,
        close: &str,
        item: impl Fn(&mut Self) -> Result<(), Refusal>,
    ) -> Result<usize, Refusal> {
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
        if length > limit {
            self.defect.get_or_insert(Refusal::TooLong);
        }
    }

    /// Passes over `literal` if it stands here.
    pub(crate) fn take(&mut self, literal: &str) -> bool {
        let rest = self.rest.strip_prefix(literal);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn eat(&mut self, literal: &str) -> Result<(), Refusal> {
        require(self.take(literal))
    }

    /// One or more ASCII bytes of an alphabet.
    fn run(&mut self, letter: impl Fn(u8) -> bool) -> Result<&'s str, Refusal> {
        let length = self.rest.bytes().take_while(|byte| letter(*byte)).count();
        let (run, rest) = self.rest.split_at_checked(length).ok_or(Refusal::Malformed)?;
        self.rest = rest;
        require(!run.is_empty()).map(|()| run)
    }

    /// How many bytes of `raw` were read.
    fn place(&self, raw: &str) -> u32 {
        u32::try_from(raw.len().saturating_sub(self.rest.len())).unwrap_or(u32::MAX)
    }

    /// What was read since `start`, an earlier value of `rest`.
    fn since(&self, start: &'s str) -> &'s str {
        start.get(..start.len().saturating_sub(self.rest.len())).unwrap_or_default()
    }
}
