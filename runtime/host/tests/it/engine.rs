//! Guests of every kind on wasmtime: good, broken and hostile.
//!
//! The guests are written in the text format with the canonical ABI by hand,
//! so that each breaks exactly the rule it is meant to.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use synapse_host::engine::{Program, Wasmtime};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::{Door, Ended, Engine, Reply, Trap, TurnLimits};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

pub(crate) static ENGINE: LazyLock<Wasmtime> = LazyLock::new(|| Wasmtime::new().unwrap());

/// Parts of a guest. Memory is one page; a bump allocator starts at 4096, the
/// sentence `hello` stands at 1024, and both results are laid out at 512.
#[derive(Clone, Copy)]
pub(crate) struct Guest<'a> {
    pub(crate) memory: &'a str,
    realloc: &'a str,
    pub(crate) items: &'a str,
    turn: &'a str,
    options: &'a str,
}

const GUEST: Guest<'static> =
    Guest { memory: "1", realloc: BUMP, items: "", turn: ECHO, options: "" };

const BUMP: &str = "global.get $top
    (global.set $top (i32.add (global.get $top) (local.get 3)))";

const ECHO: &str = "(i32.store8 (i32.const 512) (i32.const 0))
    (i32.store (i32.const 516) (local.get 0))
    (i32.store (i32.const 520) (local.get 1))
    i32.const 512";

/// Sends `hello` and answers with what comes back, `Ok` or `Err`.
const ASK: &str = "(call $door (i32.const 1024) (i32.const 5) (i32.const 512)) i32.const 512";

impl Guest<'_> {
    fn bytes(self) -> Vec<u8> {
        let Guest { memory, realloc, items, turn, options } = self;
        wat::parse_str(format!(
            r#"(component
              (import "synapse-call" (func $door
                (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
              (core module $libc
                (type $door (func (param i32 i32 i32)))
                (memory (export "memory") {memory})
                (table $table (export "table") 1 funcref)
                (global $top (mut i32) (i32.const 4096))
                (global $allocations (mut i32) (i32.const 0))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                  (global.set $allocations (i32.add (global.get $allocations) (i32.const 1)))
                  {realloc}))
              (core instance $libc (instantiate $libc))
              (core func $lowered (canon lower (func $door)
                (memory $libc "memory") (realloc (func $libc "realloc"))))
              (core module $main
                (import "libc" "memory" (memory {memory}))
                (import "libc" "table" (table $table 1 funcref))
                (import "host" "door" (func $door (param i32 i32 i32)))
                (elem (table $table) (i32.const 0) func $door)
                (data (i32.const 1024) "hello")
                {items}
                (func (export "post-return") (param i32)
                  (memory.fill (i32.const 0) (i32.const 0xff) (i32.const 65536)))
                (func (export "post-trap") (param i32) unreachable)
                (func (export "turn") (param i32 i32) (result i32) {turn}))
              (core instance $main (instantiate $main
                (with "libc" (instance $libc))
                (with "host" (instance (export "door" (func $lowered))))))
              (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
                (canon lift (core func $main "turn")
                  (memory $libc "memory") (realloc (func $libc "realloc")) {options}))
              (export "turn" (func $turn)))"#
        ))
        .unwrap()
    }

    fn on(self, engine: &Wasmtime) -> Program {
        engine.load(&admit(&self.bytes()).unwrap()).unwrap()
    }

    pub(crate) fn load(self) -> Program {
        self.on(&ENGINE)
    }
}

pub(crate) fn turning(turn: &str) -> Guest<'_> {
    Guest { turn, ..GUEST }
}

/// A door that remembers what it was asked.
struct Memo {
    asked: Vec<Vec<u8>>,
    reply: Result<&'static [u8], u32>,
    wait: Duration,
    cancel: Arc<AtomicBool>,
}

impl Memo {
    fn new() -> Self {
        Self {
            asked: Vec::new(),
            reply: Ok(b"a reply"),
            wait: Duration::ZERO,
            cancel: Arc::default(),
        }
    }
}

