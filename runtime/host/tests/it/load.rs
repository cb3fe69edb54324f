//! Components that are slow to compile, on each engine.

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::time::Instant;

use synapse_host::engine::Wasmtime;
use synapse_host::load::{NotLoaded, load};
use synapse_interpreter::Interpreter;

use crate::engine::{GUEST, Guest, LIMITS, Under, turn};

/// Code of a few kilobytes, so many times, that takes a compiler seconds: in every
/// loop of many, one inside the other, each of many variables may have any value.
fn slow(times: usize) -> Vec<u8> {
    const LOOPS: usize = 400;
    const VARIABLES: usize = 800;
    let mut code = format!("(local{}) {}", " i32".repeat(VARIABLES), "loop ".repeat(LOOPS));
    for variable in 0..VARIABLES {
        let next = (variable + 1) % VARIABLES;
        code.push_str(&format!("local.get {variable} i32.const 1 i32.add local.set {next} "));
    }
    for depth in 0..LOOPS {
        code.push_str(&format!("local.get {} br_if 0 end ", depth % VARIABLES));
    }
    let function = format!("(func (result i32) {code} local.get 0)");
    Guest { items: &function.repeat(times), ..GUEST }.bytes()
}

fn what_takes_too_long_to_compile_keeps_nobody_waiting<E: Under>(times: usize) {
    const LIMIT: Duration = Duration::from_millis(1);
    let (engine, slow, go_on) = (E::small(), slow(times), AtomicBool::new(false));
    let begun = Instant::now();
    let Err(why) = load(engine, slow, LIMIT, &go_on) else { unreachable!("compiled in {LIMIT:?}") };
    assert!(matches!(why, NotLoaded::TooLong(LIMIT)), "{why}");
    assert!(why.to_string().contains("longer than 0.001 s to compile"), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    // Who gave up waits for no limit either.
    let gave_up =
        load(E::small(), self::slow(times), Duration::from_mins(1), &AtomicBool::new(true));
    assert!(matches!(gave_up, Err(NotLoaded::Cancelled)));
    // Others go on, while it is still being compiled and afterwards.
    let (_, answer) = turn::<E>(&GUEST.load::<E>(), LIMITS);
    assert_eq!(answer, Ok(b"the input".to_vec()));
    assert!(load(E::small(), GUEST.bytes(), Duration::from_mins(1), &go_on).is_ok());
}

#[test]
fn what_takes_too_long_to_compile_keeps_nobody_waiting_on_wasmtime() {
    what_takes_too_long_to_compile_keeps_nobody_waiting::<Wasmtime>(1);
}

/// Interpreting takes time in proportion to the size.
#[test]
fn what_takes_too_long_to_compile_keeps_nobody_waiting_on_wasmi() {
    what_takes_too_long_to_compile_keeps_nobody_waiting::<Interpreter>(100);
}
