//! A guest that is nothing but what it says.

/// What counts the rounds in a sentence: from here up by one.
pub(crate) const ROUND: &str = "000000";

/// A guest that says these sentences, whatever it is answered.
pub(crate) fn guest(sentences: &[&str]) -> Vec<u8> {
    guest_that(sentences, "")
}

/// A guest that says these sentences, then does what the instructions say.
pub(crate) fn guest_that(sentences: &[&str], then: &str) -> Vec<u8> {
    let said = Said::new(sentences, "");
    component(&said.data, "", &format!("{} {then}", said.calls))
}

/// A guest that says these sentences round after round until it is stopped,
/// counting so far before each of them, and counting up each [`ROUND`].
pub(crate) fn guest_in_rounds(sentences: &[&str], pause: u32) -> Vec<u8> {
    let said = Said::new(sentences, "(call $pause)");
    let functions = format!(
        "(func $pause (local $left i32)
           (local.set $left (i32.const {pause}))
           (loop $again
             (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
         (func $count (param $digit i32)
           (loop $carry
             (if (i32.eq (i32.load8_u (local.get $digit)) (i32.const 57))
               (then
                 (i32.store8 (local.get $digit) (i32.const 48))
                 (local.set $digit (i32.sub (local.get $digit) (i32.const 1)))
                 (br $carry))))
           (i32.store8 (local.get $digit)
             (i32.add (i32.load8_u (local.get $digit)) (i32.const 1))))"
    );
    let (calls, counts) = (said.calls, said.counts);
    component(&said.data, &functions, &format!("(loop $again {calls} {counts} (br $again))"))
}

/// A guest with code of a few kilobytes, so many times, that takes a compiler seconds: in
/// every loop of many, one inside the other, each of many variables may have any value.
pub(crate) fn guest_slow(times: usize) -> Vec<u8> {
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
    component("", &format!("(func {code})").repeat(times), "")
}

/// Sentences in a guest's memory, and the instructions that say them.
#[derive(Default)]
struct Said {
    data: String,
    calls: String,
    counts: String,
}

impl Said {
    fn new(sentences: &[&str], before: &str) -> Self {
        let (mut said, mut at) = (Self::default(), 8192);
        for sentence in sentences {
            // By number: the text format has no place for some characters.
            let quoted = sentence.bytes().fold(String::new(), |mut text, byte| {
                text.push_str(&format!("\\{byte:02x}"));
                text
            });
            let length = sentence.len();
            said.data.push_str(&format!("(data (i32.const {at}) \"{quoted}\")"));
            said.calls.push_str(&format!(
                "{before} (call $door (i32.const {at}) (i32.const {length}) (i32.const 512))"
            ));
            for (place, _) in sentence.match_indices(ROUND) {
                let last = at + place + ROUND.len() - 1;
                said.counts.push_str(&format!("(call $count (i32.const {last}))"));
            }
            at += length;
        }
        said
    }
}

/// Every reply is put into the second page, over the one before.
fn component(data: &str, functions: &str, body: &str) -> Vec<u8> {
    wat::parse_str(format!(
        r#"(component
          (import "synapse-call" (func $door
            (param "sentence" (list u8)) (result (result (list u8) (error u32)))))
          (core module $libc
            (memory (export "memory") 2)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 65536))
          (core instance $libc (instantiate $libc))
          (core func $lowered (canon lower (func $door)
            (memory $libc "memory") (realloc (func $libc "realloc"))))
          (core module $main
            (import "libc" "memory" (memory 2))
            (import "host" "door" (func $door (param i32 i32 i32)))
            {data}
            {functions}
            (func (export "turn") (param i32 i32) (result i32)
              {body}
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
