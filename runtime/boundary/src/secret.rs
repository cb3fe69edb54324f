//! `{secret:NAME}`: what a board fills in, where it is a whole literal value
//!
//! # Invariants
//! - I14, I17: only what the agent itself wrote asks for a secret, and only as the
//!   value of a header, the credentials of `authorization`, or a value of a query,
//!   where it is written `%7Bsecret:NAME%7D`; a part of one is refused.
//!
//! # Not here
//! The value (the board); which places it may go to (`scope`, [`crate::Facts::serves`]).

use alloc::vec::Vec;

use synapse_abi::code::Refusal;

use crate::parse::members;
use crate::sentence::{Argument, Call};

/// Where a call asks for a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blank<'s> {
    /// The secret's name.
    pub name: &'s str,
    /// The place of the header that it ends; without one it is in the query.
    pub header: Option<usize>,
}

/// Whether this can name a secret.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

/// What a request asks to have filled in.
///
/// # Errors
/// `Secret` where it asks as a part of a value.
pub fn blanks<'s>(call: &Call<'s>) -> Result<Vec<Blank<'s>>, Refusal> {
    let headers = members(call.span(1)).enumerate().map(|(place, (name, json))| {
        let value = credentials(&name.decode(), json.trim_matches('"'));
        blank(json, value, ["{secret:", "}"], Some(place))
    });
    let query = if let Argument::Text(url) = call.argument(0) {
        url.raw().split_once('?').unwrap_or_default().1
    } else {
        ""
    };
    let pairs = query.split('&').map(|pair| {
        let value = pair.split_once('=').unwrap_or_default().1;
        blank(pair, value, ["%7Bsecret:", "%7D"], None)
    });
    headers.chain(pairs).filter_map(Result::transpose).collect()
}

/// What of a header's value may be a secret: all, or what is behind a scheme.
#[must_use]
pub fn credentials<'s>(name: &str, value: &'s str) -> &'s str {
    match value.split_once(' ') {
        Some((scheme, rest)) if is_name(scheme) && name.eq_ignore_ascii_case("authorization") => {
            rest
        }
        _ => value,
    }
}

/// What a value asks for that may stand in a longer text.
fn blank<'s>(
    text: &str,
    value: &'s str,
    [open, close]: [&str; 2],
    header: Option<usize>,
) -> Result<Option<Blank<'s>>, Refusal> {
    let name = value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    match (text.matches(open).count(), name.filter(|name| is_name(name))) {
        (0, _) => Ok(None),
        (1, Some(name)) => Ok(Some(Blank { name, header })),
        _ => Err(Refusal::Secret),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;
    use crate::parse::parse;

    fn read(url: &str, headers: &str) -> Result<Vec<(String, Option<usize>)>, Refusal> {
        let raw = format!(
            "{{\"name\":\"net_http_get\",\"arguments\":{{\"url\":{url},\"headers\":{headers}}}}}"
        );
        let sentence = parse(raw.as_bytes()).unwrap();
        let blanks = blanks(&sentence.call)?;
        Ok(blanks.into_iter().map(|blank| (blank.name.into(), blank.header)).collect())
    }

    #[test]
    fn i14_a_secret_is_a_whole_literal_value() {
        let none = r#""https://a/""#;
        let header = |value: &str| read(none, &format!("{{\"accept\":\"x\",{value}}}"));
        let one = |name: &str, place| Ok([(name.into(), place)].into());
        assert_eq!(header(r#""x-key":"{secret:a_B-9}""#), one("a_B-9", Some(1)));
        assert_eq!(header(r#""Authorization":"Bearer {secret:a}""#), one("a", Some(1)));
        assert_eq!(header(r#""authorization":"{secret:a}""#), one("a", Some(1)));
        let query = |query: &str| read(&format!("\"https://a/%7Bsecret:p%7D?{query}\""), "{}");
        assert_eq!(query("x=1&key=%7Bsecret:a%7D&y"), one("a", None));
        let both = query("k=%7Bsecret:a%7D&l=%7Bsecret:b%7D");
        assert_eq!(both, Ok([("a".into(), None), ("b".into(), None)].into()));
    }

    #[test]
    fn a_part_of_a_value_is_refused() {
        let none = r#""https://a/""#;
        for value in [
            "{secret:a}x", "x{secret:a}", "{secret:a}{secret:b}", "{secret:}", "{secret:a b}",
            "{secret:a", "{secret:a/b}", "Bearer {secret:a}", "{secret:{secret:a}}", " {secret:a}",
        ] {
            let headers = format!("{{\"x-key\":\"{value}\"}}");
            assert_eq!(read(none, &headers), Err(Refusal::Secret), "{value}");
        }
        for value in
            ["Bearer  {secret:a}", "a b {secret:a}", "Bearer {secret:a} ", "a=b {secret:a}"]
        {
            let headers = format!("{{\"authorization\":\"{value}\"}}");
            assert_eq!(read(none, &headers), Err(Refusal::Secret), "{value}");
        }
        for query in [
            "%7Bsecret:a%7D", "k=x%7Bsecret:a%7D", "k=%7Bsecret:a%7Dx", "k=%7Bsecret:%7D",
            "%7Bsecret:a%7D=%7Bsecret:b%7D", "k=%7Bsecret:a%7D%7Bsecret:b%7D", "k==%7Bsecret:a%7D",
        ] {
            let url = format!("\"https://a/?{query}\"");
            assert_eq!(read(&url, "{}"), Err(Refusal::Secret), "{query}");
        }
    }

    #[test]
    fn i14_what_is_held_or_spelled_otherwise_asks_for_nothing() {
        assert_eq!(read(r#"{"$held":1}"#, r#"{"x-key":{"$held":2}}"#), Ok([].into()));
        let other = r#""https://a/?k=%7Bsecret%3Aa%7D&l=secret:a""#;
        assert_eq!(read(other, r#"{"x-key":"{Secret:a}","{secret:a}":"x"}"#), Ok([].into()));
    }
}
