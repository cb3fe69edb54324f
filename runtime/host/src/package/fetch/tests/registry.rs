//! Registries

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::RootCertStore;

use synapse_kernel::package::tar;

use super::super::super::{Digest, Package};
use super::server::{Asked, Served, Server};
use super::{fetched, kept, signed, why};
use crate::net::tests::tls::{Authority, params};
use crate::net::tests::world::{Names, PUBLIC, client};

/// How a registry tells what refers to an image.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Refers {
    ByList,
    ByTag,
}

/// What an honest registry holds, by the paths of its repository.
#[derive(Clone)]
pub(super) struct Held(pub(super) BTreeMap<String, Vec<u8>>);

impl Held {
    pub(super) fn new(package: &Package, refers: Refers) -> Self {
        let bytes = package.write();
        let files: BTreeMap<_, _> = tar::read(&bytes).unwrap().into_iter().collect();
        let image = package.digest();
        let mut held = BTreeMap::new();
        for (name, content) in &files {
            if let Some(digits) = name.strip_prefix("blobs/sha256/") {
                for kind in ["blobs", "manifests"] {
                    held.insert(format!("{kind}/sha256:{digits}"), content.to_vec());
                }
            }
        }
        held.insert("manifests/1.0.0".into(), held[&format!("manifests/{image}")].clone());
        let mut index: serde_json::Value = serde_json::from_slice(files["index.json"]).unwrap();
        let manifests = index["manifests"].as_array_mut().unwrap();
        manifests.remove(0);
        // Registries say more than is asked for.
        index["annotations"] = serde_json::json!({"more": "text"});
        let place = match refers {
            Refers::ByList => format!("referrers/{image}"),
            Refers::ByTag => format!("manifests/sha256-{}", image.digits()),
        };
        held.insert(place, index.to_string().into());
        Self(held)
    }

    pub(super) fn answer(&self, asked: &Asked) -> Served {
        let place = asked.path.strip_prefix("/v2/acme/reader/").unwrap();
        self.0.get(place).map_or_else(|| Served::new(404, ""), |held| Served::content(asked, held))
    }

    /// The path of the component's blob, and the blob.
    fn component(&self) -> (String, Vec<u8>) {
        let found = self
            .0
            .iter()
            .find(|(path, held)| path.starts_with("blobs/") && held.starts_with(b"\0asm"));
        found.map(|(path, held)| (path.clone(), held.clone())).unwrap()
    }
}

/// What comes instead of what is asked for.
type Instead = Box<dyn Fn(&Asked, &Held) -> Option<Served> + Send + Sync>;

/// A registry of this machine that does something else once.
fn registry(held: Held, instead: Instead) -> Server {
    let instead = Mutex::new(Some(instead));
    Server::start(
        None,
        Box::new(move |asked| {
            let mut instead = instead.lock().unwrap();
            let reply = instead.as_ref().and_then(|instead| instead(asked, &held));
            if let Some(reply) = reply {
                *instead = None;
                return reply;
            }
            held.answer(asked)
        }),
    )
}

fn plain() -> crate::net::Client {
    client(Names::default(), RootCertStore::empty()).0
}

#[test]
fn a_package_comes_as_it_was_signed() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let authority = Authority::new();
    let names = Names::of(&[("registry.example", &[&["10.0.0.7"]])]);
    for refers in [Refers::ByList, Refers::ByTag] {
        let (client, _) = client(names.clone(), authority.roots());
        let held = Held::new(&made, refers);
        let tls = authority.sign(params(&["registry.example"]));
        let server = Server::start(Some(tls), Box::new(move |asked| held.answer(asked)));
        let at = format!("oci://registry.example:{}/acme/reader", server.port);
        let pin = made.digest();
        for name in [format!("{at}:1.0.0"), format!("{at}@{pin}"), format!("{at}:1.0.0@{pin}")] {
            let (found, told) = fetched(&name, &client, root.path());
            let found = found.unwrap();
            assert_eq!(found.write(), made.write());
            assert!(found.signer().unwrap().is_some());
            let last = told.last().unwrap();
            assert_eq!(Some(last.done), last.of);
            assert!(told.is_sorted_by_key(|progress| progress.done), "{told:?}");
        }
        let none = why(&format!("{at}:2.0.0"), &client, root.path());
        assert!(none.contains("no `2.0.0`"), "{none}");
    }
    assert_eq!(kept(root.path()), [""; 0]);
}

