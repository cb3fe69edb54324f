//! Which components become guests, and how the others are told why not.

use synapse_kernel::admit::{COMPONENT_MAX, NotAdmitted, NotFirmware, admit};

/// The shape that the component encoder gives a guest of one core module: a
/// shim of trampolines, the guest, and a module that fills the shim's table.
/// No identifier stands at the component's level, so no custom section follows
/// the export and every proper prefix is an incomplete component.
const ENCODED: &str = r#"
(component
  (import "synapse-call" (func (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
  (core module
    (table (export "$imports") 1 1 funcref)
    (func (export "0") (param i32 i32 i32)
      local.get 0 local.get 1 local.get 2 i32.const 0 call_indirect (param i32 i32 i32)))
  (core module
    (import "host" "synapse-call" (func $call (param i32 i32 i32)))
    (memory (export "memory") 1)
    (global $top (mut i32) (i32.const 1024))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
      global.get $top
      global.get $top local.get 3 i32.add i32.const 7 i32.add i32.const -8 i32.and global.set $top)
    (func (export "turn") (param i32 i32) (result i32)
      local.get 0 local.get 1 i32.const 16 call $call
      i32.const 16))
  (core module
    (import "" "0" (func (param i32 i32 i32)))
    (import "" "$imports" (table 1 1 funcref))
    (elem (i32.const 0) func 0))
  (core instance (instantiate 0))
  (alias core export 0 "0" (core func))
  (core instance (export "synapse-call" (func 0)))
  (core instance (instantiate 1 (with "host" (instance 1))))
  (alias core export 2 "memory" (core memory))
  (alias core export 2 "cabi_realloc" (core func))
  (alias core export 0 "$imports" (core table))
  (core func (canon lower (func 0) (memory 0) (realloc (func 1))))
  (core instance (export "0" (func 2)) (export "$imports" (table 0)))
  (core instance (instantiate 2 (with "" (instance 3))))
  (alias core export 2 "turn" (core func))
  (func (param "input" (list u8)) (result (result (list u8) (error u32))) (canon lift (core func 3) (memory 0) (realloc (func 1))))
  (export "turn" (func 1))
)"#;

const BYTES_TO_BYTES: &str = r#"(param "x" (list u8)) (result (result (list u8) (error u32)))"#;

/// A guest that never calls out: imports, types and core code can be varied.
fn quiet(head: &str, core: &str, export: &str, ty: &str, name: &str) -> Vec<u8> {
    wat(&format!(
        r#"(component
          {head}
          (core module $m
            (memory (export "memory") 1)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
            {core}
            (func (export "turn") {export} unreachable))
          (core instance $i (instantiate $m))
          (func $turn {ty}
            (canon lift (core func $i "turn")
              (memory $i "memory") (realloc (func $i "realloc"))))
          (export "{name}" (func $turn)))"#
    ))
}

fn plain(head: &str) -> Vec<u8> {
    quiet(head, "", "(param i32 i32) (result i32)", BYTES_TO_BYTES, "turn")
}

fn with_core(core: &str) -> Vec<u8> {
    quiet("", core, "(param i32 i32) (result i32)", BYTES_TO_BYTES, "turn")
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

fn refusal(bytes: &[u8]) -> NotAdmitted {
    admit(bytes).map(drop).unwrap_err()
}

#[test]
fn what_the_encoder_makes_fits_both_boards() {
    let bytes = wat(ENCODED);
    let admitted = admit(&bytes).unwrap();
    assert_eq!(admitted.bytes(), bytes);
    assert_eq!(admitted.boards().firmware, Ok(()));
}

#[test]
fn a_guest_that_never_calls_out_needs_no_import() {
    assert_eq!(admit(&plain("")).unwrap().boards().firmware, Ok(()));
}

#[test]
fn an_empty_file_is_cut_short() {
    assert_eq!(refusal(b""), NotAdmitted::Truncated { offset: 0 });
}

#[test]
fn what_is_not_wasm_is_refused_by_name() {
    for bytes in [&b"#!/bin/sh\n"[..], b"\x7fELF", b"(component)", b"\0asn\x0d\0\x01\0", b"x"] {
        assert_eq!(refusal(bytes), NotAdmitted::NotWasm);
    }
}

#[test]
fn a_core_module_is_refused_by_name() {
    let refused = refusal(&wat(r#"(module (func (export "turn")))"#));
    assert_eq!(refused, NotAdmitted::CoreModule);
    assert_eq!(
        refused.to_string(),
        "a core module, not a component: build it with `synapse build`"
    );
}

#[test]
fn an_unknown_version_is_invalid() {
    let mut bytes = wat(ENCODED);
    bytes[4] = 0x0c;
    assert!(matches!(refusal(&bytes), NotAdmitted::Invalid { .. }), "{:?}", refusal(&bytes));
}

#[test]
fn the_size_limit_holds_to_the_byte() {
    let mut bytes = plain("");
    let room = COMPONENT_MAX - bytes.len();
    // One custom section that fills the component up to the limit: its id, five
    // bytes of length, an empty name, and nothing of interest.
    let content = u32::try_from(room - 6).unwrap();
    bytes.push(0);
    for shift in [0, 7, 14, 21, 28] {
        let low = u8::try_from(content >> shift & 0x7f).unwrap();
        bytes.push(if shift == 28 { low } else { low | 0x80 });
    }
    bytes.resize(COMPONENT_MAX, 0);
    assert!(admit(&bytes).is_ok());
    bytes.push(0);
    assert_eq!(refusal(&bytes), NotAdmitted::TooLarge { bytes: COMPONENT_MAX + 1 });
}

#[test]
fn no_proper_prefix_of_a_component_is_admitted() {
    let bytes = wat(ENCODED);
    let mut cut_short = 0;
    for end in 0..bytes.len() {
        match refusal(&bytes[..end]) {
            NotAdmitted::Truncated { offset } => {
                assert!(offset <= end);
                cut_short += 1;
            }
            // Cut between two sections, the rest is a component without `turn`.
            NotAdmitted::NoTurn => {}
            other => assert_eq!(other, NotAdmitted::NoTurn, "cut at {end}"),
        }
    }
    assert!(cut_short > bytes.len() * 9 / 10, "{cut_short} of {}", bytes.len());
}

#[test]
fn a_wasi_component_is_refused_by_the_name_of_its_import() {
    let bytes = plain(
        r#"(import "wasi:cli/environment@0.2.0" (instance
             (export "get-environment"
               (func (result (list (tuple string string)))))))
           (import "wasi:io/error@0.2.0" (instance (export "error" (type (sub resource)))))"#,
    );
    let refused = refusal(&bytes);
    assert_eq!(refused, NotAdmitted::SecondImport { name: "wasi:cli/environment@0.2.0".into() });
    assert!(refused.to_string().contains("`wasi:cli/environment@0.2.0`"));
}

#[test]
fn a_second_import_of_any_kind_is_refused() {
    let door = format!(r#"(import "synapse-call" (func {BYTES_TO_BYTES}))"#);
    for (second, name) in [
        (r#"(import "clock" (func (result u64)))"#, "clock"),
        (r#"(import "t" (type (sub resource)))"#, "t"),
        (r#"(import "c" (component))"#, "c"),
        (r#"(import "m" (core module))"#, "m"),
        (r#"(import "i" (instance))"#, "i"),
        (r#"(import "synapse-call2" (func))"#, "synapse-call2"),
    ] {
        let refused = NotAdmitted::SecondImport { name: name.into() };
        assert_eq!(refusal(&plain(&format!("{door}{second}"))), refused);
        assert_eq!(refusal(&plain(&format!("{second}{door}"))), refused);
    }
}

#[test]
fn imports_inside_a_nested_component_are_not_the_guests() {
    let head = r#"(component (import "inner" (func)))"#;
    let bytes = plain(head);
    assert_eq!(admit(&bytes).unwrap().boards().firmware, Err(NotFirmware::Nested));
}

#[test]
fn the_import_has_one_type() {
    for ty in [
        "",
        r#"(param "x" (list u8))"#,
        r#"(param "x" (list u8)) (result (list u8))"#,
        r#"(param "x" string) (result (result (list u8) (error u32)))"#,
        r#"(param "x" (list s8)) (result (result (list u8) (error u32)))"#,
        r#"(param "x" (list u8)) (result (result (list u8)))"#,
        r#"(param "x" (list u8)) (result (result (list u8) (error s32)))"#,
        r#"(param "x" (list u8)) (result (result string (error u32)))"#,
        r#"(param "x" (list u8)) (param "y" u32) (result (result (list u8) (error u32)))"#,
        r"(result (result (list u8) (error u32)))",
    ] {
        let head = format!(r#"(import "synapse-call" (func {ty}))"#);
        assert_eq!(refusal(&plain(&head)), NotAdmitted::ImportType, "{ty}");
    }
    let instance = r#"(import "synapse-call" (instance))"#;
    assert_eq!(refusal(&plain(instance)), NotAdmitted::ImportType);
    // The same type through names is the same type.
    let aliased = r#"(type $b u8) (type $l (list $b)) (type $e u32)
        (type $r (result $l (error $e)))
        (import "synapse-call" (func (param "other-name" $l) (result $r)))"#;
    assert!(admit(&plain(aliased)).is_ok());
}

#[test]
fn turn_is_there_and_has_one_type() {
    let good = "(param i32 i32) (result i32)";
    assert_eq!(refusal(&wat("(component)")), NotAdmitted::NoTurn);
    assert_eq!(refusal(&quiet("", "", good, BYTES_TO_BYTES, "turns")), NotAdmitted::NoTurn);
    for (core, ty) in [
        ("", ""),
        ("(param i32 i32)", r#"(param "x" string)"#),
        ("(param i32 i32) (result i32)", r#"(param "x" (list u8)) (result (list u8))"#),
        (
            "(param i32 i32) (result i32)",
            r#"(param "x" (list u8)) (result (result (list u8) (error u64)))"#,
        ),
    ] {
        assert_eq!(refusal(&quiet("", "", core, ty, "turn")), NotAdmitted::TurnType, "{ty}");
    }
    let instance = wat(r#"(component (instance $i) (export "turn" (instance $i)))"#);
    assert_eq!(refusal(&instance), NotAdmitted::TurnType);
}

#[test]
fn features_that_no_board_takes_are_invalid() {
    for core in [
        "(memory $shared 1 1 shared)",
        "(func (drop (i32.atomic.load (i32.const 0))))",
        "(memory $second 1)",
        "(tag $t)",
        "(type $s (struct (field i32)))",
        "(func (param externref))",
        "(func (drop (f32x4.relaxed_madd (v128.const i64x2 0 0) (v128.const i64x2 0 0)
           (v128.const i64x2 0 0))))",
    ] {
        let refused = refusal(&with_core(core));
        assert!(matches!(refused, NotAdmitted::Invalid { .. }), "{core}: {refused:?}");
    }
    let wide = refusal(&plain("(core module (memory i64 1))"));
    assert!(matches!(wide, NotAdmitted::Invalid { .. }), "{wide:?}");
    let invalid = with_core("(func (result i32) i64.const 0)");
    assert!(matches!(refusal(&invalid), NotAdmitted::Invalid { offset, .. } if offset > 8));
}

#[test]
fn asynchronous_types_are_not_taken() {
    let refused = refusal(&plain("(type (future u8))"));
    assert!(matches!(refused, NotAdmitted::Invalid { .. }), "{refused:?}");
}

#[test]
fn simd_fits_the_host_alone() {
    let bytes = with_core("(func (drop (v128.const i64x2 0 0)))");
    let firmware = admit(&bytes).unwrap().boards().firmware;
    assert!(matches!(firmware, Err(NotFirmware::Feature { .. })), "{firmware:?}");
}

#[test]
fn the_firmware_takes_one_module_with_code_and_one_instance_of_it() {
    let two =
        plain(r#"(core module (func (export "f") (result i32) i32.const 1 i32.const 2 i32.add))"#);
    assert_eq!(admit(&two).unwrap().boards().firmware, Err(NotFirmware::Modules(2)));

    let stateful = plain("(core module (global (mut i32) (i32.const 0)))");
    assert_eq!(admit(&stateful).unwrap().boards().firmware, Err(NotFirmware::Modules(2)));

    let twice = wat(&ENCODED.replace(
        "(alias core export 2 \"turn\" (core func))",
        "(core instance (instantiate 1 (with \"host\" (instance 1))))
         (alias core export 2 \"turn\" (core func))",
    ));
    assert_eq!(admit(&twice).unwrap().boards().firmware, Err(NotFirmware::Instances(2)));
}

#[test]
fn extra_exports_are_no_reason_to_refuse() {
    let bytes = wat(&ENCODED.replace(
        "(export \"turn\" (func 1))",
        "(export \"turn\" (func 1)) (instance) (export \"exports\" (instance 0))",
    ));
    assert!(admit(&bytes).is_ok());
}

#[test]
fn names_from_a_component_are_displayed_escaped_and_cut() {
    let name = format!("\u{1b}[2J\u{202e}`\n{}", "x".repeat(1000));
    let shown = NotAdmitted::SecondImport { name }.to_string();
    assert!(shown.contains(r"\u{1b}[2J\u{202e}`\n"), "{shown}");
    assert!(shown.chars().all(|c| !c.is_control()));
    assert!(shown.contains('…') && shown.len() < 300, "{shown}");
}

#[test]
fn flipped_bytes_never_panic() {
    let good = wat(ENCODED);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        random.damage(&mut bytes);
        match admit(&bytes) {
            Ok(admitted) => drop(admitted.boards()),
            Err(why) => {
                assert!(!why.to_string().contains(char::is_control));
                refused += 1;
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}

/// A fixed xorshift: the same damage on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit
    }

    fn damage(&mut self, bytes: &mut [u8]) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            bytes[at] ^= u8::try_from(1 + self.below(255)).unwrap();
        }
    }
}
