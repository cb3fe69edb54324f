//! One script through one door: a guest in the engine, a world in memory.
//!
//! # Not here
//! What an outcome means (`trial`).

use core::fmt::Write as _;
use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use synapse_abi::limits::REPLY;
use synapse_host::engine::{Program, Wasmtime};
use synapse_kernel::admit::admit;
use synapse_kernel::engine::Engine as _;
use synapse_kernel::grant::Grant;
use synapse_kernel::record::{Kind, Tape};
use synapse_kernel::run::{Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::task::HELD_BYTES;
use synapse_kernel::verify::Reader;
use synapse_primitives::Platform as _;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;
use synapse_primitives::platform::{Use, Used};
use synapse_primitives::rest::Names;
use tokio::runtime::{Builder, Runtime};

/// An engine with the guest that plays scripts.
#[derive(Debug)]
pub(crate) struct Stage {
    engine: Wasmtime,
    program: Program,
    executor: Runtime,
}

/// A script, and the world it is played in.
#[derive(Clone, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) task: &'a str,
    pub(crate) grant: Arc<Grant>,
    pub(crate) files: Vec<(&'a str, &'a [u8])>,
    /// What connectors answer, by what they are given.
    pub(crate) replies: &'a [(String, String)],
    pub(crate) sentences: Vec<&'a str>,
    /// The day that the clock shows, counted from 1970-01-01.
    pub(crate) today: i64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Played {
    /// What each sentence came to.
    pub(crate) attempts: Vec<Attempt>,
    /// The files of the scene that are not as they were.
    pub(crate) changed: Vec<String>,
}

/// What one sentence came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// 0 if it was executed.
    pub(crate) code: u16,
    /// Whether something from outside stood behind it.
    pub(crate) is_ingested: bool,
    /// The compartments of its justification.
    pub(crate) secrecy: u64,
}

impl Stage {
    pub(crate) fn new() -> Result<Self, String> {
        let engine = Wasmtime::new().map_err(|why| why.to_string())?;
        let admitted = admit(PLAYER).map_err(|why| why.to_string())?;
        let program = engine.load(&admitted).map_err(|why| why.to_string())?;
        let executor = Builder::new_current_thread().enable_time().build();
        let executor = executor.map_err(|why| format!("no executor started: {why}"))?;
        Ok(Self { engine, program, executor })
    }

    /// Plays a scene to its end.
    ///
    /// # Errors
    /// The harness failed: the world could not be made, or a call did not cross.
    pub(crate) fn play(&self, scene: &Scene<'_>) -> Result<Played, String> {
        let world = Memory::new(&[("/data", Access::ReadWrite), ("/home", Access::ReadWrite)]);
        let world = world.map_err(|why| why.to_string())?;
        let world = Arc::new(world.with_connectors(Box::new(board(scene.replies))));
        world.set_now(u64::try_from(scene.today).unwrap_or_default().saturating_mul(DAY_MS));
        for (path, bytes) in &scene.files {
            world.place(path, bytes).map_err(|why| format!("{path}: {}", why.name()))?;
        }
        let script = script(&scene.sentences);
        let order = Order {
            id: Sha256::digest(scene.task).into(),
            task: scene.task,
            session: Session::default(),
            texts: &[&script],
            grant: Arc::clone(&scene.grant),
            approval: None,
            room: Room { journal: 1 << 24, memory: usize::MAX, held: HELD_BYTES },
            platform: Arc::clone(&world),
            watch: Arc::new(|_| {}),
            cancel: Arc::new(AtomicBool::new(false)),
        };
        let (finished, changed) = self.executor.block_on(async {
            let run = Run::begin(order, Tape::default()).map_err(|_| "no log began".to_owned())?;
            let (run, answer) = run.turn(&self.engine, &self.program).await;
            let finished = run.end(answer);
            let mut changed = Vec::new();
            for (path, bytes) in &scene.files {
                let now = world.read(path, 0, REPLY as u64).await;
                if now.map(|shown| shown.bytes).as_deref() != Ok(*bytes) {
                    changed.push((*path).to_owned());
                }
            }
            Ok::<_, String>((finished, changed))
        })?;
        finished.answer.map_err(|why| format!("the player did not end as it should: {why}"))?;
        let attempts = attempts(&finished.log.lock().sink().0)?;
        if attempts.len() != scene.sentences.len() {
            let (crossed, all) = (attempts.len(), scene.sentences.len());
            return Err(format!("{crossed} of {all} calls crossed the door"));
        }
        Ok(Played { attempts, changed })
    }
}

