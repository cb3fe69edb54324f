//! One call of a connector's verb, and what comes back of it
//!
//! # Invariants
//! - I4: what a connector was ever told is in the label of what it answers, where the
//!   board says so: it may keep what it hears.
//!
//! # Not here
//! Speaking with a connector (the board); what a verb does, and which arguments it
//! may have (the boundary).

use alloc::string::String;
use alloc::vec::Vec;

use synapse_boundary::target::Target;
use synapse_boundary::{Authorized, Facts};
use synapse_reply::Fault;

use crate::execute::{Caller, escape, value};
use crate::fetch::{Reached, most};
use crate::platform::{Platform, Use, WHOLE_BYTES};
use crate::rest::Names;
use crate::tree::Work;

/// Has a connector do what a call says: its answer, as the board gives it, and the bytes
/// that the journal took.
pub(crate) async fn call<P: Platform>(
    call: &Authorized<'_>,
    platform: &P,
    facts: &impl Facts,
    caller: Caller<'_>,
    reached: &Reached,
) -> (Result<Vec<u8>, Fault>, u64) {
    let Some(Target::Name(tool)) = call.target(0) else { return (Err(Fault::NotFound), 0) };
    let arguments = match resolved(call.call().span(1), facts) {
        Ok(arguments) => arguments,
        Err(fault) => return (Err(fault), 0),
    };
    let carries = Names::of(call.justification().secrecy, caller.compartments);
    let most = most(call.call());
    let work = Work::new(call, platform, caller, reached);
    let arguments = &arguments;
    let used = platform.tool(Use { tool, arguments, carries: &carries, most, tree: &work }).await;
    reached.add(used.carried.bits(caller.compartments, call.passed().scope.named()));
    (used.reply, work.displaced())
}

/// Arguments with every held value in its place, as a string.
fn resolved(arguments: &str, facts: &impl Facts) -> Result<String, Fault> {
    let (mut json, mut rest) = (String::new(), arguments);
    while let Some((before, after)) = rest.split_once('"') {
        let (inner, next) = match after.strip_prefix("$held\":") {
            // A quote inside a string is escaped, so that this is a reference.
            Some(number) if before.ends_with('{') => {
                let (number, next) = number.split_once('}').ok_or(Fault::NoMatch)?;
                let held = value(facts, number.parse().map_err(|_| Fault::NoMatch)?)?;
                let mut text = String::new();
                escape(&mut text, str::from_utf8(held).map_err(|_| Fault::NotText)?);
                json.push_str(before.strip_suffix('{').unwrap_or(before));
                (text, next)
            }
            _ => {
                json.push_str(before);
                let (inner, next) = string(after).ok_or(Fault::NoMatch)?;
                let is_key = next.starts_with(':');
                (inner.strip_prefix('$').filter(|_| is_key).unwrap_or(inner).into(), next)
            }
        };
        json.extend(["\"", &inner, "\""]);
        if u64::try_from(json.len()).is_ok_and(|length| length > WHOLE_BYTES) {
            return Err(Fault::TooLarge);
        }
        rest = next;
    }
    json.push_str(rest);
    Ok(json)
}

/// A string up to the quote that ends it, and what follows.
fn string(text: &str) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    Some((text.get(..end)?, text.get(end.checked_add(1)?..)?))
}

#[cfg(test)]
mod tests {
    use synapse_boundary::{Held, Integrity, Label, NormalPath, Origin, Secrecy};

    use super::*;

    struct World;

    impl synapse_boundary::Names for World {}

    impl Facts for World {
        fn held(&self, number: u64) -> Option<Held<'_>> {
            let bytes: &[u8] = match number {
                1 => b"a \"b\"\n\\",
                2 => b"\xff",
                _ => return None,
            };
            let label = Label::new(Integrity::Ingested, Secrecy::NONE, Origin::NONE);
            Some(Held { label, bytes, digest: [0; 32], fault: None, reply_of: None })
        }

        fn journal_room(&self) -> u64 {
            0
        }

        fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
            false
        }
    }

    #[test]
    fn i14_held_values_stand_as_strings_and_escaped_keys_as_they_are_meant() {
        for (given, expected) in [
            (r#"{"a":1,"b":[true,"x\"y\\"]}"#, Ok(r#"{"a":1,"b":[true,"x\"y\\"]}"#)),
            (r#"{"a":{"$held":1}}"#, Ok(r#"{"a":"a \"b\"\n\\"}"#)),
            (
                r#"{"a":[{"$held":1},{"b":{"$held":1}}],"c":2}"#,
                Ok(r#"{"a":["a \"b\"\n\\",{"b":"a \"b\"\n\\"}],"c":2}"#),
            ),
            (r#"{"$$held":1,"b":"$$x","$$c":{}}"#, Ok(r#"{"$held":1,"b":"$$x","$c":{}}"#)),
            (r#"{"a":"{\"$held\":1}"}"#, Ok(r#"{"a":"{\"$held\":1}"}"#)),
            ("{}", Ok("{}")),
            (r#"{"a":{"$held":2}}"#, Err(Fault::NotText)),
            (r#"{"a":{"$held":3}}"#, Err(Fault::NoMatch)),
        ] {
            assert_eq!(resolved(given, &World), expected.map(String::from), "{given}");
        }
    }
}
