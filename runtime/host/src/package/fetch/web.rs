//! One request, and where its answer may lead
//!
//! # Invariants
//! - The server that a person named may be anywhere, over TLS; without TLS it is this
//!   machine.
//! - What that server leads to is asked over TLS, and at globally reachable addresses
//!   only: it shall not make this machine ask its neighbours.
//! - Who asks is told to the server that was named, and to no other; a password also to
//!   those that the person named for it.
//!
//! # Not here
//! Keeping a body (`download`).

use core::net::IpAddr;

use synapse_boundary::secret::Blank;
use synapse_boundary::url::{Host, Scheme, Url};
use synapse_primitives::Fault;
use synapse_primitives::platform::Fetch;
use synapse_secrets::Given;

use super::super::PackageError;
use super::password;
use crate::net::{Client, Method, Streamed, public};

/// How often an answer may lead elsewhere.
const HOPS: usize = 5;

/// The client, and the server that a person named.
pub(super) struct Web<'a> {
    client: &'a Client,
    home: String,
    /// What is to be done with what is there, for people: it is fetched, or pushed.
    done: &'static str,
    /// The password, with where it may go.
    password: Given,
}

/// What is asked.
pub(super) struct Request<'r> {
    pub(super) method: Method,
    pub(super) url: &'r str,
    pub(super) headers: &'r [(String, String)],
    pub(super) content: Option<&'r [u8]>,
}

impl<'r> Request<'r> {
    /// To have what is at a URL.
    pub(super) fn get(url: &'r str, headers: &'r [(String, String)]) -> Self {
        Self { method: Method::GET, url, headers, content: None }
    }
}

/// An answer that is short.
pub(super) struct Document {
    head: Streamed,
    pub(super) body: Vec<u8>,
}

impl Document {
    pub(super) fn status(&self) -> u16 {
        self.head.status()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }
}

impl<'a> Web<'a> {
    /// For what is at this URL's server, to be fetched or pushed.
    pub(super) fn new(
        client: &'a Client,
        home: &str,
        done: &'static str,
    ) -> Result<Self, PackageError> {
        let web = Self { client, home: home.to_owned(), done, password: Given::default() };
        let url = web.parse(home)?;
        if url.scheme() == Scheme::Http && !is_here(&url) {
            return Err(PackageError::new(
                &web.failed(home),
                "without TLS anybody on the way could change it",
                "write https; only what this machine itself serves is fetched without",
            ));
        }
        Ok(web)
    }

    /// From here on a password can be asked with.
    pub(super) fn with_password(&mut self, password: Given) {
        self.password = password;
    }

    /// Whether the password may be told to whom a URL names.
    pub(super) fn tells(&self, url: &str) -> bool {
        let url = Url::parse(url);
        url.is_ok_and(|url| self.password.for_url(password::NAME, &url).is_some())
    }

    /// What comes of a request, if it has no more than these bytes. Nothing is followed.
    pub(super) async fn document(
        &self,
        request: &Request<'_>,
        most: usize,
    ) -> Result<Document, PackageError> {
        let mut head = self.ask(request).await?;
        let mut body = Vec::new();
        while let Some(bytes) = head.next().await.map_err(|why| self.told(request.url, why))? {
            if body.len() + bytes.len() > most {
                return Err(PackageError::new(
                    &self.failed(request.url),
                    &format!("the answer has more than {most} bytes"),
                    "tell whoever runs the server",
                ));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(Document { head, body })
    }

    /// What is at a URL, or where that leads.
    pub(super) async fn follow(
        &self,
        url: &str,
        headers: &[(String, String)],
    ) -> Result<Streamed, PackageError> {
        let mut at = url.to_owned();
        for _ in 0..=HOPS {
            let answer = self.ask(&Request::get(&at, headers)).await?;
            if !matches!(answer.status(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            at = answer.header("location").map(|to| self.resolved(&at, to)).unwrap_or_default();
        }
        Err(PackageError::new(
            &self.failed(url),
            "it leads elsewhere again and again",
            "tell whoever runs the server",
        ))
    }

    async fn ask(&self, request: &Request<'_>) -> Result<Streamed, PackageError> {
        let (to, home) = (self.parse(request.url)?, self.parse(&self.home)?);
        let at_home = same_server(&to, &home);
        if !at_home && to.scheme() == Scheme::Http {
            return Err(PackageError::new(
                &self.failed(&self.home),
                &format!("it leads to `{}`, without TLS", shown(request.url)),
                "tell whoever runs the server",
            ));
        }
        let is_password = |value: &str| value == password::HEADER;
        let goes = |name: &str, value: &str| {
            name != AUTHORIZATION
                || if is_password(value) { self.tells(request.url) } else { at_home }
        };
        let headers = request.headers.iter().filter(|(name, value)| goes(name, value));
        let headers: Vec<_> = headers.cloned().collect();
        let mut all = headers.iter();
        let place = all.position(|(name, value)| name == AUTHORIZATION && is_password(value));
        let blank = place.map(|place| Blank { name: password::NAME, header: Some(place) });
        let public = public(&to);
        let admits = |address: IpAddr| match (at_home, to.scheme()) {
            (true, Scheme::Https) => true,
            (true, Scheme::Http) => address.is_loopback(),
            (false, _) => public(address),
        };
        let fetch = Fetch {
            url: to,
            headers: &headers,
            secrets: blank.as_slice(),
            content: request.content,
            most: usize::MAX,
            admits: &admits,
        };
        let answer = self.client.stream(request.method.clone(), &fetch, &self.password).await;
        answer.map_err(|why| self.told(request.url, why))
    }

    /// Whether a URL is at the server that the person named.
    pub(super) fn is_home(&self, url: &str) -> bool {
        let home = Url::parse(&self.home);
        home.is_ok_and(|home| Url::parse(url).is_ok_and(|url| same_server(&url, &home)))
    }

    /// Where an answer leads.
    pub(super) fn resolved(&self, at: &str, to: &str) -> String {
        if to.starts_with('/') && !to.starts_with("//") {
            let server = at.match_indices('/').nth(2).and_then(|(end, _)| at.get(..end));
            return format!("{}{to}", server.unwrap_or(&self.home));
        }
        to.to_owned()
    }

    fn parse<'u>(&self, url: &'u str) -> Result<Url<'u>, PackageError> {
        Url::parse(url).map_err(|_| {
            PackageError::new(
                &self.failed(url),
                "that is where it leads, and it is no URL in its plain form",
                "tell whoever runs the server",
            )
        })
    }

    /// What happened.
    pub(super) fn failed(&self, url: &str) -> String {
        format!("`{}` was not {}", shown(url), self.done)
    }

    /// Why, where the network is to blame.
    pub(super) fn told(&self, url: &str, why: Fault) -> PackageError {
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
        PackageError::new(&self.failed(url), why, todo)
    }
}

/// What says who asks.
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

/// A URL for people: what stands behind `?` may be a secret.
fn shown(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}
