//! Which headers a request may carry
//!
//! A header that says where a request goes, where it ends, or what it really asks
//! would be a second target that no gate has compared. What is refused is a list.
//!
//! # Invariants
//! - I11: a header has one name in lower case, once, and one line of ASCII.
//!
//! # Not here
//! What a header says to a place that is granted: that is content (gate 3).

use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_abi::limits;

use crate::gates::Facts;
use crate::parse::members;
use crate::sentence::text;

/// Names that are refused, and the beginnings of names: those that end in `-`. A
/// server may read `_` as `-`, so both are compared as one.
const REFUSED: [&str; 23] = [
    "host", "forwarded", "x-forwarded-", "x-original-", "x-rewrite-url", "x-host", "x-http-host-",
    "content-length", "transfer-encoding", "te", "trailer", "upgrade", "expect", "http2-settings",
    "connection", "keep-alive", "proxy-", "via", "x-http-method-override", "x-http-method",
    "x-method-override", "x-method", "-method",
];

/// The headers that a call asks for: names in lower case, and values with held
/// ones put in.
///
/// # Errors
/// `OverLimit` for anything that no request may carry.
pub fn headers(json: &str, facts: &impl Facts) -> Result<Vec<(String, String)>, Refusal> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut length: usize = 0;
    for (name, value) in members(json) {
        let name = name.decode().to_ascii_lowercase();
        let value = text(value, facts).ok_or(Refusal::OverLimit)?;
        length = length.saturating_add(name.len()).saturating_add(value.len());
        let twice = headers.iter().any(|(known, _)| *known == name);
        let few = headers.len() < limits::HEADERS && length <= limits::JSON;
        if twice || !few || !is_token(&name) || is_refused(&name) || !is_line(&value) {
            return Err(Refusal::OverLimit);
        }
        headers.push((name, value.into_owned()));
    }
    Ok(headers)
}

fn is_token(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(token)
}

/// Whether no request may carry a header of this name.
#[must_use]
pub fn is_refused(name: &str) -> bool {
    let name = name.replace('_', "-");
    REFUSED
        .iter()
        .any(|refused| name == *refused || refused.ends_with('-') && name.starts_with(refused))
}

fn is_line(value: &str) -> bool {
    value.trim() == value && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::gates::Held;
    use crate::label::Label;
    use crate::path::NormalPath;

    struct World([&'static [u8]; 2]);

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
    }

    fn read(json: &str) -> Option<Vec<(String, String)>> {
        headers(json, &World([b"held", b"a\r\nhost: b"])).ok()
    }

    #[test]
    fn i11_a_header_is_read_in_one_form() {
        let json = r#"{"Accept":"text/html, */*","x-a":{"$held":1},"$$b":"a\"b"}"#;
        let expected = [("accept", "text/html, */*"), ("x-a", "held"), ("$b", "a\"b")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(read(json), Some(expected.into()));
        assert_eq!(read("{}"), Some([].into()));
    }

    #[test]
    fn what_moves_a_request_or_its_end_is_refused() {
        for name in [
            "Host", "HOST", "Content-Length", "content_length", "Transfer-Encoding", "TE",
            "Trailer", "Upgrade", "Expect", "Connection", "Keep-Alive", "Proxy-Authorization",
            "proxy_connection", "Via", "Forwarded", "X-Forwarded-Host", "X-Original-URL",
            "X-Rewrite-URL", "X-HTTP-Method-Override", "X_HTTP_Method_Override", "X-HTTP-Method",
            "X-Method-Override", "_method", "HTTP2-Settings",
        ] {
            assert_eq!(read(&format!("{{\"{name}\":\"x\"}}")), None, "{name}");
        }
        for name in ["x-hosts", "content-type", "authorization", "range", "cookie", "tea", "x"] {
            assert!(read(&format!("{{\"{name}\":\"x\"}}")).is_some(), "{name}");
        }
    }

    #[test]
    fn what_is_no_line_of_ascii_under_one_token_is_refused() {
        for json in [
            r#"{"":"x"}"#, r#"{"a b":"x"}"#, r#"{"a:":"x"}"#, r#"{"a\n":"x"}"#, r#"{"é":"x"}"#,
            r#"{"a":"x\ny"}"#, r#"{"a":"x\r\nhost: b"}"#, r#"{"a":"\u0000"}"#, r#"{"a":"\u007f"}"#,
            r#"{"a":"é"}"#, r#"{"a":" x"}"#, r#"{"a":"x "}"#, r#"{"a":"\t"}"#, r#"{"a":1}"#,
            r#"{"a":true}"#, r#"{"a":null}"#, r#"{"a":["x"]}"#, r#"{"a":{"b":"x"}}"#,
            r#"{"a":"x","a":"x"}"#, r#"{"a":"x","A":"y"}"#, r#"{"a":{"$held":2}}"#,
        ] {
            assert_eq!(read(json), None, "{json}");
        }
        let many = |count| {
            let members = (0..count).map(|n| format!("\"x{n}\":\"\"")).collect::<Vec<_>>();
            read(&format!("{{{}}}", members.join(","))).is_some()
        };
        assert!(many(limits::HEADERS) && !many(limits::HEADERS + 1));
    }
}