impl Door for Memo {
    async fn submit(&mut self, sentence: &[u8]) -> Result<Reply, u32> {
        self.asked.push(sentence.to_vec());
        if !self.wait.is_zero() {
            sleep(self.wait).await;
        }
        self.reply.map(|bytes| Reply::new(bytes.to_vec()))
    }

    fn cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

/// One thread, so that a guest that keeps it stops everything else.
pub(crate) fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

const LIMITS: TurnLimits = TurnLimits {
    memory_bytes: 4 << 20,
    table_elements: 1000,
    deadline: Duration::from_secs(20),
    sentence_bytes: 1 << 20,
    answer_bytes: 1 << 20,
};

fn turn(program: &Program, limits: TurnLimits) -> (Memo, Result<Vec<u8>, Ended>) {
    one_thread().block_on(ENGINE.turn(program, Memo::new(), b"the input", limits))
}

/// How a guest's turn ends, and with which calls; after it, a good guest on the
/// same engine still works.
fn ended(guest: Guest<'_>, limits: TurnLimits) -> (Vec<Vec<u8>>, Ended) {
    let (door, result) = turn(&guest.load(), limits);
    let (after, answer) = turn(&GUEST.load(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    assert!(after.asked.is_empty());
    (door.asked, result.unwrap_err())
}

fn ends(guest: Guest<'_>, how: Ended) {
    assert_eq!(ended(guest, LIMITS), (Vec::new(), how), "{}", guest.turn);
}

fn soon() -> TurnLimits {
    TurnLimits { deadline: Duration::from_millis(50), ..LIMITS }
}

#[test]
fn the_input_is_answered() {
    let (door, answer) = turn(&GUEST.load(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    assert!(door.asked.is_empty());
}

#[test]
fn a_call_crosses_the_door_and_its_reply_comes_back() {
    let (door, answer) = turn(&turning(ASK).load(), LIMITS);
    assert_eq!(door.asked, [b"hello"]);
    assert_eq!(answer, Ok(b"a reply".to_vec()));
}

#[test]
fn a_refusal_reaches_the_guest_as_its_code() {
    let door = Memo { reply: Err(0x1_0002), ..Memo::new() };
    let program = turning(ASK).load();
    let (door, answer) = one_thread().block_on(ENGINE.turn(&program, door, b"", LIMITS));
    assert_eq!(door.asked, [b"hello"]);
    // The guest passes the code on as its own.
    assert_eq!(answer, Err(Ended::Code(0x1_0002)));
}

#[test]
fn every_call_is_one_call_of_the_door() {
    const CALLS: usize = 100_000;
    struct Count(usize);
    impl Door for Count {
        async fn submit(&mut self, sentence: &[u8]) -> Result<Reply, u32> {
            assert_eq!(sentence, b"hello");
            self.0 += 1;
            Err(7)
        }

        fn cancelled(&self) -> bool {
            false
        }
    }
    let program = Guest {
        items: "(global $n (mut i32) (i32.const 100000))",
        turn: "(loop $l
            (call $door (i32.const 1024) (i32.const 5) (i32.const 512))
            (global.set $n (i32.sub (global.get $n) (i32.const 1)))
            (br_if $l (global.get $n)))
          i32.const 512",
        ..GUEST
    }
    .load();
    let (door, answer) = one_thread().block_on(ENGINE.turn(&program, Count(0), b"", LIMITS));
    assert_eq!((door.0, answer), (CALLS, Err(Ended::Code(7))));
}

#[test]
fn i6_nothing_survives_a_turn() {
    // Answers with what it finds at 2048, then writes there.
    let program = Guest {
        items: "(global $seen (mut i32) (i32.const 0))",
        turn: "(i32.store8 (i32.const 512) (i32.const 1))
            (i32.store (i32.const 516) (i32.add (global.get $seen) (i32.load (i32.const 2048))))
            (i32.store (i32.const 2048) (i32.const 42))
            (global.set $seen (i32.const 42))
            i32.const 512",
        ..GUEST
    }
    .load();
    for _ in 0..200 {
        assert_eq!(turn(&program, LIMITS).1, Err(Ended::Code(0)));
    }
}

#[test]
fn the_answer_is_read_before_the_guest_cleans_up() {
    let options = r#"(post-return (func $main "post-return"))"#;
    let (_, answer) = turn(&Guest { options, ..GUEST }.load(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));

    let options = r#"(post-return (func $main "post-trap"))"#;
    ends(Guest { options, ..GUEST }, Ended::Trap(Trap::Unreachable));
}

#[test]
fn a_loop_without_end_meets_its_deadline_and_blocks_nobody() {
    let program = turning("(loop $l (br $l)) unreachable").load();
    let limits = TurnLimits { deadline: Duration::from_millis(200), ..LIMITS };
    one_thread().block_on(async {
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&steps);
        let other = tokio::spawn(async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (_, result) = ENGINE.turn(&program, Memo::new(), b"", limits).await;
        assert_eq!(result, Err(Ended::Deadline));
        assert!(steps.load(Ordering::Relaxed) >= 5, "{steps:?}");
        other.abort();
    });
    assert_eq!(turn(&GUEST.load(), LIMITS).1, Ok(b"the input".to_vec()));
}

#[test]
fn loops_outside_turn_meet_the_deadline_too() {
    let forever = "(loop $l (br $l)) unreachable";
    let start = Guest { items: "(func $s (loop $l (br $l))) (start $s)", ..GUEST };
    assert_eq!(ended(start, soon()), (vec![], Ended::Deadline));
    assert_eq!(ended(Guest { realloc: forever, ..GUEST }, soon()), (vec![], Ended::Deadline));
    let later = format!(
        "(if (i32.gt_u (global.get $allocations) (i32.const 1)) (then (loop $l (br $l)))) {BUMP}"
    );
    let guest = Guest { realloc: &later, turn: ASK, ..GUEST };
    assert_eq!(ended(guest, soon()), (vec![b"hello".to_vec()], Ended::Deadline));
    let calls = turning(
        "(loop $l (call $door (i32.const 0) (i32.const 0) (i32.const 512)) (br $l)) unreachable",
    );
    let (asked, how) = ended(Guest { realloc: "i32.const 4096", ..calls }, soon());
    assert_eq!(how, Ended::Deadline);
    assert!(asked.len() > 100, "{}", asked.len());
}

#[test]
fn no_time_at_all_is_a_deadline() {
    let limits = TurnLimits { deadline: Duration::ZERO, ..LIMITS };
    assert_eq!(ended(turning(ASK), limits), (vec![], Ended::Deadline));
}

#[test]
fn waiting_for_the_door_is_not_charged() {
    let door = Memo { wait: Duration::from_millis(300), ..Memo::new() };
    let program = turning(ASK).load();
    let start = Instant::now();
    let (door, answer) = one_thread().block_on(ENGINE.turn(&program, door, b"", soon()));
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!((door.asked.len(), answer), (1, Ok(b"a reply".to_vec())));
}

#[test]
fn a_cancelled_turn_stops() {
    let computing = turning("(loop $l (br $l)) unreachable").load();
    let asking = turning(ASK).load();
    one_thread().block_on(async {
        let door = Memo::new();
        let cancel = Arc::clone(&door.cancel);
        tokio::spawn(async move {
            sleep(Duration::from_millis(30)).await;
            cancel.store(true, Ordering::Relaxed);
        });
        let (_, result) = ENGINE.turn(&computing, door, b"", LIMITS).await;
        assert_eq!(result, Err(Ended::Cancelled));

        let door = Memo { wait: Duration::from_millis(60), ..Memo::new() };
        let cancel = Arc::clone(&door.cancel);
        tokio::spawn(async move {
            sleep(Duration::from_millis(20)).await;
            cancel.store(true, Ordering::Relaxed);
        });
        let (door, result) = ENGINE.turn(&asking, door, b"", LIMITS).await;
        assert_eq!((door.asked.len(), result), (1, Err(Ended::Cancelled)));

        let door = Memo::new();
        door.cancel.store(true, Ordering::Relaxed);
        let (door, result) = ENGINE.turn(&asking, door, b"", LIMITS).await;
        assert_eq!((door.asked.len(), result), (0, Err(Ended::Cancelled)));
    });
}

#[test]
fn a_reply_after_the_cancellation_is_not_handed_over() {
    struct Last(usize);
    impl Door for Last {
        async fn submit(&mut self, _: &[u8]) -> Result<Reply, u32> {
            self.0 += 1;
            Ok(Reply::new(b"too late".to_vec()))
        }

        fn cancelled(&self) -> bool {
            self.0 > 0
        }
    }
    // Asks twice without a pause in which a tick could fall.
    let twice = format!("(call $door (i32.const 1024) (i32.const 5) (i32.const 512)) {ASK}");
    let program = turning(&twice).load();
    for _ in 0..50 {
        let (door, result) = one_thread().block_on(ENGINE.turn(&program, Last(0), b"", LIMITS));
        assert_eq!((door.0, result), (1, Err(Ended::Cancelled)));
    }
}

#[test]
fn memory_has_a_limit() {
    let grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))";
    ends(turning(&format!("{grow} unreachable")), Ended::MemoryLimit);
    // Denied, a guest may go on: the limit is no trap.
    let (_, answer) = turn(&turning(&format!("{grow} {ECHO}")).load(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    // Exactly the limit is granted.
    let size = format!(
        "{grow} (i32.store8 (i32.const 512) (i32.const 1))
         (i32.store (i32.const 516) (memory.size)) i32.const 512"
    );
    assert_eq!(turn(&turning(&size).load(), LIMITS).1, Err(Ended::Code(64)));
    // A loop that does not look ends by its deadline, its memory bounded.
    let blind = turning("(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable");
    assert_eq!(ended(blind, soon()), (vec![], Ended::Deadline));
    ends(Guest { memory: "65", ..GUEST }, Ended::MemoryLimit);
}

#[test]
fn a_memory_beyond_the_pool_does_not_load() {
    let guest = Guest { memory: "16385", ..GUEST };
    let error = ENGINE.load(&admit(&guest.bytes()).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("the component cannot be compiled: "), "{error}");
}

#[test]
fn tables_have_a_limit() {
    let grow = "(if (i32.eq (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1))
        (then unreachable))";
    ends(turning(&format!("{grow} {ECHO}")), Ended::MemoryLimit);
    let fits = format!("(drop (table.grow $table (ref.null func) (i32.const 999))) {ECHO}");
    assert_eq!(turn(&turning(&fits).load(), LIMITS).1, Ok(b"the input".to_vec()));
}

#[test]
fn recursion_without_end_is_a_stack_overflow() {
    let guest = Guest {
        items: "(func $f (result i32) (i32.add (call $f) (i32.const 1)))",
        turn: "call $f",
        ..GUEST
    };
    ends(guest, Ended::StackOverflow);
}

#[test]
fn the_door_has_stack_left_when_the_guest_has_little() {
    // Calls the door at every depth, with all but the last frames in use.
    let guest = Guest {
        items: "(func $f (result i32)
            (call $door (i32.const 1024) (i32.const 5) (i32.const 512))
            (i32.add (call $f) (i32.const 1)))",
        turn: "call $f",
        realloc: "i32.const 4096",
        ..GUEST
    };
    let (asked, how) = ended(guest, LIMITS);
    assert_eq!(how, Ended::StackOverflow);
    assert!(asked.len() > 1000, "{}", asked.len());
}

#[test]
fn traps_are_told_apart() {
    for (body, trap) in [
        ("unreachable", Trap::Unreachable),
        ("(i32.load (i32.const -1))", Trap::MemoryBounds),
        ("(i32.load (i32.const 65533))", Trap::MemoryBounds),
        (
            "(memory.copy (i32.const 0) (i32.const 1) (i32.const 65536)) i32.const 512",
            Trap::MemoryBounds,
        ),
        ("(call_indirect (result i32) (i32.const 0))", Trap::IndirectCall),
        ("(call_indirect (result i32) (i32.const 9))", Trap::IndirectCall),
        ("(i32.div_u (i32.const 1) (i32.const 0))", Trap::Arithmetic),
        ("(i32.div_s (i32.const 0x80000000) (i32.const -1))", Trap::Arithmetic),
        ("(i32.trunc_f64_s (f64.const nan))", Trap::Arithmetic),
    ] {
        ends(turning(body), Ended::Trap(trap));
    }
    let start = Guest { items: "(func $s unreachable) (start $s)", ..GUEST };
    ends(start, Ended::Trap(Trap::Unreachable));
}

#[test]
fn an_allocator_that_lies_or_breaks_ends_the_turn_alone() {
    for (realloc, how) in [
        ("i32.const -1", Trap::Abi),
        ("i32.const 65536", Trap::Abi),
        ("i32.const 65530", Trap::Abi),
        ("unreachable", Trap::Unreachable),
        ("(i32.load (i32.const -4))", Trap::MemoryBounds),
        // Calls the door while its own reply, or the input, is being written.
        (
            "(call_indirect (type $door)
               (i32.const 1024) (i32.const 5) (i32.const 512) (i32.const 0)) i32.const 4096",
            Trap::Abi,
        ),
    ] {
        // At once, for the input.
        ends(Guest { realloc, ..GUEST }, Ended::Trap(how));
        // Later, for the reply: the call was made, the reply is lost.
        let later = format!(
            "(if (result i32) (i32.gt_u (global.get $allocations) (i32.const 1))
               (then {realloc}) (else {BUMP}))"
        );
        let guest = Guest { realloc: &later, turn: ASK, ..GUEST };
        assert_eq!(ended(guest, LIMITS), (vec![b"hello".to_vec()], Ended::Trap(how)), "{realloc}");
    }
}

