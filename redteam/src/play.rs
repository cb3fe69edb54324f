//! One script through one door: a guest in the engine, a world in memory.
//!
//! # Not here
//! What an outcome means (`trial`).

use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use synapse_host::engine::{Program, Wasmtime};
use synapse_kernel::admit::admit;
use synapse_kernel::crew::{Finding, Package, Packages, Staff};
use synapse_kernel::engine::Engine as _;
use synapse_kernel::grant::Grant;
use synapse_kernel::held::{About, Source, Value};
use synapse_kernel::record::{Kind, Tape, tag};
use synapse_kernel::run::{Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::task::HELD_BYTES;
use synapse_kernel::verify::Reader;
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;
use synapse_primitives::platform::{Use, Used};
use synapse_primitives::rest::Names;
use synapse_primitives::{Fault, Platform as _};
use synapse_reply::limits::REPLY;
use tokio::runtime::{Builder, Runtime};

use crate::case::Page;
use crate::world::Pages;

/// An engine with the guest that plays scripts.
#[derive(Debug)]
pub(crate) struct Stage {
    engine: Arc<Wasmtime>,
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
    pub(crate) more: More<'a>,
}

/// What few scenes have.
#[derive(Clone, Debug, Default)]
pub(crate) struct More<'a> {
    pub(crate) pages: Vec<(String, Page)>,
    /// What the human types when asked.
    pub(crate) answers: Vec<&'a str>,
    /// What children of these names say.
    pub(crate) children: Vec<(&'a str, Vec<&'a str>)>,
    /// The turns after the first.
    pub(crate) later: Vec<Turn<'a>>,
}

/// A turn after the first.
#[derive(Clone, Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) line: &'a str,
    /// Whether it is the first of another run, which goes on from the one before.
    pub(crate) resumed: bool,
    pub(crate) sentences: Vec<&'a str>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Played {
    /// What each sentence came to.
    pub(crate) attempts: Vec<Attempt>,
    /// What those of each child that was started came to, by its package.
    pub(crate) children: Vec<(String, Vec<Attempt>)>,
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
        Ok(Self { engine: Arc::new(engine), program, executor })
    }

    /// Plays a scene to its end.
    ///
    /// # Errors
    /// The harness failed: the world could not be made, or a call did not cross.
    pub(crate) fn play(&self, scene: &Scene<'_>) -> Result<Played, String> {
        let memory = Memory::new(&[("/data", Access::ReadWrite), ("/home", Access::ReadWrite)]);
        let memory = memory.map_err(|why| why.to_string())?;
        let memory = memory.with_connectors(Box::new(board(scene.replies)));
        let memory = memory.with_net(Box::new(Pages(scene.more.pages.clone())));
        memory.set_now(u64::try_from(scene.today).unwrap_or_default().saturating_mul(DAY_MS));
        for answer in &scene.more.answers {
            memory.answer(Ok(answer.as_bytes()));
        }
        for (path, bytes) in &scene.files {
            memory.place(path, bytes).map_err(|why| format!("{path}: {}", why.name()))?;
        }
        let world = Arc::new(memory);
        let (mut played, changed) = self.executor.block_on(async {
            let mut played = Came::default();
            self.turns(scene, &world, &mut played).await?;
            let mut changed = Vec::new();
            for (path, bytes) in &scene.files {
                let now = world.read(path, 0, REPLY as u64).await;
                if now.map(|shown| shown.bytes).as_deref() != Ok(*bytes) {
                    changed.push((*path).to_owned());
                }
            }
            Ok::<_, String>((played, changed))
        })?;
        let attempts = played.remove(&OWN).unwrap_or_default().1;
        let later = scene.more.later.iter().map(|turn| turn.sentences.len());
        let all = scene.sentences.len().saturating_add(later.sum());
        if attempts.len() != all {
            return Err(format!("{} of {all} calls crossed the door", attempts.len()));
        }
        Ok(Played { attempts, children: played.into_values().collect(), changed })
    }

    /// Runs the turns of a scene, and adds what its logs say.
    async fn turns(
        &self,
        scene: &Scene<'_>,
        world: &Arc<Memory>,
        came: &mut Came,
    ) -> Result<(), String> {
        let later = &scene.more.later;
        let sentences = core::iter::once(&scene.sentences);
        let texts: Vec<String> = sentences
            .chain(later.iter().map(|turn| &turn.sentences))
            .map(|it| script(it))
            .collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let begin = |line: &str, session| {
            let order = Order {
                id: Sha256::digest(line).into(),
                task: line,
                session,
                texts: &texts,
                grant: Arc::clone(&scene.grant),
                approval: None,
                room: Room { journal: 1 << 24, memory: usize::MAX, held: HELD_BYTES },
                platform: Arc::clone(world),
                watch: Arc::new(|_| {}),
                cancel: Arc::new(AtomicBool::new(false)),
            };
            let scripts = scene.more.children.iter();
            let scripts = scripts.map(|(name, said)| ((*name).to_owned(), script(said))).collect();
            let shop = Shop { program: self.program.clone(), scripts };
            let places = Arc::new(AtomicUsize::new(CHILDREN));
            let staff = Staff::new(Arc::clone(&self.engine), shop, places, usize::MAX);
            let run = Run::begin(order, Tape::default()).map_err(|_| "no log began".to_owned())?;
            Ok::<_, String>(run.staffed(staff))
        };
        let mut run = begin(scene.task, Session::default())?;
        for turn in core::iter::once(None).chain(later.iter().map(Some)) {
            match turn {
                None => {}
                Some(Turn { line, resumed: false, .. }) => run.next(line),
                Some(Turn { line, .. }) => {
                    let session = carried(&run);
                    end(run, came)?;
                    run = begin(line, session)?;
                }
            }
            let (ran, answer) = run.turn(&*self.engine, &self.program).await;
            answer.map_err(|why| format!("the player did not end as it should: {why}"))?;
            run = ran;
        }
        end(run, came)
    }
}

