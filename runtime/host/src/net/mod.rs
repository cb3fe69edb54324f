//! The network of a run: one request, one connection, one answer; and its listeners.
//!
//! A client that does less than others on purpose. It knows no proxy, no cookie,
//! no password file and no environment variable, follows nothing, unpacks nothing
//! and keeps no connection, so that what a call did is what its sentence says.
//!
//! # Invariants
//! - A name is resolved once, every address is asked about before any is
//!   connected to, and no other address is.
//! - An answer costs at most its time and its bytes, whatever the other end does.
//! - Over TLS nothing is sent before the other end proved to be the URL's host, by
//!   the roots that are built in.
//!
//! # Not here
//! Which hosts and headers are granted, which addresses are covered (the
//! boundary); what an answer looks like to a guest (`synapse_primitives`).

mod http;
mod listen;
#[cfg(test)]
pub(crate) mod tests;
mod web;
mod wire;

use core::net::{IpAddr, SocketAddr};
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;

pub(crate) use hyper::Method;
use hyper::body::Bytes;
use rustls::client::Resumption;
use rustls::pki_types::{DnsName, ServerName};
use rustls::{ClientConfig, RootCertStore};
use synapse_boundary::url::{Host, Scheme, Url};
use synapse_primitives::Fault;
use synapse_primitives::platform::{Fetch, Fetched, Fetching, Listener, Net};
use synapse_secrets::Given;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

pub(crate) use web::public;
use wire::{Stream, System, Wire};

/// How long it may take until a request can be sent: the name, the connection, TLS.
pub const OPENING: Duration = Duration::from_secs(10);
/// How long one address may take to accept a connection, where there are others.
pub const ATTEMPT: Duration = Duration::from_secs(3);
/// How long a whole call may take.
pub const WHOLE: Duration = Duration::from_mins(1);
/// How long nothing of an answer may come that comes piece by piece.
pub const PAUSE: Duration = Duration::from_secs(30);

/// What fetches for a run.
pub struct Client {
    wire: Box<dyn Wire>,
    tls: TlsConnector,
    opening: Duration,
    whole: Duration,
    pause: Duration,
    cancel: Arc<AtomicBool>,
    secrets: Arc<Given>,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client on this machine's network. `cancel` is set to end the run, and what
    /// it waits for.
    ///
    /// # Errors
    /// The cryptography that is built in has no version of TLS, which is a bug.
    pub fn new(cancel: Arc<AtomicBool>) -> Result<Self, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
        Self::with(Box::new(System), roots, cancel)
    }

    fn with(
        wire: Box<dyn Wire>,
        roots: RootCertStore,
        cancel: Arc<AtomicBool>,
    ) -> Result<Self, rustls::Error> {
        let provider = rustls::crypto::ring::default_provider();
        let mut config = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A ticket would let a server know one task by another's visit.
        config.resumption = Resumption::disabled();
        let tls = TlsConnector::from(Arc::new(config));
        let secrets = Arc::default();
        Ok(Self { wire, tls, opening: OPENING, whole: WHOLE, pause: PAUSE, cancel, secrets })
    }

    /// The same client, with these secrets.
    #[must_use]
    pub fn given(self, secrets: Arc<Given>) -> Self {
        Self { secrets, ..self }
    }

    /// Sends a request whose answer's body is too long, or too slow, for a call, and comes
    /// piece by piece. It can be stopped by dropping it only. The secrets are its own, and
    /// none is looked for in what comes back.
    ///
    /// # Errors
    /// As a call's.
    pub(crate) async fn stream(
        &self,
        method: Method,
        request: &Fetch<'_>,
        given: &Given,
    ) -> Result<Streamed, Fault> {
        self.stream_for(method, request, given, self.pause).await
    }

    /// The same, where nothing of it may come for so long.
    async fn stream_for(
        &self,
        method: Method,
        request: &Fetch<'_>,
        given: &Given,
        pause: Duration,
    ) -> Result<Streamed, Fault> {
        let begun =
            async { http::Answer::to(self.open(request).await?, method, request, given).await };
        let answer = timeout(self.opening.saturating_add(pause), begun).await;
        Ok(Streamed { answer: answer.map_err(|_| Fault::TimedOut)??, pause })
    }

    async fn answer(&self, request: Fetch<'_>) -> Result<Fetched, Fault> {
        let opened = timeout(self.opening, self.open(&request)).await;
        http::exchange(opened.map_err(|_| Fault::TimedOut)??, &request, &self.secrets).await
    }

    /// Connects to where a request goes, and sees that it is there.
    async fn open(&self, request: &Fetch<'_>) -> Result<Box<dyn Stream>, Fault> {
        let url = &request.url;
        let addresses = match url.host() {
            Host::Name(name) => {
                self.wire.resolve(name.as_str()).await.map_err(|_| Fault::NotFound)?
            }
            Host::V4(address) => vec![IpAddr::V4(address)],
            Host::V6(address) => vec![IpAddr::V6(address)],
        };
        // One that is not covered makes the whole name suspect.
        if !addresses.iter().all(|address| (request.admits)(*address)) {
            return Err(Fault::Address);
        }
        let stream = self.connect(&addresses, url.port()).await?;
        match url.scheme() {
            Scheme::Http => Ok(stream),
            Scheme::Https => {
                let proven = self.tls.connect(server(url)?, stream).await;
                Ok(Box::new(proven.map_err(|why| unproven(&why))?))
            }
        }
    }

    /// A connection to the first address that accepts one.
    async fn connect(&self, addresses: &[IpAddr], port: u16) -> Result<Box<dyn Stream>, Fault> {
        let mut why = Fault::NotFound;
        for (place, address) in addresses.iter().enumerate() {
            let is_last = place + 1 == addresses.len();
            let connecting = self.wire.connect((*address, port).into());
            why = match timeout(if is_last { self.opening } else { ATTEMPT }, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => unreached(&error),
                Err(_) => Fault::TimedOut,
            };
        }
        Err(why)
    }
}

