//! The manifest of a connector: what a human says that a server's verbs do.
//!
//! A server describes itself, and lies when it likes. What its verbs do, and what each
//! argument is for, is written here, and counts once a human has approved it. What
//! is not written is the strictest.
//!
//! # Invariants
//! - Whatever the file does not say makes a verb harder to use, never easier.
//! - A digest of the file's bytes pins it: who approved one approved no other.
//!
//! # Reading order
//! `keys` (what may stand where), `read` (what it means), `lines` (of what is run). Its form is checked as a
//! grant's (`grant::shape`).
//!
//! # Not here
//! Approvals, and speaking with the server (the host). Judging a call by it (the
//! boundary); joining it with a grant's entries (`grant::tools`).

mod keys;
pub mod lines;
mod read;
#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use synapse_boundary::scope;

use crate::grant::notes::Notes;
use crate::grant::tools::Bound;
use crate::grant::{self, Notice};
pub(crate) use keys::MANIFEST;

/// What a server's verbs do.
#[derive(Debug)]
pub struct Manifest {
    /// The SHA-256 of the file.
    pub digest: [u8; 32],
    /// What grants and calls name it by.
    pub server: String,
    /// One line for people.
    pub description: String,
    /// Compartments that may go there besides.
    pub clear: Vec<String>,
    /// Whether what it answers may go elsewhere under a warrant.
    pub let_out: bool,
    /// How it is reached.
    pub start: Start,
    /// Its verbs, as the file has them.
    pub verbs: Vec<Verb>,
    warnings: Vec<Notice>,
}

/// How a server is reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Whose secrets it has: the manifest's `server`.
    pub server: String,
    /// The program and its arguments; empty for one at a URL.
    pub command: Vec<String>,
    /// Its address; empty for a program.
    pub url: String,
    /// Whether there is no server, and each verb is a line that is run.
    pub lines: bool,
    /// Variables that the program inherits.
    pub environment: Vec<String>,
    /// Variables of the program, or headers of what is sent to the address, whose values
    /// are `{secret:NAME}`; that of `authorization` may have a scheme before it.
    pub secrets: Vec<(String, String)>,
    /// What the program may read besides itself.
    pub read: Vec<String>,
    /// What the program may read and change.
    pub write: Vec<String>,
    /// Whether the program may use the network.
    pub network: bool,
    /// Bytes of the program's memory.
    pub memory: u64,
    /// Seconds of one call.
    pub seconds: u64,
    /// Bytes of one answer.
    pub reply: usize,
    /// Of lines: variables, with their values.
    pub set: Vec<(String, String)>,
    /// Of a line: bytes that it may add to the disk.
    pub disk: u64,
}

impl Start {
    /// Whether it can tell nobody else what it hears.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.url.is_empty() && !self.network
    }
}

/// What a verb does.
#[derive(Debug)]
pub struct Verb {
    /// What calls name it by.
    pub name: String,
    /// What the server names it by.
    pub tool: String,
    /// One line for agents and people.
    pub about: String,
    /// What it does.
    pub effect: Effect,
    /// Of a store, that it needs no question.
    pub free: bool,
    /// The verb that takes it back.
    pub inverse: Option<String>,
    /// The line that is run, where there is no server: a program and its arguments.
    pub line: Vec<String>,
    /// Words with which people ask for it.
    pub says: Vec<String>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// The fields of its records and their types.
    pub fields: Vec<(String, String)>,
    /// Whether those records are the user's own.
    pub own: bool,
}

synapse_abi::numbered! {
    /// What a verb does, the mildest first.
    pub enum Effect: u8 {
        /// It reads.
        Read = 1,
        /// It reads from elsewhere.
        Fetch = 2,
        /// It adds what can be taken back.
        Store = 3,
        /// It tells somebody.
        Send = 4,
        /// It moves money.
        Pay = 5,
        /// It changes an account.
        Account = 6,
        /// It destroys.
        Destroy = 7,
        /// It moves something in the world.
        Actuate = 8,
        /// It runs what it is given, or nobody said.
        Execute = 9,
    }
}

/// An argument of a verb.
#[derive(Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// What a target is, in a word.
    pub ty: String,
    pub(crate) limit: Option<Bound>,
    /// Of a line: what may stand there.
    pub form: Option<Form>,
}

/// What may stand in a place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Letters, digits and a few signs.
    Word,
    /// A whole number.
    Number,
    /// A path below the folder, of something that is there.
    Path,
    /// One line of text.
    Text,
}

/// The argument that names the folder in which a line is run.
pub const FOLDER: &str = "tree";

/// What an argument is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What the verb acts upon.
    Target,
    /// How it does.
    Parameter,
    /// What it passes on.
    Content,
}

/// Types of what is reached: only from the user's own records.
const REACHED: [&str; 3] = ["person", "payee", "url"];

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// All mistakes, with their places, in the order of the file.
    pub fn check(text: &str) -> Result<Self, Vec<Notice>> {
        let mut notes = Notes::new("manifest");
        let manifest = read::document(text, &mut notes);
        let warnings = notes.finish(text)?;
        let digest = Sha256::digest(text).into();
        // Without a mistake there is one.
        manifest.map(|it| Self { digest, warnings, ..it }).ok_or_else(Vec::new)
    }

    /// What is legal and probably not meant, in the order of the file.
    #[must_use]
    pub fn warnings(&self) -> &[Notice] {
        &self.warnings
    }

    /// The verb that calls name so.
    #[must_use]
    pub fn verb(&self, name: &str) -> Option<&Verb> {
        self.verbs.iter().find(|verb| verb.name == name)
    }
}

impl Verb {
    /// What the door knows of the effect.
    #[must_use]
    pub fn class(&self) -> scope::Effect {
        let reaches = self.arguments.iter().any(|argument| argument.ty == "person");
        match self.effect {
            Effect::Read | Effect::Fetch => scope::Effect::Read,
            Effect::Store if reaches => scope::Effect::Commit,
            Effect::Store if self.free => scope::Effect::Free,
            Effect::Store => scope::Effect::Store,
            Effect::Send
            | Effect::Pay
            | Effect::Account
            | Effect::Destroy
            | Effect::Actuate
            | Effect::Execute => scope::Effect::Commit,
        }
    }

    /// What the door knows of its warrants.
    pub(crate) fn warrants(&self) -> scope::Verb {
        // What money goes by, and what is run, is named in full: a parameter of it is
        // open only as a number or a date inside its limit.
        let strict = matches!(self.effect, Effect::Pay | Effect::Account | Effect::Execute);
        let role = |argument: &Argument| {
            let bounded = matches!(argument.limit, Some(Bound::Within(..) | Bound::Dated(..)));
            match argument.role {
                Role::Target => Some((argument.name.clone(), argument.ty.clone())),
                Role::Parameter if strict && !bounded => None,
                Role::Parameter | Role::Content => Some((argument.name.clone(), String::new())),
            }
        };
        let fields =
            self.fields.iter().filter(|(_, ty)| self.own || !REACHED.contains(&&**ty)).cloned();
        scope::Verb {
            arguments: self.arguments.iter().filter_map(role).collect(),
            says: self.says.clone(),
            fields: fields.collect(),
        }
    }

    pub(crate) fn limits(&self) -> impl Iterator<Item = (String, Bound)> {
        let limit = |it: &Argument| Some((it.name.clone(), it.limit.clone()?));
        self.arguments.iter().filter_map(limit)
    }
}

/// The JSON Schema of a manifest, for editors.
#[must_use]
pub fn schema() -> String {
    grant::schema::of("Synapse connector manifest", &MANIFEST)
}
