//! The grant: what a human lets one task do, read from its file.
//!
//! A mistake in a grant is either a hole or a puzzle, so everything that is not
//! understood is refused with its place in the file: unknown keys and names,
//! entries given twice, entries that can never apply.
//!
//! # Invariants
//! - I9: a task's [`Scope`] is built here, once, from what the human approved.
//! - Whatever the file does not name is not granted; only the budget has defaults.
//!
//! # Not here
//! Comparing a target with the scope (`synapse_boundary::scope`). Attenuating a
//! grant for a child. Finding and reading the file (the host).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::ops::Range;

use synapse_abi::code::Refusal;
use synapse_abi::registry::{Primitive, REGISTRY};
use synapse_boundary::path::{NormalPath, fold};
use synapse_boundary::scope::{BadPattern, Pattern, Reach};
use synapse_boundary::{Rights, Scope, Secrecy};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Guest memory that may be granted at most: 1 GiB.
pub const MEMORY_MAX: usize = 1 << 30;

/// What one task may do.
#[derive(Debug)]
pub struct Grant {
    /// The granted primitives: bit n for the primitive with id n.
    pub granted: u32,
    /// The targets that they may name.
    pub scope: Scope,
    /// Calls of a task.
    pub calls: u64,
    /// Seconds that its guest may compute.
    pub seconds: u64,
    /// Bytes of its guest's memory.
    pub memory: usize,
    summary: String,
}

impl Grant {
    /// Reads a grant file.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Self, GrantError> {
        let file = File { text };
        file.document().map_err(|fault| file.error(fault))
    }

    /// What a turn's input says of it, as canonical JSON.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }
}

/// Why a text is no grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What happened; why; what to do.
    pub message: String,
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grant line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl Error for GrantError {}

/// The words for rights, in the order in which a summary has them.
const RIGHTS: [(&str, Rights); 4] = [
    ("list", Rights::LIST),
    ("read", Rights::READ),
    ("write", Rights::WRITE),
    ("delete", Rights::DELETE),
];

/// Compartments that the kernel itself fills.
const BUILT_IN: [&str; 2] = ["prompt", "files"];

/// A mistake, and the byte where it starts.
struct Fault {
    at: usize,
    message: String,
}

fn fault(span: Range<usize>, message: impl Into<String>) -> Fault {
    Fault { at: span.start, message: message.into() }
}

type Value<'t> = Spanned<DeValue<'t>>;

/// A `[[paths]]` entry.
struct Entry {
    pattern: Pattern,
    text: String,
    at: Range<usize>,
    rights: Rights,
}

/// A `deny` entry.
enum Deny {
    Pattern(Pattern),
    Name(String),
}

impl Deny {
    /// Whether no path that the pattern matches escapes this entry.
    fn covers(&self, pattern: &Pattern) -> bool {
        let folded = |pattern: &Pattern| -> Vec<String> {
            pattern.path().components().map(|name| fold(name).into_owned()).collect()
        };
        match self {
            Self::Name(name) => folded(pattern).contains(name),
            Self::Pattern(deny) => {
                let (above, below) = (folded(deny), folded(pattern));
                match (deny.reach(), pattern.reach()) {
                    (Reach::Subtree, _) => below.starts_with(&above),
                    (Reach::Children, Reach::Exact) => {
                        below.split_last().is_some_and(|(_, parent)| parent == above)
                    }
                    (a, b) => a == b && above == below,
                }
            }
        }
    }

    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(a), Self::Name(b)) => a == b,
            (Self::Pattern(a), Self::Pattern(b)) => {
                a.reach() == b.reach() && fold(a.path().as_str()) == fold(b.path().as_str())
            }
            (Self::Name(_), Self::Pattern(_)) | (Self::Pattern(_), Self::Name(_)) => false,
        }
    }
}

struct Budget {
    calls: u64,
    seconds: u64,
    memory: usize,
}

/// The text that is read; what it says is returned, never kept here.
struct File<'t> {
    text: &'t str,
}