#[test]
fn an_allocator_may_say_anything_inside_memory() {
    // Over its own data and results: the guest's loss, not the host's.
    let guest = Guest { realloc: "i32.const 512", turn: ASK, ..GUEST };
    let (door, result) = turn(&guest.load(), LIMITS);
    assert_eq!(door.asked, [b"hello"]);
    assert!(result.is_ok() || matches!(result, Err(Ended::Trap(Trap::Abi))), "{result:?}");
}

#[test]
fn a_sentence_is_read_from_inside_memory_or_not_at_all() {
    let ask = |at: i64, length: i64| {
        format!("(call $door (i32.const {at}) (i32.const {length}) (i32.const 512)) i32.const 512")
    };
    for (at, length) in [(65536, 0), (65535, 1), (0, 65536), (0, 0)] {
        let (door, answer) = turn(&turning(&ask(at, length)).load(), LIMITS);
        assert_eq!(answer, Ok(b"a reply".to_vec()), "{at} {length}");
        let lengths: Vec<_> =
            door.asked.iter().map(|sentence| i64::try_from(sentence.len()).unwrap()).collect();
        assert_eq!(lengths, [length]);
    }
    for (at, length) in [
        (65537, 0),
        (65535, 2),
        (65536, 1),
        (0, 65537),
        (0, -1),
        (-1, 1),
        (-1, 0),
        (-1, -1),
        (1, -1),
    ] {
        ends(turning(&ask(at, length)), Ended::Trap(Trap::Abi));
    }
}

