//! Guests of every kind on each engine: good, broken and hostile.
//!
//! The guests are written in the text format with the canonical ABI by hand,
//! so that each breaks exactly the rule it is meant to.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use synapse_host::engine::{Wasmtime, interpreter};
use synapse_interpreter::Interpreter;
use synapse_kernel::admit::admit;
use synapse_kernel::engine::{Door, Ended, Engine, Reply, Trap, TurnLimits};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

/// An engine that a test runs under.
pub(crate) trait Under: Engine<Program: 'static> + Sized + 'static {
    fn whole() -> &'static Arc<Self>;
    /// One with little room.
    fn small() -> Self;

    fn shared() -> &'static Self {
        Self::whole()
    }
}

impl Under for Wasmtime {
    fn whole() -> &'static Arc<Self> {
        static ENGINE: LazyLock<Arc<Wasmtime>> = LazyLock::new(|| Wasmtime::new().unwrap().into());
        &ENGINE
    }

    fn small() -> Self {
        Wasmtime::small().unwrap()
    }
}

impl Under for Interpreter {
    fn whole() -> &'static Arc<Self> {
        static ENGINE: LazyLock<Arc<Interpreter>> = LazyLock::new(|| interpreter().into());
        &ENGINE
    }

    fn small() -> Self {
        interpreter()
    }
}

/// The same tests, once under each engine.
macro_rules! under_both {
    ($($test:ident),* $(,)?) => {
        mod wasmtime {
            $(#[test] fn $test() { super::$test::<synapse_host::engine::Wasmtime>() })*
        }
        mod wasmi {
            $(#[test] fn $test() { super::$test::<synapse_interpreter::Interpreter>() })*
        }
    };
}
pub(crate) use under_both;

/// Parts of a guest. Memory is one page; a bump allocator starts at 4096, the
/// sentence `hello` stands at 1024, and both results are laid out at 512.
#[derive(Clone, Copy)]
pub(crate) struct Guest<'a> {
    pub(crate) memory: &'a str,
    pub(crate) realloc: &'a str,
    pub(crate) items: &'a str,
    pub(crate) turn: &'a str,
    pub(crate) options: &'a str,
}

pub(crate) const GUEST: Guest<'static> =
    Guest { memory: "1", realloc: BUMP, items: "", turn: ECHO, options: "" };

const BUMP: &str = "global.get $top
    (global.set $top (i32.add (global.get $top) (local.get 3)))";

pub(crate) const ECHO: &str = "(i32.store8 (i32.const 512) (i32.const 0))
    (i32.store (i32.const 516) (local.get 0))
    (i32.store (i32.const 520) (local.get 1))
    i32.const 512";

/// Sends `hello` and answers with what comes back, `Ok` or `Err`.
pub(crate) const ASK: &str =
    "(call $door (i32.const 1024) (i32.const 5) (i32.const 512)) i32.const 512";

impl Guest<'_> {
    pub(crate) fn bytes(self) -> Vec<u8> {
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

    fn on<E: Engine>(self, engine: &E) -> E::Program {
        engine.load(&admit(&self.bytes()).unwrap()).unwrap()
    }

    pub(crate) fn load<E: Under>(self) -> E::Program {
        self.on(E::shared())
    }
}

pub(crate) fn turning(turn: &str) -> Guest<'_> {
    Guest { turn, ..GUEST }
}

/// A door that remembers what it was asked.
pub(crate) struct Memo {
    pub(crate) asked: Vec<Vec<u8>>,
    reply: Result<&'static [u8], u32>,
    wait: Duration,
    cancel: Arc<AtomicBool>,
}

