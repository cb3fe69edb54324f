;; Sends one sentence as often as its input says: a count of four bytes, then
;; the sentence. The first error ends the turn and is its answer.
(component
  (import "synapse-call" (func $door
    (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
  (core module $libc
    (memory (export "memory") 1)
    (global $top (export "top") (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      global.get $top
      (global.set $top (i32.add (global.get $top) (local.get 3)))))
  (core instance $libc (instantiate $libc))
  (core func $lowered (canon lower (func $door)
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core module $main
    (import "libc" "memory" (memory 1))
    (import "libc" "top" (global $top (mut i32)))
    (import "host" "door" (func $door (param i32 i32 i32)))
    (func (export "turn") (param $input i32) (param $length i32) (result i32)
      (local $left i32) (local $top i32)
      (local.set $left (i32.load (local.get $input)))
      (local.set $top (global.get $top))
      (block $done
        (loop $again
          (br_if $done (i32.eqz (local.get $left)))
          (global.set $top (local.get $top)) ;; forgets the last reply
          (call $door
            (i32.add (local.get $input) (i32.const 4))
            (i32.sub (local.get $length) (i32.const 4))
            (i32.const 512))
          (if (i32.load8_u (i32.const 512)) (then (return (i32.const 512))))
          (local.set $left (i32.sub (local.get $left) (i32.const 1)))
          (br $again)))
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
  (export "turn" (func $turn)))
