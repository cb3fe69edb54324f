//! Sessions on the disk: what a run said and holds, for another run to go on with.
//!
//! Written at the end of each turn into the run's own directory: a file `session`,
//! and one in `values` for each held value. The file bears a code that nobody makes
//! without this machine's key, so that no label in it is anybody else's.
//!
//! # Invariants
//! - I6: a label is read as it was written, by the names of its compartments; what
//!   the grant of another run does not name may be any that it does.
//! - What does not verify, or is of another version, is not gone on with.
//!
//! # Not here
//! What of it a turn is shown (`synapse_kernel::session`).

use core::fmt;
use std::borrow::Cow;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use synapse_abi::registry::{Primitive, Role, Type};
use synapse_boundary::target::Target;
use synapse_boundary::{Label, NormalPath, Origin};
use synapse_compiled::private;
use synapse_kernel::grant::Grant;
use synapse_kernel::held::{About, Source, Value};
use synapse_kernel::session::{Author, Message, Session};
use synapse_primitives::rest::Rest;
use synapse_primitives::rest::format::{parse_rest, rest};
use synapse_primitives::{Labelled, hex};
use synapse_reply::Fault;

use crate::run::MountOption;

/// The name of a session's file in its run's directory.
pub const FILE: &str = "session";

/// How an agent is found again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A component, or a package's folder.
    Path(PathBuf),
    /// The name of an installed package.
    Installed(String),
}

impl Place {
    /// What a person calls it.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Path(path) => path.to_string_lossy(),
            Self::Installed(name) => name.into(),
        }
    }
}

/// How a run was begun, so that another can go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manner {
    /// The agent.
    pub agent: Place,
    /// SHA-256 of its component.
    pub component: String,
    /// The grant's file, if one was given.
    pub grant: Option<PathBuf>,
    /// SHA-256 of the grant.
    pub granted: String,
    /// The folders.
    pub mounts: Vec<MountOption>,
}

/// A session as a run left it.
#[derive(Debug)]
pub struct Kept {
    /// The name of the run.
    pub run: String,
    /// How it was begun.
    pub manner: Manner,
    /// What was said, the first first.
    pub messages: Vec<Said>,
    /// The held values, by their numbers from 1.
    pub values: Vec<Holding>,
}

/// A message of a session.
#[derive(Debug)]
pub struct Said {
    /// Whose it is.
    pub from: Author,
    /// A text with its label, or the number of a held value.
    pub what: What,
}

/// What a message is.
#[derive(Debug)]
pub enum What {
    /// A text that stands in the clear.
    Clear(String, Rest),
    /// A held value.
    Held(u64),
}

/// A held value of a session.
#[derive(Debug)]
pub struct Holding {
    /// Its bytes, or the fault that came instead.
    pub bytes: Result<Vec<u8>, Fault>,
    /// Its label.
    pub rest: Rest,
    /// What it is the reply of; nothing, if it is an agent's answer.
    pub primitive: Option<Primitive>,
    digest: [u8; 32],
    room: usize,
    source: Option<Source>,
}

/// Why there is no session to go on with.
#[derive(Debug)]
pub enum SessionError {
    /// No turn of the run has ended, or its version kept none.
    Missing,
    /// Another version wrote it.
    Version,
    /// It is not as it was written here.
    Changed,
    /// What the host answered.
    Host(io::Error),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "the run has no session: no turn of it ended; `synapse sessions list` shows those \
                 that have one",
            ),
            Self::Version => f.write_str(
                "another version of Synapse wrote the session; use that one, or begin a new run",
            ),
            Self::Changed => f.write_str(
                "the session is not as this machine's user wrote it, so that its labels cannot be \
                 trusted; begin a new run",
            ),
            Self::Host(why) => {
                write!(f, "the session cannot be read: {why}; check its permissions")
            }
        }
    }
}

impl core::error::Error for SessionError {}

impl From<io::Error> for SessionError {
    fn from(why: io::Error) -> Self {
        if why.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Host(why) }
    }
}

