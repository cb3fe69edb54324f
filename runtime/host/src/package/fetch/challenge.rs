//! How a registry asks who asks
//!
//! # Not here
//! What is answered (`registry`).

/// What a registry wants to see.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A password.
    Password,
    /// A token, which is given at this URL.
    Token(String),
}

impl Challenge {
    /// Reads a `WWW-Authenticate`; the scope is what will be done.
    pub(super) fn read(text: &str, scope: &str) -> Option<Self> {
        let (scheme, parameters) = text.split_once(' ').unwrap_or((text, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Password);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service) = (None, None);
        for (name, value) in read(parameters)? {
            match &*name {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
        }
        let mut url = realm?.to_owned();
        url.push(if url.contains('?') { '&' } else { '?' });
        if let Some(service) = service {
            url.push_str(&format!("service={}&", escaped(service)));
        }
        url.push_str(&format!("scope={scope}"));
        Some(Self::Token(url))
    }
}

/// Parameters, by their names.
fn read(mut rest: &str) -> Option<Vec<(String, &str)>> {
    let mut parameters = Vec::new();
    while !rest.trim().is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        parameters.push((name.trim().to_ascii_lowercase(), value));
        rest = after.trim_start().trim_start_matches(',');
    }
    Some(parameters)
}

/// A text as it stands in a query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    fn read(text: &str) -> Option<Challenge> {
        Challenge::read(text, "repository:a/b:pull")
    }

    #[test]
    fn a_challenge_is_read_or_not() {
        let url = "https://a.example/t?service=s%2C%20t&scope=repository:a/b:pull";
        let told = r#"Bearer realm="https://a.example/t",service="s, t", scope="x""#;
        assert_eq!(read(told), Some(Challenge::Token(url.to_owned())));
        let url = "https://a.example/t?a=b&scope=repository:a/b:pull";
        let told = r#"bearer Realm="https://a.example/t?a=b""#;
        assert_eq!(read(told), Some(Challenge::Token(url.to_owned())));
        for told in ["Basic realm=\"x\"", "basic", "Basic realm=x"] {
            assert_eq!(read(told), Some(Challenge::Password), "{told}");
        }
        for told in ["", "Digest realm=\"x\"", "Bearer", "Bearer realm=x", "Bearer realm=\"x"] {
            assert_eq!(read(told), None, "{told}");
        }
    }

    #[test]
    fn a_service_stays_one_value() {
        let Some(Challenge::Token(url)) = read("Bearer realm=\"r\",service=\"a b&scope=c\u{e9}\"")
        else {
            unreachable!()
        };
        assert_eq!(url, "r?service=a%20b%26scope%3Dc%C3%A9&scope=repository:a/b:pull");
    }
}
