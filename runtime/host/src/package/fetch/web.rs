//! One request, and where its answer may lead
//!
//! # Invariants
//! - The server that a person named may be anywhere, over TLS; without TLS it is this
//!   machine.
//! - What that server leads to is asked over TLS, and at globally reachable addresses
//!   only: it shall not make this machine ask its neighbours.
//! - Headers go to the server that was named, and to no other.
//!
//! # Not here
//! Keeping a body (`download`).

use core::net::IpAddr;

use synapse_boundary::url::{Host, Scheme, Url};
use synapse_primitives::Fault;
use synapse_primitives::platform::Fetch;

use super::super::PackageError;
use crate::net::{Client, Streamed, public};

/// How often an answer may lead elsewhere.
const HOPS: usize = 5;

/// The client, and the server that a person named.
pub(super) struct Web<'a> {
    client: &'a Client,
    home: String,
}

/// An answer that is short.
pub(super) struct Document {
    pub(super) status: u16,
    pub(super) challenge: Option<String>,
    pub(super) body: Vec<u8>,
}

impl<'a> Web<'a> {
    /// For what is at this URL's server.
    pub(super) fn new(client: &'a Client, home: &str) -> Result<Self, PackageError> {
        let web = Self { client, home: home.to_owned() };
        let url = parse(home)?;
        if url.scheme() == Scheme::Http && !is_here(&url) {
            return Err(PackageError::new(
                &failed(home),
                "without TLS anybody on the way could change it",
                "write https; only what this machine itself serves is fetched without",
            ));
        }
        Ok(web)
    }

    /// What is at a URL, if it has no more than these bytes. Nothing is followed.
    pub(super) async fn document(
        &self,
        url: &str,
        headers: &[(String, String)],
        most: usize,
    ) -> Result<Document, PackageError> {
        let mut answer = self.ask(url, headers).await?;
        let challenge = answer.header("www-authenticate").map(ToOwned::to_owned);
        let mut body = Vec::new();
        while let Some(bytes) = answer.next().await.map_err(|why| told(url, why))? {
            if body.len() + bytes.len() > most {
                return Err(PackageError::new(
                    &failed(url),
                    &format!("it has more than {most} bytes"),
                    "tell whoever runs the server",
                ));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(Document { status: answer.status(), challenge, body })
    }

    /// What is at a URL, or where that leads.
    pub(super) async fn follow(
        &self,
        url: &str,
        headers: &[(String, String)],
    ) -> Result<Streamed, PackageError> {
        let mut at = url.to_owned();
        for _ in 0..=HOPS {
            let answer = self.ask(&at, headers).await?;
            if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            at = answer.header("location").map(|to| self.resolved(&at, to)).unwrap_or_default();
        }
        Err(PackageError::new(
            &failed(url),
            "it leads elsewhere again and again",
            "tell whoever runs the server",
        ))
    }

    async fn ask(&self, url: &str, headers: &[(String, String)]) -> Result<Streamed, PackageError> {
        let (to, home) = (parse(url)?, parse(&self.home)?);
        let at_home = same_server(&to, &home);
        if !at_home && to.scheme() == Scheme::Http {
            return Err(PackageError::new(
                &failed(&self.home),
                &format!("it leads to `{}`, without TLS", shown(url)),
                "tell whoever runs the server",
            ));
        }
        // A secret may be among what it asks; a range is what it is asked for.
        let own: Vec<_> =
            headers.iter().filter(|(name, _)| at_home || name != AUTHORIZATION).cloned().collect();
        let public = public(&to);
        let admits = |address: IpAddr| match (at_home, to.scheme()) {
            (true, Scheme::Https) => true,
            (true, Scheme::Http) => address.is_loopback(),
            (false, _) => public(address),
        };
        let request = Fetch {
            url: to,
            headers: &own,
            secrets: &[],
            content: None,
            most: usize::MAX,
            admits: &admits,
        };
        self.client.stream(&request).await.map_err(|why| told(url, why))
    }

    /// Where an answer leads.
    fn resolved(&self, at: &str, to: &str) -> String {
        if to.starts_with('/') && !to.starts_with("//") {
            let server = at.match_indices('/').nth(2).and_then(|(end, _)| at.get(..end));
            return format!("{}{to}", server.unwrap_or(&self.home));
        }
        to.to_owned()
    }
}

/// What must not go to another server.
pub(super) const AUTHORIZATION: &str = "authorization";

/// Whether a URL's host is this machine by its name.
pub(super) fn is_here(url: &Url<'_>) -> bool {
    match url.host() {
        Host::Name(name) => name.as_str() == "localhost",
        Host::V4(address) => address.is_loopback(),
        Host::V6(address) => address.is_loopback(),
    }
}

fn same_server(one: &Url<'_>, other: &Url<'_>) -> bool {
    (one.scheme(), one.host(), one.port()) == (other.scheme(), other.host(), other.port())
}

fn parse(url: &str) -> Result<Url<'_>, PackageError> {
    Url::parse(url).map_err(|_| {
        PackageError::new(
            &failed(url),
            "that is where it leads, and it is no URL in its plain form",
            "tell whoever runs the server",
        )
    })
}

/// A URL for people: what stands behind `?` may be a secret.
fn shown(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// What happened.
pub(super) fn failed(url: &str) -> String {
    format!("`{}` was not fetched", shown(url))
}

/// Why, where the network is to blame.
pub(super) fn told(url: &str, why: Fault) -> PackageError {
    let (why, todo) = match why {
        Fault::NotFound => ("the name of its server is not known", "check how it is written"),
        Fault::Unproven => (
            "its server did not prove to be the one of that name",
            "somebody may stand between; try another network",
        ),
        Fault::Address => (
            "it leads to an address that is not globally reachable",
            "tell whoever runs the server",
        ),
        Fault::Closed => ("the connection ended", "do it again; what came is kept"),
        Fault::TimedOut => ("nothing came for too long", "do it again; what came is kept"),
        Fault::BadAnswer => ("its answer cannot be read", "tell whoever runs the server"),
        other => (other.name(), "do it again"),
    };
    PackageError::new(&failed(url), why, todo)
}
