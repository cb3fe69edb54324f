//! Attacks by a persuaded guest on the labels of codes and listings.

use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use spin::Mutex;
use synapse_boundary::{Integrity, Label, Origin, Secrecy};
use synapse_kernel::engine::Door;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Durability, Log, Sink, SinkFailed};
use synapse_kernel::task::{Parts, Task};
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;
use synapse_reply::frame::{Form, Mark};

const GRANT: &str = r#"
version = 1
primitives = ["clock_read", "fs_read", "fs_list", "fs_write", "fs_search", "fs_move", "value_read"]
deny = ["/data/closed/*"]
[[paths]]
path = "/data/**"
rights = ["list", "read", "write", "delete"]
"#;

struct Null;
impl Sink for Null {
    fn append(&mut self, _: &[u8], _: Durability) -> Result<(), SinkFailed> {
        Ok(())
    }
}

struct World {
    platform: Arc<Memory>,
    task: Task<Memory, Null>,
}

impl World {
    fn new(room: usize) -> Self {
        let platform = Arc::new(Memory::new(&[("/data", Access::ReadWrite)]).unwrap());
        let log = Arc::new(Mutex::new(Log::begin(Null, [7; 32]).unwrap()));
        let task = Task::new(Parts {
            run: [7; 32],
            id: 3,
            mark: Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE),
            lines: Vec::new(),
            grant: Arc::new(Grant::parse(GRANT).unwrap()),
            journal_room: 1 << 20,
            held_room: room,
            platform: Arc::clone(&platform),
            log,
            watch: Arc::new(|_| {}),
            cancel: Arc::new(AtomicBool::new(false)),
        });
        Self { platform, task }
    }

    fn ask(&mut self, sentence: &str) -> Result<(Form, Mark, Vec<u8>), u32> {
        let mut crossing = core::pin::pin!(self.task.submit(sentence.as_bytes()));
        let mut context = core::task::Context::from_waker(core::task::Waker::noop());
        let core::task::Poll::Ready(answer) = crossing.as_mut().poll(&mut context) else {
            unreachable!()
        };
        let bytes = answer?.lower();
        let reply = synapse_guest::Reply::parse(bytes).unwrap();
        Ok((reply.form, reply.mark, reply.payload))
    }
}

/// The size of a held secret is learnt from how many *System* values still fit.
#[test]
fn room_for_held_values_tells_sizes_under_a_system_label() {
    let guest = |secret: &[u8]| {
        let mut world = World::new(9 << 20);
        world.platform.place("/data/secret", secret).unwrap();
        // Does a secret word stand in the file? The held reply's size depends on it.
        let search = r#"{"name":"fs_search","arguments":{"path":"/data/secret","text":"pin=7","offset":0},"hold":true}"#;
        world.ask(search).unwrap();
        let clock = r#"{"name":"clock_read","arguments":{},"hold":true}"#;
        let mut fitted = 0;
        while world.ask(clock).is_ok() {
            fitted += 1;
        }
        (fitted, world.task.mark())
    };
    let (yes, mark_yes) = guest(b"pin=7");
    let (no, mark_no) = guest(b"pin=8");
    // Either the guest learns nothing, or its mark says that it learnt from a file.
    let knows = yes != no;
    assert!(
        !knows
            || (mark_yes.integrity == Integrity::Ingested
                && mark_no.integrity == Integrity::Ingested),
        "fitted {yes} or {no}, marks {mark_yes:?} {mark_no:?}"
    );
}

/// All children of a folder are denied, and yet those with a colon are shown.
#[test]
fn a_denied_name_that_no_path_spells_is_hidden_too() {
    let mut world = World::new(1000);
    world.platform.place("/data/closed/plain.txt", b"x").unwrap();
    world.platform.place("/data/closed/Q3: layoffs of Smith", b"xyz").unwrap();
    let list = r#"{"name":"fs_list","arguments":{"path":"/data/closed","after":"","limit":9}}"#;
    let (_, _, shown) = world.ask(list).unwrap();
    let search =
        r#"{"name":"fs_search","arguments":{"path":"/data/closed","text":"x","offset":0}}"#;
    let (_, _, found) = world.ask(search).unwrap();
    assert_eq!(
        (str::from_utf8(&shown).unwrap(), str::from_utf8(&found).unwrap()),
        ("[]", r#"{"hits":[],"next":null,"skipped":0}"#)
    );
}

/// A held path is compared by what a write of it says, and success is `System`.
#[test]
fn success_on_a_held_path_carries_the_value() {
    let guest = |secret: &[u8]| {
        let mut world = World::new(1000);
        world.platform.place("/data/which", secret).unwrap();
        let read = r#"{"name":"fs_read","arguments":{"path":"/data/which","offset":0,"length":99},"hold":true}"#;
        world.ask(read).unwrap();
        let append =
            r#"{"name":"fs_write","arguments":{"path":{"$held":1},"content":"x","mode":"append"}}"#;
        let answer = world.ask(append).map(|_| ());
        (answer, world.task.mark().integrity)
    };
    // In scope or not: one of the two answers is free.
    let (inside, mark) = guest(b"/data/a");
    let (outside, _) = guest(b"/etc/a");
    assert_ne!(inside, outside);
    assert_eq!(mark, Integrity::Ingested, "success told that the secret is in scope");
}

/// A file whose history nobody kept may hold what any connector or host said.
#[test]
fn a_file_may_hold_anything_that_the_grant_names() {
    let grant = Grant::parse(
        "version = 1\nprimitives = [\"fs_read\", \"fs_write\", \"tool_use\", \"net_http_get\"]\n\
         [[paths]]\npath = \"/data/**\"\nrights = [\"read\", \"write\"]\n\
         [[tools]]\ntool = \"mail/read\"\neffect = \"read\"\n\
         [[hosts]]\nhost = \"10.0.0.7\"\n",
    )
    .unwrap();
    let own = grant.scope.entry("mail/read").unwrap().terms.own;
    assert_ne!(own, Secrecy::NONE);
    assert!(
        own.is_within(Secrecy::FILES.join(grant.scope.named())),
        "held mail, written and read back, lost tool:mail"
    );
}

/// Past 64 components no path is normal, and a denied name is shown there.
#[test]
fn a_denied_name_is_hidden_at_any_depth() {
    let mut world = World::new(1000);
    let deep = format!("/data{}", "/d".repeat(63));
    world.platform.place(&format!("{deep}/.env"), b"x").unwrap();
    let grant = GRANT.replace("\"/data/closed/*\"", "\"**/.env\"");
    world.task = Task::new(Parts {
        run: [7; 32],
        id: 3,
        mark: Label::new(Integrity::User, Secrecy::PROMPT, Origin::NONE),
        lines: Vec::new(),
        grant: Arc::new(Grant::parse(&grant).unwrap()),
        journal_room: 1 << 20,
        held_room: 1000,
        platform: Arc::clone(&world.platform),
        log: Arc::new(Mutex::new(Log::begin(Null, [7; 32]).unwrap())),
        watch: Arc::new(|_| {}),
        cancel: Arc::new(AtomicBool::new(false)),
    });
    let list =
        format!(r#"{{"name":"fs_list","arguments":{{"path":"{deep}","after":"","limit":9}}}}"#);
    let (_, _, shown) = world.ask(&list).unwrap();
    assert_eq!(str::from_utf8(&shown).unwrap(), "[]");
}
