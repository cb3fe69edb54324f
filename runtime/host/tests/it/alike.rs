//! What the two engines do in ways of their own, and must do alike.
//!
//! Guests that reach the corners of either: a door called from where a guest is
//! not yet or no longer running its `turn`, memory that moves while the guest
//! waits, a component of another shape, a bound that is counted differently.

use core::time::Duration;

use synapse_host::engine::Wasmtime;
use synapse_interpreter::{Interpreter, Time};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::{Door, Ended, Engine, Reply, Trap, TurnLimits};

use crate::engine::{
    ASK, GUEST, Guest, LIMITS, Memo, Under, ended, ends, one_thread, turn, turning, under_both,
};

fn memory_may_move_while_the_guest_waits<E: Under>() {
    // The reply goes to a page that is new, and the guest goes on with it.
    let guest = Guest {
        realloc: "(i32.mul (memory.grow (i32.const 20)) (i32.const 65536))",
        items: "(global $seen (mut i32) (i32.const 0))",
        turn: "(i32.store (i32.const 2048) (i32.const 41))
            (call $door (i32.const 1024) (i32.const 5) (i32.const 512))
            (i32.store (i32.const 2048) (i32.add (i32.load (i32.const 2048)) (i32.const 1)))
            (global.set $seen (i32.load8_u (i32.load (i32.const 516))))
            (i32.store8 (i32.const 512) (i32.const 1))
            (i32.store (i32.const 516)
              (i32.add (i32.mul (i32.load (i32.const 2048)) (i32.const 1000)) (global.get $seen)))
            i32.const 512",
        ..GUEST
    };
    let (door, answer) = turn::<E>(&guest.load::<E>(), LIMITS);
    assert_eq!(door.asked, [b"hello"]);
    assert_eq!(answer, Err(Ended::Code(42_000 + u32::from(b'a'))));
}

fn a_tail_call_reaches_the_door<E: Under>() {
    let guest = Guest {
        items: "(func $direct (param i32 i32 i32)
              (return_call $door (local.get 0) (local.get 1) (local.get 2)))
            (type $door (func (param i32 i32 i32)))
            (func $table (param i32 i32 i32)
              (return_call_indirect (type $door)
                (local.get 0) (local.get 1) (local.get 2) (i32.const 0)))",
        turn: "(call $direct (i32.const 1024) (i32.const 4) (i32.const 512))
            (call $table (i32.const 1024) (i32.const 5) (i32.const 512)) i32.const 512",
        ..GUEST
    };
    let (door, answer) = turn::<E>(&guest.load::<E>(), LIMITS);
    assert_eq!(door.asked, [&b"hell"[..], b"hello"]);
    assert_eq!(answer, Ok(b"a reply".to_vec()));
}

fn a_start_function_may_ask_before_the_turn<E: Under>() {
    let guest = Guest {
        items: r#"(func $s (export "start")
              (call $door (i32.const 1024) (i32.const 4) (i32.const 512)))
            (func (export "start'") unreachable)
            (start $s)"#,
        turn: ASK,
        ..GUEST
    };
    let (door, answer) = turn::<E>(&guest.load::<E>(), LIMITS);
    assert_eq!(door.asked, [&b"hell"[..], b"hello"]);
    assert_eq!(answer, Ok(b"a reply".to_vec()));
}

fn cleaning_up_may_not_ask<E: Under>() {
    let guest = Guest {
        items: r#"(func (export "post-ask") (param i32)
            (call $door (i32.const 1024) (i32.const 5) (i32.const 512)))"#,
        options: r#"(post-return (func $main "post-ask"))"#,
        ..GUEST
    };
    ends::<E>(guest, Ended::Trap(Trap::Abi));
}

