//! Worlds and sentences as plain lists, and how they become the real ones.

use core::fmt::Write as _;

use synapse_abi::registry::{Kind, Primitive, Row, Type};
use synapse_boundary::capability::Table;
use synapse_boundary::gates::{Facts, Held, Request};
use synapse_boundary::scope::{
    Decimal, Effect, HostPattern, Method, Net, Pattern, Rights, Scope, Terms, Tool, Verb,
};
use synapse_boundary::url::{Host, Url};
use synapse_boundary::{Integrity, Label, Mark, Names, NormalPath, Origin, Secrecy, Warrants};
use synapse_reply::Fault;

use crate::leave::{Funds, Leave};
use crate::names;

/// What comes of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Permitted,
    Minted,
    /// All that is missing is a human's yes; else this refusal stands.
    Question(u16),
    Refused(u16),
}

/// Everything that a decision may depend on, beside the sentence.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) granted: Vec<Primitive>,
    pub(crate) calls_left: u64,
    pub(crate) mark: Stamp,
    pub(crate) allow: Vec<(&'static str, Rights)>,
    /// Patterns, and names as `**/NAME`.
    pub(crate) deny: Vec<&'static str>,
    pub(crate) nets: Vec<NetEntry>,
    pub(crate) deny_hosts: Vec<&'static str>,
    /// Secrets that the board has, and the host that each is for.
    pub(crate) served: Vec<(&'static str, &'static str)>,
    pub(crate) tools: Vec<ToolEntry>,
    pub(crate) held: Vec<Value>,
    pub(crate) handles: Vec<Handle>,
    pub(crate) journal_room: u64,
    /// Normal paths that the task made itself.
    pub(crate) own: Vec<&'static str>,
    /// Where the open handles, and some that were closed, really are.
    pub(crate) table: Table,
    /// What the human typed.
    pub(crate) lines: Vec<String>,
    pub(crate) warrants: Warrants,
    /// The same warrants, and what funded them.
    pub(crate) leave: Vec<Leave>,
    pub(crate) funded: Vec<Funds>,
    pub(crate) mounts: Vec<(String, String)>,
}

/// A label without origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) integrity: Integrity,
    pub(crate) secrecy: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct NetEntry {
    pub(crate) host: &'static str,
    pub(crate) methods: Vec<Method>,
    pub(crate) ports: (u64, u64),
    pub(crate) paths: Vec<&'static str>,
    pub(crate) clear: u64,
    pub(crate) secrets: Vec<&'static str>,
    pub(crate) reads: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ToolEntry {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) limits: Vec<(&'static str, Limit)>,
    pub(crate) clear: u64,
    /// Arguments and their types, of which an empty one says that it is left open.
    pub(crate) roles: &'static [(&'static str, &'static str)],
    pub(crate) says: &'static [&'static str],
}

impl ToolEntry {
    pub(crate) fn role(&self, argument: &str) -> Option<&'static str> {
        self.roles.iter().find(|(name, _)| *name == argument).map(|(_, ty)| *ty)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Limit {
    /// Patterns with at most one `*`.
    Like(&'static [&'static str]),
    /// From the first number to the second.
    Within(&'static str, &'static str),
    /// From so many days before today to so many after it, three at most.
    Dated(usize, usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) number: u64,
    pub(crate) stamp: Stamp,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) peer: Option<u64>,
}

/// A sentence as it was meant, before it is written.
#[derive(Clone, Debug)]
pub(crate) struct Sentence {
    pub(crate) form: Form,
    pub(crate) name: &'static str,
    pub(crate) arguments: Vec<(&'static str, Json)>,
    /// What is wrong with the writing.
    pub(crate) flaw: Option<Flaw>,
    /// The code of every argument that is wrong in itself, in order.
    pub(crate) wrong: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Call { hold: bool },
    Warrant { uses: u64 },
}

/// What is wrong with the writing; each flaw makes it no sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing is written at all.
    Empty,
    /// White space before the name.
    BeforeName,
    /// A byte that is no UTF-8 at the end.
    NotUtf8,
    /// The last byte is missing.
    CutOff,
    /// Something follows.
    Trailing,
    /// White space after the name.
    AfterName,
}