#[test]
fn a_reply_is_laid_out_inside_memory_or_not_at_all() {
    for at in [65536, 65532, 65528, -4, 513] {
        let body =
            format!("(call $door (i32.const 1024) (i32.const 5) (i32.const {at})) i32.const 512");
        let (_, how) = ended(turning(&body), LIMITS);
        assert_eq!(how, Ended::Trap(Trap::Abi), "{at}");
    }
}

#[test]
fn an_answer_is_read_from_inside_memory_or_not_at_all() {
    for at in [65536, 65528, -4, 513] {
        ends(turning(&format!("i32.const {at}")), Ended::Trap(Trap::Abi));
    }
    for (at, length) in [(65537, 0), (65535, 2), (0, 65537), (0, -1), (-1, 1)] {
        let body = format!(
            "(i32.store (i32.const 516) (i32.const {at}))
             (i32.store (i32.const 520) (i32.const {length})) i32.const 512"
        );
        ends(turning(&body), Ended::Trap(Trap::Abi));
    }
    let unknown = "(i32.store8 (i32.const 512) (i32.const 2)) i32.const 512";
    ends(turning(unknown), Ended::Trap(Trap::Abi));
}

#[test]
fn an_answer_has_a_limit() {
    let limits = TurnLimits { answer_bytes: 9, ..LIMITS };
    assert_eq!(turn(&GUEST.load(), limits).1, Ok(b"the input".to_vec()));
    let limits = TurnLimits { answer_bytes: 8, ..LIMITS };
    assert_eq!(ended(GUEST, limits), (vec![], Ended::AnswerTooLarge));
}

