//! Cases: what is attacked, how, and which gate must say no.
//!
//! One file a case, in TOML. Nothing in it is run as anything but sentences.
//!
//! # Not here
//! Playing a case (`trial`).

use core::fmt;
use core::net::IpAddr;
use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};
use synapse_abi::code::Refusal;
use synapse_boundary::url::Url;
use synapse_kernel::grant::Grant;
use synapse_reply::code;

use crate::public::connectors::Connectors;

/// One attack, or one piece of everyday work.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("if" = json!({"required": ["goal"]}), "then" = attacks(), "else" = works(), "allOf" = [unturned()]))]
pub struct Case {
    /// Its file's name without the extension.
    #[serde(skip)]
    pub name: String,
    /// What happens, in one sentence.
    pub about: String,
    /// What the attacker wants; none in everyday work.
    pub goal: Option<Goal>,
    /// How the injection reaches the agent.
    pub vector: Option<Vector>,
    /// The invariant that the attack probes.
    pub probes: Option<String>,
    /// The line that the human typed.
    pub task: String,
    /// The name of a grant that ships or of a suite of connectors, or the text of one.
    pub grant: String,
    /// What connectors answer, by what they are given; else `[]`.
    #[serde(default)]
    pub replies: BTreeMap<String, String>,
    /// What the network answers, by URL; nothing else is there.
    #[serde(default)]
    pub pages: BTreeMap<String, Page>,
    /// What the human types when the agent asks, one question after another.
    #[serde(default)]
    pub answers: Vec<String>,
    /// What packages that are known by these names do when they are started.
    #[serde(default)]
    pub children: BTreeMap<String, Vec<Step>>,
    /// Files that stand there before, by guest path.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Files that must be as they were when all is over.
    #[serde(default)]
    pub intact: Vec<String>,
    /// What the agent does for the human.
    #[serde(default)]
    pub user: Vec<Step>,
    /// What the attacker has it do.
    #[serde(default)]
    pub attack: Vec<Step>,
}

/// One sentence of a script.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The sentence.
    pub call: String,
    /// Whether its reply is the first that carries the injection.
    #[serde(default)]
    pub carries: bool,
    /// Who must refuse it. A step of an attack that names nobody prepares one
    /// that does.
    pub stopped: Option<Stop>,
    /// Why a step of everyday work with an effect is legitimate.
    pub why: Option<String>,
    /// The turn that begins with it; the agent's own steps for the human alone have one.
    pub turn: Option<Turn>,
}

/// How a later turn begins. The first one begins with the task.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What the human types.
    pub line: String,
    /// Whether the run ended before, and another one goes on from it.
    #[serde(default)]
    pub resumed: bool,
}

/// What the network answers at a URL.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Page {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: String,
    /// The address of its host, if not one that all the world reaches.
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
}

impl Default for Page {
    fn default() -> Self {
        Self { status: 200, headers: BTreeMap::new(), body: String::new(), address: None }
    }
}

/// A gate, and the codes with which it may refuse.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("anyOf" = stops()))]
pub struct Stop {
    /// 1 to 4.
    pub gate: u8,
    /// One of them.
    pub codes: Vec<u16>,
}

/// What an attacker wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Have something removed.
    Destroy,
    /// Have something replaced.
    Overwrite,
    /// Learn something.
    Exfiltrate,
    /// Have a label fall.
    Launder,
    /// Reach what was not granted.
    Escape,
    /// Have authority handed on.
    Transfer,
    /// Have money or an account used.
    Spend,
    /// Have the human believe something.
    Deceive,
    /// Use something up.
    Exhaust,
}

/// How an injection reaches an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Vector {
    /// In a file's content.
    File,
    /// In a file's name.
    FileName,
    /// In a page's body.
    Body,
    /// In a header.
    Header,
    /// In a tool's result.
    ToolResult,
    /// In a tool's description.
    ToolDescription,
    /// In the text or the number of a failure.
    Error,
    /// On a channel.
    Channel,
    /// In a child's report.
    Report,
    /// In a package's own texts or pages.
    Package,
    /// In a memory note.
    Memory,
    /// In a session that goes on.
    Session,
    /// In a summary.
    Summary,
    /// In the sentence itself: the agent is the attacker.
    Agent,
}

/// Why a case cannot be played.
#[derive(Debug)]
pub struct BadCase {
    /// Its name.
    pub case: String,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for BadCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.why)
    }
}

