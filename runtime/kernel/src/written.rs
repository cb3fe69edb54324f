//! Warrants that a human wrote beforehand, for runs that nobody watches
//!
//! A file with a warrant a line, as an agent would ask for it. To the gates each is asked
//! for beside a line of the human's own, which names its targets and nothing else.
//!
//! # Invariants
//! - I13: whoever wrote the file is the human, as the one who names it says; a line of
//!   it pays for its own warrant and is gone before an agent can cite it.
//!
//! # Not here
//! Keeping the file from agents (a board). What a warrant covers (`synapse_boundary`).

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};
use synapse_abi::code::Refusal;
use synapse_abi::registry::Role;
use synapse_boundary::sentence::{Argument, Call};
use synapse_boundary::{
    Facts, Held, Integrity, Label, Mark, Names, NormalPath, Origin, Request, Secrecy, Table,
    Warrants, examine, parse,
};

use crate::grant::Grant;

/// A file of warrants.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its name, for the record.
    pub(crate) file: String,
    /// The SHA-256 of its text.
    pub(crate) digest: [u8; 32],
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
struct Line {
    number: usize,
    sentence: String,
    /// What the human means by it.
    words: String,
}

/// Why a file of warrants is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Its line, counted from 1.
    pub line: usize,
    /// What the gates say.
    pub refusal: Refusal,
}

impl Written {
    /// Reads a file's text: a warrant a line; empty lines and those that begin with
    /// `#` say nothing.
    ///
    /// # Errors
    /// The first line that is no warrant.
    pub fn read(file: &str, text: &str) -> Result<Self, Unwritten> {
        let mut lines = Vec::new();
        for (number, sentence) in (1..).zip(text.lines()) {
            if sentence.is_empty() || sentence.starts_with('#') {
                continue;
            }
            let read = parse(sentence.as_bytes()).and_then(|read| match read.uses {
                Some(_) => Ok(words(&read.call)),
                None => Err(Refusal::Malformed),
            });
            let words = read.map_err(|refusal| Unwritten { line: number, refusal })?;
            lines.push(Line { number, sentence: sentence.to_owned(), words });
        }
        Ok(Self { file: file.to_owned(), digest: Sha256::digest(text).into(), lines })
    }

    /// Decides every warrant without minting any, in a world of which only the mounts
    /// are known: guest roots with paths of the host.
    ///
    /// # Errors
    /// The first line that the gates refuse.
    pub fn check(&self, grant: &Grant, mounts: Vec<(String, String)>) -> Result<(), Unwritten> {
        let prompt = Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE);
        let (mark, table) = (Mark::new(prompt), Table::new(grant.granted));
        let (warrants, world) = (Warrants::default(), Mounts(mounts));
        for (line, (sentence, lines)) in self.lines.iter().zip(self.asked()) {
            let request = Request {
                task: 0,
                mark: &mark,
                table: &table,
                scope: &grant.scope,
                calls_left: grant.calls,
                warrants: &warrants,
                lines: &lines,
            };
            let found = examine(request, &world, sentence.as_bytes());
            if let Some(refusal) = found.gates.into_iter().flatten().find_map(Result::err) {
                return Err(Unwritten { line: line.number, refusal });
            }
        }
        Ok(())
    }

    /// How many there are. A session keeps so many places of its lines for them.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The lines that its warrants cite.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|line| &*line.words)
    }

    /// Each warrant with the lines that it may cite: its own, in its place.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.lines.iter().enumerate().map(|(place, line)| {
            let mut lines = vec![String::new(); place];
            lines.push(line.words.clone());
            (&*line.sentence, lines)
        })
    }
}

/// A warrant in words: what is to be done, and to what.
fn words(call: &Call<'_>) -> String {
    let verb = call.primitive().row().says.first().copied().map(String::from);
    let targets = call.arguments().filter(|(row, _)| row.role == Role::Target);
    let targets = targets.map(|(row, value)| match value {
        Argument::Text(text) => text.decode().into_owned(),
        Argument::Uint(number) => format!("{} {number}", row.name),
        // Names and values, without what JSON puts around them.
        Argument::Json(json) | Argument::Selector(json) => {
            json.replace("\":", " ").replace(['{', '}', '[', ']', ',', '"'], " ")
        }
        Argument::Absent
        | Argument::Choice(_)
        | Argument::Handle(_)
        | Argument::Held(_)
        | Argument::Content(_) => String::new(),
    });
    verb.into_iter().chain(targets).collect::<Vec<_>>().join(" ").trim().to_string()
}

/// A world of which only its folders are known.
struct Mounts(Vec<(String, String)>);

impl Names for Mounts {
    fn mounts(&self) -> &[(String, String)] {
        &self.0
    }
}

impl Facts for Mounts {
    fn held(&self, _: u64) -> Option<Held<'_>> {
        None
    }

    fn journal_room(&self) -> u64 {
        u64::MAX
    }

    fn is_own_creation(&self, _: &NormalPath<'_>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::Written;

    const GRANT: &str = "version = 1\nprimitives = [\"fs_delete\", \"fs_move\", \"net_http_post\"]\n\
        [[paths]]\npath = \"/data/**\"\nrights = [\"list\", \"read\", \"write\", \"delete\"]\n\
        [[hosts]]\nhost = \"example.org\"\nmethods = [\"POST\"]\n";

    /// The line and the code that a file is refused with.
    fn refused(text: &str) -> Option<(usize, u16)> {
        let grant = crate::grant::Grant::parse(GRANT).unwrap();
        let mounts = [("/data".into(), String::new())].into();
        let checked = Written::read("file", text).and_then(|written| written.check(&grant, mounts));
        checked.err().map(|why| (why.line, why.refusal.number()))
    }

    #[test]
    fn a_line_names_what_it_is_for() {
        for (primitive, arguments) in [
            ("fs_delete", r#"{"path":"/data/tmp/a b.md"}"#),
            ("fs_delete", r#"{"path":"/data/tmp/**"}"#),
            ("fs_move", r#"{"from":"/data/a","to":"/data/b"}"#),
            ("net_http_post", r#"{"url":"https://example.org/a"}"#),
        ] {
            let line = alloc::format!(
                "{{\"warrant\":\"{primitive}\",\"arguments\":{arguments},\"uses\":9}}"
            );
            assert_eq!(refused(&line), None, "{line}");
            // The same line twice is two warrants.
            assert_eq!(refused(&alloc::format!("# two\n\n{line}\n{line}\n")), None, "{line}");
        }
    }

    #[test]
    fn what_no_line_could_name_is_refused_with_its_place() {
        let line = |path: &str, uses: u32| {
            alloc::format!(
                r#"# a
{{"warrant":"fs_delete","arguments":{{"path":"{path}"}},"uses":{uses}}}"#
            )
        };
        for (text, code) in [
            ("\ndelete everything".into(), 101),
            ("\n{\"name\":\"fs_delete\",\"arguments\":{\"path\":\"/data/a\"}}".into(), 101),
            (line("/data/a", 65), 101),
            (line("/elsewhere/a", 1), 401),
            (line("/data/.git/**", 1), 306),
            (line("/data/**", 1), 306),
            (line("/data", 1), 306),
            (
                "\n{\"warrant\":\"fs_write\",\"arguments\":{\"path\":\"/data/a\"},\"uses\":1}"
                    .into(),
                201,
            ),
        ] {
            let text: String = text;
            assert_eq!(refused(&text), Some((2, code)), "{text}");
        }
    }
}