#[test]
fn a_token_is_asked_for_to_pull_and_goes_to_the_registry_alone() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let authority = Authority::new();
    let names = Names::of(&[
        ("registry.example", &[&["10.0.0.7"]]),
        ("auth.example", &[&[PUBLIC]]),
        ("cdn.example", &[&[PUBLIC]]),
    ]);
    let (client, _) = client(names, authority.roots());
    let tls = |name: &str| Some(authority.sign(params(&[name])));
    let auth = Server::start(
        tls("auth.example"),
        Box::new(|_| Served::new(200, r#"{"token":"t0k.en","expires_in":300}"#)),
    );
    let held = Held::new(&made, Refers::ByList);
    let blobs = held.clone();
    let cdn = Server::start(
        tls("cdn.example"),
        Box::new(move |asked| {
            let place = asked.path.strip_prefix("/store/").unwrap().split('?').next().unwrap();
            Served::content(asked, &blobs.0[place])
        }),
    );
    let (realm, store) = (auth.port, cdn.port);
    let server = Server::start(
        tls("registry.example"),
        Box::new(move |asked| {
            if asked.header("authorization") != Some("Bearer t0k.en") {
                let challenge = format!(
                    "Bearer realm=\"https://auth.example:{realm}/token\",service=\"a b\",\
                     scope=\"repository:acme/reader:pull,push,delete\""
                );
                return Served::new(401, "").with("www-authenticate", challenge);
            }
            match asked.path.strip_prefix("/v2/acme/reader/blobs/") {
                Some(digest) => Served::new(307, "").with(
                    "location",
                    format!("https://cdn.example:{store}/store/blobs/{digest}?sig=x%2Fy"),
                ),
                None => held.answer(asked),
            }
        }),
    );
    let at = format!("oci://registry.example:{}/acme/reader:1.0.0", server.port);
    assert_eq!(fetched(&at, &client, root.path()).0.unwrap().write(), made.write());
    let [asked] = &*auth.asked() else { panic!("{:?}", auth.asked()) };
    assert_eq!(asked.path, "/token?service=a%20b&scope=repository:acme/reader:pull");
    assert!(!cdn.asked().is_empty());
    for asked in auth.asked().iter().chain(&cdn.asked()) {
        assert_eq!(asked.header("authorization"), None, "{asked:?}");
    }
}

/// What comes of one wrong answer; the next time, all are right.
fn once(root: &Path, told: &str, instead: Instead) -> Server {
    let made = signed(&root.join("keys"));
    std::fs::remove_file(root.join("keys/key")).unwrap();
    let server = registry(Held::new(&made, Refers::ByTag), instead);
    let at = format!("oci://127.0.0.1:{}/acme/reader:1.0.0@{}", server.port, made.digest());
    let why = why(&at, &plain(), root);
    assert!(why.contains(told), "{told}: {why}");
    let found = fetched(&at, &plain(), root).0;
    assert_eq!(found.unwrap().write(), made.write(), "{told}");
    assert_eq!(kept(root), [""; 0], "{told}");
    server
}

/// Instead of the component.
fn component(reply: impl Fn(&[u8]) -> Served + Send + Sync + 'static) -> Instead {
    Box::new(move |asked, held| {
        let (path, bytes) = held.component();
        asked.path.ends_with(&path).then(|| reply(&bytes))
    })
}

/// Instead of the image's manifest.
fn manifest(change: impl Fn(String) -> String + Send + Sync + 'static) -> Instead {
    Box::new(move |asked, held| {
        asked.path.contains("/manifests/").then(|| {
            let found = held.0["manifests/1.0.0"].clone();
            Served::new(200, change(String::from_utf8(found).unwrap()))
        })
    })
}

#[test]
fn registries_that_lie_or_die_install_nothing() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    std::fs::create_dir(root.join("keys")).unwrap();
    let other = "not the one that you named";
    once(root, other, manifest(|text| text.replace("1.0.0", "1.0.1")));
    once(root, other, manifest(|_| "{}".to_owned()));
    once(root, "has more than", manifest(|text| text.repeat(5000)));
    once(root, other, component(|bytes| Served::new(200, vec![b'x'; bytes.len()])));
    once(root, "another length", component(|bytes| Served::new(200, &bytes[1..])));
    once(root, "another length", component(|bytes| Served::new(200, [bytes, b"x"].concat())));
    once(root, "more came than", component(|bytes| Served::new(200, bytes).endless()));
    once(root, "there is none", component(|_| Served::new(404, "")));
    once(root, "connection ended", component(|bytes| Served::new(200, bytes).cut(0)));
    let half = 99;
    let server =
        once(root, "connection ended", component(move |bytes| Served::new(200, bytes).cut(half)));
    let ranges: Vec<_> = server.asked().iter().filter_map(Asked::from).collect();
    assert_eq!(ranges, [half]);
}