/// Writes a run's session, turn by turn.
#[derive(Debug)]
pub struct Keeper {
    dir: PathBuf,
    key: private::Key,
    manner: Manner,
    /// Values that are on the disk already.
    written: usize,
}

impl Keeper {
    /// For the run with this directory, in this state folder.
    ///
    /// # Errors
    /// What the host answered.
    pub fn new(state: &Path, dir: &Path, manner: Manner) -> io::Result<Self> {
        let key = private::key(&state.join(KEY))?;
        Ok(Self { dir: dir.to_owned(), key, manner, written: 0 })
    }

    /// Keeps what was said and what is held; labels by the names of this grant.
    ///
    /// # Errors
    /// What the host answered. What was kept before is whole still.
    pub fn keep(
        &mut self,
        messages: &[Message],
        values: &[Value],
        grant: &Grant,
    ) -> io::Result<()> {
        let dir = self.dir.join(VALUES);
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        for (value, number) in values.iter().zip(1..).skip(self.written) {
            if let Ok(bytes) = value.kept().value() {
                private::write(&dir.join(name(number)), &[bytes])?;
            }
        }
        self.written = values.len();
        let json = self.json(messages, values, grant)?;
        let tag = tag(&self.key, &self.dir, json.as_bytes())?;
        private::write(
            &self.dir.join(FILE),
            &[FORMAT, json.as_bytes(), b"\n", tag.as_bytes(), b"\n"],
        )?;
        File::open(&self.dir)?.sync_all()
    }

    fn json(&self, messages: &[Message], values: &[Value], grant: &Grant) -> io::Result<String> {
        let path = |path: &Path| {
            let text = path.to_str().map(ToOwned::to_owned);
            text.ok_or_else(|| io::Error::other("a path that is not UTF-8 cannot be kept"))
        };
        let at_rest = |label| rest(&Rest::of(label, &grant.compartments));
        let messages: Vec<Json> = messages
            .iter()
            .map(|message| {
                let from = message.from().name();
                match message.text() {
                    Some(text) => json!({
                        "from": from, "text": text.value(), "label": at_rest(text.label())
                    }),
                    None => json!({"from": from, "value": message.value()}),
                }
            })
            .collect();
        let values: Vec<Json> = values
            .iter()
            .map(|value| {
                let (kept, about) = (value.kept(), value.about());
                json!({
                    "sha256": hex(value.digest()),
                    "label": at_rest(kept.label()),
                    "fault": kept.value().as_ref().err().map(|fault| fault.number()),
                    "primitive": about.primitive.map(|primitive| primitive.row().name),
                    "room": about.room,
                    "target": about.source.as_ref().and_then(|source| source.target().text()),
                    "whole": about.source.as_ref().is_some_and(Source::is_whole),
                })
            })
            .collect();
        let mounts = self.manner.mounts.iter().map(|mount| {
            let host = path(&mount.host)?;
            Ok(json!({"host": host, "guest": mount.guest, "read_only": mount.read_only}))
        });
        let (key, agent) = match &self.manner.agent {
            Place::Path(agent) => (PATH, path(agent)?),
            Place::Installed(name) => (PACKAGE, name.clone()),
        };
        Ok(json!({
            key: agent,
            "component": self.manner.component,
            "grant": self.manner.grant.as_deref().map(path).transpose()?,
            "granted": self.manner.granted,
            "mounts": mounts.collect::<io::Result<Vec<Json>>>()?,
            "messages": messages,
            "values": values,
        })
        .to_string())
    }
}

impl Manner {
    /// What is not as it was there.
    pub fn changed(&self, before: &Self) -> impl Iterator<Item = &'static str> + use<> {
        let all = [
            ("agent", self.component == before.component),
            ("grant", self.granted == before.granted),
            ("folders", self.mounts == before.mounts),
        ];
        all.into_iter().filter(|(_, same)| !same).map(|(what, _)| what)
    }
}

