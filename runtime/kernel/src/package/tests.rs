//! Hostile packages, each refused for its own reason.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use ed25519_dalek::{Signer as _, SigningKey};

use super::{
    Consent, Digest, Installed, Key, Package, Pin, Signature, Terminal, Vouched, ask, signed, tar,
    vouched,
};
use crate::grant::Authority;
use crate::render::is_hidden;

/// A package that is as it should be; tests of the host have it too.
const MANIFEST: &str = include_str!("../../tests/reader/manifest.toml");
const COMPONENT: &str = include_str!("../../tests/reader/component.wat");

fn component(import: &str) -> Vec<u8> {
    wat::parse_str(COMPONENT.replace(";; import", import)).unwrap()
}

fn files(more: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    let own = [("reader.wasm".to_owned(), component("")), ("SOUL.md".to_owned(), b"Read.".into())];
    own.into_iter()
        .chain(more.iter().map(|(name, bytes)| ((*name).into(), (*bytes).into())))
        .collect()
}

fn package(manifest: &str) -> Package {
    Package::new(manifest.to_owned(), files(&[])).unwrap()
}

fn sign(digest: &Digest) -> Signature {
    let secret = SigningKey::from_bytes(&[7; 32]);
    let key = Key::new(secret.verifying_key().to_bytes());
    Signature::new(key, secret.sign(&signed(digest)).to_bytes())
}

/// The package's file with another text in the place of one, and all digests set right.
fn forged(package: &Package, from: &str, to: &str) -> Vec<u8> {
    let bytes = package.write();
    let mut files: BTreeMap<String, Vec<u8>> = tar::read(&bytes)
        .unwrap()
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes.to_vec()))
        .collect();
    let image = package.digest().digits();
    let old = files.remove(&format!("blobs/sha256/{image}")).unwrap();
    let new = String::from_utf8(old.clone()).unwrap().replace(from, to);
    assert_ne!(new.as_bytes(), old, "{from}");
    let digits = Digest::of(new.as_bytes()).digits();
    let index = String::from_utf8(files["index.json"].clone()).unwrap();
    let index = index
        .replace(&image, &digits)
        .replace(&format!("\"size\":{}", old.len()), &format!("\"size\":{}", new.len()));
    files.insert("index.json".into(), index.into());
    files.insert(format!("blobs/sha256/{digits}"), new.into());
    tar::write(files.iter().map(|(name, bytes)| (&**name, &**bytes)))
}

fn why(bytes: &[u8]) -> String {
    Package::read(bytes).unwrap_err().to_string()
}

#[test]
fn the_same_parts_are_the_same_bytes_and_are_read_back() {
    let (one, two) = (package(MANIFEST), package(MANIFEST));
    let bytes = one.write();
    assert_eq!(bytes, two.write());
    let read = Package::read(&bytes).unwrap();
    assert_eq!((read.digest(), read.write()), (one.digest(), bytes));
    assert_eq!(read.soul(), Some("Read."));
    assert_eq!(read.file_name(), "reader-1.0.0.synapse");
}

