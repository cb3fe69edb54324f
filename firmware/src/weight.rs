//! What a component takes in memory when it is loaded, before it is
//!
//! A validator and an engine keep something for each item that a component
//! declares, and they do not ask whether there is room. A component can declare
//! many items in few bytes, so they are counted first.
//!
//! # Not here
//! Whether the component is sound (`admit`): what cannot be read weighs nothing
//! more, and is refused there.

use synapse_kernel::package::tar;
use wasmparser::{Parser, Payload};

/// Bytes that an engine and a validator keep for an item, at most: entries in
/// vectors that double, each of which is copied while it grows.
const ITEM: usize = 400;
/// Bytes that they keep for a byte.
const BYTE: usize = 6;
/// Bytes of the longest text that is read word for word, and what that takes for a byte.
const MANIFEST: usize = 64 << 10;
const WORD: usize = 100;

/// Bytes that the component takes, at most.
pub(crate) fn of(component: &[u8]) -> usize {
    let items =
        Parser::new(0).parse_all(component).map_while(Result::ok).map(|payload| items(&payload));
    let items = items.fold(0, usize::saturating_add);
    items.saturating_mul(ITEM).saturating_add(component.len().saturating_mul(BYTE))
}

/// Bytes that reading a package takes, at most: what is its manifest's is not known before,
/// so each text that is short enough to be one counts as it.
pub(crate) fn of_package(file: &[u8]) -> usize {
    let Ok(files) = tar::read(file) else { return 0 };
    let part = |(_, bytes): &(&str, &[u8])| match bytes.len() {
        _ if bytes.starts_with(b"\0asm") => of(bytes),
        length if length <= MANIFEST => length.saturating_mul(WORD),
        length => length.saturating_mul(BYTE),
    };
    files.iter().map(part).fold(0, usize::saturating_add)
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