#[test]
fn a_sentence_past_the_limit_reaches_the_door_cut() {
    let limits = TurnLimits { sentence_bytes: 5, ..LIMITS };
    assert_eq!(turn(&turning(ASK).load(), limits).0.asked, [b"hello"]);
    let limits = TurnLimits { sentence_bytes: 3, ..LIMITS };
    assert_eq!(turn(&turning(ASK).load(), limits).0.asked, [b"hell"]);
}

#[test]
fn a_guest_may_end_with_a_code_of_its_own() {
    let body = "(i32.store8 (i32.const 512) (i32.const 1))
        (i32.store (i32.const 516) (i32.const -2)) i32.const 512";
    ends(turning(body), Ended::Code(0xffff_fffe));
}

#[test]
fn a_full_engine_says_so_and_recovers() {
    let engine = Arc::new(Wasmtime::small().unwrap());
    let program = turning(ASK).on(&engine);
    let start = move || {
        let (engine, program) = (Arc::clone(&engine), program.clone());
        tokio::spawn(async move {
            let door = Memo { wait: Duration::from_millis(300), ..Memo::new() };
            engine.turn(&program, door, b"", LIMITS).await
        })
    };
    one_thread().block_on(async {
        let parked: Vec<_> = (0..4).map(|_| start()).collect();
        sleep(Duration::from_millis(50)).await;
        let (door, result) = start().await.unwrap();
        assert_eq!((door.asked.len(), result), (0, Err(Ended::NoRoom)));
        for turn in parked {
            let (door, answer) = turn.await.unwrap();
            assert_eq!((door.asked.len(), answer), (1, Ok(b"a reply".to_vec())));
        }
        assert_eq!(start().await.unwrap().1, Ok(b"a reply".to_vec()));
    });
}

