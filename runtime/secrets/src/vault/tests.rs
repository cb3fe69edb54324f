use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::keyring::tests::{WORKS, keyring};

const VALUE: &str = "hunter2 hunter2";

fn secret(name: &str) -> Secret {
    let value = Value::parse(VALUE.as_bytes()).unwrap();
    Secret::new(name, value, &["https://a.example", "tool:mail"]).unwrap()
}

fn fill(vault: &Vault) {
    vault.change(|secrets| secrets.extend([secret("b"), secret("a")])).unwrap();
}

fn names(vault: &Vault) -> Vec<String> {
    vault.read().unwrap().into_iter().map(|secret| secret.name).collect()
}

#[test]
fn secrets_come_back_as_they_were_set() {
    let state = tempfile::tempdir().unwrap();
    let vault = Vault::with(state.path(), None);
    assert_eq!(vault.keeper().unwrap(), None);
    assert_eq!(names(&vault), [""; 0]);
    fill(&vault);
    assert_eq!(vault.keeper().unwrap(), Some(Keeper::File));
    assert_eq!(names(&vault), ["a", "b"]);
    let read = vault.read().unwrap();
    assert_eq!(read[0].value.expose(), VALUE);
    assert_eq!(read[0].destinations, secret("a").destinations);
    vault.change(|secrets| secrets.remove(0)).unwrap();
    assert_eq!(names(&vault), ["b"]);
}

#[test]
fn i17_files_are_their_owners_alone_and_hold_no_value() {
    let state = tempfile::tempdir().unwrap();
    let vault = Vault::with(state.path(), None);
    fill(&vault);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&vault.folder), 0o700);
    for entry in fs::read_dir(&vault.folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let bytes = fs::read(&path).unwrap();
        for part in [VALUE.as_bytes(), b"hunter2", b"a.example"] {
            assert!(!bytes.windows(part.len()).any(|window| window == part), "{}", path.display());
        }
    }
    let before = fs::read(vault.folder.join("vault")).unwrap();
    vault.change(|_| ()).unwrap();
    assert_ne!(fs::read(vault.folder.join("vault")).unwrap(), before, "a nonce is used once");
}

#[test]
fn i17_whoever_has_secrets_leaves_no_image_of_its_memory() {
    let state = tempfile::tempdir().unwrap();
    let vault = Vault::with(state.path(), None);
    fill(&vault);
    vault.read().unwrap();
    let now = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(now, DumpableBehavior::NotDumpable);
    assert_eq!(getrlimit(Resource::Core).current, Some(0));
}

#[test]
fn every_changed_byte_is_found() {
    let state = tempfile::tempdir().unwrap();
    let vault = Vault::with(state.path(), None);
    fill(&vault);
    let path = vault.folder.join("vault");
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut changed = sound.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        let why = vault.read().unwrap_err();
        let told = matches!(why, VaultError::Tampered(_) | VaultError::Version(_));
        assert!(told, "{at}: {why}");
        assert!(vault.change(Vec::clear).is_err(), "{at}");
        assert_eq!(fs::read(&path).unwrap(), changed, "what cannot be read is left as it is");
    }
    for length in 0..sound.len() {
        fs::write(&path, &sound[..length]).unwrap();
        assert!(vault.read().is_err(), "{length}");
    }
    fs::write(&path, &sound).unwrap();
    assert_eq!(names(&vault), ["a", "b"]);
}

#[test]
fn another_version_and_a_lost_key_are_refused() {
    let state = tempfile::tempdir().unwrap();
    let vault = Vault::with(state.path(), None);
    fill(&vault);
    let path = vault.folder.join("vault");
    let sound = fs::read(&path).unwrap();
    for head in [
        "synapse secrets 2 file\n",
        "synapse secrets 1 other\n",
        "synapse secrets 1 keyring:-x/\n",
        "synapse ",
    ] {
        fs::write(&path, [head.as_bytes(), &sound].concat()).unwrap();
        assert!(matches!(vault.read(), Err(VaultError::Version(_))), "{head}");
    }
    fs::write(&path, &sound).unwrap();
    fs::remove_file(vault.folder.join("key")).unwrap();
    assert!(matches!(vault.read(), Err(VaultError::NoKey(_))));
    assert!(matches!(vault.change(Vec::clear), Err(VaultError::NoKey(_))));
    fs::write(vault.folder.join("key"), "short").unwrap();
    assert!(matches!(vault.read(), Err(VaultError::Tampered(_))));
}

#[test]
fn a_keyring_that_works_has_the_key_and_no_file_does() {
    let (state, desk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let vault = Vault::with(state.path(), Some(keyring(desk.path(), WORKS)));
    fill(&vault);
    assert!(matches!(vault.keeper().unwrap(), Some(Keeper::Keyring(_))));
    assert!(!vault.folder.join("key").exists());
    assert_eq!(names(&vault), ["a", "b"]);
    // Without it they are closed, and no other key is made.
    for keyring in [None, Some(keyring(desk.path(), "exit 1"))] {
        let vault = Vault::with(state.path(), keyring);
        assert!(matches!(vault.read(), Err(VaultError::Locked(_))));
        assert!(matches!(vault.change(Vec::clear), Err(VaultError::Locked(_))));
    }
}

#[test]
fn a_keyring_that_forgets_is_not_relied_on() {
    let (state, desk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let vault = Vault::with(state.path(), Some(keyring(desk.path(), "cat; exit 0")));
    fill(&vault);
    assert_eq!(vault.keeper().unwrap(), Some(Keeper::File));
    assert_eq!(names(&vault), ["a", "b"]);
}

#[test]
fn changes_at_once_are_all_made() {
    let state = tempfile::tempdir().unwrap();
    let vault = Vault::with(state.path(), None);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let vault = &vault;
            scope.spawn(move || {
                vault.change(|all| all.push(secret(&format!("n{number}")))).unwrap();
            });
        }
    });
    assert_eq!(names(&vault).len(), 8);
}