impl Kept {
    /// Reads the session of the run with this directory, in this state folder.
    ///
    /// # Errors
    /// There is none, or it is not as it was written.
    pub fn load(state: &Path, dir: &Path) -> Result<Self, SessionError> {
        let bytes = read(&dir.join(FILE), LONGEST)?;
        let rest = bytes.strip_prefix(FORMAT).ok_or(SessionError::Version)?;
        let key = private::find(&state.join(KEY)).ok_or(SessionError::Changed)?;
        let mut lines = rest.split(|byte| *byte == b'\n');
        let (json, end) = lines.next().zip(lines.next()).ok_or(SessionError::Changed)?;
        if tag(&key, dir, json)?.as_bytes() != end || lines.next() != Some(b"") {
            return Err(SessionError::Changed);
        }
        let json = serde_json::from_slice(json).map_err(|_| SessionError::Changed)?;
        let mut kept = parse(&json).ok_or(SessionError::Changed)?;
        kept.run = run_name(dir).into_owned();
        let all = json.get("values").and_then(Json::as_array).ok_or(SessionError::Changed)?;
        let mut left = HELD;
        for (value, number) in all.iter().zip(1..) {
            let known = Known::parse(value).ok_or(SessionError::Changed)?;
            let holding = known.holding(&dir.join(VALUES).join(name(number)), &mut left)?;
            kept.values.push(holding);
        }
        Ok(kept)
    }

    /// Leaves out what came after so many typed lines, so that another run can go on
    /// from there; nothing, if there were fewer. What stays keeps its label and number.
    #[must_use]
    pub fn cut(mut self, lines: usize) -> Option<Self> {
        let (mut typed, human) = (0_usize, |said: &Said| said.from == Author::Human);
        let next = self.messages.iter().position(|said| {
            typed += usize::from(human(said));
            typed > lines
        });
        let later = self.messages.split_off(next.unwrap_or(self.messages.len()));
        let first = later.iter().find_map(|said| match said.what {
            What::Held(number) => usize::try_from(number).ok()?.checked_sub(1),
            What::Clear(..) => None,
        });
        self.values.truncate(first.unwrap_or(self.values.len()));
        (typed >= lines).then_some(self)
    }

    /// What a run under this grant goes on with.
    #[must_use]
    pub fn session(self, grant: &Grant) -> Session {
        // The start record of the new run says where to look for more.
        let label = |rest: &Rest| Label {
            origin: Origin::record(0),
            ..rest.label(&grant.compartments, grant.scope.named())
        };
        let messages = self.messages.into_iter().filter_map(|Said { from, what }| match what {
            What::Clear(text, rest) => Message::clear(from, Labelled::new(text, label(&rest))),
            What::Held(number) => Some(Message::held(from, number)),
        });
        let values = self.values.into_iter().map(|holding| {
            let Holding { bytes, rest, primitive, digest, room, source } = holding;
            let about = About { primitive, record: 0, source, room };
            Value::new(Labelled::new(bytes, label(&rest)), digest, about)
        });
        Session { from: Some(self.run), messages: messages.collect(), values: values.collect() }
    }
}

/// The SHA-256 of these bytes, in digits.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn parse(json: &Json) -> Option<Kept> {
    let text = |value: &Json, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let mounts = json.get("mounts")?.as_array()?.iter().map(|mount| {
        Some(MountOption {
            host: text(mount, "host")?.into(),
            guest: text(mount, "guest")?,
            read_only: mount.get("read_only")?.as_bool()?,
        })
    });
    let messages = json.get("messages")?.as_array()?.iter().map(|message| {
        let name = message.get("from")?.as_str()?;
        let authors = [Author::Human, Author::Agent, Author::World];
        let from = authors.into_iter().find(|author| author.name() == name)?;
        let what = match message.get("value") {
            Some(number) => What::Held(number.as_u64()?),
            None => What::Clear(text(message, "text")?, parse_rest(message.get("label")?)?),
        };
        Some(Said { from, what })
    });
    let manner = Manner {
        agent: match text(json, PACKAGE) {
            Some(name) => Place::Installed(name),
            None => Place::Path(text(json, PATH)?.into()),
        },
        component: text(json, "component")?,
        grant: match json.get("grant")? {
            Json::Null => None,
            file => Some(file.as_str()?.into()),
        },
        granted: text(json, "granted")?,
        mounts: mounts.collect::<Option<_>>()?,
    };
    Some(Kept {
        run: String::new(),
        manner,
        messages: messages.collect::<Option<_>>()?,
        values: Vec::new(),
    })
}

