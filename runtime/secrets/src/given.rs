//! The secrets that a run is given, and what they are filled into
//!
//! # Invariants
//! - I17: a secret goes only to where a person said that it may, and its value is
//!   only ever put where the gates saw `{secret:NAME}`.
//!
//! # Not here
//! Which entry of a grant lets a secret go (the boundary).

use core::fmt::Write as _;

use synapse_boundary::url::Url;
use zeroize::Zeroizing;

use crate::mask::Mask;
use crate::secret::{Destination, Secret};

/// The secrets of a run.
#[derive(Debug, Default)]
pub struct Given(Vec<Secret>);

impl Given {
    /// Those of all that are kept which a run names.
    #[must_use]
    pub fn new(kept: Vec<Secret>, is_named: impl Fn(&str) -> bool) -> Self {
        Self(kept.into_iter().filter(|secret| is_named(&secret.name)).collect())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One that may go to where a URL is.
    #[must_use]
    pub fn for_url(&self, name: &str, url: &Url<'_>) -> Option<&Secret> {
        self.get(name).filter(|secret| secret.destinations.iter().any(|place| place.covers(url)))
    }

    /// One that may go to a connector.
    #[must_use]
    pub fn for_tool(&self, name: &str, server: &str) -> Option<&Secret> {
        let is = |place: &Destination| matches!(place, Destination::Tool(tool) if tool == server);
        self.get(name).filter(|secret| secret.destinations.iter().any(is))
    }

    /// Variables or headers of a connector, each with its secret filled in.
    ///
    /// # Errors
    /// The name of a secret that is not there, or not for it.
    pub fn filled(
        &self,
        server: &str,
        values: &[(String, String)],
    ) -> Result<Vec<(String, Zeroizing<String>)>, String> {
        let fill = |(key, value): &(String, String)| {
            let blank = value.split_once("{secret:").unwrap_or_default().1;
            let name = blank.strip_suffix('}').unwrap_or_default();
            let secret = self.for_tool(name, server).ok_or_else(|| name.to_owned())?;
            let filled = header(value, secret).ok_or_else(|| name.to_owned())?;
            Ok((key.clone(), filled))
        };
        values.iter().map(fill).collect()
    }

    /// Looks for all that may go to a connector.
    #[must_use]
    pub fn mask_of_tool(&self, server: &str) -> Mask<'_> {
        Mask::new(self.0.iter().filter(|secret| self.for_tool(&secret.name, server).is_some()))
    }

    /// Looks for all that may go to where a URL is: what it was told once, it may say
    /// whenever it is asked.
    #[must_use]
    pub fn mask_of_url(&self, url: &Url<'_>) -> Mask<'_> {
        Mask::new(self.0.iter().filter(|secret| self.for_url(&secret.name, url).is_some()))
    }

    fn get(&self, name: &str) -> Option<&Secret> {
        self.0.iter().find(|secret| secret.name == name)
    }
}

/// A header's value with its secret, which stands at its end.
#[must_use]
pub fn header(value: &str, secret: &Secret) -> Option<Zeroizing<String>> {
    let before = value.strip_suffix(&format!("{{secret:{}}}", secret.name))?;
    Some(joined([before, secret.value.expose()]))
}

/// A query with a secret for each of its values that is one.
#[must_use]
pub fn query(query: &str, secret: &Secret) -> Zeroizing<String> {
    let blank = format!("%7Bsecret:{}%7D", secret.name);
    let value = encoded(secret);
    let mut filled =
        Zeroizing::new(String::with_capacity(query.len() + query.len() / 12 * value.len()));
    for (place, pair) in query.split('&').enumerate() {
        let (key, value) = match pair.split_once('=') {
            Some((key, text)) if text == blank => (key, Some(&*value)),
            _ => (pair, None),
        };
        filled.push_str(if place == 0 { "" } else { "&" });
        filled.push_str(key);
        for part in value.iter().flat_map(|value| ["=", value]) {
            filled.push_str(part);
        }
    }
    filled
}

/// A value as a query spells it.
fn encoded(secret: &Secret) -> Zeroizing<String> {
    let value = secret.value.expose();
    let mut text = Zeroizing::new(String::with_capacity(3 * value.len()));
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(*text, "%{byte:02X}");
        }
    }
    text
}

/// Parts as one text, which is as long from the start.
#[must_use]
pub fn joined<const N: usize>(parts: [&str; N]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(parts.iter().map(|part| part.len()).sum()));
    text.extend(parts);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Value;

    fn secret(name: &str, value: &str, places: &[&str]) -> Secret {
        Secret::new(name, Value::parse(value.as_bytes()).unwrap(), places).unwrap()
    }

    #[test]
    fn a_secret_goes_where_it_was_said_and_to_whom_is_named() {
        let kept = || {
            vec![
                secret("a", "aaaaaaaa", &["https://a.example", "tool:mail"]),
                secret("b", "bbbbbbbb", &["https://a.example"]),
            ]
        };
        let given = Given::new(kept(), |name| name == "a");
        let url = |text| Url::parse(text).unwrap();
        assert!(given.for_url("a", &url("https://a.example/x")).is_some());
        assert!(given.for_url("a", &url("https://b.example/x")).is_none());
        assert!(given.for_url("b", &url("https://a.example/x")).is_none());
        assert!(given.for_tool("a", "mail").is_some() && given.for_tool("a", "pay").is_none());
        let values = |name: &str| [("KEY".to_owned(), format!("Bearer {{secret:{name}}}"))];
        let filled = given.filled("mail", &values("a")).unwrap();
        assert_eq!((&*filled[0].0, &**filled[0].1), ("KEY", "Bearer aaaaaaaa"));
        assert_eq!(given.filled("mail", &values("b")), Err("b".to_owned()));
        assert_eq!(given.filled("pay", &values("a")), Err("a".to_owned()));
        assert!(given.mask_of_tool("mail").hide(b"aaaaaaaa").is_some());
        assert!(given.mask_of_tool("pay").hide(b"aaaaaaaa").is_none());
        assert!(Given::new(kept(), |_| false).is_empty());
    }

    #[test]
    fn a_value_stands_where_its_blank_stood_and_nowhere_else() {
        let one = secret("a", "x&y =%{}", &["tool:a"]);
        assert_eq!(*header("Bearer {secret:a}", &one).unwrap(), "Bearer x&y =%{}");
        assert_eq!(header("{secret:b}", &one), None);
        let before = "k=%7Bsecret:a%7D&l=%7Bsecret:b%7D&a=%7Bsecret:a%7D&%7Bsecret:a%7D&&m=";
        let after =
            "k=x%26y%20%3D%25%7B%7D&l=%7Bsecret:b%7D&a=x%26y%20%3D%25%7B%7D&%7Bsecret:a%7D&&m=";
        assert_eq!(*query(before, &one), after);
        // What was filled in is not filled in again.
        let nested = secret("b", "%7Bsecret:a%7D", &["tool:a"]);
        assert_eq!(*query("k=%7Bsecret:b%7D", &nested), "k=%257Bsecret%3Aa%257D");
    }
}