impl File<'_> {
    fn document(&self) -> Result<Grant, Fault> {
        let document = DeTable::parse(self.text).map_err(|error| Fault {
            at: error.span().map_or(0, |span| span.start),
            message: format!(
                "the file is not TOML; {}; correct it here",
                error.message().replace('\n', ", ")
            ),
        })?;
        let (mut version, mut granted) = (false, None);
        let (mut denied, mut entries, mut named) = (Vec::new(), Vec::new(), Vec::new());
        let mut budget = Budget { calls: 100_000, seconds: 300, memory: 256 << 20 };
        for (at, key, value) in in_order(document.get_ref()) {
            match key {
                "version" => {
                    let number = integer(value, "`version`")?;
                    if number != 1 {
                        return Err(fault(
                            value.span(),
                            format!(
                                "version {number} is unknown; this Synapse reads version 1; \
                                 write `version = 1` or use the Synapse it was written for"
                            ),
                        ));
                    }
                    version = true;
                }
                "primitives" => granted = Some(primitives(value)?),
                "deny" => denied = deny(value)?,
                "paths" => entries = paths(value)?,
                "compartments" => named = compartments(value)?,
                "budget" => read_budget(value, &mut budget)?,
                "hosts" | "tools" => {
                    let what = if key == "hosts" { "network" } else { "tools" };
                    return Err(fault(
                        at,
                        format!(
                            "`{key}` cannot be granted; this version grants no network and no \
                             tools yet; remove the entry and what needs {what}"
                        ),
                    ));
                }
                _ => {
                    let known =
                        ["version", "primitives", "deny", "paths", "compartments", "budget"];
                    return Err(unknown(at, "key", key, &known));
                }
            }
        }
        let missing = |key: &str, example: &str| {
            fault(0..0, format!("`{key}` is missing; every grant states it; add `{example}`"))
        };
        if !version {
            return Err(missing("version", "version = 1"));
        }
        let granted = granted.ok_or_else(|| missing("primitives", "primitives = []"))?;
        for entry in &entries {
            if denied.iter().any(|deny| deny.covers(&entry.pattern)) {
                return Err(fault(
                    entry.at.clone(),
                    format!(
                        "path {} is unreachable: deny covers it; a deny entry always wins; \
                         remove the path or narrow the deny entry",
                        quoted(&entry.text)
                    ),
                ));
            }
        }
        let mut scope = Scope::default();
        for entry in &entries {
            scope.allow(&entry.pattern, entry.rights);
        }
        for entry in &denied {
            match entry {
                Deny::Pattern(pattern) => scope.deny(pattern),
                Deny::Name(name) => scope.deny_name(name),
            }
        }
        for (pattern, secrecy) in &named {
            scope.compartment(pattern, *secrecy);
        }
        let Budget { calls, seconds, memory } = budget;
        Ok(Grant { granted, scope, calls, seconds, memory, summary: summary(granted, &entries) })
    }

    fn error(&self, fault: Fault) -> GrantError {
        let before = self.text.get(..fault.at).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        GrantError {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            message: fault.message,
        }
    }
}

fn primitives(value: &Value<'_>) -> Result<u32, Fault> {
    let mut granted = 0u32;
    for (at, name) in strings(value, "`primitives`")? {
        let Some(primitive) = Primitive::from_name(name) else {
            let names: Vec<&str> = REGISTRY.iter().map(|row| row.name).collect();
            return Err(unknown(at, "primitive", name, &names));
        };
        let bit = 1 << primitive.id();
        if granted & bit != 0 {
            return Err(twice(at, "primitive", name));
        }
        granted |= bit;
    }
    Ok(granted)
}

