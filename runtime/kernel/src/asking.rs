//! What a human is shown before they say yes to a call
//!
//! The kernel's own words stand at the left edge; whatever the agent, or
//! anybody else, wrote stands behind the column of the one renderer, to its end.
//! So both boards show the same, and no text can pass for the question itself.
//!
//! # Invariants
//! - Each argument says where it came from, and each content is whole: what is
//!   too long to be read is not asked about.
//!
//! # Not here
//! Paging, and hearing the answer (boards). Whether a call is asked about (the
//! boundary).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;

use synapse_abi::registry::{self, Role, Type};
use synapse_boundary::gates::Question;
use synapse_boundary::sentence::{Argument, Piece};
use synapse_boundary::target::Target;
use synapse_boundary::{Facts, Held, Integrity, Label};
use synapse_primitives::Standing;
use synapse_primitives::platform::Kind;
use synapse_reply::Fault;

use crate::account::compartments;
use crate::explain;
use crate::render;
use crate::words::grouped;

/// Bytes of others that one question shows.
pub const SHOWN: usize = 1 << 20;

/// One question, as a human reads it.
#[derive(Clone, Debug)]
pub struct Asking {
    lines: Vec<Line>,
    shown: usize,
}

#[derive(Clone, Debug)]
enum Line {
    /// The kernel's words.
    Own(String),
    /// What somebody else wrote.
    Foreign(Vec<u8>),
}

impl Asking {
    /// What a question shows; nothing where that is more than a human reads.
    /// `found` is what stands at the call's first path, if it has one.
    pub(crate) fn of(
        question: &Question<'_>,
        facts: &impl Facts,
        found: Option<Result<Standing, Fault>>,
    ) -> Option<Self> {
        let call = question.call()?;
        let mut asking = Self { lines: Vec::new(), shown: 0 };
        let mut what = String::from(call.primitive().row().name);
        for refusal in question.refusals() {
            let (why, number) = (explain::refusal(refusal).why, refusal.number());
            // Writing to a String cannot fail.
            let _ = write!(what, ", stopped because {why} [{number}]");
        }
        asking.own(what);
        let mut place = 0;
        for (argument, value) in call.arguments() {
            asking.argument(argument, value, facts);
            if argument.role == Role::Target {
                if let Some(target) = question.target(place) {
                    asking.target(value, target);
                }
                place += 1;
            }
        }
        // Inside of a document they stand as their numbers.
        if call.arguments().any(|(_, value)| matches!(value, Argument::Json(_))) {
            for number in call.held() {
                asking.held("in it", number, facts);
            }
        }
        asking.own(match found {
            None => String::new(),
            Some(Ok(standing)) => there(&standing),
            Some(Err(fault)) => format!("what is there cannot be looked at: {}", fault.name()),
        });
        asking.own(read(question.justification()));
        (asking.shown <= SHOWN).then_some(asking)
    }

