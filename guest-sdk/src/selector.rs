//! Selectors: which record of a held reply is meant
//!
//! The human says "the largest", and the door finds out which one that is: the
//! guest names a field of a record that it need not have seen.
//!
//! # Not here
//! Finding it (`synapse-boundary`). Where a selector may stand ([`Target`],
//! [`value_pick`](crate::calls::value_pick)).

use crate::{Held, json};
use alloc::string::String;
use serde_json::Value;

/// One field of the one record that meets all conditions.
///
/// ```
/// use synapse_guest::{Held, Selector, warrant};
///
/// let largest = Selector::take(Held(1), "path").equal("kind", "file").max("size");
/// assert_eq!(
///     warrant::fs_delete(&largest).text(),
///     r#"{"warrant":"fs_delete","arguments":{"path":{"$select":1,"where":[["kind","eq","file"]],"order":["max","size"],"take":"path"}},"uses":1}"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    value: Held,
    conditions: String,
    order: String,
    field: String,
}

impl Selector {
    /// The field `field` of the only record in `value`; of a directory's record,
    /// `path` is its whole path.
    #[must_use]
    pub fn take(value: Held, field: &str) -> Self {
        let (conditions, order) = (String::new(), String::new());
        let mut taken = String::new();
        json::string(&mut taken, field);
        Self { value, conditions, order, field: taken }
    }

    /// Only records whose `field` is this string, number or boolean. The human's
    /// line must name it.
    #[must_use]
    pub fn equal(self, field: &str, literal: impl Into<Value>) -> Self {
        self.condition(field, "eq", &literal.into())
    }

    /// Only records whose `field` begins with this. The human's line must name it.
    #[must_use]
    pub fn prefix(self, field: &str, literal: &str) -> Self {
        self.condition(field, "prefix", &literal.into())
    }

    /// The record that has the greatest `field`; the last order given counts.
    #[must_use]
    pub fn max(self, field: &str) -> Self {
        self.order("max", field)
    }

    /// The record that has the least `field`; the last order given counts.
    #[must_use]
    pub fn min(self, field: &str) -> Self {
        self.order("min", field)
    }

    /// The held value that it is about.
    #[must_use]
    pub const fn value(&self) -> Held {
        self.value
    }

    fn condition(mut self, field: &str, relation: &str, literal: &Value) -> Self {
        let out = &mut self.conditions;
        out.push_str(if out.is_empty() { "[" } else { ",[" });
        json::string(out, field);
        out.push(',');
        json::string(out, relation);
        out.push(',');
        json::value(out, literal);
        out.push(']');
        self
    }

    fn order(mut self, which: &str, field: &str) -> Self {
        self.order.clear();
        json::string(&mut self.order, which);
        self.order.push(',');
        json::string(&mut self.order, field);
        self
    }

    pub(crate) fn write(&self, out: &mut String) {
        json::display(out, format_args!("{{\"$select\":{}", self.value.0));
        for (name, list) in [("where", &self.conditions), ("order", &self.order)] {
            if !list.is_empty() {
                json::display(out, format_args!(",\"{name}\":[{list}]"));
            }
        }
        json::display(out, format_args!(",\"take\":{}}}", self.field));
    }
}

/// What a warrant is for: an argument of the target's role.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the grammar has no third form")]
pub enum Target<'a> {
    /// A name; of a path, a pattern such as `/data/tmp/**` too.
    Literal(&'a str),
    /// What a selector finds when the warrant is used.
    Selected(&'a Selector),
}

impl<'a> From<&'a str> for Target<'a> {
    fn from(literal: &'a str) -> Self {
        Self::Literal(literal)
    }
}

impl<'a> From<&'a String> for Target<'a> {
    fn from(literal: &'a String) -> Self {
        Self::Literal(literal)
    }
}

impl<'a> From<&'a Selector> for Target<'a> {
    fn from(selector: &'a Selector) -> Self {
        Self::Selected(selector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(selector: &Selector) -> String {
        let mut out = String::new();
        selector.write(&mut out);
        out
    }

    #[test]
    fn what_is_not_said_is_left_out() {
        assert_eq!(written(&Selector::take(Held(7), "id")), r#"{"$select":7,"take":"id"}"#);
        let last = Selector::take(Held(0), "a\"b").max("size").min("modified");
        assert_eq!(written(&last), r#"{"$select":0,"order":["min","modified"],"take":"a\"b"}"#);
    }

    #[test]
    fn conditions_stand_in_the_order_in_which_they_were_given() {
        let selector = Selector::take(Held(2), "path")
            .prefix("name", "day\n")
            .equal("size", 12u64)
            .equal("open", true)
            .equal("ratio", -0.5);
        let wanted = r#"{"$select":2,"where":[["name","prefix","day\n"],["size","eq",12],["open","eq",true],["ratio","eq",-0.5]],"take":"path"}"#;
        assert_eq!(written(&selector), wanted);
    }
}
