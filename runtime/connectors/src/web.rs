//! A server at an address: MCP over HTTP, on the network that a board brings
//!
//! The protocol's library speaks it, and keeps sessions and broken streams. What it has
//! to send goes through here, so that it is sent as a call of an agent's is: to one
//! address, once, through no proxy, with no cookie, and nothing is followed.
//!
//! # Invariants
//! - What a server sends is counted before it is kept: an answer, and each event.
//! - Every header is written in one place.
//!
//! # Not here
//! Connecting, and which addresses may be connected to (the board's network).

use core::fmt;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use synapse_reply::Fault;
use zeroize::Zeroizing;

/// The network, for servers at an address.
pub trait Web: Send + Sync {
    /// Sends a request to a URL of a manifest. An address that is not globally
    /// reachable is connected to only where the URL names it.
    fn send<'a>(&'a self, request: &'a Ask) -> Waiting<'a, Box<dyn Answer>>;
}

/// An answer that comes piece by piece.
pub trait Answer: Send {
    /// Its status.
    fn status(&self) -> u16;
    /// A header that stands there once.
    fn header(&self, name: &str) -> Option<&str>;
    /// The next piece of its body, until the end.
    fn next(&mut self) -> Waiting<'_, Option<Bytes>>;
}

/// What the network is waited for.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// A request.
pub struct Ask {
    /// The manifest's own URL.
    pub url: Arc<str>,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// What a POST sends; without it this is a GET.
    pub content: Option<Vec<u8>>,
    /// How long nothing of the answer may come.
    pub pause: Duration,
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("url", &self.url).finish_non_exhaustive()
    }
}

/// What speaks to one server.
#[derive(Clone)]
pub(crate) struct Client {
    web: Arc<dyn Web>,
    /// Headers with secrets.
    secrets: Arc<[(String, Zeroizing<String>)]>,
    /// How long a call may take.
    patience: Duration,
    /// Bytes of one message.
    longest: usize,
    fault: Arc<Mutex<Option<Fault>>>,
    /// Streams that were asked for since the last request.
    streams: Arc<AtomicUsize>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(
        web: Arc<dyn Web>,
        secrets: Vec<(String, Zeroizing<String>)>,
        patience: Duration,
        longest: usize,
    ) -> Self {
        Self {
            web,
            secrets: secrets.into(),
            patience,
            longest,
            fault: Arc::default(),
            streams: Arc::default(),
        }
    }

    /// A connection to the server at this URL, as the protocol's library has it.
    pub(crate) fn transport(&self, url: &str) -> StreamableHttpClientTransport<Self> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url)
            // Another session may be another server: its list is asked for first.
            .reinit_on_expired_session(false)
            .control_request_timeout(self.patience);
        config.retry_config = Arc::new(Retries);
        StreamableHttpClientTransport::with_client(self.clone(), config)
    }

    /// What the last exchange failed by, if one did.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Every header that a server is sent, but those of HTTP itself.
    fn headers(
        &self,
        session: Option<&str>,
        after: Option<String>,
        said: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Vec<(String, String)>, Fault> {
        let said = said.iter().map(|(name, value)| {
            let value = value.to_str().map_err(|_| Fault::BadAnswer)?;
            Ok((name.as_str().to_owned(), value.to_owned()))
        });
        let mut headers = said.collect::<Result<Vec<_>, Fault>>()?;
        let session = session.map(|id| (SESSION, id.to_owned()));
        let after = after.map(|id| ("last-event-id", id));
        let own = [("accept", format!("{JSON}, {EVENTS}")), ("content-type", JSON.to_owned())];
        let own = own.into_iter().chain(session).chain(after);
        headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let secrets = self.secrets.iter();
        headers.extend(secrets.map(|(name, value)| (name.to_lowercase(), value.to_string())));
        Ok(headers)
    }

    async fn send(&self, ask: Result<Ask, Fault>) -> Result<Box<dyn Answer>, Failed> {
        let sent = match &ask {
            Ok(ask) => self.web.send(ask).await,
            Err(fault) => Err(*fault),
        };
        sent.map_err(Broken).map_err(StreamableHttpError::Client)
    }

    /// Keeps what an exchange failed by: the protocol's library does not tell.
    fn kept<T>(&self, exchanged: Result<T, Failed>) -> Result<T, Failed> {
        if let Err(why) = &exchanged {
            let fault = match why {
                StreamableHttpError::Client(Broken(fault)) => *fault,
                StreamableHttpError::ResponseBodyTooLarge { .. } => Fault::ReplyTooLarge,
                StreamableHttpError::SessionExpired => Fault::Closed,
                _ => Fault::BadAnswer,
            };
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        }
        exchanged
    }

    async fn post(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        said: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if is_request {
            self.streams.store(0, Ordering::Relaxed);
        }
        let content = Some(serde_json::to_vec(&message)?);
        let headers = self.headers(session.as_deref(), None, said);
        let pause = self.patience;
        let ask = headers.map(|headers| Ask { url, headers, content, pause });
        let mut answer = self.send(ask).await?;
        let id = answer.header(SESSION).map(ToOwned::to_owned);
        match (answer.status(), media(&*answer)) {
            (202 | 204, _) => Ok(StreamableHttpPostResponse::Accepted),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200..300, _) if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            (200..300, Some(EVENTS)) => {
                Ok(StreamableHttpPostResponse::Sse(self.events(answer), id))
            }
            (200..300, Some(JSON)) => {
                let body = self.whole(&mut *answer).await?;
                Ok(StreamableHttpPostResponse::Json(serde_json::from_slice(&body)?, id))
            }
            (200..300, other) => {
                Err(StreamableHttpError::UnexpectedContentType(other.map(ToOwned::to_owned)))
            }
            (status, _) => Err(refused(status)),
        }
    }

    /// The whole of an answer.
    async fn whole(&self, answer: &mut dyn Answer) -> Result<Vec<u8>, Failed> {
        let mut body = Vec::new();
        while let Some(bytes) = answer.next().await.map_err(Broken).map_err(Failed::Client)? {
            if body.len().saturating_add(bytes.len()) > self.longest {
                return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: self.longest });
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// The events of an answer.
    fn events(&self, answer: Box<dyn Answer>) -> BoxStream<'static, Result<Sse, SseError>> {
        let event = Event { bytes: 0, line: 0, last: 0, longest: self.longest };
        let pieces = stream::unfold(Some((answer, event)), |state| async {
            let (mut answer, mut event) = state?;
            let piece = match answer.next().await.transpose()? {
                Ok(bytes) if event.takes(&bytes) => Ok(bytes),
                Ok(_) => Err(Broken(Fault::ReplyTooLarge)),
                Err(fault) => Err(Broken(fault)),
            };
            let goes_on = piece.is_ok().then_some((answer, event));
            Some((piece, goes_on))
        });
        SseStream::from_bytes_stream(Box::pin(pieces)).boxed()
    }
}

