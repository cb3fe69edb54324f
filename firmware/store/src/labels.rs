//! Labels at rest, each under the number of its node.
//!
//! A node keeps its number whatever it is called, and only this program writes
//! the store: what stands there is what was labelled, and nothing has to be known
//! again. A label is changed by the same set of changes as what it is of.
//!
//! # Invariants
//! - I5, I15: what has no label was written by others, and what is read has at
//!   least the compartments that were kept for it.
//!
//! # Not here
//! What a label is to a grant (`synapse_primitives`).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use synapse_boundary::Integrity;
use synapse_primitives::Fault;
use synapse_primitives::rest::{Creator, Names, Rest, Stamp};

use crate::keys::{self, Fields, LABEL};
use crate::store::Change;
use crate::tree::{Node, Tree, failed};

/// What is kept of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// Of its bytes; of a directory, of what is gone from it.
    pub(crate) content: Rest,
    pub(crate) name: Rest,
    /// Compartments of it and of all that is below it.
    pub(crate) below: Names,
    /// Who made it, if every byte since came from them.
    pub(crate) creator: Option<Creator>,
}

impl Label {
    fn unknown() -> Self {
        let (content, name) = (Rest::outside(), Rest::outside());
        Self { content, name, below: Names::NONE, creator: None }
    }

    /// Of what this change makes.
    pub(crate) fn made(stamp: &Stamp) -> Self {
        Self {
            content: stamp.rest.clone(),
            name: stamp.rest.clone(),
            below: Names::NONE,
            creator: Some(stamp.creator),
        }
    }

    /// Of other bytes under the same name.
    pub(crate) fn replaced(self, stamp: &Stamp) -> Self {
        let creator = self.creator.filter(|creator| *creator == stamp.creator);
        Self { content: stamp.rest.clone(), creator, ..self }
    }

    /// Of these bytes with others in them.
    pub(crate) fn mixed(self, stamp: &Stamp) -> Self {
        let mut content = self.content.clone();
        content.join(&stamp.rest);
        Self { content, ..self.replaced(stamp) }
    }

    /// The label of the name, size and times together.
    pub(crate) fn shown(mut self) -> Rest {
        self.content.join(&self.name);
        self.content
    }

    fn value(&self) -> Vec<u8> {
        let mut value = Vec::new();
        for rest in [&self.content, &self.name] {
            let place = INTEGRITIES.iter().position(|known| *known == rest.integrity);
            value.push(place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX));
            write(&mut value, &rest.names);
        }
        write(&mut value, &self.below);
        if let Some(creator) = &self.creator {
            value.extend_from_slice(&creator.task.to_le_bytes());
            keys::write(&mut value, &creator.run);
        }
        value
    }

    fn parse(value: &[u8]) -> Option<Self> {
        let mut fields = Fields(value);
        let (content, name) = (rest(&mut fields)?, rest(&mut fields)?);
        let below = names(&mut fields)?;
        let creator = match fields.u64() {
            Some(task) => Some(Creator { run: fields.bytes()?.try_into().ok()?, task }),
            None => None,
        };
        Some(Self { content, name, below, creator })
    }
}

impl Tree<'_> {
    pub(crate) fn label(&self, node: u64) -> Result<Label, Fault> {
        match self.store().get(&keys::of(LABEL, node)).map_err(failed)? {
            Some(value) => Label::parse(&value).ok_or(Fault::Io),
            None => Ok(Label::unknown()),
        }
    }

    pub(crate) fn set_label(&mut self, node: u64, label: &Label) {
        self.changes.push(Change::Put(keys::of(LABEL, node), Cow::Owned(label.value())));
    }

    /// What a path carries because of what it and those above it carry.
    pub(crate) fn along(&self, root: u64, rest: &str) -> Result<Names, Fault> {
        let mut node = root;
        let mut along = self.label(node)?.below;
        for name in rest.split('/').filter(|name| !name.is_empty()) {
            node = self.child(node, name)?.ok_or(Fault::NotFound)?.number;
            along.join(&self.label(node)?.below);
        }
        Ok(along)
    }

    /// The label of the bytes of what stands under a path.
    pub(crate) fn content_label(&self, root: u64, rest: &str, node: &Node) -> Result<Rest, Fault> {
        let mut content = self.label(node.number)?.content;
        content.names.join(&self.along(root, rest)?);
        Ok(content)
    }

    /// Keeps that a name went from a directory: that it is missing tells of who
    /// took it away.
    pub(crate) fn left(&mut self, directory: u64, stamp: &Stamp) -> Result<(), Fault> {
        let mut label = self.label(directory)?;
        label.content.join(&stamp.rest);
        self.set_label(directory, &label);
        Ok(())
    }
}

fn write(value: &mut Vec<u8>, names: &Names) {
    value.extend_from_slice(&crate::tree::count(names.iter().count()).to_le_bytes());
    for name in names.iter() {
        keys::write(value, name.as_bytes());
    }
}

fn rest(fields: &mut Fields<'_>) -> Option<Rest> {
    let integrity = *INTEGRITIES.get(usize::from(fields.u8()?))?;
    Some(Rest { integrity, names: names(fields)? })
}

fn names(fields: &mut Fields<'_>) -> Option<Names> {
    let mut names = Names::NONE;
    for _ in 0..fields.u64()? {
        names.add(fields.text()?);
    }
    Some(names)
}

const INTEGRITIES: [Integrity; 3] = [Integrity::System, Integrity::User, Integrity::Ingested];