fn segments_that_do_not_fit_end_the_turn<E: Under>() {
    for (items, trap) in [
        (r#"(data (i32.const 65535) "ab")"#, Trap::MemoryBounds),
        ("(elem (table $table) (i32.const 1) func $door)", Trap::IndirectCall),
    ] {
        ends::<E>(Guest { items, ..GUEST }, Ended::Trap(trap));
    }
}

fn a_nan_has_one_form<E: Under>() {
    for (body, bits) in [
        ("(i32.reinterpret_f32 (f32.div (f32.const 0) (f32.const 0)))", 0x7fc0_0000),
        ("(i32.reinterpret_f32 (f32.add (f32.const -nan:0x1234) (f32.const 1)))", 0x7fc0_0000),
        ("(i32.reinterpret_f32 (f32.sqrt (f32.const -1)))", 0x7fc0_0000),
        ("(i32.reinterpret_f32 (f32.demote_f64 (f64.const -nan:0x1234)))", 0x7fc0_0000),
        ("(i32.reinterpret_f32 (f32.min (f32.const -nan) (f32.const 1)))", 0x7fc0_0000),
    ] {
        let body = format!(
            "(i32.store8 (i32.const 512) (i32.const 1)) (i32.store (i32.const 516) {body})
             i32.const 512"
        );
        assert_eq!(ended::<E>(turning(&body), LIMITS), (vec![], Ended::Code(bits)), "{body}");
    }
}

/// The shape that the component encoder gives a guest: its trampolines stand in
/// a module of their own, which is filled last.
const ENCODED: &str = r#"
(component
  (import "synapse-call" (func $door
    (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
  (core module $shim
    (table (export "$imports") 1 1 funcref)
    (func (export "0") (param i32 i32 i32)
      local.get 0 local.get 1 local.get 2 i32.const 0 call_indirect (param i32 i32 i32)))
  (core module $guest
    (import "$root" "synapse-call" (func $call (param i32 i32 i32)))
    (memory (export "memory") 1)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 4096)
    (func (export "turn") (param i32 i32) (result i32)
      local.get 0 local.get 1 i32.const 16 call $call
      i32.const 16))
  (core module $fill
    (import "" "0" (func (param i32 i32 i32)))
    (import "" "$imports" (table 1 1 funcref))
    (elem (i32.const 0) func 0))
  (core instance $shim (instantiate $shim))
  (core instance $guest (instantiate $guest
    (with "$root" (instance (export "synapse-call" (func $shim "0"))))))
  (core func $lowered (canon lower (func $door)
    (memory $guest "memory") (realloc (func $guest "cabi_realloc"))))
  (core instance (instantiate $fill (with "" (instance
    (export "0" (func $lowered)) (export "$imports" (table $shim "$imports"))))))
  (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
    (canon lift (core func $guest "turn")
      (memory $guest "memory") (realloc (func $guest "cabi_realloc"))))
  (export "turn" (func $turn)))"#;

fn what_the_encoder_makes_runs<E: Under>() {
    let bytes = wat::parse_str(ENCODED).unwrap();
    let admitted = admit(&bytes).unwrap();
    assert_eq!(admitted.boards().firmware, Ok(()));
    let program = E::shared().load(&admitted).unwrap();
    let (door, answer) = turn::<E>(&program, LIMITS);
    assert_eq!(door.asked, [b"the input"]);
    assert_eq!(answer, Ok(b"a reply".to_vec()));
}

fn a_component_without_end_does_not_load<E: Under>() {
    let many = "(core instance (instantiate $tiny))".repeat(65);
    let text = ENCODED.replacen(
        "(core instance $shim",
        &format!("(core module $tiny) {many} (core instance $shim"),
        1,
    );
    let bytes = wat::parse_str(text).unwrap();
    let error = E::shared().load(&admit(&bytes).unwrap()).err().unwrap();
    assert!(error.to_string().starts_with("the component cannot be compiled: "), "{error}");
}

under_both! {
    memory_may_move_while_the_guest_waits,
    a_tail_call_reaches_the_door,
    a_start_function_may_ask_before_the_turn,
    cleaning_up_may_not_ask,
    segments_that_do_not_fit_end_the_turn,
    a_nan_has_one_form,
    what_the_encoder_makes_runs,
    a_component_without_end_does_not_load,
}

/// Counts, and answers with a number.
struct Count(u64);

impl Door for Count {
    async fn submit(&mut self, _: &[u8]) -> Result<Reply, u32> {
        self.0 += 1;
        Err(7)
    }

    fn cancelled(&self) -> bool {
        false
    }
}

#[test]
fn fuel_ends_a_turn_at_the_same_call_every_time() {
    let engine = Interpreter::new(Time::Fuel { per_second: 100_000_000 });
    let bytes = turning(
        "(loop $l (call $door (i32.const 1024) (i32.const 5) (i32.const 512)) (br $l))
         unreachable",
    )
    .bytes();
    let program = engine.load(&admit(&bytes).unwrap()).unwrap();
    let calls = |deadline| {
        let limits = TurnLimits { deadline, ..LIMITS };
        let (door, ended) = one_thread().block_on(engine.turn(&program, Count(0), b"", limits));
        assert_eq!(ended, Err(Ended::Deadline));
        door.0
    };
    let first = calls(Duration::from_millis(40));
    assert!(first > 1000, "{first}");
    assert_eq!(calls(Duration::from_millis(40)), first);
    assert!(calls(Duration::from_millis(80)) > first);
}

#[test]
fn what_only_the_host_runs_the_interpreter_refuses_by_name() {
    let body = "(drop (i32x4.extract_lane 0 (v128.const i32x4 1 2 3 4)))";
    let bytes = turning(&format!("{body} {ASK}")).bytes();
    let admitted = admit(&bytes).unwrap();
    assert!(admitted.boards().firmware.is_err());
    assert!(Wasmtime::shared().load(&admitted).is_ok());
    let refused = Interpreter::shared().load(&admitted).unwrap_err();
    assert!(refused.why().contains("SIMD"), "{refused}");
}

#[test]
fn a_small_board_takes_small_components() {
    let bytes = GUEST.bytes();
    let admitted = admit(&bytes).unwrap();
    let engine = Interpreter::new(Time::Fuel { per_second: 1 });
    assert!(engine.with_code_bytes(bytes.len()).load(&admitted).is_ok());
    let error = engine.with_code_bytes(bytes.len() - 1).load(&admitted).unwrap_err();
    assert!(error.why().contains("this board takes"), "{error}");
}

#[test]
fn both_engines_call_the_door_before_they_find_the_result_misplaced() {
    for at in [65536, 65532, -4, 513] {
        let body =
            format!("(call $door (i32.const 1024) (i32.const 5) (i32.const {at})) i32.const 512");
        let compiled = ended::<Wasmtime>(turning(&body), LIMITS);
        assert_eq!(ended::<Interpreter>(turning(&body), LIMITS), compiled, "{at}");
    }
}

#[test]
fn a_door_that_is_exported_as_the_turn_harms_nobody() {
    let bytes = wat::parse_str(
        r#"(component
          (import "synapse-call" (func $door
            (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
          (export "turn" (func $door)))"#,
    )
    .unwrap();
    let admitted = admit(&bytes).unwrap();
    let refused = Interpreter::shared().load(&admitted).unwrap_err();
    assert!(refused.to_string().contains("no function of its own"), "{refused}");
    let loaded = Wasmtime::shared().load(&admitted);
    if let Ok(program) = loaded {
        let door = Memo::new();
        let turn = Wasmtime::shared().turn(&program, door, b"", LIMITS);
        assert!(one_thread().block_on(turn).1.is_err());
    }
}
