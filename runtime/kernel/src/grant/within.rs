//! A child's grant: what it is asked for, inside what its parent has.
//!
//! A request is a grant file in JSON, without a version. Whatever it has more than
//! the parent refuses it as a whole; and what comes out is met with the parent's
//! entries all the same, and with those that the package's own approval has.
//!
//! # Invariants
//! - I9: each entry of a child's grant is a part of one of the parent's, under the
//!   parent's denials; compartments have the parent's names, patterns and bits.
//! - No part of a child's budget is larger than the parent's.
//!
//! # Not here
//! Taking a child's calls from its parent's (`holding`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use synapse_abi::code::Refusal;
use synapse_boundary::{Facts, Held, Label, Mark, NormalPath, Request, Table, Warrants, examine};
use toml::de::{DeTable, DeValue};

use super::compartments::Names;
use super::notes::Notes;
use super::{Grant, Parts, SUMMARY_MAX, hosts, paths, tools};

/// Calls that a child has where its request names no number, if there are as many.
const CALLS: u64 = 1000;

impl Grant {
    /// The grant that a request comes to, for a parent that has so many calls left,
    /// met with what the package is bounded by.
    pub(crate) fn child(
        &self,
        request: &str,
        calls: u64,
        bounds: Option<&Self>,
    ) -> Result<Self, Refusal> {
        let (mut asked, _) = read(request).ok_or(Refusal::OverLimit)?;
        if !self.parts.excess(&asked).is_empty() {
            return Err(Refusal::OutOfScope);
        }
        let bound = |asked: &mut Option<u64>, default: u64, most: u64| {
            let given = *asked.get_or_insert(default);
            if given <= most { Ok(()) } else { Err(Refusal::OverLimit) }
        };
        let memory = u64::try_from(self.memory).unwrap_or(u64::MAX);
        bound(&mut asked.budget.calls, CALLS.min(calls), calls)?;
        bound(&mut asked.budget.seconds, self.seconds, self.seconds)?;
        bound(&mut asked.budget.memory, memory, memory)?;
        let mut parts = self.parts.meet(&asked);
        if let Some(bounds) = bounds {
            parts = parts.meet(&bounds.parts);
            parts.close(&bounds.parts, &self.compartments);
        }
        // An entry that nothing can use is no mistake here.
        let grant = parts.compile(Names::of(&self.compartments), &mut Notes::new("request"));
        if grant.summary.len() > SUMMARY_MAX { Err(Refusal::OverLimit) } else { Ok(grant) }
    }

    /// Whether what a warrant covers lies inside this grant.
    pub(crate) fn has_use_of(&self, warrant: &str) -> bool {
        let (mark, table) = (Mark::new(Label::SYSTEM), Table::new(self.granted));
        let request = Request {
            task: 0,
            mark: &mark,
            table: &table,
            scope: &self.scope,
            calls_left: 1,
            warrants: &Warrants::NONE,
            lines: &[],
        };
        let [_, granted, _, located] = examine(request, &Nothing, warrant.as_bytes()).gates;
        granted == Some(Ok(())) && located == Some(Ok(()))
    }
}

/// What a warrant without a selector depends on.
struct Nothing;

impl synapse_boundary::Names for Nothing {}

impl Facts for Nothing {
    fn held(&self, _: u64) -> Option<Held<'_>> {
        None
    }

    fn journal_room(&self) -> u64 {
        0
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }
}

/// What a request asks for that a grant, by its summary, does not have: entries as they
/// are written, and warrants that the child could not use. Nothing, if one of them
/// cannot be read.
pub(crate) fn excess(summary: &str, request: &str) -> Vec<String> {
    let Some(((own, _), (asked, warrants))) = read(summary).zip(read(request)) else {
        return Vec::new();
    };
    let excess = own.excess(&asked);
    if !excess.is_empty() {
        return excess;
    }
    let child = asked.compile(Names::default(), &mut Notes::new("request"));
    warrants.into_iter().filter(|warrant| !child.has_use_of(warrant)).collect()
}

/// The warrants that a request moves, as their sentences.
pub(crate) fn moved(request: &str) -> Vec<String> {
    read(request).map(|(_, warrants)| warrants).unwrap_or_default()
}