/// An answer that comes piece by piece.
pub(crate) struct Streamed {
    answer: http::Answer,
    pause: Duration,
}

impl Streamed {
    pub(crate) fn status(&self) -> u16 {
        self.answer.head.status.as_u16()
    }

    /// A header that stands there once, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.answer.head.headers.get_all(name).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        value.to_str().ok()
    }

    /// The next piece of the body, until its end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        timeout(self.pause, self.answer.next()).await.unwrap_or(Err(Fault::TimedOut))
    }
}

impl Net for Client {
    fn serves(&self, secret: &str, url: &Url<'_>) -> bool {
        self.secrets.for_url(secret, url).is_some()
    }

    fn fetch<'a>(&'a self, request: Fetch<'a>) -> Fetching<'a> {
        Box::pin(async move {
            let until = Instant::now() + self.whole;
            let mut answer = pin!(self.answer(request));
            loop {
                let step = until.saturating_duration_since(Instant::now()).min(STEP);
                if let Ok(answer) = timeout(step, answer.as_mut()).await {
                    return answer;
                }
                if self.cancel.load(Ordering::Relaxed) {
                    return Err(Fault::Cancelled);
                }
                if Instant::now() >= until {
                    return Err(Fault::TimedOut);
                }
            }
        })
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, Fault> {
        listen::listen(at)
    }
}

/// Whom a certificate must name.
fn server(url: &Url<'_>) -> Result<ServerName<'static>, Fault> {
    Ok(match url.host() {
        Host::Name(name) => {
            let name = DnsName::try_from(name.as_str().to_owned());
            ServerName::DnsName(name.map_err(|_| Fault::Unproven)?)
        }
        Host::V4(address) => ServerName::IpAddress(IpAddr::V4(address).into()),
        Host::V6(address) => ServerName::IpAddress(IpAddr::V6(address).into()),
    })
}

fn unreached(why: &io::Error) -> Fault {
    match why.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Fault::Closed,
        io::ErrorKind::TimedOut => Fault::TimedOut,
        io::ErrorKind::PermissionDenied => Fault::HostDenied,
        _ => Fault::Io,
    }
}

fn unproven(why: &io::Error) -> Fault {
    let why = why.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>());
    match why {
        Some(rustls::Error::InvalidCertificate(_)) => Fault::Unproven,
        Some(_) => Fault::BadAnswer,
        None => Fault::Closed,
    }
}

/// How often a wait looks whether the run is to end.
const STEP: Duration = Duration::from_millis(100);