fn deny(value: &Value<'_>) -> Result<Vec<Deny>, Fault> {
    let mut entries: Vec<Deny> = Vec::new();
    for (at, text) in strings(value, "`deny`")? {
        let entry = match text.strip_prefix("**/") {
            Some(name) => {
                let path = NormalPath::parse(Cow::Owned(format!("/{name}")))
                    .map_err(|refusal| bad_path(at.clone(), text, refusal))?;
                if name.contains(['/', '*']) || path.as_str().strip_prefix('/') != Some(name) {
                    return Err(fault(
                        at,
                        format!(
                            "deny entry {} cannot be read; after `**/` stands one whole name; \
                             write it like `**/.env`",
                            quoted(text)
                        ),
                    ));
                }
                if name.is_empty() {
                    return Err(fault(
                        at,
                        "deny entry `**/` names nothing; after `**/` stands one whole name; write \
                         it like `**/.env`",
                    ));
                }
                Deny::Name(fold(name).into_owned())
            }
            None => Deny::Pattern(pattern(at.clone(), text)?),
        };
        if entries.iter().any(|known| known.same(&entry)) {
            return Err(twice(at, "deny entry", text));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn paths(value: &Value<'_>) -> Result<Vec<Entry>, Fault> {
    let DeValue::Array(items) = value.get_ref() else {
        return Err(wrong(value, "`paths`", "an array of tables", "write it as `[[paths]]`"));
    };
    let mut entries: Vec<Entry> = Vec::new();
    for item in items {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(wrong(item, "an entry of `paths`", "a table", "write it as `[[paths]]`"));
        };
        let (mut path, mut allowed) = (None, None);
        for (at, key, value) in in_order(table) {
            match key {
                "path" => path = Some((value.span(), string(value, "`path`")?)),
                "rights" => allowed = Some(rights(value)?),
                _ => return Err(unknown(at, "key", key, &["path", "rights"])),
            }
        }
        let missing = |key: &str, example: &str| {
            fault(
                item.span(),
                format!("`{key}` is missing; every path entry states it; add `{example}`"),
            )
        };
        let (at, text) = path.ok_or_else(|| missing("path", "path = \"/data/**\""))?;
        let rights = allowed.ok_or_else(|| missing("rights", "rights = [\"list\", \"read\"]"))?;
        let pattern = pattern(at.clone(), text)?;
        if pattern.path().components().next().is_none() && pattern.reach() == Reach::Subtree {
            return Err(fault(
                at,
                "path `/**` is over-broad; it covers every folder, also those that are added \
                 later; name the folders that the task needs",
            ));
        }
        if entries.iter().any(|known| known.pattern == pattern) {
            return Err(twice(at, "path", text));
        }
        entries.push(Entry { pattern, text: text.to_owned(), at, rights });
    }
    Ok(entries)
}

fn rights(value: &Value<'_>) -> Result<Rights, Fault> {
    let mut all = Rights::NONE;
    for (at, word) in strings(value, "`rights`")? {
        let Some((_, right)) = RIGHTS.iter().find(|(name, _)| *name == word) else {
            return Err(unknown(at, "right", word, &RIGHTS.map(|(name, _)| name)));
        };
        if all.cover(*right) {
            return Err(twice(at, "right", word));
        }
        all = all.and(*right);
    }
    if all == Rights::NONE {
        return Err(fault(
            value.span(),
            "`rights` is empty; such an entry grants nothing; name rights or remove the entry",
        ));
    }
    Ok(all)
}

fn compartments(value: &Value<'_>) -> Result<Vec<(Pattern, Secrecy)>, Fault> {
    let mut named = Vec::new();
    for (number, (at, name, value)) in
        (Secrecy::NAMED..).zip(in_order(table(value, "compartments")?))
    {
        let plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        };
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(fault(
                at,
                format!(
                    "compartment {} has no valid name; names consist of `a` to `z`, `0` to `9`, \
                     `_` and `-`; rename it",
                    quoted(name)
                ),
            ));
        }
        if BUILT_IN.contains(&name) {
            return Err(fault(
                at,
                format!(
                    "compartment `{name}` is built in; the kernel alone says what it holds; \
                     choose another name"
                ),
            ));
        }
        let Some(secrecy) = Secrecy::bit(number) else {
            return Err(fault(
                at,
                format!(
                    "compartment `{name}` is one too many; a grant names at most 56; join some"
                ),
            ));
        };
        let text = string(value, "a compartment")?;
        named.push((pattern(value.span(), text)?, secrecy));
    }
    Ok(named)
}

