//! Registries that want to know who asks

use std::path::Path;
use std::sync::{Arc, Mutex};

use synapse_secrets::{Secret, Value, Vault};

use super::registry::{Held, Refers};
use super::server::{Asked, Served, Server};
use super::{fetched, signed, why};
use crate::net::tests::tls::{Authority, params};
use crate::net::tests::world::{Names, PUBLIC, client};

const PAIR: &str = "me:hunter2 hunter2";
const BASIC: &str = "Basic bWU6aHVudGVyMiBodW50ZXIy";

/// Keeps the password for these places, and nothing else.
fn keep(state: &Path, places: &[String]) {
    let value = Value::parse(PAIR.as_bytes()).unwrap();
    let secret = Secret::new("mine", value, places).unwrap();
    Vault::with(state, None).change(|kept| *kept = vec![secret]).unwrap();
}

/// What each request said of who asks.
fn said(asked: &[Asked]) -> Vec<Option<&str>> {
    asked.iter().map(|asked| asked.header("authorization")).collect()
}

/// A world of three servers over TLS: a registry that answers what it is not told with the
/// challenge, one that has its blobs, and one that gives tokens for the password.
struct World {
    client: crate::net::Client,
    registry: Server,
    cdn: Server,
    tokens: Server,
    challenge: Arc<Mutex<(String, &'static str)>>,
    made: Vec<u8>,
}

impl World {
    fn new(root: &Path) -> Self {
        let made = signed(root);
        let authority = Authority::new();
        let known = Names::of(&[
            ("registry.example", &[&[PUBLIC]]),
            ("tokens.example", &[&[PUBLIC]]),
            ("cdn.example", &[&[PUBLIC]]),
        ]);
        let tls = |name: &str| Some(authority.sign(params(&[name])));
        let held = Held::new(&made, Refers::ByList);
        let blobs = held.clone();
        let cdn = Server::start(
            tls("cdn.example"),
            Box::new(move |asked| {
                Served::content(asked, &blobs.0[asked.path.trim_start_matches('/')])
            }),
        );
        let tokens = Server::start(
            tls("tokens.example"),
            Box::new(|asked| match asked.header("authorization") {
                Some(BASIC) => Served::new(200, r#"{"token":"t0ken"}"#),
                _ => Served::new(401, ""),
            }),
        );
        let challenge = Arc::<Mutex<(String, &'static str)>>::default();
        let (wanted, port) = (Arc::clone(&challenge), cdn.port);
        let registry = Server::start(
            tls("registry.example"),
            Box::new(move |asked| {
                let (challenge, expected) = wanted.lock().unwrap().clone();
                if asked.header("authorization") != Some(expected) {
                    return Served::new(401, "").with("www-authenticate", challenge);
                }
                match asked.path.strip_prefix("/v2/acme/reader/blobs/") {
                    Some(digest) => Served::new(307, "")
                        .with("location", format!("https://cdn.example:{port}/blobs/{digest}")),
                    None => held.answer(asked),
                }
            }),
        );
        let (client, _) = client(known, authority.roots());
        Self { client, registry, cdn, tokens, challenge, made: made.write() }
    }

    fn wants(&self, challenge: &str, expected: &'static str) {
        *self.challenge.lock().unwrap() = (challenge.to_owned(), expected);
    }

    fn at(&self) -> String {
        format!("oci://registry.example:{}/acme/reader:1.0.0", self.registry.port)
    }

    fn place(&self) -> String {
        format!("oci://registry.example:{}", self.registry.port)
    }
}

#[test]
fn i17_a_password_is_told_when_it_is_wanted_and_to_the_registry_alone() {
    let root = tempfile::tempdir().unwrap();
    let world = World::new(root.path());
    world.wants("Basic realm=\"r\"", BASIC);
    let closed = why(&world.at(), &world.client, root.path());
    assert!(closed.contains(&format!("secret set NAME --for {}", world.place())), "{closed}");
    // One that may go to the same host for agents is not one for packages.
    keep(root.path(), &[world.place().replace("oci://", "https://")]);
    let closed = why(&world.at(), &world.client, root.path());
    assert!(closed.contains("does not let everybody"), "{closed}");
    assert!(said(&world.registry.asked()).iter().all(Option::is_none));

    keep(root.path(), &[world.place()]);
    let found = fetched(&world.at(), &world.client, root.path()).0;
    assert_eq!(found.unwrap().write(), world.made);
    let asked = world.registry.asked();
    let [None, None, None, rest @ ..] = &*said(&asked) else { panic!("{asked:?}") };
    assert!(!rest.is_empty() && rest.iter().all(|said| *said == Some(BASIC)), "{asked:?}");
    let elsewhere = world.cdn.asked();
    assert!(!elsewhere.is_empty() && said(&elsewhere).iter().all(Option::is_none));

    world.wants("Basic realm=\"r\"", "another");
    let wrong = why(&world.at(), &world.client, root.path());
    assert!(wrong.contains("whom the secret `mine` names"), "{wrong}");
    assert!(!wrong.contains("hunter2") && !wrong.contains("aHVudGVyMi"), "{wrong}");
}

#[test]
fn i17_who_gives_tokens_is_told_a_password_only_if_a_person_named_it() {
    let root = tempfile::tempdir().unwrap();
    let world = World::new(root.path());
    let at = format!("tokens.example:{}", world.tokens.port);
    let bearer = format!("Bearer realm=\"https://{at}/token\",service=\"s\"");
    world.wants(&bearer, "Bearer t0ken");
    let closed = why(&world.at(), &world.client, root.path());
    assert!(closed.contains("does not let everybody"), "{closed}");

    let before = world.tokens.asked().len();
    keep(root.path(), &[world.place()]);
    let unnamed = why(&world.at(), &world.client, root.path());
    let todo = format!("synapse secret set mine --for {} --for oci://{at}", world.place());
    assert!(unnamed.contains(&todo), "{unnamed}");
    assert_eq!(world.tokens.asked().len(), before);
    // Nor without TLS.
    world.wants(&bearer.replace("https", "http"), "Bearer t0ken");
    keep(root.path(), &[world.place(), format!("oci://{at}")]);
    let clear = why(&world.at(), &world.client, root.path());
    assert!(clear.contains("no password may be sent"), "{clear}");
    // What is no place is not put into a line to type.
    world.wants("Bearer realm=\"https://a.example;echo a;/t\"", "Bearer t0ken");
    let odd = why(&world.at(), &world.client, root.path());
    assert!(odd.contains("no password may be sent") && !odd.contains("echo"), "{odd}");
    assert_eq!(world.tokens.asked().len(), before);

    world.wants(&bearer, "Bearer t0ken");
    let found = fetched(&world.at(), &world.client, root.path()).0;
    assert_eq!(found.unwrap().write(), world.made);
    let tokens = world.tokens.asked();
    assert_eq!(said(&tokens[before..]), [Some(BASIC)]);
    let told = world.registry.asked();
    assert!(said(&told).iter().all(|said| !said.is_some_and(|said| said.starts_with("Basic"))));
    assert!(said(&world.cdn.asked()).iter().all(Option::is_none));
}

#[test]
fn two_passwords_for_one_registry_are_none() {
    let root = tempfile::tempdir().unwrap();
    let world = World::new(root.path());
    world.wants("Basic realm=\"r\"", BASIC);
    let secret = |name: &str| {
        let value = Value::parse(PAIR.as_bytes()).unwrap();
        Secret::new(name, value, &[world.place()]).unwrap()
    };
    let both = vec![secret("a"), secret("b")];
    Vault::with(root.path(), None).change(|kept| *kept = both).unwrap();
    let unclear = why(&world.at(), &world.client, root.path());
    assert!(unclear.contains("`a` and `b`"), "{unclear}");
    assert!(said(&world.registry.asked()).iter().all(Option::is_none));
}
