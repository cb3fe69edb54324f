//! What decides, measured: small enough to be read, and nothing hidden in it
//!
//! Lines of code are lines with a token on them, in rustfmt's layout: comments,
//! blank lines and test modules do not count, tables do. The limit of a file is
//! by the same count.
//!
//! # Invariants
//! - What a reviewer would not see in the count (code compiled only sometimes,
//!   a build script, a feature, a file brought in) is a breach.
//!
//! # Not here
//! Whether what decides is right: that is for its tests, and for who reads it.

mod source;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::step::{Failure, cargo, done, metadata, output, root, text};
use source::{Expect, Source};

/// Prints the measure, and fails for every breach of it at once.
pub(crate) fn run(as_json: bool) -> Result<(), Failure> {
    for name in DECIDES {
        done(&mut cargo(&format!("fmt --check --package {name}"))?)?;
    }
    let report = Report::new()?;
    if as_json {
        println!("{}", report.json());
    } else {
        report.print();
    }
    let breaches = report.breaches(&metadata()?)?;
    if breaches.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nwhat decides has to stay small and plain: change it back",
        breaches.join("\n")
    ))
}

struct Report {
    decides: Vec<Crate>,
    /// Name and version of what they need from the registry.
    needs: BTreeMap<String, String>,
    executes: Vec<Crate>,
    /// How many packages of the registry a board is made of besides.
    others: usize,
}

/// A crate of ours.
struct Crate {
    name: String,
    /// Each file by its path in the project.
    files: BTreeMap<String, Source>,
}

impl Report {
    fn new() -> Result<Self, Failure> {
        let mut decides = Tree::default();
        for name in DECIDES {
            decides.grow(name)?;
        }
        let mut board = Tree::default();
        board.grow(BOARD)?;
        board.own.retain(|name, _| !decides.own.contains_key(name));
        let crates = |tree: &BTreeMap<String, PathBuf>| {
            tree.iter().map(|(name, folder)| Crate::read(name, folder)).collect::<Result<_, _>>()
        };
        Ok(Self {
            decides: crates(&decides.own)?,
            needs: decides.foreign,
            executes: crates(&board.own)?,
            others: board.foreign.len(),
        })
    }

    fn print(&self) {
        let (decides, executes) = (lines(&self.decides), lines(&self.executes));
        println!("What decides: {decides} lines of code; the goal is {GOAL}, and {LINES} at most");
        for (path, source) in self.decides.iter().flat_map(|own| &own.files) {
            println!("{:>6}  {path}", source.lines.len());
        }
        println!("\nWhat it needs from the registry:");
        for (name, version) in &self.needs {
            println!(
                "  {:<30}  {}",
                format!("{name} {version}"),
                why(name).unwrap_or("not allowed")
            );
        }
        println!("\nLints that it is expected to break:");
        for (path, source) in self.decides.iter().flat_map(|own| &own.files) {
            for expect in &source.expects {
                println!("  {path}:{}  {}: {}", expect.line, expect.lints, expect.reason);
            }
        }
        println!("\nTrusted to execute and to label: {executes} lines of code");
        for own in &self.executes {
            println!("{:>6}  {}", own.lines(), own.name);
        }
        println!(
            "  and {} packages of the registry, the WebAssembly engine among them",
            self.others
        );
        println!("\nUnsafe code among that:");
        for (path, expect) in self.unchecked() {
            println!("  {path}:{}  {}", expect.line, expect.reason);
        }
    }

    /// Where code that executes is expected to go past what Rust checks.
    fn unchecked(&self) -> impl Iterator<Item = (&String, &Expect)> {
        let files = self.executes.iter().flat_map(|own| &own.files);
        files
            .flat_map(|(path, source)| source.expects.iter().map(move |expect| (path, expect)))
            .filter(|(_, expect)| expect.lints.contains("unsafe_code"))
    }

