//! Tool entries: what a connector's verb does, and the limits on its arguments.
//!
//! # Invariants
//! - A limited argument that is missing, or of a shape that the limit cannot
//!   judge, is over the limit. One that stands twice is judged twice.
//!
//! # Not here
//! Where effects and limits come from (a manifest and a grant, both approved by a
//! human); calling the tool.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use synapse_abi::code::Refusal;

use crate::gates::Facts;
use crate::parse::{elements, values};
use crate::scope::Terms;
use crate::sentence::text;

/// What a verb does, as its manifest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads or fetches.
    Read,
    /// It adds an item, or has an inverse.
    Store,
    /// A store that its manifest frees from being asked about.
    Free,
    /// Sends, pays, destroys, or nobody said.
    Commit,
}

/// What one entry allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// What its verb does.
    pub effect: Effect,
    /// What each of these arguments may be; of the others, anything.
    pub limits: Vec<(String, Limit)>,
    /// Its clearance, and the compartments of what it answers.
    pub terms: Terms,
    /// What its manifest says of warrants.
    pub verb: Verb,
}

/// What a manifest says of a verb's warrants; a verb without one takes none. An
/// argument of which it says nothing is fixed by a warrant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verb {
    /// The type of each argument that it acts upon: a selector in place of one takes a
    /// field of the same. Of those that a warrant leaves open it is empty.
    pub arguments: BTreeMap<String, String>,
    /// Words with which people ask for it.
    pub says: Vec<String>,
    /// The type, not empty, of each field of its answers that may be taken.
    pub fields: BTreeMap<String, String>,
}

/// What one argument may be. Of an array, every element.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A string that matches one of these: literal, or with one `*` for a run of
    /// letters, digits and `.`, `_`, `+`, `-`, without two dots in a row.
    Like(Vec<String>),
    /// A number in this range.
    Within(RangeInclusive<Decimal>),
    /// A date so many days from the day of the decision.
    Dated(RangeInclusive<i64>),
}

/// The day of a date `YYYY-MM-DD` from 1970 on, counted from the first one.
#[must_use]
pub fn day(text: &str) -> Option<i64> {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |place: usize, length| {
        let part = parts.get(place).filter(|part| part.len() == length)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u16>().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(1, 2)?, number(2, 2)?);
    let leaps = |year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leaps(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (passed, day) = (usize::from(month.checked_sub(1)?), day.checked_sub(1)?);
    let years = (1970..year).map(|year| if leaps(year) { 366 } else { 365 });
    let days = years.chain(months.into_iter().take(passed)).chain([day]).map(i64::from);
    let is_one =
        parts.len() == 3 && year >= 1970 && months.get(passed).is_some_and(|all| day < *all);
    is_one.then(|| days.sum())
}

/// A number as the door writes it, exact: 15 digits on either side of the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal(i128);

impl Decimal {
    /// Reads a number of the grammar's form.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let plain = |part: &str| part.len() <= 15 && part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !plain(whole) || !plain(fraction) {
            return None;
        }
        let value: i128 = format!("{whole}{fraction:0<15}").parse().ok()?;
        Some(Self(value.checked_mul(sign)?))
    }
}

impl Tool {
    /// Whether the arguments are inside the limits.
    pub(crate) fn check(&self, arguments: &str, facts: &impl Facts) -> Result<(), Refusal> {
        let sound = |(name, limit): &(String, Limit)| {
            let mut given =
                values(arguments, name).map(|value| limit.admits(value, facts)).peekable();
            given.peek().is_some() && given.all(|sound| sound)
        };
        if self.limits.iter().all(sound) { Ok(()) } else { Err(Refusal::OverLimit) }
    }
}

impl Limit {
    pub(crate) fn admits(&self, value: &str, facts: &impl Facts) -> bool {
        if !value.starts_with('[') {
            return self.admits_one(value, facts);
        }
        let mut elements = elements(value).peekable();
        elements.peek().is_some() && elements.all(|element| self.admits_one(element, facts))
    }

    fn admits_one(&self, value: &str, facts: &impl Facts) -> bool {
        match self {
            Self::Within(range) => {
                Decimal::parse(value).is_some_and(|number| range.contains(&number))
            }
            Self::Like(patterns) => text(value, facts)
                .is_some_and(|text| patterns.iter().any(|pattern| matches(pattern, &text))),
            Self::Dated(range) => text(value, facts)
                .and_then(|text| day(&text)?.checked_sub(facts.today()?))
                .is_some_and(|days| range.contains(&days)),
        }
    }
}