impl Parts {
    fn excess(&self, asked: &Self) -> Vec<String> {
        let has = |granted| self.primitives.iter().any(|(_, own)| *own == granted);
        let mut excess = Vec::new();
        for (_, primitive) in asked.primitives.iter().filter(|(_, asked)| !has(*asked)) {
            excess.push(primitive.row().name.to_owned());
        }
        let paths = asked.paths.iter().filter(|entry| !entry.is_within(&self.paths));
        excess.extend(paths.map(|entry| entry.text.clone()));
        let hosts = asked.hosts.iter().filter(|entry| !entry.is_within(&self.hosts));
        excess.extend(hosts.map(|entry| entry.pattern.text.clone()));
        let tools = asked.tools.iter().filter(|entry| !entry.is_within(&self.tools));
        excess.extend(tools.map(|entry| entry.tool.clone()));
        excess
    }

    /// What both allow, under this one's names for compartments.
    fn meet(&self, other: &Self) -> Self {
        let has = |granted| other.primitives.iter().any(|(_, other)| *other == granted);
        let mut met = Self {
            primitives: self.primitives.iter().filter(|(_, own)| has(*own)).cloned().collect(),
            denied: self.denied.clone(),
            denied_hosts: self.denied_hosts.iter().chain(&other.denied_hosts).cloned().collect(),
            paths: pairs(&self.paths, &other.paths, paths::Entry::meet),
            hosts: pairs(&self.hosts, &other.hosts, hosts::Entry::meet),
            tools: pairs(&self.tools, &other.tools, tools::Entry::meet),
            named: self.named.clone(),
            budget: self.budget,
        };
        met.denied.join(&other.denied);
        for (own, other) in [
            (&mut met.budget.calls, other.budget.calls),
            (&mut met.budget.seconds, other.budget.seconds),
            (&mut met.budget.memory, other.budget.memory),
        ] {
            *own = own.iter().copied().chain(other).min();
        }
        met
    }

    /// Closes what the package's approval keeps apart under a name that the parent
    /// does not know: no label could say so.
    fn close(&mut self, bounds: &Self, known: &[String]) {
        for entry in &bounds.named {
            if known.contains(&entry.name) {
                self.named.push(entry.clone());
            } else {
                entry.patterns.iter().for_each(|pattern| {
                    self.denied.add(pattern.clone());
                });
            }
        }
    }
}

fn pairs<T>(own: &[T], other: &[T], meet: impl Fn(&T, &T) -> Option<T>) -> Vec<T> {
    own.iter().flat_map(|a| other.iter().filter_map(|b| meet(a, b)).collect::<Vec<_>>()).collect()
}

/// Reads a request, and the warrants beside it. Which place has which mistake no code can
/// tell.
fn read(request: &str) -> Option<(Parts, Vec<String>)> {
    let members = request.strip_prefix('{').filter(|members| *members != "}")?;
    let text = format!("request = {{\"version\"=1,{}", equated(members));
    let document = DeTable::parse(&text).ok()?.into_inner();
    let (_, mut request) = document.into_iter().next()?;
    let DeValue::Table(table) = request.get_mut() else { return None };
    // A file has none.
    let warrants = match table.remove("warrants") {
        Some(named) => {
            let texts = named.get_ref().as_array()?.iter();
            texts.map(|text| text.get_ref().as_str().map(String::from)).collect::<Option<_>>()?
        }
        None => Vec::new(),
    };
    let mut notes = Notes::new("request");
    let parts = Parts::read(&request, &[], &mut notes);
    (notes.mistakes() == 0 && parts.named.is_empty()).then_some((parts, warrants))
}

/// Canonical JSON, as TOML has it on one line: strings and numbers are alike.
pub(crate) fn equated(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let equate = |char| {
        match char {
            '"' if !escaped => inside = !inside,
            ':' if !inside => return '=',
            // White space that a file may have, and a table on one line may not.
            '\n' if !inside => return ' ',
            _ => {}
        }
        escaped = char == '\\' && !escaped;
        char
    };
    json.chars().map(equate).collect()
}

#[cfg(test)]
mod tests {
    use synapse_boundary::scope::{Method, Place};
    use synapse_boundary::url::Url;
    use synapse_boundary::{Rights, Secrecy};

    use super::*;
    use crate::manifest::Manifest;

    const PARENT: &str = r#"
version = 1
primitives = ["fs_list", "fs_read", "net_http_get", "tool_use", "agent_spawn"]
deny = ["/data/private", "**/.env"]
[[paths]]
path = "/data/**"
rights = ["list", "read"]
[[paths]]
path = "/data/out/*"
rights = ["write"]
[[hosts]]
host = "*.example.org"
ports = [443, "8000-8010"]
paths = ["/v1"]
clear = ["prompt", "payroll"]
[[hosts]]
host = "127.0.0.1"
ports = [80]
[[tools]]
tool = "mail/find"
effect = "read"
limits = { in = ["inbox", "sent"], most = 50 }
[compartments]
payroll = "/data/payroll/**"
[budget]
calls = 500
seconds = 60
"#;

