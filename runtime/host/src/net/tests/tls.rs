//! Who the other end must prove to be, before anything is sent to it

use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};

use super::world::{Act, Names, PUBLIC, Server, World, get};

const GRANT: &str = r#"
version = 1
primitives = ["net_http_get"]
[[hosts]]
host = "good.example"
ports = ["1-65535"]
[[hosts]]
host = "93.184.215.14"
ports = ["1-65535"]
"#;

/// The one that the test's client believes, or another.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    pub(crate) fn sign(&self, params: CertificateParams) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        serving(certificate.der().clone(), &key)
    }
}

fn serving(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

pub(crate) fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn ok() -> Act {
    Act::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into())
}

/// The code of a fetch, 0 for a reply, and how many requests the server read.
fn fetch(authority: &Authority, host: &str, server: &Server) -> (u32, usize) {
    let names = Names::of(&[("good.example", &[&[PUBLIC]])]);
    let mut world = World::new(GRANT, names, authority.roots());
    let answer = world.ask(&get(&format!("https://{host}:{}/", server.port)));
    assert_eq!(server.connections(), 1);
    (answer.map_or_else(|code| code, |_| 0), server.requests().len())
}

#[test]
fn nothing_is_sent_to_one_who_is_not_the_host() {
    let authority = Authority::new();
    let signed = |names: &[&str]| authority.sign(params(names));
    let mut expired = params(&["good.example"]);
    expired.not_after = date_time_ymd(2001, 1, 1);
    let mut named = params(&[]);
    named.distinguished_name.push(DnType::CommonName, "good.example");
    let alone = || {
        let key = KeyPair::generate().unwrap();
        let certificate = params(&["good.example"]).self_signed(&key).unwrap();
        serving(certificate.der().clone(), &key)
    };
    for (what, host, tls, expected) in [
        ("the host itself", "good.example", signed(&["good.example"]), (0, 1)),
        ("the host's address", PUBLIC, signed(&[PUBLIC]), (0, 1)),
        ("another host", "good.example", signed(&["evil.example"]), (533, 0)),
        ("a name below it", "good.example", signed(&["a.good.example"]), (533, 0)),
        ("all names beside it", "good.example", signed(&["*.good.example"]), (533, 0)),
        ("another address", PUBLIC, signed(&["127.0.0.1"]), (533, 0)),
        ("a name for an address", PUBLIC, signed(&["good.example"]), (533, 0)),
        ("a name in the old place", "good.example", authority.sign(named), (533, 0)),
        ("one that was it once", "good.example", authority.sign(expired), (533, 0)),
        ("one that says so itself", "good.example", alone(), (533, 0)),
        (
            "one that a stranger vouches for",
            "good.example",
            Authority::new().sign(params(&["good.example"])),
            (533, 0),
        ),
    ] {
        let server = Server::with(ok(), Some(tls));
        assert_eq!(fetch(&authority, host, &server), expected, "{what}");
    }
}

#[test]
fn what_speaks_no_tls_or_cuts_it_off_gives_no_answer() {
    let authority = Authority::new();
    let plain = Server::start(ok());
    // A server that reads no request in what it gets closes, or waits.
    assert_eq!(fetch(&authority, "good.example", &plain).1, 0);
    let cut = Act::Say(b"HTTP/1.1 200 OK\r\n\r\nhalf".into());
    let server = Server::with(cut, Some(authority.sign(params(&["good.example"]))));
    assert_eq!(fetch(&authority, "good.example", &server), (515, 1));
}

#[test]
fn the_roots_of_a_run_are_built_in() {
    let authority = Authority::new();
    let server = Server::with(ok(), Some(authority.sign(params(&["127.0.0.1"]))));
    let grant = GRANT.replace("93.184.215.14", "127.0.0.1");
    let answer = World::real(&grant).ask(&get(&format!("https://127.0.0.1:{}/", server.port)));
    assert_eq!(answer.unwrap_err(), 533);
    assert!(server.requests().is_empty());
}
