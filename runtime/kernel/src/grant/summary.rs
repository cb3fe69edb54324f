//! What a turn's input says of the grant: canonical JSON.
//!
//! # Not here
//! The rest of a turn's input (the host).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use synapse_abi::registry::REGISTRY;
use synapse_primitives::execute::escape;

use super::hosts::{self, METHODS};
use super::paths::{self, RIGHTS};
use super::tools::{self, Bound};
use crate::manifest::Role;

/// The grant of these parts.
pub(super) fn summary(
    granted: u32,
    paths: &[paths::Entry],
    hosts: &[hosts::Entry],
    tools: &[tools::Entry],
) -> String {
    let primitives = REGISTRY.iter().filter(|row| granted & (1 << row.primitive.id()) != 0);
    format!(
        "{{\"primitives\":{},\"paths\":{},\"hosts\":{},\"tools\":{}}}",
        texts(primitives.map(|row| row.name)),
        array(paths.iter().map(path)),
        array(hosts.iter().map(host)),
        array(tools.iter().map(tool)),
    )
}

fn path(entry: &paths::Entry) -> String {
    let rights = RIGHTS.iter().filter(|(_, right)| entry.rights.cover(*right));
    let rights = texts(rights.map(|(name, _)| *name));
    format!("{{\"path\":{},\"rights\":{rights}}}", json(&entry.text))
}

fn host(entry: &hosts::Entry) -> String {
    let given = |method| entry.methods.iter().any(|(_, given)| *given == method);
    let methods = METHODS.iter().filter(|(_, method)| given(*method));
    format!(
        "{{\"host\":{},\"ports\":{},\"methods\":{},\"paths\":{},\"clear\":{}{}{}}}",
        json(&entry.pattern.text),
        array(entry.ports.iter().map(port)),
        texts(methods.map(|(name, _)| *name)),
        texts(entry.paths.iter().map(|path| &**path)),
        texts(entry.clear.names()),
        secrets(&entry.secrets),
        if entry.reads { ",\"reads\":true" } else { "" },
    )
}

fn secrets(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(",\"secrets\":{}", texts(names.iter().map(|name| &**name)))
}

pub(super) fn port(range: &RangeInclusive<u16>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last { format!("{first}") } else { format!("\"{first}-{last}\"") }
}

fn tool(entry: &tools::Entry) -> String {
    let limits: Vec<String> = entry
        .limits
        .iter()
        .map(|(argument, bound)| {
            let bound = match bound {
                Bound::Like(like) => texts(like.iter().map(|text| &**text)),
                Bound::Within(min, max) => format!("{{\"min\":{min},\"max\":{max}}}"),
                Bound::Dated(from, to) => {
                    format!("{{\"from\":\"{from:+}d\",\"to\":\"{to:+}d\"}}")
                }
            };
            format!("{}:{bound}", json(argument))
        })
        .collect();
    format!(
        "{{\"tool\":{},\"effect\":\"{}\",\"limits\":{{{}}},\"clear\":{}{}}}",
        json(&entry.tool),
        tools::word(entry.effect),
        limits.join(","),
        texts(entry.clear.names()),
        entry.said.as_ref().map(said).unwrap_or_default(),
    )
}

/// What a manifest says, for agents.
fn said(said: &tools::Said) -> String {
    let role = |(name, role): &(String, Role)| {
        let role = match role {
            Role::Target => "target",
            Role::Parameter => "parameter",
            Role::Content => "content",
        };
        format!("{}:\"{role}\"", json(name))
    };
    let arguments: Vec<String> = said.arguments.iter().map(role).collect();
    let journaled = if said.is_journaled { ",\"journaled\":true" } else { "" };
    let arguments = arguments.join(",");
    format!(",\"about\":{},\"arguments\":{{{arguments}}}{journaled}", json(&said.about))
}

fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    array(texts.map(json))
}

pub(super) fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// A string in its one spelling.
pub(super) fn json(text: &str) -> String {
    let mut out = String::from("\"");
    escape(&mut out, text);
    out.push('"');
    out
}
