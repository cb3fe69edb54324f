//! One server: its process or its address, its list, its answers
//!
//! # Invariants
//! - Every wait has an end: starting, listing and calling.
//! - What a server sends beyond its bounds is dropped, not kept.
//!
//! # Not here
//! Whether its list is the approved one (`board`); the walls (`confine`).

use core::fmt;
use core::future::Future;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, JsonRpcMessage,
    ListToolsRequest, NumberOrString, PaginatedRequestParams, ServerNotification, ServerResult,
    Tool,
};
use rmcp::service::{
    RunningService, RxJsonRpcMessage, ServiceError, TxJsonRpcMessage, serve_client,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{IntoTransport, Transport};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use synapse_kernel::manifest::Start;
use synapse_reply::Fault;
use synapse_secrets::{Given, Mask};
use tokio::net::unix::pipe;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::confine::{self, Launcher, Wall};
use crate::list::{List, TOOLS};
use crate::web::{Client, Web};

/// How long a server may take to begin, and to say what it offers.
const BEGIN: Duration = Duration::from_secs(20);

/// Bytes of a message around what it carries.
const FRAME: usize = 64 << 10;

/// A server that runs. It ends with this.
pub struct Server {
    /// What answers: a program, or what stands at an address.
    end: End,
    service: RunningService<RoleClient, ()>,
    changed: Arc<AtomicBool>,
    patience: Duration,
    echoes: Echoes,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("end", &self.end).finish_non_exhaustive()
    }
}

/// Why a server does not begin.
#[derive(Debug)]
pub enum Trouble {
    /// Nothing answers at its address.
    Unreached(Fault),
    /// It needs a secret of this name, and none is kept that is for it.
    Secret(String, String),
    /// The process could not be started.
    Start(io::Error),
    /// A wall could not be raised.
    Wall(Wall),
    /// It ended before it said what it offers.
    Died(Option<i32>),
    /// It said nothing in time.
    Silent,
    /// What it said is not what the protocol asks.
    Nonsense(String),
    /// It offers more than anybody could read.
    TooMany,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreached(fault) => write!(
                f,
                "the server cannot be reached; {}; check its `url` and this machine's network",
                fault.name()
            ),
            Self::Secret(name, server) => write!(
                f,
                "it needs the secret `{name}`, and none of this name is kept for it; `synapse \
                 secret set {name} --for tool:{server}`"
            ),
            Self::Start(why) => {
                write!(f, "the server's process cannot be started; {why}; check this machine")
            }
            Self::Wall(wall) => write!(f, "the server was not started: {wall}"),
            Self::Died(Some(status)) => write!(
                f,
                "the server ended with status {status}; it may lack a folder, a variable or the \
                 network; give it what it needs in its manifest's `[start]`"
            ),
            Self::Died(None) => f.write_str(
                "the server was ended by a signal; it may want more memory; give it what it \
                 needs in its manifest's `[start]`",
            ),
            Self::Silent => write!(
                f,
                "the server said nothing in {} s; it may speak no MCP on its output; start it by \
                 hand and look",
                BEGIN.as_secs()
            ),
            Self::Nonsense(why) => write!(
                f,
                "the server's answers are not MCP; {}; ask who wrote it",
                why.escape_debug()
            ),
            Self::TooMany => {
                write!(
                    f,
                    "the server offers more than {TOOLS} tools; nobody reads that; use another"
                )
            }
        }
    }
}

impl core::error::Error for Trouble {}

/// The variables or headers with secrets that a server is given.
fn secrets(
    start: &Start,
    launcher: &Launcher,
) -> Result<Vec<(String, Zeroizing<String>)>, Trouble> {
    let filled = launcher.secrets.filled(&start.server, &start.secrets);
    filled.map_err(|name| Trouble::Secret(name, start.server.clone()))
}

/// Looks in what a server says for the secrets that it may have.
struct Echoes(Arc<Given>, String);

impl Echoes {
    fn of(start: &Start, launcher: &Launcher) -> Self {
        Self(Arc::clone(&launcher.secrets), start.server.clone())
    }

