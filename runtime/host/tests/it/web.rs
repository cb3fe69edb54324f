//! Connectors at an address: servers over HTTP, honest and not.

use core::time::Duration;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use synapse_connectors::approval::Approved;
use synapse_connectors::board::{Board, Unready};
use synapse_connectors::confine::Launcher;
use synapse_connectors::server::{Server, Trouble};
use synapse_connectors::web::Web;
use synapse_host::net::Client;
use synapse_kernel::manifest::Manifest;
use synapse_primitives::Fault;
use synapse_primitives::platform::{Connectors as _, Use};
use synapse_primitives::rest::Names;
use synapse_primitives::tree::NoTree;
use synapse_secrets::{Given, Secret, Value};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A server that ends with the test.
struct Running(Child, String, &'static str);

impl Running {
    fn start(mode: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/web.py");
        let mut child = Command::new("/usr/bin/python3")
            .args(["-I", script, mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let keyed = "secrets = { authorization = \"Bearer {secret:key}\" }\n";
        let keys = if mode == "keyed" { keyed } else { "" };
        Self(child, format!("http://127.0.0.1:{}/mcp", port.trim()), keys)
    }

    fn manifest(&self) -> Manifest {
        manifest(&self.1, self.2)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn manifest(url: &str, keys: &str) -> Manifest {
    let text = format!(
        "version = 1\nserver = \"test\"\n[start]\nurl = \"{url}\"\nseconds = 3\nreply = 4096\n\
         {keys}[verbs.echo]\nabout = \"Says it again.\"\neffect = \"read\"\n"
    );
    Manifest::check(&text).unwrap()
}

fn launcher() -> Launcher {
    let kept = vec![Secret::new("key", Value::parse(VALUE).unwrap(), &["tool:test"]).unwrap()];
    let secrets = Arc::new(Given::new(kept, |_| true));
    Launcher { program: "/bin/false".into(), arguments: Vec::new(), secrets }
}

const VALUE: &[u8] = b"hunter2-hunter2";

fn executor() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn web() -> Arc<dyn Web> {
    Arc::new(Client::new(Arc::default()).unwrap())
}

/// A board whose server offers what was approved, and where it keeps what was told.
fn board(runtime: &Runtime, server: &Running) -> (Board, TempDir) {
    let list = runtime.block_on(async {
        let mut server = Server::reach(&server.manifest().start, &launcher(), &web()).await?;
        server.list().await
    });
    let approved = Approved { manifest: server.manifest(), list: list.unwrap().digest() };
    let told = TempDir::new().unwrap();
    let board = Board::new(vec![approved], told.path(), launcher(), Arc::default()).unwrap();
    (board.with_web(web()), told)
}

fn echo(runtime: &Runtime, board: &Board) -> Result<String, Fault> {
    let mut carries = Names::NONE;
    carries.add("payroll");
    let arguments = r#"{"text":"hello"}"#;
    let call =
        Use { tool: "test/echo", arguments, carries: &carries, most: 1 << 20, tree: &NoTree };
    let used = runtime.block_on(board.tool(call));
    assert!(used.carried.iter().next().is_none(), "what leaves the machine is not kept");
    used.reply.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn servers_over_http_answer_in_each_way_that_there_is() {
    let runtime = executor();
    for mode in ["honest", "events", "resumed"] {
        let server = Running::start(mode);
        let (board, _told) = board(&runtime, &server);
        runtime.block_on(board.begin()).unwrap();
        for _ in 0..2 {
            assert_eq!(echo(&runtime, &board).as_deref(), Ok("hello"), "{mode}");
        }
    }
}

#[test]
fn i17_a_secret_of_a_server_over_http_is_sent_and_masked() {
    let runtime = executor();
    let server = Running::start("keyed");
    let list = runtime.block_on(async {
        let server = Server::reach(&server.manifest().start, &launcher(), &web()).await;
        server.unwrap().list().await.unwrap().text()
    });
    assert!(list.contains("Says to Bearer {secret:key}."), "{list}");
    let (board, _told) = board(&runtime, &server);
    runtime.block_on(board.begin()).unwrap();
    assert_eq!(echo(&runtime, &board).as_deref(), Ok("hello from Bearer {secret:key}"));
}

#[test]
fn a_stream_that_always_ends_is_asked_for_a_few_times() {
    let runtime = executor();
    let server = Running::start("again");
    let (board, _told) = board(&runtime, &server);
    runtime.block_on(board.begin()).unwrap();
    echo(&runtime, &board).unwrap_err();
    let streams: usize = echo(&runtime, &board).unwrap().parse().unwrap();
    assert!((1..=16).contains(&streams), "{streams}");
}

#[test]
fn hostile_servers_over_http_give_faults_in_their_time() {
    let runtime = executor();
    for (mode, fault) in [
        ("hang", Fault::TimedOut),
        ("reset", Fault::Closed),
        ("huge", Fault::ReplyTooLarge),
        ("nonsense", Fault::BadAnswer),
        ("elsewhere", Fault::BadAnswer),
        ("page", Fault::BadAnswer),
    ] {
        let server = Running::start(mode);
        let (board, _told) = board(&runtime, &server);
        runtime.block_on(board.begin()).unwrap();
        let began = Instant::now();
        assert_eq!(echo(&runtime, &board), Err(fault), "{mode}");
        assert!(began.elapsed() < Duration::from_secs(8), "{mode}");
    }
    // What breaks off is asked for again, as long as there is time.
    for mode in ["die", "flood", "asks"] {
        let server = Running::start(mode);
        let (board, _told) = board(&runtime, &server);
        runtime.block_on(board.begin()).unwrap();
        let began = Instant::now();
        let fault = echo(&runtime, &board).unwrap_err();
        let known = [Fault::TimedOut, Fault::Closed, Fault::BadAnswer, Fault::ReplyTooLarge];
        assert!(known.contains(&fault), "{mode}: {fault:?}");
        assert!(began.elapsed() < Duration::from_secs(8), "{mode}");
    }
}

#[test]
fn a_list_that_changes_in_mid_flight_is_held_over_http_too() {
    let runtime = executor();
    let server = Running::start("changed");
    let (board, _told) = board(&runtime, &server);
    runtime.block_on(board.begin()).unwrap();
    assert_eq!(echo(&runtime, &board).as_deref(), Ok("hello"));
    assert_eq!(echo(&runtime, &board), Err(Fault::Changed));
}

#[test]
fn a_session_that_ended_is_a_fault_and_the_next_call_begins_another() {
    let runtime = executor();
    let server = Running::start("expired");
    let (board, _told) = board(&runtime, &server);
    runtime.block_on(board.begin()).unwrap();
    assert_eq!(echo(&runtime, &board).as_deref(), Ok("hello"));
    assert_eq!(echo(&runtime, &board), Err(Fault::Closed));
    assert_eq!(echo(&runtime, &board).as_deref(), Ok("hello"));
}

#[test]
fn only_the_address_of_the_manifest_is_connected_to() {
    let runtime = executor();
    let reach = |url: &str| {
        let reached = async { Server::reach(&manifest(url, "").start, &launcher(), &web()).await };
        runtime.block_on(reached).map(drop)
    };
    // A name is not an address that was named, whatever it leads to.
    let here = reach("https://localhost/mcp").unwrap_err();
    assert!(matches!(here, Trouble::Unreached(Fault::Address)), "{here}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = reach(&format!("http://{free}/mcp")).unwrap_err();
    assert!(matches!(nobody, Trouble::Unreached(Fault::Closed)), "{nobody}");
    // A board without a network reaches nobody.
    let server = Running::start("honest");
    let approved = Approved { manifest: server.manifest(), list: [0; 32] };
    let told = TempDir::new().unwrap();
    let board = Board::new(vec![approved], told.path(), launcher(), Arc::default()).unwrap();
    let unready = runtime.block_on(board.begin()).unwrap_err();
    let none = matches!(unready, Unready::Trouble(_, Trouble::Unreached(Fault::Unsupported)));
    assert!(none, "{unready}");
}
