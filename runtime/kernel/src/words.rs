//! Crossings and records in a line each, for people
//!
//! Both boards say the same of the same call.
//!
//! # Not here
//! Sentences of advice, and objects for programs (the command line).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use synapse_abi::code::Refusal;
use synapse_boundary::{Integrity, Said};
use synapse_primitives::platform::Asker;
use synapse_reply::code::{self, Fault};
use synapse_reply::frame::ingests;

use crate::record::{Kind, WARRANT, tag};
use crate::render;
use crate::task::Crossing;
use crate::verify::Record;

/// The line above a question: who asks, and what it has read.
#[must_use]
pub fn asks(agent: &str, asker: Asker) -> String {
    let read = match asker.integrity {
        Integrity::System | Integrity::User => "it has read nothing that others wrote",
        Integrity::Ingested => "it has read what others wrote, and they may be the ones who ask",
    };
    format!("{} asks (record {}); {read}:", render::line(agent, AGENT), asker.record)
}

/// A crossing: its record, what was asked, and what came of it.
#[must_use]
pub fn crossing(crossing: &Crossing<'_>) -> String {
    let name = crossing.primitive.map_or("(no sentence)", |primitive| primitive.row().name);
    let target = render::line(crossing.target, TARGET);
    let space = if target.is_empty() { "" } else { " " };
    let asked = if crossing.warrant { "warrant " } else { "" };
    let number = crossing.code;
    let named = code_name(number).unwrap_or("unknown");
    let what = match (number, code::gate(number)) {
        (0, _) if crossing.warrant => "minted".to_owned(),
        (0, _) => format!("ok {} bytes", grouped(crossing.bytes)),
        (_, Some(gate @ 1..)) => {
            let gate_name = GATES.get(usize::from(gate)).copied().unwrap_or_default();
            format!("refused by gate {gate} ({gate_name}): {named} [{number}]")
        }
        (_, _) => format!("failed: {named} [{number}]"),
    };
    let held = if crossing.held { "  [held]" } else { "" };
    // The mark stays risen: what matters here is the call that brings text in.
    let brings = !crossing.warrant && crossing.primitive.is_some_and(ingests);
    let outside = number == 0 && brings && crossing.mark == Integrity::Ingested;
    let mark = if outside { "  [read from outside]" } else { "" };
    format!("#{} {asked}{name}{space}{target}  {what}{held}{mark}", crossing.record)
}

/// A record: number, time, task, kind, primitive, verdict, words.
#[must_use]
pub fn record(record: &Record<'_>) -> String {
    let text = format!(
        "#{:<5} {}  task {}  {:<10} {:<14} {}  {}{}",
        record.sequence,
        clock(record.time),
        record.task,
        kind(record.kind),
        record.primitive.map_or("-", |primitive| primitive.row().name),
        verdict(record),
        told(record),
        integrity(record),
    );
    text.trim_end().to_owned()
}

/// A code's short name, where it has one.
#[must_use]
pub fn code_name(code: u16) -> Option<&'static str> {
    Refusal::from_number(code).map(code::name).or_else(|| Fault::from_number(code).map(Fault::name))
}

/// A record's kind in words.
#[must_use]
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Decision => "decision",
        Kind::Outcome => "outcome",
        Kind::TaskStart => "task start",
        Kind::TurnStart => "turn start",
        Kind::TurnEnd => "turn end",
        Kind::Answer => "answer",
        Kind::RunEnd => "run end",
    }
}

/// The record's words: the sentence, what was no sentence, or its text.
#[must_use]
pub fn text<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    record.field(tag::SENTENCE).or_else(|| record.field(tag::TEXT)).or_else(|| {
        // After the length and the digest stand the first bytes.
        record.field(tag::MALFORMED)?.get(MALFORMED_HEAD..)
    })
}

/// What was said in an answer's record, and where.
#[must_use]
pub fn answer<'a>(record: &Record<'a>) -> Option<(Said, &'a [u8])> {
    let (said, console) = record.field(tag::ANSWER)?.get(DIGEST..)?.split_first()?;
    Some((Said::from_number(*said)?, console))
}

/// What a human said, in words.
#[must_use]
pub const fn said_word(said: Said) -> &'static str {
    match said {
        Said::Yes => "yes",
        Said::No => "no",
        Said::Unrecognised => "neither yes nor no",
        Said::Nobody => "nothing: nobody was there",
        Said::TimedOut => "nothing in time",
        Said::Cancelled => "nothing before the run was ended",
    }
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Hours to milliseconds, UTC: the date is in the run's name.
fn clock(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{:03}Z", milliseconds % 1000)
}