/// A JSON value of a sentence, its references read.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Bare(&'static str),
    Uint(u64),
    Text(String),
    List(Vec<Json>),
    /// Keys as they are meant, and as they stand but for the doubled `$`.
    Object(Vec<(&'static str, Json)>),
    Held(u64),
    Select(u64),
}

impl Stamp {
    pub(crate) fn label(self) -> Label {
        Label::new(self.integrity, Secrecy::from_bits(self.secrecy), Origin::NONE)
    }
}

impl World {
    /// Compiles the grant's entries.
    pub(crate) fn scope(&self) -> Scope {
        let mut scope = Scope::default();
        for (pattern, rights) in &self.allow {
            scope.allow(&Pattern::parse(pattern).unwrap(), *rights);
        }
        for pattern in &self.deny {
            match pattern.strip_prefix("**/") {
                Some(name) => scope.deny_name(name),
                None => scope.deny(&Pattern::parse(pattern).unwrap()),
            }
        }
        let port = |number| u16::try_from(number).unwrap();
        for entry in &self.nets {
            let net = Net {
                methods: entry.methods.clone(),
                ports: [port(entry.ports.0)..=port(entry.ports.1)].into(),
                paths: entry.paths.iter().map(|path| (*path).into()).collect(),
                clear: Secrecy::from_bits(entry.clear),
                own: Secrecy::NONE,
                secrets: entry.secrets.iter().map(|name| (*name).into()).collect(),
                reads: entry.reads,
            };
            scope.net(HostPattern::parse(entry.host).unwrap(), net);
        }
        for host in &self.deny_hosts {
            scope.deny_host(HostPattern::parse(host).unwrap());
        }
        for entry in &self.tools {
            let terms = Terms { clear: Secrecy::from_bits(entry.clear), ..Terms::default() };
            let limits =
                entry.limits.iter().map(|(name, limit)| ((*name).into(), limit.compiled()));
            let roles = entry.roles.iter().map(|(name, ty)| ((*name).into(), (*ty).into()));
            let verb = Verb {
                arguments: roles.collect(),
                says: entry.says.iter().map(|word| (*word).into()).collect(),
                ..Verb::default()
            };
            let tool = Tool { effect: entry.effect, limits: limits.collect(), terms, verb };
            scope.tool(entry.name, tool);
        }
        scope
    }

    pub(crate) fn request<'a, 's>(&'a self, mark: &'a Mark, scope: &'s Scope) -> Request<'a, 's> {
        let Self { table, calls_left, warrants, lines, .. } = self;
        Request { task: 7, mark, table, scope, calls_left: *calls_left, warrants, lines }
    }

    pub(crate) fn is_own(&self, path: &[String]) -> bool {
        self.own.contains(&&*format!("/{}", path.join("/")))
    }

    /// The open handle with this number, if it is of this kind.
    pub(crate) fn handle(&self, number: u64, kind: Kind) -> Option<&Handle> {
        let handle = self.handles.iter().find(|handle| handle.number == number);
        handle.filter(|handle| kind == Kind::Any || kind == handle.kind)
    }

    /// What the other end of the handle that a sentence names is cleared for.
    pub(crate) fn peer(&self, sentence: &Sentence) -> Option<u64> {
        let Some(Json::Uint(number)) = sentence.argument(0) else { return None };
        self.handle(*number, Kind::Channel)?.peer
    }

    /// The entry of the verb that a sentence names.
    pub(crate) fn tool(&self, sentence: &Sentence) -> Option<&ToolEntry> {
        let Some(Json::Text(name)) = sentence.argument(0) else { return None };
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The text of an argument, literal or held; `None` for what is no text.
    pub(crate) fn text<'a>(&'a self, sentence: &'a Sentence, place: usize) -> Option<&'a str> {
        self.read(sentence.argument(place)?)
    }

    /// The text of a value, literal or held.
    pub(crate) fn read<'a>(&'a self, value: &'a Json) -> Option<&'a str> {
        match value {
            Json::Text(text) => Some(text),
            Json::Held(number) => {
                let value = self.held.iter().find(|value| value.number == *number)?;
                str::from_utf8(&value.bytes).ok()
            }
            Json::Bare(_) | Json::Uint(_) | Json::List(_) | Json::Object(_) | Json::Select(_) => {
                None
            }
        }
    }

    /// The text of a value, literal or held.
    pub(crate) fn text_of<'a>(&'a self, value: &'a Json) -> Option<&'a str> {
        self.read(value)
    }

    /// The bytes of a piece of content.
    pub(crate) fn bytes(&self, value: &Json) -> Vec<u8> {
        match value {
            Json::Text(text) => text.clone().into_bytes(),
            Json::Held(number) => {
                let value = self.held.iter().find(|value| value.number == *number);
                value.map(|value| value.bytes.clone()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Every text that stands in a value, keys and held ones too.
    pub(crate) fn strings(&self, value: &Json) -> Vec<Vec<u8>> {
        match value {
            Json::List(list) => list.iter().flat_map(|value| self.strings(value)).collect(),
            Json::Object(members) => {
                let one = |(key, value): &(&str, Json)| {
                    [vec![key.as_bytes().to_vec()], self.strings(value)].concat()
                };
                members.iter().flat_map(one).collect()
            }
            value => vec![self.bytes(value)],
        }
    }

    /// What the path at a place of a row comes to; `None` where no path stands.
    pub(crate) fn path(
        &self,
        sentence: &Sentence,
        row: &Row,
        place: usize,
    ) -> Option<Result<Vec<String>, u16>> {
        let is_path = row.arguments.get(place).is_some_and(|argument| argument.ty == Type::Path);
        is_path.then(|| self.text(sentence, place).ok_or(405).and_then(names::normal))
    }

    /// Whether a value, or each of a list, is what the limit says.
    pub(crate) fn within(&self, limit: &Limit, value: &Json) -> bool {
        let one = |value: &Json| match limit {
            Limit::Like(patterns) => self
                .read(value)
                .is_some_and(|text| patterns.iter().any(|pattern| names::like(pattern, text))),
            Limit::Within(low, high) => {
                let number: Option<f64> = match value {
                    Json::Bare(text) => text.parse().ok(),
                    Json::Uint(number) => number.to_string().parse().ok(),
                    _ => None,
                };
                let (low, high): (f64, f64) = (low.parse().unwrap(), high.parse().unwrap());
                number.is_some_and(|number| (low..=high).contains(&number))
            }
            Limit::Dated(before, after) => self
                .read(value)
                .is_some_and(|text| CALENDAR[3 - before..=3 + after].contains(&text)),
        };
        match value {
            Json::List(list) => list.iter().all(one),
            value => one(value),
        }
    }

    /// A table that grants what the world says and holds nothing.
    pub(crate) fn table(granted: &[Primitive]) -> Table {
        Table::new(granted.iter().fold(0, |bits, primitive| bits | 1 << primitive.id()))
    }
}

impl Limit {
    fn compiled(&self) -> synapse_boundary::scope::Limit {
        let number = |text| Decimal::parse(text).unwrap();
        match self {
            Self::Like(patterns) => synapse_boundary::scope::Limit::Like(
                patterns.iter().map(|pattern| (*pattern).into()).collect(),
            ),
            Self::Within(low, high) => {
                synapse_boundary::scope::Limit::Within(number(low)..=number(high))
            }
            Self::Dated(before, after) => {
                let days = |days: &usize| i64::try_from(*days).unwrap();
                synapse_boundary::scope::Limit::Dated(-days(before)..=days(after))
            }
        }
    }
}

impl Names for World {
    fn mounts(&self) -> &[(String, String)] {
        &self.mounts
    }
}

impl Facts for World {
    fn held(&self, number: u64) -> Option<Held<'_>> {
        let value = self.held.iter().find(|value| value.number == number)?;
        Some(Held {
            label: value.stamp.label(),
            bytes: &value.bytes,
            digest: [0; 32],
            fault: value.fault.map(Fault::number),
            reply_of: None,
        })
    }

    fn journal_room(&self) -> u64 {
        self.journal_room
    }

    fn is_own_creation(&self, path: &NormalPath<'_>) -> bool {
        self.own.contains(&path.as_str())
    }

    fn serves(&self, secret: &str, url: &Url<'_>) -> bool {
        let for_host = |host: &str| Host::parse(host).unwrap() == url.host();
        self.served.iter().any(|(name, host)| *name == secret && for_host(host))
    }

    fn today(&self) -> Option<i64> {
        Some(TODAY)
    }
}

/// The day in the middle of the calendar.
const TODAY: i64 = 19_781;

/// The days around the clock's, among them one that few years have.
const CALENDAR: [&str; 7] = [
    "2024-02-25", "2024-02-26", "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01",
    "2024-03-02",
];

impl Sentence {
    pub(crate) fn argument(&self, place: usize) -> Option<&Json> {
        self.arguments.get(place).map(|(_, value)| value)
    }

    /// The word of a choice.
    pub(crate) fn word(&self, place: usize) -> Option<&str> {
        match self.argument(place)? {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The values of a key of the object at a place.
    pub(crate) fn members(&self, place: usize, name: &str) -> Vec<&Json> {
        let Some(Json::Object(members)) = self.argument(place) else { return Vec::new() };
        members.iter().filter(|(key, _)| *key == name).map(|(_, value)| value).collect()
    }

    /// The number of every held value that it names.
    pub(crate) fn references(&self) -> Vec<u64> {
        let mut numbers = Vec::new();
        self.arguments.iter().for_each(|(_, value)| value.references(&mut numbers));
        numbers
    }

    /// The bytes that a guest would submit.
    pub(crate) fn write(&self) -> Vec<u8> {
        let (key, end) = match self.form {
            Form::Call { hold: true } => ("name", ",\"hold\":true}".into()),
            Form::Call { hold: false } => ("name", "}".into()),
            Form::Warrant { uses } => ("warrant", format!(",\"uses\":{uses}}}")),
        };
        let before = if self.flaw == Some(Flaw::BeforeName) { " " } else { "" };
        let after = if self.flaw == Some(Flaw::AfterName) { " " } else { "" };
        let mut text = format!("{{{before}\"{key}\":\"{}\",\"arguments\":{after}{{", self.name);
        for (index, (name, value)) in self.arguments.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(text, "{comma}\"{name}\":").unwrap();
            value.write(&mut text);
        }
        text.push('}');
        text.push_str(&end);
        let mut bytes = text.into_bytes();
        match self.flaw {
            None | Some(Flaw::BeforeName | Flaw::AfterName) => {}
            Some(Flaw::Empty) => bytes.clear(),
            Some(Flaw::NotUtf8) => bytes.push(0xff),
            Some(Flaw::Trailing) => bytes.push(b' '),
            Some(Flaw::CutOff) => drop(bytes.pop()),
        }
        bytes
    }
}

impl Json {
    pub(crate) fn written(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn references(&self, out: &mut Vec<u64>) {
        match self {
            Self::Bare(_) | Self::Uint(_) | Self::Text(_) => {}
            Self::Held(number) | Self::Select(number) => out.push(*number),
            Self::List(list) => list.iter().for_each(|value| value.references(out)),
            Self::Object(members) => members.iter().for_each(|(_, value)| value.references(out)),
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Bare(text) => out.push_str(text),
            Self::Uint(number) => write!(out, "{number}").unwrap(),
            Self::Text(text) => string(out, text),
            Self::Held(number) => write!(out, "{{\"$held\":{number}}}").unwrap(),
            Self::Select(number) => {
                write!(out, "{{\"$select\":{number},\"take\":\"path\"}}").unwrap();
            }
            Self::List(list) => {
                out.push('[');
                for (index, value) in list.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    value.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index == 0 { "\"" } else { ",\"" });
                    out.push_str(if key.starts_with('$') { "$" } else { "" });
                    write!(out, "{key}\":").unwrap();
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' | '\u{7f}' => write!(out, "\\u{:04x}", u32::from(char)).unwrap(),
            _ => out.push(char),
        }
    }
    out.push('"');
}
