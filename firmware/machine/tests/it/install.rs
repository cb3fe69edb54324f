//! Packages at the machine's own console: asked, agreed to, bounded, kept; as on the host.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use synapse_abi::code::Refusal;
use synapse_host::package::{
    Consent, Package, Pin, Secret, Store, Terminal, Vouched, ask as asked, follows,
};
use synapse_machine::{Machine, Model, Plan};
use tempfile::NamedTempFile;

use crate::disk::disk;
use crate::guests::saying;
use crate::{PATIENCE, ask, bundle, plan, power_off, up};

const MANIFEST: &str = r#"
manifest = 1
name = "reader"
version = "1.0.0"
publisher = "acme"
description = "Reads notes."
licence = "MIT"

[[capabilities]]
primitive = "fs_read"
reason = "To read your notes."

[[capabilities]]
primitive = "fs_write"
reason = "To write what came of it."

[[capabilities]]
path = "/data/**"
rights = ["list", "read", "write"]
reason = "There they are."
"#;
const MORE: &str = "[[capabilities]]\nprimitive = \"fs_delete\"\nreason = \"To tidy.\"\n";
const PAGE: &str = "Enter shows the next, no ends: ";
/// What the console is taken to be.
const SCREEN: (usize, usize) = (80, 24);

fn read(path: &str) -> String {
    format!(r#"{{"name":"fs_read","arguments":{{"path":"{path}","offset":0,"length":9}}}}"#)
}

/// A package that reads inside and outside of a folder, and writes.
fn package(manifest: &str, name: &str, key: Option<&Secret>) -> Package {
    let (inside, outside) = (read("/data/notes/a"), read("/data/b"));
    let write =
        r#"{"name":"fs_write","arguments":{"path":"/data/c","content":"c","mode":"create"}}"#;
    let component = saying(&[&inside, &outside, write], 1);
    let files: BTreeMap<String, Vec<u8>> =
        [(format!("{name}.wasm"), component), ("SOUL.md".to_owned(), b"Read.".to_vec())].into();
    let mut package = Package::new(manifest.replace("reader", name), files).unwrap();
    if let Some(key) = key {
        key.sign(&mut package);
    }
    package
}

/// A human who reads to the end and then says these lines.
struct Script<'a>(VecDeque<&'a str>, usize);

impl Terminal for Script<'_> {
    fn show(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn answer(&mut self, prompt: &str) -> Result<Option<String>, String> {
        if prompt.ends_with(PAGE) {
            self.1 += 1;
            return Ok(Some(String::new()));
        }
        Ok(self.0.pop_front().map(str::to_owned))
    }
}

/// Installs on the host, and says how many pages were turned.
fn on_host(store: &Store, package: &Package, answers: &[&str]) -> usize {
    let before = store.get(&package.manifest.name).unwrap();
    let vouched = store.vouched(package, Pin::Keep).unwrap();
    assert!(follows(package, before.as_ref(), false).unwrap());
    let warnings = store.look_alikes(package).unwrap();
    let mut question = Consent::new(package, before.as_ref(), vouched, &warnings);
    let mut human = Script(answers.iter().copied().collect(), 0);
    if asked(&mut question, SCREEN, &mut human).unwrap() {
        store.install(package, before.as_ref(), &question.grant().unwrap(), vouched, "").unwrap();
    }
    human.1
}