fn read_budget(value: &Value<'_>, budget: &mut Budget) -> Result<(), Fault> {
    for (at, key, value) in in_order(table(value, "budget")?) {
        let positive = || {
            let number = integer(value, &format!("`{key}`"))?;
            u64::try_from(number).ok().filter(|number| *number > 0).ok_or_else(|| {
                fault(
                    value.span(),
                    format!(
                        "`{key}` is {number}; a task with less than 1 cannot run; write a \
                         positive number"
                    ),
                )
            })
        };
        match key {
            "calls" => budget.calls = positive()?,
            "seconds" => budget.seconds = positive()?,
            "memory" => {
                let bytes = positive()?;
                budget.memory = usize::try_from(bytes)
                    .ok()
                    .filter(|bytes| *bytes <= MEMORY_MAX)
                    .ok_or_else(|| {
                        fault(
                            value.span(),
                            format!(
                                "`memory` is {bytes}; a guest has at most {MEMORY_MAX} bytes; \
                                 lower it"
                            ),
                        )
                    })?;
            }
            _ => return Err(unknown(at, "key", key, &["calls", "seconds", "memory"])),
        }
    }
    Ok(())
}

fn pattern(at: Range<usize>, text: &str) -> Result<Pattern, Fault> {
    Pattern::parse(text).map_err(|bad| match bad {
        BadPattern::Path(refusal) => bad_path(at, text, refusal),
        BadPattern::Star => fault(
            at,
            format!(
                "pattern {} cannot be read; `*` stands only in a last `/*` or `/**`; name the \
                 folder and end with one of them",
                quoted(text)
            ),
        ),
        BadPattern::NotNormal => fault(
            at,
            format!(
                "pattern {} is not in normal form; one path has one spelling; write it without \
                 `.`, `..`, empty names and a last `/`",
                quoted(text)
            ),
        ),
    })
}

fn bad_path(at: Range<usize>, text: &str, refusal: Refusal) -> Fault {
    let (why, what) = match refusal {
        Refusal::NotAbsolute => ("it does not start with `/`", "write it from `/` on"),
        Refusal::AboveRoot => ("its `..` lead above the root", "write it without `..`"),
        Refusal::TooDeep => ("it is too long or too deep", "name a folder above it"),
        _ => (
            "a name in it ends in a dot or a space, or has a character that file systems read \
             differently",
            "rename the file",
        ),
    };
    fault(at, format!("path {} names no file; {why}; {what}", quoted(text)))
}

/// A table's entries as the file has them: the first mistake is reported first.
fn in_order<'a, 't>(table: &'a DeTable<'t>) -> Vec<(Range<usize>, &'a str, &'a Value<'t>)> {
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.span(), key.get_ref().as_ref(), value)).collect();
    entries.sort_by_key(|(at, ..)| at.start);
    entries
}

fn table<'a, 't>(value: &'a Value<'t>, name: &str) -> Result<&'a DeTable<'t>, Fault> {
    value.get_ref().as_table().ok_or_else(|| {
        wrong(value, &format!("`{name}`"), "a table", &format!("write it as `[{name}]`"))
    })
}

fn string<'a>(value: &'a Value<'_>, name: &str) -> Result<&'a str, Fault> {
    value.get_ref().as_str().ok_or_else(|| wrong(value, name, "a string", "put it in quotes"))
}

fn strings<'a>(value: &'a Value<'_>, name: &str) -> Result<Vec<(Range<usize>, &'a str)>, Fault> {
    let DeValue::Array(items) = value.get_ref() else {
        return Err(wrong(value, name, "an array of strings", "put it in `[` and `]`"));
    };
    items
        .iter()
        .map(|item| Ok((item.span(), string(item, &format!("an entry of {name}"))?)))
        .collect()
}

fn integer(value: &Value<'_>, name: &str) -> Result<i64, Fault> {
    value
        .get_ref()
        .as_integer()
        .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
        .ok_or_else(|| wrong(value, name, "an integer of 64 bits", "write a whole number"))
}

fn wrong(value: &Value<'_>, name: &str, expected: &str, what: &str) -> Fault {
    fault(value.span(), format!("{name} has the wrong type; it is {expected}; {what}"))
}

fn twice(at: Range<usize>, kind: &str, text: &str) -> Fault {
    fault(
        at,
        format!(
            "{kind} {} stands twice; once is enough and two may disagree; remove one",
            quoted(text)
        ),
    )
}