impl Memo {
    pub(crate) fn new() -> Self {
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

pub(crate) const LIMITS: TurnLimits = TurnLimits {
    memory_bytes: 4 << 20,
    table_elements: 1000,
    deadline: Duration::from_secs(20),
    sentence_bytes: 1 << 20,
    answer_bytes: 1 << 20,
};

pub(crate) fn turn<E: Under>(
    program: &E::Program,
    limits: TurnLimits,
) -> (Memo, Result<Vec<u8>, Ended>) {
    one_thread().block_on(E::shared().turn(program, Memo::new(), b"the input", limits))
}

/// How a guest's turn ends, and with which calls; after it, a good guest on the
/// same engine still works.
pub(crate) fn ended<E: Under>(guest: Guest<'_>, limits: TurnLimits) -> (Vec<Vec<u8>>, Ended) {
    let (door, result) = turn::<E>(&guest.load::<E>(), limits);
    let (after, answer) = turn::<E>(&GUEST.load::<E>(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    assert!(after.asked.is_empty());
    (door.asked, result.unwrap_err())
}

pub(crate) fn ends<E: Under>(guest: Guest<'_>, how: Ended) {
    assert_eq!(ended::<E>(guest, LIMITS), (Vec::new(), how), "{}", guest.turn);
}

fn soon() -> TurnLimits {
    TurnLimits { deadline: Duration::from_millis(50), ..LIMITS }
}

fn the_input_is_answered<E: Under>() {
    let (door, answer) = turn::<E>(&GUEST.load::<E>(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    assert!(door.asked.is_empty());
}

fn a_call_crosses_the_door_and_its_reply_comes_back<E: Under>() {
    let (door, answer) = turn::<E>(&turning(ASK).load::<E>(), LIMITS);
    assert_eq!(door.asked, [b"hello"]);
    assert_eq!(answer, Ok(b"a reply".to_vec()));
}

fn a_refusal_reaches_the_guest_as_its_code<E: Under>() {
    let door = Memo { reply: Err(0x1_0002), ..Memo::new() };
    let program = turning(ASK).load::<E>();
    let (door, answer) = one_thread().block_on(E::shared().turn(&program, door, b"", LIMITS));
    assert_eq!(door.asked, [b"hello"]);
    // The guest passes the code on as its own.
    assert_eq!(answer, Err(Ended::Code(0x1_0002)));
}

fn every_call_is_one_call_of_the_door<E: Under>() {
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
    .load::<E>();
    let (door, answer) = one_thread().block_on(E::shared().turn(&program, Count(0), b"", LIMITS));
    assert_eq!((door.0, answer), (CALLS, Err(Ended::Code(7))));
}

fn i6_nothing_survives_a_turn<E: Under>() {
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
    .load::<E>();
    for _ in 0..200 {
        assert_eq!(turn::<E>(&program, LIMITS).1, Err(Ended::Code(0)));
    }
}

fn the_answer_is_read_before_the_guest_cleans_up<E: Under>() {
    let options = r#"(post-return (func $main "post-return"))"#;
    let (_, answer) = turn::<E>(&Guest { options, ..GUEST }.load::<E>(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));

    let options = r#"(post-return (func $main "post-trap"))"#;
    ends::<E>(Guest { options, ..GUEST }, Ended::Trap(Trap::Unreachable));
}

fn a_loop_without_end_meets_its_deadline_and_blocks_nobody<E: Under>() {
    let program = turning("(loop $l (br $l)) unreachable").load::<E>();
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
        let (_, result) = E::shared().turn(&program, Memo::new(), b"", limits).await;
        assert_eq!(result, Err(Ended::Deadline));
        assert!(steps.load(Ordering::Relaxed) >= 5, "{steps:?}");
        other.abort();
    });
    assert_eq!(turn::<E>(&GUEST.load::<E>(), LIMITS).1, Ok(b"the input".to_vec()));
}

fn loops_outside_turn_meet_the_deadline_too<E: Under>() {
    let forever = "(loop $l (br $l)) unreachable";
    let start = Guest { items: "(func $s (loop $l (br $l))) (start $s)", ..GUEST };
    assert_eq!(ended::<E>(start, soon()), (vec![], Ended::Deadline));
    assert_eq!(ended::<E>(Guest { realloc: forever, ..GUEST }, soon()), (vec![], Ended::Deadline));
    let later = format!(
        "(if (i32.gt_u (global.get $allocations) (i32.const 1)) (then (loop $l (br $l)))) {BUMP}"
    );
    let guest = Guest { realloc: &later, turn: ASK, ..GUEST };
    assert_eq!(ended::<E>(guest, soon()), (vec![b"hello".to_vec()], Ended::Deadline));
    let calls = turning(
        "(loop $l (call $door (i32.const 0) (i32.const 0) (i32.const 512)) (br $l)) unreachable",
    );
    let (asked, how) = ended::<E>(Guest { realloc: "i32.const 4096", ..calls }, soon());
    assert_eq!(how, Ended::Deadline);
    assert!(asked.len() > 100, "{}", asked.len());
}

fn no_time_at_all_is_a_deadline<E: Under>() {
    let limits = TurnLimits { deadline: Duration::ZERO, ..LIMITS };
    assert_eq!(ended::<E>(turning(ASK), limits), (vec![], Ended::Deadline));
}

fn waiting_for_the_door_is_not_charged<E: Under>() {
    let door = Memo { wait: Duration::from_millis(300), ..Memo::new() };
    let program = turning(ASK).load::<E>();
    let start = Instant::now();
    let (door, answer) = one_thread().block_on(E::shared().turn(&program, door, b"", soon()));
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!((door.asked.len(), answer), (1, Ok(b"a reply".to_vec())));
}

fn a_cancelled_turn_stops<E: Under>() {
    let computing = turning("(loop $l (br $l)) unreachable").load::<E>();
    let asking = turning(ASK).load::<E>();
    one_thread().block_on(async {
        let door = Memo::new();
        let cancel = Arc::clone(&door.cancel);
        tokio::spawn(async move {
            sleep(Duration::from_millis(30)).await;
            cancel.store(true, Ordering::Relaxed);
        });
        let (_, result) = E::shared().turn(&computing, door, b"", LIMITS).await;
        assert_eq!(result, Err(Ended::Cancelled));

        let door = Memo { wait: Duration::from_millis(60), ..Memo::new() };
        let cancel = Arc::clone(&door.cancel);
        tokio::spawn(async move {
            sleep(Duration::from_millis(20)).await;
            cancel.store(true, Ordering::Relaxed);
        });
        let (door, result) = E::shared().turn(&asking, door, b"", LIMITS).await;
        assert_eq!((door.asked.len(), result), (1, Err(Ended::Cancelled)));

        let door = Memo::new();
        door.cancel.store(true, Ordering::Relaxed);
        let (door, result) = E::shared().turn(&asking, door, b"", LIMITS).await;
        assert_eq!((door.asked.len(), result), (0, Err(Ended::Cancelled)));
    });
}

fn a_reply_after_the_cancellation_is_not_handed_over<E: Under>() {
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
    let program = turning(&twice).load::<E>();
    for _ in 0..50 {
        let (door, result) =
            one_thread().block_on(E::shared().turn(&program, Last(0), b"", LIMITS));
        assert_eq!((door.0, result), (1, Err(Ended::Cancelled)));
    }
}

fn memory_has_a_limit<E: Under>() {
    let grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))";
    ends::<E>(turning(&format!("{grow} unreachable")), Ended::MemoryLimit);
    // Denied, a guest may go on: the limit is no trap.
    let (_, answer) = turn::<E>(&turning(&format!("{grow} {ECHO}")).load::<E>(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    // Exactly the limit is granted.
    let size = format!(
        "{grow} (i32.store8 (i32.const 512) (i32.const 1))
         (i32.store (i32.const 516) (memory.size)) i32.const 512"
    );
    assert_eq!(turn::<E>(&turning(&size).load::<E>(), LIMITS).1, Err(Ended::Code(64)));
    // A loop that does not look ends by its deadline, its memory bounded.
    let blind = turning("(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable");
    assert_eq!(ended::<E>(blind, soon()), (vec![], Ended::Deadline));
    ends::<E>(Guest { memory: "65", ..GUEST }, Ended::MemoryLimit);
}

#[test]
fn a_memory_beyond_the_pool_does_not_load() {
    let guest = Guest { memory: "16385", ..GUEST };
    let error = Wasmtime::shared().load(&admit(&guest.bytes()).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("the component cannot be compiled: "), "{error}");
}

fn tables_have_a_limit<E: Under>() {
    let grow = "(if (i32.eq (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1))
        (then unreachable))";
    ends::<E>(turning(&format!("{grow} {ECHO}")), Ended::MemoryLimit);
    let fits = format!("(drop (table.grow $table (ref.null func) (i32.const 999))) {ECHO}");
    assert_eq!(turn::<E>(&turning(&fits).load::<E>(), LIMITS).1, Ok(b"the input".to_vec()));
}

fn recursion_without_end_is_a_stack_overflow<E: Under>() {
    let guest = Guest {
        items: "(func $f (result i32) (i32.add (call $f) (i32.const 1)))",
        turn: "call $f",
        ..GUEST
    };
    ends::<E>(guest, Ended::StackOverflow);
}

fn the_door_has_stack_left_when_the_guest_has_little<E: Under>() {
    // Calls the door at every depth, with all but the last frames in use.
    let guest = Guest {
        items: "(func $f (result i32)
            (call $door (i32.const 1024) (i32.const 5) (i32.const 512))
            (i32.add (call $f) (i32.const 1)))",
        turn: "call $f",
        realloc: "i32.const 4096",
        ..GUEST
    };
    let (asked, how) = ended::<E>(guest, LIMITS);
    assert_eq!(how, Ended::StackOverflow);
    assert!(asked.len() > 1000, "{}", asked.len());
}

fn traps_are_told_apart<E: Under>() {
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
        ends::<E>(turning(body), Ended::Trap(trap));
    }
    let start = Guest { items: "(func $s unreachable) (start $s)", ..GUEST };
    ends::<E>(start, Ended::Trap(Trap::Unreachable));
}

fn an_allocator_that_lies_or_breaks_ends_the_turn_alone<E: Under>() {
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
        ends::<E>(Guest { realloc, ..GUEST }, Ended::Trap(how));
        // Later, for the reply: the call was made, the reply is lost.
        let later = format!(
            "(if (result i32) (i32.gt_u (global.get $allocations) (i32.const 1))
               (then {realloc}) (else {BUMP}))"
        );
        let guest = Guest { realloc: &later, turn: ASK, ..GUEST };
        assert_eq!(
            ended::<E>(guest, LIMITS),
            (vec![b"hello".to_vec()], Ended::Trap(how)),
            "{realloc}"
        );
    }
}

