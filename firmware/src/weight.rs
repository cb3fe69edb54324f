//! What a component takes in memory when it is loaded, before it is
//!
//! A validator and an engine keep something for each item that a component
//! declares, and they do not ask whether there is room. A component can declare
//! many items in few bytes, so they are counted first.
//!
//! # Not here
//! Whether the component is sound (`admit`): what cannot be read weighs nothing
//! more, and is refused there.

use wasmparser::{Parser, Payload};

/// Bytes that an engine and a validator keep for an item, at most: entries in
/// vectors that double, each of which is copied while it grows.
const ITEM: usize = 400;
/// Bytes that they keep for a byte.
const BYTE: usize = 6;

/// Bytes that the component takes, at most.
pub(crate) fn of(component: &[u8]) -> usize {
    let items =
        Parser::new(0).parse_all(component).map_while(Result::ok).map(|payload| items(&payload));
    let items = items.fold(0, usize::saturating_add);
    items.saturating_mul(ITEM).saturating_add(component.len().saturating_mul(BYTE))
}

/// The bytes of the largest component of so much weight.
pub(crate) const fn bytes(weight: usize) -> usize {
    weight / BYTE
}

fn items(payload: &Payload<'_>) -> usize {
    let count = match payload {
        Payload::TypeSection(section) => section.count(),
        Payload::ImportSection(section) => section.count(),
        Payload::FunctionSection(section) => section.count(),
        Payload::TableSection(section) => section.count(),
        Payload::MemorySection(section) => section.count(),
        Payload::TagSection(section) => section.count(),
        Payload::GlobalSection(section) => section.count(),
        Payload::ExportSection(section) => section.count(),
        Payload::ElementSection(section) => section.count(),
        Payload::DataSection(section) => section.count(),
        Payload::InstanceSection(section) => section.count(),
        Payload::CoreTypeSection(section) => section.count(),
        Payload::ComponentInstanceSection(section) => section.count(),
        Payload::ComponentAliasSection(section) => section.count(),
        Payload::ComponentTypeSection(section) => section.count(),
        Payload::ComponentCanonicalSection(section) => section.count(),
        Payload::ComponentImportSection(section) => section.count(),
        Payload::ComponentExportSection(section) => section.count(),
        // One each: a body, a module, a custom section.
        _ => 1,
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}