/// Connectors in this process: each answers what the scene says, and else that it did.
fn board(replies: &[(String, String)]) -> impl Fn(Use<'_>) -> Used + Send + Sync + 'static {
    let replies = replies.to_vec();
    move |call| {
        let asked = format!("{{\"tool\":\"{}\",\"arguments\":{}}}", call.tool, call.arguments);
        let known = replies.iter().find(|(given, _)| *given == asked);
        let reply = known.map_or("[]", |(_, reply)| reply);
        Used { reply: Ok(reply.as_bytes().to_vec()), carried: Names::NONE }
    }
}

/// What a log says that each attempt came to. Nothing else is evidence.
fn attempts(log: &[u8]) -> Result<Vec<Attempt>, String> {
    let mut attempts: Vec<(u64, Attempt)> = Vec::new();
    for record in Reader::new(log) {
        let record = record.map_err(|why| format!("the log does not verify: {why:?}"))?;
        match record.kind {
            Kind::Decision => {
                let attempt = Attempt {
                    code: record.code,
                    is_ingested: record.integrity == INGESTED,
                    secrecy: record.secrecy,
                };
                attempts.push((record.sequence, attempt));
            }
            Kind::Outcome => {
                let of = |attempt: &&mut (u64, Attempt)| Some(attempt.0) == record.cause;
                let attempt = attempts.iter_mut().find(of);
                attempt.ok_or("an outcome answers no attempt")?.1.code = record.code;
            }
            Kind::TaskStart | Kind::TurnStart | Kind::TurnEnd | Kind::Answer | Kind::RunEnd => {}
        }
    }
    Ok(attempts.into_iter().map(|(_, attempt)| attempt).collect())
}

/// Sentences as the player reads them.
fn script(sentences: &[&str]) -> String {
    let mut text = String::from("#script:");
    for sentence in sentences {
        let _ = write!(text, "{:08x}", sentence.len());
        for byte in sentence.bytes() {
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

const PLAYER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/player.wasm"));
/// How a record says that something from outside stood behind a sentence.
const INGESTED: u8 = 2;
/// 2026-01-01: a clock for what asks for none.
pub(crate) const TODAY: i64 = 20_454;
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: &str = "version = 1\nprimitives = [\"clock_read\"]\n";

    #[test]
    fn the_player_makes_every_call_of_its_script_in_order() {
        let stage = Stage::new().unwrap();
        let clock = r#"{"name":"clock_read","arguments":{}}"#;
        let long = format!("{{\"name\":\"clock_read\"{}", " ".repeat(70_000));
        let scene = Scene {
            task: "#script:00000001",
            grant: Arc::new(Grant::parse(GRANT).unwrap()),
            files: Vec::new(),
            replies: &[],
            today: TODAY,
            sentences: vec![
                clock,
                "",
                "nonsense\n\0\"",
                &long,
                r#"{"name":"fs_delete","arguments":{"path":"/data"}}"#,
                clock,
            ],
        };
        let played = stage.play(&scene).unwrap();
        let codes: Vec<u16> = played.attempts.iter().map(|attempt| attempt.code).collect();
        assert_eq!(codes, [0, 101, 101, 101, 201, 0]);
    }
}