    fn mask(&self) -> Mask<'_> {
        self.0.mask_of_tool(&self.1)
    }

    /// A server's own words, for people.
    fn nonsense(&self, why: &str) -> Trouble {
        Trouble::Nonsense(self.mask().hidden(why))
    }

    /// The same value with every text masked, as it was before it is written as JSON.
    fn masked<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T, serde_json::Error> {
        let mask = self.mask();
        if mask.is_empty() {
            return Ok(value);
        }
        serde_json::from_value(conceal(serde_json::to_value(value)?, &mask))
    }
}

fn conceal(value: Value, mask: &Mask<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(mask.hidden(&text)),
        Value::Array(items) => items.into_iter().map(|item| conceal(item, mask)).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members.map(|(key, value)| (mask.hidden(&key), conceal(value, mask))).collect()
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

/// Hears few requests of a server's own, and none whose name is long: each is kept until
/// its answer is taken, and nothing that a server asks for is granted. That its list
/// changed is known before what it sent after that is.
struct Hearing<T> {
    inner: T,
    asked: usize,
    changed: Arc<AtomicBool>,
}

/// Requests of a server's own that are heard.
const ASKS: usize = 1000;
/// Bytes of the name of one.
const ID: usize = 64;

impl<T: Transport<RoleClient>> Transport<RoleClient> for Hearing<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) => {
                    self.asked = self.asked.saturating_add(1);
                    if self.asked > ASKS {
                        return None;
                    }
                    if matches!(&request.id, NumberOrString::String(id) if id.len() > ID) {
                        continue;
                    }
                }
                JsonRpcMessage::Notification(told) => {
                    if matches!(
                        told.notification,
                        ServerNotification::ToolListChangedNotification(_)
                    ) {
                        self.changed.store(true, Ordering::Relaxed);
                    }
                }
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}

impl Server {
    /// Starts a server behind its walls and greets it.
    ///
    /// # Errors
    /// It did not begin.
    pub async fn start(start: &Start, launcher: &Launcher) -> Result<Self, Trouble> {
        let secrets = secrets(start, launcher)?;
        let started = confine::start(start, launcher, &secrets);
        let mut process = Process(started.map_err(Trouble::Start)?);
        let (read, write) = process.pipes().map_err(Trouble::Start)?;
        let transport =
            AsyncRwTransport::new_client(read, write).with_max_line_length(longest(start));
        Self::greet(start, Echoes::of(start, launcher), transport, End::Program(process)).await
    }

    /// Greets the server at an address.
    ///
    /// # Errors
    /// It did not begin.
    pub async fn reach(
        start: &Start,
        launcher: &Launcher,
        web: &Arc<dyn Web>,
    ) -> Result<Self, Trouble> {
        let patience = Duration::from_secs(start.seconds);
        let secrets = secrets(start, launcher)?;
        let client = Client::new(Arc::clone(web), secrets, patience, longest(start));
        let transport = client.transport(&start.url);
        Self::greet(start, Echoes::of(start, launcher), transport, End::Address(client)).await
    }

    async fn greet<T, E, A>(
        start: &Start,
        echoes: Echoes,
        transport: T,
        mut end: End,
    ) -> Result<Self, Trouble>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: core::error::Error + Send + Sync + 'static,
    {
        let changed = Arc::new(AtomicBool::new(false));
        let inner = transport.into_transport();
        let transport = Hearing { inner, asked: 0, changed: Arc::clone(&changed) };
        let greeted = timeout(BEGIN, serve_client((), transport)).await;
        let service = match greeted {
            Err(_) => return Err(end.trouble().unwrap_or(Trouble::Silent)),
            Ok(Err(why)) => {
                // The end of its output is seen before that of the process.
                tokio::time::sleep(Duration::from_millis(100)).await;
                return Err(end.trouble().unwrap_or_else(|| echoes.nonsense(&why.to_string())));
            }
            Ok(Ok(service)) => service,
        };
        let patience = Duration::from_secs(start.seconds);
        Ok(Self { end, service, changed, patience, echoes })
    }

