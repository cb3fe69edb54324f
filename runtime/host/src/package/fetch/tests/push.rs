//! Pushing, to registries that take it and such that do not

use core::mem::take;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::RootCertStore;

use super::super::super::{Digest, Package, PackageError};
use super::super::{Source, send};
use super::server::{Asked, Served, Server};
use super::{fetched, signed};
use crate::net::tests::world::{Names, client};

const BASE: &str = "/v2/acme/reader/";

/// A registry that takes what it is given, and knows of referrers.
#[derive(Default)]
struct Taken {
    there: BTreeMap<String, Vec<u8>>,
    coming: Vec<u8>,
    order: Vec<String>,
}

impl Taken {
    fn answer(&mut self, asked: &Asked) -> Served {
        let place = asked.path.strip_prefix(BASE).unwrap().to_owned();
        let went_on = format!("{BASE}blobs/uploads/1?state=a");
        match &*asked.method {
            "GET" | "HEAD" => match self.there.get(&place) {
                Some(held) if asked.method == "GET" => Served::content(asked, held),
                Some(_) => Served::new(200, ""),
                None => Served::new(404, ""),
            },
            "POST" => Served::new(202, "").with("location", went_on),
            "PATCH" => {
                let last = self.coming.len() + asked.body.len() - 1;
                let range = format!("{}-{last}", self.coming.len());
                assert_eq!(asked.header("content-range"), Some(&*range));
                self.coming.extend_from_slice(&asked.body);
                Served::new(202, "").with("location", went_on)
            }
            _ => {
                let place = match place.strip_prefix("blobs/uploads/1?state=a&digest=") {
                    Some(digest) => format!("blobs/{digest}"),
                    None => place,
                };
                self.order.push(place.clone());
                let is_blob = place.starts_with("blobs/");
                let bytes = if is_blob { take(&mut self.coming) } else { asked.body.clone() };
                if is_blob {
                    assert_eq!(place, format!("blobs/{}", Digest::of(&bytes)));
                }
                self.there.insert(place, bytes);
                Served::new(201, "").with("oci-subject", "sha256:0")
            }
        }
    }
}

fn pushed(package: &Package, to: &str, state: &Path) -> Result<(), PackageError> {
    let Source::Registry(image) = Source::parse(to.as_ref()).unwrap() else { panic!("{to}") };
    let client = client(Names::default(), RootCertStore::empty()).0;
    send(package, &image, &client, state, &mut |_| {})
}

#[test]
fn a_package_is_there_whole_before_a_tag_names_it() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let taken = Arc::<Mutex<Taken>>::default();
    let held = Arc::clone(&taken);
    let server = Server::start(None, Box::new(move |asked| held.lock().unwrap().answer(asked)));
    let at = format!("oci://127.0.0.1:{}/acme/reader:1.0.0", server.port);
    pushed(&made, &at, root.path()).unwrap();
    let order = taken.lock().unwrap().order.clone();
    let blobs = order.iter().take_while(|place| place.starts_with("blobs/")).count();
    let [first, signature, tag] = &order[blobs..] else { panic!("{order:?}") };
    assert_eq!((&**first, &**tag), (&*format!("manifests/{}", made.digest()), "manifests/1.0.0"));
    assert!(signature.starts_with("manifests/sha256:"), "it knows of referrers: no list is put");
    // What a registry makes of the referring manifest.
    let signature = signature.trim_start_matches("manifests/").to_owned();
    let list = format!(
        "{{\"manifests\":[{{\"digest\":\"{signature}\",\"artifactType\":\"application/vnd.synapse.signature.v1\"}}]}}"
    );
    taken.lock().unwrap().there.insert(format!("referrers/{}", made.digest()), list.into());
    let client = client(Names::default(), RootCertStore::empty()).0;
    let found = fetched(&at, &client, root.path()).0.unwrap();
    assert_eq!(found.write(), made.write());
    let before = server.asked().len();
    pushed(&made, &at, root.path()).unwrap();
    let again = server.asked();
    assert!(again[before..].iter().all(|asked| asked.method != "POST" && asked.method != "PATCH"));
}

#[test]
fn what_a_registry_does_not_take_is_told_and_nothing_goes_elsewhere() {
    let root = tempfile::tempdir().unwrap();
    let made = signed(root.path());
    let neighbour = Server::start(None, Box::new(|_| Served::new(202, "")));
    let to = format!("http://127.0.0.1:{}/take", neighbour.port);
    for (status, location, told) in [
        (202, Some(&*to), "to another server"),
        (202, Some("//127.0.0.1/take"), "to another server"),
        (202, None, "does not say where"),
        (405, None, "answers 405"),
        (403, None, "does not let everybody"),
    ] {
        let location = location.map(str::to_owned);
        let server = Server::start(
            None,
            Box::new(move |asked| match (&*asked.method, &location) {
                ("POST", Some(location)) => Served::new(status, "").with("location", location),
                ("POST", None) => Served::new(status, ""),
                _ => Served::new(404, ""),
            }),
        );
        let at = format!("oci://127.0.0.1:{}/acme/reader:1", server.port);
        let why = pushed(&made, &at, root.path()).unwrap_err().to_string();
        assert!(why.contains(told) && why.contains("was not pushed"), "{told}: {why}");
        assert!(server.asked().iter().all(|asked| asked.method != "PUT"), "{told}");
    }
    assert!(neighbour.asked().is_empty());
}