impl StreamableHttpClient for Client {
    type Error = Broken;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        said: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.kept(self.post(url, message, session, said).await)
    }

    /// A session is left: the server forgets it by itself, and a run that ends does not
    /// wait for that.
    async fn delete_session(
        &self,
        _: Arc<str>,
        _: Arc<str>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        Ok(())
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        after: Option<String>,
        _: Option<String>,
        said: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        // The library counts those that break at once, and waits as long as a server says.
        match self.streams.fetch_add(1, Ordering::Relaxed) {
            0 => {}
            1..=STREAMS => tokio::time::sleep(BETWEEN).await,
            _ => return Err(StreamableHttpError::ServerDoesNotSupportSse),
        }
        let headers = self.headers(session.as_deref(), after, said);
        let ask = headers.map(|headers| Ask { url, headers, content: None, pause: LISTENING });
        let answer = self.send(ask).await?;
        match (answer.status(), media(&*answer)) {
            (200, Some(EVENTS)) => Ok(self.events(answer)),
            (405, _) => Err(StreamableHttpError::ServerDoesNotSupportSse),
            (404, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            (200, other) => {
                Err(StreamableHttpError::UnexpectedContentType(other.map(ToOwned::to_owned)))
            }
            (status, _) => Err(refused(status)),
        }
    }
}

/// Counts the bytes of an event, which ends with an empty line.
struct Event {
    bytes: usize,
    /// Bytes of the line at hand.
    line: usize,
    last: u8,
    longest: usize,
}

impl Event {
    /// Whether no event is longer than one may be.
    fn takes(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| {
            self.bytes = self.bytes.saturating_add(1);
            match byte {
                // The second half of a line's end.
                b'\n' if self.last == b'\r' => {}
                b'\n' | b'\r' => {
                    if self.line == 0 {
                        self.bytes = 0;
                    }
                    self.line = 0;
                }
                _ => self.line = self.line.saturating_add(1),
            }
            self.last = *byte;
            self.bytes <= self.longest
        })
    }
}

/// What the network came to, where the protocol's library wants an error.
#[derive(Debug)]
pub(crate) struct Broken(Fault);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl core::error::Error for Broken {}

type Failed = StreamableHttpError<Broken>;

/// Goes on with a stream that broke, a few times.
#[derive(Debug)]
struct Retries;

impl SseRetryPolicy for Retries {
    fn retry(&self, times: usize) -> Option<Duration> {
        (times < STREAMS).then_some(BETWEEN)
    }
}

/// What kind of body an answer has.
fn media(answer: &dyn Answer) -> Option<&str> {
    let named = answer.header("content-type")?.split(';').next()?.trim();
    [JSON, EVENTS].into_iter().find(|known| named.eq_ignore_ascii_case(known)).or(Some(named))
}

fn refused(status: u16) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(format!("it answered with HTTP {status}").into())
}

/// How often a stream that broke is gone on with, and how long that waits.
const STREAMS: usize = 3;
const BETWEEN: Duration = Duration::from_millis(500);
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

/// How long a stream may be quiet that tells of changes alone.
const LISTENING: Duration = Duration::from_hours(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_counted_to_its_end_however_lines_end() {
        for end in ["\n", "\r", "\r\n"] {
            let mut event = Event { bytes: 0, line: 0, last: 0, longest: 12 };
            for _ in 0..9 {
                assert!(event.takes(format!("data: a{end}{end}").as_bytes()), "{end:?}");
            }
            let line = format!("a{end}");
            assert!(!(0..12).all(|_| event.takes(line.as_bytes())), "{end:?}");
        }
    }
}
