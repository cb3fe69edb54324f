//! The engines: each runs one small agent behind a whole door
//!
//! # Not here
//! Running anything of the user's (`run`).

use std::sync::Arc;
use synapse_host::engine::{Wasmtime, interpreter};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::Engine;
use synapse_kernel::grant::Grant;
use synapse_kernel::replay::{Replay, Replayed};

use super::{Check, Need};
use crate::build::component;

/// A check for each engine, and one that both decided and recorded alike.
pub(super) fn all() -> Vec<Check> {
    let runs = [
        Wasmtime::new().map_err(|why| why.to_string()).and_then(|engine| try_one(&engine)),
        try_one(&interpreter()),
    ];
    let [compiled, interpreted] = &runs;
    let alike = match (compiled, interpreted) {
        (Ok(one), Ok(other)) if one.log == other.log => {
            Ok(format!("both left the same {} bytes of log", one.log.len()))
        }
        (Ok(_), Ok(_)) => Err("their logs of the same run differ".to_owned()),
        (Err(_), _) | (_, Err(_)) => Err("one of them did not run".to_owned()),
    };
    let told = |run: Result<Replayed, String>| run.map(|_| "ran an agent's turn".to_owned());
    let [compiled, interpreted] = runs.map(told);
    let check = |name, found, need, why| Check { name, found, need, why, todo: TODO };
    vec![
        check("wasmtime", compiled, Need::Run, "it runs agents, compiled to machine code"),
        check(
            "wasmi",
            interpreted,
            Need::More,
            "it is `--engine wasmi`, and what the firmware has",
        ),
        check("alike", alike, Need::More, "an agent must get the same decisions on both engines"),
    ]
}

/// Runs the agent in a world that stands still.
fn try_one<E: Engine>(engine: &E) -> Result<Replayed, String> {
    let component = component::encode(MODULE).map_err(|why| why.to_string())?;
    let admitted = admit(&component).map_err(|why| why.to_string())?;
    let program = engine.load(&admitted).map_err(|why| why.to_string())?;
    let grant = Grant::parse(GRANT).map_err(|why| why.to_string())?;
    let replay = Replay { number: 0, task: "", grant: Arc::new(grant), files: &[] };
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|why| why.to_string())?;
    let done = executor.block_on(replay.run(engine, &program)).ok_or("it recorded nothing")?;
    match &done.answer {
        Ok(answer) if answer.ends_with(b"}") => Ok(done),
        Ok(_) => Err("the agent was handed something else than it asked for".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

const TODO: &str = "lift limits on memory (`ulimit -v`), else report it";
const GRANT: &str = "version = 1\nprimitives = [\"clock_read\"]\n";

/// A core module whose turn submits one sentence and answers with the reply.
const MODULE: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x19\x04`\x03\x7f\x7f\x7f\0`\x04\x7f\x7f\x7f\x7f\x01\x7f`\x02\x7f\x7f\x01\x7f`\x01\x7f\0\
    \x02\x16\x01\x05$root\x0csynapse-call\0\0\
    \x03\x04\x03\x01\x02\x03\
    \x05\x03\x01\0\x01\
    \x071\x04\x06memory\x02\0\x0ccabi_realloc\0\x01\x04turn\0\x02\x0ecabi_post_turn\0\x03\
    \n\x18\x03\x05\0A\x80\x08\x0b\r\0A\xc0\0A$A\x08\x10\0A\x08\x0b\x02\0\x0b\
    \x0b+\x01\0A\xc0\0\x0b${\"name\":\"clock_read\",\"arguments\":{}}";

#[cfg(test)]
mod tests {
    use super::{MODULE, all};

    #[test]
    fn the_module_is_this_text() {
        let text = r#"(module
          (import "$root" "synapse-call" (func (param i32 i32 i32)))
          (memory (export "memory") 1)
          (data (i32.const 64) "{\"name\":\"clock_read\",\"arguments\":{}}")
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
          (func (export "turn") (param i32 i32) (result i32)
            i32.const 64 i32.const 36 i32.const 8 call 0 i32.const 8)
          (func (export "cabi_post_turn") (param i32)))"#;
        assert_eq!(wat::parse_str(text).unwrap(), MODULE);
    }

    #[test]
    fn both_engines_run_it_alike() {
        for check in all() {
            assert!(check.found.is_ok(), "{}: {:?}", check.name, check.found);
        }
    }
}