/// What was decided of a call, or what it came to.
#[must_use]
pub fn verdict(record: &Record<'_>) -> String {
    match (record.kind, record.code) {
        (Kind::Decision, 0) if record.class & WARRANT != 0 => "warranted".to_owned(),
        (Kind::Decision, 0) => "permitted".to_owned(),
        (Kind::Outcome, 0) => "ok".to_owned(),
        (_, 0) => String::new(),
        (_, code) if record.gate > 0 => {
            let name = code_name(code).unwrap_or("unknown");
            format!("refused by gate {}: {name} [{code}]", record.gate)
        }
        (Kind::Outcome, code) => {
            format!("failed: {} [{code}]", code_name(code).unwrap_or("unknown"))
        }
        (_, code) => format!("code {code}"),
    }
}

fn told(record: &Record<'_>) -> String {
    let mut told = text(record).map(|text| render::line(text, WIDTH)).unwrap_or_default();
    if let Some(target) = record.field(tag::TARGET) {
        told.push_str(" = ");
        told.push_str(&render::line(target, WIDTH));
    }
    if let Some((said, console)) = answer(record) {
        told = format!("{} (at {})", said_word(said), render::line(console, WIDTH));
    }
    let length = record.field(tag::OUTCOME).and_then(<[u8]>::first_chunk::<8>);
    if let Some(length) = length {
        told.push_str(&grouped(u64::from_le_bytes(*length)));
        told.push_str(" bytes");
    }
    match (record.kind, record.cause) {
        (Kind::Outcome, Some(cause)) => told = format!("{told} (of #{cause})"),
        (Kind::Decision, Some(cause)) => told = format!("{told} (by #{cause})"),
        _ => {}
    }
    told
}

fn integrity(record: &Record<'_>) -> &'static str {
    match record.integrity {
        2 => "  [read from outside]",
        1 => "  [the human's]",
        _ => "",
    }
}

/// The gates' names, by number; there is no gate 0.
pub const GATES: [&str; 5] = ["", "grammar", "capability", "label", "scope"];
const AGENT: usize = 80;
const TARGET: usize = 120;
/// Bytes of the digest of what was asked about.
const DIGEST: usize = 32;
/// Length and digest.
const MALFORMED_HEAD: usize = 40;
const WIDTH: usize = 160;

#[cfg(test)]
mod tests {
    use super::{crossing as line, grouped};
    use crate::render::is_hidden;
    use crate::task::Crossing;
    use synapse_abi::registry::Primitive;
    use synapse_boundary::Integrity;

    fn crossing(primitive: Primitive, target: &str, code: u16) -> Crossing<'_> {
        Crossing {
            record: 12,
            primitive: Some(primitive),
            target,
            code,
            bytes: 5120,
            mark: Integrity::Ingested,
            held: false,
            warrant: false,
        }
    }

    #[test]
    fn a_call_is_one_line_that_says_what_came_of_it() {
        for (primitive, target, code, text) in [
            (
                Primitive::FsRead,
                "/data/a.md",
                0,
                "#12 fs_read /data/a.md  ok 5,120 bytes  [read from outside]",
            ),
            (
                Primitive::FsDelete,
                "/data/x",
                301,
                "#12 fs_delete /data/x  refused by gate 3 (label): destructive after reading [301]",
            ),
            (Primitive::FsWrite, "/data/c", 0, "#12 fs_write /data/c  ok 5,120 bytes"),
            (Primitive::FsRead, "/data/b", 502, "#12 fs_read /data/b  failed: not found [502]"),
            (
                Primitive::ClockRead,
                "",
                203,
                "#12 clock_read  refused by gate 2 (capability): budget spent [203]",
            ),
        ] {
            assert_eq!(line(&crossing(primitive, target, code)), text);
        }
        let asked =
            |code| Crossing { warrant: true, ..crossing(Primitive::FsDelete, "/data/x", code) };
        assert_eq!(line(&asked(0)), "#12 warrant fs_delete /data/x  minted");
        let refused = "#12 warrant fs_delete /data/x  refused by gate 3 (label): not cited [306]";
        assert_eq!(line(&asked(306)), refused);
        let hostile = crossing(Primitive::FsRead, "/a\n#13 fs_read /b\u{202e}", 401);
        assert!(!line(&hostile).chars().any(is_hidden));
    }

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (5120, "5,120"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