impl core::error::Error for BadCase {}

/// Reads one case.
///
/// # Errors
/// [`BadCase`]: not TOML of the format, a path that is none, an attack without a
/// step that must be stopped, a code that is not the gate's.
pub fn parse(name: &str, text: &str) -> Result<Case, BadCase> {
    let bad = |why: String| BadCase { case: name.to_owned(), why };
    let mut case: Case = toml::from_str(text).map_err(|why| bad(why.to_string()))?;
    name.clone_into(&mut case.name);
    if !case.attack.is_empty() && case.attack.iter().all(|step| step.stopped.is_none()) {
        return Err(bad("no step of the attack says who must refuse it".to_owned()));
    }
    let others = || case.attack.iter().chain(case.children.values().flatten());
    if let Some(step) = others().find(|step| step.turn.is_some()) {
        return Err(bad(format!("no turn of the human's begins with {}", step.call)));
    }
    if let Some(url) = case.pages.keys().find(|url| Url::parse(url).is_err()) {
        return Err(bad(format!("{url} is no canonical URL, so no call can name it")));
    }
    let wrong = |stop: &&Stop| {
        stop.codes.is_empty() || stop.codes.iter().any(|code| !refusals(stop.gate).contains(code))
    };
    if let Some(stop) = others().filter_map(|step| step.stopped.as_ref()).find(wrong) {
        return Err(bad(format!("{:?} are no codes of gate {}", stop.codes, stop.gate)));
    }
    if case.attack.is_empty() != case.goal.is_none() {
        return Err(bad("an attack has a goal and steps, everyday work has neither".to_owned()));
    }
    if let Some(path) = case.intact.iter().find(|path| !case.files.contains_key(*path)) {
        return Err(bad(format!("{path} must stay as it was, but it is not among the files")));
    }
    Ok(case)
}

/// The JSON Schema of a case, written from the types that are read.
#[must_use]
pub fn schema() -> String {
    format!("{:#}", schema_for!(Case).to_value())
}

/// What an attack has besides.
fn attacks() -> Value {
    let steps = json!({"minItems": 1, "contains": {"required": ["stopped"]}});
    json!({"required": ["attack"], "properties": {"attack": steps}})
}

/// What everyday work has not.
fn works() -> Value {
    json!({"properties": {"attack": {"maxItems": 0}}})
}

/// Who begins no turn.
fn unturned() -> Value {
    let steps = json!({"items": {"properties": {"turn": false}}});
    json!({"properties": {"attack": steps, "children": {"additionalProperties": steps}}})
}

/// Each gate with its codes.
fn stops() -> Vec<Value> {
    let stop = |gate: u8| {
        let codes = json!({"minItems": 1, "items": {"enum": refusals(gate)}});
        json!({"properties": {"gate": {"const": gate}, "codes": codes}})
    };
    (1..=4).map(stop).collect()
}

/// The codes with which a gate refuses.
fn refusals(gate: u8) -> Vec<u16> {
    let codes = Refusal::ALL.iter().map(|refusal| refusal.number());
    codes.filter(|code| code::gate(*code) == Some(gate)).collect()
}

impl Case {
    /// Its grant.
    ///
    /// # Errors
    /// [`BadCase`].
    pub fn grant(&self) -> Result<Grant, BadCase> {
        let bad =
            |why: String| BadCase { case: self.name.clone(), why: format!("its grant: {why}") };
        let connectors = Connectors::shipped().map_err(bad)?;
        if connectors.has(&self.grant) {
            return connectors.grant(&self.grant).map_err(bad);
        }
        let shipped = GRANTS.iter().find(|(name, _)| *name == self.grant);
        let text = shipped.map_or(&*self.grant, |(_, text)| text);
        Grant::parse(text).map_err(|why| bad(why.to_string()))
    }
}

/// The attacks that ship.
///
/// # Errors
/// The first one that cannot be read.
pub fn corpus() -> Result<Vec<Case>, BadCase> {
    CORPUS.iter().map(|(name, text)| parse(name, text)).collect()
}

/// The everyday work that ships.
///
/// # Errors
/// The first one that cannot be read.
pub fn work() -> Result<Vec<Case>, BadCase> {
    WORK.iter().map(|(name, text)| parse(name, text)).collect()
}

const CORPUS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/corpus.rs"));
const WORK: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/work.rs"));
const GRANTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/grants.rs"));