fn unknown(at: Range<usize>, kind: &str, text: &str, known: &[&str]) -> Fault {
    let what = match known.iter().min_by_key(|name| distance(text, name)) {
        Some(name) => format!("the nearest is `{name}`; use it or remove this"),
        None => "remove it".to_owned(),
    };
    fault(at, format!("{kind} {} is unknown; a grant has no such {kind}; {what}", quoted(text)))
}

/// Text of the file in a message, with no control character that acts.
fn quoted(text: &str) -> String {
    format!("`{}`", text.escape_debug())
}

/// How many characters are to be inserted, removed or replaced between the two.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let (mut diagonal, mut left) = (i, i + 1);
        let Some((first, rest)) = row.split_first_mut() else { return 0 };
        *first = left;
        for (cell, y) in rest.iter_mut().zip(b.chars()) {
            let least = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = core::mem::replace(cell, least);
            left = least;
        }
    }
    row.last().copied().unwrap_or(0)
}

fn summary(granted: u32, entries: &[Entry]) -> String {
    let list = |names: &mut dyn Iterator<Item = &str>| -> String {
        names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",")
    };
    let primitives = list(
        &mut REGISTRY
            .iter()
            .filter(|row| granted & (1 << row.primitive.id()) != 0)
            .map(|row| row.name),
    );
    let paths: Vec<String> = entries
        .iter()
        .map(|entry| {
            let rights = list(
                &mut RIGHTS
                    .iter()
                    .filter(|(_, right)| entry.rights.cover(*right))
                    .map(|(name, _)| *name),
            );
            // A normal path holds no control character and no backslash.
            let path = entry.text.replace('"', "\\\"");
            format!("{{\"path\":\"{path}\",\"rights\":[{rights}]}}")
        })
        .collect();
    format!("{{\"primitives\":[{primitives}],\"paths\":[{}]}}", paths.join(","))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const FULL: &str = r#"version = 1
primitives = ["fs_read", "console_write"]
deny = ["/data/private/**", "**/.env"]

[[paths]]
path = "/data/**"
rights = ["read", "list"]

[[paths]]
path = "/data/a\"b/*"
rights = ["write", "delete"]

[compartments]
payroll = "/data/payroll/**"
all-of_2 = "/**"

