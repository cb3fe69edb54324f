//! Children and channels under real engines, in great numbers, and alike on both.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use synapse_abi::registry::Primitive;
use synapse_host::agents::Timer;
use synapse_host::engine::Wasmtime;
use synapse_host::net::Client;
use synapse_interpreter::Interpreter;
use synapse_kernel::crew::{Finding, Package, Packages, Staff};
use synapse_kernel::engine::Engine;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Kind, Tape};
use synapse_kernel::run::{NoAnswer, Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::task::{Crossing, HELD_BYTES, Watch};
use synapse_kernel::verify::Reader;
use synapse_primitives::Fault;
use synapse_primitives::disk::{Disk, Mount, Screen};
use synapse_primitives::mounts::Access;
use synapse_primitives::platform::Asker;

use crate::engine::{GUEST, Guest, Under, under_both};

const GRANT: &str = r#"
version = 1
primitives = ["clock_read", "fs_read", "agent_spawn", "agent_wait", "channel_create", "channel_write", "channel_read", "channel_close", "channel_grant", "net_listen", "net_accept"]
[[paths]]
path = "/data/**"
rights = ["read"]
[[hosts]]
host = "127.0.0.1"
ports = ["1024-65535"]
methods = ["LISTEN"]
"#;

const ONE: &str = r#"{"primitives":["fs_read","channel_create","channel_write","channel_read"],"paths":[{"path":"/data/**","rights":["read"]}],"budget":{"calls":9}}"#;

fn spawn(package: &str) -> String {
    format!(
        r#"{{"name":"agent_spawn","arguments":{{"package":"{package}","task":"x","grant":{ONE}}}}}"#
    )
}

pub(crate) fn call(name: &str, arguments: &str) -> String {
    format!(r#"{{"name":"{name}","arguments":{{{arguments}}}}}"#)
}

pub(crate) fn wait(agent: u64, timeout: u64) -> String {
    call("agent_wait", &format!(r#""agent":{agent},"timeout":{timeout}"#))
}

pub(crate) fn read(channel: u64, timeout: u64) -> String {
    call("channel_read", &format!(r#""channel":{channel},"max":99,"timeout":{timeout}"#))
}

pub(crate) fn write(channel: u64, text: &str) -> String {
    call("channel_write", &format!(r#""channel":{channel},"content":"{text}""#))
}

pub(crate) fn close(handle: u64) -> String {
    call("channel_close", &format!(r#""channel":{handle}"#))
}

fn channel() -> String {
    call("channel_create", r#""kind":"messages""#)
}

pub(crate) fn file() -> String {
    call("fs_read", r#""path":"/data/a.md","offset":0,"length":9"#)
}

/// A guest that says these sentences and ends as the last one did. What it says
/// stands above the page that it allocates in.
pub(crate) fn saying<E: Under>(sentences: &[String]) -> E::Program {
    let (mut items, mut turn, mut at) = (String::new(), String::new(), 65_536);
    for sentence in sentences {
        let text = sentence.replace('\\', "\\\\").replace('"', "\\22");
        items.push_str(&format!("(data (i32.const {at}) \"{text}\")\n"));
        turn.push_str(&format!(
            "(call $door (i32.const {at}) (i32.const {}) (i32.const 512))\n",
            sentence.len()
        ));
        at += sentence.len();
    }
    turn.push_str("i32.const 512");
    // The allocator begins anew each time that it nears the end of its page.
    let realloc = "(if (i32.gt_u (global.get $top) (i32.const 60000))
        (then (global.set $top (i32.const 4096))))
      global.get $top
      (global.set $top (i32.add (global.get $top) (local.get 3)))";
    let pages = (at / 65_536 + 1).to_string();
    Guest { memory: &pages, realloc, items: &items, turn: &turn, ..GUEST }.load::<E>()
}

pub(crate) struct Shop<E: Engine>(pub(crate) BTreeMap<&'static str, E::Program>);

impl<E: Under> Packages<Arc<E>> for Shop<E> {
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, E::Program> {
        Box::pin(async move {
            let program = self.0.get(name).cloned().ok_or(Fault::NotFound)?;
            Ok(Package { program, bounds: None, texts: Vec::new(), approval: None })
        })
    }
}

struct Dark;

impl Screen for Dark {
    fn show(&self, _: &[u8]) -> Result<(), Fault> {
        Err(Fault::Closed)
    }

    fn ask(&self, _: &[u8], _: Asker) -> Result<Vec<u8>, Fault> {
        Err(Fault::Closed)
    }
}

/// Runs a parent beside packages: its answer, the log, and the places left at its end.
pub(crate) fn run<E: Under>(
    parent: &[String],
    packages: &[(&'static str, Vec<String>)],
    watch: Watch,
) -> (Result<Vec<u8>, NoAnswer>, Vec<u8>, usize) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.md"), "alpha").unwrap();
    let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
    let host = folder.path().to_str().unwrap().to_owned();
    let mount = Mount { root: "/data".to_owned(), host, dir, access: Access::ReadOnly };
    let disk = Disk::new(vec![mount], &[], None, Box::new(Dark)).unwrap();
    let cancel = Arc::default();
    let net = Client::new(Arc::clone(&cancel)).unwrap();
    let places = Arc::new(AtomicUsize::new(1100));
    let shop = packages.iter().map(|(name, says)| (*name, saying::<E>(says))).collect();
    let engine = Arc::clone(E::whole());
    let order = Order {
        id: [3; 32],
        task: "go",
        session: Session::default(),
        texts: &[],
        grant: Arc::new(Grant::parse(GRANT).unwrap()),
        approval: None,
        room: Room { journal: 0, memory: usize::MAX, held: HELD_BYTES },
        platform: Arc::new(disk.with_net(Box::new(net)).with_timer(Box::new(Timer))),
        watch,
        cancel,
    };
    let run = Run::begin(order, Tape::default()).unwrap();
    let run = run.staffed(Staff::new(
        Arc::clone(&engine),
        Shop::<E>(shop),
        Arc::clone(&places),
        usize::MAX,
    ));
    let parent = saying::<E>(parent);
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (run, answer) = executor.block_on(run.turn(&engine, &parent));
    let finished = run.end(answer);
    let log = finished.log.lock().sink().0.clone();
    (finished.answer, log, places.load(Ordering::Relaxed))
}

pub(crate) fn unwatched() -> Watch {
    Arc::new(|_| {})
}

fn a_parent_waits_for_its_childs_report<E: Under>() {
    let child = vec![read(1, 5000), file(), write(1, "done")];
    let parent = [
        channel(),
        spawn("child"),
        call("channel_grant", r#""channel":2,"to":3"#),
        wait(3, 50),
        write(1, "go"),
        read(1, 5000),
        wait(3, 5000),
    ];
    let (answer, log, places) = run::<E>(&parent, &[("child", child)], unwatched());
    // What the child heard last is nothing, in its frame; that is framed once more.
    assert_eq!(answer.unwrap(), [1, 1, 2, 0, 1, 0, 2, 0]);
    assert_eq!(places, 1100);
    let records: Vec<_> = Reader::new(&log).collect::<Result<_, _>>().unwrap();
    assert!(records.iter().any(|record| record.task == 1 && record.kind == Kind::TurnEnd));
    let late = records.iter().filter(|record| record.code == Fault::TimedOut.number());
    assert_eq!(late.count(), 1, "it did wait");
}

fn a_child_that_traps_is_closed_and_a_code_of_its_own_is_not_told<E: Under>() {
    // Its answer is the code 202: there is no such handle.
    let child = vec![read(9, 0)];
    let parent = [spawn("child"), wait(1, 5000)];
    let (answer, ..) = run::<E>(&parent, &[("child", child)], unwatched());
    let closed = synapse_kernel::engine::Ended::Code(Fault::Closed.number().into());
    assert_eq!(answer, Err(NoAnswer::Ended(closed)));
}

under_both! {
    a_parent_waits_for_its_childs_report,
    a_child_that_traps_is_closed_and_a_code_of_its_own_is_not_told,
}

#[test]
fn i18_both_engines_leave_the_same_log_task_by_task() {
    let child = vec![read(1, 5000), file(), write(1, "x"), write(1, "y")];
    let mut parent = Vec::new();
    for child in 0..5 {
        let first = child * 3 + 1;
        let give = format!(r#""channel":{},"to":{}"#, first + 1, first + 2);
        parent.extend([channel(), spawn("child"), call("channel_grant", &give)]);
    }
    for child in (0..5).rev() {
        let first = child * 3 + 1;
        parent.extend([write(first, "go"), read(first, 5000), read(first, 5000)]);
        parent.extend([wait(first + 2, 5000), read(first, 0), close(first + 2)]);
    }
    let packages = [("child", child)];
    let compiled = by_task(&run::<Wasmtime>(&parent, &packages, unwatched()).1);
    let interpreted = by_task(&run::<Interpreter>(&parent, &packages, unwatched()).1);
    assert_eq!(compiled.len(), 6);
    assert_eq!(compiled, interpreted);
}

/// The records of each task, without what tells when they were written among others.
pub(crate) fn by_task(log: &[u8]) -> BTreeMap<u64, Vec<String>> {
    let mut tasks: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let records: Vec<_> = Reader::new(log).collect::<Result<_, _>>().unwrap();
    // A cause is a record's number: what stands is its place among those of its task.
    let mut places = BTreeMap::new();
    for record in &records {
        let own = tasks.entry(record.task).or_default();
        places.insert(record.sequence, (record.task, own.len()));
        let cause = record.cause.and_then(|cause| places.get(&cause));
        let tail: Vec<_> = record
            .fields()
            .filter(|(tag, _)| *tag != synapse_kernel::record::tag::ORIGINS)
            .collect();
        own.push(format!(
            "{:?} {:?} {} {} {} {} {} {cause:?} {tail:?}",
            record.kind,
            record.primitive,
            record.gate,
            record.code,
            record.integrity,
            record.class,
            record.secrecy,
        ));
    }
    tasks
}

/// Runs a test of this file in a process of its own, where it can be measured.
pub(crate) fn alone(test: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--test-threads=1", "--nocapture"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn what_a_thousand_children_leave_is_measured() {
    alone("agents::a_thousand_children_and_channels_leave_nothing");
    alone("agents::a_thousand_agents_wait_without_a_thread_each");
}

/// Threads, descriptors, and KiB of memory of this process.
pub(crate) fn taken() -> (usize, usize, usize) {
    let count = |path| fs::read_dir(path).unwrap().count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = memory.trim().trim_end_matches(" kB").parse().unwrap();
    (count("/proc/self/task"), count("/proc/self/fd"), memory)
}

#[test]
#[ignore = "measured in a process of its own, by `what_a_thousand_children_leave_is_measured`"]
fn a_thousand_children_and_channels_leave_nothing() {
    let mut parent = Vec::new();
    for round in 0..1000 {
        let first = round * 3 + 1;
        let give = format!(r#""channel":{},"to":{}"#, first + 1, first + 2);
        parent.extend([channel(), spawn("child"), call("channel_grant", &give)]);
        parent.extend([write(first, "x"), wait(first + 2, 5000), close(first), close(first + 2)]);
    }
    let ended = |watched: Watch| {
        let packages = [("child", vec![read(1, 5000), file()])];
        let (answer, log, places) = run::<Wasmtime>(&parent, &packages, watched);
        // The last reply is nothing, in its frame.
        assert_eq!(answer.unwrap(), [1, 0, 2, 0]);
        assert_eq!(places, 1100);
        let ends =
            Reader::new(&log).filter(|record| record.as_ref().unwrap().kind == Kind::TurnEnd);
        assert_eq!(ends.count(), 1001);
    };
    let closed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&closed);
    let watch = move |crossing: &Crossing<'_>| {
        if crossing.primitive == Some(Primitive::ChannelClose) {
            seen.lock().unwrap().push(taken());
        }
    };
    ended(unwatched());
    ended(Arc::new(watch));
    let closed = closed.lock().unwrap();
    let (early, late) = (closed[200], closed[closed.len() - 1]);
    println!("after 100 children {early:?}, after 1,000 {late:?} (threads, descriptors, KiB)");
    assert_eq!((early.0, early.1), (late.0, late.1));
    // The log in memory grows; nothing else does.
    assert!(late.2 < early.2 + 8192, "{early:?} {late:?}");
}

#[test]
#[ignore = "measured in a process of its own, by `what_a_thousand_children_leave_is_measured`"]
fn a_thousand_agents_wait_without_a_thread_each() {
    // A child waits for what nobody sends.
    let child = vec![channel(), read(1, 3_600_000)];
    let mut parent = vec![spawn("child"); 1000];
    parent.push(wait(1000, 3000));
    let seen = Arc::new(Mutex::new((taken(), taken(), 0)));
    let watched = Arc::clone(&seen);
    let watch = move |crossing: &Crossing<'_>| match crossing.primitive {
        Some(Primitive::AgentWait) => watched.lock().unwrap().1 = taken(),
        Some(Primitive::ChannelCreate) => watched.lock().unwrap().2 += 1,
        Some(Primitive::AgentSpawn) => watched.lock().unwrap().0 = taken(),
        _ => {}
    };
    let (answer, _, places) = run::<Wasmtime>(&parent, &[("child", child)], Arc::new(watch));
    let late = synapse_kernel::engine::Ended::Code(Fault::TimedOut.number().into());
    assert_eq!(answer, Err(NoAnswer::Ended(late)));
    assert_eq!(places, 1100);
    let (before, waiting, began) = *seen.lock().unwrap();
    println!(
        "{began} agents wait: {before:?} before, {waiting:?} then (threads, descriptors, KiB)"
    );
    assert_eq!(began, 1000);
    assert_eq!((before.0, before.1), (waiting.0, waiting.1));
}
