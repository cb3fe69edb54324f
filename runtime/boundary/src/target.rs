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

use alloc::borrow::Cow;

use synapse_abi::code::Refusal;
use synapse_abi::limits;
use synapse_abi::registry::{Primitive, Role, Type};

use crate::gates::Facts;
use crate::parse::well_formed;
use crate::path::NormalPath;
use crate::scope::{Method, Place, Scope, Terms, Tool};
use crate::sentence::{Argument, Asked};
use crate::url::{Host, Url};

/// What a call acts upon, in the form that gate 4 compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<'s> {
    /// A file or a directory.
    Path(NormalPath<'s>),
    /// A canonical URL.
    Url(Cow<'s, str>),
    /// A canonical host.
    Host(Cow<'s, str>),
    /// A port.
    Port(u16),
    /// A package or a connector's verb.
    Name(Cow<'s, str>),
}

impl Target<'_> {
    /// The same target, independent of the sentence it stood in.
    #[must_use]
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
    #[must_use]
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

/// The targets of a call, normal or with their defect.
pub(crate) type Targets<'s> = [Option<Result<Target<'s>, Refusal>>; TARGETS];

/// The targets that a sentence names. A held one is resolved here, a selector when
/// its warrant is used.
pub(crate) fn targets<'s>(asked: &Asked<'s>, facts: &impl Facts) -> Targets<'s> {
    let mut found = [const { None }; TARGETS];
    let named = asked.arguments().filter(|(argument, _)| argument.role == Role::Target);
    for (slot, (argument, value)) in found.iter_mut().zip(named) {
        let selects = matches!(value, Argument::Selector(_));
        *slot = (!selects).then(|| target(argument.ty, value, facts));
    }
    found
}

fn target<'s>(ty: Type, value: Argument<'s>, facts: &impl Facts) -> Result<Target<'s>, Refusal> {
    let text = match (value, ty) {
        (Argument::Text(text), _) => text.decode(),
        (Argument::Held(number), _) => {
            let held = facts.held(number).ok_or(Refusal::NoSuchHandle)?;
            // One byte over the limit is enough to see that it is over.
            let bytes = held.bytes.get(..=limits::TEXT).unwrap_or(held.bytes);
            let text = str::from_utf8(bytes).map_err(|_| Refusal::BadName)?;
            Cow::Owned(text.into())
        }
        (Argument::Uint(port), _) => {
            return u16::try_from(port).map(Target::Port).map_err(|_| Refusal::Malformed);
        }
        _ => return Err(Refusal::Malformed),
    };
    if ty == Type::Path {
        return NormalPath::parse(text).map(Target::Path);
    }
    // A literal one was refused by gate 1.
    well_formed(ty, &text).map_err(|_| Refusal::NoPlace)?;
    Ok(match (ty, text) {
        (Type::Url, url) => Target::Url(url),
        (Type::Host, host) => Target::Host(host),
        (_, name) => Target::Name(name),
    })
}

/// What the entries that cover a call say; `None` where none does.
pub(crate) fn terms(primitive: Primitive, targets: &Targets<'_>, scope: &Scope) -> Option<Terms> {
    let net = || scope.check_net(&place(primitive, targets).ok()?).ok();
    entry(targets, scope).map_or_else(net, |tool| Some(tool.terms))
}

/// The entry of the verb that a call names.
pub(crate) fn entry<'a>(targets: &Targets<'_>, scope: &'a Scope) -> Option<&'a Tool> {
    match targets {
        [Some(Ok(Target::Name(name))), _] => scope.entry(name),
        _ => None,
    }
}

/// How a primitive that names a URL uses the network.
pub(crate) fn method(primitive: Primitive) -> Method {
    if primitive == Primitive::NetHttpPost { Method::Post } else { Method::Get }
}

/// Where on the network a call goes.
pub(crate) fn place<'a>(
    primitive: Primitive,
    targets: &'a Targets<'_>,
) -> Result<Place<'a>, Refusal> {
    match targets {
        [Some(Ok(Target::Url(url))), None] => Ok(Place::of(&Url::parse(url)?, method(primitive))),
        [Some(Ok(Target::Host(host))), Some(Ok(Target::Port(port)))] => {
            Ok(Place { host: Host::parse(host)?, port: *port, method: Method::Listen, path: None })
        }
        _ => Err(Refusal::OutOfScope),
    }
}
