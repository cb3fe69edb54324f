;; Plays a script: the hexadecimal digits that stand behind `#script:` in the
;; turn's input, of as many scripts the one that stands where the human's last line does.
;; Each sentence is eight digits of its length, then its bytes.
;; Whatever the door answers, the next one follows; the answer is empty.
(component
  (import "synapse-call" (func $door
    (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
  (core module $libc
    (memory (export "memory") 2)
    (global $top (export "top") (mut i32) (i32.const 4096))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (global.get $top))
      (global.set $top (i32.add (global.get $top) (local.get 3)))
      (block $enough
        (loop $grow
          (br_if $enough
            (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const 65536))))
          (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))
          (br $grow)))
      local.get $at))
  (core instance $libc (instantiate $libc))
  (core func $lowered (canon lower (func $door)
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core module $main
    (import "libc" "memory" (memory 1))
    (import "libc" "top" (global $top (mut i32)))
    (import "host" "door" (func $door (param i32 i32 i32)))
    (global $at (mut i32) (i32.const 0))
    ;; The number that so many digits say.
    (func $number (param $digits i32) (result i32)
      (local $value i32) (local $digit i32)
      (loop $next
        (local.set $digit (i32.load8_u (global.get $at)))
        (global.set $at (i32.add (global.get $at) (i32.const 1)))
        (local.set $value (i32.or (i32.shl (local.get $value) (i32.const 4))
          (i32.sub (local.get $digit)
            (select (i32.const 48) (i32.const 87)
              (i32.lt_u (local.get $digit) (i32.const 58))))))
        (local.set $digits (i32.sub (local.get $digits) (i32.const 1)))
        (br_if $next (local.get $digits)))
      local.get $value)
    (func (export "turn") (param $input i32) (param $length i32) (result i32)
      (local $end i32) (local $skip i32) (local $top i32) (local $sentence i32) (local $to i32) (local $stop i32)
      (i32.store8 (i32.const 512) (i32.const 0))
      (i32.store (i32.const 516) (i32.const 0))
      (i32.store (i32.const 520) (i32.const 0))
      (local.set $top (global.get $top))
      (local.set $end (i32.add (local.get $input) (local.get $length)))
      ;; Each line of the human's but the first skips a script.
      (local.set $skip (i32.const -1))
      (global.set $at (local.get $input))
      (block $counted
        (loop $count
          (br_if $counted
            (i32.gt_u (i32.add (global.get $at) (i32.const 16)) (local.get $end)))
          (if (i32.and
              (i64.eq (i64.load (global.get $at)) (i64.const 0x223a226d6f726622))
              (i64.eq (i64.and (i64.load offset=8 (global.get $at)) (i64.const 0xffffffffffff))
                (i64.const 0x226e616d7568)))
            (then (local.set $skip (i32.add (local.get $skip) (i32.const 1)))))
          (global.set $at (i32.add (global.get $at) (i32.const 1)))
          (br $count)))
      (global.set $at (local.get $input))
      (block $none
        (loop $seek
          (br_if $none
            (i32.gt_u (i32.add (global.get $at) (i32.const 8)) (local.get $end)))
          (if (i64.ne (i64.load (global.get $at)) (i64.const 0x3a74706972637323))
            (then
              (global.set $at (i32.add (global.get $at) (i32.const 1)))
              (br $seek)))
          (if (i32.gt_s (local.get $skip) (i32.const 0))
            (then
              (local.set $skip (i32.sub (local.get $skip) (i32.const 1)))
              (global.set $at (i32.add (global.get $at) (i32.const 1)))
              (br $seek))))
        (global.set $at (i32.add (global.get $at) (i32.const 8)))
        (loop $play
          ;; Digits end at the quote that ends the text.
          (br_if $none (i32.eq (i32.load8_u (global.get $at)) (i32.const 34)))
          (local.set $length (call $number (i32.const 8)))
          (local.set $sentence (global.get $at))
          (local.set $to (local.get $sentence))
          (local.set $stop (i32.add (local.get $to) (local.get $length)))
          (block $whole
            (loop $byte
              (br_if $whole (i32.ge_u (local.get $to) (local.get $stop)))
              (i32.store8 (local.get $to) (call $number (i32.const 2)))
              (local.set $to (i32.add (local.get $to) (i32.const 1)))
              (br $byte)))
          (global.set $top (local.get $top)) ;; forgets the last reply
          (call $door (local.get $sentence) (local.get $length) (i32.const 528))
          (br $play)))
      i32.const 512))
  (core instance $main (instantiate $main
    (with "libc" (instance $libc))
    (with "host" (instance (export "door" (func $lowered))))))
  (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
    (canon lift (core func $main "turn")
      (memory $libc "memory") (realloc (func $libc "realloc"))))
  (export "turn" (func $turn)))
