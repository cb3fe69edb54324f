//! What a call acts upon, in the form that gate 4 compares
//!
//! A target is resolved once, held or literal, before gate 3, so that both gates
//! speak of the same thing.
//!
//! # Invariants
//! - I11: a path is normal, a URL or a host canonical, or the defect stands in
//!   its place.
//!
//! # Not here
//! Whether a target is in scope (`gates`).

use alloc::borrow::{Cow, ToOwned};

use synapse_abi::code::Refusal;
use synapse_abi::limits;
use synapse_abi::registry::{Primitive, Role, Type};

use crate::gates::Facts;
use crate::parse::defect;
use crate::path::NormalPath;
use crate::scope::Method;
use crate::sentence::{Argument, Call};

/// What a call acts upon, in the form that gate 4 compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'s> {
    /// A file or a directory.
    Path(NormalPath<'s>),
    /// A canonical URL.
    Url(Cow<'s, str>),
    /// A canonical host.
    Host(Cow<'s, str>),
    /// A port, which gate 1 found to be one.
    Port(u64),
    /// A package or a connector's verb.
    Name(Cow<'s, str>),
}

impl<'s> Target<'s> {
    /// It as a path, if it is one.
    pub const fn path(&self) -> Option<&NormalPath<'s>> {
        if let Self::Path(path) = self { Some(path) } else { None }
    }

    /// The same target, independent of the sentence it stood in.
    pub fn owned(&self) -> Target<'static> {
        let text = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
        match self {
            Self::Path(path) => Target::Path(path.clone().into_owned()),
            Self::Url(url) => Target::Url(text(url)),
            Self::Host(host) => Target::Host(text(host)),
            Self::Port(port) => Target::Port(*port),
            Self::Name(name) => Target::Name(text(name)),
        }
    }

    /// It as a text, for the record.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Path(path) => Some(path.as_str()),
            Self::Url(text) | Self::Host(text) | Self::Name(text) => Some(text),
            Self::Port(_) => None,
        }
    }
}

/// Targets that one call can have.
pub(crate) const TARGETS: usize = 2;

/// The targets of a call: each normal, or else its defect. In place of one there may
/// be nothing, or a selector, which is resolved when its warrant is used.
#[derive(Clone, Debug)]
pub(crate) struct Targets<'s>(pub(crate) [Option<Result<Target<'s>, Refusal>>; TARGETS]);

impl<'s> Targets<'s> {
    /// Those of a sentence that names none.
    pub(crate) const NONE: Self = Self([const { None }; TARGETS]);

    /// Fills in those that a sentence names. A held one is resolved here.
    pub(crate) fn fill(&mut self, call: &Call<'s>, facts: &impl Facts) {
        let named = call.arguments().filter(|(argument, _)| argument.role == Role::Target);
        for (slot, (argument, value)) in self.0.iter_mut().zip(named) {
            if !matches!(value, Argument::Selector(_)) {
                *slot = Some(target(argument.ty, value, facts));
            }
        }
    }

    /// The target at a place, if it is normal.
    pub(crate) fn at(&self, place: usize) -> Option<&Target<'s>> {
        self.0.get(place)?.as_ref()?.as_ref().ok()
    }
}

fn target<'s>(ty: Type, value: Argument<'s>, facts: &impl Facts) -> Result<Target<'s>, Refusal> {
    if let (Argument::Text(text), Type::Path) = (value, ty)
        && let Some(path) = NormalPath::plain(text.raw())
    {
        return Ok(Target::Path(path));
    }
    let text = match (value, ty) {
        (Argument::Text(text), _) => text.decode(),
        (Argument::Held(number), _) => {
            let held = facts.held(number).ok_or(Refusal::NoSuchHandle)?;
            // One byte over the limit is enough to see that it is over.
            let bytes = held.bytes.get(..=limits::TEXT).unwrap_or(held.bytes);
            str::from_utf8(bytes).map_err(|_| Refusal::BadName)?.to_owned().into()
        }
        (Argument::Uint(port), _) => return Ok(Target::Port(port)),
        _ => return Err(Refusal::Malformed),
    };
    match (ty, text) {
        (Type::Path, path) => NormalPath::parse(path).map(Target::Path),
        // A literal one was refused by gate 1.
        (_, text) if defect(ty, &text).is_some() => Err(Refusal::NoPlace),
        (Type::Url, url) => Ok(Target::Url(url)),
        (Type::Host, host) => Ok(Target::Host(host)),
        (_, name) => Ok(Target::Name(name)),
    }
}

/// How a primitive that names a URL uses the network.
pub(crate) fn method(primitive: Primitive) -> Method {
    if primitive == Primitive::NetHttpPost { Method::Post } else { Method::Get }
}
