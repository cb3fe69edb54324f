//! Guests written in the text format, wrapped as `synapse build` wraps them

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A component whose one core module has these items and this turn. Its memory
/// has a bump allocator that starts at 64 KiB; results are laid out at 512.
pub(crate) fn guest(items: &str, turn: &str) -> Vec<u8> {
    let module = wat::parse_str(format!(
        r#"(module
          (import "$root" "synapse-call" (func $door (param i32 i32 i32)))
          (memory (export "memory") 24)
          (global $top (mut i32) (i32.const 65536))
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            global.get $top
            (global.set $top (i32.add (global.get $top) (local.get 3))))
          (func (export "cabi_post_turn") (param i32))
          {items}
          (func (export "turn") (param $input i32) (param $length i32) (result i32) {turn}))"#
    ))
    .unwrap();
    wrap(module)
}

/// A core module as a component of the world of agents.
pub(crate) fn wrap(mut module: Vec<u8>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let wit = include_str!("../../../../guest-sdk/wit/synapse.wit");
    let package = resolve.push_source("synapse.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some("agent")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().encode().unwrap()
}

/// Says these sentences, so many times, and ends as the last one did.
pub(crate) fn saying(sentences: &[&str], times: u32) -> Vec<u8> {
    let (mut data, mut calls, mut at) = (String::new(), String::new(), 1024);
    for sentence in sentences {
        let text = sentence.replace('"', "\\22");
        data.push_str(&format!("(data (i32.const {at}) \"{text}\")"));
        calls.push_str(&format!(
            "(global.set $top (i32.const 131072))
             (call $door (i32.const {at}) (i32.const {}) (i32.const 512))",
            sentence.len()
        ));
        at += sentence.len();
    }
    assert!(at < 65_536, "the sentences overlap what is allocated");
    let turn = format!(
        "(local $left i32)
         (local.set $left (i32.const {times}))
         (loop $again {calls}
           (local.set $left (i32.sub (local.get $left) (i32.const 1)))
           (br_if $again (local.get $left)))
         i32.const 512"
    );
    guest(&data, &turn)
}

/// An agent that says the sentences in its task line, in hex, each ended by a
/// `z`, and answers with a hash over all replies and codes.
pub(crate) fn script() -> Vec<u8> {
    guest(SCRIPT_ITEMS, SCRIPT)
}

const SCRIPT_ITEMS: &str = r#"
  (data (i32.const 16) "\22text\22:\22")
  (global $hash (mut i32) (i32.const 0x811c9dc5))
  (func $mix (param $at i32) (param $length i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $length)))
        (global.set $hash (i32.mul
          (i32.xor (global.get $hash) (i32.load8_u (local.get $at)))
          (i32.const 0x01000193)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $length (i32.sub (local.get $length) (i32.const 1)))
        (br $next))))
  (func $digit (param $at i32) (result i32)
    (local $byte i32)
    (local.set $byte (i32.load8_u (local.get $at)))
    (select
      (i32.sub (local.get $byte) (i32.const 48))
      (i32.sub (local.get $byte) (i32.const 87))
      (i32.lt_u (local.get $byte) (i32.const 97))))"#;

const SCRIPT: &str = r"
  (local $at i32) (local $out i32) (local $base i32) (local $byte i32)
  ;; Find the task line: the eight bytes at 16 in the input.
  (local.set $at (local.get $input))
  (loop $find
    (if (i64.ne (i64.load (local.get $at)) (i64.load (i32.const 16)))
      (then
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $find))))
  (local.set $at (i32.add (local.get $at) (i32.const 8)))
  (local.set $base (global.get $top))
  (local.set $out (i32.const 4096))
  (block $end
    (loop $next
      (local.set $byte (i32.load8_u (local.get $at)))
      (br_if $end (i32.eq (local.get $byte) (i32.const 34)))
      (if (i32.eq (local.get $byte) (i32.const 122))
        (then
          (i64.store (i32.const 516) (i64.const 0))
          (call $door (i32.const 4096) (i32.sub (local.get $out) (i32.const 4096)) (i32.const 512))
          (call $mix (i32.const 512) (i32.const 1))
          (if (i32.load8_u (i32.const 512))
            (then (call $mix (i32.const 516) (i32.const 4)))
            (else (call $mix (i32.load (i32.const 516)) (i32.load (i32.const 520)))))
          (global.set $top (local.get $base))
          (local.set $out (i32.const 4096))
          (local.set $at (i32.add (local.get $at) (i32.const 1))))
        (else
          (i32.store8 (local.get $out) (i32.add
            (i32.shl (call $digit (local.get $at)) (i32.const 4))
            (call $digit (i32.add (local.get $at) (i32.const 1)))))
          (local.set $out (i32.add (local.get $out) (i32.const 1)))
          (local.set $at (i32.add (local.get $at) (i32.const 2)))))
      (br $next)))
  (i32.store (i32.const 600) (global.get $hash))
  (i32.store8 (i32.const 512) (i32.const 0))
  (i32.store (i32.const 516) (i32.const 600))
  (i32.store (i32.const 520) (i32.const 4))
  i32.const 512";