/// Packages that the scene has.
struct Shop {
    program: Program,
    scripts: BTreeMap<String, String>,
}

impl Packages<Arc<Wasmtime>> for Shop {
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, Program> {
        let script = self.scripts.get(name).cloned();
        Box::pin(core::future::ready(script.ok_or(Fault::NotFound).map(|script| Package {
            program: self.program.clone(),
            bounds: None,
            texts: vec![script],
            approval: None,
        })))
    }
}

/// What another run goes on with.
fn carried(run: &Run<Memory, Tape>) -> Session {
    let value = |value: &Value| {
        let about = value.about();
        let source = about.source.as_ref().zip(about.primitive).map(|(source, primitive)| {
            Source::known(primitive, source.target().clone(), source.is_whole())
        });
        let about = About { source, ..*about };
        Value::new(value.kept().clone(), *value.digest(), about)
    };
    Session {
        from: Some("before".to_owned()),
        messages: run.messages().to_vec(),
        values: run.values().iter().map(value).collect(),
    }
}

/// Ends a run, and adds what its log says.
fn end(run: Run<Memory, Tape>, came: &mut Came) -> Result<(), String> {
    let finished = run.end(Ok(Vec::new()));
    finished.answer.map_err(|why| why.to_string())?;
    attempts(&finished.log.lock().sink().0, came)
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

/// What each task's attempts came to, by its number, with its package; the run's own are one.
type Came = BTreeMap<(usize, u64), (String, Vec<Attempt>)>;

/// Adds what a log says that each attempt came to. Nothing else is evidence.
fn attempts(log: &[u8], came: &mut Came) -> Result<(), String> {
    // Tasks are numbered in each run.
    let run = came.keys().next_back().map_or(0, |(run, _)| run.saturating_add(1));
    let key = |task| if task == OWN.1 { OWN } else { (run, task) };
    let mut places: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for record in Reader::new(log) {
        let record = record.map_err(|why| format!("the log does not verify: {why:?}"))?;
        match record.kind {
            Kind::Decision => {
                let attempt = Attempt {
                    code: record.code,
                    is_ingested: record.integrity == INGESTED,
                    secrecy: record.secrecy,
                };
                let (_, attempts) = came.entry(key(record.task)).or_default();
                places.insert(record.sequence, (record.task, attempts.len()));
                attempts.push(attempt);
            }
            Kind::Outcome => {
                let place = record.cause.and_then(|cause| places.get(&cause));
                let attempt = place.and_then(|(task, place)| {
                    came.get_mut(&key(*task)).and_then(|(_, attempts)| attempts.get_mut(*place))
                });
                attempt.ok_or("an outcome answers no attempt")?.code = record.code;
            }
            Kind::TaskStart => {
                let about = record.field(tag::TEXT).unwrap_or_default();
                let about: serde_json::Value =
                    serde_json::from_slice(about).map_err(|why| format!("a start: {why}"))?;
                let package = about.get("package").and_then(serde_json::Value::as_str);
                let (name, _) = came.entry(key(record.task)).or_default();
                package.unwrap_or_default().clone_into(name);
            }
            Kind::TurnStart | Kind::TurnEnd | Kind::Answer | Kind::RunEnd => {}
        }
    }
    Ok(())
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
/// The run's own task, whichever run of a scene it is.
const OWN: (usize, u64) = (0, 0);
/// Children that a scene may have at once.
const CHILDREN: usize = 16;
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
            more: More::default(),
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
