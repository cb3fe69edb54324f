//! HTTP/1.1, as little of it as one request and one answer need
//!
//! # Invariants
//! - An answer that could be read in two ways is no answer: two lengths, a length
//!   beside a transfer encoding, another encoding than `chunked`, another protocol.
//! - No more of a body is kept than the call may have.
//! - I17: a secret's value is put where its blank stood, and no echo of it in a form
//!   that is looked for leaves this module.
//!
//! # Not here
//! Connecting, time (`super`).

use core::error::Error as _;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::Poll;
use std::io;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use synapse_boundary::url::{Host, Url};
use synapse_primitives::Fault;
use synapse_primitives::platform::{Fetch, Fetched};
use synapse_secrets::{Given, Mask, Secret, given};
use zeroize::Zeroizing;

use super::wire::Stream;

/// Bytes that an answer's headers may have, and headers.
const HEAD: usize = 64 << 10;
const HEADERS: usize = 256;

/// Sends a request on a connection of its own, with its secrets, and reads the answer.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    request: &Fetch<'_>,
    given: &Given,
) -> Result<Fetched, Fault> {
    let mut answer = Answer::to(stream, usual(request), request, given).await?;
    let mask = given.mask_of_url(&request.url);
    if !mask.is_empty() && !is_readable(&answer.head) {
        return Err(Fault::BadAnswer);
    }
    let fits =
        |length: usize| if length <= request.most { Ok(()) } else { Err(Fault::ReplyTooLarge) };
    fits(usize::try_from(answer.body.size_hint().lower()).unwrap_or(usize::MAX))?;
    let mut body = Vec::new();
    while let Some(bytes) = answer.next().await? {
        fits(body.len().saturating_add(bytes.len()))?;
        body.extend_from_slice(&bytes);
    }
    let headers = answer.head.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str().into(), value.as_bytes().into()));
    let status = answer.head.status.as_u16();
    let mut fetched = Fetched { status, headers: headers.collect(), body };
    conceal(&mut fetched, &mask);
    fits(fetched.body.len()).map(|()| fetched)
}

/// Whether an echo in the answer's body would be seen: packed, or in part, it is not.
fn is_readable(head: &Parts) -> bool {
    let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    head.headers.get_all(header::CONTENT_ENCODING).iter().all(plain)
        && head.status != StatusCode::PARTIAL_CONTENT
        && !head.headers.contains_key(header::CONTENT_RANGE)
}

/// Puts `{secret:NAME}` in place of each echo. Of a body that has one the length that
/// was sent goes too, since it tells that of the value.
fn conceal(fetched: &mut Fetched, mask: &Mask<'_>) {
    for (name, value) in &mut fetched.headers {
        if let Some(hidden) = mask.hide(name.as_bytes()) {
            *name = String::from_utf8_lossy(&hidden).into_owned();
        }
        if let Some(hidden) = mask.hide(value) {
            *value = hidden;
        }
    }
    if let Some(hidden) = mask.hide(&fetched.body) {
        fetched.body = hidden;
        fetched.headers.retain(|(name, _)| name != header::CONTENT_LENGTH.as_str());
    }
}

/// An answer, whose body comes piece by piece.
pub(super) struct Answer {
    pub(super) head: Parts,
    body: Incoming,
    connection: Driven,
    // A connection whose sender is gone may close before the body came.
    _sender: http1::SendRequest<Full<Bytes>>,
}

