//! Servers that are honest, and servers that are not, behind their walls.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use synapse_connectors::approval::{Approved, Folder, Unapproved};
use synapse_connectors::board::{Board, Unready};
use synapse_connectors::confine::{Launcher, Wall};
use synapse_connectors::import;
use synapse_connectors::list::List;
use synapse_connectors::server::{Server, Trouble};
use synapse_kernel::manifest::Manifest;
use synapse_primitives::platform::{Connectors, Use, Used};
use synapse_primitives::rest::Names;
use synapse_primitives::tree::NoTree;
use synapse_reply::Fault;
use synapse_secrets::{Given, Secret, Value};
use tempfile::TempDir;

struct World {
    folder: TempDir,
    cancel: Arc<AtomicBool>,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join("server/out")).unwrap();
        std::fs::write(folder.path().join("secret"), "x").unwrap();
        std::fs::write(folder.path().join("server/server.py"), include_str!("server.py")).unwrap();
        Self { folder, cancel: Arc::default() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A manifest of the server in this mode.
    fn manifest(&self, mode: &str) -> Manifest {
        let secrets = if mode == "keyed" { r#"secrets = { KEY = "{secret:key}" }"# } else { "" };
        let text = format!(
            r#"version = 1
server = "test"
[start]
command = ["/usr/bin/python3", "-I", "-S", "{}", "{mode}"]
read = ["{}"]
write = ["{}"]
seconds = 3
reply = 4096
{secrets}
[verbs.list]
tool = "listMail"
about = "Lists."
effect = "read"
fields = {{ id = "mail" }}
[verbs.echo]
about = "Says it again."
effect = "read"
[verbs.reach]
about = "Tries."
effect = "read"
[verbs.absent]
about = "The server has it not."
effect = "read"
"#,
            self.path("server/server.py"),
            self.path("server"),
            self.path("server/out"),
        );
        Manifest::check(&text).unwrap()
    }

    /// The board of a server that was approved when it was honest.
    fn board(&self, mode: &str) -> Board {
        self.board_of(mode, launcher())
    }

    fn board_of(&self, mode: &str, launched: Launcher) -> Board {
        let list = block(async {
            let mut server = Server::start(&self.manifest("honest").start, &launcher()).await?;
            server.list().await
        });
        let approved = Approved { manifest: self.manifest(mode), list: list.unwrap().digest() };
        let told = self.folder.path().join("told");
        Board::new(vec![approved], &told, launched, Arc::clone(&self.cancel)).unwrap()
    }
}

fn launcher() -> Launcher {
    let mut program: PathBuf = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    Launcher {
        program: program.join("examples/confine"),
        arguments: Vec::new(),
        secrets: Arc::default(),
    }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap().block_on(future)
}

async fn call(board: &Board, tool: &str, arguments: &str) -> Used {
    let mut carries = Names::NONE;
    carries.add("payroll");
    board.tool(Use { tool, arguments, carries: &carries, most: 1 << 20, tree: &NoTree }).await
}

fn text(used: Used) -> Result<String, Fault> {
    used.reply.map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn i17_a_secret_is_its_servers_variable_and_is_masked_in_what_that_says() {
    let world = World::new();
    let given = |place: &str| {
        let value = Value::parse(b"hunter2-hunter2").unwrap();
        let kept = vec![Secret::new("key", value, &[place]).unwrap()];
        Launcher { secrets: Arc::new(Given::new(kept, |_| true)), ..launcher() }
    };
    for (place, missing) in [("tool:other", true), ("https://test", true), ("tool:test", false)] {
        let board = world.board_of("keyed", given(place));
        block(async {
            let begun = board.begin().await;
            if missing {
                let told = begun.unwrap_err().to_string();
                assert!(told.contains("synapse secret set key --for tool:test"), "{told}");
                assert!(!Path::new(&world.path("server/out/mine")).exists());
                return;
            }
            begun.unwrap();
            let said = text(call(&board, "test/echo", "{}").await).unwrap();
            assert_eq!(said, r#"{secret:key} {secret:key} "{secret:key}""#);
        });
    }
    let had = std::fs::read_to_string(world.path("server/out/mine")).unwrap();
    assert_eq!(had, "hunter2-hunter2");
}

#[test]
fn an_honest_server_answers_and_a_sealed_one_carries_what_it_was_told() {
    let world = World::new();
    let board = world.board("honest");
    block(async {
        board.begin().await.unwrap();
        let listed = call(&board, "test/list", "{}").await;
        assert!(listed.carried.iter().eq(["payroll"]));
        let records = r#"[{"from":"a","id":2},{"from":"b","id":10}]"#;
        assert_eq!(text(listed).as_deref(), Ok(records));
        let said = call(&board, "test/echo", r#"{"text":"a \"b\"\nc"}"#).await;
        assert_eq!(text(said).as_deref(), Ok("a \"b\"\nc"));
        let failed = call(&board, "test/echo", r#"{"text":"no","fail":1}"#).await;
        assert_eq!(text(failed).as_deref(), Ok("{\"error\":true}\nno"));
        for tool in ["test/none", "other/list"] {
            assert_eq!(text(call(&board, tool, "{}").await), Err(Fault::NotFound), "{tool}");
        }
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(5000));
        assert_eq!(text(call(&board, "test/echo", &long).await), Err(Fault::ReplyTooLarge));
    });
    // Another run knows it too.
    let board = world.board("honest");
    let nothing = Names::NONE;
    let call =
        Use { tool: "test/list", arguments: "{}", carries: &nothing, most: 1 << 20, tree: &NoTree };
    let carried = block(board.tool(call)).carried;
    assert!(carried.iter().eq(["payroll"]), "{carried:?}");
}

#[test]
fn hostile_servers_give_faults_in_their_time() {
    for (mode, fault) in [
        ("hang", Fault::TimedOut),
        ("die", Fault::Closed),
        ("flood", Fault::TimedOut),
        ("nonsense", Fault::BadAnswer),
    ] {
        let world = World::new();
        let board = world.board(mode);
        let began = Instant::now();
        let got = block(async {
            board.begin().await.unwrap();
            text(call(&board, "test/echo", "{}").await)
        });
        assert_eq!(got, Err(fault), "{mode}");
        assert!(began.elapsed() < Duration::from_secs(30), "{mode}");
    }
}

#[test]
fn a_server_that_changes_its_list_while_it_runs_is_not_called_any_more() {
    let world = World::new();
    let board = world.board("change");
    let got: Vec<_> = block(async {
        board.begin().await.unwrap();
        let mut got = Vec::new();
        // What it says of the change is heard beside its answer.
        while got.len() < 100 && got.last() != Some(&Err(Fault::Changed)) {
            got.push(text(call(&board, "test/echo", "{}").await));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        got
    });
    assert_eq!(got.last(), Some(&Err(Fault::Changed)), "{got:?}");
}

#[test]
fn a_server_that_does_not_begin_says_why_and_one_that_changed_is_not_called() {
    let world = World::new();
    let begin = |manifest: &Manifest| block(Server::start(&manifest.start, &launcher()));
    let dead = begin(&world.manifest("dead")).unwrap_err();
    assert!(matches!(dead, Trouble::Died(Some(5))), "{dead}");
    let mut none = world.manifest("honest");
    none.start.command = vec!["/usr/bin/no-such-program".into()];
    let none = begin(&none).unwrap_err();
    assert!(matches!(none, Trouble::Wall(Wall::Program)), "{none}");
    let mut lost = world.manifest("honest");
    lost.start.read = vec![world.path("lost")];
    let lost = begin(&lost).unwrap_err();
    assert!(matches!(lost, Trouble::Wall(Wall::Folder)), "{lost}");
    assert!(lost.to_string().contains("a folder of its `read` or `write` is not there"));
    let endless = block(async {
        let mut server = Server::start(&world.manifest("endless").start, &launcher()).await?;
        server.list().await
    });
    assert!(matches!(endless, Err(Trouble::TooMany)));

    let nothing = List::default().digest();
    let approved = Approved { manifest: world.manifest("honest"), list: nothing };
    let told = world.folder.path().join("told");
    let board = Board::new(vec![approved], &told, launcher(), Arc::default()).unwrap();
    assert!(matches!(block(board.begin()), Err(Unready::Changed(_))));
    assert_eq!(text(block(call(&board, "test/list", "{}"))), Err(Fault::Changed));
}

#[test]
fn a_cancelled_run_does_not_wait() {
    let world = World::new();
    let board = world.board("hang");
    let cancel = Arc::clone(&world.cancel);
    let began = Instant::now();
    let got = block(async {
        board.begin().await.unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.store(true, Ordering::Relaxed);
        });
        text(call(&board, "test/echo", "{}").await)
    });
    assert_eq!(got, Err(Fault::Cancelled));
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_has_its_folders_and_nothing_else() {
    let world = World::new();
    let board = world.board("honest");
    // What a careless parent left open.
    let left = std::fs::File::open(world.path("secret")).unwrap();
    let left = rustix::io::fcntl_dupfd_cloexec(&left, 40).unwrap();
    rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).unwrap();
    let reached = text(block(call(&board, "test/reach", "{}"))).unwrap();
    let expected = r#"{"descriptors": [0, 1, 2], "environment": [], "outside": "PermissionError", "own": "done", "passwd": "PermissionError", "server": "PermissionError", "socket": "PermissionError"}"#;
    assert_eq!(reached, expected);
    assert!(Path::new(&world.path("server/out/mine")).exists());
}

#[test]
fn an_approval_is_of_one_manifest_and_one_list() {
    let world = World::new();
    let tools = world.folder.path().join("tools");
    let folder = Folder::of(&tools, "test");
    assert!(matches!(folder.approved(), Err(Unapproved::Missing)));
    let list = block(async {
        let mut server = Server::start(&world.manifest("honest").start, &launcher()).await?;
        server.list().await
    });
    let list = list.unwrap();
    let first = list.manifest("test", &world.manifest("honest").start);
    folder.add(&first).unwrap();
    assert!(folder.add("").is_err(), "it is never overwritten");
    assert!(matches!(folder.approved(), Err(Unapproved::Never)));
    let (text, manifest) = folder.manifest().unwrap();
    let verbs: Vec<_> = manifest.verbs.iter().map(|verb| (&*verb.name, &*verb.tool)).collect();
    assert_eq!(verbs, [("echo", "echo"), ("list_mail", "listMail"), ("reach", "reach")]);
    let strict = synapse_kernel::manifest::Effect::Execute;
    assert!(manifest.verbs.iter().all(|verb| verb.effect == strict && !verb.own));
    folder.approve(&text, &manifest, &list).unwrap();
    assert_eq!(folder.approved().unwrap().list, list.digest());
    assert_eq!(folder.before().unwrap(), (text.clone(), list.clone()));
    std::fs::write(folder.manifest_path(), text.replace("\"execute\"", "\"read\"")).unwrap();
    assert!(matches!(folder.approved(), Err(Unapproved::Changed)));
    assert_eq!(Folder::all(&tools).unwrap().len(), 1);

    let mut other = list.clone();
    other.tools[0].description.push_str(" And more.");
    other.tools.remove(2);
    let lines = [
        "- tool `reach` is gone",
        "- `echo` said: Says it again.",
        "+ `echo` says: Says it again. And more.",
    ];
    assert_eq!(other.differences(&list), lines);
    assert_ne!(other.digest(), list.digest());
    assert_eq!(List::parse(&list.text()).unwrap(), list);
}

#[test]
fn other_clients_files_are_read_without_the_values_of_their_variables() {
    let servers = import::parse(
        r#"{"mcpServers": {"mail": {"command": "/bin/mail", "args": ["-s"], "env": {"KEY": "hidden"}},
            "web": {"type": "http", "url": "https://web.example/mcp"}}}"#,
    );
    let servers = servers.unwrap();
    assert_eq!(servers[0].start.command, ["/bin/mail", "-s"]);
    assert_eq!(servers[0].start.environment, ["KEY"]);
    assert_eq!(servers[1].start.url, "https://web.example/mcp");
    assert!(!format!("{servers:?}").contains("hidden"));
    assert!(import::parse("[]").is_err());
}
