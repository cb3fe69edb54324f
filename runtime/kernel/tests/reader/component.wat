(component
  ;; import
  (core module $main
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
    (func (export "turn") (param i32 i32) (result i32) unreachable))
  (core instance $main (instantiate $main))
  (func $turn (param "input" (list u8)) (result (result (list u8) (error u32)))
    (canon lift (core func $main "turn")
      (memory $main "memory") (realloc (func $main "realloc"))))
  (export "turn" (func $turn)))