/// What a session's file says of a held value.
struct Known<'a> {
    fault: Option<Fault>,
    rest: Rest,
    primitive: Option<Primitive>,
    room: usize,
    source: Option<Source>,
    sha256: &'a str,
}

impl<'a> Known<'a> {
    fn parse(json: &'a Json) -> Option<Self> {
        let fault = match json.get("fault")? {
            Json::Null => None,
            number => Some(Fault::from_number(u16::try_from(number.as_u64()?).ok()?)?),
        };
        let primitive = match json.get("primitive")? {
            Json::Null => None,
            name => Some(Primitive::from_name(name.as_str()?)?),
        };
        let whole = json.get("whole")?.as_bool()?;
        let of = primitive.zip(json.get("target")?.as_str());
        Some(Self {
            fault,
            rest: parse_rest(json.get("label")?)?,
            primitive,
            room: usize::try_from(json.get("room")?.as_u64()?).ok()?,
            source: of.and_then(|(primitive, text)| {
                Some(Source::known(primitive, target(primitive, text)?, whole))
            }),
            sha256: json.get("sha256")?.as_str()?,
        })
    }

    /// With its bytes, if they are those that were kept and there is room left.
    fn holding(self, path: &Path, left: &mut u64) -> Result<Holding, SessionError> {
        let Self { fault, rest, primitive, room, source, sha256 } = self;
        let bytes = match fault {
            Some(fault) => Err(fault),
            None => Ok(read(path, *left).map_err(|why| match why {
                SessionError::Missing => SessionError::Changed,
                why => why,
            })?),
        };
        let kept = bytes.as_deref().unwrap_or_default();
        *left = left.saturating_sub(kept.len() as u64);
        let digest: [u8; 32] = Sha256::digest(kept).into();
        if hex(&digest) != sha256 {
            return Err(SessionError::Changed);
        }
        Ok(Holding { bytes, rest, primitive, digest, room, source })
    }
}

/// The first target of a primitive's calls, of the kinds that decisions look back at.
fn target(primitive: Primitive, text: &str) -> Option<Target<'static>> {
    let mut targets = primitive.row().arguments.iter().filter(|row| row.role == Role::Target);
    let text = || Cow::Owned(text.to_owned());
    match targets.next()?.ty {
        Type::Path => NormalPath::parse(text()).ok().map(Target::Path),
        Type::Url => Some(Target::Url(text())),
        _ => None,
    }
}

/// What vouches for a session: of this run, and no other's.
fn tag(key: &private::Key, dir: &Path, json: &[u8]) -> io::Result<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(io::Error::other)?;
    for part in [FORMAT, run_name(dir).as_bytes(), b"\n", json] {
        mac.update(part);
    }
    Ok(hex(&mac.finalize().into_bytes()))
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, SessionError> {
    let mut bytes = Vec::new();
    let got = File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if got as u64 > most { Err(SessionError::Changed) } else { Ok(bytes) }
}

fn run_name(dir: &Path) -> Cow<'_, str> {
    dir.file_name().unwrap_or_default().to_string_lossy()
}

fn name(number: u64) -> String {
    number.to_string()
}

/// What is read and vouched for begins with this; another version has another.
const FORMAT: &[u8] = b"synapse-session 1\n";
/// What stands before an agent, by how it is found again.
const PATH: &str = "agent";
const PACKAGE: &str = "package";
/// The key's name in the state folder, and that of the values' folder in a run's.
const KEY: &str = "session.key";
const VALUES: &str = "values";
/// Bytes of a session's file, and of all its values, at most.
const LONGEST: u64 = 64 << 20;
const HELD: u64 = 64 << 20;
