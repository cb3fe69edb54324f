//! A run whose guests are scripts, for tests of tasks beside each other.

use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Wake;

use spin::Mutex;
use synapse_guest::Reply;
use synapse_kernel::admit::Admitted;
use synapse_kernel::crew::{Finding, Package, Packages, Staff};
use synapse_kernel::engine::{Door, Ended, Engine, LoadError, TurnLimits};
use synapse_kernel::grant::Grant;
use synapse_kernel::record::Tape;
use synapse_kernel::run::{NoAnswer, Order, Room, Run};
use synapse_kernel::session::Session;
use synapse_kernel::task::{HELD_BYTES, Watch};
use synapse_primitives::memory::Memory;
use synapse_primitives::mounts::Access;
use synapse_reply::Fault;

/// What a guest does: its sentences, one after the other, and how it ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) says: Vec<String>,
    /// Where there is none, it breaks.
    pub(crate) answer: Option<String>,
}

pub(crate) fn script(name: &'static str, says: &[&str], answer: &str) -> Script {
    let says = says.iter().map(|said| (*said).to_owned()).collect();
    Script { name, says, answer: Some(answer.to_owned()) }
}

/// What came of one sentence: the payload as text, numbers as such.
pub(crate) type Came = Result<String, u32>;

/// All that was said and heard, in order.
#[derive(Clone, Default)]
pub(crate) struct Heard(pub(crate) Arc<Mutex<Vec<(&'static str, Came)>>>);

impl Heard {
    /// What the guest of this name heard.
    pub(crate) fn by(&self, name: &str) -> Vec<Came> {
        let all = self.0.lock();
        all.iter().filter(|(known, _)| *known == name).map(|(_, came)| came.clone()).collect()
    }
}

/// Plays scripts. A guest hears its input first.
#[derive(Clone, Default)]
pub(crate) struct Player {
    pub(crate) heard: Heard,
    pub(crate) alive: Arc<AtomicUsize>,
}

/// Counts who is alive.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine for Player {
    type Program = Script;

    fn load(&self, _: &Admitted<'_>) -> Result<Script, LoadError> {
        Err(LoadError::new("scripts are written".into()))
    }

    async fn turn<D: Door>(
        &self,
        program: &Script,
        mut door: D,
        input: &[u8],
        _: TurnLimits,
    ) -> (D, Result<Vec<u8>, Ended>) {
        self.alive.fetch_add(1, Ordering::Relaxed);
        let _alive = Alive(Arc::clone(&self.alive));
        let hear = |came| self.heard.0.lock().push((program.name, came));
        hear(Ok(String::from_utf8(input.to_vec()).unwrap()));
        for sentence in &program.says {
            let came = door.submit(sentence.as_bytes()).await.map(|reply| {
                let payload = Reply::parse(reply.lower()).unwrap().payload;
                let number = <[u8; 8]>::try_from(&payload[..]).map(u64::from_le_bytes);
                let number = number.ok().filter(|number| *number < 1 << 32);
                number.map_or_else(
                    || String::from_utf8(payload).unwrap(),
                    |number| number.to_string(),
                )
            });
            hear(came);
            if door.cancelled() {
                return (door, Err(Ended::Cancelled));
            }
        }
        let answer = program.answer.clone().map(String::into_bytes);
        (door, answer.ok_or(Ended::Deadline))
    }
}

/// Packages by their scripts' names; those in `bounds` have an approval.
#[derive(Clone, Default)]
pub(crate) struct Shop {
    pub(crate) scripts: Vec<Script>,
    pub(crate) bounds: BTreeMap<&'static str, &'static str>,
}

impl Packages<Player> for Shop {
    fn find<'a>(&'a self, name: &'a str) -> Finding<'a, Script> {
        Box::pin(async move {
            let program = self.scripts.iter().find(|script| script.name == name);
            let bounds = self.bounds.get(name).map(|text| Arc::new(Grant::parse(text).unwrap()));
            Ok(Package {
                program: program.cloned().ok_or(Fault::NotFound)?,
                bounds,
                texts: vec!["be brief".into()],
                approval: None,
            })
        })
    }
}

/// A world with one run in it.
pub(crate) struct World {
    pub(crate) player: Player,
    pub(crate) platform: Arc<Memory>,
    pub(crate) places: Arc<AtomicUsize>,
    pub(crate) cancel: Arc<AtomicBool>,
    pub(crate) shop: Shop,
    pub(crate) grant: String,
    pub(crate) watch: Watch,
    pub(crate) task: &'static str,
}

impl World {
    pub(crate) fn new(grant: &str, scripts: &[Script]) -> Self {
        let platform = Memory::new(&[("/data", Access::ReadWrite)]).unwrap();
        platform.place("/data/a.md", b"alpha").unwrap();
        Self {
            player: Player::default(),
            platform: Arc::new(platform),
            places: Arc::new(AtomicUsize::new(1000)),
            cancel: Arc::default(),
            shop: Shop { scripts: scripts.to_vec(), ..Shop::default() },
            grant: grant.to_owned(),
            watch: Arc::new(|_| {}),
            task: "go",
        }
    }

    pub(crate) fn begin(&self) -> Run<Memory, Tape> {
        let order = Order {
            id: [7; 32],
            task: self.task,
            session: Session::default(),
            texts: &[],
            grant: Arc::new(Grant::parse(&self.grant).unwrap()),
            approval: None,
            room: Room { journal: 1 << 20, memory: usize::MAX, held: HELD_BYTES },
            platform: Arc::clone(&self.platform),
            watch: Arc::clone(&self.watch),
            cancel: Arc::clone(&self.cancel),
        };
        let places = Arc::clone(&self.places);
        let staff = Staff::new(self.player.clone(), self.shop.clone(), places, usize::MAX);
        Run::begin(order, Tape::default()).unwrap().staffed(staff)
    }

    /// Runs one turn of a script, and gives the answer, what it heard, and the log.
    pub(crate) fn run(&self, script: &Script) -> (Result<String, NoAnswer>, Vec<Came>, Vec<u8>) {
        let (run, answer) = drive(self.begin().turn(&self.player, script));
        let finished = run.end(answer);
        let answer = finished.answer.map(|answer| String::from_utf8(answer).unwrap());
        let log = finished.log.lock().sink().0.clone();
        (answer, self.player.heard.by(script.name), log)
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Drives a future, which is asked again only where it was woken.
pub(crate) fn drive<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    while flag.0.swap(false, Ordering::Relaxed) {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
    }
    unreachable!("nobody woke it");
}