    fn json(&self) -> Value {
        let files = self.decides.iter().flat_map(|own| &own.files);
        json!({
            "decides": {
                "goal": GOAL,
                "limit": LINES,
                "lines": lines(&self.decides),
                "file_limit": FILE,
                "files": files.clone().map(|(path, source)| {
                    json!({"file": path, "lines": source.lines.len()})
                }).collect::<Vec<_>>(),
                "dependencies": self.needs.iter().map(|(name, version)| {
                    json!({"name": name, "version": version, "why": why(name)})
                }).collect::<Vec<_>>(),
                "expects": files.flat_map(|(path, source)| {
                    source.expects.iter().map(move |expect| json!({
                        "file": path,
                        "line": expect.line,
                        "lints": expect.lints,
                        "reason": expect.reason,
                    }))
                }).collect::<Vec<_>>(),
            },
            "executes": {
                "lines": lines(&self.executes),
                "crates": self.executes.iter().map(|own| {
                    json!({"name": own.name, "lines": own.lines()})
                }).collect::<Vec<_>>(),
                "dependencies": self.others,
                "unsafe": self.unchecked().map(|(path, expect)| json!({
                    "file": path,
                    "line": expect.line,
                    "reason": expect.reason,
                })).collect::<Vec<_>>(),
            },
        })
    }

    fn breaches(&self, metadata: &Value) -> Result<Vec<String>, Failure> {
        let mut breaches = Vec::new();
        let total = lines(&self.decides);
        if total > LINES {
            breaches.push(format!("what decides has {total} lines of code, more than {LINES}"));
        }
        for (path, source) in self.decides.iter().flat_map(|own| &own.files) {
            breaches.extend(in_file(path, source));
        }
        for name in self.needs.keys().filter(|name| why(name).is_none()) {
            breaches.push(format!("what decides needs `{name}`, which nobody allowed"));
        }
        for (name, _) in ALLOWED.iter().filter(|(name, _)| !self.needs.contains_key(*name)) {
            breaches.push(format!("`{name}` is allowed and not needed: strike it from the list"));
        }
        let files = || self.executes.iter().flat_map(|own| &own.files);
        breaches.extend(files().filter_map(|(path, source)| crossings(path, source)));
        for (path, ..) in CROSSINGS.iter().filter(|(path, ..)| !files().any(|file| file.0 == path))
        {
            breaches.push(format!("{path} is gone: strike it from the list of crossings"));
        }
        for own in &self.decides {
            breaches.extend(in_manifest(&own.name, metadata)?);
        }
        Ok(breaches)
    }
}

/// What is wrong with one file of what decides.
fn in_file(path: &str, source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    let count = source.lines.len();
    if count > FILE {
        breaches.push(format!("{path} has {count} lines of code, more than {FILE}"));
    }
    for (line, why) in &source.oddities {
        breaches.push(format!("{path}:{line} {why}"));
    }
    for expect in source.expects.iter().filter(|expect| expect.reason.is_empty()) {
        breaches.push(format!("{path}:{} says no reason for `{}`", expect.line, expect.lints));
    }
    breaches
}

/// What is wrong with where bytes of the door's become a guest's: a reply is made
/// once, when the mark has absorbed it, and unpacked once by each engine.
fn crossings(path: &str, source: &Source) -> Option<String> {
    let (found, known) = (&source.crossings, CROSSINGS.iter().find(|(at, ..)| *at == path));
    let known = known.map_or(0, |(_, times, _)| *times);
    (found.len() != known).then(|| {
        format!(
            "{path} makes or unpacks replies for guests at lines {found:?}: it may {known} times"
        )
    })
}

/// What is wrong with how a crate of what decides is built.
fn in_manifest(name: &str, metadata: &Value) -> Result<Vec<String>, Failure> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    let package = packages.into_iter().flatten().find(|package| text(package, "name") == name);
    let package = package.ok_or_else(|| format!("cargo does not describe `{name}`"))?;
    let mut breaches = Vec::new();
    if package.get("features").and_then(Value::as_object).is_none_or(|all| !all.is_empty()) {
        breaches.push(format!("{name} has features: it must be one thing in every build"));
    }
    let targets = package.get("targets").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = targets.filter_map(|target| target.get("kind")?.as_array()).flatten();
    if kinds.any(|kind| kind == "custom-build") {
        breaches.push(format!("{name} has a build script, whose output is not counted"));
    }
    let own = manifest(Path::new(text(package, "manifest_path")))?;
    let shared = manifest(&root().join("Cargo.toml"))?;
    if !forbids_unsafe(&own, &shared) {
        breaches.push(format!("{name} does not forbid unsafe code by the workspace's lints"));
    }
    Ok(breaches)
}