/// Says the same on the machine.
fn on_machine(machine: &mut Machine, name: &str, pages: usize, answers: &[&str]) -> String {
    machine.enter(&format!("install {name}")).unwrap();
    for _ in 0..pages {
        machine.expect(PAGE, PATIENCE).unwrap();
        machine.enter("").unwrap();
    }
    for answer in answers {
        machine.expect("\n> ", PATIENCE).unwrap();
        machine.enter(answer).unwrap();
    }
    machine.expect("synapse> ", PATIENCE).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn on(disk: &NamedTempFile, packages: &[(&str, &Package)]) -> Plan {
    let files: Vec<(String, Vec<u8>)> = packages
        .iter()
        .map(|(name, package)| (format!("packages/{name}.synapse"), package.write()))
        .collect();
    let mut all: Vec<(&str, &[u8])> = vec![("files/data/notes/a", b"a"), ("files/data/b", b"b")];
    all.extend(files.iter().map(|(path, bytes)| (&**path, &**bytes)));
    let disk = Some(disk.path().to_owned());
    Plan { model: Model::Microvm, memory: 16, disk, bundle: bundle(&all), ..plan() }
}

/// What a machine said, as a text.
fn plain(said: &str) -> String {
    said.replace('\r', "")
}

/// Holds what both boards say of an installed package against each other.
fn same(machine: &mut Machine, store: &Store, name: &str) {
    let installed = store.get(name).unwrap().unwrap();
    let shown = plain(&ask(machine, &format!("show {name}")));
    let screen = Consent::given(&installed).screen(SCREEN.0).join("\n");
    assert!(shown.contains(&screen), "{shown}\n---\n{screen}");
    let approval = installed.approval();
    assert!(shown.contains(&format!("grant: {}\n", approval.grant)), "{shown}\n{approval:?}");
}

fn store(dir: &Path) -> (Store, Secret) {
    let secret = Secret::create(&dir.join("key")).unwrap();
    (Store::open(dir).unwrap(), secret)
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn the_same_answers_come_to_the_same_approval_which_bounds_and_outlives_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let (store, key) = store(dir.path());
    let first = package(MANIFEST, "reader", Some(&key));
    let disk = disk(16 << 20);
    let mut machine = up(&on(&disk, &[("reader", &first)]));
    assert!(ask(&mut machine, "list").contains("to be installed: reader"));

    let answers =
        ["narrow 3 /data/notes/** list,read", "narrow 3 /else/** read", "off 1", "maybe", "agree"];
    let pages = on_host(&store, &first, &answers);
    // What is typed before the last line was shown agrees to nothing.
    machine.enter("install reader").unwrap();
    machine.press(b"agree\r").unwrap();
    for page in 1..=pages {
        machine.expect(PAGE, PATIENCE).unwrap();
        if page == 1 {
            machine.enter("agree").unwrap();
            machine.expect("not before you have seen it all", PATIENCE).unwrap();
            machine.expect(PAGE, PATIENCE).unwrap();
        }
        machine.press(if page == pages { &b"\ragree\r"[..] } else { b"\r" }).unwrap();
    }
    machine.expect("\n> ", PATIENCE).unwrap();
    assert!(ask(&mut machine, "no").contains("reader 1.0.0 is not installed; nothing was changed"));
    assert!(ask(&mut machine, "show reader").contains("no package `reader` is installed"));

    let said = plain(&on_machine(&mut machine, "reader", pages, &answers));
    assert!(said.contains(&format!("installed reader 1.0.0, {}", first.digest())), "{said}");
    same(&mut machine, &store, "reader");
    assert!(ask(&mut machine, "install reader").contains("reader 1.0.0 is installed already"));

    let bounded = |machine: &mut Machine| {
        let said = ask(machine, "run reader");
        for told in [
            "fs_read /data/notes/a  ok".to_owned(),
            format!("[{}]", Refusal::OutOfScope.number()),
            format!("[{}]", Refusal::NotGranted.number()),
        ] {
            assert!(said.contains(&told), "{told}\n{said}");
        }
    };
    bounded(&mut machine);
    let approval = store.get("reader").unwrap().unwrap().approval();
    let why = ask(&mut machine, "why 2");
    let bound =
        format!("bound by reader 1.0.0, {}, by the grant {}", approval.digest, approval.grant);
    assert!(why.contains(&bound), "{why}");
    power_off(machine);

    // On the disk, not in the bundle; and a version that wants more is asked for that alone.
    let second =
        package(&format!("{}{MORE}", MANIFEST.replace("1.0.0", "1.1.0")), "reader", Some(&key));
    let mut machine = up(&on(&disk, &[("reader", &second), ("old", &first)]));
    assert!(ask(&mut machine, "list").contains("reader 1.0.0  by acme, signed"));
    bounded(&mut machine);
    let pages = on_host(&store, &second, &["agree"]);
    let said = plain(&on_machine(&mut machine, "reader", pages, &["agree"]));
    assert!(said.contains("installed reader 1.1.0"), "{said}");
    same(&mut machine, &store, "reader");
    bounded(&mut machine);
    let told = follows(&first, store.get("reader").unwrap().as_ref(), false).unwrap_err();
    let said = plain(&ask(&mut machine, "install old"));
    assert!(said.contains(&told.to_string()), "{said}");

    // Taken back for every run from now on.
    store.revoke(&store.get("reader").unwrap().unwrap(), &["/data/notes/**".to_owned()]).unwrap();
    assert!(ask(&mut machine, "revoke reader /data/notes/**").contains("taken back"));
    same(&mut machine, &store, "reader");
    assert!(!ask(&mut machine, "run reader").contains("  ok"));
    assert!(ask(&mut machine, "remove reader").contains("removed `reader`"));
    assert!(ask(&mut machine, "run reader").contains("no agent is called `reader`"));
    power_off(machine);
}

#[test]
#[ignore = "boots QEMU: cargo xtask firmware --test"]
fn hostile_packages_are_told_and_refused_in_the_same_words() {
    let dir = tempfile::tempdir().unwrap();
    let (store, key) = store(dir.path());
    let other = Secret::create(&dir.path().join("other")).unwrap();
    let own = package(MANIFEST, "reader", Some(&key));
    let newer = MANIFEST.replace("1.0.0", "1.1.0");
    let stranger = package(&newer, "reader", Some(&other));
    let unsigned = package(&newer, "reader", None);
    let mut false_one = package(&newer, "reader", None);
    false_one.signed_by(key.sign_digest(&own.digest()));
    let alike = package(MANIFEST, "raeder", Some(&key));
    let packages = [
        ("reader", &own),
        ("stranger", &stranger),
        ("unsigned", &unsigned),
        ("false", &false_one),
        ("raeder", &alike),
    ];
    let disk = disk(16 << 20);
    let mut machine = up(&on(&disk, &packages));
    let pages = on_host(&store, &own, &["agree"]);
    assert!(on_machine(&mut machine, "reader", pages, &["agree"]).contains("installed reader"));
    for (name, package) in [("stranger", &stranger), ("unsigned", &unsigned), ("false", &false_one)]
    {
        let told = store.vouched(package, Pin::Keep).unwrap_err().to_string();
        let said = plain(&ask(&mut machine, &format!("install {name}")));
        assert!(said.contains(&told), "{name}: {said}\n{told}");
    }
    // The name is not refused: the human is told, and decides.
    let warnings = store.look_alikes(&alike).unwrap();
    machine.enter("install raeder").unwrap();
    let said = plain(&machine.expect(PAGE, PATIENCE).unwrap());
    assert!(said.contains(&format!("! {}", warnings[0])), "{said}\n{warnings:?}");
    assert!(ask(&mut machine, "no").contains("raeder 1.0.0 is not installed"));
    assert_eq!(store.vouched(&own, Pin::Keep).unwrap(), Vouched::Known(key.key()));
    power_off(machine);
}
