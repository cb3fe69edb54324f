//! What a store of packages takes, and what it tells of them.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Package, Pin, Secret, Store, Vouched};

pub(super) const MANIFEST: &str = include_str!("../../../kernel/tests/reader/manifest.toml");
const COMPONENT: &str = include_str!("../../../kernel/tests/reader/component.wat");

fn files() -> BTreeMap<String, Vec<u8>> {
    let component = wat::parse_str(COMPONENT).unwrap();
    [("reader.wasm".to_owned(), component), ("SOUL.md".to_owned(), b"Read.".into())].into()
}

pub(super) fn package(manifest: &str) -> Package {
    Package::new(manifest.to_owned(), files()).unwrap()
}

pub(super) fn secret(dir: &Path, name: &str) -> Secret {
    Secret::create(&dir.join(name)).unwrap()
}

#[test]
fn a_publishers_key_is_the_first_one_until_a_person_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (first, other) = (secret(dir.path(), "first"), secret(dir.path(), "other"));
    let signed = |secret: &Secret, version: &str| {
        let mut signed = package(&MANIFEST.replace("1.0.0", version));
        secret.sign(&mut signed);
        signed
    };
    let one = signed(&first, "1.0.0");
    let vouched = store.vouched(&one, Pin::Keep).unwrap();
    assert_eq!(vouched, Vouched::First(first.key()));
    store.install(&one, None, &one.manifest.request, vouched, "a file").unwrap();
    let two = signed(&first, "1.1.0");
    assert_eq!(store.vouched(&two, Pin::Keep).unwrap(), Vouched::Known(first.key()));
    let forged = signed(&other, "1.1.0");
    let told = store.vouched(&forged, Pin::Keep).unwrap_err().to_string();
    assert!(told.contains("somebody else made this") && told.contains("--new-key"), "{told}");
    let unsigned = package(&MANIFEST.replace("1.0.0", "1.1.0"));
    let told = store.vouched(&unsigned, Pin::Keep).unwrap_err().to_string();
    assert!(told.contains("not signed"), "{told}");
    assert!(store.vouched(&forged, Pin::New(first.key())).is_err());
    let renewed = store.vouched(&forged, Pin::New(other.key())).unwrap();
    assert_eq!(renewed, Vouched::Renewed(other.key()));
    let before = store.get("reader").unwrap();
    store.install(&forged, before.as_ref(), &forged.manifest.request, renewed, "a file").unwrap();
    assert_eq!(store.vouched(&forged, Pin::Keep).unwrap(), Vouched::Known(other.key()));
    assert!(store.vouched(&one, Pin::Keep).is_err(), "the old key is nobody's now");
}

#[test]
fn names_that_look_like_others_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let warned = |name: &str, publisher: &str| {
        let manifest = MANIFEST.replace("\"reader\"", &format!("\"{name}\""));
        let manifest = manifest.replace("acme", publisher);
        let files = files().into_iter();
        let files = files.map(|(file, bytes)| (file.replace("reader", name), bytes)).collect();
        store.look_alikes(&Package::new(manifest, files).unwrap()).unwrap().join("\n")
    };
    assert_eq!(warned("reader", "acme"), "");
    assert!(warned("librar1an", "acme").contains("looks like `librarian`"));
    assert!(warned("librarian", "acme").contains("somebody else's"));
    assert_eq!(warned("librarian", "synapse"), "");
    assert!(warned("reader", "synapze").contains("publisher's name looks like `synapse`"));
    let own = package(MANIFEST);
    store.install(&own, None, &own.manifest.request, Vouched::Nobody, "a file").unwrap();
    assert!(warned("raeder", "acme").contains("looks like `reader`"));
}