fn manifest(path: &Path) -> Result<toml::Table, Failure> {
    let text = fs::read_to_string(path).map_err(|why| unread(path, &why))?;
    toml::from_str(&text).map_err(|why| unread(path, &why))
}

fn forbids_unsafe(own: &toml::Table, shared: &toml::Table) -> bool {
    let inherits = own.get("lints").and_then(|lints| lints.get("workspace"));
    let lints = shared.get("workspace").and_then(|workspace| workspace.get("lints"));
    let level = lints.and_then(|lints| lints.get("rust")?.get("unsafe_code")?.as_str());
    inherits.and_then(toml::Value::as_bool) == Some(true) && level == Some("forbid")
}

impl Crate {
    fn read(name: &str, folder: &Path) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        let mut folders = vec![folder.join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(|why| unread(&folder, &why))? {
                let path = entry.map_err(|why| unread(&folder, &why))?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).map_err(|why| unread(&path, &why))?;
                    let source = source::read(&text).map_err(|why| unread(&path, &why))?;
                    let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
                    files.insert(shown, source);
                }
            }
        }
        Ok(Self { name: name.to_owned(), files })
    }

    fn lines(&self) -> usize {
        self.files.values().map(|source| source.lines.len()).sum()
    }
}

fn unread(path: &Path, why: &dyn core::fmt::Display) -> Failure {
    format!("`{}` could not be read: {why}\ncorrect it", path.display())
}

fn lines(crates: &[Crate]) -> usize {
    crates.iter().map(Crate::lines).sum()
}

/// What a crate is built of, itself included.
///
/// Asked of `cargo tree`, which sees a crate alone; `cargo metadata` adds what
/// other members want of the same packages.
#[derive(Default)]
struct Tree {
    own: BTreeMap<String, PathBuf>,
    foreign: BTreeMap<String, String>,
}

impl Tree {
    fn grow(&mut self, name: &str) -> Result<(), Failure> {
        let words = "tree --locked --target all --edges normal,build --prefix none --format {p}";
        let words = format!("{words} --package {name}");
        for line in output(&mut cargo(&words)?)?.lines() {
            self.add(line);
        }
        Ok(())
    }

    /// `name v1.0.0`, then for a crate of ours its folder in parentheses; `(*)`
    /// where it was listed before.
    fn add(&mut self, line: &str) {
        let mut words = line.trim_end_matches(" (*)").splitn(3, ' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { return };
        let folder = words.next().and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'));
        if let Some(folder) = folder.map(PathBuf::from).filter(|folder| folder.is_absolute()) {
            self.own.insert(name.to_owned(), folder);
        } else {
            let version = version.trim_start_matches('v').to_owned();
            self.foreign.insert(name.to_owned(), version);
        }
    }
}

/// Why a dependency is allowed, if it is.
fn why(name: &str) -> Option<&'static str> {
    ALLOWED.iter().find(|(allowed, _)| *allowed == name).map(|(_, why)| *why)
}

/// The crates that decide.
const DECIDES: [&str; 2] = ["synapse-abi", "synapse-boundary"];
/// The crate that everything a board runs hangs under.
const BOARD: &str = "synapse";
/// Lines of code that are to decide at most.
const GOAL: usize = 3000;
/// Lines of code that decide, together and in one file. The first may only fall, until
/// it is the goal, unless a rule is added.
const LINES: usize = 3322;
const FILE: usize = 400;

/// What the crates that decide may need, on any target, and what for.
const ALLOWED: [(&str, &str); 4] = [
    ("foldhash", "hashbrown: its hash function"),
    ("hashbrown", "the tables of a scope; core has none"),
    ("tinyvec", "unicode-normalization: a short buffer"),
    ("unicode-normalization", "names that one file system takes for another"),
];

/// Files of what executes that say `lower` or `Reply::new`, how often, and why.
const CROSSINGS: [(&str, usize, &str); 11] = [
    ("runtime/kernel/src/engine.rs", 1, "where unpacking is defined"),
    ("runtime/kernel/src/task.rs", 1, "makes a reply, framed with the mark"),
    ("runtime/host/src/engine/turn.rs", 1, "unpacks it into a guest that is compiled"),
    ("runtime/interpreter/src/turn.rs", 1, "unpacks it into a guest that is interpreted"),
    ("runtime/host/src/net/http.rs", 1, "the lower bound of a body's length"),
    ("runtime/host/src/net/tests/world.rs", 1, "a test, which is its own guest"),
    ("primitives/src/rest/index.rs", 2, "lowers what is known of a file"),
    ("primitives/src/rest/kept.rs", 1, "the same"),
    ("bench/src/disk.rs", 1, "a row, which is its own guest"),
    ("bench/src/net.rs", 1, "the same"),
    ("bench/src/guest.rs", 1, "a door that does nothing"),
];