#[test]
fn no_byte_of_a_signed_package_can_change() {
    let mut signed = package(MANIFEST);
    signed.signed_by(sign(&signed.digest()));
    let bytes = signed.write();
    let key = Package::read(&bytes).unwrap().signer().unwrap();
    assert!(key.is_some());
    // The signature is no part of what it signs.
    assert_eq!(signed.digest(), package(MANIFEST).digest());
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        let passes = Package::read(&other).is_ok_and(|read| read.signer().is_ok());
        assert!(!passes, "byte {at}");
    }
    for length in (0..bytes.len()).step_by(97) {
        assert!(Package::read(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_signature_over_anything_but_the_whole_does_not_hold() {
    let mut only = package(MANIFEST);
    only.signed_by(sign(&Digest::of(MANIFEST.as_bytes())));
    // It is whole, and signed by nobody.
    let read = Package::read(&only.write()).unwrap();
    assert!(read.signer().unwrap_err().to_string().contains("does not hold"));
    // The signature of a package, put on one with another component.
    let mut signed = package(MANIFEST);
    signed.signed_by(sign(&signed.digest()));
    let mut files = files(&[]);
    files.insert("reader.wasm".into(), component("(core module)"));
    let mut swapped = Package::new(MANIFEST.into(), files).unwrap();
    swapped.signature = signed.signature;
    let read = Package::read(&swapped.write()).unwrap();
    assert!(read.signer().unwrap_err().to_string().contains("signed other bytes"));
}

#[test]
fn bytes_that_nobody_accounts_for_are_refused() {
    let package = package(MANIFEST);
    let bytes = package.write();
    let mut files: BTreeMap<&str, &[u8]> = tar::read(&bytes).unwrap().into_iter().collect();
    let name = format!("blobs/sha256/{}", Digest::of(b"more").digits());
    files.insert(&name, b"more");
    let more = tar::write(files.clone());
    assert!(why(&more).contains("signed by nobody"), "{}", why(&more));
    // Another component under the digest of the first.
    files.remove(&*name);
    let swapped = component("(core module)");
    let own = format!("blobs/sha256/{}", Digest::of(package.component()).digits());
    files.insert(&own, &swapped);
    assert!(why(&tar::write(files)).contains("other bytes than their digest"));
    for (from, to, told) in [
        (
            "\"org.opencontainers.image.version\":\"1.0.0\"",
            "\"org.opencontainers.image.version\":\"2.0.0\"",
            "nobody",
        ),
        (
            "\"org.opencontainers.image.title\":\"reader\"",
            "\"org.opencontainers.image.title\":\"writer\"",
            "nobody",
        ),
        ("\"size\":5", "\"size\":6", "nobody"),
        ("SOUL.md", "reader.wasm", "one name"),
        ("SOUL.md", "../SOUL.md", "leads out"),
        ("SOUL.md", "docs/../SOUL.md", "leads out"),
        ("SOUL.md", "READER.WASM", "its component is"),
        ("reader.wasm", "writer.wasm", "its component is"),
        ("application/wasm", "text/plain", "nobody"),
        ("{\"schemaVersion\":2", "{ \"schemaVersion\":2", "nobody"),
        ("{\"schemaVersion\":2", "{\"more\":1,\"schemaVersion\":2", "nobody"),
        ("{\"schemaVersion\":2", "{\"more\":null,\"schemaVersion\":2", "not what Synapse writes"),
        ("\"size\":5", "\"size\":5,\"size\":5", "not what Synapse writes"),
    ] {
        let told_now = why(&forged(&package, from, to));
        assert!(told_now.contains(told), "{to}: {told_now}");
    }
}

#[test]
fn what_is_no_package_is_not_made_either() {
    let made = |more: &[(&str, &[u8])]| {
        Package::new(MANIFEST.to_owned(), files(more)).unwrap_err().to_string()
    };
    let many: Vec<String> = (0..64).map(|n| format!("docs/{n}.md")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (&**name, &b"x"[..])).collect();
    assert!(made(&many).contains("more than 64 files"));
    let (much, soul) = (vec![b'x'; (1 << 20) + 1], vec![b'x'; (64 << 10) + 1]);
    for (name, bytes, told) in [
        ("docs/../../x", &b""[..], "leads out"),
        ("soul.md", b"", "two ways"),
        ("docs/a\u{202e}b.md", b"", "u{202e}"),
        ("other.wasm", b"", "its component is"),
        ("manifest.toml", b"", "leads out"),
        ("README.md", &much, "1 MiB"),
        ("README.md", b"\xff", "no text"),
        ("SOUL.md", &soul, "64 KiB"),
    ] {
        assert!(made(&[(name, bytes)]).contains(told), "{name}: {}", made(&[(name, bytes)]));
    }
    let second = component("(import \"wasi\" (func))");
    let told = made(&[("reader.wasm", &second)]);
    assert!(told.contains("wasi"), "{told}");
    let mut without = files(&[]);
    without.remove("reader.wasm");
    let told = Package::new(MANIFEST.into(), without).unwrap_err().to_string();
    assert!(told.contains("synapse build"), "{told}");
}

/// A manifest with a text in every place that can have one.
const WHOLE: &str = r#"manifest = 1
name = "reader"
version = "1.0.0"
publisher = "acme"
description = "Reads"
licence = "MIT"
deny = ["**/.env"]
deny_hosts = ["bad.example"]
compartments = { pay = ["/data/pay/**"] }
[[capabilities]]
primitive = "net_http_post"
reason = "To post."
[[capabilities]]
path = "/data/**"
rights = ["read"]
reason = "Notes."
[[capabilities]]
host = "api.example"
ports = [443, "8000-8010"]
methods = ["POST"]
paths = ["/v1/"]
clear = ["prompt"]
secrets = ["key"]
reason = "The service."
[[capabilities]]
tool = "mail/send"
effect = "commit"
limits = { to = ["*@acme.example"] }
clear = ["pay"]
reason = "Letters."
[[connectors]]
name = "mail"
reason = "Your mail."
[[models]]
name = "instruct"
reason = "To write."
"#;

#[test]
fn no_field_brings_what_acts_or_hides_onto_the_screen() {
    let shown = |manifest: String| {
        let package = Package::new(manifest, files(&[])).ok()?;
        Some(Consent::new(&package, None, Vouched::Nobody, &[]).screen(80))
    };
    let plain = Consent::new(&package(WHOLE), None, Vouched::Nobody, &[]).screen(80);
    assert!(plain.iter().any(|line| line.contains("mail/send")), "{plain:?}");
    let places = WHOLE.match_indices('"').map(|(at, _)| at + 1).step_by(2);
    let mut refused = 0;
    for at in places.clone() {
        for hidden in ["\\u001b[2J", "\\u009b2J", "\\u202e", "\\u2066", "\\u200b", "\\U000e0041"] {
            let (before, after) = WHOLE.split_at(at);
            match shown(format!("{before}{hidden}{after}")) {
                None => refused += 1,
                Some(lines) => {
                    let mut all = lines.iter().flat_map(|line| line.chars());
                    assert!(!all.any(|c| is_hidden(c) || c.is_control()), "{before}: {lines:?}");
                }
            }
        }
    }
    assert!(places.count() > 25 && refused > 100, "{refused}");
}

#[test]
fn the_grants_in_this_repository_are_those_of_their_manifests() {
    let librarian = (
        include_str!("../../../../packages/librarian/manifest.toml"),
        include_str!("../../../../packages/librarian/grant.toml"),
    );
    let tidy = (
        include_str!("../../../../packages/tidy/manifest.toml"),
        include_str!("../../../../packages/tidy/grant.toml"),
    );
    let courier = (
        include_str!("../../../../packages/courier/manifest.toml"),
        include_str!("../../../../packages/courier/grant.toml"),
    );
    let steward = (
        include_str!("../../../../packages/steward/manifest.toml"),
        include_str!("../../../../packages/steward/grant.toml"),
    );
    let template = (
        include_str!("../../../cli/template/manifest.toml"),
        include_str!("../../../cli/template/grant.toml"),
    );
    for (manifest, grant) in [librarian, tidy, courier, steward, template] {
        let manifest = super::Manifest::parse(&manifest.replace("{name}", "lister")).unwrap();
        assert_eq!(manifest.request, Authority::read(grant).unwrap());
    }
}

fn installed(package: &Package) -> Installed {
    let grant = package.manifest.request.clone();
    let vouched = vouched(package, None, Pin::Keep).unwrap();
    Installed::new(package.clone(), grant, vouched, "a \"file\"\u{7f}\n", 7)
}

#[test]
fn i9_a_lock_file_is_for_one_file_and_for_no_more_than_it_asks_for() {
    let mut own = package(MANIFEST);
    own.signed_by(sign(&own.digest()));
    let (new, bytes) = (installed(&own), own.write());
    let lock = new.lock(&Digest::of(&bytes));
    let read = Installed::read("reader", &lock, &bytes).unwrap();
    assert_eq!((read.approval(), &read.source), (new.approval(), &new.source));
    assert_eq!(read.lock(&Digest::of(&bytes)), lock);
    let why = |name: &str, lock: &str, bytes: &[u8]| {
        Installed::read(name, lock.as_bytes(), bytes).unwrap_err().to_string()
    };
    let lock = String::from_utf8(lock).unwrap();
    let unsigned = package(MANIFEST).write();
    assert!(why("other", &lock, &bytes).contains("another's"));
    assert!(why("reader", &lock, &unsigned).contains("its bytes are others"));
    let moved = lock.replace(&Digest::of(&bytes).digits(), &Digest::of(&unsigned).digits());
    assert!(why("reader", &moved, &unsigned).contains("of another package"));
    for (from, to, told) in [
        ("[\\\"read\\\"]", "[\\\"read\\\", \\\"delete\\\"]", "more than the package asks for"),
        ("\"version\": 1", "\"version\": 2", "does not know"),
        ("\"approved\": 7", "\"approved\": null", "damaged"),
    ] {
        let other = lock.replace(from, to);
        assert_ne!(other, lock, "{from}");
        assert!(
            why("reader", &other, &bytes).contains(told),
            "{to}: {}",
            why("reader", &other, &bytes)
        );
    }
    let less = new.without(&["fs_read"], 9).unwrap();
    assert!(new.grant.covers(&less.grant) && !less.grant.covers(&new.grant));
    let told = less.without(&["fs_read"], 9).unwrap_err().to_string();
    assert!(told.contains("name one of /data/**"), "{told}");
}

/// Answers that wait, and what was shown.
struct Script<'a>(Vec<&'a str>, String);

impl Terminal for Script<'_> {
    fn show(&mut self, text: &str) -> Result<(), String> {
        self.1.push_str(text);
        Ok(())
    }

    fn answer(&mut self, _: &str) -> Result<Option<String>, String> {
        Ok((!self.0.is_empty()).then(|| self.0.remove(0).to_owned()))
    }
}

#[test]
fn i9_no_answer_agrees_before_the_last_line_was_shown() {
    let package = package(MANIFEST);
    let asked = |answers: &[&str]| {
        let mut question = Consent::new(&package, None, Vouched::Nobody, &[]);
        let mut script = Script(answers.to_vec(), String::new());
        let agreed = ask(&mut question, (80, 12), &mut script).unwrap();
        (agreed, script.0.len(), script.1, question)
    };
    let lines = asked(&[]).3.screen(80);
    let pages = lines.len().div_ceil(10);
    assert!(pages > 2, "{lines:?}");
    let turned = vec![""; pages - 1];
    for at in 0..pages - 1 {
        let mut answers = turned.clone();
        answers.insert(at, "agree");
        let (agreed, left, shown, _) = asked(&answers);
        assert!(!agreed && left == 0 && shown.contains("not before you have seen it all"), "{at}");
    }
    let (agreed, _, shown, _) = asked(&[turned.clone(), vec!["agree"]].concat());
    assert!(agreed && lines.iter().all(|line| shown.contains(line)));
    assert!(!asked(&["no"]).0 && !asked(&[turned.clone(), vec!["yes", "no"]].concat()).0);
    let narrowed = [turned, vec!["narrow 2 /data/a read", "narrow 2 /else read", "agree"]].concat();
    let (agreed, _, shown, question) = asked(&narrowed);
    assert!(agreed && shown.contains("nothing is changed: that is not less"), "{shown}");
    assert!(question.agreed().text().contains("path = \"/data/a\""));
}
