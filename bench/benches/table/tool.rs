//! A tool call, through the door and by the bare library
//!
//! This program starts itself again to be the server of either, behind the same walls.
//! All of it shares one core: where two threads and two processes come to lie on several
//! makes more of a difference than what they do, and another one in each run.
//!
//! # Not here
//! A server that does something: the less it does, the more the door shows.

use core::hint::black_box;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use rmcp::model::CallToolRequestParams;
use rmcp::service::serve_client;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use synapse_bench::task::task;
use synapse_bench::{Failure, Group, Row};
use synapse_connectors::approval::Approved;
use synapse_connectors::board::Board;
use synapse_connectors::confine::{Launcher, enter, start};
use synapse_connectors::server::Server;
use synapse_host::console::{Console, PATIENCE};
use synapse_host::render::{Stream, Terminal};
use synapse_kernel::engine::Door as _;
use synapse_kernel::manifest::Manifest;
use synapse_primitives::disk::Disk;
use synapse_reply::frame::HEADER;
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Runtime};

/// How this program is started to be something else.
const SERVE: &str = "serve-tools";
const CONFINE: &str = "confine";

/// What this program is, if it was started to be something else.
pub(crate) fn became(mut arguments: impl Iterator<Item = String>) -> bool {
    match arguments.next().as_deref() {
        Some(SERVE) => {
            // Whoever asked went away.
            let _ = serve();
            true
        }
        Some(CONFINE) => {
            eprintln!("error: {}", enter(arguments));
            true
        }
        _ => false,
    }
}

/// The rows; the first is the bare library.
pub(crate) fn group() -> Result<Group, Failure> {
    let unmade = |why: io::Error| format!("no server could be started: {why}");
    let program = std::env::current_exe().map_err(unmade)?;
    // What is started from here on stays there.
    let _core = Core::enter()?;
    let executor = Arc::new(executor().map_err(unmade)?);

    let text = MANIFEST.replace("PROGRAM", &program.to_string_lossy());
    let manifest = Manifest::check(&text).map_err(|all| format!("the rows' manifest: {all:?}"))?;
    let launcher = || Launcher {
        program: program.clone(),
        arguments: vec![CONFINE.to_owned()],
        secrets: Arc::default(),
    };
    let mut child = start(&manifest.start, &launcher(), &[]).map_err(unmade)?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("a server has no pipes".to_owned());
    };
    let bare = executor.block_on(async {
        let read = pipe::Receiver::from_owned_fd(OwnedFd::from(output)).map_err(unmade)?;
        let write = pipe::Sender::from_owned_fd(OwnedFd::from(input)).map_err(unmade)?;
        let service = serve_client((), AsyncRwTransport::new_client(read, write)).await;
        service.map_err(|why| format!("the server was not greeted: {why}"))
    })?;

    let told = tempfile::tempdir().map_err(unmade)?;
    let board = executor.block_on(async {
        let began = Server::start(&manifest.start, &launcher()).await;
        let listed = began.map_err(|why| why.to_string())?.list().await;
        let list = listed.map_err(|why| why.to_string())?.digest();
        let approved = vec![Approved { manifest, list }];
        let board = Board::new(approved, told.path(), launcher(), Arc::default());
        let board = board.map_err(|why| why.to_string())?;
        board.begin().await.map_err(|why| why.to_string()).map(|()| board)
    })?;
    let screen = Box::new(Console {
        terminal: Terminal::new(Stream::Error),
        agent: "bench".to_owned(),
        cancel: Arc::default(),
        patience: PATIENCE,
    });
    let disk = Disk::new(Vec::new(), &[], None, screen).map_err(|why| why.to_string())?;
    let driver = Arc::clone(&executor);
    let mut task = task(disk.with_connectors(Box::new(board)), GRANT)?;
    Ok(Group {
        title: "Tools: a call of an MCP server",
        rows: vec![
            Row::new("peer: rmcp, the bare library", move |times| {
                // It ends when this is dropped and its input with it.
                let _ = &child;
                let _core = Core::enter()?;
                (0..times).try_for_each(|_| {
                    let mut call = CallToolRequestParams::new("echo");
                    call.arguments = json!({ "text": TEXT }).as_object().cloned();
                    let result = driver.block_on(bare.call_tool(call));
                    let result = result.map_err(|why| format!("the server answered {why}"))?;
                    let said = result.content.first().and_then(|it| it.as_text());
                    whole(said.map_or(&[], |text| text.text.as_bytes()))
                })
            }),
            Row::new("through the door", move |times| {
                // What the server was told stands there as long as its rows are.
                let _ = &told;
                let _core = Core::enter()?;
                (0..times).try_for_each(|_| {
                    let reply = executor.block_on(task.submit(SENTENCE));
                    let reply = reply.map_err(|code| format!("the door answered {code}"))?;
                    whole(reply.lower().get(HEADER..).unwrap_or_default())
                })
            }),
        ],
    })
}

/// This thread is on one core, until this is dropped.
struct Core(CpuSet);

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);

impl Core {
    fn enter() -> Result<Self, Failure> {
        let entered = || {
            let all = sched_getaffinity(SELF)?;
            let last = (0..CpuSet::count()).rev().find(|core| all.is_set(*core) == Ok(true));
            let mut one = CpuSet::new();
            one.set(last.unwrap_or_default())?;
            sched_setaffinity(SELF, &one)?;
            Ok::<_, nix::Error>(Self(all))
        };
        entered().map_err(|why| format!("one core cannot be kept to: {why}"))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // What was allowed before is allowed again.
        let _ = sched_setaffinity(SELF, &self.0);
    }
}

fn whole(said: &[u8]) -> Result<(), Failure> {
    let whole = black_box(said) == TEXT.as_bytes();
    if whole { Ok(()) } else { Err("the answer is not what was said".to_owned()) }
}

/// What drives a run, too.
fn executor() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// Answers each line until there are none.
fn serve() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?).unwrap_or_default();
        let Some(id) = asked.get("id") else { continue };
        let result = match asked.get("method").and_then(Value::as_str) {
            Some("initialize") => json!({
                "protocolVersion": asked.pointer("/params/protocolVersion"),
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "bench", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            _ => {
                let text = asked.pointer("/params/arguments/text");
                json!({ "content": [{ "type": "text", "text": text }] })
            }
        };
        writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        output.flush()?;
    }
    Ok(())
}

const TEXT: &str = "what an agent says and a server says again";
const SENTENCE: &[u8] = br#"{"name":"tool_use","arguments":{"tool":"bench/echo","arguments":{"text":"what an agent says and a server says again"}}}"#;
const GRANT: &str = r#"
version = 1
primitives = ["tool_use"]
[[tools]]
tool = "bench/echo"
effect = "read"
[budget]
calls = 9223372036854775807
"#;
const MANIFEST: &str = r#"
version = 1
server = "bench"
[start]
command = ["PROGRAM", "serve-tools"]
[verbs.echo]
about = "Says it again."
effect = "read"
"#;