fn an_allocator_may_say_anything_inside_memory<E: Under>() {
    // Over its own data and results: the guest's loss, not the host's.
    let guest = Guest { realloc: "i32.const 512", turn: ASK, ..GUEST };
    let (door, result) = turn::<E>(&guest.load::<E>(), LIMITS);
    assert_eq!(door.asked, [b"hello"]);
    assert!(result.is_ok() || matches!(result, Err(Ended::Trap(Trap::Abi))), "{result:?}");
}

fn a_sentence_is_read_from_inside_memory_or_not_at_all<E: Under>() {
    let ask = |at: i64, length: i64| {
        format!("(call $door (i32.const {at}) (i32.const {length}) (i32.const 512)) i32.const 512")
    };
    for (at, length) in [(65536, 0), (65535, 1), (0, 65536), (0, 0)] {
        let (door, answer) = turn::<E>(&turning(&ask(at, length)).load::<E>(), LIMITS);
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
        ends::<E>(turning(&ask(at, length)), Ended::Trap(Trap::Abi));
    }
}

fn a_reply_is_laid_out_inside_memory_or_not_at_all<E: Under>() {
    for at in [65536, 65532, 65528, -4, 513] {
        let body =
            format!("(call $door (i32.const 1024) (i32.const 5) (i32.const {at})) i32.const 512");
        let (_, how) = ended::<E>(turning(&body), LIMITS);
        assert_eq!(how, Ended::Trap(Trap::Abi), "{at}");
    }
}