impl Answer {
    /// Sends a request on a connection of its own, with its secrets, and reads the head of
    /// the answer.
    pub(super) async fn to(
        stream: Box<dyn Stream>,
        method: Method,
        request: &Fetch<'_>,
        given: &Given,
    ) -> Result<Self, Fault> {
        let named = request.secrets.iter().map(|blank| given.for_url(blank.name, &request.url));
        let secrets: Vec<&Secret> = named.collect::<Option<_>>().ok_or(Fault::Changed)?;
        let written = written(method, request, &secrets)?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD)
            .max_headers(HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|why| broken(&why))?;
        // How the connection ends shows in the answer.
        let mut connection = Driven(Some(Box::pin(async move { drop(connection.await) })));
        let response = connection.beside(sender.send_request(written)).await;
        let (head, body) = response.map_err(|why| broken(&why))?.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS || !has_one_end(&head.headers) {
            return Err(Fault::BadAnswer);
        }
        Ok(Self { head, body, connection, _sender: sender })
    }

    /// The next piece of the body, until its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        while let Some(frame) = self.connection.beside(self.body.frame()).await {
            // Trailers say nothing that a length has not bounded; they are dropped.
            if let Ok(bytes) = frame.map_err(|why| broken(&why))?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}

/// A connection, which moves only while it is polled.
struct Driven(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Driven {
    /// What comes of this while the connection moves.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            if let Some(connection) = &mut self.0
                && connection.as_mut().poll(context).is_ready()
            {
                self.0 = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }
}

/// How a call asks.
pub(super) fn usual(request: &Fetch<'_>) -> Method {
    if request.content.is_some() { Method::POST } else { Method::GET }
}

/// The request as it is sent: each secret stands where its blank stood.
fn written(
    method: Method,
    request: &Fetch<'_>,
    secrets: &[&Secret],
) -> Result<Request<Full<Bytes>>, Fault> {
    let url = &request.url;
    let blanks = || request.secrets.iter().zip(secrets);
    let mut target = Zeroizing::new(url.path().to_owned());
    if let Some(query) = url.query() {
        let mut query = Zeroizing::new(query.to_owned());
        for (_, secret) in blanks().filter(|(blank, _)| blank.header.is_none()) {
            query = given::query(&query, secret);
        }
        target = given::joined([url.path(), "?", &query]);
    }
    let content = request.content.map(Bytes::copy_from_slice).unwrap_or_default();
    let mut written = Request::builder()
        .method(method)
        .uri(&**target)
        .header(header::HOST, authority(url))
        .header(header::CONNECTION, HeaderValue::from_static("close"));
    for (place, (name, value)) in request.headers.iter().enumerate() {
        let secret = blanks().find(|(blank, _)| blank.header == Some(place));
        written = match secret {
            Some((_, secret)) => {
                let filled = given::header(value, secret).ok_or(Fault::Changed)?;
                let mut value = HeaderValue::from_str(&filled).map_err(|_| Fault::TooLarge)?;
                value.set_sensitive(true);
                written.header(name, value)
            }
            None => written.header(name, value),
        };
    }
    written.body(Full::new(content)).map_err(|_| Fault::TooLarge)
}

/// A URL's host, and its port unless it is the scheme's own.
fn authority(url: &Url<'_>) -> String {
    let host = match url.host() {
        Host::Name(name) => name.as_str().to_owned(),
        Host::V4(address) => address.to_string(),
        Host::V6(address) => format!("[{address}]"),
    };
    if url.port() == url.scheme().number() { host } else { format!("{host}:{}", url.port()) }
}

/// Whether all readers would agree where the body ends.
fn has_one_end(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let lengths = headers.get_all(header::CONTENT_LENGTH).iter().count();
    match (encodings.next(), encodings.next()) {
        (None, _) => lengths <= 1,
        (Some(encoding), None) => {
            lengths == 0 && encoding.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
        (Some(_), Some(_)) => false,
    }
}

/// Why an exchange came to nothing: what was said, or else the connection, which
/// was reset or cut off without the end that TLS has.
fn broken(why: &hyper::Error) -> Fault {
    let below = why.source().and_then(|why| why.downcast_ref::<io::Error>());
    let unreadable = below.is_some_and(|why| {
        matches!(why.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    });
    if why.is_parse() || unreadable { Fault::BadAnswer } else { Fault::Closed }
}
