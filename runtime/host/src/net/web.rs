//! The network as connectors at an address use it
//!
//! # Invariants
//! - A server is connected to at a globally reachable address, or at the one that its
//!   manifest's URL names.
//!
//! # Not here
//! What is said there (`synapse_connectors`).

use core::net::IpAddr;

use hyper::body::Bytes;
use synapse_boundary::Scope;
use synapse_boundary::label::Secrecy;
use synapse_boundary::scope::{HostPattern, Method, Net, Place};
use synapse_boundary::url::{Host, Url};
use synapse_connectors::web::{Answer, Ask, Waiting, Web};
use synapse_primitives::platform::Fetch;
use synapse_primitives::{Fault, host_of};
use synapse_secrets::Given;

use super::http::usual;
use super::{Client, Streamed};

impl Web for Client {
    fn send<'a>(&'a self, ask: &'a Ask) -> Waiting<'a, Box<dyn Answer>> {
        Box::pin(async move {
            let url = Url::parse(&ask.url).map_err(|_| Fault::BadAnswer)?;
            let is_named = !matches!(url.host(), Host::Name(_));
            let public = public(&url);
            let admits = |address| is_named || public(address);
            let (headers, content) = (&*ask.headers, ask.content.as_deref());
            let request =
                Fetch { url, headers, content, secrets: &[], most: usize::MAX, admits: &admits };
            let (method, given) = (usual(&request), Given::default());
            let answer = self.stream_for(method, &request, &given, ask.pause).await?;
            let answer: Box<dyn Answer> = Box::new(answer);
            Ok(answer)
        })
    }
}

impl Answer for Streamed {
    fn status(&self) -> u16 {
        self.status()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.header(name)
    }

    fn next(&mut self) -> Waiting<'_, Option<Bytes>> {
        Box::pin(self.next())
    }
}

/// Whether an address is globally reachable, as the boundary has it: covered by an
/// entry that names no block.
pub(crate) fn public<'a>(url: &Url<'a>) -> impl Fn(IpAddr) -> bool + use<'a> {
    let mut everywhere = Scope::default();
    for pattern in ["0.0.0.0/0", "[::]/0"].into_iter().filter_map(HostPattern::parse) {
        everywhere.net(
            pattern,
            Net {
                methods: vec![Method::Get],
                ports: vec![1..=u16::MAX],
                paths: vec!["/".to_owned()],
                clear: Secrecy::NONE,
                own: Secrecy::NONE,
                secrets: Vec::new(),
                reads: false,
            },
        );
    }
    let place = Place::of(url, Method::Get);
    move |address| everywhere.check_net(&Place { host: host_of(address), ..place }).is_ok()
}