    /// What it offers now.
    ///
    /// # Errors
    /// It does not say.
    pub async fn list(&mut self) -> Result<List, Trouble> {
        self.changed.store(false, Ordering::Relaxed);
        match timeout(BEGIN, self.pages()).await {
            Err(_) => Err(self.end.trouble().unwrap_or(Trouble::Silent)),
            Ok(listed) => {
                let tools = self.echoes.masked(listed?);
                let tools = tools.map_err(|why| self.echoes.nonsense(&why.to_string()))?;
                Ok(List::new(&tools))
            }
        }
    }

    async fn pages(&self) -> Result<Vec<Tool>, Trouble> {
        let mut tools = Vec::new();
        let mut cursor = None;
        // Asked for anew: how long an answer holds is not the server's to say.
        for _ in 0..TOOLS {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let answer = self.service.send_request(request).await;
            let answer = answer.map_err(|why| self.echoes.nonsense(&why.to_string()))?;
            let ServerResult::ListToolsResult(page) = answer else {
                return Err(Trouble::Nonsense("another answer than a list".to_owned()));
            };
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if tools.len() > TOOLS {
                break;
            }
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(Trouble::TooMany)
    }

    /// Whether it said that its list changed since it was last asked for.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// An answer without what it was given, if that stands there as it is written.
    #[must_use]
    pub fn hide(&self, answer: &[u8]) -> Option<Vec<u8>> {
        self.echoes.mask().hide(answer)
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// `TimedOut`, `Closed` where it died, `BadAnswer`.
    pub async fn call(&self, tool: &str, arguments: JsonObject) -> Result<CallToolResult, Fault> {
        let mut call = CallToolRequestParams::new(tool.to_owned());
        call.arguments = Some(arguments);
        match timeout(self.patience, self.service.call_tool(call)).await {
            Err(_) => Err(Fault::TimedOut),
            Ok(Ok(result)) => self.echoes.masked(result).map_err(|_| Fault::BadAnswer),
            Ok(Err(ServiceError::TransportClosed | ServiceError::TransportSend(_))) => {
                Err(self.end.fault().unwrap_or(Fault::Closed))
            }
            Ok(Err(_)) => Err(Fault::BadAnswer),
        }
    }
}

/// Bytes of one message, in which a byte of an answer may stand as six.
const fn longest(start: &Start) -> usize {
    start.reply.saturating_mul(6).saturating_add(FRAME)
}

/// What stands at the other end.
#[derive(Debug)]
enum End {
    Program(Process),
    Address(Client),
}

impl End {
    /// Why it does not answer, if that is known.
    fn trouble(&mut self) -> Option<Trouble> {
        match self {
            Self::Program(process) => process.trouble(),
            // What it answered that is not MCP, the protocol's library says better.
            Self::Address(client) => {
                client.fault().filter(|fault| *fault != Fault::BadAnswer).map(Trouble::Unreached)
            }
        }
    }

    /// What an exchange failed by, if that is known.
    fn fault(&self) -> Option<Fault> {
        match self {
            Self::Program(_) => None,
            Self::Address(client) => client.fault(),
        }
    }
}

/// A process and all that it started, which end with this.
#[derive(Debug)]
struct Process(Child);

impl Process {
    fn pipes(&mut self) -> io::Result<(pipe::Receiver, pipe::Sender)> {
        let lost = || io::Error::from(io::ErrorKind::BrokenPipe);
        let output = OwnedFd::from(self.0.stdout.take().ok_or_else(lost)?);
        let input = OwnedFd::from(self.0.stdin.take().ok_or_else(lost)?);
        Ok((pipe::Receiver::from_owned_fd(output)?, pipe::Sender::from_owned_fd(input)?))
    }

    /// Why it is over, if it is.
    fn trouble(&mut self) -> Option<Trouble> {
        let status = self.0.try_wait().ok()??.code();
        Some(match status.and_then(Wall::of) {
            Some(wall) => Trouble::Wall(wall),
            None => Trouble::Died(status),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What is over has no group any more.
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}