/// Whether a text is what the pattern says.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let run = text.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let word = |char: char| char.is_alphanumeric() || matches!(char, '.' | '_' | '+' | '-');
    run.is_some_and(|run| run.chars().all(word) && !run.contains(".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gates::Held;
    use crate::label::Label;
    use crate::path::NormalPath;

    struct World([&'static [u8]; 3]);

    impl crate::cite::Names for World {}
    impl Facts for World {
        fn held(&self, number: u64) -> Option<Held<'_>> {
            let bytes = self.0.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
            Some(Held { label: Label::SYSTEM, bytes, digest: [0; 32], fault: None, reply_of: None })
        }
        fn journal_room(&self) -> u64 {
            0
        }
        fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
            false
        }
        fn today(&self) -> Option<i64> {
            day("2024-02-28")
        }
    }

    fn tool(name: &str, limit: Limit) -> Tool {
        Tool {
            effect: Effect::Commit,
            limits: [(name.into(), limit)].into(),
            terms: Terms::default(),
            verb: Verb::default(),
        }
    }

    #[test]
    fn numbers_are_exact() {
        let number = |text| Decimal::parse(text).unwrap();
        assert!(number("0.1") < number("0.2") && number("-1") < number("0"));
        assert_eq!(number("50"), number("50.0"));
        assert!(number("50") < number("50.000000000000001"));
        assert!(number("999999999999999.999999999999999") > number("999999999999999"));
        for text in ["", "-", "1e3", "+1", "1.", ".5", "1234567890123456", "0x1"] {
            let parsed = Decimal::parse(text);
            assert_eq!(parsed.is_some(), text == "1.", "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, number) in [
            ("1970-01-01", Some(0)),
            ("1970-03-01", Some(59)),
            ("1972-03-01", Some(790)),
            ("2000-02-29", Some(11_016)),
            ("2100-02-28", Some(47_540)),
            ("2100-03-01", Some(47_541)),
            ("9999-12-31", Some(2_932_896)),
            ("2100-02-29", None),
            ("1969-12-31", None),
            ("2024-00-10", None),
            ("2024-13-10", None),
            ("2024-04-31", None),
            ("2024-01-00", None),
            ("+024-01-01", None),
            ("2024-01-01-", None),
            ("2024-01", None),
            ("02024-01-01", None),
            ("", None),
        ] {
            assert_eq!(day(text), number, "{text}");
        }
    }

    #[test]
    fn a_limited_argument_is_there_and_inside() {
        let mail = tool("to", Limit::Like(["*@a.example".into(), "b@b.example".into()].into()));
        let like = |pattern: &str| tool("to", Limit::Like([pattern.into()].into()));
        let (hook, out) = (like("https://*.a.example/hook"), like("/out/*"));
        let pay = tool(
            "amount",
            Limit::Within(Decimal::parse("0").unwrap()..=Decimal::parse("50").unwrap()),
        );
        let due = tool("due", Limit::Dated(-1..=2));
        let world = World([b"x@a.example", b"x@c", b"2024-03-01"]);
        for (tool, arguments, inside) in [
            (&mail, r#"{"to":"x@a.example"}"#, true),
            (&mail, r#"{"to":["x@a.example","b@b.example"],"text":"x@c"}"#, true),
            (&mail, r#"{"to":["x@a.example","x@c"]}"#, false),
            (&mail, r#"{"to":"x@c,y@a.example"}"#, false),
            (&mail, r#"{"to":"x@c\ny@a.example"}"#, false),
            (&mail, r#"{"to":"x@a.example.evil"}"#, false),
            (&mail, r#"{"to":"x@a.example","to":"x@c"}"#, false),
            (&mail, r#"{"t\u0000o":"x"}"#, false),
            (&mail, r#"{"cc":"x@a.example"}"#, false),
            (&mail, r#"{"to":{"$held":1}}"#, true),
            (&mail, r#"{"to":{"$held":2}}"#, false),
            (&mail, r#"{"to":null}"#, false),
            (&mail, r#"{"to":{"a":"x@a.example"}}"#, false),
            (&mail, r#"{"to":[["x@a.example"]]}"#, false),
            (&mail, r"{}", false),
            (&mail, r#"{"to":[]}"#, false),
            (&mail, r#"{"to":"x@evil.com@a.example"}"#, false),
            (&mail, r#"{"to":"x%evil.com@a.example"}"#, false),
            (&mail, r#"{"to":"x@evil.com|y@a.example"}"#, false),
            (&mail, r#"{"to":"a.b+c-d_e@a.example"}"#, true),
            (&hook, r#"{"to":"https://x.a.example/hook"}"#, true),
            (&hook, r#"{"to":"https://evil.com/x.a.example/hook"}"#, false),
            (&hook, r#"{"to":"https://evil.com?.a.example/hook"}"#, false),
            (&hook, r#"{"to":"https://evil.com#.a.example/hook"}"#, false),
            (&out, r#"{"to":"/out/a.md"}"#, true),
            (&out, r#"{"to":"/out/../etc"}"#, false),
            (&out, r#"{"to":"/out/.."}"#, false),
            (&pay, r#"{"amount":50}"#, true),
            (&pay, r#"{"amount":49.99}"#, true),
            (&pay, r#"{"amount":50.01}"#, false),
            (&pay, r#"{"amount":-1}"#, false),
            (&pay, r#"{"amount":"5"}"#, false),
            (&pay, r#"{"amount":{"$held":1}}"#, false),
            (&pay, r#"{"amount":[1,2,99]}"#, false),
            (&due, r#"{"due":"2024-02-28"}"#, true),
            (&due, r#"{"due":"2024-02-27"}"#, true),
            (&due, r#"{"due":"2024-02-26"}"#, false),
            (&due, r#"{"due":"2024-02-29"}"#, true),
            (&due, r#"{"due":"2024-03-01"}"#, true),
            (&due, r#"{"due":"2024-03-02"}"#, false),
            (&due, r#"{"due":["2024-02-29","2024-03-02"]}"#, false),
            (&due, r#"{"due":"2024-02-30"}"#, false),
            (&due, r#"{"due":"2024-2-29"}"#, false),
            (&due, r#"{"due":"2024-02-29T10:00"}"#, false),
            (&due, r#"{"due":" 2024-02-29"}"#, false),
            (&due, r#"{"due":20240229}"#, false),
            (&due, r#"{"due":{"$held":3}}"#, true),
            (&due, r#"{"due":{"$held":2}}"#, false),
            (&due, r"{}", false),
        ] {
            assert_eq!(tool.check(arguments, &world).is_ok(), inside, "{arguments}");
        }
    }
}