#[test]
fn a_dropped_turn_gives_its_place_back() {
    let engine = Wasmtime::small().unwrap();
    let asking = turning(ASK).on(&engine);
    let computing = turning("(loop $l (br $l)) unreachable").on(&engine);
    one_thread().block_on(async {
        for _ in 0..6 {
            let door = Memo { wait: Duration::from_mins(1), ..Memo::new() };
            let waiting = engine.turn(&asking, door, b"", LIMITS);
            assert!(timeout(Duration::from_millis(20), waiting).await.is_err());
            let running = engine.turn(&computing, Memo::new(), b"", LIMITS);
            assert!(timeout(Duration::from_millis(20), running).await.is_err());
        }
        let (_, answer) = engine.turn(&asking, Memo::new(), b"", LIMITS).await;
        assert_eq!(answer, Ok(b"a reply".to_vec()));
    });
}

#[test]
fn a_thousand_turns_wait_on_one_thread() {
    let program = turning(ASK).load();
    one_thread().block_on(async {
        let turns: Vec<_> = (0..1000)
            .map(|_| {
                let program = program.clone();
                tokio::spawn(async move {
                    let door = Memo { wait: Duration::from_millis(100), ..Memo::new() };
                    ENGINE.turn(&program, door, b"", LIMITS).await.1
                })
            })
            .collect();
        for turn in turns {
            assert_eq!(turn.await.unwrap(), Ok(b"a reply".to_vec()));
        }
    });
}

#[test]
fn an_engine_ends_with_its_programs_alive() {
    let engine = Wasmtime::small().unwrap();
    let program = GUEST.on(&engine);
    let start = Instant::now();
    drop(engine);
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(program);
}