fn an_answer_is_read_from_inside_memory_or_not_at_all<E: Under>() {
    for at in [65536, 65528, -4, 513] {
        ends::<E>(turning(&format!("i32.const {at}")), Ended::Trap(Trap::Abi));
    }
    for (at, length) in [(65537, 0), (65535, 2), (0, 65537), (0, -1), (-1, 1)] {
        let body = format!(
            "(i32.store (i32.const 516) (i32.const {at}))
             (i32.store (i32.const 520) (i32.const {length})) i32.const 512"
        );
        ends::<E>(turning(&body), Ended::Trap(Trap::Abi));
    }
    let unknown = "(i32.store8 (i32.const 512) (i32.const 2)) i32.const 512";
    ends::<E>(turning(unknown), Ended::Trap(Trap::Abi));
}

fn an_answer_has_a_limit<E: Under>() {
    let limits = TurnLimits { answer_bytes: 9, ..LIMITS };
    assert_eq!(turn::<E>(&GUEST.load::<E>(), limits).1, Ok(b"the input".to_vec()));
    let limits = TurnLimits { answer_bytes: 8, ..LIMITS };
    assert_eq!(ended::<E>(GUEST, limits), (vec![], Ended::AnswerTooLarge));
}

fn a_sentence_past_the_limit_reaches_the_door_cut<E: Under>() {
    let limits = TurnLimits { sentence_bytes: 5, ..LIMITS };
    assert_eq!(turn::<E>(&turning(ASK).load::<E>(), limits).0.asked, [b"hello"]);
    let limits = TurnLimits { sentence_bytes: 3, ..LIMITS };
    assert_eq!(turn::<E>(&turning(ASK).load::<E>(), limits).0.asked, [b"hell"]);
}