#[cfg(test)]
mod tests {
    use super::{CROSSINGS, FILE, Tree, crossings, forbids_unsafe, in_file, in_manifest, source};
    use serde_json::json;
    use std::fs;

    #[test]
    fn a_tree_tells_ours_from_the_registry_s() {
        let mut tree = Tree::default();
        for line in [
            "a v0.1.0 (/p/a b)", "a v0.1.0 (/p/a b) (*)", "", "sha2 v0.11.1",
            "hybrid-array v0.4.15 (*)", "m v1.0.0 (proc-macro)",
        ] {
            tree.add(line);
        }
        assert_eq!(tree.own.into_iter().collect::<Vec<_>>(), [("a".into(), "/p/a b".into())]);
        let names: Vec<_> = tree.foreign.keys().collect();
        assert_eq!(names, ["hybrid-array", "m", "sha2"]);
        assert_eq!(tree.foreign["sha2"], "0.11.1");
    }

    #[test]
    fn breaches_of_a_file_are_told_with_their_line() {
        let source = source::read("\n#[expect(a)]\nfn f() {\n cfg!(b);\n}").unwrap();
        assert_eq!(
            in_file("x.rs", &source),
            ["x.rs:4 differs from build to build", "x.rs:2 says no reason for `a`"]
        );
        let full = source::read(&"a;\n".repeat(FILE)).unwrap();
        assert!(in_file("x.rs", &full).is_empty());
        let long = source::read(&"a;\n".repeat(FILE + 1)).unwrap();
        assert_eq!(in_file("x.rs", &long), ["x.rs has 401 lines of code, more than 400"]);
    }

    #[test]
    fn i4_a_second_place_where_a_reply_reaches_a_guest_is_told() {
        let (engine, ..) = CROSSINGS[2];
        let once = source::read("fn f() {\n g(reply.map(engine::Reply::lower))\n}").unwrap();
        assert_eq!(crossings(engine, &once), None);
        assert!(crossings("x.rs", &once).unwrap().starts_with("x.rs makes or unpacks"));
        let twice = source::read("reply.lower();\nReply::new(bytes);").unwrap();
        assert!(crossings(engine, &twice).unwrap().contains("[1, 2]: it may 1 times"));
        let never = source::read("Reply { bytes }; Reply::default()").unwrap();
        assert_eq!((crossings("x.rs", &never), crossings(engine, &never).is_some()), (None, true));
    }

    #[test]
    fn breaches_of_a_manifest_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Cargo.toml");
        fs::write(&path, "[lints]\nworkspace = true").unwrap();
        let package = |features, kind| {
            json!({"packages": [{"name": "a", "manifest_path": path, "features": features,
                "targets": [{"kind": ["lib"]}, {"kind": [kind]}]}]})
        };
        let told = |metadata| in_manifest("a", &metadata).unwrap();
        assert!(told(package(json!({}), "test")).is_empty());
        assert_eq!(
            told(package(json!({"fast": []}), "custom-build")),
            [
                "a has features: it must be one thing in every build",
                "a has a build script, whose output is not counted",
            ]
        );
        fs::write(&path, "").unwrap();
        let told = told(package(json!({}), "test"));
        assert_eq!(told, ["a does not forbid unsafe code by the workspace's lints"]);
    }

    #[test]
    fn unsafe_code_is_forbidden_by_both_manifests_or_not_at_all() {
        let table = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
        let shared =
            |level: &str| table(&format!("[workspace.lints.rust]\nunsafe_code = {level:?}"));
        let own = table("[lints]\nworkspace = true");
        assert!(forbids_unsafe(&own, &shared("forbid")));
        assert!(!forbids_unsafe(&own, &shared("deny")));
        assert!(!forbids_unsafe(&own, &table("")));
        assert!(!forbids_unsafe(&table(""), &shared("forbid")));
    }
}
