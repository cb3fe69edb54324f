//! A guest that is nothing but what it says.

/// A guest that says these sentences, whatever it is answered.
pub(crate) fn guest(sentences: &[&str]) -> Vec<u8> {
    guest_that(sentences, "")
}

/// A guest that says these sentences, then does what the instructions say.
pub(crate) fn guest_that(sentences: &[&str], then: &str) -> Vec<u8> {
    let (mut data, mut calls, mut at) = (String::new(), String::new(), 8192);
    for sentence in sentences {
        let quoted = sentence.replace('"', "\\22");
        data.push_str(&format!("(data (i32.const {at}) \"{quoted}\")"));
        let length = sentence.len();
        calls.push_str(&format!(
            "(call $door (i32.const {at}) (i32.const {length}) (i32.const 512))"
        ));
        at += length;
    }
    wat::parse_str(format!(
        r#"(component
          (import "synapse-call" (func $door
            (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
          (core module $libc
            (memory (export "memory") 1)
            (global $top (mut i32) (i32.const 1024))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
              global.get $top
              (global.set $top (i32.add (global.get $top) (local.get 3)))))
          (core instance $libc (instantiate $libc))
          (core func $lowered (canon lower (func $door)
            (memory $libc "memory") (realloc (func $libc "realloc"))))
          (core module $main
            (import "libc" "memory" (memory 1))
            (import "host" "door" (func $door (param i32 i32 i32)))
            {data}
            (func (export "turn") (param i32 i32) (result i32)
              {calls}
              {then}
              (i32.store8 (i32.const 512) (i32.const 0))
              (i32.store (i32.const 516) (i32.const 0))
              (i32.store (i32.const 520) (i32.const 0))
              i32.const 512))
          (core instance $main (instantiate $main
            (with "libc" (instance $libc))
            (with "host" (instance (export "door" (func $lowered))))))
          (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
            (canon lift (core func $main "turn")
              (memory $libc "memory") (realloc (func $libc "realloc"))))
          (export "turn" (func $turn)))"#
    ))
    .unwrap()
}
