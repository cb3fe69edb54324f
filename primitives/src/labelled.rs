//! Values that travel with their labels
//!
//! What a call came to, what is held and what was said are all of one shape: nobody
//! has the value without the label, and a task gets it only by its mark's rising.
//!
//! # Not here
//! What a label is and forbids (the boundary); which label a reply has ([`execute`](crate::execute())).

use synapse_boundary::{Label, Mark};

/// A value that travels with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled<T> {
    value: T,
    label: Label,
}

impl<T> Labelled<T> {
    /// Puts a label on a value.
    #[must_use]
    pub const fn new(value: T, label: Label) -> Self {
        Self { value, label }
    }

    /// The label.
    #[must_use]
    pub const fn label(&self) -> Label {
        self.label
    }

    /// The value, for who carries the label on.
    #[must_use]
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Gives the value to a task whose mark rises by the label.
    #[must_use]
    pub fn release(self, mark: &mut Mark) -> T {
        mark.absorb(self.label);
        self.value
    }

    /// Changes the value and raises the label by `more`.
    #[must_use]
    pub fn map<U>(self, more: Label, change: impl FnOnce(T) -> U) -> Labelled<U> {
        Labelled { value: change(self.value), label: self.label.join(more) }
    }
}
