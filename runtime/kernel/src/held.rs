//! Held values: what a session keeps for its agent, and what is known of it.
//!
//! The bytes and their label stay with the kernel. A value is never changed: what is
//! made of it is another one, with a label that is at least its own.
//!
//! # Invariants
//! - I6: a value has the label that it was kept with; nothing here lowers one.
//!
//! # Not here
//! Numbers and room (`task`), and what a sentence may name (the boundary).

use alloc::vec::Vec;

use synapse_abi::registry::Primitive;
use synapse_boundary::sentence::Argument;
use synapse_boundary::target::Target;
use synapse_boundary::{Authorized, Held, Reply};
use synapse_primitives::Labelled;
use synapse_reply::Fault;
use synapse_reply::limits::LIST;

/// A held value: its bytes, or the fault that came instead, and their SHA-256.
#[derive(Debug)]
pub struct Value {
    kept: Labelled<Result<Vec<u8>, Fault>>,
    digest: [u8; 32],
    about: About,
}

/// What the kernel knows of a held value.
#[derive(Debug)]
pub struct About {
    /// What it is the reply of; nothing, if it is an agent's answer.
    pub primitive: Option<Primitive>,
    /// The record of its call, or of the end of its turn.
    pub record: u64,
    /// The target of its call, if that had one.
    pub source: Option<Source>,
    /// Bytes that are charged for it.
    pub room: usize,
}

/// What a held reply is the reply of.
#[derive(Debug)]
pub struct Source {
    primitive: Primitive,
    target: Target<'static>,
    /// Entries of a listing's page, for one that begins with the first.
    page: Option<u64>,
    /// Whether it is all of a listing.
    is_whole: bool,
}

impl Value {
    /// What came, and the SHA-256 of its bytes.
    #[must_use]
    pub fn new(kept: Labelled<Result<Vec<u8>, Fault>>, digest: [u8; 32], mut about: About) -> Self {
        let bytes = kept.value().as_deref().unwrap_or_default();
        about.source = about.source.map(|source| source.with(bytes));
        Self { kept, digest, about }
    }

    /// What came, with its label.
    #[must_use]
    pub const fn kept(&self) -> &Labelled<Result<Vec<u8>, Fault>> {
        &self.kept
    }

    /// The SHA-256 of its bytes.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// What else is known.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// It, as a decision sees it.
    pub(crate) fn held(&self) -> Held<'_> {
        let (bytes, fault) = match self.kept.value() {
            Ok(bytes) => (&bytes[..], None),
            Err(fault) => (&[][..], Some(fault.number())),
        };
        let reply_of = self.about.source.as_ref().map(|source| Reply {
            primitive: source.primitive,
            target: &source.target,
            is_whole: source.is_whole,
        });
        Held { label: self.kept.label(), bytes, digest: self.digest, fault, reply_of }
    }
}

impl Source {
    /// Of a value that was kept before.
    #[must_use]
    pub const fn known(primitive: Primitive, target: Target<'static>, is_whole: bool) -> Self {
        Self { primitive, target, page: None, is_whole }
    }

    pub(crate) fn of(authorized: &Authorized<'_>) -> Option<Self> {
        let call = authorized.call();
        let page = match (call.primitive(), call.argument(1), call.argument(2)) {
            (Primitive::FsList, Argument::Text(after), Argument::Uint(limit)) => {
                after.raw().is_empty().then_some(limit.min(LIST))
            }
            _ => None,
        };
        let target = authorized.target(0)?.owned();
        // A manifest says of a verb with records that it answers with all of them at once.
        let is_whole = call.primitive() == Primitive::ToolUse;
        Some(Self { primitive: call.primitive(), target, page, is_whole })
    }

    /// Its call's target.
    #[must_use]
    pub const fn target(&self) -> &Target<'static> {
        &self.target
    }

    /// Whether it is all of a listing.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// With what came: a page that is not full is a listing's last.
    fn with(self, bytes: &[u8]) -> Self {
        // A quote inside a string is escaped, so that this begins an entry.
        let entries = bytes.windows(ENTRY.len()).filter(|window| *window == ENTRY).count();
        let short = |page| u64::try_from(entries).is_ok_and(|entries| entries < page);
        Self { is_whole: self.is_whole || self.page.is_some_and(short), ..self }
    }
}

/// How an entry of a listing begins.
const ENTRY: &[u8] = b"{\"name\":";
