//! Warnings about primitives and entries that have no use of each other.
//!
//! # Not here
//! Entries that are too broad or covered by others (`paths`, `hosts`).

use alloc::format;
use core::ops::Range;

use synapse_abi::registry::Primitive;
use synapse_boundary::Rights;
use synapse_boundary::scope::{Effect, Method};

use super::hosts::{self, METHODS};
use super::notes::Notes;
use super::paths::{self, RIGHTS};
use super::tools;

/// A granted primitive, and where its name stands.
pub(super) type Granted = (Range<usize>, Primitive);

/// Warns of each primitive that no entry satisfies, and each right that no
/// primitive uses.
pub(super) fn warn(
    granted: &[Granted],
    paths: &[paths::Entry],
    hosts: &[hosts::Entry],
    tools: &[tools::Entry],
    notes: &mut Notes,
) {
    for (at, primitive) in granted {
        let needs = |needed: &Need| match needed {
            Need::Right(right) => paths.iter().any(|entry| entry.rights.cover(*right)),
            Need::Method(method) => {
                hosts.iter().any(|entry| entry.methods.iter().any(|(_, given)| given == method))
            }
            Need::Effect(kind) => tools.iter().any(|entry| Kind::of(entry.effect) == *kind),
            Need::Nobody => false,
        };
        if let Some(missing) = needs_of(*primitive).find(|needed| !needs(needed)) {
            let why = match missing {
                Need::Right(right) => format!("no path has the right `{}`", right_name(right)),
                Need::Method(method) => {
                    format!("no host has the method `{}`", method_name(method))
                }
                Need::Effect(Kind::Use) => "no tool reads, stores or is free".into(),
                Need::Effect(Kind::Commit) => "no tool has the effect `commit`".into(),
                Need::Nobody => "this version has no entry that covers it".into(),
            };
            notes.warning(
                at,
                format!("primitive `{}` is granted and always refused", primitive.row().name),
                why,
                "add such an entry or remove the primitive",
            );
        }
    }
    let used =
        |need: Need| granted.iter().any(|(_, primitive)| needs_of(*primitive).any(|n| n == need));
    let mut unused = |at: &Range<usize>, what: &str, need: Need| {
        if !used(need) {
            notes.warning(
                at,
                format!("{what} has no use"),
                "no granted primitive needs it",
                "grant one that does, or remove it",
            );
        }
    };
    for (at, right) in paths.iter().flat_map(|entry| &entry.words) {
        unused(at, &format!("right `{}`", right_name(*right)), Need::Right(*right));
    }
    for (at, method) in hosts.iter().flat_map(|entry| &entry.methods) {
        unused(at, &format!("method `{}`", method_name(*method)), Need::Method(*method));
    }
    for entry in tools {
        unused(&entry.at, &format!("tool `{}`", entry.tool), Need::Effect(Kind::of(entry.effect)));
    }
}

/// What an entry must say for a call to be admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Right(Rights),
    Method(Method),
    Effect(Kind),
    /// No entry can.
    Nobody,
}

/// Which of the two primitives a verb is called with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Use,
    Commit,
}

impl Kind {
    const fn of(effect: Effect) -> Self {
        match effect {
            Effect::Read | Effect::Store | Effect::Free => Self::Use,
            Effect::Commit => Self::Commit,
        }
    }
}

fn needs_of(primitive: Primitive) -> impl Iterator<Item = Need> {
    let other = match primitive {
        Primitive::NetHttpGet => Some(Need::Method(Method::Get)),
        Primitive::NetHttpPost => Some(Need::Method(Method::Post)),
        Primitive::NetListen | Primitive::NetAccept => Some(Need::Method(Method::Listen)),
        Primitive::ToolUse => Some(Need::Effect(Kind::Use)),
        Primitive::ToolCommit => Some(Need::Effect(Kind::Commit)),
        Primitive::ModelGenerate => Some(Need::Nobody),
        _ => None,
    };
    let rights = primitive.row().arguments.iter().map(|argument| argument.needs);
    rights.filter(|right| *right != Rights::NONE).map(Need::Right).chain(other)
}

fn right_name(right: Rights) -> &'static str {
    RIGHTS.iter().find(|(_, known)| *known == right).map_or("", |(name, _)| name)
}

fn method_name(method: Method) -> &'static str {
    METHODS.iter().find(|(_, known)| *known == method).map_or("", |(name, _)| name)
}