    /// The whole of it, for a screen of so many columns.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Own(own) => {
                    text.push_str(own);
                    text.push('\n');
                }
                Line::Foreign(bytes) if bytes.is_empty() => text.push_str("(nothing)\n"),
                Line::Foreign(bytes) => text.push_str(&render::wrapped(bytes, columns)),
            }
        }
        text
    }

    fn own(&mut self, line: String) {
        if !line.is_empty() {
            self.lines.push(Line::Own(line));
        }
    }

    fn foreign(&mut self, bytes: &[u8]) {
        self.shown = self.shown.saturating_add(bytes.len());
        // What is not shown is not copied.
        if self.shown <= SHOWN {
            self.lines.push(Line::Foreign(bytes.to_vec()));
        }
    }

    fn argument(&mut self, argument: &registry::Argument, value: Argument<'_>, facts: &impl Facts) {
        let name = argument.name;
        let by_agent = format!("{name}, written by the agent:");
        match value {
            Argument::Absent => {}
            Argument::Uint(number) => self.own(format!("{by_agent} {}", grouped(number))),
            Argument::Handle(number) => self.own(format!("{by_agent} handle {number}")),
            Argument::Choice(place) => {
                let words = if let Type::Choice(words) = argument.ty { words } else { &[] };
                self.own(format!("{by_agent} {}", words.get(place).copied().unwrap_or_default()));
            }
            Argument::Text(text) => self.literal(by_agent, &text.decode()),
            Argument::Json(raw) | Argument::Selector(raw) => {
                self.literal(by_agent, raw);
            }
            Argument::Held(number) => self.held(name, number, facts),
            Argument::Content(content) => {
                let count = content.pieces().count();
                for (piece, at) in content.pieces().zip(1..) {
                    let part = match count {
                        0 | 1 => Cow::Borrowed(name),
                        _ => Cow::Owned(format!("{name}, part {at} of {count}")),
                    };
                    match piece {
                        Piece::Text(text) => {
                            let text = text.decode();
                            let length = grouped(text.len());
                            self.own(format!("{part}, {length} bytes, written by the agent:"));
                            self.foreign(text.as_bytes());
                        }
                        Piece::Held(number) => self.held(&part, number, facts),
                    }
                }
            }
        }
    }

    fn literal(&mut self, own: String, text: &str) {
        self.own(own);
        self.foreign(text.as_bytes());
        self.spelled(text);
    }

    /// A name that looks like another is seen by the numbers of its letters.
    fn spelled(&mut self, text: &str) {
        if !text.is_ascii() {
            self.own("the same, spelled in ASCII:".to_string());
            self.foreign(render::spelled(text).as_bytes());
        }
    }

    fn held(&mut self, what: &str, number: u64, facts: &impl Facts) {
        let Some(Held { label, bytes, fault, .. }) = facts.held(number) else { return };
        let from = records(label).map_or_else(String::new, |records| format!(" from {records}"));
        let who = match label.integrity {
            Integrity::System => "the kernel's own words",
            Integrity::User => "typed by the human",
            Integrity::Ingested => "read from outside",
        };
        let own = format!(
            "{what}, held value {number}{from}, {who}{}, {} bytes:",
            tells(label),
            grouped(bytes.len())
        );
        if let Some(fault) = fault.and_then(Fault::from_number) {
            return self.own(format!("{own} none, but the fault `{}`", fault.name()));
        }
        self.own(own);
        self.foreign(bytes);
    }

    /// The target that gate 4 compared, where it is written otherwise.
    fn target(&mut self, value: Argument<'_>, target: &Target<'_>) {
        let normal = match target {
            Target::Path(path) => path.as_str(),
            Target::Url(text) | Target::Host(text) | Target::Name(text) => text,
            Target::Port(_) => return,
        };
        let held = matches!(value, Argument::Held(_));
        if held || !matches!(value, Argument::Text(text) if text.decode() == normal) {
            self.literal("which is:".to_string(), normal);
        }
    }
}

/// What stands at a target.
fn there(standing: &Standing) -> String {
    let (entries, bytes) = (grouped(standing.entries), grouped(standing.bytes));
    match standing.kind {
        None => "nothing has this name now".to_string(),
        Some(Kind::File) => format!("there is a file of {bytes} bytes now"),
        Some(Kind::Directory) => {
            format!("there is a folder now, with {entries} entries at any depth, {bytes} bytes")
        }
        Some(Kind::Link) => "there is a symbolic link now".to_string(),
        Some(Kind::Other) => "there is a device, a FIFO or a socket now".to_string(),
    }
}

/// What the call may have come from.
fn read(label: Label) -> String {
    let who = match label.integrity {
        Integrity::System | Integrity::User => "nothing that others wrote led to it",
        Integrity::Ingested => "what others wrote may have led to it",
    };
    let from = records(label).map_or_else(String::new, |records| format!(", read in {records}"));
    format!("{who}{from}{}", tells(label))
}

fn records(label: Label) -> Option<String> {
    let numbers: Vec<_> = label.origin.records().map(|number| format!("#{number}")).collect();
    match &numbers[..] {
        [] => None,
        [one] => Some(format!("record {one}")),
        _ => Some(format!("records {}", numbers.join(", "))),
    }
}

fn tells(label: Label) -> String {
    let named = compartments(label.secrecy.bits()).join(", ");
    if named.is_empty() { named } else { format!(" (may tell of: {named})") }
}