fn a_guest_may_end_with_a_code_of_its_own<E: Under>() {
    let body = "(i32.store8 (i32.const 512) (i32.const 1))
        (i32.store (i32.const 516) (i32.const -2)) i32.const 512";
    ends::<E>(turning(body), Ended::Code(0xffff_fffe));
}

#[test]
fn a_full_engine_says_so_and_recovers() {
    let engine = Arc::new(Wasmtime::small().unwrap());
    let program = turning(ASK).on(&*engine);
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

fn a_dropped_turn_gives_its_place_back<E: Under>() {
    let engine = E::small();
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

fn a_thousand_turns_wait_on_one_thread<E: Under>() {
    let program = turning(ASK).load::<E>();
    one_thread().block_on(async {
        let turns: Vec<_> = (0..1000)
            .map(|_| {
                let program = program.clone();
                tokio::spawn(async move {
                    let door = Memo { wait: Duration::from_millis(100), ..Memo::new() };
                    E::shared().turn(&program, door, b"", LIMITS).await.1
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

under_both! {
    the_input_is_answered,
    a_call_crosses_the_door_and_its_reply_comes_back,
    a_refusal_reaches_the_guest_as_its_code,
    every_call_is_one_call_of_the_door,
    i6_nothing_survives_a_turn,
    the_answer_is_read_before_the_guest_cleans_up,
    a_loop_without_end_meets_its_deadline_and_blocks_nobody,
    loops_outside_turn_meet_the_deadline_too,
    no_time_at_all_is_a_deadline,
    waiting_for_the_door_is_not_charged,
    a_cancelled_turn_stops,
    a_reply_after_the_cancellation_is_not_handed_over,
    memory_has_a_limit,
    tables_have_a_limit,
    recursion_without_end_is_a_stack_overflow,
    the_door_has_stack_left_when_the_guest_has_little,
    traps_are_told_apart,
    an_allocator_that_lies_or_breaks_ends_the_turn_alone,
    an_allocator_may_say_anything_inside_memory,
    a_sentence_is_read_from_inside_memory_or_not_at_all,
    a_reply_is_laid_out_inside_memory_or_not_at_all,
    an_answer_is_read_from_inside_memory_or_not_at_all,
    an_answer_has_a_limit,
    a_sentence_past_the_limit_reaches_the_door_cut,
    a_guest_may_end_with_a_code_of_its_own,
    a_dropped_turn_gives_its_place_back,
    a_thousand_turns_wait_on_one_thread,
}