[budget]
calls = 7
seconds = 0x10
memory = 1_073_741_824
"#;

    fn check(grant: &Grant, path: &str, rights: Rights) -> Result<(), Refusal> {
        grant.scope.check(&NormalPath::parse(path.into()).unwrap(), rights)
    }

    #[test]
    fn i9_everything_that_the_file_names_and_nothing_else() {
        let grant = Grant::parse(FULL).unwrap();
        assert_eq!(grant.granted, 0b1001);
        assert_eq!((grant.calls, grant.seconds, grant.memory), (7, 16, 1 << 30));
        assert_eq!(check(&grant, "/data/x", Rights::READ.and(Rights::LIST)), Ok(()));
        assert_eq!(check(&grant, "/data/x", Rights::WRITE), Err(Refusal::OutOfScope));
        assert_eq!(check(&grant, "/data/a\"b/x", Rights::DELETE), Ok(()));
        assert_eq!(check(&grant, "/data/Private/x", Rights::READ), Err(Refusal::Denied));
        assert_eq!(check(&grant, "/data/x/.ENV", Rights::READ), Err(Refusal::Denied));
        let at = |path: &str| grant.scope.compartments(&NormalPath::parse(path.into()).unwrap());
        assert_eq!(at("/data/payroll/x").bits(), 0b11 << 8);
        assert_eq!(at("/data/x").bits(), 0b10 << 8);
        assert_eq!(grant.scope.named().bits(), 0b11 << 8);
    }

    #[test]
    fn the_summary_is_canonical() {
        assert_eq!(
            Grant::parse(FULL).unwrap().summary(),
            r#"{"primitives":["console_write","fs_read"],"paths":[{"path":"/data/**","rights":["list","read"]},{"path":"/data/a\"b/*","rights":["write","delete"]}]}"#
        );
        let empty = Grant::parse("version = 1\nprimitives = []").unwrap();
        assert_eq!(empty.summary(), r#"{"primitives":[],"paths":[]}"#);
    }

    #[test]
    fn only_the_budget_has_defaults() {
        let grant = Grant::parse("version = 1\nprimitives = []").unwrap();
        assert_eq!((grant.calls, grant.seconds, grant.memory), (100_000, 300, 268_435_456));
        assert_eq!(grant.granted, 0);
        assert_eq!(check(&grant, "/data", Rights::LIST), Err(Refusal::OutOfScope));
        assert_eq!(grant.scope.named(), Secrecy::NONE);
    }

    #[test]
    fn a_mistake_is_reported_with_its_place() {
        let head = "version = 1\nprimitives = []\n";
        let path = |path: &str, rest: &str| format!("[[paths]]\npath = {path}\n{rest}");
        let read = "rights = [\"read\"]\n";
        let table: Vec<(String, (usize, usize), &str)> = [
            ("", "version = 1\nprimitives = [\n\"a\" \"b\"]", (3, 5), "the file is not TOML; "),
            ("", "version = 1\nversion = 1", (2, 1), "duplicate key"),
            ("", "primitives = []", (1, 1), "`version` is missing"),
            ("", "version = 1", (1, 1), "`primitives` is missing"),
            ("", "version = 2", (1, 11), "version 2 is unknown"),
            ("", "version = \"1\"", (1, 11), "`version` has the wrong type"),
            ("", "primitives = [\n  \"fs_raed\"]", (2, 3), "nearest is `fs_read`"),
            ("", "primitives = [\"fs_read\", \"fs_read\"]", (1, 26), "`fs_read` stands twice"),
            ("", "primitives = [1]", (1, 15), "an entry of `primitives` has the wrong type"),
            ("", "primitives = \"fs_read\"", (1, 14), "`primitives` has the wrong type"),
            (
                head,
                "budgets = 1",
                (3, 1),
                "key `budgets` is unknown; a grant has no such key; the nearest is `budget`",
            ),
            (head, "\"é\\u001b\" = 1", (3, 1), "key `é\\u{1b}` is unknown"),
            (head, "[[hosts]]\nhost = \"a.example\"", (3, 3), "no network and no tools yet"),
            (head, "[[tools]]\ntool = \"a/b\"", (3, 3), "no network and no tools yet"),
            (head, "deny = [\"é\"]", (3, 9), "does not start with `/`"),
            (head, "deny = [\"/é\", 1]", (3, 15), "an entry of `deny` has the wrong type"),
            (head, "deny = [\"/a\", \"/A\"]", (3, 15), "deny entry `/A` stands twice"),
            (head, "deny = [\"**/.env\", \"**/.ENV\"]", (3, 20), "stands twice"),
            (head, "deny = [\"**/a/b\"]", (3, 9), "one whole name"),
            (head, "deny = [\"**/*\"]", (3, 9), "one whole name"),
            (head, "deny = [\"**/\"]", (3, 9), "names nothing"),
            (head, "deny = [\"**/..\"]", (3, 9), "above the root"),
            (head, "deny = [\"/*/a\"]", (3, 9), "`*` stands only in a last"),
            (head, "paths = 1", (3, 9), "`paths` has the wrong type"),
            (head, "paths = [1]", (3, 10), "an entry of `paths` has the wrong type"),
            (head, "[compartments]\nA = \"/a\"", (4, 1), "compartment `A` has no valid name"),
            (head, "[compartments]\n\"\" = \"/a\"", (4, 1), "has no valid name"),
            (head, "[compartments]\nfiles = \"/a\"", (4, 1), "`files` is built in"),
            (head, "[compartments]\na = 1", (4, 5), "a compartment has the wrong type"),
            (head, "[compartments]\na = \"/a/\"", (4, 5), "not in normal form"),
            (head, "compartments = 1", (3, 16), "`compartments` has the wrong type"),
            (head, "[budget]\ncall = 1", (4, 1), "nearest is `calls`"),
            (head, "[budget]\ncalls = 0", (4, 9), "`calls` is 0"),
            (head, "[budget]\nseconds = -1", (4, 11), "`seconds` is -1"),
            (head, "[budget]\nseconds = 1.5", (4, 11), "`seconds` has the wrong type"),
            (head, "[budget]\ncalls = 9223372036854775808", (4, 9), "64 bits"),
            (head, "[budget]\nmemory = 1073741825", (4, 10), "at most 1073741824 bytes"),
            (head, "zebra = 1\napple = 1", (3, 1), "`zebra`"),
        ]
        .into_iter()
        .map(|(head, rest, at, says)| (format!("{head}{rest}"), at, says))
        .chain(
            [
                (path("\"/**\"", read), (4, 8), "`/**` is over-broad"),
                (path("\"/a\"", ""), (3, 1), "`rights` is missing"),
                (format!("[[paths]]\n{read}"), (3, 1), "`path` is missing"),
                (path("\"/a\"", "rights = []"), (5, 10), "`rights` is empty"),
                (path("\"/a\"", "rights = [\"raed\"]"), (5, 11), "nearest is `read`"),
                (path("\"/a\"", "rights = [\"read\", \"read\"]"), (5, 19), "stands twice"),
                (path("\"/a\"", "right = 1"), (5, 1), "nearest is `rights`"),
                (path("\"/a/../b\"", read), (4, 8), "not in normal form"),
                (path("\"/a.\"", read), (4, 8), "ends in a dot"),
                (path("\"/a\"", read).repeat(2), (7, 8), "path `/a` stands twice"),
            ]
            .map(|(rest, at, says)| (format!("{head}{rest}"), at, says)),
        )
        .collect();
        for (text, (line, column), says) in table {
            let error = Grant::parse(&text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
            assert!(error.message.contains(says), "{text:?}: {error}");
            assert!(error.message.split("; ").count() >= 3, "what; why; what to do: {error}");
        }
        let error = Grant::parse("version = 2").unwrap_err().to_string();
        assert!(error.starts_with("grant line 1, column 11: version 2 is unknown; "), "{error}");
    }

    #[test]
    fn a_path_is_unreachable_only_where_deny_covers_all_of_it() {
        for (deny, path, unreachable) in [
            ("/data/**", "/data/**", true),
            ("/data/**", "/data/*", true),
            ("/data/**", "/data/a/**", true),
            ("/DATA/**", "/data", true),
            ("/**", "/data", true),
            ("/data/*", "/data/a", true),
            ("/data/*", "/data/*", true),
            ("/data", "/data", true),
            ("**/.env", "/data/.ENV/a", true),
            ("/data/a/**", "/data/**", false),
            ("/data/*", "/data/**", false),
            ("/data/*", "/data/a/**", false),
            ("/data/*", "/data", false),
            ("/data", "/data/**", false),
            ("/data/**", "/database", false),
            ("**/.env", "/data/**", false),
        ] {
            let text = format!(
                "version = 1\nprimitives = []\ndeny = [\"{deny}\"]\n[[paths]]\npath = \"{path}\"\n\
                 rights = [\"read\"]"
            );
            let got = Grant::parse(&text);
            assert_eq!(got.is_err(), unreachable, "{deny} {path}");
            if let Err(error) = got {
                assert_eq!((error.line, error.column), (5, 8), "{error}");
                assert!(error.message.contains("unreachable: deny covers it"), "{error}");
            }
        }
    }

    #[test]
    fn as_many_compartments_as_there_are_bits() {
        let text = |count: usize| {
            let names: Vec<String> = (0..count)
                .map(|number| {
                    format!(
                        "c{number} = \"/c{number}/**\"
"
                    )
                })
                .collect();
            format!(
                "version = 1
primitives = []
[compartments]
{}",
                names.concat()
            )
        };
        let named = Grant::parse(&text(56)).unwrap().scope.named();
        assert_eq!(named.bits(), u64::MAX << Secrecy::NAMED);
        let error = Grant::parse(&text(57)).unwrap_err();
        assert_eq!((error.line, error.column), (60, 1), "{error}");
        assert!(error.message.contains("at most 56"), "{error}");
    }
}