    fn parent() -> Grant {
        Grant::parse(PARENT).unwrap()
    }

    fn path(text: &str) -> NormalPath<'_> {
        NormalPath::parse(text.into()).unwrap()
    }

    #[test]
    fn i9_what_the_parent_does_not_have_is_refused_and_named() {
        let parent = parent();
        let with = |key: &str, entry: &str| format!(r#"{{"primitives":[],"{key}":[{{{entry}}}]}}"#);
        let host = |more: &str| with("hosts", &format!(r#""host":"a.example.org"{more}"#));
        let tool = |more: &str| with("tools", &format!(r#""tool":"mail/find"{more}"#));
        for (request, beyond) in [
            (r#"{"primitives":["fs_read","fs_write"]}"#.into(), "fs_write"),
            (with("paths", r#""path":"/data/**","rights":["write"]"#), "/data/**"),
            (with("paths", r#""path":"/other","rights":["read"]"#), "/other"),
            (with("paths", r#""path":"/data/out/**","rights":["write"]"#), "/data/out/**"),
            (with("hosts", r#""host":"example.org","paths":["/v1"]"#), "example.org"),
            (host(""), "a.example.org"),
            (host(r#","paths":["/v1"],"ports":[80]"#), "a.example.org"),
            (host(r#","paths":["/v1"],"methods":["POST"]"#), "a.example.org"),
            (host(r#","paths":["/v1"],"clear":["files"]"#), "a.example.org"),
            (host(r#","paths":["/v1"],"secrets":["key"]"#), "a.example.org"),
            (tool(""), "mail/find"),
            (tool(r#","effect":"read","limits":{"most":51}"#), "mail/find"),
        ] {
            assert_eq!(excess(parent.summary(), &request), [beyond], "{request}");
            assert_eq!(parent.child(&request, 500, None).err(), Some(Refusal::OutOfScope));
        }
        let inside = host(r#","paths":["/v1"],"clear":["payroll"]"#);
        assert_eq!(excess(parent.summary(), &inside), [""; 0]);
    }

    #[test]
    fn i9_no_budget_is_larger_and_what_is_no_request_is_none() {
        let parent = parent();
        for request in [
            "{}",
            r#"{"paths":[]}"#,
            r#"{"primitives":["fs_reads"]}"#,
            r#"{"primitives":[],"version":1}"#,
            r#"{"primitives":[],"compartments":{"a":"/data/a/**"}}"#,
            r#"{"primitives":[],"else":null}"#,
            r#"{"primitives":[],"budget":{"calls":401}}"#,
            r#"{"primitives":[],"budget":{"seconds":61}}"#,
            r#"{"primitives":[],"budget":{"memory":268435457}}"#,
            r#"{"primitives":[],"budget":{"calls":0}}"#,
        ] {
            let refused = parent.child(request, 400, None).err();
            assert_eq!(refused, Some(Refusal::OverLimit), "{request}");
        }
        let child = |request, calls| parent.child(request, calls, None).unwrap();
        let least = child(r#"{"primitives":[]}"#, 400);
        assert_eq!((least.calls, least.seconds, least.memory), (400, 60, 256 << 20));
        let wide = Grant::parse("version = 1\nprimitives = []\n").unwrap();
        assert_eq!(wide.child(r#"{"primitives":[]}"#, 5000, None).unwrap().calls, CALLS);
        let budget = r#"{"primitives":[],"budget":{"calls":7,"seconds":2,"memory":65536}}"#;
        let named = child(budget, 7);
        assert_eq!((named.calls, named.seconds, named.memory), (7, 2, 65536));
    }

    #[test]
    fn i9_a_child_has_the_parents_denials_compartments_and_limits() {
        let parent = parent();
        let request = concat!(
            r#"{"primitives":["fs_read"],"paths":[{"path":"/data/**","rights":["read"]}],"#,
            r#""hosts":[{"host":"*.a.example.org","ports":[443,"8005-8010"],"paths":["/v1/x"]},"#,
            r#"{"host":"127.0.0.1","ports":[80]}],"tools":[{"tool":"mail/find","effect":"read","#,
            r#""limits":{"most":5}}],"deny":["/data/b \"é"]}"#
        );
        let child = parent.child(request, 500, None).unwrap();
        assert_eq!(child.compartments, parent.compartments);
        for (target, allowed) in [
            ("/data/a", Ok(())),
            ("/data/private/x", Err(Refusal::Denied)),
            ("/data/x/.ENV", Err(Refusal::Denied)),
            ("/data/b \"é", Err(Refusal::Denied)),
        ] {
            assert_eq!(child.scope.check(&path(target), Rights::READ), allowed, "{target}");
        }
        let out = child.scope.check(&path("/data/out/a"), Rights::WRITE);
        assert_eq!(out, Err(Refusal::OutOfScope));
        let payroll = path("/data/payroll/a");
        assert_eq!(child.scope.compartments(&payroll), parent.scope.compartments(&payroll));
        let terms = |grant: &Grant, url| {
            grant.scope.check_net(&Place::of(&Url::parse(url).unwrap(), Method::Get))
        };
        let (x, own) = ("http://b.a.example.org:8007/v1/x", "http://127.0.0.1/");
        assert_eq!(terms(&child, x).unwrap().clear, Secrecy::PROMPT);
        assert_eq!(terms(&child, "https://a.example.org/v1/x"), Err(Refusal::OutOfScope));
        assert_eq!(terms(&child, "https://b.a.example.org/v1/y"), Err(Refusal::OutOfScope));
        assert_eq!(terms(&child, own).unwrap().own, terms(&parent, own).unwrap().own);
        let tool = child.scope.entry("mail/find").unwrap();
        assert_eq!(tool.limits.len(), 2, "those of both hold, each argument's as one");
    }

    #[test]
    fn i9_a_package_is_bounded_by_its_approval_and_closed_where_that_keeps_apart() {
        let bounds = Grant::parse(
            "version = 1\nprimitives = [\"fs_read\"]\ndeny = [\"/data/x\"]\n\
             [[paths]]\npath = \"/data/a/**\"\nrights = [\"read\", \"delete\"]\n\
             [compartments]\nsecret = \"/data/a/secret/**\"\npayroll = \"/data/a/pay/**\"\n\
             [budget]\ncalls = 3\n",
        )
        .unwrap();
        let request = concat!(
            r#"{"primitives":["fs_list","fs_read"],"#,
            r#""paths":[{"path":"/data/**","rights":["list","read"]}]}"#
        );
        let parent = parent();
        let child = parent.child(request, 500, Some(&bounds)).unwrap();
        assert_eq!((child.calls, child.granted.count_ones()), (3, 1));
        let check = |target| child.scope.check(&path(target), Rights::READ);
        assert_eq!(check("/data/a/b"), Ok(()));
        assert_eq!(check("/data/b"), Err(Refusal::OutOfScope));
        assert_eq!(check("/data/a/secret/b"), Err(Refusal::Denied));
        assert_eq!(
            child.scope.compartments(&path("/data/a/pay/b")),
            parent.scope.compartments(&path("/data/payroll/b"))
        );
    }

    #[test]
    fn i9_what_an_approval_adds_to_a_connector_goes_no_further_than_was_asked() {
        let told = |start: &str| {
            let manifest = format!(
                "version = 1\nserver = \"mail\"\nclear = [\"files\"]\n[start]\n\
                 command = [\"/opt/mail\"]\n{start}[verbs.find]\nabout = \"Finds.\"\n\
                 effect = \"read\"\nsays = [\"find\"]\n"
            );
            let manifest = Manifest::check(&manifest).unwrap();
            Grant::parse_with(
                "version = 1\nprimitives = [\"tool_use\"]\n[[tools]]\ntool = \"mail/find\"\n",
                &[manifest],
            )
            .unwrap()
        };
        let clear = |grant: &Grant| grant.scope.entry("mail/find").unwrap().terms.clear;
        let request = |clear: &str| {
            format!(
                r#"{{"primitives":["tool_use"],"tools":[{{"tool":"mail/find","effect":"read"{clear}}}]}}"#
            )
        };
        let parent = told("network = true\n");
        let own = parent.scope.entry("mail/find").unwrap().terms.own;
        let child = |clear: &str| parent.child(&request(clear), 500, None).unwrap();
        let least = clear(&child(r#","clear":[]"#));
        assert_eq!(least.join(own), own);
        assert_eq!(clear(&child("")).join(own), Secrecy::PROMPT.join(own));
        let all = child(r#","clear":["files","prompt"]"#);
        assert_eq!(clear(&all), clear(&parent));
        let verb = |grant: &Grant| grant.scope.entry("mail/find").unwrap().verb.clone();
        assert_eq!(verb(&all), verb(&parent), "what a manifest says of a verb stays with it");
        // One that can tell nobody is told everything; a child that may tell it less does.
        let sealed = told("");
        assert_eq!(clear(&sealed), Secrecy::from_bits(u64::MAX));
        let child = sealed.child(&request(""), 500, None).unwrap();
        assert_eq!(clear(&child).join(own), Secrecy::PROMPT.join(own));
    }
}