#[test]
fn a_registry_leads_nobody_to_the_neighbours() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let authority = Authority::new();
    let names = Names::of(&[
        ("registry.example", &[&[PUBLIC]]),
        ("inner.example", &[&["10.0.0.1"]]),
        ("mixed.example", &[&[PUBLIC, "169.254.169.254"]]),
    ]);
    let to = Arc::new(Mutex::new(String::new()));
    let (held, location) = (Held::new(&made, Refers::ByList), Arc::clone(&to));
    let server = Server::start(
        Some(authority.sign(params(&["registry.example"]))),
        Box::new(move |asked| match &*location.lock().unwrap() {
            to if asked.path.contains("/blobs/") => Served::new(302, "").with("location", to),
            _ => held.answer(asked),
        }),
    );
    let at = format!("oci://registry.example:{}/acme/reader:1.0.0", server.port);
    for (place, told) in [
        ("https://inner.example/a", "not globally reachable"),
        ("https://mixed.example/a", "not globally reachable"),
        ("https://127.0.0.1/a", "not globally reachable"),
        ("https://[::1]/a", "not globally reachable"),
        ("https://[::ffff:a00:1]/a", "not globally reachable"),
        ("http://registry.example/a", "without TLS"),
        ("//inner.example/a", "no URL"),
        ("ftp://registry.example/a", "no URL"),
        ("", "no URL"),
        ("/v2/acme/reader/blobs/again", "again and again"),
    ] {
        let (client, seen) = client(names.clone(), authority.roots());
        place.clone_into(&mut to.lock().unwrap());
        let why = why(&at, &client, root.path());
        assert!(why.contains(told), "{place}: {why}");
        let reached = seen.connected.lock().unwrap();
        assert!(reached.iter().all(|to| to.ip().to_string() == PUBLIC), "{place}: {reached:?}");
    }
}

#[test]
fn a_package_has_one_signature_there_and_its_own_parts() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let image = made.digest();
    let list = format!("referrers/{image}");
    let pull = |held: Held| {
        let server = Server::start(None, Box::new(move |asked| held.answer(asked)));
        let at = format!("oci://127.0.0.1:{}/acme/reader:1.0.0", server.port);
        fetched(&at, &plain(), root.path()).0.map_err(|why| why.to_string())
    };
    let held = Held::new(&made, Refers::ByList);

    let mut two = held.clone();
    let mut index: serde_json::Value = serde_json::from_slice(&two.0[&list]).unwrap();
    let first = index["manifests"][0].clone();
    index["manifests"].as_array_mut().unwrap().push(first);
    two.0.insert(list.clone(), index.to_string().into());
    assert!(pull(two.clone()).is_ok(), "one that two pushes listed is one");
    index["manifests"][1]["digest"] = Digest::of(b"another").to_string().into();
    two.0.insert(list.clone(), index.to_string().into());
    assert!(pull(two).unwrap_err().contains("two signatures"));

    // What else refers to it is nothing to a package.
    let mut others = held.clone();
    index["manifests"][1]["artifactType"] = "application/x.scan".into();
    others.0.insert(list.clone(), index.to_string().into());
    assert_eq!(pull(others).unwrap().write(), made.write());

    // Without its signature it is the same package, for which nobody vouches.
    let mut bare = held.clone();
    bare.0.remove(&list);
    let found = pull(bare).unwrap();
    assert_eq!((found.digest(), found.signer().unwrap()), (image, None));

    // A manifest that Synapse would have written otherwise, under its own digest.
    let mut spelled = held.clone();
    let text = String::from_utf8(held.0["manifests/1.0.0"].clone()).unwrap();
    spelled.0.insert("manifests/1.0.0".into(), text.replacen('{', "{ ", 1).into());
    assert!(pull(spelled).unwrap_err().contains("signed by nobody"));

    // Parts that are said to be larger than any memory.
    let mut large = held;
    let (_, component) = large.component();
    let size = format!("\"size\":{}", component.len());
    assert!(text.contains(&size));
    large.0.insert(
        "manifests/1.0.0".into(),
        text.replacen(&size, "\"size\":9223372036854775807", 1).into(),
    );
    assert!(pull(large).unwrap_err().contains("120 MiB"));
}
